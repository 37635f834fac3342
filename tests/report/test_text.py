"""The report in text: what could not be read is neither repeated nor called absent."""

from __future__ import annotations

import pytest

from dsdoctor.model.facts.run import Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import PatientLine, Report, Verdict
from dsdoctor.report import text


def report(*findings: Finding, **unread: str) -> Report:
    return Report(findings=list(findings), unread=unread, verdict=Verdict.UNKNOWN)


def test_conditions_that_are_unknown_for_one_reason_are_shown_once() -> None:
    rows = [
        *(Finding(status=Status.UNKNOWN, message="torch hangs", condition=name) for name in "abc"),
        Finding(status=Status.UNKNOWN, message="no answer", condition="d"),
        Finding(status=Status.FAIL, message="torch hangs", condition="e"),
    ]
    shown = text.render(report(*rows), width=80)
    assert shown.count("torch hangs") == 2
    assert "UNKNOWN  a\n" in shown
    assert "2 more conditions are unknown for the same reason; list with `-v`" in shown
    assert "UNKNOWN  d\n" in shown
    assert "FAIL  e\n" in shown
    everything = text.render(report(*rows), width=80, verbosity=1)
    assert all(f"UNKNOWN  {name}\n" in everything for name in "abcd")
    assert "same reason" not in everything


def test_what_could_not_be_read_is_not_called_absent() -> None:
    head = text.render(report(torch_build="it hangs", nvml="no answer"), width=100).splitlines()[0]
    assert "torch not read" in head
    assert "GPUs not read" in head
    assert "no deepspeed" in head
    assert "no torch" in text.render(report(), width=100)


def fixable(scope: Scope) -> Finding:
    return Finding(status=Status.FAIL, message="it is bad", fixes=("make-it-good",), scope=scope)


@pytest.mark.parametrize("chosen_by", ["--python", "the command", ".venv here"])
def test_a_fix_examines_the_environment_and_the_job_that_were_judged(chosen_by: str) -> None:
    made = report(fixable(Scope.USER_ENV), fixable(Scope.JOB))
    made.command = ["deepspeed", "my train.py"]
    made.patient = PatientLine(python="/opt/my env/bin/python", chosen_by=chosen_by)
    environment, job = (text.fix_command(made, finding) for finding in made.findings)
    assert environment == "dsdoctor fix make-it-good --python '/opt/my env/bin/python'"
    assert job == f"{environment} -- deepspeed 'my train.py'"


def test_an_environment_that_would_be_chosen_again_is_not_passed_to_a_fix() -> None:
    made = report(fixable(Scope.JOB))
    made.patient = PatientLine(python="/opt/train/bin/python", chosen_by="VIRTUAL_ENV")
    assert text.fix_command(made, made.findings[0]) == "dsdoctor fix make-it-good"


def test_details_are_offered_only_for_what_is_shown() -> None:
    quiet = report(Finding(status=Status.WARN, message="slow", condition="a-slow", id="DSD9901"))
    assert "dsdoctor explain DSD9901" in text.render(quiet)
    assert "dsdoctor explain" not in text.render(quiet, verbosity=-1)
