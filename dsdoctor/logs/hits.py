"""What was found in one log. What is kept is bounded, so memory is flat."""

from __future__ import annotations

import msgspec

from dsdoctor.logs.bounds import MOST_KEPT, Budget
from dsdoctor.logs.errors import Error
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.progress import Step, Steps

#: Hits kept of one signature in one log.
KEPT = 4
#: Last lines kept of a log; of those that are many, fewer.
TAIL, FEW = 40, 5


class Hit(msgspec.Struct, frozen=True, eq=False):
    """A line that a signature recognizes.

    Attributes:
        known: the signature with its condition.
        source: index of the log.
        line: number of the line, from 1.
        text: the line without prefixes.
        rank: the rank, if known.
        groups: named groups of the pattern.
        when: time stamp of the line or of one shortly before it, "" without.
        steps: how far the run had come.
        warned: it belongs to a warning, so what printed it went on.
        undated: its time stamp is that of a line above it.
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


class Failure(msgspec.Struct, frozen=True, eq=False):
    """What a launcher, mostly torchrun, reports as the first failure of its workers.

    Attributes:
        line: number of the line.
        text: the line.
        rank: global rank, None where the launcher does not say.
        code: exit code, negative for a signal.
        when: time stamp, "" without.
        steps: how far the run had come.
    """

    line: int
    text: str
    rank: int | None
    code: int
    when: str
    steps: Steps = msgspec.field(default_factory=dict)


class Scan(msgspec.Struct):
    """What was found in one log.

    Attributes:
        hits: recognized lines, in order, bounded.
        errors: exceptions, in order, bounded.
        flags: literal texts of `requires` and `unless` that occur.
        marks: signs of the run's course, to the line where first seen.
        tail: the last lines that are not blank, with their numbers.
        lines: number of lines.
        step: the last line of progress: its number, time stamp, and how far the run had come.
        restarts: where the workers were started anew, by a launcher or by a run that was appended:
            number of the line, time stamp.
        began: number of the line with which the last of several runs begins, 0 for one run.
        failures: what torchrun reports as the first failure.
        outlived: the last of what went wrong before the run went on.
        document: it is a document that quotes errors, no output of a run.
        cut: a traceback that it quotes ends before its exception.
        whole_from: number of the line from which on all failures are kept, where they were too
            many to keep all; 0 without.
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
    document: bool = False
    cut: bool = False
    whole_from: int = 0

    def bound(self, budget: Budget) -> None:
        """Keeps less of this log if much is kept of the logs before it."""
        if budget.kept > MOST_KEPT:
            self.errors = [*self.errors[:2], *self.errors[2:][-1:]]
            first = {id(hit.known): hit for hit in reversed(self.hits)}
            self.hits = [hit for hit in self.hits if first[id(hit.known)] is hit]
            self.tail = self.tail[-FEW:]
            self.outlived = self.outlived[-FEW:]
        budget.kept += sum(len(text) for _, text in self.tail)
        budget.kept += sum(len(hit.text) for hit in self.hits)
        budget.kept += sum(len(one.text) + len(one.message) + len(one.more) for one in self.errors)
