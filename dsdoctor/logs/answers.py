"""What the error index says of the exceptions of a log, in place of patterns and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.knowledge import Answered
from dsdoctor.model.condition import Level

#: What the error index says of an exception, None where it says nothing.
Answer = Callable[[Error], Answered | None]


def answered_by(scans: Sequence[Scan], answer: Answer) -> dict[Error, Answered]:
    """What the error index says of each exception of the scans.

    A pattern fits the words of many messages; the index knows this one and the place that raised
    it. So hits on an exception's own lines are dropped if they name another condition. Where the
    index names no condition, a message that is raised for one reason alone still counts.
    """
    found: dict[Error, Answered] = {}
    for scan in scans:
        for error in scan.errors:
            said = answer(error)
            if said is not None:
                found[error] = said
                scan.hits = _corrected(scan.hits, error, said)
    return found


def _corrected(hits: Sequence[Hit], error: Error, said: Answered) -> list[Hit]:
    """The hits of a scan as they are once an exception is known."""
    name = said.known.condition if said.known is not None else ""
    kept = [
        hit
        for hit in hits
        if hit.known.condition == name
        or not _is_in_traceback_of(hit, error)
        or (said.known is None and hit.known.signature.level >= Level.STRONG)
    ]
    if said.known is None:
        return kept
    own = [_is_in_traceback_of(hit, error) for hit in kept]
    if any(own):
        pairs = zip(kept, own, strict=True)
        return [_worded(hit, said.text) if of_error else hit for hit, of_error in pairs]
    hit = Hit(
        said.known, error.source, error.line, error.text, error.rank, {}, error.when,
        undated=error.undated,
    )  # fmt: skip
    return [*kept, hit]


def _worded(hit: Hit, text: str) -> Hit:
    """A hit of a general pattern, with the words that the index has for this one message."""
    signature = hit.known.signature
    if not text or signature.message:
        return hit
    known = hit.known._replace(signature=structs.replace(signature, message=text))
    return structs.replace(hit, known=known)


def _is_in_traceback_of(hit: Hit, error: Error) -> bool:
    """Whether a hit is on the lines of an exception's own traceback."""
    same_rank = hit.rank is None or error.rank is None or hit.rank == error.rank
    return same_rank and error.begun <= hit.line <= error.line
