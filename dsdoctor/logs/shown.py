"""Makes the causes and lines of a diagnosis, safe to print."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import ranks
from dsdoctor.logs.candidates import Candidate, Choice
from dsdoctor.logs.errors import EXCEPTION, Error
from dsdoctor.logs.frames import in_library
from dsdoctor.logs.hits import Hit
from dsdoctor.logs.outlived import covers
from dsdoctor.logs.plain_errors import DISPLAYED
from dsdoctor.logs.presentable import presentable
from dsdoctor.model.condition import Level
from dsdoctor.model.diagnosis import Cause, FirstError, Line

MOST_CAUSES = 3
#: A further cause is shown if its level is at most so much lower than that of the first.
WORTH_SHOWING = 2
#: Lines that may be parts of one message.
NEIGHBOURS = 3
#: A warning of Python or of a logger. NCCL prints WARN about its failures.
WARNS = lazy(r"\b\w{1,40}Warning: |\bWARNING\b")
#: The name of an exception in a sentence; what a launcher or C++ prints of one is no sentence.
NAMED = lazy(r"[a-z]{2,},? (?:an? |the )?(?:\w{1,40}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception)\b")
#: The name of an exception with its module.
DOTTED = lazy(r"\b(?:[a-z_]\w{0,40}\.){1,8}Error\b")
#: What another process has written behind an exception.
OTHERS = lazy(r"Traceback \(most|File \"|\[\w{0,20}\d{1,6}\]:")
#: omegaconf 2.3, _utils.py: the place in the configuration.
FULL_KEY = lazy(r"\s{0,8}full_key: (?!object_type)(?P<key>\S{1,100})")
#: Characters of an exception's second line that are shown.
LONGEST_MORE = 160
_CARETS = lazy(r"[~^]{3,}")
#: At least this share of the answers of each level was right in first runs on cases drawn blind;
#: of the hints 3 of 8 were: docs/accuracy.md.
CONFIDENCE = {
    Level.CERTAIN: 0.95,
    Level.STRONG: 0.9,
    Level.LIKELY: 0.8,
    Level.WEAK: 0.7,
    Level.HINT: 0.4,
}


def causes_of(choice: Choice, names: Sequence[str], errors: Sequence[Error]) -> tuple[Cause, ...]:
    """The conditions that were chosen, the most likely first.

    Args:
        choice: what was chosen.
        names: the names of the logs.
        errors: the exceptions of all logs.
    """
    ranked = [one for one in choice.ranked if one.known is not None]
    if not ranked:
        return ()
    top = ranked[0].level
    shown = [c for c in ranked if c.level >= top - WORTH_SHOWING][:MOST_CAUSES]
    return tuple(
        _cause(
            candidate,
            place,
            names,
            errors,
            tuple(sorted(v for v, by in choice.masked.items() if by == candidate.name)),
        )
        for place, candidate in enumerate(shown)
    )


def _cause(
    candidate: Candidate,
    place: int,
    names: Sequence[str],
    errors: Sequence[Error],
    masks: tuple[str, ...],
) -> Cause:
    hit = candidate.hits[0]
    said = hit.known.signature
    message = message_for(hit)
    hint = said.hint_with(_values(hit)) or hit.known.hint
    hits = candidate.hits
    if differences := ranks.disagreement(hits):
        message += f"; the ranks disagree: {presentable(differences)}"
        hits = ranks.one_of_each_first(hits)
    lines = [
        line_of(one.source, one.line, without_carets(one.written or one.text), one.rank, names)
        for one in _distinct(hits)
    ]
    level = candidate.level
    if all(_is_weaker(one) for one in hits) or (
        level is Level.STRONG and not any(_is_raised(one, errors) for one in hits)
    ):
        level = Level(max(Level.HINT, level - 1))
    certainty = CONFIDENCE[level] * (1.0, 0.6, 0.4)[min(place, 2)]
    return Cause(
        condition=hit.known.condition,
        title=hit.known.title,
        confidence=round(certainty, 2),
        message=message,
        hint=hint,
        fixes=tuple(hit.known.fixes if said.fixes is None else said.fixes),
        evidence=tuple(lines),
        masks=masks,
    )


def message_for(hit: Hit) -> str:
    """What a line says about its condition."""
    return hit.known.signature.message.format_map(_values(hit)) or hit.known.title


def _values(hit: Hit) -> Mapping[str, str]:
    """The groups of a hit's pattern, safe to print."""
    return collections.defaultdict(lambda: "?", {k: presentable(v) for k, v in hit.groups.items()})


def _is_raised(hit: Hit, errors: Sequence[Error]) -> bool:
    """Whether the line of a hit is part of an exception, which is what ended its process.

    A program that only reports a failure may have gone on, and something else ended the run.
    """
    return any(covers(hit, error) for error in errors)


def _is_weaker(hit: Hit) -> bool:
    """Whether the line of a hit is evidence of a kind that is wrong more often than others.

    What prints a warning continues. An exception in the middle of a line or a sentence may be
    somebody else's.
    """
    if hit.warned or WARNS.search(hit.text):
        return True
    named = NAMED.search(hit.text)
    return named is not None and EXCEPTION.match(hit.text.strip()) is None


def without_carets(text: str) -> str:
    """A line without the carets and tildes that Python's traceback prints below a call.

    >>> without_carets("    run(x)  ^^^^^^ValueError: no")
    'run(x) ValueError: no'
    """
    return " ".join(_CARETS.sub(" ", text).split()) if _CARETS.search(text) else text


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """The first hits that differ; if one contains another on a neighboring line, the shorter."""
    kept: list[Hit] = []
    for hit in hits:
        same = next((place for place, one in enumerate(kept) if _is_same(one, hit)), None)
        if same is None and len(kept) < MOST_CAUSES:
            kept.append(hit)
        elif same is not None and len(hit.text) < len(kept[same].text):
            kept[same] = hit
    return kept


def _is_same(one: Hit, other: Hit) -> bool:
    if one.text == other.text:
        return True
    near = one.source == other.source and abs(one.line - other.line) <= NEIGHBOURS
    shorter, longer = sorted((without_carets(one.text), without_carets(other.text)), key=len)
    return near and shorter.strip() in longer


def line_of(source: int, number: int, text: str, rank: int | None, names: Sequence[str]) -> Line:
    """A line of a log, safe to print."""
    return Line(file=presentable(names[source]), line=number, text=presentable(text), rank=rank)


def _own_place(error: Error) -> tuple[str, int]:
    """File and line of the deepest frame outside libraries, also in the formats of notebooks."""
    if error.file:
        return error.file, error.file_line
    own = (
        (frame.file, frame.line)
        for frame in reversed(error.frames)
        if frame.line and not in_library(frame.file) and frame.file != "<string>"
    )
    return next(own, ("", 0)) if error.traced else ("", 0)


def name_of(error: Error) -> str:
    """The name of an exception, with its module where the name alone says nothing.

    Several modules of Python call theirs `Error`: `binascii`, `csv`, `shutil`.
    """
    if error.type != "Error":
        return DISPLAYED.get(error.type, error.type)
    found = DOTTED.search(error.text)
    return found[0] if found else error.type


def message_of(error: Error) -> str:
    """The text of an exception, with the next line if it ends in front of that.

    The key of a configuration is shown with those above it.
    """
    if (key := FULL_KEY.match(error.more)) and key["key"] not in error.message:
        return f"{error.message} ({key['key']})"
    if not error.message.strip("=-"):  # a rule above a report
        return ""
    more = error.more.strip().partition("  ")[0]  # up to an empty line
    if not error.message.endswith(":") or not more or OTHERS.match(more):
        return error.message
    return f"{error.message} {more if len(more) <= LONGEST_MORE else f'{more[:LONGEST_MORE]}…'}"


def words_of(error: Error) -> str:
    """An exception as Python prints it, safe to print."""
    name, message = name_of(error), message_of(error)
    return presentable(f"{name}: {message}" if message else name)


def first_error_of(error: Error, names: Sequence[str]) -> FirstError:
    """An exception, safe to print."""
    file, line = _own_place(error)
    deepest = error.library or (error.frames[-1].file if error.frames else "")
    return FirstError(
        rank=error.rank,
        type=presentable(name_of(error)),
        message=presentable(message_of(error)),
        file=presentable(file) or presentable(names[error.source]),
        line=line or error.line,
        log=line_of(error.source, error.line, error.text, error.rank, names),
        is_caller=bool(file and deepest) and deepest != file,
    )
