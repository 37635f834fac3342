"""Lines of a given width, for texts with wide characters too."""

from __future__ import annotations

import functools
import os
import sys
import textwrap
from collections.abc import Iterable

#: Marks that no line begins with.
_CLOSING = "，。；：、！？）》」』%)],.;:"
#: Stands for a blank at which no line ends; no text has it.
_BLANK = "\0"


def terminal_columns(default: int) -> int:
    """Columns of the terminal, as `shutil.get_terminal_size` returns them.

    Importing `shutil` would load three compressors.

    Args:
        default: result if the output does not go to a terminal and `COLUMNS` is not set.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or default  # type: ignore[union-attr]  # see below
    except (AttributeError, ValueError, OSError):  # closed, replaced, or no terminal
        return default


@functools.cache
def _width(character: str) -> int:
    import unicodedata  # noqa: PLC0415  # a library that a report in ASCII does not need

    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns_of(text: str) -> int:
    """Columns that a text takes on a terminal.

    >>> columns_of("GPU 显存不足")
    12
    """
    return sum(map(_width, text))


def _pieces(text: str, *, break_commands: bool) -> list[str]:
    """Unbreakable pieces: words with the space after them, or single wide characters.

    Args:
        text: what to divide.
        break_commands: also within backticks.
    """
    pieces: list[str] = []
    commands = 0 if break_commands else text.count("`") // 2
    backticks = 0
    for character in text:
        wide = _width(character) == 2  # noqa: PLR2004
        within = backticks % 2 == 1 and backticks < 2 * commands
        backticks += character == "`"
        joined = pieces and (
            within
            or character in _CLOSING
            or character == " "
            or (not wide and not pieces[-1].endswith(" ") and _width(pieces[-1][-1]) == 1)
        )
        if joined:
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _moved_left(line: str, columns: int) -> str:
    """A line without its indent, if only that makes it too long."""
    bare = line.lstrip()
    return bare if columns_of(bare) <= columns < columns_of(line) else line


def _commands_whole(text: str) -> str:
    """A text whose blanks within backticks are no places for a line break."""
    parts = text.split("`")
    last = len(parts) - 1  # what follows a backtick without a second one is no command
    parts[1:last:2] = [part.replace(" ", _BLANK) for part in parts[1:last:2]]
    return "`".join(parts)


def wrap(text: str, columns: int, first: str, indent: str, *, break_long: bool) -> list[str]:
    """Lines of at most this many columns.

    A command in backticks stays whole, as it could not be copied from two lines; a terminal wraps
    a longer line without a line break in it.

    >>> wrap("run `pip install torch` again", 20, "", "  ", break_long=False)
    ['run', '`pip install torch`', '  again']
    >>> wrap("运行 `/数据/环境/bin/pip install torch`", 20, "", "  ", break_long=False)
    ['运行', '  `/数据/环境/bin/pip install torch`']

    Args:
        text: the text, without control characters.
        columns: width of the lines.
        first: beginning of the first line.
        indent: beginning of all others.
        break_long: break a word that is longer than a line, and commands too.
    """
    if not break_long and "`" in text:
        made = _wrap(_commands_whole(text), columns, first, indent, break_long=False)
        return [_moved_left(line.replace(_BLANK, " "), columns) for line in made]
    return _wrap(text, columns, first, indent, break_long=break_long)


def listed(rows: Iterable[tuple[str, str]], least: int) -> str:
    """Rows of a head and a text; on a terminal, a text is wrapped below its beginning.

    Args:
        rows: their heads are padded to one width.
        least: columns of the narrowest list.
    """
    columns = max(least, terminal_columns(0) or 1000)
    return "".join(
        f"{line}\n"
        for head, text in rows
        for line in wrap(text, columns, head, " " * len(head), break_long=False)
    )


def _wrap(text: str, columns: int, first: str, indent: str, *, break_long: bool) -> list[str]:
    if text.isascii() or not any(_width(character) == 2 for character in text):  # noqa: PLR2004
        return textwrap.wrap(
            text,
            columns,
            initial_indent=first,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=break_long,
        )
    lines, line = [], first
    room = columns - columns_of(indent)
    pieces = _pieces(text, break_commands=break_long)
    if break_long:
        pieces = [part for one in pieces for part in ([one] if columns_of(one) <= room else one)]
    for piece in pieces:
        if columns_of((line + piece).rstrip()) > columns and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += piece
    return [*lines, line.rstrip()]
