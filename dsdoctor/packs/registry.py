"""The units of one run: an object, not a global.

Over 400 lines because it validates every kind of unit that a pack can bring.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor.api import Check, Fix, Probe
from dsdoctor.errors import UsageError
from dsdoctor.model.condition import Boilerplate, Condition, Limits, Signature, TracebackRule
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.observation import Observation

#: Earlier names of families, which `--select` and `--ignore` still accept.
FORMER_FAMILIES = {"build": "ops"}


class Unit(msgspec.Struct, frozen=True):
    """A condition with everything that its file defines.

    Attributes:
        condition: its identity.
        title: first line of the file's docstring, without the full stop.
        page: the rest of the docstring (Markdown).
        family: folder of the file.
        pack: name of the pack.
        check: predicts it from facts; None if it cannot be predicted.
        signatures: recognize it in a log.
        hint: what to do, in one sentence, for a diagnosis.
        place: module that defines it, or the file of a checks.d folder.
        traceback_rules: functions of products that raise for this reason alone.
    """

    condition: Condition
    title: str
    page: str
    family: str
    pack: str
    check: Check | None = None
    signatures: tuple[Signature, ...] = ()
    hint: str = ""
    place: str = ""
    traceback_rules: tuple[TracebackRule, ...] = ()


class Need(msgspec.Struct, frozen=True):
    """One parameter of a check or probe.

    Attributes:
        name: of the parameter.
        kind: what is injected: a Fact, a Limits subclass, or another class (Host).
        may_be_missing: it accepts `Missing` as well.
    """

    name: str
    kind: type
    may_be_missing: bool = False


@functools.cache
def needs(function: Callable[..., Any]) -> tuple[Need, ...]:
    """Dependencies of a check or probe, from its annotations.

    Raises:
        TypeError: a parameter has no annotation that can be injected.
    """
    if not callable(function):
        raise TypeError(f"{function!r} is not a function")
    found: list[Need] = []
    for name in _parameters(function):
        hint = _hint(function, name)
        if hint is None:
            raise TypeError(f"parameter `{name}` of `{_name(function)}` has no annotation")
        kinds = _members(hint)
        real = [kind for kind in kinds if kind is not Missing]
        if len(real) != 1 or not isinstance(real[0], type):
            raise TypeError(
                f"parameter `{name}` of `{_name(function)}` must be one fact, or `Fact | Missing`"
            )
        found.append(Need(name, real[0], Missing in kinds))
    return tuple(found)


@functools.cache
def gives(function: Callable[..., Any]) -> tuple[type[Fact], ...]:
    """Facts that a probe reads, from its return annotation.

    Raises:
        TypeError: the annotation is not a fact.
    """
    hint = _hint(function, "return")
    parts = typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)
    found: list[type[Fact]] = []
    for part in parts:
        facts = [
            kind for kind in _members(part) if isinstance(kind, type) and issubclass(kind, Fact)
        ]
        if len(facts) != 1:
            raise TypeError(f"the return annotation of `{_name(function)}` must name facts")
        found.append(facts[0])
    return tuple(found)


def _parameters(function: Callable[..., Any]) -> Iterable[str]:
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return inspect.signature(function).parameters
    names: tuple[str, ...] = code.co_varnames
    return names[: code.co_argcount + code.co_kwonlyargcount]


def _hint(function: Callable[..., Any], name: str) -> Any:
    """One annotation as a type; None if there is none.

    Nearly all are `X` or `X | Missing`, which are looked up by name: evaluating the annotations of
    every check would take every command 30 ms.
    """
    text = getattr(function, "__annotations__", {}).get(name)
    names = getattr(function, "__globals__", {})
    if isinstance(text, str) and isinstance(known := names.get(text), type):
        return known
    if isinstance(text, str) and re.fullmatch(r"\w+( \| \w+)*", text):
        kinds = [names.get(part) for part in text.split(" | ")]
        if all(isinstance(kind, type) for kind in kinds):
            return functools.reduce(operator.or_, kinds)
    return typing.get_type_hints(function).get(name)


def _members(hint: object) -> tuple[object, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", function))


class FixUnit(msgspec.Struct, frozen=True):
    """A fix with its page.

    Attributes:
        fix: name, reach and function.
        title: first line of the file's docstring, without the full stop.
        page: the rest of the docstring (Markdown).
    """

    fix: Fix
    title: str
    page: str


class Problem(msgspec.Struct, frozen=True):
    """A pack that could not be used, and why, in one line."""

    pack: str
    message: str


class Pack(msgspec.Struct, frozen=True):
    """A loaded pack.

    Attributes:
        name: of its entry point, or the path of its file.
        origin: distribution and version, or folder.
        units: its conditions.
        probes: its probes.
        fixes: its fixes.
        facts: the fact classes that its modules define.
        boilerplate: sentences of products that are not evidence.
        literals: file with the literals of its signatures, so that they need not be derived.
        error_index: folder of its error index (dsdoctor/logs/error_index.py).
        facts_as_of: the day on which its tables were compared with their sources (`2026-11-21`);
            "" = it has no `FACTS_AS_OF`.
    """

    name: str
    origin: str
    units: tuple[Unit, ...] = ()
    probes: tuple[Probe, ...] = ()
    fixes: tuple[FixUnit, ...] = ()
    facts: tuple[type[Fact], ...] = ()
    boilerplate: tuple[Boilerplate, ...] = ()
    literals: Path | None = None
    error_index: Path | None = None
    facts_as_of: str = ""


class Registry:
    """All packs of a run.

    Attributes:
        packs: those that were loaded, in order.
        problems: packs that were left out.
    """

    def __init__(self, packs: Iterable[Pack] = (), problems: Iterable[Problem] = ()) -> None:
        self.packs: list[Pack] = []
        self.problems: list[Problem] = list(problems)
        self._by_name: dict[str, Unit] = {}
        self._by_id: dict[str, Unit] = {}
        self._by_former_name: dict[str, Unit] = {}
        for pack in packs:
            self.add(pack)

    @property
    def facts_as_of(self) -> str:
        """The oldest day on which the tables of a pack were compared with their sources."""
        return min((pack.facts_as_of for pack in self.packs if pack.facts_as_of), default="")

    def add(self, pack: Pack) -> None:
        """Adds a pack as a whole; one that repeats a name, an id or a fact becomes a problem."""
        clash = self._unit_clash(pack) or self._fix_clash(pack) or self._fact_clash(pack)
        if clash:
            self.problems.append(Problem(pack.name, clash))
            return
        self.packs.append(pack)
        for unit in pack.units:
            self._by_name[unit.condition.name] = unit
            self._by_id[unit.condition.id] = unit
            for name in unit.condition.formerly:
                self._by_former_name.setdefault(name, unit)

    def _unit_clash(self, pack: Pack) -> str | None:
        names: dict[str, Unit] = {}
        ids: dict[str, Unit] = {}
        for unit in pack.units:
            name, number = unit.condition.name, unit.condition.id
            rival = {**self._by_name, **names}.get(name) or {**self._by_id, **ids}.get(number)
            if rival is not None:
                other = rival.condition
                return (
                    f"`{name}` ({number}){_beside(unit.place)} is already taken by `{other.name}` "
                    f"({other.id}) of pack `{rival.pack}`{_beside(rival.place)}"
                )
            names[name] = unit
            ids[number] = unit
        return None

    def _fix_clash(self, pack: Pack) -> str | None:
        taken = {unit.fix.name: (other, unit) for other in self.packs for unit in other.fixes}
        for unit in pack.fixes:
            if unit.fix.name in taken:
                other, rival = taken[unit.fix.name]
                return (
                    f"fix `{unit.fix.name}`{_beside(unit.fix.function.__module__)} is already "
                    f"taken by pack `{other.name}`{_beside(rival.fix.function.__module__)}"
                )
            taken[unit.fix.name] = (pack, unit)
        return None

    def _fact_clash(self, pack: Pack) -> str | None:
        taken = {kind.key(): (other, kind) for other in self.packs for kind in other.facts}
        for kind in pack.facts:
            if kind.key() in taken:
                other, rival = taken[kind.key()]
                return (
                    f"fact `{kind.key()}`{_beside(kind.__module__)} is already taken by pack "
                    f"`{other.name}`{_beside(rival.__module__)}"
                )
            taken[kind.key()] = (pack, kind)
        read = {
            kind: (other, probe)
            for other in self.packs
            for probe in other.probes
            for kind in gives(probe.function)
        }
        for probe in pack.probes:
            for kind in gives(probe.function):
                label = f"probe `{_name(probe.function)}`{_beside(probe.function.__module__)}"
                if kind in read:
                    other, first = read[kind]
                    return (
                        f"{label} reads `{kind.key()}`, which `{_name(first.function)}` of pack "
                        f"`{other.name}`{_beside(first.function.__module__)} reads already"
                    )
                if kind not in pack.facts:
                    return (
                        f"{label} reads `{kind.key()}`, a fact of `{kind.__module__}`; "
                        "a pack's probes read facts that the pack defines"
                    )
                read[kind] = (pack, probe)
        return None

    def __iter__(self) -> Iterator[Unit]:
        return iter(sorted(self._by_name.values(), key=lambda unit: id_order(unit.condition.id)))

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def fixes(self) -> dict[str, FixUnit]:
        """Fixes of all packs, by name."""
        return {unit.fix.name: unit for pack in self.packs for unit in pack.fixes}

    def fix(self, name: str) -> FixUnit:
        """A fix by its name.

        Raises:
            UsageError: there is none; the text suggests the nearest name.
        """
        fixes = self.fixes
        if name not in fixes:
            import difflib  # noqa: PLC0415  # only for a misspelling

            near = difflib.get_close_matches(name, list(fixes), n=1, cutoff=0.5)
            raise UsageError(
                f"no fix is called `{name}`"
                + (f"; did you mean `{near[0]}`?" if near else ";")
                + " `dsdoctor fix --list` lists all"
            )
        return fixes[name]

    def fix_named(self, name: str) -> str:
        """The fix of that name, or the first fix of the condition of that name or id.

        Raises:
            UsageError: there is none; names the nearest.
        """
        unit = None if name in self.fixes else self.find(name)
        if unit is None:
            return self.fix(name).fix.name
        if not unit.condition.fixes:
            raise UsageError(
                f"`{name}` has no fix; `dsdoctor explain {unit.condition.id}` says what to do"
            )
        return unit.condition.fixes[0]

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Probes of all packs."""
        return tuple(probe for pack in self.packs for probe in pack.probes)

    def find(self, name_or_id: str) -> Unit | None:
        """A condition by its name, an earlier name or its id; None if there is none."""
        found = self._by_name.get(name_or_id) or self._by_id.get(name_or_id.upper())
        return found or self._by_former_name.get(name_or_id)

    def get(self, name_or_id: str) -> Unit:
        """A condition by its name or id.

        Raises:
            UsageError: there is none; the text suggests the nearest name.
        """
        unit = self.find(name_or_id)
        if unit is None:
            raise UsageError(
                f"no condition is called `{name_or_id}`{self._nearest(name_or_id)} "
                "`dsdoctor explain` lists all"
            )
        return unit

    def former_names(self, name: str) -> tuple[str, ...] | msgspec.UnsetType:
        """Earlier names of a condition; UNSET if there are none, which omits the field in JSON."""
        unit = self.find(name)
        return (unit.condition.formerly if unit else ()) or msgspec.UNSET

    def _nearest(self, word: str, more: Iterable[str] = ()) -> str:
        import difflib  # noqa: PLC0415  # only for a misspelling

        near = difflib.get_close_matches(word, [*more, *self._by_name], n=1, cutoff=0.5)
        return f"; did you mean `{near[0]}`?" if near else ";"

    def for_observation(self, observation: Observation) -> Unit | None:
        """The condition for an observation of a gate or a smoke run; None if no pack has one."""
        units = (unit for unit in self if observation in unit.condition.names)
        return next(units, None)

    def select(self, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Unit, ...]:
        """Conditions by family, id, id prefix or name.

        Raises:
            UsageError: a word selects nothing.
        """
        wanted = self._matching(select, "--select") if tuple(select) else set(self._by_name)
        unwanted = self._matching(ignore, "--ignore")
        return tuple(unit for unit in self if unit.condition.name in wanted - unwanted)

    def limit_names(self, name: str) -> tuple[str, ...]:
        """Thresholds of a condition that a configuration may set."""
        unit = self.find(name)
        if unit is None or unit.check is None:
            return ()
        kinds = [need.kind for need in needs(unit.check.function) if issubclass(need.kind, Limits)]
        return tuple(field for kind in kinds for field in kind.__struct_fields__)

    def matches(self, word: str) -> set[str]:
        """Names of the conditions of a family, an id, the beginning of an id, or a name."""
        return {unit.condition.name for unit in self if _matches(unit, word)}

    def _matching(self, words: Iterable[str], option: str) -> set[str]:
        found: set[str] = set()
        for word in words:
            hits = self.matches(word)
            if not hits:
                families = {unit.family for unit in self}
                raise UsageError(
                    f"`{option} {word}` selects nothing{self._nearest(word, families)} "
                    "expected a family, an id, the beginning of an id, or the name of a condition"
                )
            found |= hits
        return found


def _beside(place: str) -> str:
    return f" ({place})" if place else ""


def _matches(unit: Unit, word: str) -> bool:
    number = unit.condition.id
    word = FORMER_FAMILIES.get(word, word)
    if word in (unit.family, unit.condition.name, *unit.condition.formerly):
        return True
    upper = word.upper()
    if upper == _letters(number):
        return True
    if not upper.startswith(_letters(number)):
        return False
    # `DSD1` is family 1 (DSD1nn), not family 10 (DSD10nn) or 16
    return number == upper or (number.startswith(upper) and len(number) - len(upper) <= 2)  # noqa: PLR2004


def _letters(number: str) -> str:
    """The part of an id before its digits."""
    return number.rstrip("0123456789")


def id_order(number: str) -> tuple[bool, str, int]:
    """Sort key of an id: the built-in pack's first, then by pack, then by number.

    >>> sorted(["ACME001", "DSD1001", "DSD201", "DSD101"], key=id_order)
    ['DSD101', 'DSD201', 'DSD1001', 'ACME001']
    """
    letters = _letters(number)
    return (letters != "DSD", letters, int(number[len(letters) :] or 0))


def limits_for(
    kind: type[Limits], condition: str, overrides: Mapping[str, Mapping[str, float]]
) -> Limits:
    """A check's thresholds with the configuration applied.

    Raises:
        UsageError: the configuration sets a threshold that the check does not have.
    """
    given = dict(overrides.get(condition, {}))
    known = kind.__struct_fields__
    for name in given:
        if name not in known:
            raise UsageError(
                f"`[limits.{condition}]` has no `{name}`; expected one of "
                + ", ".join(f"`{field}`" for field in known)
            )
    return kind(**given)
