"""The only path from a host to a snapshot and a report, for every command that examines a machine.

`check`, `snapshot`, `smoke`, `recommend`, `fix`, hooks, `preflight` and `diagnose --here` differ
in what they ask for, not in how a machine is read. Two call `collect` directly, because they
examine no interpreter: `fleet` for recordings of nodes, and the worker of a gate for its node.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from dsdoctor import interpreter, reading
from dsdoctor.api import Probe, Why, probe
from dsdoctor.collect import Progress, collect, wanted_facts
from dsdoctor.errors import UsageError
from dsdoctor.host import Host, HostError, LocalHost
from dsdoctor.job.resolve import resolve
from dsdoctor.judge import LEAST_SECONDS, Policy, judge
from dsdoctor.model.deadlines import TOTAL_SECONDS
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs.registry import Registry, Unit, gives, needs


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be examined.

    Attributes:
        run: what the job needs.
        python: interpreter or environment to examine; None = find it.
        host: the machine; None = this one, with each time limit scaled to `timeout`.
        timeout: seconds for everything; None = 180.
        facts: read only these (and judge nothing); None = what the conditions need.
        given: further facts that are known already.
        probes: further probes, besides the built-in ones and those of packs.
        progress: called when a probe begins and ends.
        keeps_partial: Ctrl-C ends the reading, and what was read by then is judged. Otherwise it
            ends the command: no plan and no start may follow from an incomplete reading.
    """

    run: RunNeeds
    python: str | None = None
    host: Host | None = None
    timeout: float | None = None
    facts: frozenset[type[Fact]] | None = None
    given: tuple[Fact, ...] = ()
    probes: tuple[Probe, ...] = ()
    progress: Progress | None = None
    keeps_partial: bool = False


def all_probes(registry: Registry) -> tuple[Probe, ...]:
    """Built-in probes and those of packs."""
    from dsdoctor.probes import builtin  # noqa: PLC0415  # imports every probe

    return (*builtin(), *registry.probes)


def read_machine(
    request: Request, registry: Registry, units: Iterable[Unit] | None = None
) -> Snapshot:
    """Reads a machine; secrets are masked.

    Args:
        request: what is to be read.
        registry: packs, for their probes.
        units: conditions that will be judged, which limit what is read; None = `request.facts`,
            and if that is None too, everything.

    Raises:
        UsageError: `request.python` is not an interpreter, or one is needed and none was found.
        KeyboardInterrupt: Ctrl-C, unless `request.keeps_partial`.
    """
    total = request.timeout or TOTAL_SECONDS
    host = request.host or LocalHost(scale=min(1.0, total / TOTAL_SECONDS))
    run = resolve(request.run, host)
    probes = (*all_probes(registry), *request.probes)
    wanted: set[type] | None = None if units is None else wanted_facts(units, probes)
    if request.facts is not None:
        wanted = {*(wanted or ()), *request.facts}
    known = {type(fact) for fact in request.given}
    given: list[Fact] = [run, *request.given]
    if PatientChoice not in known and _needs_interpreter(probes, wanted):
        if run.container is not None and not _is_named(host, request):
            probes = (*probes, _inside)
        else:
            given.append(interpreter.choose(host, request.python, run))
    snapshot = collect(host, given, probes, wanted=wanted, timeout=total, progress=request.progress)
    if snapshot.partial and not request.keeps_partial:
        raise KeyboardInterrupt
    return snapshot


def _is_named(host: Host, request: Request) -> bool:
    """Whether the user says which interpreter to examine."""
    return bool(request.python or host.env.get("DSDOCTOR_PYTHON"))


@probe
def _inside() -> PatientChoice:
    """No interpreter of this machine: the job's is in the image of a container."""
    raise HostError(
        Why.NOT_ASKED, "the job's environment is in its container, and this report covers the host"
    )


def _needs_interpreter(probes: Iterable[Probe], wanted: set[type] | None) -> bool:
    if wanted is None or PatientChoice in wanted:
        return True
    return any(
        need.kind is PatientChoice
        for probe in probes
        if wanted.intersection(gives(probe.function))
        for need in needs(probe.function)
    )


def read_more(
    snapshot: Snapshot, wanted: Iterable[type[Fact]], request: Request, registry: Registry
) -> None:
    """Adds facts to a snapshot of this machine, and those that the probes of these facts need.

    Facts that the snapshot has, or for whose absence it has a reason, are not read again.
    """
    probes = (*all_probes(registry), *request.probes)
    probe_of = {kind: probe for probe in probes for kind in gives(probe.function)}
    known = {type(fact) for fact in request.given} | {RunNeeds, PatientChoice}
    pending = {kind for kind in wanted if kind.key() not in snapshot.facts}
    lacking: set[type[Fact]] = set()
    while pending:
        kind = pending.pop()
        if kind in lacking or kind not in probe_of or kind.key() in snapshot.missing:
            continue
        lacking.add(kind)
        pending |= {
            need.kind
            for need in needs(probe_of[kind].function)
            if issubclass(need.kind, Fact) and need.kind.key() not in snapshot.facts
        }
    if not lacking:
        return
    held = [snapshot.get(kind) for kind in probe_of.keys() - lacking - known]
    given = (*request.given, *(fact for fact in held if isinstance(fact, Fact)))
    only = msgspec.structs.replace(request, given=given, facts=frozenset(lacking))
    more = read_machine(only, registry)
    for kind in lacking:
        key = kind.key()
        if key in more.facts:
            snapshot.facts[key] = more.facts[key]
        elif key in more.missing:
            snapshot.missing[key] = more.missing[key]


def examine(
    request: Request, registry: Registry, units: Iterable[Unit], policy: Policy | None = None
) -> tuple[Snapshot, Report]:
    """Reads a machine and judges conditions over what was read.

    Raises:
        UsageError: as `read_machine`.
    """
    units = tuple(units)
    begun = time.monotonic()
    snapshot = read_machine(request, registry, units if request.facts is None else None)
    return snapshot, judge(
        snapshot, units, registry, policy, deadline=judge_by(begun, request.timeout)
    )


def judge_by(begun: float, timeout: float | None) -> float:
    """The deadline for judging, as a time of `time.monotonic()`.

    Judging always gets `LEAST_SECONDS`, even if reading has taken all of the time.
    """
    return max(begun + (timeout or TOTAL_SECONDS), time.monotonic() + LEAST_SECONDS)


def read_config(path: str | None, option: str = "--config") -> dict[str, object] | None:
    """A DeepSpeed config, or None if it does not parse: checks report that.

    Raises:
        UsageError: it is not a file, or cannot be read.
    """
    if path is None:
        return None
    from dsdoctor.probes.config import parse_config  # noqa: PLC0415  # hjson only when needed

    if not Path(path).is_file():
        raise UsageError(f"`{option} {path}` is not a file; expected a DeepSpeed config")
    try:
        text = reading.read_text(path)
    except (OSError, DecodeError) as error:
        raise UsageError(
            f"`{option} {path}` cannot be read ({reading.why(error)}); expected the DeepSpeed "
            "config of the job"
        ) from None
    return parse_config(text, path).parsed
