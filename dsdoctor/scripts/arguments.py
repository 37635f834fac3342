"""A script's arguments, judged by the parser that its source states."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from dsdoctor.host import Host, exists
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import Packages
from dsdoctor.model.plain import shortened
from dsdoctor.scripts.dataclass_fields import Field, fields_of
from dsdoctor.scripts.parser import (
    Classes,
    Parser,
    RefusedError,
    UnknownParserError,
    is_parser,
    parser_of,
    words_are_untouched,
)
from dsdoctor.scripts.reach import parsed
from dsdoctor.scripts.renamed import successor
from dsdoctor.scripts.sources import Sources

__all__ = ["Judged", "UnknownParserError", "judge"]
#: What a shell would still expand: a word may become several, or none.
_SYNTAX = re.compile(r"[$`*?{}\[\]]")
#: A parser that reads dataclasses takes all its values from such a file, if it is the only word.
_FILES = (".json", ".yaml", ".yml")
_MOST_WORDS = 1000
#: Characters of a refusal: argparse lists all choices.
_LONGEST = 300
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
    tree = parsed(text)
    if tree is None:
        raise UnknownParserError(f"`{path}` could not be parsed")
    if len(words) > _MOST_WORDS:  # argparse takes the square of their number
        raise UnknownParserError("the script has too many arguments")
    words_are_untouched(tree)
    sources = Sources(host, path, cwd, packages)
    tree, file = _place_of(tree, sources)
    parser = parser_of(tree)
    if isinstance(parser, Classes):
        of = "transformers"
        named = (fields_of(name, sources.find_class, file) for name in parser.names)
        fields = {name: field for fields in named for name, field in fields.items()}
        flags = {flag for field in fields.values() for flag in field.flags}
        unknown, refusal = _judge_fields(parser, fields, words)
        # transformers looks for more arguments there
        if refusal.startswith(_REQUIRED) and exists(host, path.removesuffix(".py") + ".args"):
            refusal = ""
    else:
        of, flags = "argparse", set(parser.flags())
        unknown, refusal = _judge(parser, words)
    near = {flag: near for flag in unknown if (near := _near(flag, flags))}
    return Judged(of, unknown, near, shortened(refusal, _LONGEST))


def _place_of(tree: ast.Module, sources: Sources) -> tuple[ast.Module, str]:
    """The script, or the one module whose function it calls, as `train_mem.py` of LLaVA does.

    The second value is the path of the module; "" = the script.
    """
    if any(map(is_parser, ast.walk(tree))):
        return tree, ""
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    places = {found[1] for name in sorted(imported & called) if (found := sources.find("", name))}
    trees = {path: inner for path in places if (inner := sources.tree(path)) is not None}
    states = [path for path, inner in trees.items() if any(map(is_parser, ast.walk(inner)))]
    if len(states) != 1:
        return tree, ""
    return trees[states[0]], states[0]


def _near(flag: str, flags: Collection[str]) -> str:
    """The option that may be meant; "" = there is none."""
    known = {one[2:] for one in flags if one.startswith("--") and not one.startswith("--no")}
    near = successor(flag[2:], known)
    return f"--{near}" if near else ""


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
