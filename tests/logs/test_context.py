"""Causes held against a machine: a snapshot, or the machine that the test runs on."""

from __future__ import annotations

import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import Condition, Finding, Missing, Scope, Status, TorchBuild, Why
from dsdoctor.logs import Source, context, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.snapshot import of
from dsdoctor.packs.registry import Pack, Registry, Unit
from dsdoctor.report.diagnosis import render
from tests.support.command import clean_environment, dsdoctor
from tests.support.diagnosing import diagnose_command

REGISTRY = packs.load(builtin_only=True)
NO_TORCH = "ModuleNotFoundError: No module named 'torch'\n"
OS = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="gpu-17")


def saved(tmp_path: Path, torch: TorchBuild | Missing) -> Path:
    """A snapshot of a machine of which only its torch is known."""
    snapshot = of([OS], {TorchBuild: torch}) if isinstance(torch, Missing) else of([OS, torch])
    snapshot.created = "2026-01-05T08:00:00+00:00"
    path = tmp_path / "s.json"
    path.write_bytes(snapshot.to_json())
    return path


@pytest.mark.parametrize(
    ("torch", "status", "words"),
    [
        pytest.param(
            TorchBuild(),
            "confirmed",
            "still present on `gpu-17` as of 2026-01-05T08:00:00+00:00: torch is",
            id="torch is missing",
        ),
        pytest.param(
            TorchBuild(version="2.13.0+cu130"),
            "refuted",
            "`check` no longer finds this on `gpu-17`",
            id="torch is installed",
        ),
        pytest.param(
            Missing(why=Why.TIMEOUT, detail="it hung"),
            "unknown",
            "is inconclusive: it hung",
            id="a timeout",
        ),
        pytest.param(
            Missing(why=Why.NOT_ASKED, detail="not read"),
            "unknown",
            "is inconclusive: not read",
            id="not read",
        ),
    ],
)
def test_a_snapshot_confirms_refutes_or_cannot_tell(
    torch: TorchBuild | Missing,
    status: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    argv: tuple[Any, ...] = ("-", "--snapshot", saved(tmp_path, torch))
    result = diagnose_command(monkeypatch, *argv, "--format", "json", stdin=NO_TORCH.encode())
    assert result.status == 1
    cause = result.report["causes"][0]
    assert cause["now"]["status"] == status
    assert words in cause["now"]["message"]
    text = diagnose_command(monkeypatch, *argv, stdin=NO_TORCH.encode()).out
    assert f"      {status}: " in text
    assert (cause["confidence"] > 0.98) == (status == "confirmed")


def test_without_a_machine_nothing_is_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    result = diagnose_command(monkeypatch, "-", "--format", "json", stdin=NO_TORCH.encode())
    assert result.report["causes"][0]["now"] is None


def test_what_shows_in_logs_alone_stays_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, TorchBuild())
    argv = ("-", "--snapshot", path, "--format", "json")
    result = diagnose_command(monkeypatch, *argv, stdin=b"step 3 loss nan\n")
    now = result.report["causes"][0]["now"]
    assert now["status"] == "unknown"
    assert "no check looks for it" in now["message"]


@pytest.mark.train
def test_here_asks_this_machine(tmp_path: Path) -> None:
    """The interpreter of the tests holds a torch, so that its absence is refuted."""
    log = tmp_path / "x.log"
    log.write_text(NO_TORCH)
    environment = clean_environment(tmp_path, DSDOCTOR_PYTHON=sys.executable)
    result = dsdoctor("diagnose", str(log), "--here", "--format", "json", env=environment)
    assert result.report["causes"][0]["now"]["status"] == "refuted"
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    python = str(bare / "bin" / "python")
    result = dsdoctor(
        "diagnose", str(log), "--here", "--python", python, "--format", "json", env=environment
    )
    now = result.report["causes"][0]["now"]
    assert now["status"] == "confirmed"
    assert str(bare) in now["message"]


# -- the rules, without a machine ----------------------------------------------------------------


def finding(condition: str, status: Status, message: str = "measured") -> Finding:
    return Finding(status=status, message=message, condition=condition)


def two_causes() -> Diagnosis:
    text = (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        "RuntimeError: No CUDA GPUs are available\n"
    )
    found = diagnose([Source(name="x", data=text.encode())], signatures_of(REGISTRY))
    assert [cause.condition for cause in found.causes] == ["gpu-oom", "no-gpu-visible"]
    return found


def test_a_refuted_cause_comes_after_those_that_stand() -> None:
    rows = [finding("gpu-oom", Status.OK), finding("no-gpu-visible", Status.FAIL)]
    found = context.combine(two_causes(), rows, REGISTRY, "`here`")
    assert [cause.condition for cause in found.causes] == ["no-gpu-visible", "gpu-oom"]
    assert found.summary == found.causes[0].message
    assert render(found).startswith("CAUSE no-gpu-visible")


def test_one_bad_finding_outweighs_good_ones() -> None:
    rows = [finding("gpu-oom", Status.OK), finding("gpu-oom", Status.WARN, "40 MiB free")]
    found = context.combine(two_causes(), rows, REGISTRY, "`here`")
    assert found.causes[0].now is not None
    assert found.causes[0].now.status == "confirmed"
    assert "40 MiB free" in found.causes[0].now.message


@pytest.mark.parametrize("status", [Status.SKIP, Status.UNKNOWN, Status.CRASH])
def test_what_could_not_be_read_refutes_nothing(status: Status) -> None:
    rows = [finding("gpu-oom", status, "denied"), finding("gpu-oom", Status.OK)]
    found = context.combine(two_causes(), rows, REGISTRY, "`here`")
    assert found.causes[0].now is not None
    assert found.causes[0].now.status == "unknown"
    assert "denied" in found.causes[0].now.message


def test_what_leads_to_a_cause_confirms_it() -> None:
    unit = Unit(
        condition=Condition("low", "DSD9990", Scope.NODE, "0.1", leads_to=("gpu-oom",)),
        title="t", page="", family="x", pack="x",
    )  # fmt: skip
    registry = Registry([Pack("x", "x", (unit,))])
    rows = [finding("low", Status.FAIL, "1 GiB"), finding("gpu-oom", Status.OK)]
    found = context.combine(two_causes(), rows, registry, "`here`")
    assert found.causes[0].now is not None
    assert found.causes[0].now.status == "confirmed"
    assert "1 GiB (`low`)" in found.causes[0].now.message


def test_only_checks_that_can_say_something_are_run() -> None:
    names = {unit.condition.name for unit in context.units_for(two_causes(), REGISTRY)}
    assert "no-gpu-visible" in names
    assert "torch-missing" not in names
    assert len(names) < len(REGISTRY) / 4
