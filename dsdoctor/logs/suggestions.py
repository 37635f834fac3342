"""What Python suggests behind an exception's message; it is no part of what happened."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy

#: CPython 3.10-3.15 Lib/traceback.py, Objects/call.c: names that resemble the wrong one. Since 3.15
#: modules that are not found have suggestions too.
SUGGESTION = lazy(
    r"^(?P<said>(?:Attribute|Import|ModuleNotFound|Name|Type)Error: .{1,2000}?)\. "
    r"(?:Did you (?:mean|forget to import)\b|Site initialization is disabled, ).{1,300}$"
)
#: Words of them: most lines contain neither.
WORDS = (". Did you ", ". Site initialization is disabled")


def without_suggestion(text: str) -> str:
    """A line without what Python suggests at its end.

    >>> without_suggestion("ModuleNotFoundError: No module named 'numpi'. Did you mean: 'numpy'?")
    "ModuleNotFoundError: No module named 'numpi'"
    """
    if not any(words in text for words in WORDS):
        return text
    found = SUGGESTION.match(text)
    return found["said"] if found else text
