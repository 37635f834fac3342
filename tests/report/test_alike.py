"""What is the same for several GPUs is shown once."""

from __future__ import annotations

from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.report import text
from dsdoctor.report.alike import one_for_all, stated_lines


def about(gpu: int, what: str = "is too old", status: Status = Status.FAIL) -> Finding:
    return Finding(status=status, message=f"GPU {gpu} (V100) {what}", condition="x")


def test_findings_that_differ_in_the_gpu_alone_are_one() -> None:
    given = [about(0), about(1, "is hot"), about(1), about(2), about(4)]
    messages = [one.message for one in one_for_all(given)]
    assert messages == [
        "GPU 0 (V100) is too old; the same is true of GPU 1-2, 4",
        "GPU 1 (V100) is hot",
    ]


def test_what_names_two_gpus_or_differs_in_status_stays() -> None:
    pair = Finding(status=Status.FAIL, message="no link from GPU 0 to GPU 1", condition="x")
    other = Finding(status=Status.FAIL, message="no link from GPU 0 to GPU 2", condition="x")
    given = [pair, other, about(0), about(1, status=Status.WARN)]
    assert one_for_all(given) == given


def test_the_text_shows_them_once_and_all_of_them_with_verbose() -> None:
    report = Report(findings=[about(0), about(1)], counts={"fail": 2})
    assert text.render(report).count("(V100)") == 1
    assert text.render(report, verbosity=1).count("(V100)") == 2


def test_lines_that_differ_in_numbers_alone_are_quoted_once() -> None:
    rows = [{"line": n, "text": f"GPU\t{n}: V100", "reader": "r"} for n in (3, 4, 5)]
    rows.append({"line": 9, "text": "driver 535", "reader": "r"})
    finding = Finding(status=Status.FAIL, message="m", evidence={"stated_at": rows})
    assert stated_lines(finding) == [
        "line 3: GPU 3: V100 (and 2 similar lines)",
        "line 9: driver 535",
    ]
