"""Of more failures than are kept, the last are kept as well as the first."""

from __future__ import annotations

import pytest

from dsdoctor.logs import Source, diagnose, line_reader, signatures_of
from dsdoctor.logs.errors import KEPT_ERRORS
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.scan import Scanner
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.packs import load

KNOWN = signatures_of(load(builtin_only=True))
ATTEMPTS = 60
FULL = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"


def _attempt(number: int, lines: int, error: str) -> list[str]:
    """A run that prints much before it fails, and whose first lines are like those of no other."""
    return [
        *(f"reading shard {number}-{part} of the corpus" for part in range(lines)),
        "Traceback (most recent call last):",
        f'  File "/home/lin/train.py", line {10 + number}, in <module>',
        "    main()",
        f'  File "/home/lin/train.py", line {200 + number}, in main',
        "    step()",
        error,
    ]


def _diagnose(errors: list[str], lines: int) -> Diagnosis:
    rows = [row for at, error in enumerate(errors) for row in _attempt(at, lines, error)]
    return diagnose([Source("nohup.out", data="\n".join(rows).encode())], KNOWN)


def test_the_last_of_many_attempts_is_told() -> None:
    errors = [f"KeyError: 'column_{number}'" for number in range(ATTEMPTS - 1)]
    found = _diagnose([*errors, FULL], 1100)
    assert [cause.condition for cause in found.causes] == ["gpu-oom"]


def test_a_condition_of_earlier_attempts_is_not_the_last_ones() -> None:
    found = _diagnose([*[FULL] * (ATTEMPTS - 1), "ValueError: too short"], 1100)
    assert found.outcome is Outcome.USER_CODE
    assert "too short" in found.summary


def test_what_is_kept_is_bounded() -> None:
    errors = [f"KeyError: 'column_{number}'" for number in range(20 * KEPT_ERRORS)]
    rows = [row for at, error in enumerate(errors) for row in _attempt(at, 2, error)]
    scan = Scanner([]).scan(Source("nohup.out", data="\n".join(rows).encode()))
    assert len(scan.errors) == 2 * KEPT_ERRORS
    assert scan.errors[0].line == 8
    assert scan.errors[-1].line == scan.lines == len(rows)


def test_only_around_what_is_kept_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for frames costs far more than the line itself; a flood would take minutes."""
    read: list[int] = []

    def counted(lines: list[str]) -> object:
        read.append(len(lines))
        return frames_of(lines)

    monkeypatch.setattr(line_reader, "frames_of", counted)
    rows = [f"RuntimeError: sample {number}" for number in range(50 * KEPT_ERRORS)]
    scan = Scanner([]).scan(Source("nohup.out", data="\n".join(rows).encode()))
    assert [error.line for error in scan.errors[KEPT_ERRORS:]] == [
        *range(len(rows) - KEPT_ERRORS + 1, len(rows) + 1)
    ]
    assert scan.errors[-2].more == rows[-1]
    assert len(read) <= 3 * KEPT_ERRORS


def test_the_launchers_own_end_is_no_later_start() -> None:
    text = """\
usage: train.py [-h] [--lr LR]
train.py: error: unrecognized arguments: --keep
Traceback (most recent call last):
  File "/opt/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/opt/env/lib/python3.10/site-packages/torch/distributed/run.py", line 892, in main
    run(args)
torch.distributed.DistNetworkError: failed to recv, got 0 bytes
"""
    found = diagnose([Source("train.log", data=text.encode())], KNOWN)
    assert "unrecognized arguments" in found.summary
