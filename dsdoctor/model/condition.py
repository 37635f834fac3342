"""The units a contributor writes: conditions, limits, signatures."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import msgspec

from dsdoctor.model.facts.run import Scope

Unit = Annotated[float, "a threshold"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a check's thresholds: numeric fields whose names end in their unit.

    A check that takes a parameter of a Limits subclass gets the defaults, overridden by the
    `[limits.CONDITION]` table of the configuration.
    """


@dataclasses.dataclass(frozen=True)
class Condition:
    """A nameable problem: what checks predict, signatures recognise and fixes cure.

    Attributes:
        name: kebab-case, names the problem and never the cure.
        id: `DSDnnn` or `DSDnnnn`; hundreds by family, never re-used.
        scope: who can mend it.
        since: first version of dsdoctor that has it.
        fixes: names of fixes that may cure it.
        leads_to: conditions seen afterwards when this one was predicted.
        narrower: conditions that explain the same trouble better, and then speak alone.
    """

    name: str
    id: str
    scope: Scope
    since: str
    fixes: tuple[str, ...] = ()
    leads_to: tuple[str, ...] = ()
    narrower: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Signature:
    """How a condition words itself in a log.

    Attributes:
        anchor: literal text; any of these must be in the line before `pattern` is tried.
        pattern: regular expression, searched in the line (case-sensitive unless it says `(?i)`).
        masks: conditions that are victims of this one.
        weight: 0..100, how deep and how certain this cause is; the higher wins among equals.
        message: sentence with `{group}` fields of the pattern; "" = the condition's title.
        unless: literal texts whose presence anywhere in the log refutes the hit.
        requires: literal texts of which one must be somewhere in the log.
        near: literal texts of which one must stand within 12 lines of the hit, or on it.
        not_near: literal texts none of which may stand within 12 lines of the hit.
        final: the hit counts only when nothing but its like follows (a hang at this line).
        compared: groups of the pattern whose values must agree between ranks; where they do not,
            the message says which rank shows what.
        examples: lines that must match, of different versions where they differ.
        not_examples: near-misses that must not match.
    """

    anchor: str | tuple[str, ...]
    pattern: str
    examples: tuple[str, ...]
    not_examples: tuple[str, ...]
    masks: tuple[str, ...] = ()
    weight: int = 50
    message: str = ""
    unless: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    not_near: tuple[str, ...] = ()
    final: bool = False
    compared: tuple[str, ...] = ()

    @property
    def anchors(self) -> tuple[str, ...]:
        """All anchors."""
        return (self.anchor,) if isinstance(self.anchor, str) else self.anchor
