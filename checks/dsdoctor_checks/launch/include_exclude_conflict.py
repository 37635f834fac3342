"""Options of the deepspeed launcher are mutually exclusive, or select hosts or slots that do not exist.

## Why it matters
`--include` cannot be combined with `--exclude`, and neither with `--num_gpus` or `--num_nodes`. The
launcher also stops at a host that is not in the hostfile and at a slot that the host does not have.

## What to do
Keep one of the options, and select only hosts and slots that the hostfile lists.

## References
deepspeed/launcher/runner.py (0.19.8, `main`, `parse_resource_filter`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    Scope,
    Signature,
    Why,
    check,
    fail,
    skip,
)

CONDITION = Condition(
    "include-exclude-conflict",
    id="DSD1204",
    scope=Scope.JOB,
    since="0.1",
    narrower=("launch-placeholder-left",),
)

_EFFECT = "the launcher stops with `ValueError` before anything starts"


@check(CONDITION)
def options_go_together(
    command: LaunchCommand, hostfile: Hostfile | Missing, gpus: Gpus | Missing
) -> Iterator[Finding]:
    """Fails on options that the deepspeed launcher rejects together, and on what they select."""
    if command.launcher != "deepspeed":
        return
    given = {
        "--include": command.include,
        "--exclude": command.exclude,
        "--num_gpus": command.num_gpus if (command.num_gpus or 0) >= 0 else None,
        "--num_nodes": command.num_nodes if (command.num_nodes or 0) >= 0 else None,
    }
    used = [name for name, value in given.items() if value not in (None, "")]
    filters = [name for name in used if name in {"--include", "--exclude"}]
    if len(filters) > 1 or (filters and len(used) > 1):
        yield fail(
            f"`{used[0]}` and `{used[1]}` are mutually exclusive, but both are passed",
            effect=_EFFECT,
            hint="pass only one of them",
            options=used,
        )
        return
    for text in (command.include, command.exclude):
        if text:
            yield from _slots_exist(text, hostfile, gpus)


def _slots_exist(
    text: str, hostfile: Hostfile | Missing, gpus: Gpus | Missing
) -> Iterator[Finding]:
    chosen = LaunchCommand.filter_slots(text)
    if chosen is None:
        yield fail(
            f"`{text}` does not have the form `HOST:SLOT,SLOT@HOST`",
            effect=_EFFECT,
            hint="write it like `localhost:0,1`",
            filter=text,
        )
        return
    if isinstance(hostfile, Hostfile) and hostfile.entries:
        pool: dict[str, int | None] = {entry.host: entry.slots for entry in hostfile.entries}
    else:
        known = isinstance(gpus, Gpus) and gpus.gpus and not any(g.mig_devices for g in gpus.gpus)
        count = (gpus.count or len(gpus.gpus)) if known and isinstance(gpus, Gpus) else None
        pool = {"localhost": count}
    for host, slots in chosen.items():
        if host not in pool and isinstance(hostfile, Missing) and hostfile.why is not Why.ABSENT:
            yield skip(f"no hostfile was read, so the slots of `{host}` are not known")
            continue
        if host not in pool:
            names = ", ".join(f"`{name}`" for name in pool)
            yield fail(
                f"`{host}` is requested, but the hosts of this run are {names}",
                effect=_EFFECT,
                hint="use a host from the hostfile, or `localhost` if there is no hostfile",
                host=host,
                hosts=list(pool),
            )
            continue
        have = pool[host]
        if have is None and slots:
            yield skip(f"the number of GPUs of `{host}` is not known, so its slots are not checked")
            continue
        beyond = [slot for slot in slots or () if have is not None and slot >= have]
        if beyond:
            yield fail(
                f"slot {beyond[0]} of `{host}` is requested, but it has {have} slots, numbered"
                " from 0",
                effect=_EFFECT,
                hint=f"use slots below {have}",
                host=host,
                slot=beyond[0],
                slots=have,
            )


HINT = "pass only one of the options, with hosts and slots that the hostfile lists"

SIGNATURES = (
    Signature(
        pattern="include_str and exclude_str",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=("ValueError: include_str and exclude_str are mutually exclusive.",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Cannot specify num_nodes/gpus with include",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=("ValueError: Cannot specify num_nodes/gpus with include/exclude",),
        level=Level.STRONG,
    ),
)
