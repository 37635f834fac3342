"""Finds the lines of a log that matter: first literals in its bytes, then patterns.

Only lines with a literal, and those of an open traceback, are decoded. What is kept is bounded,
and so is memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dsdoctor.logs import reader
from dsdoctor.logs.block_reader import BlockReader
from dsdoctor.logs.bounds import Budget
from dsdoctor.logs.caught import take_out_caught
from dsdoctor.logs.heads import Heads
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.indented import unindented
from dsdoctor.logs.log_end import LogEnd
from dsdoctor.logs.newest_first import in_order
from dsdoctor.logs.notebooks import CELL
from dsdoctor.logs.ready import ReadySignatures
from dsdoctor.logs.samples import take_out_samples

#: A larger text (bytes) is not examined as a document, so little is kept for that.
LARGEST = 512 << 10
#: A text of at most this size (bytes) is examined whatever it looks like.
SHORT = 16 << 10


def looks_written(text: bytes) -> bool:
    """Whether a text may be a document: a first, cheap look.

    Tables and sentences among the outputs of a notebook make no document of it.
    """
    if text.startswith(CELL.encode()):
        return False
    if b"```" in text or (len(text) <= SHORT and b"Traceback (most" not in text):
        return True
    marked = text.count(b"\n#") + text.count(b"\n===") + text.count(b"\n---")
    return marked > 2 or (text.count(b"\n\n") > 7 and b"Traceback (most" not in text)  # noqa: PLR2004


class Scanner(ReadySignatures):
    """Scans logs for signatures; use one for many logs."""

    def scan(self, source: reader.Source, index: int = 0, budget: Budget | None = None) -> Scan:
        """Reads a log, completely or as far as the budget allows."""
        budget = budget or Budget()
        blocks, heads, end = BlockReader(self, index, source.rank), Heads(), LogEnd()
        piped = source.path is None and source.data is None
        held: list[bytes] = []
        size = 0
        written, numbers = in_order(unindented(reader.blocks(source)))
        for block in budget.metered(written, waits=piped):
            cut = heads.cut(block)
            size += len(cut)
            if size <= LARGEST:
                held.append(cut)
            else:
                held.clear()
            blocks.feed(cut, last=False)
            end.add(cut)
        blocks.feed(b"", last=True)
        found = blocks.finish()
        found.numbers = numbers
        if blocks.lines.traces.full:
            end.add_latest(found, blocks.lines, BlockReader(self, index, source.rank, latest=True))
        if found.errors:
            take_out_caught(found)
        if found.hits or found.errors:
            take_out_samples(found, b"".join(held))
        shown = found.hits or found.errors or found.marks or found.tail
        if shown and 0 < size <= LARGEST and looks_written(text := b"".join(held)):
            from dsdoctor.logs.documents import take_out_quotations  # noqa: PLC0415  # few are

            take_out_quotations(found, text)
        if why := budget.exceeded():
            budget.leave_out(f"`{source.name}` after line {found.lines} ({why})")
        return found

    def again(self, scan: Scan, index: int = 0) -> list[Hit]:
        """Hits on the last lines of a log, in the wording before a terminal changed them.

        For logs in which `scan` found no cause.
        """
        from dsdoctor.logs.normalize import variants  # noqa: PLC0415  # most logs need it not
        from dsdoctor.logs.prose import happened  # noqa: PLC0415
        from dsdoctor.logs.warning_lines import warnings_among  # noqa: PLC0415

        if not self._may_match(_joined(variants(scan.tail))):
            return []
        rows = list(variants([(number, happened(text)) for number, text in scan.tail]))
        blocks = BlockReader(self, index, None, one_run=True)
        blocks.feed(_joined(rows), last=True)
        found = blocks.finish()
        scan.flags |= found.flags
        warned = {id(hit.known) for hit in scan.hits if hit.warned}
        warnings = warnings_among([text for _, text in scan.tail])
        ignored = {id(hit.known) for hit in scan.ignored}
        return [
            msgspec.structs.replace(
                hit,
                line=rows[hit.line - 1][0],
                warned=hit.warned
                or id(hit.known) in warned
                or any(text in hit.text for text in warnings),
            )
            for hit in found.hits
            if hit.line <= len(rows) and id(hit.known) not in ignored
        ]

    def _may_match(self, data: bytes) -> bool:
        """Whether a text contains a literal of a signature; most tails of healthy logs do not."""
        return any(
            literal in self.by_literal or literal in self.flags
            for literals in self.hot(data)[0].values()
            for literal in literals
        )


def _joined(rows: Iterable[tuple[int, str]]) -> bytes:
    return "\n".join(text.replace("\n", " ") for _, text in rows).encode("utf-8", "replace")
