"""Predicates of values, as the typed sections of a DeepSpeed config accept them.

Source: conversions of pydantic 2 in its lax mode,
https://docs.pydantic.dev/latest/concepts/conversion_table/, and the operators that DeepSpeed applies
to values that it does not validate (runtime/config.py, 0.19.8).
"""

from __future__ import annotations

import re
from typing import Any

from ._tables import number_of, truth

_WHOLE = re.compile(r"\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*")

#: pydantic converts floats to integers of 64 bits only.
_LARGEST_FLOAT = 2.0**63
#: Passes of DeepCompile (compile/config.py, 0.19.8).
PASSES = frozenset({"z1", "z3", "autosp", "autotp"})


def boolean(value: Any) -> bool:
    return truth(value) is not None


def boolean_or_null(value: Any) -> bool:
    return value is None or boolean(value)


def is_integer(value: Any) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value) is not None
    if isinstance(value, float):
        return value.is_integer() and abs(value) < _LARGEST_FLOAT
    return isinstance(value, int)


def is_not_negative_integer(value: Any) -> bool:
    return is_integer(value) and (number_of(value) or 0) >= 0


def positive(value: Any) -> bool:
    return is_integer(value) and (number_of(value) or 0) > 0


def interval(value: Any) -> bool:
    """A number, which is no string here; `"auto"` was dropped."""
    return is_integer(value) and not isinstance(value, str)


def is_fraction(value: Any) -> bool:
    number = number_of(value)
    return number is not None and 0 <= number <= 1


def is_inner_fraction(value: Any) -> bool:
    number = number_of(value)
    return number is not None and 0 < number < 1


def mapping(value: Any) -> bool:
    return isinstance(value, dict)


def mapping_or_null(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def text(value: Any) -> bool:
    return isinstance(value, str)


def text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def texts(value: Any) -> bool:
    """A string, or a list of them."""
    return isinstance(value, str) or strings(value)


def sequence(value: Any) -> bool:
    return isinstance(value, list)


def sequence_or_null(value: Any) -> bool:
    return value is None or isinstance(value, list)


def finite(value: Any) -> bool:
    number = number_of(value)
    return number is not None and abs(number) < float("inf")


def switch(value: Any) -> bool:
    """A boolean that DeepSpeed combines with another by `|`."""
    return isinstance(value, int)


def strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def names(value: Any) -> bool:
    """What yields strings only."""
    return isinstance(value, (str, dict)) or strings(value)


def size(value: Any) -> bool:
    """What `%` takes, or nothing."""
    return not value or isinstance(value, (int, float))


def never(_: Any) -> bool:
    return False


def divides(value: Any) -> bool:
    """What a number can be divided by, without quotes."""
    return isinstance(value, (int, float)) and value > 0


def mapping_or_switch(value: Any) -> bool:
    """Of the first releases, in which ZeRO was on or off."""
    return isinstance(value, (dict, bool))


def container(value: Any) -> bool:
    return isinstance(value, (dict, list, str))


def whole_number(value: Any) -> bool:
    """What Python's `int` takes."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and _is_digits(value))


def _is_digits(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d+(?:_\d+)*\s*", text) is not None


def integer_or_null(value: Any) -> bool:
    return value is None or is_integer(value)


def is_null(value: Any) -> bool:
    return value is None


def mapping_or_empty(value: Any) -> bool:
    return isinstance(value, dict) or not value


def filled(value: Any) -> bool:
    return bool(value)


def strings_or_auto(value: Any) -> bool:
    return value == "auto" or strings(value)


def passes(value: Any) -> bool:
    return value is None or (isinstance(value, list) and set(map(str, value)) <= PASSES)
