"""Opens the logs of a run and returns them in blocks of clean lines.

Files, folders of rank logs, standard input; gzip, xz and zstd; UTF-8, UTF-16, GBK or broken
bytes. A block has at most about two megabytes, so memory stays bounded whatever the size.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import itertools
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from dsdoctor import extras, safe_path
from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.bounds import BLOCK, MOST_ENTRIES, Budget
from dsdoctor.logs.notebooks import outputs_of
from dsdoctor.logs.powershell import Joiner

#: A longer line is returned in pieces.
LONGEST_LINE = 1 << 20
LOG_SUFFIXES = (".log", ".out", ".err", ".txt", ".o", ".e", ".gz", ".xz", ".zst", ".stdout")
ANSI_BYTES = lazy(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
#: Files that are never read as logs, even if a folder contains nothing that looks like a log.
BINARY_SUFFIXES = (
    ".bin", ".ckpt", ".jpg", ".npy", ".npz", ".pdf", ".png", ".pt", ".pth", ".pyc", ".safetensors",
    ".so", ".tar", ".whl", ".zip",
)  # fmt: skip
GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


class ReadError(Exception):
    """A log cannot be read; the text says which and why."""


class Source(msgspec.Struct, frozen=True):
    """One log.

    Attributes:
        name: the name that is shown.
        path: the file; None for standard input or for `data`.
        data: the content itself, for tests and for text that was already read.
        rank: rank in the file name.
        stream: replaces standard input if its first bytes were already read.
    """

    name: str
    path: Path | None = None
    data: bytes | None = None
    rank: int | None = None
    stream: BinaryIO | None = None


RANK_NAMES = (
    lazy(r"rank[-_.]?(\d{1,6})\b"),
    lazy(r"slurm-\d+(?:_\d+)?_(\d{1,6})\.(?:out|err|log)"),
    lazy(r"attempt_\d+/(\d{1,6})/std(?:out|err)\.log"),
    lazy(r"(?:^|/)(\d{1,6})/std(?:out|err)"),
    lazy(r"(?:^|[-_./])(?:proc|task|worker|local_rank)[-_.]?(\d{1,6})\b"),
)


def rank_of_name(name: str) -> int | None:
    """The rank that a file name contains.

    >>> rank_of_name("slurm-4711_12.out"), rank_of_name("a/attempt_0/3/stderr.log")
    (12, 3)
    """
    if not any(character.isdigit() for character in name):
        return None
    for pattern in RANK_NAMES:
        if found := pattern.search(name.replace("\\", "/")):
            return int(found[1])
    return None


def _is_log(path: Path) -> bool:
    """By its name: `train.log`, `train.log.3`, `job.o4711`, `stderr`."""
    name = re.sub(r"\.\d{1,4}$", "", path.name.lower())
    return Path(name).suffix in LOG_SUFFIXES or bool(
        re.search(r"\.[oe]\d{1,12}$", name) or name in {"stdout", "stderr"}
    )


def _natural_key(path: Path) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d{1,18})", str(path))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


#: File names of dumps, as torch's flight recorder and those who collect them write.
DUMP_NAMES = lazy(
    r"(?:trace|flight|recorder|nccl|fr)\w*?[-_.]?\d{1,6}(?:\.\w{1,8})?$", re.IGNORECASE
)
#: A larger file is not a dump.
LARGEST_DUMP = 64 << 20


def find_dumps(paths: Iterable[str], budget: Budget) -> Iterator[tuple[str, bytes]]:
    """Name and content of files that may be dumps of torch's flight recorder.

    Files that cannot be read are left out: dumps are additional evidence.
    """
    for text in paths:
        path = Path(text)
        with contextlib.suppress(OSError):
            found = itertools.islice(path.rglob("*"), MOST_ENTRIES) if path.is_dir() else [path]
            named = [one for one in found if DUMP_NAMES.search(one.name) and not _is_log(one)]
            for file in sorted(named, key=_natural_key):
                if why := budget.exceeded():
                    budget.leave_out(f"dumps of the flight recorder in `{path}` ({why})")
                    return
                from dsdoctor import files  # noqa: PLC0415  # dumps are rare

                with contextlib.suppress(OSError):
                    yield str(file), files.read(file, limit=LARGEST_DUMP)


def _files_below(path: Path, budget: Budget) -> list[Path]:
    """Regular files below a folder, up to the limits."""
    found: list[Path] = []
    for seen, entry in enumerate(path.rglob("*")):
        why = f"the limit of {MOST_ENTRIES} files" if seen >= MOST_ENTRIES else budget.exceeded()
        if why:
            budget.leave_out(f"the rest of `{path}` ({why})")
            break
        if entry.is_file():
            found.append(entry)
    return sorted(found, key=_natural_key)


#: Bytes of a file that show whether it is text; control characters that no text has, as a share of
#: them, and as a number.
_SAMPLE = 1 << 16
_MOST_ODD = 0.05
_FEW_ODD = 32


def find_sources(paths: Iterable[str], budget: Budget | None = None) -> list[Source]:
    """The logs in files, folders and `-`.

    Raises:
        ReadError: a file is missing or cannot be read.
    """
    budget = budget or Budget()
    sources: list[Source] = []
    for text in paths:
        if text == "-":
            sources.append(Source(name="(standard input)"))
            continue
        path = Path(text)
        try:
            if path.is_dir():
                found = _files_below(path, budget)
                logs = [p for p in found if _is_log(p)] or [
                    p for p in found if p.suffix.lower() not in BINARY_SUFFIXES
                ]
                if not logs:
                    raise ReadError(
                        f"`{text}` contains no logs; expected files such as `rank0.log`"
                    )
                sources += [
                    Source(name=str(p), path=p, rank=rank_of_name(str(p.relative_to(path))))
                    for p in logs
                ]
            elif path.exists():
                named = Source(name=text, path=path, rank=rank_of_name(path.name))
                if path.is_file() and _is_binary(named):
                    raise ReadError(f"`{text}` is not a text file; expected a log")
                sources.append(named)
            else:
                raise ReadError(f"`{text}` does not exist")
        except OSError as error:
            raise ReadError(f"`{text}` cannot be read: {error.strerror or error}") from error
    return sources


def _zstd(stream: BinaryIO, name: str) -> BinaryIO:
    for module in ("compression.zstd", "backports.zstd", "pyzstd", "zstandard"):
        with contextlib.suppress(ImportError):
            opener: Any = importlib.import_module(module)
            if module == "zstandard":
                unpacker = opener.ZstdDecompressor()
                return cast("BinaryIO", unpacker.stream_reader(stream, read_across_frames=True))
            return cast("BinaryIO", opener.ZstdFile(stream))
    raise ReadError(
        f"`{name}` is compressed with zstd, which needs Python 3.14 or `zstandard`; "
        f"run `{extras.command_for('zstd')}`, or `zstd -dc {name} | dsdoctor diagnose -`"
    )


class Joined(io.RawIOBase):
    """Bytes that were already read, then the rest of a stream that cannot seek."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head, self._rest = head, rest

    def readable(self) -> bool:  # noqa: D102  # of io.RawIOBase
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: D102  # of io.RawIOBase
        data = self._head[: len(buffer)] if self._head else self._rest.read(len(buffer))
        if self._head:
            self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)


@contextlib.contextmanager
def _open(source: Source) -> Iterator[BinaryIO]:
    with contextlib.ExitStack() as stack:
        raw: BinaryIO
        if source.data is not None:
            raw = io.BytesIO(source.data)
        elif source.path is None:
            raw = source.stream or sys.stdin.buffer
        else:
            raw = stack.enter_context(source.path.open("rb"))
            _refuse_private(source, raw)
        head = raw.read(6)
        joined = cast("BinaryIO", io.BufferedReader(Joined(head, raw), BLOCK))
        if head.startswith(GZIP_MAGIC):
            import gzip  # noqa: PLC0415  # most logs are plain

            unpacked = stack.enter_context(contextlib.closing(gzip.GzipFile(fileobj=joined)))
            yield cast("BinaryIO", unpacked)
        elif head.startswith(XZ_MAGIC):
            import lzma  # noqa: PLC0415  # most logs are plain

            yield cast("BinaryIO", lzma.LZMAFile(joined))  # noqa: SIM115  # `joined` closes
        elif head.startswith(ZSTD_MAGIC):
            yield _zstd(joined, source.name)
        elif source.path is not None and raw.seekable():
            raw.seek(0)  # a plain file needs no additional copy
            yield raw
        else:
            yield joined


def _refuse_private(source: Source, opened: BinaryIO) -> None:
    """Refuses, as root, another account's link to a private file: the report would quote it."""
    if not safe_path.is_root():
        return
    from dsdoctor.host.account import may_quote  # noqa: PLC0415  # root alone

    try:
        may_quote(str(source.path), os.fstat(opened.fileno()))
    except safe_path.UnsafePathError as error:
        raise ReadError(f"`{source.name}` is not read by root: {error}") from None


def _is_binary(source: Source) -> bool:
    """Whether a file that was named is a program or weights: no error is found in those."""
    with _open(source) as stream:
        try:
            head = stream.read(_SAMPLE)
        except (EOFError, OSError, zlib.error):  # cut off: what can be read of it is
            return False
    if _wide_encoding(head) is not None:
        return False
    text = clean(head)  # holes of a network file system are NULs
    odd = sum(byte < ord(" ") and byte not in b"\a\b\t\n\v\f\r" for byte in text)
    return odd > _MOST_ODD * len(text) and odd >= _FEW_ODD


def _wide_encoding(head: bytes) -> str | None:
    """UTF-16, recognized by its byte order mark, or by NULs in every other byte; else None."""
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    sample = head[:4096]
    half = len(sample) // 2
    if half >= 8:  # noqa: PLR2004  # too short to judge
        if sample[1::2].count(0) > 0.7 * half and sample[0::2].count(0) < 0.1 * half:
            return "utf-16-le"
        if sample[0::2].count(0) > 0.7 * half and sample[1::2].count(0) < 0.1 * half:
            return "utf-16-be"
    return None


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Unpacked pieces; a truncated compressed file yields what can still be read."""
    read = getattr(stream, "read1", stream.read)
    held = bytearray()
    while True:
        try:
            piece = read(BLOCK)
        except (EOFError, OSError, zlib.error):
            piece = b""
        except Exception as error:
            if not any(name in type(error).__module__.lower() for name in ("lzma", "zst")):
                raise
            piece = b""
        if not held and len(piece) >= BLOCK:
            yield piece
            continue
        held += piece
        if len(held) >= BLOCK or (held and not piece):
            yield bytes(held)
            held.clear()
        if not piece:
            return


def clean(block: bytes) -> bytes:
    r"""A block without terminal escapes and NULs.

    >>> clean(b"\x1b[31mred\x1b[0m\x00")
    b'red'
    """
    if b"\x1b" in block:
        block = ANSI_BYTES.sub(b"", block)
    if b"\x00" in block:
        block = block.replace(b"\x00", b"")
    return block


def blocks(source: Source) -> Iterator[bytes]:
    """The content in blocks of whole lines.

    Only the last block, and blocks of a line longer than LONGEST_LINE, may end within a line.

    Raises:
        ReadError: the log cannot be read.
    """
    joiner = Joiner()
    return (joiner.joined(block) for block in outputs_of(_as_written(source), clean))


def _as_written(source: Source) -> Iterator[bytes]:
    """The content in blocks, with the lines as the file contains them."""
    try:
        with _open(source) as stream:
            rest = b""
            decoder: codecs.IncrementalDecoder | None = None
            first = True
            for piece in _pieces(stream):
                if first:
                    first = False
                    if wide := _wide_encoding(piece):
                        decoder = codecs.getincrementaldecoder(wide)("replace")
                data = piece
                if decoder is not None:
                    text = decoder.decode(piece).replace("\ufeff", "")
                    data = text.encode("utf-8", "replace")
                cut = data.rfind(b"\n") + 1
                if cut == 0:
                    data = rest + data
                    if len(data) >= LONGEST_LINE:
                        cut = data.rfind(b"\r") + 1 or len(data)  # continues in the next block
                        yield clean(data[:cut])
                    rest = data[cut:]
                    continue
                block = b"".join((rest, memoryview(data)[:cut]))
                rest = data[cut:]
                yield clean(block)
            if rest:
                yield clean(rest)
    except OSError as error:
        raise ReadError(f"`{source.name}` cannot be read: {error.strerror or error}") from error


def decode(line: bytes) -> str:
    """A line of unknown encoding: as UTF-8, else as GBK, else as UTF-8 with replacements.

    >>> decode("错误".encode("gbk"))
    '错误'
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return line.decode("gbk")
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace")
