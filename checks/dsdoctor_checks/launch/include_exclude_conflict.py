"""Options of the deepspeed launcher exclude each other, or name what is not there.

## Why it matters
`--include` and `--exclude` cannot be given together, nor with `--num_gpus` or `--num_nodes`; a host
that the hostfile lacks or a slot beyond its number ends the launcher too.

## What to do
Keep one of the options, and name hosts and slots that the hostfile holds.

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
    Missing,
    Scope,
    check,
    fail,
)

from ..config._ranks import filter_slots  # noqa: TID252  # families of one pack share it

CONDITION = Condition("include-exclude-conflict", id="DSD1204", scope=Scope.JOB, since="0.1")

_EFFECT = "the launcher stops with `ValueError` before anything starts"


@check(CONDITION)
def options_go_together(
    command: LaunchCommand, hostfile: Hostfile | Missing, gpus: Gpus | Missing
) -> Iterator[Finding]:
    """Speaks of what the deepspeed launcher refuses on its command line."""
    if command.launcher != "deepspeed":
        return
    for problem in command.problems:
        yield fail(
            f"`{problem}` is given, but the option takes a whole number",
            effect="the launcher prints its usage and stops",
            hint="write a number",
            option=problem,
        )
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
            f"`{used[0]}` and `{used[1]}` are both given, but the launcher takes only one of them",
            effect=_EFFECT,
            hint=f"keep `{used[0]}` and take `{used[1]}` out",
            options=used,
        )
        return
    for text in (command.include, command.exclude):
        if text:
            yield from _slots_exist(text, hostfile, gpus)


def _slots_exist(
    text: str, hostfile: Hostfile | Missing, gpus: Gpus | Missing
) -> Iterator[Finding]:
    chosen = filter_slots(text)
    if chosen is None:
        yield fail(
            f"`{text}` is not of the form `HOST:SLOT,SLOT@HOST`",
            effect=_EFFECT,
            hint="write for instance `localhost:0,1`",
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
        if host not in pool:
            names = ", ".join(f"`{name}`" for name in pool)
            yield fail(
                f"`{host}` is asked for, but the hosts are {names}",
                effect=_EFFECT,
                hint="name a host of the hostfile, or `localhost` without one",
                host=host,
                hosts=list(pool),
            )
            continue
        have = pool[host]
        beyond = [slot for slot in slots or () if have is not None and slot >= have]
        if beyond:
            yield fail(
                f"slot {beyond[0]} of `{host}` is asked for, but it has {have} slots, counted"
                " from 0",
                effect=_EFFECT,
                hint=f"name slots below {have}",
                host=host,
                slot=beyond[0],
                slots=have,
            )
