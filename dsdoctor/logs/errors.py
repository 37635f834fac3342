"""Exceptions and other fatal errors: collects tracebacks line by line, separately per rank."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.frames import GENERATED, Frame, in_library
from dsdoctor.logs.open_traceback import OpenTraceback, behind_head
from dsdoctor.logs.plain_errors import (
    NAMED_EXCEPTION,
    NAMED_LITERALS,
    PLAIN_LITERALS,
    QUOTE,
    plain_error,
)
from dsdoctor.logs.progress import Steps

#: Tracebacks kept of one log.
KEPT_ERRORS = 40
#: Longest text that is kept of a line.
LONGEST = 4000
#: Lines of its own rank after which a traceback without an end is given up.
LONGEST_TRACEBACK = 600
#: Lines at the end of a log in which a traceback that begins there may lack its exception.
UNFINISHED_LINES = 12
#: Lines of any rank after which a traceback without an end is given up.
OLDEST_TRACEBACK = 4000

TRACEBACK = "Traceback (most recent call last)"
#: How rich draws a traceback (10.0-14.1 traceback.py, panel.py): its head, and each further line of
#: the box. The exception follows below the box.
BOX_HEAD, BOXED = ("╭", "┌", "+-"), ("│", "┃", "|", "╰", "└", "+-")
#: The head of a rank's traceback, directly after another rank's output on the same line.
GLUED_HEAD = lazy(r"(?<=\S)\[rank(?P<rank>\d{1,6})\]: (?=Traceback \()")
EXCEPTION = lazy(
    r"^(?:\|?\s*)?(?P<type>(?!_Unwind_)(?:[A-Za-z_]\w*\.){0,8}[A-Za-z_]\w*"
    r"(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Mismatch\w*|NotFound|Warning)"
    r"|Exception(?=: \S))"
    r"(?:\(\w{1,80}\))?"  # Ray's wrapper names the exception of the task
    r"(?::\s(?P<message>.*)|:?\s*$)",
)
#: The exception in pytest's report of a failed test (pytest 3-8 _pytest/_code/code.py). What the
#: test had printed follows it.
PYTEST = lazy(r"^E {2,12}(?=[A-Za-z_])")
#: What stands before it in SageMaker's report of a script (sagemaker-training 3-5 errors.py).
SAGEMAKER = 'ErrorMessage "'
#: At the end of a traceback: a class with any name. A lower-case name without a module is a line of
#: source code that ranks have written into each other.
ANY_EXCEPTION = lazy(
    r"^(?P<type>(?:(?:[A-Za-z_]\w*\.){1,8}[A-Za-z_]|_*[A-Z])\w*)(?::\s(?P<message>.*)|:?\s*$)",
)
FRAME = lazy(r'^\s*File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9})')
#: How Markdown ends a quoted block.
FENCE = "```"
#: What Python prints between the exceptions of one chain.
CHAINS = ("During handling of the above exception", "was the direct cause of the following")
#: What is printed above the traceback of an exception that ends nothing: by Python if it ignores
#: one, mostly in finalizers, by its logging (3.8-3.14 logging/__init__.py) of a wrong call, and by
#: torch's compiler of its own helper process (2.13 _inductor/compile_worker), which may live on.
ENDS_NOTHING = (
    "Exception ignored", "--- Logging error ---", "Uncaught exception in compile_worker subprocess"
)  # fmt: skip
#: What asyncio (CPython 3.8-3.14 asyncio/tasks.py, futures.py) prints above the exception of a task
#: that nobody waited for, and above the line that describes the task. The program goes on.
UNRETRIEVED = "exception was never retrieved"
#: Lines between an exception whose text ends with a colon and the traceback that is its reason.
REASON_LINES = 3
ERROR_LITERALS = (
    TRACEBACK,
    "Error",
    "Exception",
    "Interrupt",
    *ENDS_NOTHING,
    UNRETRIEVED,
    *PLAIN_LITERALS,
    *NAMED_LITERALS,
    *CHAINS,
)
#: What CPython 3.8-3.14 raises for any wrong call or unpacking (Python/ceval.c): a product that
#: raises the same words is identified by the place alone.
PYTHONS_WORDS = lazy(
    r"\(\) (?:got an unexpected keyword|got multiple values|missing \d+ required|takes \d+)"
    r"|(?:not enough|too many) values to unpack"
)


class Error(msgspec.Struct, frozen=True, eq=False):
    """An exception, or another fatal error, in a log.

    Attributes:
        source: index of the log.
        line: number of the line that contains its type.
        rank: the rank, if known.
        type: name of the exception.
        message: its text.
        file: source file of the deepest frame outside libraries.
        file_line: line in that file.
        text: the line.
        when: time stamp of the line or of one shortly before it, "" if there is none.
        traced: it ends a traceback.
        library: source file of the deepest frame.
        frames: its calls, the deepest last, as far as the lines before it show them.
        more: the lines after it, on which its text may continue.
        further: the lines of its rank after it, for the few texts of many lines.
        begun: number of the line at which its traceback begins.
        chain: number that the exceptions of one chain share.
        steps: how far training had come.
        undated: its time stamp is that of an earlier line.
        unretrieved: it ended a task of asyncio that nobody waited for.
        process: name of the child process that it ended, as `multiprocessing` prints it above.
    """

    source: int
    line: int
    rank: int | None
    type: str
    message: str
    file: str
    file_line: int
    text: str
    traced: bool
    when: str = ""
    library: str = ""
    frames: tuple[Frame, ...] = ()
    more: str = ""
    further: str = ""
    begun: int = 0
    chain: int = 0
    steps: Steps = msgspec.field(default_factory=dict)
    undated: bool = False
    unretrieved: bool = False
    process: str = ""


class Tracebacks:
    """Reads lines of one log in order and keeps the exceptions.

    Attributes:
        index: index of the log.
        errors: the exceptions, in order, at most KEPT_ERRORS.
        found: how many were added, including those that later ones replaced.
        latest: keep the last exceptions, not the first.
        ignored: first and last line, rank and exception of tracebacks that Python ignored.
        cut: a quotation ended before the exception of its traceback.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.errors: list[Error] = []
        self.found = 0
        self.latest = False
        self._open: dict[int | None, OpenTraceback] = {}
        self._chained: set[int | None] = set()
        self._chains: dict[int | None, int] = {}
        self._unraisable: dict[int | None, int] = {}
        self._unretrieved: dict[int | None, int] = {}
        self._open_end: dict[int | None, int] = {}
        self.ignored: list[tuple[int, int, int | None, str]] = []
        self.cut = False

    def in_source(self, text: str, rank: int | None) -> bool:
        """Whether a line is the `raise` statement that a traceback quotes."""
        trace = self._open.get(rank)
        return trace is not None and trace.source and text.lstrip().startswith("raise ")

    @property
    def busy(self) -> bool:
        """Whether a traceback is open, so every line matters."""
        return bool(self._open)

    @property
    def full(self) -> bool:
        """Whether no more exceptions are kept."""
        return len(self.errors) >= KEPT_ERRORS and not self.latest

    def line(
        self,
        text: str,
        number: int,
        rank: int | None,
        literals: set[str],
    ) -> None:
        """Reads a line.

        Args:
            text: the line, without prefixes.
            number: its number, from 1.
            rank: the rank that printed it.
            literals: the literals that it contains.
        """
        if any(words in literals for words in CHAINS):
            self._chained.add(rank)
        if not literals.isdisjoint(ENDS_NOTHING):
            self._unraisable[rank] = number
        if UNRETRIEVED in literals:
            self._unretrieved[rank] = number
        if TRACEBACK in literals and TRACEBACK in text:
            head = GLUED_HEAD.search(text)
            if head is not None:
                text, rank = text[head.start() :], int(head["rank"])
            self._begun(text, number, rank)
            return
        trace = self._open.get(rank)
        if trace is not None and trace.head:
            text, trace = behind_head(text, trace)
        stripped = text.strip()
        if trace is not None:
            self._traced(trace, text, stripped, number, rank)
        elif literals:
            self._plain(stripped, number, rank, literals)
        if self._open and number % LONGEST_TRACEBACK == 0:
            old = [r for r, one in self._open.items() if number - one.begun > OLDEST_TRACEBACK]
            for one in old:
                del self._open[one]

    def unfinished(self, last: int) -> bool:
        """Whether a traceback that begins shortly before a line has no exception up to there.

        Other lines may have been written into it.
        """
        return any(
            not trace.ignored
            and last - (trace.box or trace.begun) < UNFINISHED_LINES
            and (trace.deepest or trace.box)
            for trace in self._open.values()
        )

    def _begun(self, text: str, number: int, rank: int | None) -> None:
        if self.full:
            return
        ignored = self._unraisable.pop(rank, -REASON_LINES) >= number - 1
        if self._open_end.pop(rank, -REASON_LINES) >= number - REASON_LINES:
            self._chained.add(rank)  # it is the reason for the exception above it
        unretrieved = self._unretrieved.pop(rank, -REASON_LINES) >= number - REASON_LINES
        indent = len(text) - len(text.lstrip())
        at = text.find(TRACEBACK)
        head = text[:at].strip() and text[:at]
        box = number if head.lstrip().startswith(BOX_HEAD) else 0
        self._open[rank] = OpenTraceback(
            indent, number, ignored=ignored, unretrieved=unretrieved, head=head, box=box,
            joined=f'{TRACEBACK}:  File "' in text,
        )  # fmt: skip

    def _traced(
        self,
        trace: OpenTraceback,
        text: str,
        stripped: str,
        number: int,
        rank: int | None,
    ) -> None:
        trace.seen += 1
        trace.source = False
        if trace.box and stripped.startswith(BOXED):
            trace.box = number
        if stripped.startswith(FENCE):  # the document continues after the quotation
            del self._open[rank]
            self.cut = self.cut or not trace.ignored
            return
        if frame := FRAME.match(text):
            trace.source = True
            trace.deepest = frame["file"]
            if not (in_library(frame["file"]) or GENERATED.match(text)):
                trace.file, trace.line = frame["file"], int(frame["line"])
            return
        indent = len(text) - len(text.lstrip())
        found = EXCEPTION.match(stripped)
        if found is None and indent <= trace.indent and stripped and not trace.joined:
            found = ANY_EXCEPTION.match(stripped)
        if found is not None and indent <= trace.indent + 1:
            del self._open[rank]
            if trace.ignored:
                self.ignored.append((trace.begun, number, rank, stripped))
                return
            self._add(stripped, number, rank, found["type"], found["message"] or "", trace)
            if stripped.endswith(":") and found["message"]:
                self._open_end[rank] = number
        elif trace.seen > LONGEST_TRACEBACK:
            del self._open[rank]

    def _plain(
        self,
        stripped: str,
        number: int,
        rank: int | None,
        literals: set[str],
    ) -> None:
        stripped = stripped.removeprefix(QUOTE)
        if found := EXCEPTION.match(PYTEST.sub("", stripped.removeprefix(SAGEMAKER))):
            if not found["type"].endswith("Warning"):
                self._add(stripped, number, rank, found["type"], found["message"] or "")
            return
        if any(literal in NAMED_LITERALS for literal in literals) and (
            found := NAMED_EXCEPTION.match(stripped)
        ):
            if not found["type"].endswith("Warning"):
                self._add(stripped, number, rank, found["type"], found["message"] or "")
            return
        if not any(literal in PLAIN_LITERALS for literal in literals):
            return
        if plain := plain_error(stripped):
            name, message, frames = plain
            self._add(stripped, number, rank, name, message)
            if frames and self.errors:
                self.errors[-1] = msgspec.structs.replace(self.errors[-1], frames=frames)

    def _add(
        self,
        text: str,
        number: int,
        rank: int | None,
        kind: str,
        message: str,
        trace: OpenTraceback | None = None,
    ) -> None:
        if self.full:
            return
        self.found += 1
        if len(self.errors) >= KEPT_ERRORS:
            del self.errors[0]
        self.errors.append(
            Error(
                source=self.index,
                line=number,
                rank=rank,
                type=kind.rsplit(".", 1)[-1],
                message=message[:LONGEST],
                file=trace.file if trace else "",
                file_line=trace.line if trace else 0,
                text=text[:LONGEST],
                traced=trace is not None,
                library=trace.deepest if trace else "",
                begun=trace.begun if trace else number,
                chain=self._chain(rank, number),
                unretrieved=trace is not None and trace.unretrieved,
            ),
        )

    def _chain(self, rank: int | None, number: int) -> int:
        """The number of an exception's chain: the line number of the first exception in it."""
        if rank not in self._chained:
            self._chains[rank] = number
        self._chained.discard(rank)
        return self._chains.setdefault(rank, number)

    def begin(self) -> None:
        """Starts over, for another run in the same log."""
        self.errors = []
        self._open.clear()
        self._chained.clear()
        self._chains.clear()
        self._unraisable.clear()
        self._unretrieved.clear()
        self._open_end.clear()

    def forget(self, over: Callable[[Error], bool]) -> None:
        """Drops the exceptions that the run outlived, to make room for others."""
        self.errors = [error for error in self.errors if not over(error)]
