"""The end of a log with too many failures to keep all: adds the last ones to the first.

A log that several runs append to can show more failures than are kept. A diagnosis has to explain
what ended the last run, so the last bytes are read a second time for their last failures.
"""

from __future__ import annotations

import msgspec

from dsdoctor.logs.block_reader import BlockReader
from dsdoctor.logs.errors import KEPT_ERRORS, Error
from dsdoctor.logs.hits import KEPT, Hit, Scan
from dsdoctor.logs.line_reader import LineReader

#: Bytes that are read a second time.
RECENT = 1 << 20


class LogEnd:
    """The last bytes of a log."""

    def __init__(self) -> None:
        self._recent = b""
        self._whole = True

    def add(self, block: bytes) -> None:
        """Takes the next block."""
        self._whole = self._whole and len(self._recent) + len(block) <= RECENT
        if len(block) >= RECENT:
            self._recent = block[-RECENT:]
        else:
            self._recent = (self._recent + block)[-RECENT:]

    def add_latest(self, scan: Scan, lines: LineReader, blocks: BlockReader) -> None:
        """Adds the last failures of the log to its result.

        Args:
            scan: the result; it is changed.
            lines: the reader that made it.
            blocks: a new reader for the end, which keeps the last failures.
        """
        data = self._recent if self._whole else self._recent.partition(b"\n")[2]
        if not data:
            return
        blocks.feed(data, last=False)
        blocks.feed(b"", last=True)
        late = blocks.finish()
        above = scan.lines - late.lines  # lines before those that were read again
        first = max(above + 1, scan.began)
        errors = [_error_at(error, above) for error in late.errors]
        hits = [msgspec.structs.replace(hit, line=hit.line + above) for hit in late.hits]
        if blocks.lines.traces.found > KEPT_ERRORS and errors:
            first = max(first, errors[0].line)
        kept: dict[int, list[Hit]] = {}
        for hit in hits:
            kept.setdefault(id(hit.known), []).append(hit)
        for rows in kept.values():
            if len(rows) >= KEPT:
                first = max(first, rows[0].line)
        scan.whole_from = first
        last = scan.errors[-1].line
        scan.errors = [*scan.errors, *(error for error in errors if error.line > last)]
        known = {(id(hit.known), hit.line) for hit in scan.hits}
        for hit in hits:
            number = lines.ready.number_of[id(hit.known)]
            if (
                lines.per_signature[number] >= KEPT
                and (id(hit.known), hit.line) not in known
                and hit.line >= first
            ):
                scan.hits.append(hit)
        scan.hits.sort(key=lambda hit: hit.line)


def _error_at(error: Error, lines: int) -> Error:
    """An exception with its line numbers moved down."""
    return msgspec.structs.replace(
        error, line=error.line + lines, begun=error.begun + lines, chain=error.chain + lines
    )
