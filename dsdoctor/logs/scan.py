"""Finds the lines of a log that matter: literal anchors over bytes first, patterns afterwards.

Only lines with an anchor, and those of an open traceback, are decoded. What is kept is bounded,
so memory is flat.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
import re
import time
from collections.abc import Iterable, Sequence

from dsdoctor.logs import reader
from dsdoctor.logs.anchors import matcher
from dsdoctor.logs.bounds import MOST_KEPT, Budget
from dsdoctor.logs.errors import CHAINS, ERROR_LITERALS, IGNORED, TRACEBACK, Error, Tracebacks
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.marks import FATAL_MARKS, MARK_LITERALS, MARK_PATTERNS
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.normalize import variants
from dsdoctor.logs.prefixes import MONTHS, strip_prefixes
from dsdoctor.logs.progress import STEPS, Step, Steps, first_step, last_steps, went_on
from dsdoctor.logs.runs import Openings
from dsdoctor.model.condition import Boilerplate

__all__ = ["MARK_PATTERNS", "Error", "Hit", "Known", "Scan", "Scanner", "stamp"]

#: Lines of context on either side of a hit.
CONTEXT = 12
#: Lines in front of an exception in which its frames are looked for.
FRAME_LINES = 40
#: Lines behind an exception on which its text may go on.
MORE_LINES = 3
#: Bytes of context on either side of a hit, where lines are long.
CONTEXT_BYTES = 1 << 16
#: Hits kept of one signature in one log.
KEPT = 4
#: Longest piece of a line that patterns see: many are of the kind `A.{0,80}B`, whose cost grows
#: with the length of a line that is made to be slow.
LONGEST = 2000
#: A search that takes longer (s) is one on a line that was made to be slow ...
SLOW = 0.005
#: ... and after so many of them in a log, the signature is left out of the rest of it.
MOST_SLOW = 20
#: Last lines kept of a log; of those that are many, fewer.
TAIL, FEW = 40, 5
#: Lines that are known to add nothing, and the longest of them: floods repeat few lines.
MOST_DULL, LONGEST_DULL = 10_000, 1000
#: Pieces of a line that was overwritten by carriage returns and that patterns see.
MOST_SEGMENTS = 8


@dataclasses.dataclass(frozen=True)
class Hit:
    """A line that a signature recognises.

    Attributes:
        known: the signature with its condition.
        source: index of the log.
        line: number of the line, from 1.
        text: the line without prefixes.
        rank: the rank, where told.
        groups: named groups of the pattern.
        when: time stamp of the line or of one shortly before it, "" without.
        steps: how far the run had come.
    """

    known: Known
    source: int
    line: int
    text: str
    rank: int | None
    groups: dict[str, str]
    when: str
    steps: Steps = dataclasses.field(default_factory=dict, hash=False)


@dataclasses.dataclass(frozen=True)
class Failure:
    """What torchrun reports as the first failure of its workers.

    Attributes:
        line: number of the line.
        text: the line.
        rank: global rank.
        code: exit code, negative for a signal.
        when: time stamp, "" without.
        steps: how far the run had come.
    """

    line: int
    text: str
    rank: int
    code: int
    when: str
    steps: Steps = dataclasses.field(default_factory=dict, hash=False)


@dataclasses.dataclass
class Scan:
    """What was found in one log.

    Attributes:
        hits: recognised lines, in order, bounded.
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
        releases: lines that tell the release of a product.
        outlived: the last of what went wrong before the run went on.
    """

    hits: list[Hit] = dataclasses.field(default_factory=list)
    errors: list[Error] = dataclasses.field(default_factory=list)
    flags: set[str] = dataclasses.field(default_factory=set)
    marks: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    tail: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    lines: int = 0
    step: tuple[int, str, Step] | None = None
    restarts: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    began: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    releases: list[str] = dataclasses.field(default_factory=list)
    outlived: list[Hit | Error] = dataclasses.field(default_factory=list)

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


STAMP = re.compile(
    r"(?P<d>\d{4}[-/]\d\d[-/]\d\d)[T _](?P<t>\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"|\[?[EWIF](?P<m>\d{3,4}) (?P<u>\d\d:\d\d:\d\d\.\d+)"
    rf"|(?P<month>{MONTHS}) (?P<day>[ \d]\d) (?P<v>\d\d:\d\d:\d\d(?:\.\d{{1,6}})?)",
)


def stamp(text: str) -> str:
    """A time stamp that sorts within a year, "" without one.

    >>> stamp("[2024-05-06 07:08:09,123] [INFO]"), stamp("[rank0]:[E506 07:08:10.5 Process")
    ('05-06 07:08:09.123', '05-06 07:08:10.5')
    >>> stamp("May  6 07:08:11 node-a python[7]: step")
    '05-06 07:08:11'
    """
    found = STAMP.search(text[:200]) or (STAMP.search(text[-80:]) if len(text) > 200 else None)  # noqa: PLR2004
    if found is None:
        return ""
    if found["m"]:
        return f"{int(found['m']) // 100:02}-{found['m'][-2:]} {found['u']}"
    if found["month"]:
        month = MONTHS.split("|").index(found["month"]) + 1
        return f"{month:02}-{found['day'].replace(' ', '0')} {found['v']}"
    return f"{found['d'][5:].replace('/', '-')} {found['t'].replace(',', '.')}"


#: torchrun's elastic agent, before it starts the workers anew.
RESTART = "will restart worker group"
#: torchrun's elastic agent, of a worker that failed; it tells of the restart at level INFO alone.
FAILED = "failed (exitcode:"
#: torchrun's elastic agent, at its end.
FIRST = "Root Cause (first observed failure)"
#: Lines of its report on one failure.
REPORT_LINES = 9
REPORT = re.compile(
    r"\btime\s*: (?P<time>\S+)|\brank\s*: (?P<rank>\d{1,6})|\bexitcode\s*: (?P<code>-?\d{1,4})"
)
#: A bar of tqdm, behind which text of somebody else may stand without a line's end.
BAR = re.compile(rb"\[[\d:]+<[\d:?]+, [^\]\r\n]{0,120}\]")
#: Lines that matter each time they come.
COURSE = frozenset({RESTART, FAILED, FIRST, TRACEBACK, IGNORED, *CHAINS})
#: What was outlived and is still told.
MOST_OUTLIVED = 20
#: Bytes after which it is asked whether the run went on, so that what it outlived takes no room.
STRETCH = 1 << 18
#: A last run of fewer lines that shows nothing leaves the one before it to be explained.
SHORT_RUN = 40


class _Ready:
    """A signature made ready; its pattern is compiled when its literal is first met."""

    def __init__(self, number: int, known: Known) -> None:
        self.number = number
        self.known = known

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.known.signature.pattern)


class Scanner:
    """Signatures made ready for a search; use one for many logs.

    Attributes:
        flags: literals of `requires` and `unless`.
        by_literal: what is searched for, to the signatures that it speaks for.
    """

    def __init__(
        self,
        known: Sequence[Known],
        engine: str = "auto",
        boilerplate: Sequence[Boilerplate] = (),
        own: Iterable[str] = (),
    ) -> None:
        self.own = tuple(own)
        #: By a literal of each sentence.
        self.boilerplate = [
            (words, re.compile(one.pattern))
            for one in boilerplate
            for words in necessary(one.pattern)
        ]
        self.flags: set[str] = set()
        self._ready_for: dict[frozenset[str], list[tuple[int, _Ready]]] = {}
        self.by_literal: dict[str, list[_Ready]] = {}
        self.number_of = {id(item): number for number, item in enumerate(known)}
        self._known = known  # the numbers are by identity
        for number, item in enumerate(known):
            signature = item.signature
            ready = _Ready(number, item)
            for literal in necessary(signature.pattern):
                self.by_literal.setdefault(literal, []).append(ready)
            self.flags.update(signature.requires)
            self.flags.update(signature.unless)
        self._matcher = matcher(
            sorted(
                {
                    *self.by_literal,
                    *self.flags,
                    *ERROR_LITERALS,
                    *MARK_LITERALS,
                    RESTART,
                    FAILED,
                    FIRST,
                }
            ),
            engine,
        )

    @property
    def engine(self) -> str:
        """Name of the engine that finds literals."""
        return self._matcher.name

    def ready(self, literals: set[str]) -> list[tuple[int, _Ready]]:
        """The signatures that some literals of a line speak for, in order."""
        key = frozenset(literals)
        found = self._ready_for.get(key)
        if found is None:
            if len(self._ready_for) >= MOST_DULL:
                self._ready_for.clear()
            rows = (one for text in literals for one in self.by_literal.get(text, ()))
            found = sorted({one.number: one for one in rows}.items())
            self._ready_for[key] = found
        return found

    def bare(self, text: str) -> str:
        """A line without the sentences that are no evidence."""
        for words, sentence in self.boilerplate:
            if words in text:
                text = sentence.sub("", text)
        for told in self.own:
            if told in text:
                text = text.replace(told, "")
        return text

    def hot(self, data: bytes) -> dict[int, set[str]]:
        """Start of a line to the literals in that line."""
        return self._matcher.find(data)

    def scan(self, source: reader.Source, index: int = 0, budget: Budget | None = None) -> Scan:
        """Reads a log, whole or as far as the budget reaches."""
        budget = budget or Budget()
        state = _State(self, source, index)
        piped = source.path is None and source.data is None
        for block in budget.metered(reader.blocks(source), waits=piped):
            state.feed(block, last=False)
        state.feed(b"", last=True)
        found = state.finish()
        if why := budget.exceeded():
            budget.leave_out(f"`{source.name}` after line {found.lines} ({why})")
        return found

    def again(self, scan: Scan, index: int = 0) -> list[Hit]:
        """Hits on the last lines of a log, read as they were before a terminal changed them.

        For logs in which `scan` found no cause.
        """
        rows = list(variants(scan.tail))
        text = "\n".join(row[1].replace("\n", " ") for row in rows)
        source = reader.Source(name="", data=text.encode("utf-8", "replace"))
        state = _State(self, source, index)
        state.feed(source.data or b"", last=False)
        state.feed(b"", last=True)
        found = state.finish()
        scan.flags |= found.flags
        return [
            dataclasses.replace(hit, line=rows[hit.line - 1][0])
            for hit in found.hits
            if hit.line <= len(rows)
        ]


class _Window:
    """A block with context in front of it, and the places of its lines."""

    def __init__(self, data: bytes, begin: int) -> None:
        self.data = data
        self.begin = begin

    def line(self, start: int) -> bytes:
        end = self.data.find(b"\n", start)
        return self.data[start:] if end < 0 else self.data[start:end]

    def back(self, start: int, lines: int) -> int:
        """Start of the line that stands so many lines before, as far as the window reaches."""
        least = max(0, start - CONTEXT_BYTES)
        for _ in range(lines):
            if start <= least:
                return least
            start = self.data.rfind(b"\n", least, start - 1) + 1 or least
        return start

    def around(self, start: int) -> str:
        data = self.data
        first = self.back(start, CONTEXT)
        most = min(len(data), start + CONTEXT_BYTES)
        end = start
        for _ in range(CONTEXT + 1):
            end = data.find(b"\n", end, most) + 1
            if end == 0:
                end = most
                break
        near = data[first:end]
        if near.isascii() and len(near) <= LONGEST:
            return near.decode()
        lines = near.split(b"\n")
        return "\n".join(reader.decode(line[:LONGEST]) for line in lines)

    def lines(self, start: int, before: int, after: int) -> tuple[list[str], list[str]]:
        """So many lines in front of the line, and behind it."""
        first = self.back(start, before)
        front = self.data[first:start].split(b"\n")[:-1]
        most = min(len(self.data), start + CONTEXT_BYTES)
        behind = self.data[start:most].split(b"\n", after + 1)[1 : after + 1]
        return (
            [reader.decode(line[:LONGEST]) for line in front],
            [reader.decode(line[:LONGEST]) for line in behind],
        )

    def when(self, start: int) -> str:
        """Time stamp of the line or of one shortly before it."""
        for _ in range(CONTEXT):
            if found := stamp(reader.decode(self.line(start)[:LONGEST])):
                return found
            if start == 0:
                break
            start = self.back(start, 1)
        return ""


class _State:
    def __init__(self, scanner: Scanner, source: reader.Source, index: int) -> None:
        self.scanner = scanner
        self.source = source
        self.index = index
        self.result = Scan()
        self.traces = Tracebacks(index)
        self.per_signature: collections.Counter[int] = collections.Counter()
        self.slow: collections.Counter[int] = collections.Counter()
        self.spent: set[str] = set()  # literals that can tell nothing new
        self.dull: set[bytes] = set()  # lines that added nothing and cannot add anything
        self.tail: collections.deque[tuple[int, bytes]] = collections.deque(maxlen=TAIL)
        self.carry = b""
        self.done = 0  # bytes of `carry` that are done already
        self.fragment = False  # the last line that was done is not at its end yet
        self.matched = 0  # lines that a pattern fitted
        self.steps: Steps = {}
        self.fell: tuple[int, str, Steps] | None = None  # since the last restart
        self.fatal: dict[str, Steps] = {}  # signs of a death, and how far the run had come
        self.ignored: list[Hit] = []
        self.runs = Openings()
        self.before: Scan | None = None  # what the run before the last one showed

    def feed(self, block: bytes, *, last: bool) -> None:
        """Works through a block.

        The last lines of a block wait for the next one, so that a hit always has its context on
        both sides.
        """
        window = _Window(self.carry + block, self.done)
        data, begin = window.data, self.done
        end = len(data)
        if not last:
            kept = window.back(end, CONTEXT)
            if data.find(b"\n", max(0, kept - 1)) < 0:
                kept = end  # an endless line: no use to wait
            elif kept and data[kept - 1] != 10:  # noqa: PLR2004  # newline
                kept = data.find(b"\n", kept) + 1
            end = max(begin, kept)
        if end > begin:
            self._stretches(window, begin, end)
        first = window.back(end, FRAME_LINES)
        self.carry = data[first:]
        self.done = end - first

    def _stretches(self, window: _Window, begin: int, end: int) -> None:
        data = window.data
        if self.fragment:  # the line in front of the first byte is not to be seen again
            hot = {begin + at: texts for at, texts in self.scanner.hot(data[begin:end]).items()}
        else:
            hot = self.scanner.hot(data)
        places = sorted(place for place in hot if begin <= place < end)
        if not self.result.lines:
            self.runs.learn(data[begin:end])
        starts = self.runs.find(data, begin, end)
        cuts = {place for place, _ in starts if place > begin}
        place = begin
        while end - place > STRETCH:
            place = data.find(b"\n", place + STRETCH, end) + 1 or end
            cuts.add(place)
        news = dict(starts)
        first = begin
        for stop in sorted({*cuts, end}):
            if stop <= first:
                continue
            if first in news and (self.result.lines or first > begin):
                self._new_run(window, first, own=news[first])
            low, high = bisect.bisect_left(places, first), bisect.bisect_left(places, stop)
            self._work(window, first, stop, {place: hot[place] for place in places[low:high]})
            self._went_on(window, first, stop)
            first = stop

    def _new_run(self, window: _Window, start: int, *, own: bool) -> None:
        """Puts aside what an earlier run died of, where another begins.

        Args:
            window: the block.
            start: place of the first line of the new run.
            own: the lines with which the log began tell it, and they may be those of one run.
        """
        result = self.result
        if not (result.hits or self.traces.errors or set(FATAL_MARKS) & result.marks.keys()):
            if own:
                self.runs.forget()
            return
        self.before = dataclasses.replace(result, errors=list(self.traces.errors))
        ended: list[Hit | Error] = [*result.hits, *self.traces.errors]
        result.outlived = (result.outlived + ended)[-MOST_OUTLIVED:]
        result.began = result.lines + 1
        result.restarts.append((result.began, window.when(start)))
        result.hits, result.marks, result.flags, result.failures = [], {}, set(), []
        result.step = None
        self.steps = {}
        self.fatal.clear()
        self.traces.begin()
        self.per_signature.clear()
        self.spent.clear()
        self.dull.clear()

    def _work(self, window: _Window, begin: int, end: int, hot: dict[int, set[str]]) -> None:
        data = window.data
        number = self.result.lines + (0 if self.fragment else 1)
        place = begin
        for start, literals in hot.items():
            while self.traces.busy and place < start:
                self._line(window, place, number, set())
                place = data.find(b"\n", place, end) + 1
                number += 1
            number += data.count(b"\n", place, start)
            place = start
            if self.traces.busy:
                self._line(window, start, number, literals)
            elif not literals <= self.spent:
                self._once(window, start, number, literals)
            following = data.find(b"\n", start, end) + 1
            place = following or end
            number += 1 if following else 0
        while self.traces.busy and place < end:
            self._line(window, place, number, set())
            following = data.find(b"\n", place, end) + 1
            place = following or end
            number += 1 if following else 0
        number += data.count(b"\n", place, end)
        self.fragment = data[end - 1] != 10  # noqa: PLR2004  # newline
        self.result.lines = number if self.fragment else number - 1
        self._note_tail(data, begin, end)

    def _went_on(self, window: _Window, begin: int, end: int) -> None:
        """Notes the last step of a block, and forgets what the run outlived."""
        steps = last_steps(window.data, begin, end)
        if not steps:
            return
        last = max(steps.values(), key=lambda step: step.place)
        number = self._number(window, last, end)
        self.steps = {**self.steps, **steps}
        first = self.result.lines - window.data.count(b"\n", begin, end) + 1
        self.result.step = (number, window.when(last.place), last)
        numbers = {kind: self._number(window, step, end) for kind, step in steps.items()}

        def is_over(line: int, before: Steps) -> bool:
            behind = {kind: step for kind, step in steps.items() if line < numbers[kind]}
            if behind and not before.keys() & behind.keys():
                # not counted so before: what these kinds count from here on tells
                rest = window.data[begin:end].split(b"\n")[max(0, line - first) :]
                since = {kind: first_step(rest, kind) for kind in behind}
                before = {
                    kind: step
                    for kind, step in since.items()
                    if step is not None and (before or step.reached > STEPS)
                }
            return went_on(before, behind)

        def over(item: Hit | Error) -> bool:
            return is_over(item.line, item.steps)

        if self.fell is not None and is_over(self.fell[0], self.fell[2]):
            place, when, _ = self.fell
            self.fell = None
            if all(line < place for line, _ in self.result.restarts):
                self.result.restarts.append((place, when))
        gone: list[Hit | Error] = [error for error in self.traces.errors if over(error)]
        gone += [hit for hit in self.result.hits if over(hit)]
        for name, before in list(self.fatal.items()):
            if is_over(self.result.marks[name][0], before):
                del self.fatal[name], self.result.marks[name]
                self.spent.clear()
                self.dull.clear()
        self.result.failures = [
            one for one in self.result.failures if not is_over(one.line, one.steps)
        ]
        if not gone:
            return
        self.result.outlived = (self.result.outlived + gone)[-MOST_OUTLIVED:]
        self.result.hits = [hit for hit in self.result.hits if not over(hit)]
        self.traces.forget(over)
        self.per_signature = collections.Counter(
            self.scanner.number_of[id(hit.known)] for hit in self.result.hits
        )
        self.spent.clear()
        self.dull.clear()

    def _number(self, window: _Window, step: Step, end: int) -> int:
        """Number of the line of a step in what was worked through."""
        lines = window.data.count(b"\n", step.place, end)
        return self.result.lines - lines + (0 if self.fragment else 1)

    def _steps_before(self, window: _Window, start: int) -> Steps:
        return {**self.steps, **last_steps(window.data, max(0, start - CONTEXT_BYTES), start)}

    def _note_tail(self, data: bytes, begin: int, end: int) -> None:
        number = self.result.lines
        found: list[tuple[int, bytes]] = []
        stop = end if self.fragment else end - 1
        for _ in range(TAIL):
            start = max(begin, data.rfind(b"\n", begin, stop) + 1)
            line = data[start : min(stop, start + LONGEST)]
            if stop - start > LONGEST:  # bars that were never ended, and what was said last
                line = line[: LONGEST // 2] + data[stop - LONGEST // 2 : stop]
            if line.strip():
                found.append((number, line))
            number -= 1
            stop = start - 1
            if stop <= begin:
                break
        self.tail.extend(reversed(found))

    def finish(self) -> Scan:
        self.result.errors = self.traces.errors
        self._restore()
        if not self.result.hits and not self.result.errors:
            self.result.hits = self.ignored
        self.result.tail = [
            (number, strip_prefixes(reader.decode(line))[0]) for number, line in self.tail
        ]
        return self.result

    def _once(self, window: _Window, start: int, number: int, literals: set[str]) -> None:
        """Takes a line outside of tracebacks, unless the same line added nothing before."""
        raw = window.line(start)
        if raw in self.dull:
            return
        before = self._added()
        self._line(window, start, number, literals)
        if self._added() == before and len(raw) <= LONGEST_DULL and not literals & COURSE:
            if len(self.dull) >= MOST_DULL:
                self.dull.clear()
            self.dull.add(raw)

    def _added(self) -> tuple[int, ...]:
        """Grows with all that a line can add."""
        return (
            self.matched, len(self.traces.errors), len(self.result.marks), len(self.result.flags)
        )  # fmt: skip

    def _restore(self) -> None:
        """Takes back the run before the last one, where the last one had hardly begun."""
        result, before = self.result, self.before
        if before is None or result.lines - result.began >= SHORT_RUN or result.step is not None:
            return
        if result.hits or result.errors or set(FATAL_MARKS) & result.marks.keys():
            return
        result.hits, result.errors, result.failures = before.hits, before.errors, before.failures
        result.marks = {**before.marks, **result.marks}
        result.flags |= before.flags
        result.step, result.began = before.step, 0
        result.restarts.pop()

    def _line(self, window: _Window, start: int, number: int, literals: set[str]) -> None:
        raw = window.line(start)
        if RESTART in literals:
            self.result.restarts.append((number, window.when(start)))
        if FAILED in literals and self.fell is None:
            self.fell = (number, window.when(start), self._steps_before(window, start))
        if FIRST in literals:
            self._failure(window, start, number)
        segments = _segments(raw, literals)
        for segment in segments:
            text, rank = strip_prefixes(_shorten(segment, literals))
            if rank is None:
                rank = self.source.rank
            here = literals
            if literals:
                if len(segments) > 1:
                    here = {t for t in literals if t.encode() in segment}
                self._marks(text, number, here)
                for name in FATAL_MARKS:
                    if name in self.result.marks and name not in self.fatal:
                        self.fatal[name] = self._steps_before(window, start)
                if not self.traces.in_source(text, rank):
                    self._signatures(window, start, number, text, rank, here)
            known = len(self.traces.errors)
            self.traces.line(text, number, rank, here, lambda: window.when(start))
            if len(self.traces.errors) > known:
                self._place(window, start, rank)
            while self.traces.ignored:
                self._set_aside(*self.traces.ignored.pop())
        self.spent.update(filter(self._is_spent, literals - self.spent))

    def _set_aside(self, first: int, last: int, rank: int | None) -> None:
        """Takes hits on an ignored traceback out; they count if nothing else does."""
        ignored = [
            hit for hit in self.result.hits if first <= hit.line <= last and hit.rank == rank
        ]
        self.result.hits = [hit for hit in self.result.hits if hit not in ignored]
        self.ignored += ignored[: KEPT - len(self.ignored)]

    def _failure(self, window: _Window, start: int, number: int) -> None:
        found: dict[str, str] = {}
        for line in window.lines(start, 0, REPORT_LINES)[1]:
            for match in REPORT.finditer(line):
                found.update({k: v for k, v in match.groupdict().items() if v})
        if {"rank", "code"} <= found.keys():
            text = strip_prefixes(reader.decode(window.line(start)[:LONGEST]))[0]
            failure = Failure(
                number, text, int(found["rank"]), int(found["code"]), stamp(found.get("time", "")),
                self._steps_before(window, start),
            )  # fmt: skip
            self.result.failures.append(failure)

    def _place(self, window: _Window, start: int, rank: int | None) -> None:
        """Notes the frames of the newest exception and the lines on which its text goes on."""
        front, behind = window.lines(start, FRAME_LINES, MORE_LINES)
        pairs = [strip_prefixes(line) for line in front]
        own = [text for text, who in pairs if who is None or rank is None or who == rank]
        more = " ".join(strip_prefixes(line)[0].strip() for line in behind)
        error = self.traces.errors[-1]
        self.traces.errors[-1] = dataclasses.replace(
            error, frames=frames_of(own), more=more, steps=self._steps_before(window, start)
        )

    def _is_spent(self, literal: str) -> bool:
        """All that the literal could tell is known already, so floods of it cost little."""
        if literal in {RESTART, FAILED, FIRST} or (
            literal in ERROR_LITERALS and not self.traces.full
        ):
            return False
        if literal in self.scanner.flags and literal not in self.result.flags:
            return False
        if not all(name in self.result.marks for name in MARK_LITERALS.get(literal, ())):
            return False
        return all(
            self.per_signature[one.number] >= KEPT and not one.known.signature.final
            for one in self.scanner.by_literal.get(literal, ())
        )

    def _marks(self, text: str, number: int, literals: set[str]) -> None:
        for literal in literals:
            if literal in self.scanner.flags:
                self.result.flags.add(literal)
            for name in MARK_LITERALS.get(literal, ()):
                if name not in self.result.marks and MARK_PATTERNS[name].search(text):
                    self.result.marks[name] = (number, text[:LONGEST])

    def _signatures(
        self,
        window: _Window,
        start: int,
        number: int,
        text: str,
        rank: int | None,
        literals: set[str],
    ) -> None:
        around = bare = None
        for index, ready in self.scanner.ready(literals):
            known = ready.known
            signature = known.signature
            seen = self.per_signature[index]
            if seen >= KEPT and not signature.final:
                continue
            if self.slow[index] >= MOST_SLOW:
                continue
            found = self._search(index, ready.pattern, text)
            if found is None:
                continue
            self.matched += 1
            # most lines fit no pattern, and to take sentences out of a line costs more than that
            bare = self.scanner.bare(text) if bare is None else bare
            if bare != text:
                found = self._search(index, ready.pattern, bare)
            if found is None:
                continue
            if signature.near or signature.not_near:
                if around is None:
                    around = window.around(start)
                if signature.near and not any(t in around for t in signature.near):
                    continue
                if any(t in around for t in signature.not_near):
                    continue
            self.per_signature[index] += 1
            hit = Hit(
                known=known,
                source=self.index,
                line=number,
                text=bare,
                rank=rank,
                groups={k: v for k, v in found.groupdict().items() if v is not None},
                when=window.when(start),
                steps=self._steps_before(window, start),
            )
            if seen >= KEPT:  # a hang: the last one counts
                for place in range(len(self.result.hits) - 1, -1, -1):
                    if self.result.hits[place].known is known:
                        self.result.hits[place] = hit
                        break
            else:
                self.result.hits.append(hit)

    def _search(self, index: int, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
        if len(text) < LONGEST // 4:
            return pattern.search(text)
        begun = time.thread_time()
        found = pattern.search(text)
        if time.thread_time() - begun > SLOW:
            self.slow[index] += 1
        return found


def _segments(raw: bytes, literals: Iterable[str]) -> list[bytes]:
    """The pieces of a line, parted by carriage returns and bars, that can add something."""
    if literals and BAR.search(raw):
        raw = BAR.sub(lambda bar: bar[0] + b"\r", raw)
    if b"\r" not in raw:
        return [raw]
    segments = [part for part in raw.split(b"\r") if part.strip()]
    if not literals:
        return segments[-1:]
    wanted = [text.encode() for text in literals]
    return ([p for p in segments if any(w in p for w in wanted)] or segments[-1:])[:MOST_SEGMENTS]


def _shorten(segment: bytes, literals: Iterable[str]) -> str:
    """At most LONGEST characters, around the first literal."""
    if len(segment) <= LONGEST:
        return reader.decode(segment)
    places = [segment.find(text.encode()) for text in literals]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - LONGEST // 4)
    return reader.decode(segment[start : start + LONGEST])
