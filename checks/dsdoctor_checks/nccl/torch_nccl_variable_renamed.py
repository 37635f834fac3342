"""A variable of torch's NCCL process group is set under its old name.

## Why it matters
torch 2.2 renamed NCCL_ASYNC_ERROR_HANDLING, NCCL_BLOCKING_WAIT, NCCL_DESYNC_DEBUG and NCCL_ENABLE_TIMING
to TORCH_NCCL_…. The old names still work, with a warning from every rank. If both are set, it is easy to
change the one that has no effect.

## What to do
Set the new name and unset the old one.

## References
- torch/include/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp, 2.1 to 2.15
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    LaunchCommand,
    Missing,
    Scope,
    TorchBuild,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least, fixable, job_environment, unset_by, variable

from ._names import OF_TORCH

CONDITION = Condition(
    "torch-nccl-variable-renamed",
    id="DSD803",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)


@check(CONDITION)
def names_are_current(
    env: Environment, torch: TorchBuild, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """Warns about old names if torch has the new ones."""
    if torch.version is None or not at_least(torch.version, "2.2"):
        yield skip("torch is older than 2.2 or not installed")
        return
    of_job = job_environment(env, command)
    old = [name for name in OF_TORCH if variable(of_job, name) is not None]
    if not old:
        yield ok()
    for name in old:
        new = f"TORCH_{name}"
        value, newer = variable(of_job, name), variable(of_job, new)
        both = newer is not None and newer != value
        finding = warn(
            f"`{name}={value}` is set, but since torch 2.2 its name is `{new}`"
            + (f", which is set to `{newer}`" if both else ""),
            effect="each rank prints a deprecation warning"
            + (", and only one of the two values has an effect" if both else ""),
            hint=f"{unset_by(command, name)} and set `{new}`",
            variable=name,
            value=value,
            new=new,
            new_value=newer,
            torch=torch.version,
        )
        yield fixable(finding, command, name)
