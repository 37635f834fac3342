"""Helpers shared by the host checks."""

from __future__ import annotations

from dsdoctor.api import Environment, Gpus, Missing, RunNeeds
from dsdoctor_checks._util import chosen

MIB = 1 << 20

#: Words in a log that show that the processes of a job share memory, as DataLoader workers, NCCL and
#: DeepSpeed's CPU collectives do. A SIGBUS without them may have come from a mapped file.
SHARED_MEMORY = (
    "/dev/shm",
    "shared memory",
    "DataLoader worker",
    "utils/data/",
    "NCCL WARN",
    "ProcessGroupNCCL",
    "deepspeed_shm_comm",
)


def ranks(run: RunNeeds, gpus: Gpus | Missing, env: Environment | Missing) -> int:
    """Number of ranks that a job would start on this host: one per GPU, at least one."""
    asked = len(run.gpus) or run.expect_gpus or run.container_gpus
    return max(asked or len(chosen(gpus, run, env)), 1)
