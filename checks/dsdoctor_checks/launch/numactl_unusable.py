"""The launcher calls `numactl`, which is missing or does not work here.

## Why it matters
With `--bind_cores_to_rank` the deepspeed launcher starts each rank through `numactl`. Before DeepSpeed 0.16,
it also counts the NUMA nodes with `numactl` wherever DeepSpeed runs on the CPU. Without that program, or
where the kernel has no NUMA (WSL 2), no rank starts.

## What to do
Install the package `numactl`, or remove the option. Without NUMA, set `LOCAL_SIZE` to the number of ranks
for the CPU, or upgrade DeepSpeed.

## References
- DeepSpeed 0.8 to 0.19.8 deepspeed/utils/numa.py (`get_numactl_cmd`, `get_numa_cores`)
- numactl 2.0.18 numactl.c: what it prints without NUMA
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Level, Numactl, Scope, Signature, check, fail, ok, warn

CONDITION = Condition("numactl-unusable", id="DSD1264", scope=Scope.JOB, since="0.1")
_REMOVE = "remove `--bind_cores_to_rank`"


@check(CONDITION)
def ranks_can_be_bound(numactl: Numactl) -> Iterator[Finding]:
    """Fails without the program, and on a kernel without NUMA."""
    if not numactl.binds:
        yield _nodes_can_be_counted(numactl)
    elif numactl.path is None and not numactl.error:
        yield fail(
            "`--bind_cores_to_rank` starts ranks through `numactl`, which is not on PATH",
            effect="the launcher stops with `FileNotFoundError` and starts no rank",
            hint=f"install the package `numactl`, or {_REMOVE}",
        )
    elif numactl.error:
        yield fail(
            "`--bind_cores_to_rank` starts ranks through `numactl`, which reports"
            f" `{numactl.error}`",
            effect="each rank ends before its script starts",
            hint=_REMOVE,
            path=numactl.path,
            error=numactl.error,
        )
    else:
        yield ok(path=numactl.path)


def _nodes_can_be_counted(numactl: Numactl) -> Finding:
    """Only warns: this may be the login node of the machines that have GPUs."""
    if numactl.path is not None and not numactl.error:
        return ok(path=numactl.path)
    trouble = f"which reports `{numactl.error}`" if numactl.error else "which is not on PATH"
    return warn(
        f"without a GPU, the deepspeed launcher counts NUMA nodes with `numactl`, {trouble}",
        effect="the launcher stops with an exception and starts no rank",
        hint="install the package `numactl`"
        if not numactl.error
        else "set `LOCAL_SIZE` to the number of ranks, or upgrade DeepSpeed to 0.16 or newer",
        path=numactl.path,
        error=numactl.error,
    )


HINT = f"install the package `numactl`; with the deepspeed launcher, {_REMOVE}"

SIGNATURES = (
    Signature(
        pattern=r"No such file or directory: '(?:\S{0,200}/)?numactl'",
        source="CPython 3.8-3.14 Lib/subprocess.py, for deepspeed 0.8-0.19 utils/numa.py",
        message="`numactl` is not installed",
        hint="install the package `numactl`; DeepSpeed calls it for `--bind_cores_to_rank`, and older releases call it on every machine without a GPU",
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'numactl'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/bin/numactl'",
        ),
        not_examples=("FileNotFoundError: [Errno 2] No such file or directory: 'numactl.json'",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"\bnumactl: (?:command )?not found",
        source="bash 3.2-5.3 execute_cmd.c, dash 0.5 src/exec.c",
        message="`numactl` is not installed",
        examples=(
            "run.sh: line 7: numactl: command not found",
            "sh: 1: numactl: not found",
        ),
        level=Level.CERTAIN,
        masks=("launch-file-missing",),
    ),
    Signature(
        pattern=r"\bsetting (?:membind|preferred node): Operation not permitted",
        source="numactl 2.0.9-2.0.19 numactl.c",
        message="`numactl` may not bind memory: containers allow it only with the capability SYS_NICE",
        hint="start the container with `--cap-add=SYS_NICE`, or remove `--bind_cores_to_rank`, or the options of `numactl` that bind memory",
        examples=(
            "setting membind: Operation not permitted",
            "numactl: setting preferred node: Operation not permitted",
        ),
        not_examples=("resetting membind: Operation not permitted",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No NUMA (?:support )?available on this system",
        source="numactl 2.0.9-2.0.19 numactl.c",
        message="the kernel has no NUMA, so `numactl` cannot bind ranks",
        hint="remove `--bind_cores_to_rank`, or `numactl` from the command",
        examples=(
            "No NUMA available on this system",
            "numactl: No NUMA support available on this system.",
        ),
        level=Level.LIKELY,
    ),
)
