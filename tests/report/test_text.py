"""The report in text: what could not be read is neither repeated nor called absent."""

from __future__ import annotations

from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report, Verdict
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
