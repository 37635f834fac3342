"""Logs that begin with their newest line."""

from __future__ import annotations

import itertools

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

SIGNATURES = signatures_of(packs.load(builtin_only=True))
#: What healed, then the training, then what ended it.
LINES = [
    "Retrying in 1s [Retry 1/5].",
    *(f"step {step}/200 loss {9 - step / 40:.3f}" for step in range(10, 200, 10)),
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 31, in <module>',
    "    main()",
    '  File "/job/train.py", line 22, in main',
    "    loss.backward()",
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 1.06 GiB is free."
    ),
    (
        "E1130 10:00:30.000000 7 torch/distributed/elastic/multiprocessing/api.py:882] failed "
        "(exitcode: 1) local_rank: 0 (pid: 31) of binary: /usr/bin/python3"
    ),
]


def stamped(lines: list[str], *, in_a_second: int = 1) -> list[str]:
    """The lines as a log service keeps them."""
    return [f"2026-11-30T10:00:{n // in_a_second:02}.000Z {one}" for n, one in enumerate(lines)]


def found_in(lines: list[str]) -> Diagnosis:
    data = "".join(f"{line}\n" for line in lines).encode()
    return diagnose([Source(name="export.log", data=data)], SIGNATURES)


def by_time_alone(lines: list[str]) -> list[str]:
    """The newest second first; the lines of each second as they were written."""
    seconds = [list(group) for _, group in itertools.groupby(lines, lambda line: line[:19])]
    return list(itertools.chain(*reversed(seconds)))


def one_message(lines: list[str]) -> list[str]:
    """The traceback is one message of several lines, with one time."""
    rows = stamped(lines)
    first = next(n for n, line in enumerate(rows) if "Traceback" in line)
    last = next(n for n, line in enumerate(rows) if "OutOfMemory" in line)
    trace = "\n".join([rows[first], *lines[first + 1 : last + 1]])
    messages = [*rows[:first], trace, *rows[last + 1 :]]
    return "\n".join(reversed(messages)).split("\n")


@pytest.mark.parametrize(
    "exported",
    [
        pytest.param(stamped(LINES)[::-1], id="each line has its time"),
        pytest.param(stamped(LINES, in_a_second=4)[::-1], id="several in a second"),
        pytest.param(by_time_alone(stamped(LINES, in_a_second=4)), id="sorted by time alone"),
        pytest.param(one_message(LINES), id="a traceback is one message"),
    ],
)
def test_the_failure_is_that_of_the_log_as_it_was_written(exported: list[str]) -> None:
    found = found_in(exported)
    assert [one.condition for one in found.causes] == ["gpu-oom"]
    assert found.first_error is not None
    assert (found.first_error.file, found.first_error.line) == ("/job/train.py", 22)
    (line,) = found.causes[0].evidence
    assert "OutOfMemoryError" in exported[line.line - 1], "the number is that in the file"
    assert found.first_error.log.line == line.line


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(LINES, id="no times"),
        pytest.param(stamped(LINES), id="oldest first"),
        pytest.param(
            [f"2026-11-{day} 07:00:00 checkpoint" for day in range(29, 9, -1)] + stamped(LINES),
            id="a list of checkpoints above it",
        ),
        pytest.param(
            [f"2026-11-{day} 07:00:00 checkpoint" for day in range(29, 9, -1)]
            + ["..."] * 20
            + LINES,
            id="a list above lines without a time",
        ),
    ],
)
def test_other_logs_stay_as_they_are(lines: list[str]) -> None:
    found = found_in(lines)
    assert [one.condition for one in found.causes] == ["gpu-oom"]
    (line, *_) = found.causes[0].evidence
    assert "OutOfMemoryError" in lines[line.line - 1]
    assert line.line == next(n for n, one in enumerate(lines, 1) if "OutOfMemory" in one)


def test_an_error_without_a_frame_is_where_the_log_says_it() -> None:
    found = found_in(stamped([*LINES[:20], "RuntimeError: the loss is no number"])[::-1])
    assert found.first_error is not None
    assert (found.first_error.line, found.first_error.log.line) == (1, 1)


def test_what_healed_before_is_no_failure() -> None:
    healed = [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 3, in <module>',
        "    import flash_attn",
        "ModuleNotFoundError: No module named 'flash_attn'",
        *LINES[1:20],
        "training done, saved to /job/out",
    ]
    assert found_in(stamped(healed)).causes == ()
    assert found_in(stamped(healed)[::-1]).causes == ()
