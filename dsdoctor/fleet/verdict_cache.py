"""A cache of judgments of one condition: nodes with equal values for its check share one."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

from dsdoctor.fact_source import Facts, FactSource
from dsdoctor.fleet import reads
from dsdoctor.fleet.replay import FleetNode
from dsdoctor.judge import OUT_OF_TIME, Policy, unit_findings
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.finding import Finding, Status
from dsdoctor.packs.registry import Registry, Unit, needs

F = TypeVar("F", bound=Fact)
#: Facts that differ on every node (UUIDs, temperatures, names). Of these, only the values that a
#: check reads are compared; other facts are compared as a whole. This choice affects only speed.
UNLIKE: frozenset[type[Fact]] = frozenset({Gpus, OsInfo, Resources, FleetNode})
#: Facts that the engine reads in addition to those of the check.
_ALWAYS = (RunNeeds, NvidiaKernel)
#: Sets of values for one path, so that nodes that all differ (or lie) cannot fill the memory.
_REMEMBERED = 512
#: Contents that have a number; with more, all are numbered anew.
_NUMBERED = 32_768
#: Maximum paths through a check, each with its own set of values; healthy nodes take one.
_WAYS = 8
#: After this many misses, and more misses than hits, a check that reads differing values is no
#: longer cached.
_TRIALS = 64


#: A value of a fact.
Place = tuple[type[Fact], reads.Path]
Way = tuple[Place, ...]


class DigestSource(FactSource, Protocol):
    """A source of facts that can cheaply compare the facts of two nodes."""

    def digest(self, kind: type[Fact]) -> bytes:
        """A hash of a fact's content."""
        ...


class Values:
    """The compared values of one node, each read once.

    Attributes:
        facts: its facts.
    """

    def __init__(self, source: DigestSource) -> None:
        self.facts = Facts(source)
        self._digests = _Lazy(source.digest)
        self._columns = _Lazy(self._column)

    def key(self, alike: tuple[type[Fact], ...], way: Way) -> Hashable:
        """Equal for nodes that are equal in some facts and in the values that a path reads."""
        return (
            *map(self._digests.__getitem__, alike),
            *map(self._columns.__getitem__, way),
        )

    def _column(self, place: Place) -> int:
        kind, path = place
        return _numbers.of((kind, path, reads.column(self.facts.get(kind), path)))


class _Lazy(dict[Any, Any]):
    """A dict that computes missing values; existing ones need no Python call."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, name: Any) -> Any:
        value = self[name] = self._ask(name)
        return value


class _Numbers:
    """Unique numbers for contents."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._next = itertools.count()

    def of(self, content: Hashable) -> int:
        number = self._known.get(content)
        if number is None:
            if len(self._known) >= _NUMBERED:
                self._known.clear()
            number = self._known[content] = next(self._next)
        return number


_numbers = _Numbers()


class _Traced:
    """A source in which facts that differ between nodes record what is read from them."""

    def __init__(self, facts: Facts, noted: dict[type[Fact], set[reads.Path]]) -> None:
        self._facts = facts
        self._noted = noted

    @property
    def run(self) -> RunNeeds:
        return self._facts.snapshot.run

    def get(self, kind: type[F]) -> F | Missing:
        value: Any = self._facts.get(kind)
        if kind in UNLIKE:
            # also for a missing fact: why it is missing
            value = reads.trace(value, self._noted.setdefault(kind, set()))
        return typing.cast("F | Missing", value)


class VerdictCache:
    """Judges one condition on many nodes.

    Args:
        unit: the condition.
        policy: scopes and thresholds.
        registry: of all packs.
    """

    def __init__(self, unit: Unit, policy: Policy, registry: Registry) -> None:
        self.unit, self.policy, self.registry = unit, policy, registry
        asked: set[type[Fact]] = set(_ALWAYS)
        if unit.check is not None:
            asked |= {n.kind for n in needs(unit.check.function) if issubclass(n.kind, Fact)}
        self._alike = tuple(sorted(asked - UNLIKE, key=lambda kind: kind.key()))
        self._unlike = bool(asked & UNLIKE)
        self._ways: dict[Way, dict[Hashable, list[Finding]]] = {}
        self._hits = self._misses = 0

    def findings(self, values: Values) -> list[Finding]:
        """The findings, equal to those of judging this node alone, only faster."""
        if self._unlike and self._misses > _TRIALS and self._hits < self._misses:
            return self._judge(values.facts)
        for way, known in self._ways.items():
            found = known.get(values.key(self._alike, way))
            if found is not None:
                self._hits += 1
                return found
        self._misses += 1
        found = self._judge(values.facts)
        if any(finding.message == OUT_OF_TIME for finding in found):
            return found  # depends on the time rather than on the node
        taken = self._paths_read(values, found) if self._unlike else ()
        if taken is not None and (taken in self._ways or len(self._ways) < _WAYS):
            known = self._ways.setdefault(taken, {})
            if len(known) >= _REMEMBERED:
                known.clear()
            known[values.key(self._alike, taken)] = found
        return found

    def _paths_read(self, values: Values, expected: list[Finding]) -> Way | None:
        """What the check reads on its path to its findings; None = the proxy disturbs it."""
        noted: dict[type[Fact], set[reads.Path]] = {}
        if self._judge(Facts(_Traced(values.facts, noted))) != expected:
            self._misses += _TRIALS
            return None
        places = ((kind, path) for kind, paths in noted.items() for path in paths)
        return tuple(sorted(places, key=lambda place: (place[0].key(), place[1])))

    def _judge(self, facts: Facts) -> list[Finding]:
        return [
            finding
            for finding in unit_findings(self.unit, facts, self.policy, self.registry)
            if finding.status not in (Status.OK, Status.SKIP)
        ]
