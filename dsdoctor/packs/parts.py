"""What a pack's module defines: its condition, checks, probes, facts and fixes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import ModuleType

import msgspec

from dsdoctor.api import Check, Fix, Probe
from dsdoctor.model.condition import Condition, Limits, Signature, TracebackRule
from dsdoctor.model.facts.base import Fact
from dsdoctor.packs.containment import rows, struct_problem
from dsdoctor.packs.places import BUILTIN
from dsdoctor.packs.registry import FixUnit, Unit, gives, needs


class PackError(Exception):
    """A pack breaks a rule; the text is one line."""


@functools.lru_cache(maxsize=1)
def _parts(module: ModuleType) -> tuple[Condition | Check | Probe | Fix, ...]:
    """The units that a module defines, cached for the functions below, which each need them.

    Every command loads 250 modules with some 35 names each.
    """
    kinds = (Condition, Check, Probe, Fix)
    return tuple(value for value in vars(module).values() if isinstance(value, kinds))


def unit_of(module: ModuleType, pack: str, family: str) -> Unit | None:
    """The condition that a module defines; None if it defines none.

    Raises:
        PackError: it defines several, or a check of another condition, or has no docstring.
    """
    conditions = [value for value in _parts(module) if isinstance(value, Condition)]
    if not conditions:
        return None
    if len(conditions) > 1:
        raise PackError(f"`{module.__name__}` defines {len(conditions)} conditions, expected one")
    condition = conditions[0]
    checks = [value for value in _parts(module) if isinstance(value, Check)]
    if any(check.condition is not condition for check in checks) or len(checks) > 1:
        raise PackError(f"`{module.__name__}` must define one check, of `{condition.name}`")
    lines = inspect.cleandoc(module.__doc__ or "").split("\n")
    if not lines[0]:
        raise PackError(f"`{module.__name__}` has no docstring, which would be its page")
    for check in checks:
        try:
            wanted = needs(check.function)
        except TypeError as error:
            raise PackError(str(error)) from None
        for need in wanted:
            if not issubclass(need.kind, (Fact, Limits)):
                raise PackError(f"parameter `{need.name}` of a check must be a fact or limits")
            if issubclass(need.kind, Limits):
                need.kind()  # every threshold has a default
    signatures = getattr(module, "SIGNATURES", ())
    traceback_rules = getattr(module, "TRACEBACK_RULES", ())
    if pack != BUILTIN:
        wrong = struct_problem(condition, {"blinds": ()})
        if wrong or not all(isinstance(kind, type) for kind in condition.blinds):
            raise PackError(f"`{module.__name__}` has a condition that cannot be used: {wrong}")
        signatures = rows(signatures, Signature, "SIGNATURES")
        traceback_rules = rows(traceback_rules, TracebackRule, "TRACEBACK_RULES")
    return Unit(
        condition=condition,
        title=lines[0].rstrip("."),
        page="\n".join(lines[1:]).strip(),
        family=family,
        pack=pack,
        check=checks[0] if checks else None,
        signatures=tuple(signatures),
        hint=str(getattr(module, "HINT", "")),
        place=pack if pack.endswith(".py") else module.__name__,
        traceback_rules=tuple(traceback_rules),
    )


def probes_of(module: ModuleType) -> Iterator[Probe]:
    """Probes that a module defines.

    Raises:
        PackError: an annotation is not a fact.
    """
    for value in _parts(module):
        if isinstance(value, Probe) and value.function.__module__ == module.__name__:
            try:
                gives(value.function)
            except TypeError as error:
                raise PackError(str(error)) from None
            yield value


def facts_of(module: ModuleType) -> Iterator[type[Fact]]:
    """Fact classes that a module defines.

    Raises:
        PackError: the type of a field cannot be stored in a snapshot.
    """
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Fact)
            and value.__module__ == module.__name__
        ):
            try:
                msgspec.convert({}, value)
            except msgspec.ValidationError:  # required fields are missing, which is fine here
                pass
            except TypeError as error:
                raise PackError(f"fact `{value.__name__}` cannot be used: {error}") from None
            yield value


def fixes_of(module: ModuleType) -> Iterator[FixUnit]:
    """Fixes that a module defines.

    Raises:
        PackError: a fix has no page, or has a parameter that is not a fact.
    """
    for value in _parts(module):
        if not isinstance(value, Fix) or value.function.__module__ != module.__name__:
            continue
        lines = inspect.cleandoc(module.__doc__ or "").split("\n")
        if not lines[0]:
            raise PackError(f"`{module.__name__}` has no docstring, which would be its page")
        try:
            wanted = needs(value.function)
        except TypeError as error:
            raise PackError(str(error)) from None
        if not all(issubclass(need.kind, Fact) for need in wanted):
            raise PackError(f"every parameter of fix `{value.name}` must be a fact")
        yield FixUnit(value, lines[0].rstrip("."), "\n".join(lines[1:]).strip())
