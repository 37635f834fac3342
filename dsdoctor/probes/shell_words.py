"""Splits a line of a shell script into commands and words, without starting a shell.

What a shell would compute (`$(…)`) becomes an unknown variable, except arithmetic of known numbers
and the path of a program (`$(which torchrun)`). Redirections are no words of a command.
"""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

#: Placeholder for what a shell computes, while a line is split into words; not a valid name.
COMPUTED = "${\N{HORIZONTAL ELLIPSIS}}"
#: Syntax that only a shell understands: the command is then more than its first program.
SYNTAX = re.compile(r"[;&|<>`$*?~(){}]")
#: A shell, which also runs the text after `-c`.
SHELL = re.compile(r"(?:ba|z|da|k)?sh")
#: Words between commands.
_END = frozenset({";", "&&", "||", "|", "&", ";;", "(", ")", "{", "}", "\n", "|&"})
#: Characters that need more than a plain split: quotes, escapes, comments, operators.
_LEXED = re.compile(r"['\"\\#;&|()<>]")
_MARKS = frozenset("<>#")
_BLANKS = re.compile(r"[ \t\r\n]+")
#: Quoted text, expansions and placeholders (`<port>`, `<#GPUs>`), which stay; or a comment, or a
#: redirection with its target, which go. `<(…)` is a file.
_LEFT_OUT = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|\$\{[^{}\s]*\}|<[A-Za-z_#][^<>|;&\n]{0,60}>"
    r"|(?P<comment>(?<![^\s;&|()])#[^\n]*)"
    r"|(?P<redirection>\d{0,2}>{1,2}[ \t]*>\([^()\n]*\)|(?:&>>?"
    r"|(?:(?<![^\s;&|()])\d{1,2})?(?:<<<|<<-?|>>|>\||<>|<|>)(?!\())"
    r"[ \t]*(?:&[ \t]*(?:\d{1,2}|-)|(?:\"[^\"]*\"|'[^']*'|\\.|[^\s;&|()<>\"'\\])+))",
    re.DOTALL,
)
_PROGRAM = re.compile(r"\s*(?:which|command\s+-v|type\s+-p)\s+(?P<name>[\w.+-]{1,60})\s*")
_NAME = re.compile(r"\$?\{?\b([A-Za-z_]\w*)\b\}?")
#: Longer expressions are not computed.
_LONGEST_SUM = 120
_SUM = re.compile(r"[\d\s+\-*/%()]+")
_MOST = 10**12


def _divided(one: int, by: int) -> int:
    """As a shell divides: toward zero."""
    return abs(one) // abs(by) * (1 if (one < 0) == (by < 0) else -1)


_SUMS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divided,
    ast.Mod: lambda one, by: one - by * _divided(one, by),
}


class Masked(NamedTuple):
    """A line without substitutions.

    Attributes:
        line: with a value or an unknown variable instead of each.
        bodies: the commands inside of those that are not known.
    """

    line: str
    bodies: tuple[str, ...] = ()


def masked(line: str, value_of: Callable[[str], str | None]) -> Masked:
    """Replaces each substitution that a shell computes, where `value_of` knows some variables.

    >>> masked("N=$((G * 2)) P=$(port) T=$(which torchrun)", {"G": "4"}.get)[0].split()[::2]
    ['N=8', 'T=torchrun']
    """
    if "$(" not in line and "`" not in line:
        return Masked(line)
    made: list[str] = []
    bodies: list[str] = []
    place = 0
    while place < len(line):
        if line.startswith("$(", place):
            end = _closing(line, place + 1)
            body = line[place + 2 : end - 1]
        elif line[place] == "`" and (end := line.find("`", place + 1) + 1) > 0:
            body = line[place + 1 : end - 1]
        else:
            made.append(line[place])
            place += 1
            continue
        known = _computed(body, value_of)
        made.append(COMPUTED if known is None else known)
        if known is None:
            bodies.append(body)
        place = end
    return Masked("".join(made), tuple(bodies))


def _computed(body: str, value_of: Callable[[str], str | None]) -> str | None:
    if body.startswith("(") and body.endswith(")"):
        return _sum(body[1:-1], value_of)
    found = _PROGRAM.fullmatch(re.sub(r"\s*2>\s*/dev/null\s*", "", body[:200]))
    return found["name"] if found else None


def _sum(text: str, value_of: Callable[[str], str | None]) -> str | None:
    """The value of `$((…))`; None if it is not an expression of known whole numbers.

    >>> _sum("64 / (N*4)", {"N": "8"}.get), _sum("A + 1", {}.get), _sum("8/0", {}.get)
    ('2', None, None)
    """
    if len(text) > _LONGEST_SUM:
        return None
    text = _NAME.sub(lambda found: value_of(found[1]) or found[0], text)
    if len(text) > _LONGEST_SUM or not _SUM.fullmatch(text) or "**" in text or "//" in text:
        return None
    try:
        return str(_value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, OverflowError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        found = node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = -_value(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        found = _SUMS[type(node.op)](_value(node.left), _value(node.right))
    else:
        raise ValueError
    if abs(found) > _MOST:
        raise ValueError
    return found


def _closing(line: str, place: int) -> int:
    """The place after the closing bracket; after the end of the line if there is none."""
    depth = 0
    for at in range(place, len(line)):
        depth += (line[at] == "(") - (line[at] == ")")
        if not depth:
            return at + 1
    return len(line) + 1


def plain(line: str) -> str:
    """A line without comments, redirections and their targets.

    >>> plain("torchrun t.py --a '>' --b c#d > log 2>&1 | tee -a x &>> y  # e").split()
    ['torchrun', 't.py', '--a', "'>'", '--b', 'c#d', '|', 'tee', '-a', 'x']
    """
    if not _MARKS.intersection(line):
        return line
    return _LEFT_OUT.sub(
        lambda found: " " if found["redirection"] or found["comment"] else found[0], line
    )


def lexer(text: str, punctuation: str) -> shlex.shlex:
    """Splits as a shell does: at spaces and at these characters."""
    found = shlex.shlex(plain(text), posix=True, punctuation_chars=punctuation)
    found.whitespace_split = True
    found.commenters = ""  # it would take any `#` for the beginning of a comment
    return found


def array_words(text: str) -> tuple[list[str], bool]:
    """Items up to the closing bracket, and whether it exists."""
    words: list[str] = []
    try:
        for word in lexer(text, "()"):
            if word.startswith(")"):
                return words, True
            words.append(word)
    except ValueError:
        return words, False
    return words, False


def simple_commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """Words of each simple command, with the operator before it ("" = none)."""
    if not _LEXED.search(line):
        words = _BLANKS.split(line.strip(" \t\r\n"))
        if not _END.intersection(words):
            yield from [("", words)] if words != [""] else []
            return
    joint = ""
    words = []
    try:
        for word in lexer(line, ";&|()"):
            if word in _END or (word and set(word) <= set(";&|()")):
                if words:
                    yield joint, words
                joint, words = word, []
            else:
                words.append(word)
    except ValueError:  # a quote that is never closed
        return
    if words:
        yield joint, words
