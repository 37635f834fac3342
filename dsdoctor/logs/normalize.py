"""Restores the original wording of lines that terminals, browsers or translations changed.

A signature matches the program's own wording. What reaches a log may be broken over two lines,
drawn into a box, escaped for HTML or a URL, or written by an operating system in another language.
"""

from __future__ import annotations

import errno
import os
import re
import urllib.parse
from collections.abc import Iterator, Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.foreign import translated
from dsdoctor.logs.signals_said import said_by_bash

#: A terminal is unlikely to have broken a shorter line.
SHORTEST_BROKEN = 56
BOX = lazy(r"^[\s│╭╰]{0,8}(?:❱?\s{0,8}\d{1,6} ?│)?[\s│]{0,40}|[\s│╮╯]{0,300}$")
QUOTES = str.maketrans("‘’“”`´«»", "''\"\"''\"\"")
#: A fence of Markdown after `QUOTES` was applied.
FENCE = "'''"
#: Messages of the Windows loader and linker by number, whatever the language.
WINDOWS = {
    "2": "The system cannot find the file specified",
    "3": "The system cannot find the path specified",
    "5": "Access is denied",
    "32": "The process cannot access the file because it is being used by another process",
    "126": "The specified module could not be found",
    "127": "The specified procedure could not be found",
    "1114": "A dynamic link library (DLL) initialization routine failed",
    "1314": "A required privilege is not held by the client",
    "1455": "The paging file is too small for this operation to complete",
    "10049": "The requested address is not valid in its context",
    "10060": "A connection attempt failed",
}
WINERROR = lazy(r"\[WinError (?P<number>\d{1,5})\] (?P<words>[^:]{0,200})")
ERRNO = lazy(r"\[Errno (?P<number>\d{1,3})\] (?P<words>[^:']{0,200}[^:' ])")
LINKER = lazy(
    r"fatal error (?P<code>LNK1(?:104|181)): ?[^'\"]{0,80}['\"](?P<file>[\w.+-]{1,80})['\"]"
)
COMPILER = lazy(r"error (?P<code>C1083): ?[^'\"]{0,80}['\"](?P<file>[\w./\\+-]{1,120})['\"]")
ESCAPED = lazy(r"%(?:20|22|27|28|3[A-F])", re.IGNORECASE)


def _windows(found: re.Match[str]) -> str:
    words = WINDOWS.get(found["number"])
    return f"[WinError {found['number']}] {words}" if words else found[0]


def _posix(found: re.Match[str]) -> str:
    number = int(found["number"])
    return f"[Errno {number}] {os.strerror(number)}" if number in errno.errorcode else found[0]


def reworded(text: str) -> str:
    """A line without boxes and escapes, and in English if its error number determines the words.

    >>> reworded("libx.so:%20undefined%20symbol:%20f")
    'libx.so: undefined symbol: f'
    >>> reworded("OSError: [WinError 126] Das angegebene Modul wurde nicht gefunden")
    'OSError: [WinError 126] The specified module could not be found'
    >>> reworded("a.h:5:10: 致命错误：Python.h：没有那个文件或目录")
    'a.h:5:10: fatal error: Python.h: No such file or directory'
    """
    if ESCAPED.search(text):
        text = urllib.parse.unquote(text)
    if "&" in text:
        import html  # noqa: PLC0415  # its table of names is long

        text = html.unescape(text)
    text = BOX.sub("", text).translate(QUOTES).replace("\\\\", "\\").replace("\\'", "'")
    text = text.removeprefix("> ")
    text = said_by_bash(translated(text))
    text = WINERROR.sub(_windows, text)
    text = ERRNO.sub(_posix, text)
    text = LINKER.sub(r"fatal error \g<code>: cannot open input file '\g<file>'", text)
    return COMPILER.sub(r"error \g<code>: Cannot open include file: '\g<file>'", text)


def variants(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Other readings of numbered lines: each in the original wording, and joined with the next.

    Lines are joined if a terminal may have broken them: the first is long, or is an error whose
    sentence continues, and the second does not start a new message.
    """
    plain = [(number, reworded(text)) for number, text in lines]
    for place, (number, text) in enumerate(plain):
        yield number, text
        following = [row[1].strip() for row in plain[place + 1 : place + 3]]
        if not text or not following or not following[0]:
            continue
        first = following[0]
        # source code that a traceback or a document quotes
        if first == "raise" or first.startswith(("raise ", FENCE)):
            continue
        broken = len(text) >= SHORTEST_BROKEN and not first.startswith(("File ", "Traceback", "["))
        if broken or text.endswith(":"):
            yield number, f"{text} {first}"
            if broken:
                yield number, text + first
            if len(following) > 1 and following[1] and not following[1].startswith(FENCE):
                yield number, f"{text} {first} {following[1]}"
