"""Logs that a log service has exported with the newest line first."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dsdoctor.logs.stamps import stamp
from dsdoctor.model.diagnosis import FirstError, Line

#: A larger log (bytes) is read as it is: it is turned round in memory, at several times its size.
LARGEST = 16 << 20
#: Lines at the beginning of a log that show its order; a time stands within so many characters.
_SAMPLE, _HEAD = 2000, 80
#: Lines whose time is before that of the line above, at least, in a log that begins with its end.
_FEWEST = 5
#: Steps back in time for each step forward: messages of several hosts overtake each other.
_RARE = 20
_TRACEBACK = b"Traceback (most recent call last)"


def in_order(blocks: Iterator[bytes]) -> tuple[Iterator[bytes], Sequence[int] | None]:
    """The blocks of a log, oldest line first.

    The consoles of log services show the newest line first, and export what they show. A message
    of several lines that has one time stays as it is.

    Args:
        blocks: whole lines, as `reader.blocks` yields them.

    Returns:
        The blocks, and the number that each of their lines has in the file, or None if they are
        in the order of the file.
    """
    first = next(blocks, b"")
    if not _runs_backwards(first.split(b"\n", _SAMPLE)[:_SAMPLE]):
        return itertools.chain((first,), blocks) if first else blocks, None
    held, size = [first], len(first)
    for block in blocks:
        held.append(block)
        size += len(block)
        if size > LARGEST:
            return itertools.chain(held, blocks), None
    lines = b"".join(held).removesuffix(b"\n").split(b"\n")
    ordered, numbers = _turned(list(_messages(lines)))
    return iter((ordered,)), numbers


def _runs_backwards(lines: Sequence[bytes]) -> bool:
    """Whether most lines have a time, and it is before that of the line above."""
    last, stamped, back, forth = "", 0, 0, 0
    filled = 0
    for line in lines:
        filled += bool(line.strip())
        if not (moment := _moment(line)):
            continue
        stamped += 1
        back += moment < last
        forth += moment > last != ""
        if forth * _RARE > back:
            return False
        last = moment
    return back >= _FEWEST and stamped * 2 >= filled


def _moment(line: bytes) -> str:
    head = line[:_HEAD]
    return stamp(head.decode("utf-8", "replace")) if b":" in head else ""


def _messages(lines: Sequence[bytes]) -> Iterator[tuple[str, int, list[bytes]]]:
    """Time, number of the first line, and lines of each message."""
    begun, number, held = "", 1, list[bytes]()
    for place, line in enumerate(lines, 1):
        moment = _moment(line)
        if moment and held:
            yield begun, number, held
            held = []
        if not held:
            begun, number = moment, place
        held.append(line)
    if held:
        yield begun, number, held


def _turned(messages: list[tuple[str, int, list[bytes]]]) -> tuple[bytes, Sequence[int]]:
    """The messages, the last one first, and the number of each of their lines in the file."""
    if _equal_times_run_forwards(messages):
        groups = [list(group) for _, group in itertools.groupby(messages, lambda row: row[0])]
        ordered: Iterable[tuple[str, int, list[bytes]]] = itertools.chain(*reversed(groups))
    else:
        ordered = reversed(messages)
    numbers = array("L")
    held: list[bytes] = []
    for _, number, lines in ordered:
        numbers.extend(range(number, number + len(lines)))
        held += lines
    return b"\n".join(held) + b"\n", numbers


def _equal_times_run_forwards(messages: Sequence[tuple[str, int, list[bytes]]]) -> bool:
    """Whether lines of one time are as they were written: some services sort by time alone."""
    return any(
        one == other and _TRACEBACK in above[-1] and b'File "' in below[0]
        for (one, _, above), (other, _, below) in itertools.pairwise(messages)
    )


def as_in_file(found: Any, numbers: Mapping[str, Sequence[int]]) -> Any:
    """A diagnosis, or a part of it, with the numbers that its lines have in their files.

    Args:
        found: the diagnosis.
        numbers: for each log that was turned round, by name, what `in_order` returned.
    """
    if isinstance(found, tuple):
        return tuple(as_in_file(part, numbers) for part in found)
    if isinstance(found, Line) or (isinstance(found, FirstError) and found.file == found.log.file):
        turned = numbers.get(found.file, ())
        if 0 < found.line <= len(turned):
            found = msgspec.structs.replace(found, line=turned[found.line - 1])
    if isinstance(found, msgspec.Struct):
        parts = {name: getattr(found, name) for name in found.__struct_fields__}
        return type(found)(**{name: as_in_file(part, numbers) for name, part in parts.items()})
    return found
