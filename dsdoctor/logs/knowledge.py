"""What the packs know of logs, in the form in which a diagnosis uses it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dsdoctor.logs import error_index
from dsdoctor.logs.errors import Error
from dsdoctor.logs.necessary import prepare
from dsdoctor.model.condition import Boilerplate, Level, Signature, TracebackRule
from dsdoctor.model.observation import Observation
from dsdoctor.registry import Registry

#: Condition, title, hint, fixes, and one of its signatures.
Row = tuple[str, str, str, tuple[str, ...], Signature]


class Known(NamedTuple):
    """A signature and the condition that it speaks for."""

    condition: str
    title: str
    hint: str
    fixes: tuple[str, ...]
    signature: Signature


class Rule(NamedTuple):
    """A traceback rule and the condition that it speaks for."""

    condition: str
    title: str
    hint: str
    fixes: tuple[str, ...]
    rule: TracebackRule


class Answered(NamedTuple):
    """What the error index says of an exception.

    Attributes:
        entry: the message of a product that the exception is.
        kind: `refusal`, `internal` or `condition`.
        text: what it asks of the reader; "" for a condition.
        known: the condition.
    """

    entry: error_index.Entry
    kind: str
    text: str
    known: Known | None


#: The signature of a condition that the error index names.
INDEXED = Signature(pattern="", examples=(), level=Level.STRONG)


class Knowledge(list[Row]):
    """Every signature of every pack, and beside them the rules and the boilerplate.

    Attributes:
        rules: traceback rules.
        boilerplate: sentences that are no evidence.
        own: dsdoctor's own titles and hints, which a preflight report leaves in the log of its job.
        observed: the condition that names what dsdoctor sees by itself.
        conditions: all of them by name, with a signature that the error index speaks for.
        indexes: folders of error indexes.
    """

    def __init__(
        self,
        rows: Iterable[Row] = (),
        rules: Iterable[Rule] = (),
        boilerplate: Iterable[Boilerplate] = (),
        own: Iterable[str] = (),
    ) -> None:
        super().__init__(rows)
        self.rules = tuple(rules)
        self.boilerplate = tuple(boilerplate)
        self.own = frozenset(own)
        self.observed: dict[Observation, Known] = {}
        self.conditions: dict[str, Known] = {}
        self.indexes: tuple[Path, ...] = ()

    def answer(self, error: Error) -> Answered | None:
        """What the error index says of an exception; None where it says nothing."""
        found = (error_index.find(folder, error) for folder in self.indexes)
        return next((said for match in found if (said := self.answered(match))), None)

    def answer_text(self, text: str) -> Answered | None:
        """What the error index says of a message, whatever stands around it."""
        found = (error_index.search(folder, text) for folder in self.indexes)
        return next((said for match in found if (said := self.answered(match))), None)

    def answered(self, match: error_index.Match | None) -> Answered | None:
        """The answer to an entry, None where it has none."""
        if match is None or match.label is None:
            return None
        kind, text = match.label.kind, match.label.text
        if kind in {error_index.REFUSAL, error_index.INTERNAL}:
            return Answered(match.entry, kind, text, None)
        known = self.conditions.get(kind)
        return Answered(match.entry, "condition", "", known) if known is not None else None


def knowledge_of(registry: Registry) -> Knowledge:
    """What all packs of a run know of logs."""
    for pack in registry.packs:
        if pack.literals is not None:
            prepare(pack.literals)
    units = sorted(registry, key=lambda unit: unit.condition.name)
    heads = [(u.condition.name, u.title, u.hint, u.condition.fixes) for u in units]
    found = Knowledge(
        [(*head, s) for head, unit in zip(heads, units, strict=True) for s in unit.signatures],
        [
            Rule(*head, rule)
            for head, unit in zip(heads, units, strict=True)
            for rule in unit.traceback_rules
        ],
        [sentence for pack in registry.packs for sentence in pack.boilerplate],
        {text for _, title, hint, _ in heads for text in (title, hint) if " " in text},
    )
    blank = Signature(pattern="", examples=())
    found.conditions = {head[0]: Known(*head, INDEXED) for head in heads}
    found.indexes = tuple(pack.error_index for pack in registry.packs if pack.error_index)
    for head, unit in zip(heads, units, strict=True):
        for observation in unit.condition.names:
            found.observed[observation] = Known(*head, blank)
    return found
