"""Finds the launch lines of a shell script or of a `bash -c` string. Pure, and no shell is started.

Only simple commands are understood: assignments, `export`, `cd` and the command itself. What a
shell would first compute (`$(…)`, loops) is left as it stands.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dsdoctor.probes.command_tables import MODULES, PROGRAMS, TRAINERS

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_END = frozenset({";", "&&", "||", "|", "&", ";;", "(", ")", "{", "}", "\n", "|&"})
#: Words in front of a command that the shell itself takes.
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "time", "exec"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class ShellCommand(NamedTuple):
    """One simple command.

    Attributes:
        line: number of its first line, from 1.
        words: its words, quotes removed, known variables put in.
    """

    line: int
    words: tuple[str, ...]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined; heredocs and comment lines are left out."""
    begun, held, until = 0, "", ""
    for number, raw in enumerate(text.splitlines(), 1):
        if until:
            until = "" if raw.strip() == until else until
            continue
        if not held and raw.lstrip().startswith("#"):
            continue
        begun = begun if held else number
        if raw.endswith("\\") and not raw.endswith("\\\\"):
            held += raw[:-1] + " "
            continue
        line, held = held + raw, ""
        if found := _HEREDOC.search(line):
            until = found[2]
        yield begun, line
    if held:
        yield begun, held


def commands(text: str) -> list[ShellCommand]:
    r"""Simple commands in order, variables that the text itself sets put in.

    >>> commands('N=2\nexport A=b\ntorchrun --nproc-per-node $N \\\n  t.py # go')[0].words
    ('torchrun', '--nproc-per-node', '2', 't.py')
    """
    known: dict[str, str] = {}
    found: list[ShellCommand] = []
    for number, line in logical_lines(text):
        for words in _simple(line):
            rest = list(words)
            while rest and rest[0] in _KEYWORDS:
                rest.pop(0)
            if rest[:1] == ["export"]:
                rest = rest[1:]
            filled = [_fill(word, known) for word in rest]
            assigned = 0
            while assigned < len(filled) and _ASSIGNMENT.match(filled[assigned]):
                assigned += 1
            if assigned == len(filled):
                known.update(word.partition("=")[::2] for word in filled)
                continue
            found.append(ShellCommand(number, tuple(filled)))
    return found


def _simple(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    try:
        for word in lexer:
            if word in _END or (word and set(word) <= set(";&|()")):
                if words:
                    yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # a quote that goes on over lines, or is never closed
        return
    if words:
        yield words


def _fill(word: str, known: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), word)


def is_launch(words: Sequence[str]) -> bool:
    """Whether a command starts a launcher or a trainer, perhaps behind `srun`, `env` or `nohup`."""
    for place, word in enumerate(words):
        name = posixpath.basename(word)
        if name in PROGRAMS or name in TRAINERS:
            # `pip install deepspeed`, `which torchrun`
            return place == 0 or not {"install", "which", "echo", "pip"} & set(words[:place])
        if re.fullmatch(r"python[\d.]*", name) and list(words[place + 1 : place + 2]) == ["-m"]:
            module = "".join(words[place + 2 : place + 3])
            return module in MODULES
    return False


def launches(text: str) -> list[ShellCommand]:
    """The launch lines of a script."""
    return [command for command in commands(text) if is_launch(command.words)]
