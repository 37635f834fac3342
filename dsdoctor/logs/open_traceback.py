"""A traceback of which the exception has not come yet."""

from __future__ import annotations

import msgspec

from dsdoctor.lazy_regex import lazy

#: The head of a logger's line at the level of a warning: Python's logging, torch's (glog).
WARNED_HEAD = lazy(r"(?:^|[\s\[|:-])WARN(?:ING)?(?:[\]\s:|-]|$)|(?:^|\s)W\d{4} \d\d:\d\d:")


class OpenTraceback(msgspec.Struct):
    """A traceback that is being read.

    Attributes:
        indent: indentation of its first line.
        begun: number of its first line.
        file: source file of the deepest frame outside libraries so far.
        line: line in that file.
        deepest: source file of the deepest frame so far.
        seen: lines read so far.
        ignored: Python ignores the exception, or it is that of a helper process.
        unretrieved: the exception ended a task of asyncio that nobody waited for.
        source: the last line was a frame, so a line of source code follows.
        head: text before `Traceback` on its first line, mostly a logger's prefix.
        headed: the second line begins with `head` too, so all lines do.
        box: number of its last line that belongs to a box around it, 0 without a box.
        joined: its first frame stands on its first line, as in the stack that NumPy (2.0-2.4
            core/_multiarray_umath.py) shows and that no exception ends.
    """

    indent: int
    begun: int
    file: str = ""
    line: int = 0
    deepest: str = ""
    seen: int = 0
    ignored: bool = False
    unretrieved: bool = False
    source: bool = False
    head: str = ""
    headed: bool = False
    box: int = 0
    joined: bool = False


def behind_head(text: str, trace: OpenTraceback) -> tuple[str, OpenTraceback | None]:
    """Removes the head from a line of a traceback that a logger prints with a head on each line.

    The second value is None if the line has no head, so it does not belong to the traceback.
    An exception that is logged as a warning was caught.
    """
    if text.startswith(trace.head):
        if not trace.headed:
            trace.headed, trace.indent = True, 0
            trace.ignored = trace.ignored or WARNED_HEAD.search(trace.head) is not None
        return text[len(trace.head) :], trace
    return text, None if trace.headed else trace
