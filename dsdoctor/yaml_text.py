"""Reads YAML of unknown origin, and rejects aliases that expand without limit.

A kilobyte of nested aliases is a few objects in memory and gigabytes once it is written out, and an
alias may refer to its own parent. Parsing takes 5 µs a character, so a document has a size.
"""

from __future__ import annotations

from typing import Any

#: Characters; a larger YAML is not a configuration.
LONGEST = 1 << 20
#: Most values in a document, each alias counted as what it expands to.
MOST_VALUES = 100_000


def load(text: str) -> Any:
    """Parses a YAML document.

    Raises:
        ValueError: it is not YAML, is nested too deeply, or is too large, also once expanded.
    """
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    import yaml  # noqa: PLC0415  # only for YAML

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from None
    _count(found)
    return found


def _count(value: Any) -> None:
    left = MOST_VALUES
    rest = [value]
    while rest:
        left -= 1
        if left < 0:
            raise ValueError(f"it states more than {MOST_VALUES} values")
        one = rest.pop()
        if isinstance(one, dict):
            rest += one.values()
        elif isinstance(one, (list, tuple, set)):
            rest += one
