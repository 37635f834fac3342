"""The result of scanning one log. What is kept is bounded, and so is memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dsdoctor.logs.bounds import MOST_KEPT, Budget
from dsdoctor.logs.errors import Error
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.progress import Step, Steps

#: Hits kept of one signature in one log.
KEPT = 4
#: Last lines kept of a log; FEW if much was already kept of the logs before it.
TAIL, FEW = 40, 5


class Hit(msgspec.Struct, frozen=True, eq=False):
    """A line that a signature recognizes.

    Attributes:
        known: the signature with its condition.
        source: index of the log.
        line: number of the line, from 1.
        text: the line, without prefixes and without sentences that are no evidence.
        rank: the rank, if known.
        groups: named groups of the pattern.
        when: time stamp of the line or of one shortly before it, "" if there is none.
        steps: how far training had come.
        warned: it is part of a warning, so the program continued.
        undated: its time stamp is that of an earlier line.
        written: the line with those sentences, for readers; "" = there are none in it.
    """

    known: Known
    source: int
    line: int
    text: str
    rank: int | None
    groups: dict[str, str]
    when: str
    steps: Steps = msgspec.field(default_factory=dict)
    warned: bool = False
    undated: bool = False
    written: str = ""


class Failure(msgspec.Struct, frozen=True, eq=False):
    """The first failure of the workers, as reported by a launcher, mostly torchrun.

    Attributes:
        line: number of the line.
        text: the line.
        rank: global rank, None if the launcher does not report it.
        code: exit code, negative for a signal.
        when: time stamp, "" if there is none.
        steps: how far training had come.
    """

    line: int
    text: str
    rank: int | None
    code: int
    when: str
    steps: Steps = msgspec.field(default_factory=dict)


class Scan(msgspec.Struct):
    """The result of scanning one log.

    Attributes:
        hits: recognized lines, in order, bounded.
        errors: exceptions, in order, bounded.
        flags: literals of `requires`, `unless` and `not_after` that occur.
        marks: maps each mark that occurs (`marks`) to its first line.
        tail: the last lines that are not blank, with their numbers.
        lines: number of lines.
        step: the last progress line: its number, its time stamp, and how far training had come.
        restarts: where a launcher restarted the workers or another run begins: number of the line,
            time stamp.
        began: number of the first line of the last of several runs, 0 for a single run.
        failures: first failures as torchrun reports them, one for each report.
        outlived: the last failures that the run outlived.
        ignored: hits in tracebacks that Python ignored, if they do not count.
        document: it is a document that quotes errors, not the output of a run.
        told: somebody tells of a failure in it, and quotes no output of the run.
        cut: a traceback that it quotes ends before its exception.
        whole_from: if there are too many failures to keep all, number of the line from which on
            all are kept; else 0.
        numbers: the number that each line has in the file, if it begins with its newest line.
    """

    hits: list[Hit] = msgspec.field(default_factory=list)
    errors: list[Error] = msgspec.field(default_factory=list)
    flags: set[str] = msgspec.field(default_factory=set)
    marks: dict[str, tuple[int, str]] = msgspec.field(default_factory=dict)
    tail: list[tuple[int, str]] = msgspec.field(default_factory=list)
    lines: int = 0
    step: tuple[int, str, Step] | None = None
    restarts: list[tuple[int, str]] = msgspec.field(default_factory=list)
    began: int = 0
    failures: list[Failure] = msgspec.field(default_factory=list)
    outlived: list[Hit | Error] = msgspec.field(default_factory=list)
    ignored: list[Hit] = msgspec.field(default_factory=list)
    document: bool = False
    told: bool = False
    cut: bool = False
    whole_from: int = 0
    numbers: Sequence[int] | None = None

    def bound(self, budget: Budget) -> None:
        """Keeps less of this log if much was already kept of the logs before it."""
        if budget.kept > MOST_KEPT:
            self.errors = [*self.errors[:2], *self.errors[2:][-1:]]
            first = {id(hit.known): hit for hit in reversed(self.hits)}
            self.hits = [hit for hit in self.hits if first[id(hit.known)] is hit]
            self.tail = self.tail[-FEW:]
            self.outlived = self.outlived[-FEW:]
        budget.kept += sum(len(text) for _, text in self.tail)
        budget.kept += sum(len(hit.text) for hit in self.hits)
        budget.kept += sum(
            len(one.text) + len(one.message) + len(one.more) + len(one.further)
            for one in self.errors
        )
