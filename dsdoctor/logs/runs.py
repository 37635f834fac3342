"""Several runs in one log: where the next one begins.

`nohup … >> train.log` and a log of a fixed name hold run after run. What ended the last one is
what is asked for. Most logs have no clock to separate them, so the log itself does: a run begins
with the lines with which the log began, or with the line that its launcher writes once.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import reader
from dsdoctor.logs.prefixes import MONTHS, strip_prefixes

#: Lines of the opening of a log, and how many of them make a new run, the first among them.
OPENING, ALIKE = 8, 4
#: Lines in which they are looked for.
WITHIN = 16
#: Shortest text of an opening's line, without what differs from run to run, that is searched for.
SHORTEST = 14
#: A text that occurs this often in a block does not open a run.
MOST = 200
LONGEST = 400
#: What differs between two runs: words with digits in them, and those of `date`.
CHANGING = lazy(
    r"[\w./:+-]*\d[\w./:+-]*"
    rf"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?= (?:{MONTHS})\b)|\b(?:{MONTHS})(?= [ \d]\d )"
)
#: An opening ends where something failed.
FAILED = lazy(r"Traceback|Error|Exception|Interrupt|^\s*File \"")
#: Lines that are written once, at the start of a run, by what starts it.
STARTS = (
    "nohup: ignoring input",  # GNU coreutils, src/nohup.c
    "nohup: 忽略输入",
    "main] cmd = ",  # DeepSpeed, launcher/runner.py
    "Setting OMP_NUM_THREADS environment variable for each process",  # torch, distributed/run.py
    # LSF 10.1, last line of the report that `bsub -o` appends to what a job has printed: what
    # follows is the next job's
    "The output (if any) is above this job summary",
    "queued and waiting for resources",  # Slurm, src/srun/allocate.c, src/salloc/salloc.c
)


def shape(text: str) -> str:
    """A line without what differs from run to run.

    >>> shape("Sun Jan 11 02:53:50 2026") == shape("Mon Feb  2 19:30:00 2026")
    True
    >>> shape("wandb: Syncing run v8w61f35 at 07:18:09")
    'wandb: Syncing run 0 at 0'
    """
    return " ".join(CHANGING.sub("0", strip_prefixes(text)[0][:LONGEST]).split())


class Openings:
    """Learns with which lines a log begins, and finds where they are again."""

    def __init__(self) -> None:
        self._opening: list[str] = []
        self._needle = b""
        self._above = 0  # lines of the opening in front of the one with the needle
        self._proven = False

    def learn(self, data: bytes) -> None:
        """Takes the beginning of the log."""
        for line in data[: OPENING * LONGEST * 4].split(b"\n")[: 4 * OPENING]:
            text = reader.decode(line[:LONGEST])
            if not text.strip():
                continue
            if FAILED.search(text) or len(self._opening) == OPENING:
                break
            self._opening.append(shape(text))
            if len(self._needle) < SHORTEST:
                self._needle, self._above = _fixed(text), len(self._opening) - 1
        enough = len(set(self._opening)) >= ALIKE
        if not enough or len(self._needle) < SHORTEST:
            self.forget()

    def forget(self) -> None:
        """Stops taking the first lines for the opening of a run: they recur within one.

        Those that came again below what ended a run are the opening of each.
        """
        if not self._proven:
            self._opening, self._needle = [], b""

    def prove(self) -> None:
        """Notes that the first lines came again below what ended a run."""
        self._proven = True

    def find(
        self, data: bytes, begin: int, end: int, started: Iterable[int]
    ) -> list[tuple[int, bool]]:
        """Where runs may begin in a stretch of whole lines, sorted.

        Args:
            data: a block.
            begin: place of the stretch in it.
            end: of the stretch.
            started: places of the lines of the block that hold one of STARTS.

        Returns:
            The place of the first line, and whether the log's own opening marks it.
        """
        found = dict.fromkeys(sorted(one for one in started if begin <= one < end)[:MOST], False)
        place, count = data.find(self._needle, begin, end) if self._needle else -1, 0
        while place >= 0 and count < MOST:
            count += 1
            start = data.rfind(b"\n", 0, place) + 1
            for _ in range(self._above):
                start = _line_before(data, start)
            if self._begins(data, start):
                found.setdefault(max(begin, start), True)
            place = data.find(self._needle, place + len(self._needle), end)
        return sorted(found.items())

    def _begins(self, data: bytes, start: int) -> bool:
        """Whether the opening stands at a place, also beyond the ends of a stretch."""
        stop = start + WITHIN * LONGEST
        lines = [line for line in data[start:stop].split(b"\n")[:WITHIN] if line.strip()]
        shapes = [shape(reader.decode(line[:LONGEST])) for line in lines]
        if not shapes or shapes[0] != self._opening[0]:
            return False
        return len(set(self._opening) & set(shapes)) >= ALIKE


def _fixed(text: str) -> bytes:
    """The longest text of a line that does not differ from run to run, if it has words."""
    told = max(CHANGING.split(text), key=len).strip()
    words = sum(one.isalpha() for one in told)
    return told.encode("utf-8", "replace") if words * 2 >= len(told.replace(" ", "")) else b""


def _line_before(data: bytes, start: int) -> int:
    """Start of the line in front of the one that starts here, blank ones left out."""
    while start > 0:
        end = start - 1
        start = data.rfind(b"\n", 0, end) + 1
        if data[start:end].strip():
            break
    return start
