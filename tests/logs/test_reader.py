"""Files, folders, compressions, encodings, prefixes; memory stays flat."""

from __future__ import annotations

import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest

from dsdoctor.logs import reader
from dsdoctor.logs.prefixes import strip_prefixes
from dsdoctor.logs.scan import Scanner

LINE = "RuntimeError: 错误\n"


def text_of(data: bytes) -> str:
    blocks = b"".join(reader.blocks(reader.Source(name="x", data=data)))
    return "\n".join(reader.decode(line) for line in blocks.split(b"\n"))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(LINE.encode(), id="UTF-8"),
        pytest.param(gzip.compress(LINE.encode()), id="gzip"),
        pytest.param(lzma.compress(LINE.encode()), id="xz"),
        pytest.param(LINE.encode("utf-16"), id="UTF-16"),
        pytest.param(b"\xfe\xff" + LINE.encode("utf-16-be"), id="UTF-16 with the large byte first"),
        pytest.param(LINE.encode("gbk"), id="GBK"),
        pytest.param(LINE.replace(":", ":\x00").encode(), id="zero bytes"),
        pytest.param(("\x1b[31m" + LINE[:-1] + "\x1b[0m\n").encode(), id="color"),
    ],
)
def test_any_encoding(data: bytes) -> None:
    assert text_of(data).strip() == LINE.strip()


def test_utf16_without_mark() -> None:
    assert "RuntimeError" in text_of("RuntimeError: x\n".encode("utf-16-le"))


def test_a_truncated_gzip_gives_what_can_be_had() -> None:
    data = gzip.compress(b"".join(b"line %d %s\n" % (i, bytes([i % 251])) for i in range(9999)))
    assert "line 1 " in text_of(data[: len(data) // 2])


def test_broken_bytes_are_read() -> None:
    assert "KeyError" in text_of(b"\xff\xfe\xfa KeyError\n"[2:])


@pytest.mark.parametrize(
    ("line", "text", "rank"),
    [
        ("[rank3]: KeyError", "KeyError", 3),
        ("[default0]:KeyError", "KeyError", 0),
        ("3: KeyError", "KeyError", 3),
        ("node-a: [rank1]: KeyError", "KeyError", 1),
        ("[1,2]<stderr>:KeyError", "KeyError", 2),
        ("Thu Jan 23 11:55:50 2025[1,2]<stderr>:KeyError", "KeyError", 2),
        ("2024-05-06T07:08:09.123Z stderr F KeyError", "KeyError", None),
        ("2025-06-29 23:19:36 [rank0]:KeyError", "KeyError", 0),
        ('{"log":"[rank2]: KeyError\\n","stream":"stderr"}', "KeyError", 2),
        ("RuntimeError: x", "RuntimeError: x", None),
        ("BlockingIOError: [Errno 11] x", "BlockingIOError: [Errno 11] x", None),
    ],
)
def test_prefixes(line: str, text: str, rank: int | None) -> None:
    assert strip_prefixes(line) == (text, rank)


def test_folders_in_the_order_of_ranks(tmp_path: Path) -> None:
    for rank in (10, 2):
        folder = tmp_path / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text("x\n")
    (tmp_path / "notes.md").write_text("x")
    assert [source.rank for source in reader.find_sources([str(tmp_path)])] == [2, 10]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(reader.ReadError, match="does not exist"):
        reader.find_sources([str(tmp_path / "none.log")])


def test_line_numbers_hold_across_blocks() -> None:
    lines = [b"row %d of a table" % number for number in range(200_000)]
    for at in (5, 54_321, 123_456, 199_999):
        lines[at] = b"KeyError: 'at%d'" % at
    scan = Scanner([]).scan(reader.Source(name="x", data=b"\n".join(lines) + b"\n"))
    assert [error.line for error in scan.errors] == [6, 54_322, 123_457, 200_000]
    assert scan.lines == len(lines)


def test_memory_is_flat(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    with path.open("wb") as stream:
        for _ in range(60):
            stream.write(b"KeyError: 'x' in a noisy log\n" * 4_000)
            stream.write(b"x" * 1_200_000)
    tracemalloc.start()
    Scanner([]).scan(reader.Source(name="x", path=path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20
