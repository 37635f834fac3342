"""Regular expressions that are compiled when they are first used.

Compiling one takes 0.1 to 1 ms, and diagnosing a short log uses a third of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

#: Methods that become attributes, so that later calls cost no more than those of a pattern.
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Lazy:
    """Compiles the pattern when an attribute is first asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._made_of: tuple[Any, int] = (text, flags)

    def __getattr__(self, name: str) -> Any:
        pattern = re.compile(*self._made_of)
        for method in METHODS:
            setattr(self, method, getattr(pattern, method))
        return getattr(pattern, name)


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern that is compiled on its first use.

    It is not an instance of `re.Pattern`: do not pass it to functions of `re`. An invalid pattern
    raises `re.error` on its first use.
    """
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
