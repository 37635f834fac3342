"""Options that `HfArgumentParser` makes of dataclasses, read from their source.

Sources: transformers 4.30 to 5.24 hf_argparser.py (`_parse_dataclass_field`); trl 0.8 to 0.24
scripts/utils.py and commands/cli_utils.py (`TrlParser`); CPython 3.10 to 3.14 Lib/dataclasses.py;
read 2026-11-29.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dsdoctor.scripts.parser import UnknownParserError
from dsdoctor.scripts.reach import dotted

#: Finds a class by the file that names it ("" = the script) and its name there; the second value
#: is the file that defines it.
Source = Callable[[str, str], tuple[ast.ClassDef, str] | None]
_NUMBERS: dict[str, type] = {"int": int, "float": float}
#: More bases than any class has.
_MOST = 40


class Field(NamedTuple):
    """An option of a dataclass.

    Attributes:
        flags: every way to write it.
        number: the type, if its value is a number.
        required: it has no default.
    """

    flags: frozenset[str]
    number: type | None
    required: bool


def fields_of(name: str, source: Source, file: str = "") -> dict[str, Field]:
    """The fields of a class and its bases, by their names.

    Args:
        name: the class, as it is written in the file.
        source: finds the class.
        file: where the name is written; "" = the script.

    Raises:
        UnknownParserError: a class or a base of it is not found, or not known as a whole.
    """
    fields: dict[str, Field] = {}
    for made in reversed(list(_with_bases(name, source, file, set()))):
        if any("dataclass" in ast.dump(part) for part in made.decorator_list):
            fields |= dict(_own(made))
    return fields


def _with_bases(
    name: str, source: Source, file: str, seen: set[ast.ClassDef]
) -> Iterator[ast.ClassDef]:
    """A class, then its bases, each once."""
    found = source(file, name) if len(seen) < _MOST else None
    if found is None:
        raise UnknownParserError(f"the class `{name}` is not found")
    made, inside = found
    if made in seen:
        return
    seen.add(made)
    yield made
    for base in made.bases:
        written = dotted(base)
        if written not in {"object", "ABC", "abc.ABC"}:
            yield from _with_bases(written, source, inside, seen)


def _own(made: ast.ClassDef) -> Iterator[tuple[str, Field]]:
    for node in made.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        annotation = ast.unparse(node.annotation)
        given = node.value
        settings = (
            {keyword.arg: keyword.value for keyword in given.keywords}
            if isinstance(given, ast.Call)
            else {}
        )
        init = settings.get("init")
        excluded = isinstance(init, ast.Constant) and init.value is False
        if "ClassVar" in annotation or "InitVar" in annotation or excluded:
            continue
        is_field = isinstance(given, ast.Call) and dotted(given.func).rpartition(".")[2] == "field"
        required = given is None or (
            is_field and not settings.keys() & {"default", "default_factory", None}
        )
        name = node.target.id
        flags = {f"--{word}" for word in (name, f"no_{name}")}
        flags |= {flag.replace("_", "-") for flag in flags}
        if given is not None:  # `HfArg(aliases=["-m"])`, or `metadata={"aliases": ...}`
            flags |= {
                part.value
                for part in ast.walk(given)
                if isinstance(part, ast.Constant)
                and isinstance(part.value, str)
                and part.value.startswith("-")
                and " " not in part.value
            }
        yield name, Field(frozenset(flags), _number(annotation), required)


def _number(annotation: str) -> type | None:
    """The type of a value that is a single number.

    >>> _number("Optional[float]"), _number("int | None"), _number("float | str")
    (<class 'float'>, <class 'int'>, None)
    """
    words = annotation.removeprefix("typing.").strip("\"'")
    if words.startswith("Optional[") and words.endswith("]"):
        words = words[len("Optional[") : -1]
    return _NUMBERS.get(words.removesuffix("| None").strip())
