"""The GPUs that Slurm gave to the job and those that it can see do not agree.

## Why it matters
Slurm says which GPUs are the job's, and `CUDA_VISIBLE_DEVICES` and the device cgroup are meant to
show just those. When fewer are visible, ranks end in `invalid device ordinal`; when a script
overwrites the variable, the job lands on the GPUs of others. A job without any `--gres` or `--gpus`
sees none, or all.

## What to do
Ask for GPUs (`--gpus-per-node=N` or `--gres=gpu:N`), and take `export CUDA_VISIBLE_DEVICES=…` out
of the job script.

## References
- https://slurm.schedmd.com/gres.html (GPU management), sbatch(1): SLURM_GPUS_ON_NODE, SLURM_JOB_GPUS
- CUDA programming guide, CUDA_VISIBLE_DEVICES: UUIDs of GPUs and of MIG slices are taken too
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import visible, visible_tokens

from ._slurm import gpus_of_node, in_job

CONDITION = Condition("slurm-gpus-not-visible", id="DSD1601", scope=Scope.JOB, since="0.1")


def _devices(gpu: Gpu) -> int:
    """A sliced GPU shows as many devices as it has slices."""
    return len(gpu.mig_devices or ()) or 1 if gpu.mig_mode else 1


@check(CONDITION)
def allocation_is_visible(
    env: Environment, gpus: Gpus | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Compares Slurm's number with the devices that CUDA would show."""
    if not in_job(env):
        yield skip("this is no Slurm job")
        return
    given = gpus_of_node(env)
    tokens = visible_tokens(env)
    if isinstance(gpus, Missing) or not gpus.gpus:
        seen = 0
    elif tokens is None:
        seen = sum(_devices(gpu) for gpu in gpus.gpus)
    else:
        slices = [token for token in tokens if token.upper().startswith("MIG-")]
        seen = len(slices) or len(visible(gpus, env))
    if given is None or given[0] == 0:
        if run.wants_gpu:
            yield fail(
                "this Slurm job was given no GPU, but the run asks for some",
                effect="CUDA finds no device, or the GPUs of other jobs",
                hint="submit with `--gpus-per-node=N` or `--gres=gpu:N`",
                visible=seen,
            )
        else:
            yield skip("Slurm says nothing of GPUs in this job")
        return
    count, name = given
    evidence: dict[str, Any] = {
        "given": count,
        "visible": seen,
        "variable": name,
        "tokens": list(tokens or ()),
    }
    if seen < count:
        yield fail(
            f"Slurm gave {count} GPUs to this job on this node (`{name}`), but {seen} are visible",
            effect="the ranks beyond end in `invalid device ordinal`",
            hint="take `CUDA_VISIBLE_DEVICES` out of the job script, and compare with "
            "`scontrol show job -d $SLURM_JOB_ID`",
            **evidence,
        )
    elif seen > count:
        yield warn(
            f"Slurm gave {count} GPUs to this job on this node (`{name}`), but {seen} are visible",
            effect="the job may take GPUs that other jobs compute on",
            hint="choose the job's own with `--gpus`, and ask the administrator for "
            "`ConstrainDevices=yes` in cgroup.conf",
            **evidence,
        )
    else:
        yield ok(**evidence)
