"""Logs of Windows PowerShell, which breaks the lines of standard error where its window ends."""

from __future__ import annotations

import textwrap

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.powershell import Joiner
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
WIDTH = 60
RECORD = (
    "python.exe : Traceback (most recent call last):\n"
    "At line:1 char:1\n"
    "+ python train.py --config configs/a.yaml > train.log 2>&1\n"
    "    + CategoryInfo          : NotSpecified: (Traceback (most\n"
    "    recent call last)::String) [], RemoteException\n"
    "    + FullyQualifiedErrorId : NativeCommandError\n \n"
)
FRAME = r'  File "C:\job\env\lib\site-packages\torch\_inductor\scheduler.py", line 54, in create_backend'
MISSING = (
    "torch._inductor.exc.TritonMissing: Cannot find a working triton installation. Either the "
    "package is not installed or it is too old."
)


def window(text: str, width: int = WIDTH) -> str:
    """Text as a window shows it: broken at its last column."""
    return "\n".join(text[at : at + width] for at in range(0, len(text), width)) + "\n"


def read(text: str) -> Diagnosis:
    data = text.replace("\n", "\r\n").encode("utf-16")
    return diagnose([Source("train.log", data=data)], KNOWN)


def test_lines_that_the_window_broke_are_joined() -> None:
    text = RECORD + window(FRAME) + "    raise TritonMissing(frame)\n" + window(MISSING)
    found = read(text)
    assert [one.condition for one in found.causes] == ["triton-unusable"]


def test_without_a_record_of_powershell_lines_stay_as_they_are() -> None:
    text = (window(FRAME) + window(MISSING)).encode()
    assert Joiner().joined(text) == text


def test_lines_keep_their_numbers() -> None:
    text = RECORD + window(FRAME) + "    raise E\n"
    joined = Joiner().joined(text.encode()).decode()
    assert joined.count("\n") == text.count("\n")
    rows = joined.split("\n")
    assert rows[RECORD.count("\n")] == FRAME
    assert rows[-2] == "    raise E"


def test_the_width_of_the_first_block_holds_for_the_next() -> None:
    joiner = Joiner()
    joiner.joined((RECORD + window(FRAME)).encode())
    assert joiner.joined(window(MISSING).encode()).decode().startswith(MISSING + "\n")


@pytest.mark.parametrize(
    "following",
    [
        pytest.param("Traceback (most recent call last):", id="a traceback"),
        pytest.param('  File "C:\\job\\train.py", line 3, in main', id="a frame"),
        pytest.param("[2026-03-01 10:00:00] step 4", id="a logger's line"),
        pytest.param("", id="an empty line"),
    ],
)
def test_a_full_line_is_not_joined_with_a_new_message(following: str) -> None:
    full = "x" * WIDTH
    text = f"{RECORD}{window(FRAME)}{full}\n{following}\n"
    assert f"{full}\n{following}\n" in Joiner().joined(text.encode()).decode()


def test_chinese_letters_fill_two_columns() -> None:
    said = "错误：" + "模型" * 14 + "加载时"
    broken = said[: WIDTH // 2] + "\n" + said[WIDTH // 2 :] + "\n"
    joined = Joiner().joined((RECORD + window(FRAME) + broken).encode()).decode()
    assert said + "\n" in joined


def test_a_record_without_broken_lines_changes_nothing() -> None:
    text = textwrap.dedent(
        """\
        uv : INFO started
        At line:1 char:1
        + uv run train.py
            + CategoryInfo          : NotSpecified: (INFO started:String) [], RemoteException
            + FullyQualifiedErrorId : NativeCommandError
        step 1
        """
    )
    assert Joiner().joined(text.encode()) == text.encode()
    assert read(text).outcome is Outcome.CLEAN
