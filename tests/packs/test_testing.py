"""What `dsdoctor.testing` gives to the authors of packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Host,
    Limits,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    Why,
    check,
    fail,
    ok,
    probe,
    skip,
    warn,
)
from dsdoctor.testing import (
    FakeHost,
    assert_fail,
    assert_ok,
    assert_signature,
    assert_skip,
    assert_warn,
    judge,
    missing,
    read,
    record,
    replay,
    snapshot,
)

CONDITION = Condition("moon-full", id="DSD9001", scope=Scope.NODE, since="0.1")


class MoonLimits(Limits, frozen=True, kw_only=True):
    most: float = 4.0


@check(CONDITION)
def moon(
    gpus: Gpus, env: Environment | Missing, run: RunNeeds, limits: MoonLimits
) -> Iterator[Finding]:
    if gpus.count is not None and gpus.count > limits.most:
        yield fail(f"{gpus.count} moons", effect="tides", hint="wait", count=gpus.count)
    if isinstance(env, Missing):
        yield skip(f"no environment: {env.why.value}")
    elif "WARN" in env.variables:
        yield warn("one moon", effect="", hint="wait", count=1)
    if run.deep:
        raise ZeroDivisionError


@probe
def sky(host: Host, env: Environment) -> OsInfo:
    release = host.read("/etc/sky").decode()
    return OsInfo(system=host.system, release=release, machine="m", hostname=env.variables["HOST"])


def gpus(count: int) -> Gpus:
    return Gpus(gpus=tuple(Gpu(index=number) for number in range(count)), count=count)


def test_a_check_that_yields_nothing_is_ok() -> None:
    judged = judge(moon, gpus=gpus(1), environment=Environment())
    assert judged.statuses == ["ok"]
    assert_ok(judged)


def test_the_worst_of_several_statuses_counts() -> None:
    judged = judge(moon, gpus=gpus(5))
    assert judged.statuses == ["fail", "skip"]
    assert assert_fail(judged, "5 moons").condition == "moon-full"
    assert [finding.message for finding in judged.bad] == ["5 moons"]
    with pytest.raises(
        AssertionError, match="expected 'six' in the message, but the check returned"
    ):
        assert_fail(judged, "six")
    with pytest.raises(AssertionError, match="expected ok, but the check returned fail: '5 moons'"):
        assert_ok(judged)


def test_a_fact_not_named_was_not_asked_for() -> None:
    assert_skip(judge(moon, gpus=gpus(1)), "not-asked")
    assert_skip(judge(moon, gpus=gpus(1), environment=missing("denied")), "denied")


def test_a_fact_that_is_missing_is_skipped_or_unknown() -> None:
    assert judge(moon, gpus=missing()).status == "skip"
    assert judge(moon, gpus=missing(Why.TIMEOUT)).status == "unknown"


def test_limits_replace_the_defaults() -> None:
    facts = snapshot(gpus=gpus(5), environment=Environment())
    assert judge(moon, facts).status == "fail"
    assert judge(moon, facts, limits=MoonLimits(most=5)).status == "ok"
    assert judge(moon, facts, limits={"most": 6}).status == "ok"


def test_keyword_facts_replace_those_of_the_snapshot() -> None:
    facts = snapshot(gpus=gpus(5), environment=Environment())
    assert judge(moon, facts, gpus=gpus(1)).status == "ok"
    assert judge(moon, facts, gpus=missing()).status == "skip"
    assert judge(moon, facts).status == "fail"


def test_what_the_check_raises_reaches_the_test() -> None:
    with pytest.raises(ZeroDivisionError):
        judge(moon, gpus=gpus(1), run_needs=RunNeeds(deep=True))


def test_a_warning_without_an_effect_is_refused() -> None:
    with pytest.raises(AssertionError, match="has no effect: 'one moon'"):
        assert_warn(judge(moon, gpus=gpus(1), environment=Environment(variables={"WARN": "1"})))


def test_mistakes_of_the_test_are_named() -> None:
    with pytest.raises(TypeError, match="needs `gpus`; give the fact, or `gpus=missing"):
        judge(moon)
    with pytest.raises(TypeError, match="does not take `os_info`; it takes `gpus`, `environment`"):
        judge(moon, gpus=gpus(1), os_info=missing())
    with pytest.raises(TypeError, match="no fact has the key `gpu_s`"):
        snapshot(gpu_s=gpus(1))
    with pytest.raises(TypeError, match="`gpus` must be a fact `Gpus`, not Environment"):
        snapshot(gpus=Environment())


def test_a_probe_reads_a_fake_host() -> None:
    env = Environment(variables={"HOST": "n1"})
    fact = read(sky, FakeHost(files={"/etc/sky": "blue"}), environment=env)
    assert fact.release == "blue"
    lost = read(sky, FakeHost(), environment=env)
    assert lost == Missing(why=Why.ABSENT, detail="`/etc/sky` does not exist")
    with pytest.raises(TypeError, match="needs the fact `environment`"):
        read(sky, FakeHost())


def test_a_recording_answers_as_the_machine_did(tmp_path: Path) -> None:
    env = Environment(variables={"HOST": "n1"})
    host = FakeHost(files={"/etc/sky": "grey"}, system="Darwin")
    live = record(tmp_path / "sky.json", sky, host, environment=env)
    assert read(sky, replay(tmp_path / "sky.json"), environment=env) == live
    assert live.system == "Darwin"


def signature(**changes: tuple[str, ...]) -> Signature:
    usual = {"examples": ("the moon is 99 % full",), "not_examples": ("the moon is not full",)}
    given = {**usual, **changes}
    return Signature(
        pattern=r"the moon is \d+ % full",
        examples=given["examples"],
        not_examples=given["not_examples"],
    )


def test_a_signature_matches_its_examples_and_no_near_miss() -> None:
    assert_signature(signature())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"examples": ()}, "needs an example", id="no example"),
        pytest.param({"not_examples": ()}, "needs a near-miss", id="no near-miss"),
        pytest.param(
            {"examples": ("the sun",)}, "example does not match", id="an example that differs"
        ),
        pytest.param(
            {"not_examples": ("the moon is 1 % full",)}, "near-miss matches", id="a near-miss hit"
        ),
        pytest.param(
            {"not_examples": ("the sun is not full",)},
            "does not contain 'the moon is '",
            id="a far miss",
        ),
    ],
)
def test_a_signature_that_proves_nothing_is_refused(
    changes: dict[str, tuple[str, ...]], reason: str
) -> None:
    with pytest.raises(AssertionError, match=reason):
        assert_signature(signature(**changes))


def test_ok_with_evidence_is_ok() -> None:
    @check(CONDITION)
    def full(system: OsInfo) -> Iterator[Finding]:
        yield ok(system.hostname, host=system.hostname)

    system = OsInfo(system="Linux", release="6", machine="m", hostname="n1")
    judged = judge(full, os_info=system)
    assert_ok(judged)
    assert judged.worst.message == "n1"
