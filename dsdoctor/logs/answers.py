"""Answers of the error index for exceptions in a log; they replace those of general patterns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import structs

from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.knowledge import Answered
from dsdoctor.logs.products import products_in
from dsdoctor.model.condition import Level, Signature

#: Looks up an exception in the error index; None if the index has no answer.
Answer = Callable[[Error], Answered | None]


def answered_by(scans: Sequence[Scan], answer: Answer) -> dict[Error, Answered]:
    """The answer of the error index for each exception of the scans that it knows.

    A pattern matches the words of many messages; the index knows this message and the place that
    raised it. So hits on an exception's own lines are dropped if they name another condition, or
    the same one in words that fit many messages. If the index names no condition, a hit of level
    STRONG or more still counts, unless its pattern is for messages of other products only. A
    signature that requires other words of the log knows more than the message says.
    """
    found: dict[Error, Answered] = {}
    flags: set[str] = set().union(*(scan.flags for scan in scans)) if scans else set()
    for scan in scans:
        for error in scan.errors:
            said = answer(error)
            if said is not None:
                found[error] = said
                scan.hits = _corrected(scan.hits, error, said, flags)
    return found


def _corrected(
    hits: Sequence[Hit], error: Error, said: Answered, flags: Collection[str]
) -> list[Hit]:
    """The hits of a scan, corrected by the answer for one of its exceptions."""
    name = said.known.condition if said.known is not None else ""
    kept = [
        hit
        for hit in hits
        if (hit.known.condition == name and not _is_vaguer(hit, error, said))
        or any(text in flags for text in hit.known.signature.requires)
        or not _is_in_traceback_of(hit, error)
        or (
            said.known is None
            and hit.known.signature.level >= Level.STRONG
            and _words(hit, said.entry.product)
        )
    ]
    if said.known is None:
        return kept
    own = [_is_in_traceback_of(hit, error) for hit in kept]
    if any(own):
        pairs = zip(kept, own, strict=True)
        return [_worded(hit, said.known.signature) if of_error else hit for hit, of_error in pairs]
    hit = Hit(
        said.known, error.source, error.line, error.text, error.rank, {}, error.when,
        undated=error.undated,
    )  # fmt: skip
    return [*kept, hit]


def _is_vaguer(hit: Hit, error: Error, said: Answered) -> bool:
    """Whether a pattern for many messages says the same of an exception, in less specific words.

    One that was written for messages of the product that raised it says as much as the index.
    """
    signature = hit.known.signature
    return (
        bool(said.text and signature.message)
        and "{" not in signature.message
        and signature.level < Level.STRONG
        and said.entry.product not in products_in(signature.source)
        and _is_in_traceback_of(hit, error)
    )


def _words(hit: Hit, product: str) -> bool:
    """Whether a pattern may be for messages of a product: not for those of others only."""
    # anybody's call may reach the driver of "nvidia"
    named = products_in(hit.known.signature.source) - {"nvidia"}
    return not named or product in named


def _worded(hit: Hit, index: Signature) -> Hit:
    """A hit of a general pattern, with the more specific text and hint of the index.

    What a pattern below level LIKELY says is as general as the pattern; what one says that quotes
    the log is not.
    """
    signature = hit.known.signature
    general = signature.level < Level.LIKELY and "{" not in signature.message
    if not index.message or (signature.message and not general):
        return hit
    level = index.level if general else signature.level
    worded = structs.replace(
        signature, message=index.message, hint=index.hint or signature.hint, level=level
    )
    return structs.replace(hit, known=hit.known._replace(signature=worded))


def _is_in_traceback_of(hit: Hit, error: Error) -> bool:
    """Whether a hit is on the lines of an exception's own traceback."""
    same_rank = hit.rank is None or error.rank is None or hit.rank == error.rank
    return same_rank and error.begun <= hit.line <= error.line
