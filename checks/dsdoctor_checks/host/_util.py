"""What the checks of the host share."""

from __future__ import annotations

from dsdoctor.api import Environment, Gpus, Missing, RunNeeds
from dsdoctor_checks._util import chosen

MIB = 1 << 20


def ranks(run: RunNeeds, gpus: Gpus | Missing, env: Environment | Missing) -> int:
    """Number of ranks that a job would start on this host: one per GPU, at least one."""
    return max(len(run.gpus) or run.expect_gpus or len(chosen(gpus, run, env)), 1)
