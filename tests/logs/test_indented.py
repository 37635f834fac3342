"""Logs of which each line is indented."""

from __future__ import annotations

import textwrap

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.indented import unindented

SIGNATURES = signatures_of(packs.load(builtin_only=True))
DIED = """\
[INFO] loading

step 1 loss 3.1
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/train.py", line 9, in <module>
[rank0]:     main()
[rank0]: KeyError: 'rate'
  0%|          | 0/26001 [00:00<?, ?it/s]
[1]    135144 exit 1     torchrun train.py
"""


@pytest.mark.parametrize("pad", ["", "  ", "        "])
def test_a_log_in_a_list_is_read_as_it_was_written(pad: str) -> None:
    text = textwrap.indent(DIED, pad)
    found = diagnose([Source(name="a.log", data=text.encode())], SIGNATURES)
    assert found.outcome.value == "user-code"
    assert found.first_error is not None
    assert found.first_error.log.line == 7


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DIED, id="not indented"),
        pytest.param('  File "a.py", line 1, in f\n    g()\n' * 4, id="frames alone"),
        pytest.param("  one\n  two\nthree\n  four\n  five\n  six\n", id="one line is not"),
        pytest.param("  a line\n", id="a few lines"),
        pytest.param("", id="empty"),
    ],
)
def test_other_logs_stay_as_they_are(text: str) -> None:
    assert b"".join(unindented(iter([text.encode()] if text else []))) == text.encode()


def test_the_frames_of_an_indented_excerpt_keep_their_own_indentation() -> None:
    frames = '  File "a.py", line 1, in f\n    g()\n' * 4
    assert b"".join(unindented(iter([textwrap.indent(frames, "    ").encode()]))) == frames.encode()


def test_each_block_loses_the_same() -> None:
    blocks = [b"  one\n" * 6, b"  two\n    three\n", b"four\n"]
    assert list(unindented(iter(blocks))) == [b"one\n" * 6, b"two\n  three\n", b"four\n"]
