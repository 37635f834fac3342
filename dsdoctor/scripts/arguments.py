"""A script's arguments, judged by the parser that its source states."""

from __future__ import annotations

import ast
import difflib
import posixpath
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from dsdoctor.framework import syntax_of
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import Packages
from dsdoctor.scripts.dataclass_fields import Field, fields_of
from dsdoctor.scripts.parser import (
    Classes,
    Parser,
    RefusedError,
    UnknownParserError,
    parser_of,
)

__all__ = ["Judged", "UnknownParserError", "judge"]
#: What a shell would still expand: a word may become several, or none.
_SYNTAX = re.compile(r"[$`*?{}\[\]]")
#: How alike two options are, so that one may be meant for the other.
_ALIKE = 0.75
#: A parser that reads dataclasses takes all its values from such a file, if it is the only word.
_FILES = (".json", ".yaml", ".yml")
#: Files that are read for one script: re-exports of `__init__.py`, and bases.
_MOST_FILES = 40
_REQUIRED = "the following arguments are required"


class Judged(NamedTuple):
    """What a parser says of the arguments; see the fact `ScriptOptions`."""

    of: str
    unknown: tuple[str, ...]
    near: dict[str, str]
    refusal: str


def judge(
    host: Host,
    path: str,
    text: str,
    words: Sequence[str],
    cwd: str,
    packages: Packages | Missing,
) -> Judged:
    """Gives the words to the parser of a script.

    Args:
        host: the machine.
        path: the script.
        text: its source.
        words: its arguments, with what the launcher adds.
        cwd: the working folder of the job.
        packages: where classes of installed packages are found.

    Raises:
        UnknownParserError: the parser is not known as a whole.
    """
    tree = syntax_of(text)
    if tree is None:
        raise UnknownParserError(f"`{path}` could not be parsed")
    parser = parser_of(tree)
    if isinstance(parser, Classes):
        of = "transformers"
        sources = _Sources(host, path, cwd, packages)
        fields = {k: f for n in parser.names for k, f in fields_of(n, sources.find).items()}
        flags = {flag for field in fields.values() for flag in field.flags}
        unknown, refusal = _judge_fields(parser, fields, words)
        # transformers looks for more arguments there
        if refusal.startswith(_REQUIRED) and exists(host, path.removesuffix(".py") + ".args"):
            refusal = ""
    else:
        of, flags = "argparse", set(parser.flags())
        unknown, refusal = _judge(parser, words)
    near = {flag: near for flag in unknown if (near := _near(flag, flags))}
    return Judged(of, unknown, near, refusal)


def _near(flag: str, flags: Collection[str]) -> str:
    """The option that may be meant; "" = there is none like it."""
    known = sorted(one for one in flags if one.startswith("--") and not one.startswith("--no"))
    return "".join(difflib.get_close_matches(flag, known, 1, _ALIKE))


def _judge(parser: Parser, words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Options that a parser does not know, and what else it rejects, in its own words."""
    unknown = _unknown(words, parser.flags())
    if any(_SYNTAX.search(word) for word in words):
        return unknown, ""
    try:
        _, left = parser.parse_known_args(list(words))
    except RefusedError as error:
        return unknown, str(error)
    rest = [word for word in left if word != "--"]
    return unknown, f"unrecognized arguments: {' '.join(rest)}" if rest and not unknown else ""


def _unknown(words: Sequence[str], flags: Collection[str]) -> tuple[str, ...]:
    """Long options of the words that no option begins with, as argparse completes them."""
    found = []
    for word in words:
        if word == "--":
            break
        flag = word.partition("=")[0]
        is_option = flag.startswith("--") and not _SYNTAX.search(flag) and " " not in flag
        if is_option and not any(one.startswith(flag) for one in flags):
            found.append(flag)
    return tuple(found)


def _judge_fields(
    parser: Classes, fields: dict[str, Field], words: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """The same for a parser that reads dataclasses."""
    if len(words) == 1 and words[0].endswith(_FILES):
        return (), ""
    flags = {flag for field in fields.values() for flag in field.flags}
    own = {"--help", *({"--config"} if parser.has_config else ())}
    unknown = _unknown(words, flags | own)
    if unknown or any(_SYNTAX.search(word) for word in words):
        return unknown, ""
    given = [word.partition("=")[0] for word in words if word.startswith("-")]
    by_file = parser.sets_defaults or (parser.has_config and "--config" in given)
    lacking = [
        f"--{name}"
        for name, field in fields.items()
        if field.required and not any(f.startswith(g) for f in field.flags for g in given)
    ]
    if lacking and not by_file:
        return (), f"{_REQUIRED}: {', '.join(lacking)}"
    return (), _wrong_number(fields, words)


def _wrong_number(fields: dict[str, Field], words: Sequence[str]) -> str:
    """The first value that is no number where one is expected, as argparse words it."""
    numbers = {f: field.number for field in fields.values() for f in field.flags if field.number}
    for word, after in zip(words, (*words[1:], None), strict=True):
        flag, equals, value = word.partition("=")
        number = numbers.get(flag)
        if number is None:
            continue
        if not equals and (after is None or after.startswith("--")):
            return f"argument {flag}: expected one argument"
        given = value if equals else str(after)
        try:
            number(given)
        except ValueError:
            return f"argument {flag}: invalid {number.__name__} value: {given!r}"
    return ""


class _Sources:
    """Finds classes in the script, in modules next to it, and in installed packages."""

    def __init__(self, host: Host, script: str, cwd: str, packages: Packages | Missing) -> None:
        """Reads nothing yet."""
        self._host = host
        self._script = script
        # a module that is not next to the script is on PYTHONPATH, often with the working folder
        self._folders = (posixpath.dirname(self._script), posixpath.normpath(cwd))
        found = {} if isinstance(packages, Missing) else packages.packages
        self._locations = {name: package.location for name, package in found.items()}
        self._left = _MOST_FILES

    def find(self, file: str, name: str) -> tuple[ast.ClassDef, str] | None:
        """The class that a file names, and the file that defines it."""
        path = file or self._script
        tree = self._tree(path)
        if tree is None:
            return None
        classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
        if len(classes) == 1:
            return classes[0], path
        root, _, rest = name.partition(".")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not rest:
                for alias in node.names:
                    if root == (alias.asname or alias.name):
                        return self._in_module(path, node.module or "", node.level, alias.name)
            elif isinstance(node, ast.Import) and rest and "." not in rest:
                for alias in node.names:
                    if root == (alias.asname or alias.name):
                        return self._in_module(path, alias.name, 0, rest)
        return None

    def _in_module(
        self, path: str, module: str, level: int, name: str
    ) -> tuple[ast.ClassDef, str] | None:
        parts = [part for part in module.split(".") if part]
        if level:
            folders = [
                posixpath.normpath(posixpath.join(posixpath.dirname(path), *[".."] * (level - 1)))
            ]
        else:
            package = self._locations.get(parts[0].replace("_", "-").lower(), "") if parts else ""
            folders = [*self._folders, *([package] if package else ())]
        for folder in folders:
            inside = posixpath.join(folder, *parts)
            for place in (f"{inside}/__init__.py", f"{inside}.py"):
                if place != path and exists(self._host, place):
                    return self.find(place, name)
        return None

    def _tree(self, path: str) -> ast.Module | None:
        self._left -= 1
        if self._left < 0:
            return None
        try:
            return syntax_of(read_text(self._host, path))
        except HostError:
            return None
