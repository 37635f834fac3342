"""Which values of a fact a check has read, so that nodes with equal values share one judgment.

Checks are pure: a check that reads equal values takes the same path and gives the same result.
`trace` returns a proxy for a fact that records what is read from it; `column` reads the same
values from another node's fact. Elements of a tuple count as one: a field that was read from one
GPU is compared on all of them. Some reads cannot be traced (a comparison or a repr of a whole
struct), and some are not worth it (the many links of each GPU). These count as reads of everything
in the value.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import operator
import types
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

#: Names of fields, or one of the marks below.
Path = tuple[str, ...]
_EACH = "*"  # each element of a tuple
_LENGTH = "#"  # the number of elements
_TYPE = "?"  # whether it is a struct or something else
_WHOLE = "="  # the whole content
_SCALARS = frozenset({str, int, bool, type(None)})


def trace(fact: msgspec.Struct, noted: set[Path]) -> Any:
    """A proxy for a fact, which adds what is read from it to `noted`."""
    return _wrap(fact, (), noted)


def _wrap(value: Any, path: Path, noted: set[Path]) -> Any:
    if isinstance(value, msgspec.Struct):
        noted.add((*path, _TYPE))
        return _StandIn(value, path, noted)
    several = type(value) in (tuple, list) and any(isinstance(x, msgspec.Struct) for x in value)
    if several and _EACH not in path:
        noted.add((*path, _LENGTH))
        return type(value)(_wrap(item, (*path, _EACH), noted) for item in value)
    noted.add(path)
    return value


class _StandIn:
    """Behaves like a struct, and records what is read from it."""

    __slots__ = ("_known", "_noted", "_path", "_value")

    def __init__(self, value: msgspec.Struct, path: Path, noted: set[Path]) -> None:
        self._value = value
        self._path = path
        self._noted = noted
        self._known: dict[str, Any] = {}

    # used by isinstance() and `match`
    __class__ = property(lambda self: type(self._value))

    def __getattr__(self, name: str) -> Any:
        if name in self._known:  # two reads must return the identical object
            return self._known[name]
        kind = type(self._value)
        if name in kind.__struct_fields__:
            made = _wrap(getattr(self._value, name), (*self._path, name), self._noted)
            self._known[name] = made
            return made
        member = inspect.getattr_static(kind, name)
        if isinstance(member, property) and member.fget is not None:
            return member.fget(self)
        if isinstance(member, types.FunctionType):
            return types.MethodType(member, self)
        return getattr(kind, name)

    def _read_whole(self) -> msgspec.Struct:
        self._noted.add((*self._path, _WHOLE))
        return self._value

    def __eq__(self, other: object) -> bool:
        return bool(
            self._read_whole() == (other._read_whole() if type(other) is _StandIn else other)
        )

    def __hash__(self) -> int:
        return hash(self._read_whole())

    def __repr__(self) -> str:
        return repr(self._read_whole())


def column(value: Any, path: Path) -> Hashable:
    """The value of a path in a fact, as a hashable key that is equal only for equal values."""
    head, tail = _getters(path)
    if tail is not None:
        try:
            values = tuple(map(tail, head(value)))
            kinds = tuple(map(type, values))
            if _SCALARS.issuperset(kinds):
                return values, kinds  # 1 and True are different keys
        except (AttributeError, TypeError):
            pass
    return _column(value, path)


@functools.cache
def _getters(path: Path) -> tuple[Callable[[Any], Any], Callable[[Any], Any] | None]:
    """Fast getters for a path: to a tuple, and on from each element; None = not possible."""
    if path.count(_EACH) != 1:
        return _unchanged, None
    middle = path.index(_EACH)
    head, tail = path[:middle], path[middle + 1 :]
    if not head or not tail or {*head, *tail} & {_LENGTH, _TYPE, _WHOLE}:
        return _unchanged, None
    return operator.attrgetter(".".join(head)), operator.attrgetter(".".join(tail))


def _unchanged(value: Any) -> Any:
    return value


def _column(value: Any, path: Path) -> Hashable:
    for number, step in enumerate(path):
        if step == _EACH:
            if type(value) not in (tuple, list):
                return "?", _key(value)
            rest = path[number + 1 :]
            return tuple([_column(item, rest) for item in value])
        if step == _LENGTH:
            return len(value) if type(value) in (tuple, list) else ("?", _key(value))
        if step == _TYPE:
            return type(value).__name__
        if step == _WHOLE:
            return _content(value)
        if step not in getattr(value, "__struct_fields__", ()):
            return "?", _key(value)
        value = getattr(value, step)
    return _key(value)


def _key(value: Any) -> Hashable:
    return (type(value), value) if type(value) in _SCALARS else _content(value)


def _content(value: Any) -> bytes:
    """A digest of the whole content of a value; short, because many are stored."""
    return hashlib.blake2b(msgspec.json.encode(value), digest_size=16).digest()
