"""Exceptions and other deaths: tracebacks joined line by line, one per rank."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from dsdoctor.logs.frames import Frame
from dsdoctor.logs.progress import Steps

#: Tracebacks kept of one log.
KEPT_ERRORS = 40
#: Longest text that is kept of a line.
LONGEST = 4000
#: Lines of its own rank that a traceback may run on before it is given up.
LONGEST_TRACEBACK = 600
#: Lines of any rank after which a traceback without an end is given up.
OLDEST_TRACEBACK = 4000

TRACEBACK = "Traceback (most recent call last)"
EXCEPTION = re.compile(
    r"^(?:\|?\s*)?(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Za-z_]\w*"
    r"(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Mismatch\w*|NotFound|Warning))"
    r"(?::\s(?P<message>.*)|:?\s*$)",
)
ANY_EXCEPTION = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Za-z_]\w*)(?::\s(?P<message>.*)|:?\s*$)",
)
FRAME = re.compile(r'^\s*File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9})')
PLAIN_ERRORS = (
    (
        re.compile(r": error: (?P<message>(?:unrecognized|the following) arguments.*|argument .*)"),
        "SystemExit",
    ),
    (re.compile(r"can't open file (?P<message>.*)"), "FileNotFoundError"),
    (re.compile(r"(?P<message>.{0,400}Assertion `[^`]*` failed.*)"), "DeviceAssert"),
)
PLAIN_LITERALS = (
    "error: unrecognized arguments",
    "error: the following arguments",
    "error: argument ",
    "can't open file",
    "Assertion `",
)
#: What Python writes between the exceptions of one chain.
CHAINS = ("During handling of the above exception", "was the direct cause of the following")
ERROR_LITERALS = (TRACEBACK, "Error", "Exception", "Interrupt", *PLAIN_LITERALS, *CHAINS)
LIBRARY = ("site-packages", "dist-packages", "/lib/python", "<frozen", "\\lib\\", "/lib64/python")


@dataclasses.dataclass(frozen=True)
class Error:
    """An exception, or a death by other means, seen in the log.

    Attributes:
        source: index of the log.
        line: number of the line that names it.
        rank: the rank, where told.
        type: name of the exception.
        message: its text.
        file: source file of the deepest frame that is not a library's.
        file_line: line in it.
        text: the line.
        when: time stamp, "" without.
        traced: it stood under a traceback.
        library: deepest frame of all.
        frames: calls above it, the deepest last, as far as the lines in front of it tell.
        more: the lines behind it, on which its text may go on.
        begun: number of the line at which its traceback begins.
        chain: number that the exceptions of one chain share.
        steps: how far the run had come.
    """

    source: int
    line: int
    rank: int | None
    type: str
    message: str
    file: str
    file_line: int
    text: str
    when: str
    traced: bool
    library: str = ""
    frames: tuple[Frame, ...] = ()
    more: str = ""
    begun: int = 0
    chain: int = 0
    steps: Steps = dataclasses.field(default_factory=dict, hash=False)


@dataclasses.dataclass
class _Trace:
    """A traceback that is being read."""

    indent: int
    begun: int
    file: str = ""
    line: int = 0
    deepest: str = ""
    seen: int = 0


class Tracebacks:
    """Reads lines of one log in order and keeps the exceptions.

    Attributes:
        errors: what was found, in order, at most KEPT_ERRORS.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.errors: list[Error] = []
        self._open: dict[int | None, _Trace] = {}
        self._chained: set[int | None] = set()
        self._chains: dict[int | None, int] = {}

    @property
    def busy(self) -> bool:
        """A traceback is open, so that every line matters."""
        return bool(self._open)

    @property
    def full(self) -> bool:
        """No more is kept."""
        return len(self.errors) >= KEPT_ERRORS

    def line(
        self,
        text: str,
        number: int,
        rank: int | None,
        literals: set[str],
        when: Callable[[], str],
    ) -> None:
        """Takes a line.

        Args:
            text: without prefixes.
            number: of the line, from 1.
            rank: who wrote it.
            literals: anchors of any kind in it.
            when: gives its time stamp.
        """
        if any(words in literals for words in CHAINS):
            self._chained.add(rank)
        if TRACEBACK in literals and TRACEBACK in text:
            if not self.full:
                self._open[rank] = _Trace(len(text) - len(text.lstrip()), number)
            return
        stripped = text.strip()
        trace = self._open.get(rank)
        if trace is not None:
            self._traced(trace, text, stripped, number, rank, when)
        elif literals:
            self._plain(stripped, number, rank, literals, when)
        if self._open and number % LONGEST_TRACEBACK == 0:
            old = [r for r, one in self._open.items() if number - one.begun > OLDEST_TRACEBACK]
            for one in old:
                del self._open[one]

    def _traced(
        self,
        trace: _Trace,
        text: str,
        stripped: str,
        number: int,
        rank: int | None,
        when: Callable[[], str],
    ) -> None:
        trace.seen += 1
        if frame := FRAME.match(text):
            trace.deepest = frame["file"]
            if not any(part in frame["file"] for part in LIBRARY):
                trace.file, trace.line = frame["file"], int(frame["line"])
            return
        indent = len(text) - len(text.lstrip())
        found = EXCEPTION.match(stripped)
        if found is None and indent <= trace.indent and stripped:
            found = ANY_EXCEPTION.match(stripped)
        if found is not None and indent <= trace.indent + 1:
            del self._open[rank]
            self._add(stripped, number, rank, found["type"], found["message"] or "", when, trace)
        elif trace.seen > LONGEST_TRACEBACK:
            del self._open[rank]

    def _plain(
        self,
        stripped: str,
        number: int,
        rank: int | None,
        literals: set[str],
        when: Callable[[], str],
    ) -> None:
        if found := EXCEPTION.match(stripped):
            if not found["type"].endswith("Warning"):
                self._add(stripped, number, rank, found["type"], found["message"] or "", when)
            return
        if not any(literal in PLAIN_LITERALS for literal in literals):
            return
        for pattern, name in PLAIN_ERRORS:
            if plain := pattern.search(stripped):
                self._add(stripped, number, rank, name, plain["message"], when)
                return

    def _add(
        self,
        text: str,
        number: int,
        rank: int | None,
        kind: str,
        message: str,
        when: Callable[[], str],
        trace: _Trace | None = None,
    ) -> None:
        if self.full:
            return
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
                when=when(),
                traced=trace is not None,
                library=trace.deepest if trace else "",
                begun=trace.begun if trace else number,
                chain=self._chain(rank, number),
            ),
        )

    def _chain(self, rank: int | None, number: int) -> int:
        """The number of the chain that an exception belongs to: of the line of its first."""
        if rank not in self._chained:
            self._chains[rank] = number
        self._chained.discard(rank)
        return self._chains.setdefault(rank, number)

    def forget(self, over: Callable[[Error], bool]) -> None:
        """Drops the exceptions that the run outlived, so that there is room for others."""
        self.errors = [error for error in self.errors if not over(error)]
