from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import msgspec
import pytest

from dsdoctor.api import (
    Check,
    Condition,
    Environment,
    Fact,
    Finding,
    Fix,
    Limits,
    Missing,
    NvidiaKernel,
    OsInfo,
    Patient,
    PciGpu,
    Reach,
    RunNeeds,
    Scope,
    Signature,
    Status,
    TorchBuild,
    Why,
    check,
    fail,
    ok,
    probe,
    warn,
)
from dsdoctor.collect import collect, wanted_facts
from dsdoctor.errors import UsageError
from dsdoctor.host import Host, HostError
from dsdoctor.judge import Policy, judge
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.facts.base import Why as BaseWhy
from dsdoctor.model.report import Report, Verdict, exit_code
from dsdoctor.packs.registry import FixUnit, Pack, Registry, Unit, gives, needs
from dsdoctor.testing import FakeHost

ALPHA = Condition("alpha-broken", id="DSD9901", scope=Scope.NODE, since="0.1")
BETA = Condition(
    "beta-broken", id="DSD9902", scope=Scope.JOB, since="0.1", narrower=("gamma-broken",)
)
GAMMA = Condition("gamma-broken", id="DSD9903", scope=Scope.JOB, since="0.1")


class Gauge(Fact, frozen=True, kw_only=True):
    """A fact of a foreign pack."""

    level: int


class GaugeLimits(Limits, frozen=True, kw_only=True):
    """Threshold."""

    max_level: float = 5


@check(ALPHA)
def level_is_low(gauge: Gauge, limits: GaugeLimits) -> Iterator[Finding]:
    """Judge."""
    if gauge.level > limits.max_level:
        yield fail(f"level {gauge.level}", level=gauge.level)


@check(BETA)
def beta(gauge: Gauge | Missing) -> Iterator[Finding]:
    """Judge."""
    if isinstance(gauge, Missing):
        yield warn("no gauge")
    elif gauge.level == 99:
        yield fail("it broke", error_text="line one\nlevel 99 of doom")
    elif gauge.level == 98:
        raise RuntimeError("a bug")
    elif gauge.level == 97:
        yield fail("it broke as well")
        raise RuntimeError("a bug")
    else:
        yield ok("fine")


def unit(tied: Check, *signatures: Signature) -> Unit:
    return Unit(tied.condition, "Title", "", "test", "test", tied, signatures)


DOOM = Signature(
    pattern=r"level \d+ of doom", examples=("level 9 of doom",), not_examples=("a level of doom",)
)


def registry() -> Registry:
    gamma = Unit(GAMMA, "Gamma", "", "test", "test", None, (DOOM,), "run away")
    return Registry([Pack("test", "here", (unit(level_is_low), unit(beta), gamma))])


def judged(snapshot: snapshots.Snapshot, **limits: dict[str, float]) -> Report:
    units = registry()
    overrides = {name.replace("_", "-"): value for name, value in limits.items()}
    return judge(snapshot, list(units), units, Policy(limits=overrides))


def statuses(report: Report) -> dict[str, str]:
    return {finding.condition: finding.status.value for finding in report.findings}


def test_a_check_that_says_nothing_is_ok() -> None:
    assert statuses(judged(snapshots.of([Gauge(level=1)])))["alpha-broken"] == "ok"


def test_a_failure_carries_identity_and_makes_the_machine_faulty() -> None:
    report = judged(snapshots.of([Gauge(level=7)]))
    finding = report.findings[0]
    assert (finding.condition, finding.id, finding.evidence) == (
        "alpha-broken",
        "DSD9901",
        {"level": 7},
    )
    assert report.verdict is Verdict.FAULTY
    assert exit_code(report) == 1


@pytest.mark.parametrize(
    ("kind", "offered"),
    [
        pytest.param("venv", ("install-it", "write-it"), id="an environment"),
        pytest.param("system", ("write-it",), id="an interpreter outside environments"),
    ],
)
def test_a_fix_for_environments_is_offered_only_there(kind: str, offered: tuple[str, ...]) -> None:
    def nothing() -> None:
        """No plan."""

    condition = msgspec.structs.replace(ALPHA, fixes=("install-it", "write-it"))
    broken = Unit(condition, "Title", "", "test", "test", level_is_low)
    fixes = tuple(
        FixUnit(Fix(name, Reach.ENV, nothing, in_environment=name == "install-it"), "Title", "")
        for name in condition.fixes
    )
    known = Registry([Pack("test", "here", (broken,), fixes=fixes)])
    patient = Patient(executable="/p/python", chosen_by="--python", version="3.11.7", kind=kind)
    report = judge(snapshots.of([Gauge(level=9), patient]), [broken], known, Policy())
    assert report.findings[0].fixes == offered


def test_limits_come_from_the_configuration() -> None:
    low = judged(snapshots.of([Gauge(level=7)]), alpha_broken={"max_level": 9})
    assert statuses(low)["alpha-broken"] == "ok"
    with pytest.raises(UsageError, match="no `max_leve`"):
        judged(snapshots.of([Gauge(level=7)]), alpha_broken={"max_leve": 9})


@pytest.mark.parametrize(
    ("why", "status"),
    [
        (Why.ABSENT, "skip"),
        (Why.DENIED, "skip"),
        (Why.NOT_ASKED, "skip"),
        (Why.UNSUPPORTED, "skip"),
        (Why.TIMEOUT, "unknown"),
        (Why.BROKEN, "unknown"),
    ],
)
def test_each_reason_for_a_missing_fact(why: BaseWhy, status: str) -> None:
    missing = {Gauge: Missing(why=why, detail="because")}
    report = judged(snapshots.of([], missing))
    assert statuses(report) == {"alpha-broken": status, "beta-broken": "warn"}
    assert report.verdict is Verdict.UNKNOWN  # nothing vital was read
    assert exit_code(report) == 3


def test_a_vital_fact_denied_is_unknown_where_a_gpu_is() -> None:
    seen = NvidiaKernel(pci=(PciGpu(bdf="0000:01:00.0", device_id="0x2330"),))
    denied = {TorchBuild: Missing(why=Why.DENIED, detail="no")}
    assert judged(snapshots.of([seen, Gauge(level=1)], denied)).verdict is Verdict.UNKNOWN
    report = judged(snapshots.of([NvidiaKernel(), Gauge(level=1)], denied))
    assert report.verdict is Verdict.HEALTHY
    asked = [NvidiaKernel(), Gauge(level=1), RunNeeds(gpus=("0",))]
    assert judged(snapshots.of(asked, denied)).verdict is Verdict.UNKNOWN


def test_a_check_that_fails_and_then_crashes_gives_both() -> None:
    report = judged(snapshots.of([Gauge(level=97)]))
    found = [f.status for f in report.findings if f.condition == "beta-broken"]
    assert found == [Status.FAIL, Status.CRASH]
    assert exit_code(report) == 1


def test_a_crash_of_a_check_is_told_and_hides_no_failure() -> None:
    report = judged(snapshots.of([Gauge(level=98)]))
    assert statuses(report) == {"alpha-broken": "fail", "beta-broken": "crash"}
    assert exit_code(report) == 1
    assert "RuntimeError: a bug" in report.findings[1].message


def test_a_narrower_condition_takes_over_by_its_signature() -> None:
    report = judged(snapshots.of([Gauge(level=99)]), alpha_broken={"max_level": 100})
    assert statuses(report) == {"gamma-broken": "fail", "alpha-broken": "ok"}
    assert report.findings[0].hint == "run away"


@pytest.mark.parametrize(
    ("status", "fail_on", "code"),
    [
        ("ok", None, 0),
        ("warn", None, 0),
        ("warn", "warn", 1),
        ("warn", "unknown", 0),
        ("unknown", None, 3),
        ("unknown", "unknown", 1),
        ("unknown", "fail", 3),
        ("crash", None, 3),
        ("fail", "fail", 1),
    ],
)
def test_exit_codes(status: str, fail_on: str | None, code: int) -> None:
    report = Report(verdict=Verdict.HEALTHY, findings=[Finding(status=Status(status), message="m")])
    assert exit_code(report, fail_on) == code


def test_a_partial_report_exits_130() -> None:
    assert exit_code(Report(partial=True)) == 130


class Second(Fact, frozen=True, kw_only=True):
    """Depends on Gauge."""

    twice: int


@probe
def gauge(host: Host) -> Gauge:
    """Read."""
    return Gauge(level=int(host.read("/gauge")))


@probe
def second(gauge: Gauge, run: RunNeeds) -> Second:
    """Read."""
    return Second(twice=2 * gauge.level + len(run.gpus))


@probe
def broken(host: Host) -> tuple[OsInfo | Missing, Environment | Missing]:
    """Read."""
    raise ZeroDivisionError(host.system)


def test_probes_run_in_the_order_of_their_needs() -> None:
    host = FakeHost(files={"/gauge": "4"})
    found = collect(host, [RunNeeds(gpus=("0",))], [second, gauge])
    assert found.get(Second) == Second(twice=9)
    assert set(found.seconds) == {"gauge", "second", "total"}


@probe
def unneeded(host: Host) -> OsInfo:
    BEGUN.append("unneeded")
    return host.query("os")  # type: ignore[no-any-return]


BEGUN: list[str] = []


@probe
def needed(host: Host) -> Gauge:
    BEGUN.append("needed")
    return Gauge(level=1)


def test_what_others_wait_for_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    BEGUN.clear()
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.run)  # one after the other
    collect(FakeHost(), [RunNeeds()], [unneeded, needed, second], timeout=5)
    assert BEGUN == ["needed", "unneeded"]


def test_what_only_probes_that_do_not_run_need_may_still_be_read() -> None:
    """A fix reads more facts later, except those for whose absence there is a reason."""
    found = collect(FakeHost(), [RunNeeds()], [second, unneeded], wanted={OsInfo})
    assert Gauge.key() not in found.missing
    asked = collect(FakeHost(), [RunNeeds()], [second, unneeded], wanted={Second})
    assert "no probe reads `gauge`" in asked.missing[Second.key()].detail


def test_a_missing_fact_goes_on_to_those_that_need_it() -> None:
    denied = HostError(Why.DENIED, "`/gauge` may not be read")
    found = collect(FakeHost(files={"/gauge": denied}), [RunNeeds()], [gauge, second])
    assert found.get(Second) == denied.missing


def test_a_crashing_probe_is_broken_and_kills_nobody() -> None:
    found = collect(FakeHost(files={"/gauge": "4"}), [RunNeeds()], [broken, gauge])
    environment = found.get(Environment)
    assert isinstance(environment, Missing)
    assert environment.why is Why.BROKEN
    assert "ZeroDivisionError" in environment.detail
    assert found.get(Gauge) == Gauge(level=4)


@probe
def endless(host: Host) -> Gauge:
    """Read."""
    time.sleep(30 if host.system else 0)
    return Gauge(level=0)


def test_the_whole_deadline_is_kept_whatever_a_probe_does() -> None:
    begun = time.monotonic()
    found = collect(FakeHost(), [RunNeeds()], [endless, second], timeout=0.3)
    assert time.monotonic() - begun < 30
    late = found.get(Gauge)
    assert isinstance(late, Missing)
    assert late.why is Why.TIMEOUT
    assert "endless" in late.detail


class InterruptedThread(threading.Thread):
    """A thread at whose start Ctrl-C reaches the main thread, which waits for it to run."""

    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


def test_ctrl_c_while_the_probes_are_started_is_a_partial_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "Thread", InterruptedThread)
    found = collect(FakeHost(), [RunNeeds()], [endless, second])
    assert found.partial
    late = found.get(Gauge)
    assert isinstance(late, Missing)
    assert late.why is Why.NOT_ASKED


def test_only_what_is_wanted_is_read() -> None:
    wanted = wanted_facts([unit(level_is_low)], [gauge, second])
    assert Gauge in wanted
    assert Second not in wanted


class Note(Fact, frozen=True, kw_only=True):
    """A text that a fix would write back."""

    verbatim = True
    text: str


def test_collect_masks_secrets_and_keeps_verbatim_texts_until_they_are_written() -> None:
    secret = "password=hunter2hunter2"

    @probe
    def environment(host: Host) -> Environment:
        """Read."""
        return Environment(variables={"NCCL_DEBUG": host.read("/s").decode()})

    @probe
    def note(host: Host) -> Note:
        """Read."""
        return Note(text=host.read("/s").decode())

    found = collect(FakeHost(files={"/s": secret}), [RunNeeds()], [environment, note])
    assert found.get(Environment) == Environment(variables={"NCCL_DEBUG": "password=[masked]"})
    assert found.get(Note) == Note(text=secret)
    assert b"hunter2" not in found.to_json()


def test_needs_and_gives_read_annotations() -> None:
    assert [need.kind for need in needs(second.function)] == [Gauge, RunNeeds]
    assert gives(broken.function) == (OsInfo, Environment)
    with pytest.raises(TypeError, match="has no annotation"):
        needs(lambda fact: fact)
