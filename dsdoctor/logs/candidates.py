"""From hits to candidates: conditions that may be the first failure."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Sequence

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Failure, Hit, Scan
from dsdoctor.logs.importing import suits
from dsdoctor.logs.knowledge import Known, Rule
from dsdoctor.logs.necessary import necessary
from dsdoctor.model.condition import Level, Signature

HANG_LINES = lazy(
    r"KeyboardInterrupt|SIGTERM|SIGINT|Killing subprocess|CANCELLED|exit code|^\^C|Terminated",
)
#: A traceback rule has no pattern; its hits carry one of these signatures.
BY_PLACE = {level: Signature(pattern="", examples=(), level=level) for level in Level}
Order = tuple[int, str, int, int]


class Candidate(msgspec.Struct, eq=False):
    """A failure that may be the first.

    Attributes:
        known: the condition; None for an exception that no condition covers.
        hits: lines that show the condition, the best first.
        error: the exception that no condition covers.
        level: confidence level of the best line.
        first: where it was first seen, as a sort key.
        echo: it only follows from the death of another rank.
        masks: conditions that follow from it.
    """

    known: Known | None
    hits: list[Hit]
    error: Error | None
    level: Level
    first: Order
    echo: bool
    masks: set[str]

    @property
    def rank(self) -> int | None:
        """The rank on which it was first seen."""
        return self.hits[0].rank if self.hits else self.error.rank if self.error else None

    @property
    def name(self) -> str:
        """The condition, or the exception."""
        return self.known.condition if self.known else self.error.type if self.error else ""


class Choice(msgspec.Struct):
    """The first failure, as far as the logs show it.

    Attributes:
        ranked: candidates, the most likely first: conditions, or a single exception.
        masked: explained conditions, each mapped to what explains it.
        decided_by: the evidence that decided, "" if there was nothing to decide.
        silent: the first failure, if its rank printed nothing about it.
    """

    ranked: list[Candidate]
    masked: dict[str, str]
    decided_by: str = ""
    silent: Failure | None = None


def when(item: Hit | Error, *, many: bool) -> Order:
    """The sort key: by time if several logs are compared, by line within one log."""
    if many:
        return (0 if item.when else 1, item.when, item.line, item.source)
    return (0, "", item.source, item.line)


def sorted_errors(scans: Sequence[Scan]) -> list[Error]:
    """All exceptions, the earliest first."""
    many = len(scans) > 1
    return sorted((e for scan in scans for e in scan.errors), key=lambda e: when(e, many=many))


def with_rules(
    hits: Sequence[Hit],
    scans: Sequence[Scan],
    rules: Iterable[Rule],
    answered: Collection[Error] = (),
) -> list[Hit]:
    """The hits, and those of traceback rules on lines of which no signature knows more."""
    known = {(hit.source, hit.line) for hit in hits if not hit.known.signature.module}
    by_rules = _ruled(scans, rules, answered)
    found = [*hits, *(hit for hit in by_rules if (hit.source, hit.line) not in known)]
    if any(hit.known.signature.module for hit in found):
        from dsdoctor.logs import missing_modules  # noqa: PLC0415  # few runs lack one

        return missing_modules.without_own(found, scans)
    return found


def _ruled(scans: Sequence[Scan], rules: Iterable[Rule], answered: Collection[Error]) -> list[Hit]:
    """Hits of the traceback rules: functions that raise for a single reason."""
    found: list[Hit] = []
    rules = tuple(rules)
    for error in sorted_errors(scans):
        if error in answered:
            continue
        for one in rules:
            rule = one.rule
            if rule.kinds and error.type not in rule.kinds:
                continue
            if any(
                f.function == rule.function and f.file.endswith(rule.file) for f in error.frames
            ):
                known = Known(*one[:4], BY_PLACE[rule.level])
                found.append(
                    Hit(
                        known,
                        error.source,
                        error.line,
                        error.text,
                        error.rank,
                        {},
                        error.when,
                        undated=error.undated,
                    )
                )
    return found


def counts(hit: Hit, scan: Scan, flags: set[str]) -> bool:
    """Whether a hit counts, given what else the logs show."""
    signature = hit.known.signature
    if any(text in flags for text in signature.unless):
        return False
    if signature.requires and not any(text in flags for text in signature.requires):
        return False
    return suits(hit, scan.errors) and (not signature.final or _is_final(hit, scan))


def _is_final(hit: Hit, scan: Scan) -> bool:
    literals = necessary(hit.known.signature.pattern)
    after = [text for number, text in scan.tail if number > hit.line]
    return all(any(a in text for a in literals) or HANG_LINES.search(text) for text in after)


def as_hint(hit: Hit) -> Hit:
    """A hit that counts only where nothing else explains a failure, echoes of it included."""
    signature = msgspec.structs.replace(hit.known.signature, level=Level.HINT, echo=True)
    return msgspec.structs.replace(hit, known=hit.known._replace(signature=signature))


def conditions_of(hits: Iterable[Hit], *, many: bool) -> list[Candidate]:
    """The conditions that the hits show, each with its hits, the best first."""
    grouped: dict[str, list[Hit]] = collections.defaultdict(list)
    for hit in hits:
        grouped[hit.known.condition].append(hit)
    found = []
    for condition, rows in grouped.items():
        own = [hit for hit in rows if not hit.known.signature.echo] or rows
        own.sort(key=lambda hit: when(hit, many=many))
        level = max(hit.known.signature.level for hit in own)
        best = [hit for hit in own if hit.known.signature.level == level]
        chosen = {id(hit) for hit in best}  # comparing values takes minutes for 20,000 ranks
        rest = sorted(
            (h for h in rows if id(h) not in chosen), key=lambda hit: when(hit, many=many)
        )
        masks = {name for hit in rows for name in hit.known.signature.masks} - {condition}
        found.append(
            Candidate(
                best[0].known, best + rest, None, level, when(best[0], many=many),
                all(hit.known.signature.echo for hit in rows), masks,
            )
        )  # fmt: skip
    return found


def fell_first(error: Error, echoes: Sequence[Candidate], near: int) -> bool:
    """Whether all echoes are from other ranks and come after the exception in the same log.

    One that is only a hint, and stands more than `near` lines below, is no reason for it either.
    """
    hits = [hit for one in echoes for hit in one.hits]
    if any(hit.source != error.source or hit.line <= error.line for hit in hits):
        return False
    if error.rank is not None and all(hit.rank not in {None, error.rank} for hit in hits):
        return True
    return all(
        hit.known.signature.level is Level.HINT and hit.line > error.line + near for hit in hits
    )
