"""The hostfile is wrong, or is not there.

## Why it matters
The deepspeed launcher stops at a line that is not `HOST slots=N`, at a host that stands twice and
at a file without hosts. A hostfile that does not exist, by a typing error for instance, is worth
only a warning to it: the job then runs on this node alone.

## What to do
Write one line for each host, `HOST slots=N` with N the number of its GPUs. Remarks begin with `#`.

## References
deepspeed/launcher/runner.py (`fetch_hostfile`, `_parse_hostfile`, `parse_resource_filter`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Missing,
    OsInfo,
    Scope,
    check,
    fail,
    ok,
)

CONDITION = Condition("hostfile-or-ssh-problem", id="DSD1201", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def hostfile_is_sound(
    hostfile: Hostfile, command: LaunchCommand | Missing, gpus: Gpus | Missing, os: OsInfo | Missing
) -> Iterator[Finding]:
    """Speaks of what the launcher refuses, and of what it lets pass."""
    if (
        not hostfile.asked
        and isinstance(command, LaunchCommand)
        and "deepspeed" not in {command.launcher, command.inner}
    ):
        return  # the default place is deepspeed's alone
    if not hostfile.exists:
        yield fail(
            f"the hostfile `{hostfile.path}` does not exist",
            effect="the launcher only warns, and the job runs on this node alone",
            hint="give the path of the hostfile from the folder that the job starts in",
            path=hostfile.path,
        )
        return
    for problem in hostfile.problems:
        spot = f"line {problem.line} of `{hostfile.path}`, `{problem.text}`, is refused"
        yield fail(
            f"{spot if problem.line else f'`{hostfile.path}` is refused'}: {problem.reason}",
            effect="the launcher stops with `ValueError` before anything starts",
            hint=f"write `HOST slots=N` on line {problem.line}, each host once"
            if problem.line
            else "write one line `HOST slots=N` for each host",
            path=hostfile.path,
            line=problem.line,
            text=problem.text,
        )
    if hostfile.problems:
        return
    yield from _slots(hostfile, gpus, os)
    yield ok(hosts=len(hostfile.entries), slots=hostfile.slots)


def _slots(hostfile: Hostfile, gpus: Gpus | Missing, os: OsInfo | Missing) -> Iterator[Finding]:
    """This node's slots against its GPUs; MIG slices count as devices, so then it says nothing."""
    if not isinstance(gpus, Gpus) or not gpus.gpus or any(gpu.mig_devices for gpu in gpus.gpus):
        return
    names = {"localhost"}
    if isinstance(os, OsInfo):
        names |= {os.hostname, os.hostname.split(".")[0]}
    have = gpus.count or len(gpus.gpus)
    for entry in hostfile.entries:
        if entry.host in names and entry.slots > have:
            yield fail(
                f"line {entry.line} of `{hostfile.path}` gives {entry.slots} slots to"
                f" `{entry.host}`, but this node has {have} GPUs",
                effect="the ranks above stop with `invalid device ordinal`",
                hint=f"write `{entry.host} slots={have}`",
                line=entry.line,
                slots=entry.slots,
                gpus=have,
            )
