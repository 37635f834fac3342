"""What the packs know of logs, in the form in which a diagnosis uses it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dsdoctor.logs.necessary import prepare
from dsdoctor.model.condition import Boilerplate, Observation, Signature, TracebackRule
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


class Knowledge(list[Row]):
    """Every signature of every pack, and beside them the rules and the boilerplate.

    Attributes:
        rules: traceback rules.
        boilerplate: sentences that are no evidence.
        own: dsdoctor's own titles and hints, which a preflight report leaves in the log of its job.
        observed: the condition that names what dsdoctor sees by itself.
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
    for head, unit in zip(heads, units, strict=True):
        for observation in unit.condition.names:
            found.observed[observation] = Known(*head, blank)
    return found
