"""Numbers of a model's `config.json`, each checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dsdoctor.errors import UsageError

#: Larger than any number in a published config; a larger value would overflow later.
MOST = 10**9
#: The same for numbers of layers and experts, which are gone through one by one.
MOST_PARTS = 1000
_PARTS = re.compile(r"(?:layers?|depth|experts)$")


def positive(config: Mapping[str, Any], *keys: str) -> int:
    """The first of these keys that is a whole number above 0.

    Raises:
        UsageError: there is none, or it is not plausible.
    """
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            most = MOST_PARTS if _PARTS.search(key) else MOST
            if value > most:
                raise UsageError(f"`{key}` of the model config is {value}, expected at most {most}")
            return value
    raise UsageError(f"the model config has no `{keys[0]}` that is a whole number above 0")


def positive_or(config: Mapping[str, Any], key: str, default: int) -> int:
    """A whole number above 0; absent or null means the default.

    Raises:
        UsageError: it is something else.
    """
    return default if config.get(key) is None else positive(config, key)


def from_zero(config: Mapping[str, Any], key: str, default: int) -> int:
    """A whole number from 0; absent or null means the default.

    Raises:
        UsageError: it is something else.
    """
    value = config.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise UsageError(
            f"`{key}` of the model config is {value!r}, expected a whole number from 0"
        )
    return value


def side(config: Mapping[str, Any], key: str, default: int) -> int:
    """A length that may be written as a pair of equal lengths (`[448, 448]`).

    Raises:
        UsageError: it is something else.
    """
    value = config.get(key)
    if isinstance(value, (list, tuple)) and value:
        return positive({key: value[0]}, key)
    return positive_or(config, key, default)


def part(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part of the config that is a config itself (`text_config`).

    Raises:
        UsageError: it is missing.
    """
    value = config.get(key)
    if not isinstance(value, dict):
        raise UsageError(f"the model config has no `{key}` that is a JSON object")
    return value


def divided(config: Mapping[str, Any], key: str, number: int, by: int) -> None:
    """Checks that one number is a multiple of another.

    Raises:
        UsageError: it is not.
    """
    if number % by:
        name = config.get("model_type")
        raise UsageError(f"`{key}` of the {name} config is {number}, expected a multiple of {by}")
