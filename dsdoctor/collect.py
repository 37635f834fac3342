"""collect(host) -> Snapshot: runs the probes side by side, and masks secrets in what they read."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dsdoctor import process
from dsdoctor.api import Probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.deadlines import TOTAL_SECONDS
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.snapshot import Snapshot, masked
from dsdoctor.model.vital import VITAL
from dsdoctor.packs import containment
from dsdoctor.packs.registry import Unit, gives, needs
from dsdoctor.version import __version__

Progress = Callable[[str, bool], None]
"""Called with the name of a probe when it begins (False) and when it has ended (True)."""


class _Collection:
    """State of one collection: a thread for each probe; what can hang runs in a child process."""

    def __init__(self, host: Host, given: Iterable[Fact], progress: Progress | None) -> None:
        self.host = host
        self.progress = progress
        self.lock = threading.Condition()
        self.values: dict[type[Fact], Fact | Missing] = {type(fact): fact for fact in given}
        self.seconds: dict[str, float] = {}

    def settle(self, kind: type[Fact], value: Fact | Missing) -> None:
        with self.lock:
            self.values.setdefault(kind, value)
            self.lock.notify_all()

    def await_fact(self, kind: type) -> Fact | Missing:
        with self.lock:
            self.lock.wait_for(lambda: kind in self.values)
            return self.values[kind]

    def run(self, probe: Probe, facts: Sequence[type[Fact]]) -> None:
        name = probe.function.__name__
        arguments: dict[str, Any] = {}
        for need in needs(probe.function):
            if need.kind is Host:
                arguments[need.name] = self.host
                continue
            value = self.await_fact(need.kind)
            if isinstance(value, Missing) and not need.may_be_missing:
                for kind in facts:
                    self.settle(kind, value)
                return
            arguments[need.name] = value
        begun = time.monotonic()
        if self.progress:
            self.progress(name, False)
        results = self.attempt(probe, arguments, facts)
        self.seconds[name] = round(time.monotonic() - begun, 4)
        if self.progress:
            self.progress(name, True)
        for kind, value in zip(facts, results, strict=True):
            self.settle(kind, value)

    def attempt(
        self, probe: Probe, arguments: Mapping[str, Any], facts: Sequence[type[Fact]]
    ) -> tuple[Fact | Missing, ...]:
        name = probe.function.__name__
        try:
            with containment.contained(containment.pack_of(probe.function)):
                result = probe.function(**arguments)
        except HostError as error:
            return (error.missing,) * len(facts)
        except Exception as error:  # noqa: BLE001  # a bug in one probe must not end the check
            detail = f"probe `{name}` crashed: {containment.said(error)}"
            return (Missing(why=Why.BROKEN, detail=detail),) * len(facts)
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(facts):
            detail = f"probe `{name}` gave {len(results)} values, expected {len(facts)}"
            return (Missing(why=Why.BROKEN, detail=detail),) * len(facts)
        return tuple(_usable(name, *pair) for pair in zip(results, facts, strict=True))


def _usable(name: str, value: Fact | Missing, kind: type[Fact]) -> Fact | Missing:
    if isinstance(value, Missing):
        return value
    wrong = containment.fact_problem(value, kind)
    return Missing(why=Why.BROKEN, detail=f"probe `{name}` {wrong}") if wrong else value


def wanted_facts(units: Iterable[Unit], probes: Iterable[Probe]) -> set[type]:
    """Facts that the checks of these units need, and those that the probes of these facts need."""
    probe_of = {kind: probe for probe in probes for kind in gives(probe.function)}
    wanted: set[type] = {OsInfo, Patient, PatientChoice, Gpus, Nvml, *VITAL}
    for unit in units:
        if unit.check:
            wanted |= {need.kind for need in needs(unit.check.function)}
    pending = list(wanted)
    while pending:
        probe = probe_of.get(pending.pop())
        for need in needs(probe.function) if probe else ():
            if need.kind not in wanted:
                wanted.add(need.kind)
                pending.append(need.kind)
    return wanted


def collect(
    host: Host,
    given: Iterable[Fact],
    probes: Iterable[Probe],
    *,
    wanted: set[type] | None = None,
    timeout: float = TOTAL_SECONDS,
    progress: Progress | None = None,
) -> Snapshot:
    """Runs probes concurrently and returns what they read, secrets masked.

    Args:
        host: the machine.
        given: facts that need no probe (RunNeeds, PatientChoice).
        probes: what to run.
        wanted: facts to collect; None = all.
        timeout: seconds for the whole collection; a fact that was not read by then is missing.
        progress: called when a probe begins and ends.
    """
    state = _Collection(host, given, progress)
    begun = time.monotonic()
    expected: dict[type[Fact], str] = {}
    first: list[threading.Thread] = []  # others wait for what these read
    then: list[threading.Thread] = []
    probes = [one for one in probes if wanted is None or wanted.intersection(gives(one.function))]
    awaited = {need.kind for probe in probes for need in needs(probe.function)}
    for probe in probes:
        facts = gives(probe.function)
        expected.update(dict.fromkeys(facts, probe.function.__name__))
        thread = threading.Thread(target=state.run, args=(probe, facts), daemon=True)
        (first if awaited.intersection(facts) else then).append(thread)
    for probe in probes:  # a dependency that no probe reads must not be waited for
        for need in needs(probe.function):
            if issubclass(need.kind, Fact) and need.kind not in expected:
                detail = f"no probe reads `{need.kind.key()}`"
                state.values.setdefault(need.kind, Missing(why=Why.UNSUPPORTED, detail=detail))
    partial = False
    try:  # from the first thread on: Ctrl-C may arrive while the others are still being started
        for thread in (*first, *then):
            thread.start()
        with state.lock:
            state.lock.wait_for(lambda: expected.keys() <= state.values.keys(), timeout=timeout)
    except KeyboardInterrupt:
        partial = True
    with state.lock:
        values = dict(state.values)
    late = [kind for kind in expected if kind not in values]
    if late:
        process.kill_all()
    if partial:
        why, detail = Why.NOT_ASKED, "interrupted before it was read"
    else:
        why = Why.TIMEOUT
        detail = (
            "probe `{}` was still running when the time limit of {:g} s for the whole "
            "check was reached"
        )
    for kind in late:
        values[kind] = Missing(why=why, detail=detail.format(expected[kind], timeout))
    snapshot = Snapshot(
        dsdoctor=__version__,
        created=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        seconds={**state.seconds, "total": round(time.monotonic() - begun, 4)},
        partial=partial,
    )
    for kind, value in values.items():
        if isinstance(value, Missing):
            snapshot.lack(kind, value)
        else:
            snapshot.put(value)
    return masked(snapshot, keep=(kind.key() for kind in values if kind.verbatim))
