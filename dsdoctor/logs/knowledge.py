"""What the packs know about logs, in the form that a diagnosis uses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dsdoctor.logs import error_lookup
from dsdoctor.logs.errors import Error
from dsdoctor.logs.necessary import prepare
from dsdoctor.model.condition import Boilerplate, Level, Signature, TracebackRule
from dsdoctor.model.observation import Observation

if TYPE_CHECKING:  # short logs are read without the packs and the error index
    from dsdoctor.logs.error_index import Entry, Match
    from dsdoctor.packs.registry import Registry, Unit

#: A condition's name, title, hint and fixes, and one of its signatures.
Row = tuple[str, str, str, tuple[str, ...], Signature]


class Known(NamedTuple):
    """A signature and its condition."""

    condition: str
    title: str
    hint: str
    fixes: tuple[str, ...]
    signature: Signature


class Rule(NamedTuple):
    """A traceback rule and its condition."""

    condition: str
    title: str
    hint: str
    fixes: tuple[str, ...]
    rule: TracebackRule


class Answered(NamedTuple):
    """The answer of the error index for an exception.

    Attributes:
        entry: the product's message that the exception matches.
        kind: `refusal`, `internal` or `condition`.
        text: the text of the label; "" if the condition's title says enough.
        known: the condition, None for the other kinds.
    """

    entry: Entry
    kind: str
    text: str
    known: Known | None


#: The signature of a condition that the error index names.
INDEXED = Signature(pattern="", examples=(), level=Level.STRONG)


class Knowledge(list[Row]):
    """Every signature of every pack, and next to them the rules and the boilerplate.

    Attributes:
        rules: traceback rules.
        boilerplate: sentences that are not evidence.
        own: dsdoctor's own titles and hints, which a preflight report prints into its job's log.
        observed: the condition for each observation that dsdoctor makes without a message.
        conditions: all conditions by name, with the signature for answers of the error index.
        formerly: earlier names of conditions, by name.
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
        self.formerly: dict[str, tuple[str, ...]] = {}
        self.indexes: tuple[Path, ...] = ()

    def answer(self, error: Error) -> Answered | None:
        """The answer of the error indexes for an exception; None if they have none."""
        return self._first(error_lookup.find(folder, error) for folder in self.indexes)

    def answer_native(self, error: Error) -> Answered | None:
        """The answer for what native code says, in a traceback of any product's frames."""
        said = self._first(error_lookup.find_native(folder, error) for folder in self.indexes)
        return said if said is not None and said.kind == error_lookup.REFUSAL else None

    def answer_text(self, text: str) -> Answered | None:
        """The answer of the error indexes for a text that contains a message; None if none."""
        from dsdoctor.logs.error_search import search  # noqa: PLC0415  # only `explain` needs it

        return self._first(search(folder, text) for folder in self.indexes)

    def _first(self, found: Iterable[Match | None]) -> Answered | None:
        return next((said for match in found if (said := self.answered(match))), None)

    def answered(self, match: Match | None) -> Answered | None:
        """The answer for a match; None if its entry has no label."""
        if match is None or match.label is None:
            return None
        kind, text = match.label.kind, match.label.text
        if kind in {error_lookup.REFUSAL, error_lookup.INTERNAL}:
            return Answered(match.entry, kind, text, None)
        known = self.conditions.get(kind)
        if known is not None and text:
            # a label's sentence is plain text, in which a signature's message has fields
            message = text.replace("{", "{{").replace("}", "}}")
            signature = Signature(
                "", (), level=INDEXED.level, message=message, hint=match.label.hint
            )
            known = known._replace(signature=signature)
        return Answered(match.entry, "condition", text, known) if known is not None else None


class Stated(NamedTuple):
    """What one condition declares about logs.

    Attributes:
        condition: its name.
        title: first line of its page.
        hint: what to do, in one sentence.
        fixes: names of fixes.
        formerly: earlier names.
        names: observations that it is the condition for.
        signatures: messages that show it.
        rules: functions of products that raise only for this reason.
    """

    condition: str
    title: str
    hint: str
    fixes: tuple[str, ...] = ()
    formerly: tuple[str, ...] = ()
    names: tuple[Observation, ...] = ()
    signatures: tuple[Signature, ...] = ()
    rules: tuple[TracebackRule, ...] = ()


def stated_by(unit: Unit) -> Stated:
    """What a condition's module declares about logs."""
    condition = unit.condition
    return Stated(
        condition.name,
        unit.title,
        unit.hint,
        condition.fixes,
        condition.formerly,
        condition.names,
        unit.signatures,
        unit.traceback_rules,
    )


def assemble(
    stated: Iterable[Stated], boilerplate: Iterable[Boilerplate], indexes: Iterable[Path]
) -> Knowledge:
    """Combines what the conditions declare about logs."""
    heads = [
        ((one.condition, one.title, one.hint, one.fixes), one)
        for one in sorted(stated, key=lambda one: one.condition)
    ]
    found = Knowledge(
        [Known(*head, signature) for head, one in heads for signature in one.signatures],
        [Rule(*head, rule) for head, one in heads for rule in one.rules],
        boilerplate,
        {text for _, one in heads for text in (one.title, one.hint) if " " in text},
    )
    blank = Signature(pattern="", examples=())
    found.conditions = {head[0]: Known(*head, INDEXED) for head, _ in heads}
    found.formerly = {one.condition: one.formerly for _, one in heads if one.formerly}
    found.indexes = tuple(indexes)
    for head, one in heads:
        for observation in one.names:
            found.observed[observation] = Known(*head, blank)
    return found


def knowledge_of(registry: Registry) -> Knowledge:
    """What all loaded packs know about logs."""
    for pack in registry.packs:
        if pack.literals is not None:
            prepare(pack.literals)
    return assemble(
        [stated_by(unit) for unit in registry],
        [sentence for pack in registry.packs for sentence in pack.boilerplate],
        [pack.error_index for pack in registry.packs if pack.error_index],
    )
