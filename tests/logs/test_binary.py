"""A file that is no text: a program or weights, which a shell completed in place of a log."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dsdoctor.logs import ReadError, diagnose_paths
from dsdoctor.model.diagnosis import Outcome

NOISE = random.Random(7).randbytes(1 << 16)
LINE = b"step 1 loss 2.0\n"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(NOISE, id="noise, as compressed data are"),
        pytest.param(b"\x7fELF\x02\x01\x01" + bytes(range(32)) * 200, id="a program"),
    ],
)
def test_a_file_that_is_no_text_is_not_clean(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=r"`.*train\.log` is not a text file; expected a log"):
        diagnose_paths([str(path)], [])


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(LINE * 9 + b"\x00" * 5000 + LINE * 9, id="a hole of a network file system"),
        pytest.param("损失 1.2\n".encode("gb18030") * 99, id="a text in another encoding"),
        pytest.param("step 1\n".encode("utf-16"), id="a log of PowerShell"),
        pytest.param(b"\x1b[32mok\x1b[0m\r 50%|#####\b\b\b\r\n" * 99, id="progress bars"),
        pytest.param(LINE * 99 + b"\x01\x02\x03\n", id="a few bytes of a broken print"),
        pytest.param(b"", id="an empty file"),
    ],
)
def test_logs_that_are_not_pure_text_are_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(content)
    found = diagnose_paths([str(path)], [])
    assert found.outcome in (Outcome.CLEAN, Outcome.UNRECOGNISED)


def test_what_is_in_a_folder_of_logs_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_bytes(LINE)
    (tmp_path / "rank1.log").write_bytes(NOISE)
    assert diagnose_paths([str(tmp_path)], []).files == 2
