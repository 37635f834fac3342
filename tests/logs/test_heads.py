"""Heads of lines that no list knows: learned from the log."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.heads import Heads, learned
from dsdoctor.model.diagnosis import Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
LOG = (
    "loading data",
    "step 1 loss 2.5",
    "step 2 loss 2.4",
    "step 3 loss 2.3",
    "saving",
    "Traceback (most recent call last):",
    '  File "/home/me/train.py", line 10, in <module>',
    "    main()",
    '  File "/home/me/train.py", line 7, in main',
    "    value = table[key]",
    "KeyError: 'tokens'",
)


def with_head(head: str) -> bytes:
    return "".join(f"{head.format(n=n)}{line}\n" for n, line in enumerate(LOG)).encode()


HEADS = (
    "[job-7 worker/3 2026-11-20T10:00:{n:02}.123Z stdout F] ",
    "2026/11/20 10:{n:02} | node17 > ",
    "<{n:06}|gpu-a|t3> ",
)


@pytest.mark.parametrize("head", HEADS)
def test_a_head_of_any_form_is_taken_off(head: str) -> None:
    text = with_head(head)
    plain = "".join(f"{line}\n" for line in LOG).encode()
    assert Heads().cut(text) == plain
    found = diagnose([Source(name="log", data=text)], KNOWN)
    assert found.outcome is Outcome.USER_CODE
    assert found.first_error is not None
    assert (found.first_error.type, found.first_error.line) == ("KeyError", 7)


def test_a_rank_behind_the_head_stays() -> None:
    lines = [line if n < 5 else f"[rank3]: {line}" for n, line in enumerate(LOG)]
    text = "".join(f"<{n:06}|gpu-a> {line}\n" for n, line in enumerate(lines)).encode()
    assert Heads().cut(text) == "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(with_head(""), id="no head"),
        pytest.param(
            with_head("(RayTrainWorker pid=123, ip=10.0.0.2) "),
            id="a head that `prefixes` lists",
        ),
        pytest.param(
            with_head("").replace(b"Traceback", b"worker 3 said: Traceback"),
            id="a head of one line alone",
        ),
        pytest.param(
            b"worker 3 > Traceback (most recent call last):\nworker 3 > KeyError: 1\n",
            id="too few lines",
        ),
        pytest.param(b"no error at all\n" * 20, id="no error"),
    ],
)
def test_no_head_is_learned_where_lines_have_none(text: bytes) -> None:
    assert learned(text) is None


def test_a_head_is_kept_for_later_blocks() -> None:
    heads = Heads()
    heads.cut(with_head("<{n:06}|gpu-a> "))
    assert heads.cut(b"<000077|gpu-a> more\nother\n") == b"more\nother\n"


#: What a logger puts in front of every line of one traceback.
LOGGERS = (
    pytest.param(
        "[2026-05-06 07:08:09,046] torch._dynamo.convert_frame: [{level}] ", id="logging of Python"
    ),
    pytest.param(
        "{level[0]}0506 07:08:09.046000 4711 torch/_dynamo/convert_frame.py:861] [1/0] ",
        id="logging of torch",
    ),
    pytest.param("trainer {level} | ", id="a trainer's own"),
)
COMPILER = (
    "Traceback (most recent call last):",
    '  File "/home/me/train.py", line 10, in <module>',
    "    main()",
    "ModuleNotFoundError: No module named 'triton'",
    "",
)


def logged(head: str, level: str) -> str:
    return "".join(f"{head.format(level=level)}{line}\n" for line in COMPILER)


@pytest.mark.parametrize("head", LOGGERS)
def test_a_traceback_that_a_logger_reports_as_a_warning_was_caught(head: str) -> None:
    steps = "".join(f"step {n} loss 2.{n % 10}\n" for n in range(1, 40))
    report = "Sender: the batch system\nSubject: the job is over\n"
    text = steps + logged(head, "WARNING") + report
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert found.outcome is Outcome.CLEAN, found.summary


@pytest.mark.parametrize("head", LOGGERS)
def test_one_that_it_reports_as_an_error_is_read_behind_the_head(head: str) -> None:
    lines = logged(head, "ERROR").splitlines(keepends=True)
    text = "epoch 1\n" + lines[0] + "Another: of another writer\n".join(lines[1:])
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert [cause.condition for cause in found.causes] == ["triton-unusable"]
    assert found.first_error is not None
    assert found.first_error.type == "ModuleNotFoundError"
    assert found.first_error.file == "/home/me/train.py"


def test_a_head_of_the_first_line_alone_is_no_head_of_the_others() -> None:
    text = "WARNING:root:it failed: " + "\n".join(COMPILER)
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert [cause.condition for cause in found.causes] == ["triton-unusable"]
    assert found.first_error is not None
    assert found.first_error.file == "/home/me/train.py"
