"""Several runs in one log: where the next one begins.

`nohup … >> train.log` and a log with a fixed name contain several runs. A diagnosis has to explain
what ended the last one. Most logs have no time stamps to separate runs, so their lines have to: a
run begins with the lines that the log began with, or with the line that its launcher prints once.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import reader
from dsdoctor.logs.prefixes import MONTHS, strip_prefixes

#: Lines of the opening of a log, and how many of them, including the first, mark a new run.
OPENING, ALIKE = 8, 4
#: Lines that are searched for them.
WITHIN = 16
#: Characters of the constant text in the opening that is searched for: that of the first line with
#: ENOUGH, if possible one that the opening contains once, else the longest, if it has SHORTEST. It
#: only has to be rare: ALIKE lines decide.
ENOUGH, SHORTEST = 14, 10
#: Most places in a block that are examined.
MOST = 200
LONGEST = 400
#: What differs between two runs: words with digits in them, and those of `date`.
CHANGING = lazy(
    r"[\w./:+-]*\d[\w./:+-]*"
    rf"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?= (?:{MONTHS})\b)|\b(?:{MONTHS})(?= [ \d]\d )"
)
#: An opening ends where something failed.
FAILED = lazy(r"Traceback|Error|Exception|Interrupt|^\s*File \"")
#: Lines that the launcher of a run prints once, at its start.
STARTS = (
    "nohup: ignoring input",  # GNU coreutils, src/nohup.c
    "nohup: 忽略输入",
    "main] cmd = ",  # DeepSpeed, launcher/runner.py
    "Setting OMP_NUM_THREADS environment variable for each process",  # torch, distributed/run.py
    # LSF 10.1, last line of the report that `bsub -o` appends to a job's output: the next job
    # follows
    "The output (if any) is above this job summary",
    "queued and waiting for resources",  # Slurm, src/srun/allocate.c, src/salloc/salloc.c
)


def shape(text: str) -> str:
    """A line without the parts that differ from run to run.

    >>> shape("Sun Jan 11 02:53:50 2026") == shape("Mon Feb  2 19:30:00 2026")
    True
    >>> shape("wandb: Syncing run v8w61f35 at 07:18:09")
    'wandb: Syncing run 0 at 0'
    """
    return " ".join(CHANGING.sub("0", strip_prefixes(text)[0][:LONGEST]).split())


class Openings:
    """Learns the lines that a log begins with, and finds where they recur."""

    def __init__(self) -> None:
        self._opening: list[str] = []
        self._needle = b""
        self._above = 0  # lines of the opening in front of the one with the needle
        self._proven = False

    def learn(self, data: bytes) -> None:
        """Learns the opening from the beginning of the log."""
        texts: list[bytes] = []
        for line in data[: OPENING * LONGEST * 4].split(b"\n")[: 4 * OPENING]:
            text = reader.decode(line[:LONGEST])
            if not text.strip():
                continue
            if FAILED.search(text) or len(self._opening) == OPENING:
                break
            self._opening.append(shape(text))
            texts.append(_fixed(text))
        self._needle, self._above = self._rarest(texts)
        enough = len(set(self._opening)) >= ALIKE
        if not enough or len(self._needle) < SHORTEST:
            self.forget()

    def _rarest(self, texts: list[bytes]) -> tuple[bytes, int]:
        """The text to search for, and how many lines are above it.

        Workers print again what a module prints when it is imported, so a line that the opening
        itself contains twice is the last choice.
        """
        places = range(len(texts))
        once = [place for place in places if self._opening.count(self._opening[place]) == 1]
        for among in (once, places):
            if long := [place for place in among if len(texts[place]) >= ENOUGH]:
                return texts[long[0]], long[0]
        place = max(places, key=lambda one: len(texts[one]), default=0)
        return (texts[place] if texts else b""), place

    def forget(self) -> None:
        """Stops using the first lines, which recur within a run, unless they are proven.

        They are proven if they recurred after the end of a run.
        """
        if not self._proven:
            self._opening, self._needle = [], b""

    @property
    def proven(self) -> bool:
        """Whether the first lines recurred after the end of a run."""
        return self._proven

    def prove(self) -> None:
        """Records that the first lines recurred after the end of a run."""
        self._proven = True

    def find(
        self, data: bytes, begin: int, end: int, started: Iterable[int]
    ) -> list[tuple[int, bool]]:
        """Where runs may begin in a stretch of whole lines, sorted.

        Args:
            data: a block.
            begin: start of the stretch in it.
            end: end of the stretch.
            started: starts of the lines in the block that contain one of STARTS.

        Returns:
            The start of each run's first line, and whether the log's own opening marks it.
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
        """Whether the opening is at a place; it may extend beyond the stretch.

        If the first line is there several times, as each node printed it, the run begins above.
        """
        above = data[_line_before(data, start) : start].split(b"\n")[0][:LONGEST]
        if start and shape(reader.decode(above)) == self._opening[0]:
            return False
        stop = start + WITHIN * LONGEST
        lines = [line for line in data[start:stop].split(b"\n")[:WITHIN] if line.strip()]
        shapes = [shape(reader.decode(line[:LONGEST])) for line in lines]
        if not shapes or shapes[0] != self._opening[0]:
            return False
        return len(set(self._opening) & set(shapes)) >= ALIKE


def _fixed(text: str) -> bytes:
    """The longest constant text of a line, b"" if it has no words."""
    longest = max(CHANGING.split(text), key=len).strip()
    letters = sum(one.isalpha() for one in longest)
    return (
        longest.encode("utf-8", "replace") if letters * 2 >= len(longest.replace(" ", "")) else b""
    )


def _line_before(data: bytes, start: int) -> int:
    """Start of the last line that is not blank before the one that starts here."""
    while start > 0:
        end = start - 1
        start = data.rfind(b"\n", 0, end) + 1
        if data[start:end].strip():
            break
    return start
