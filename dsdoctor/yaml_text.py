"""Reads YAML of unknown origin, and rejects aliases that expand without limit.

A kilobyte of nested aliases is a few objects in memory and gigabytes once it is written out, and an
alias may refer to its own parent. Parsing takes 5 µs a character, so a document has a size.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from typing import Any

#: Characters; a larger YAML is not a configuration.
LONGEST = 1 << 20
#: Marks of texts that begin on the next line.
_BLOCKS = ("|", ">")
#: Most values in a document, each alias counted as what it expands to.
MOST_VALUES = 100_000


class NotYamlError(ValueError):
    """A text that no reader of YAML takes: what is wrong, and in which line.

    Attributes:
        line: from 1; 0 = not known.
    """

    def __init__(self, said: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {said}" if line else said)
        self.line = line


def load(text: str) -> Any:
    """Parses a YAML document.

    Raises:
        NotYamlError: it is not YAML, or has a tag that only a program's own reader knows.
        ValueError: it is nested too deeply, or is too large, also once expanded.
    """
    import yaml  # noqa: PLC0415  # only for YAML

    with _refused(text):
        found = yaml.safe_load(text)
    _count(found)
    return found


def documents(text: str) -> list[Any]:
    """The documents of a text as nodes, which know their lines; `values` makes values of them.

    Raises:
        NotYamlError, ValueError: as `load`, but for what a document contains once expanded.
    """
    import yaml  # noqa: PLC0415  # only for YAML

    with _refused(text):
        found = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    return [node for node in found if node is not None]


class Mapping(dict[Any, Any]):
    """A mapping of a document, with its place.

    Attributes:
        line: its first line, from 1.
        below: for each key, the line before the first one of its value's text.
    """

    line: int
    below: dict[Any, int]


def values(nodes: Iterable[Any]) -> list[Any]:
    """The values of documents; each mapping is a `Mapping`, which knows its lines.

    Raises:
        NotYamlError, ValueError: as `load`.
    """
    with _refused():
        found = [_placing_constructor()().construct_document(node) for node in nodes]
    _count(found)
    return found


@contextlib.contextmanager
def _refused(text: str = "") -> Iterator[None]:
    """Refuses a text that is too long, and says in one way what YAML's reader rejects."""
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    import yaml  # noqa: PLC0415  # only for YAML

    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        said = " ".join(str(error.problem or error.context).split())
        raise NotYamlError(said, mark.line + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        raise NotYamlError(str(error).partition("\n")[0]) from None
    except RecursionError as error:
        raise ValueError(str(error)) from None


@functools.cache
def _placing_constructor() -> Any:
    from yaml.constructor import SafeConstructor  # noqa: PLC0415  # only for YAML

    class Constructor(SafeConstructor):
        """The safe constructor, with the place of each mapping."""

    def construct(constructor: Any, node: Any) -> Any:
        found = Mapping()
        found.line = node.start_mark.line + 1
        found.below = {
            # the text of a block begins below its mark
            key.value: value.start_mark.line + (1 if getattr(value, "style", 0) in _BLOCKS else 0)
            for key, value in node.value
            if isinstance(key.value, str)
        }
        yield found
        found.update(constructor.construct_mapping(node))

    Constructor.add_constructor("tag:yaml.org,2002:map", construct)
    return Constructor


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
