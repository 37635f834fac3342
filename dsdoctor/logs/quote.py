"""Reads the lines around a line of a log again, for a report that quotes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsdoctor.logs.presentable import LONGEST_READ, presentable
from dsdoctor.logs.reader import ReadError, blocks, decode, find_sources
from dsdoctor.model.masking import mask_lines

#: Lines before and after the one that is quoted.
AROUND = 30

Place = tuple[str, int]


def around(
    paths: Iterable[str], wanted: Iterable[Place], span: int = AROUND
) -> dict[Place, list[tuple[int, str]]]:
    """The surroundings of lines of logs, masked and safe to print.

    Args:
        paths: as passed to `diagnose`. Standard input is skipped: it cannot be read twice.
        wanted: name of a log and number of a line in it.
        span: lines before and after.

    Returns:
        Maps each place to numbered lines. A log that can no longer be read is left out.
    """
    by_log: dict[str, set[int]] = {}
    for name, number in wanted:
        by_log.setdefault(name, set()).add(number)
    found: dict[Place, list[tuple[int, str]]] = {}
    for source in find_sources(path for path in paths if path != "-"):
        numbers = by_log.pop(source.name, None)
        if not numbers:
            continue
        near = {
            one for number in numbers for one in range(max(1, number - span), number + span + 1)
        }
        try:
            texts = _lines(blocks(source), near)
        except ReadError:
            continue
        for number in numbers:
            ones = [one for one in range(number - span, number + span + 1) if one in texts]
            hidden = mask_lines([texts[one][:LONGEST_READ] for one in ones])
            found[source.name, number] = [
                (one, presentable(text)) for one, text in zip(ones, hidden, strict=True)
            ]
    return found


def _lines(pieces: Iterable[bytes], near: set[int]) -> Mapping[int, str]:
    """The lines with these numbers; blocks without any of them are only counted."""
    last, number = max(near), 1
    texts: dict[int, bytes] = {}
    for piece in pieces:
        ends = piece.count(b"\n")
        if any(number <= one <= number + ends for one in near):
            for offset, line in enumerate(piece.split(b"\n")):
                if number + offset in near and (line or offset < ends):
                    # a line that is longer than a block continues in the next one
                    texts[number + offset] = texts.get(number + offset, b"") + line
        number += ends
        if number > last:
            break
    return {one: decode(line) for one, line in texts.items()}
