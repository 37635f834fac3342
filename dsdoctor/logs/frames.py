"""The frames of a traceback, in the formats that Python and its shells print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy

#: Frames kept of a traceback: the outermost, which shows what was started, and the deepest.
KEPT_FRAMES = 16
#: Formats of Python itself, faulthandler and PyCharm.
PLAIN = lazy(
    r'File "(?P<file>[^"]{1,400})",? line (?P<line>\d{1,9})(?:,? in (?P<function>[\w.<>]{1,120}))?'
)
#: Formats of rich (`PATH:12 in f`), IPython (`PATH in f(x)`, `PATH:12, in f`), Colab and VS Code
#: (`[PATH](URL) in f(x)`, `[PATH:12](URL), in f`) and pytest (`PATH:12: in f`).
OTHER = lazy(
    r"(?P<file>(?:\b[A-Za-z]:)?[\w~./\\@+#-]{1,300}\.py)(?::(?P<line>\d{1,9}))?"
    r"(?:\]\([^\s()]{1,800}\))?[:,]?"
    r" in (?P<function>[\w.<>]{1,120})"
)
#: A cell of a notebook (IPython 8-9 core/ultratb.py; 8.0 and 8.1 wrote `Input In [3], in f()`, and
#: 4-7 `<ipython-input-3-0f1e2d> in f(x)`).
CELL = lazy(
    r"^\s{0,8}(?P<file>(?:Cell|Input) In ?\[\d{1,9}\]|<ipython-input-\d{1,9}-\w{1,40}>(?= in ))"
    r"(?:, line (?P<line>\d{1,9}))?"
    r"(?:,? in (?P<function>[\w.<>]{1,120}))?"
)
#: The first part of a frame's line that a terminal broke within the file, or before its line.
OPEN = lazy(r'^\s{0,8}File "(?:[^"]{1,400}|[^"]{1,400}",?(?: l?i?n?e?)?)$')
#: The rest of a frame's line that a terminal broke after the file.
REST = lazy(r"^\s{0,8}(?P<digits>\d{0,9}),? ?in (?P<function>[\w.<>]{1,120})\s*$")
#: What rich draws around a line: before it, and after it.
BOX = lazy(r"^[\s│|╭╰]{0,8}")
EDGE = " \t\n\r\x0b\x0c│|╮╯─"
#: The first part of a path that rich broke at the right border.
BROKEN = lazy(r"^(?:[A-Za-z]:)?[/\\][\w~./\\@+#-]{1,300}$")
#: Parts of the paths of sources that are not the user's.
LIBRARY = (
    "/pip-install-",
    "site-packages", "dist-packages", "/lib/python", "<frozen", "\\lib\\", "/lib64/python",
    ".pyx", ".pxi", "<unknown>",
    # code that packages generate: numpy, decorator, attrs, beartype, torch.fx
    "<__array_function__", "<decorator-gen-", "<attrs generated", "<@beartype", "<eval_with_key>",
)  # fmt: skip
#: What torch.compile generates: the folder has the letters of the file that follow `c` (torch
#: 2.0-2.13 _inductor/codecache.py).
INDUCTOR = lazy(r"[\\/](?P<two>[a-z2-7]{2})[\\/]c(?P=two)[a-z2-7]{40,60}\.py$")
#: What CPython generates for the classes of dataclasses.py and for named tuples (a lambda).
GENERATED = lazy(
    r'^\s*File "<string>", line \d{1,9}, in '
    r"(?:(?:\w{1,60}\.)?__(?:init|new|eq|hash)__|<lambda>)\s*$"
)
HEADS = ("Traceback (most recent call last)", "Original Traceback")


class Frame(NamedTuple):
    """One call: source file (with `/`), function ("" if not shown) and line."""

    file: str
    function: str
    line: int


def in_library(path: str) -> bool:
    """Whether a source file belongs to Python or to an installed package.

    >>> in_library("/e/lib/python3.11/site-packages/x.py"), in_library("/home/me/train.py")
    (True, False)
    """
    return any(part in path for part in LIBRARY) or INDUCTOR.search(path) is not None


def _unboxed(line: str) -> str:
    """A line without the box around it; a pattern for its end would restart at each space."""
    return BOX.sub("", line).rstrip(EDGE)


def frames_of(lines: Iterable[str]) -> tuple[Frame, ...]:
    """The frames of the last traceback in the lines, the outermost first.

    >>> frames_of(['  File "/x/a.py", line 3, in f', "│ /x/b.py:7 in g       │"])
    (Frame(file='/x/a.py', function='f', line=3), Frame(file='/x/b.py', function='g', line=7))
    >>> frames_of(['  File "/x/a.py", line 59', "9, in builder"])
    (Frame(file='/x/a.py', function='builder', line=599),)
    >>> frames_of(['  File "/x/lib/pyt', 'hon3/a.py", line 3, in _call', "_impl"])
    (Frame(file='/x/lib/python3/a.py', function='_call', line=3),)
    >>> frames_of(["│ /x/b.py      │", "│ :7 in g      │"])
    (Frame(file='/x/b.py', function='g', line=7),)
    """
    found: list[Frame] = []
    head = part = ""
    for line in lines:
        if any(text in line for text in HEADS):
            found, head, part = [], "", ""
            continue
        match = PLAIN.search(part + line)
        part = (part + line).rstrip("\r\n") if match is None else ""
        part = part if part and OPEN.match(part) else ""
        if match is None and " in " in line and (".py" in line or head.endswith(".py")):
            inner = _unboxed(line)
            match = OTHER.search(head + inner if head else inner)
        if match is None and (" In" in line or "<ipython-input-" in line):
            match = CELL.match(line)
        if match is not None:
            file = match["file"].replace("\\\\", "/").replace("\\", "/")
            found.append(Frame(file, match["function"] or "", int(match["line"] or 0)))
        elif found and not found[-1].function and (rest := REST.match(line)):
            number = int(f"{found[-1].line}{rest['digits']}"[:9])
            found[-1] = Frame(found[-1].file, rest["function"], number)
        inner = _unboxed(line) if "│" in line else ""
        head = inner if BROKEN.match(inner) else ""
    if len(found) > KEPT_FRAMES:
        found[1 : 1 - KEPT_FRAMES] = []
    return tuple(found)
