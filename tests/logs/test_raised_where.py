"""The place of an exception: a frame of the user's raised it, or called what raised it."""

from __future__ import annotations

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.report.diagnosis import lines

SIGNATURES = signatures_of(packs.load(builtin_only=True))
SCRIPT = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 12, in <module>\n'
ENGINE = '  File "/v/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 9, in step\n'
EXTENSION = (
    '  File "/v/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 28, in <module>\n'
)


def said(text: str) -> str:
    found = diagnose([Source(name="log", data=text.encode())], SIGNATURES)
    return "\n".join(line.text for line in lines(found, width=200))


def test_a_frame_of_the_users_raised_it() -> None:
    text = said(f"{SCRIPT}    x = d['a']\nKeyError: 'a'\n")
    assert "raised at /home/u/train.py:12" in text


def test_a_frame_of_the_users_called_what_raised_it() -> None:
    text = said(
        f"{SCRIPT}{ENGINE}{EXTENSION}ModuleNotFoundError: No module named 'pkg_resources'\n"
    )
    assert "raised in a call from /home/u/train.py:12" in text
    assert "raised at" not in text


def test_the_caller_is_named_once() -> None:
    text = said(f"{SCRIPT}{ENGINE}RuntimeError: a sentence that no product says\n")
    assert "raised by deepspeed" in text
    assert text.count("/home/u/train.py:12") == 1
