"""Reads single lines: matches signatures, marks, exceptions and reports of launchers."""

from __future__ import annotations

import collections
import re
import time

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import ranks, reader
from dsdoctor.logs.errors import (
    CHAINS,
    ENDS_NOTHING,
    ERROR_LITERALS,
    KEPT_ERRORS,
    TRACEBACK,
    UNRETRIEVED,
    Error,
    Tracebacks,
)
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.hits import KEPT, TAIL, Failure, Hit, Scan
from dsdoctor.logs.launcher_lines import FAILED, FIRST, REPORT, REPORT_LINES, RESTART
from dsdoctor.logs.marks import FATAL_MARKS, MARK_LITERALS, mark_pattern
from dsdoctor.logs.pieces import LONGEST, segments_of, shortened
from dsdoctor.logs.plain_errors import without_backticks
from dsdoctor.logs.prefixes import TASK_AND_RANK, strip_prefixes
from dsdoctor.logs.progress import Steps, last_steps
from dsdoctor.logs.prose import happened
from dsdoctor.logs.ready import ReadySignatures
from dsdoctor.logs.stamps import stamp
from dsdoctor.logs.suggestions import without_suggestion
from dsdoctor.logs.warning_lines import REACH, is_left_out, is_warning
from dsdoctor.logs.window import CONTEXT_BYTES, Window
from dsdoctor.model.condition import Signature

#: Lines before an exception that are searched for its frames.
FRAME_LINES = 40
#: The same for a longer traceback, such as one of rich, which shows the source of each frame.
MOST_FRAME_LINES = 300
#: Lines after an exception on which its text may continue.
MORE_LINES = 3
#: Lines after it that are kept for the few texts that are longer.
FURTHER_LINES = 16
#: A longer search (s) is one on a line that was crafted to be slow ...
SLOW = 0.005
#: ... and after so many in a log, the signature is ignored for the rest of the log.
MOST_SLOW = 20
#: Most lines of one signature whose ranks are compared.
MOST_COMPARED = 256
#: The title of a report that says what happened: a heading in the first line that quotes an
#: exception, or what Python (3.5-3.14 Lib/subprocess.py) says of a command that failed, or torchrun
#: (torch 1.9-2.13 distributed/elastic/multiprocessing/api.py) of a worker that a signal ended.
#: Headings of documents, and those further down, are about errors in general.
TITLE = lazy(
    r"# (?P<said>(?:\[[^\]]{1,40}\] ?:? ?)?.{0,80}"
    r"\b(?:\w{1,40}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception): \S.*"
    r"|.{0,200}\breturned non-zero exit status -?\d.*"
    r"|(?:\[[^\]]{1,40}\] ?:? ?)?(?:ERROR:)?torch\.distributed\.elastic\.multiprocessing\.api: ?"
    r"failed \(exitcode: -\d.*)"
)
#: What a child process prints above the exception that ended it (CPython 3.4-3.14
#: multiprocessing/process.py). A process counts its children from 1.
CHILD = lazy(r"^Process (?P<name>(?:Spawn|Fork|ForkServer)?Process-\d{1,6}(?::\d{1,6}){0,4}):$")
#: Literals of lines that matter every time.
COURSE = frozenset({RESTART, FAILED, FIRST, TRACEBACK, *ENDS_NOTHING, UNRETRIEVED, *CHAINS})


class _Unplaced(msgspec.Struct, frozen=True):
    """An exception whose surroundings were not read yet.

    Attributes:
        found: how many exceptions were found up to it.
        start: offset of its line in the window.
        segment: offset of the part of the line that holds it.
        rank: rank of the line.
        shown: rank that the reports name.
    """

    found: int
    start: int
    segment: int
    rank: int | None
    shown: int | None


class LineReader:
    """Reads the lines of one log, and keeps what they have shown so far.

    Attributes:
        ready: the signatures.
        index: index of the log.
        rank: rank in the log's file name.
        result: the result so far.
        traces: the exceptions.
        per_signature: hits of each signature, by its number.
        matched: how often a pattern matched a line.
        spent: literals that can add nothing new.
        dull: lines that added nothing and cannot add anything.
        steps: how far training has come.
        fell: first failed worker that the run has not outlived: number of the line, time stamp,
            steps.
        fatal: fatal marks, and how far training had come at each.
        ignored: hits within ignored tracebacks; they count if nothing else explains a death, or if
            the log is only an excerpt.
        by_node: the number before a line is that of a node's task, not of a rank.
        aside: lines of the last ignored tracebacks, and the exceptions that end them.
        latest: keep the last hits and exceptions if they are too many, not the first.
    """

    def __init__(
        self, ready: ReadySignatures, index: int, rank: int | None, *, latest: bool = False
    ) -> None:
        self.ready = ready
        self.index = index
        self.rank = rank
        self.result = Scan()
        self.traces = Tracebacks(index)
        self.per_signature: collections.Counter[int] = collections.Counter()
        self.matched = 0
        self.spent: set[str] = set()
        self.dull: set[bytes] = set()
        self.steps: Steps = {}
        self.fell: tuple[int, str, Steps] | None = None
        self.fatal: dict[str, Steps] = {}
        self.ignored: list[Hit] = []
        self.by_node = False
        self.aside: collections.deque[tuple[range, str]] = collections.deque(maxlen=TAIL)
        self.latest = latest
        self.traces.latest = latest
        self._slow: collections.Counter[int] = collections.Counter()
        self._unplaced: collections.deque[_Unplaced] = collections.deque(maxlen=KEPT_ERRORS)

    def renew(self) -> None:
        """Forgets which lines and literals add nothing, as fewer hits are known than before."""
        self.spent.clear()
        self.dull.clear()

    def added(self) -> tuple[int, ...]:
        """Counters of everything that a line can add; they differ if it added something."""
        return (
            self.matched, self.traces.found, len(self.result.marks), len(self.result.flags)
        )  # fmt: skip

    def steps_before(self, window: Window, start: int) -> Steps:
        """How far training had come at a place in the window."""
        return {**self.steps, **last_steps(window.data, max(0, start - CONTEXT_BYTES), start)}

    def line(self, window: Window, start: int, number: int, literals: set[str]) -> None:
        """Reads a line, given the literals that it contains."""
        raw = window.line(start)
        if RESTART in literals:
            self.result.restarts.append((number, window.when(start)))
        if FAILED in literals and self.fell is None:
            self.fell = (number, window.when(start), self.steps_before(window, start))
        if FIRST in literals:
            self._failure(window, start, number)
        segments = segments_of(raw, literals)
        for segment in segments:
            # a progress bar before it on the same line shows how far training had come
            at = start + max(0, raw.find(segment)) if len(raw) > len(segment) else start
            text, rank = strip_prefixes(shortened(segment, literals))
            text = without_backticks(text)
            if number == 1 and (title := TITLE.match(text)):
                text = title["said"]
            if rank is None:
                rank = self.rank
            shown = self._rank_of_line(segment, rank)
            here = literals
            if literals:
                if len(segments) > 1:
                    here = {t for t in literals if t.encode() in segment}
                self._marks(text, number, here)
                for name in FATAL_MARKS:
                    if name in self.result.marks and name not in self.fatal:
                        self.fatal[name] = self.steps_before(window, at)
                if not self.traces.in_source(text, rank):
                    self._signatures(window, (start, at), number, text, shown, here)
            known = self.traces.found
            self.traces.line(text, number, rank, here)
            if self.traces.found > known:
                self._unplaced.append(_Unplaced(self.traces.found, start, at, rank, shown))
            while self.traces.ignored:
                self._set_aside(*self.traces.ignored.pop())
        self.spent.update(filter(self._is_spent, literals - self.spent))

    def _set_aside(self, first: int, last: int, rank: int | None, said: str) -> None:
        """Removes hits within an ignored traceback from the result; see `ignored`."""
        ranks = {rank, None} if self.by_node else {rank}
        ignored = [
            hit for hit in self.result.hits if first <= hit.line <= last and hit.rank in ranks
        ]
        self.aside.append((range(first, last + 1), said))
        self.result.hits = [hit for hit in self.result.hits if hit not in ignored]
        self.ignored += ignored[: KEPT - len(self.ignored)]

    def _failure(self, window: Window, start: int, number: int) -> None:
        found: dict[str, str] = {}
        for line in window.lines(start, 0, REPORT_LINES)[1]:
            for match in REPORT.finditer(line):
                found.update({k: v for k, v in match.groupdict().items() if v})
        if {"rank", "code"} <= found.keys():
            text = strip_prefixes(reader.decode(window.line(start)[:LONGEST]))[0]
            failure = Failure(
                number, text, int(found["rank"]), int(found["code"]), stamp(found.get("time", "")),
                self.steps_before(window, start),
            )  # fmt: skip
            self.result.failures.append(failure)

    def _rank_of_line(self, segment: bytes, rank: int | None) -> int | None:
        """The rank of a line, None if its number is that of a node's task.

        If a node's one task is a launcher, srun labels the lines of all its ranks alike.
        """
        if rank is None or segment[:1] == b"[":
            return rank
        found = TASK_AND_RANK.match(reader.decode(segment[:200]))
        if found is None:
            return None if self.by_node else rank
        if found["task"] != found["rank"] and not self.by_node:
            self.by_node = True
            result, traces = self.result, self.traces
            result.hits = [msgspec.structs.replace(hit, rank=None) for hit in result.hits]
            traces.errors = [msgspec.structs.replace(one, rank=None) for one in traces.errors]
        return rank

    def place_errors(self, window: Window) -> None:
        """Adds to the newest exceptions what stands around them.

        That is done once for a stretch of lines, as only a few exceptions of a flood are kept.
        """
        errors, found = self.traces.errors, self.traces.found
        for one in self._unplaced:  # as many as are kept at most, so each is still there
            place = len(errors) - 1 - (found - one.found)
            errors[place] = self._placed(errors[place], window, one)
        self._unplaced.clear()

    def _placed(self, error: Error, window: Window, at: _Unplaced) -> Error:
        """The exception with its frames, its time, and the lines on which its text continues."""
        rank = at.rank
        above = error.line - error.begun
        before = min(max(FRAME_LINES, above + 1), MOST_FRAME_LINES)
        front, behind = window.lines(at.start, before, FURTHER_LINES)
        pairs = [strip_prefixes(line) for line in front]
        own = [text for text, who in pairs if who is None or rank is None or who == rank]
        pairs = [strip_prefixes(line) for line in behind[:MORE_LINES]]
        more = " ".join(text.strip() for text, _ in pairs)
        if not error.message and error.text.endswith(":"):  # the text begins with a line break
            said = (text.strip() for text, who in pairs if rank is None or who in (None, rank))
            first = next(filter(None, said), "")
            error = msgspec.structs.replace(
                error, message=first[:LONGEST], text=f"{error.text} {first}".rstrip()[:LONGEST]
            )
        begun = front[-above:][:1] if 0 < above <= len(front) else []
        child = CHILD.match(front[-above - 1]) if 0 < above < len(front) else None
        return msgspec.structs.replace(
            error,
            when=window.when(at.start),
            frames=error.frames or frames_of(own),
            more=more,
            further=_further(behind, rank),
            steps=self.steps_before(window, at.segment),
            rank=error.rank if at.shown == rank else at.shown,
            undated=not (window.is_dated(at.start) or any(map(stamp, begun))),
            process=child["name"] if child else "",
        )

    def _is_spent(self, literal: str) -> bool:
        """Whether a literal can add nothing new, so floods of it cost little."""
        if literal in {RESTART, FAILED, FIRST} or (
            literal in ERROR_LITERALS and not self.traces.full
        ):
            return False
        if literal in self.ready.flags and literal not in self.result.flags:
            return False
        if not all(name in self.result.marks for name in MARK_LITERALS.get(literal, ())):
            return False
        return all(
            self._has_enough(number, self.ready.known[number].signature)
            for number in self.ready.by_literal.get(literal, ())
        )

    def _has_enough(self, number: int, signature: Signature) -> bool:
        """Whether more hits of a signature would add nothing."""
        most = MOST_COMPARED if signature.compared else KEPT
        return self.per_signature[number] >= most and not (signature.final or self.latest)

    def _marks(self, text: str, number: int, literals: set[str]) -> None:
        for literal in literals:
            if literal in self.ready.flags:
                self.result.flags.add(literal)
            for name in MARK_LITERALS.get(literal, ()):
                if name not in self.result.marks and mark_pattern(name).search(text):
                    self.result.marks[name] = (number, text[:LONGEST])

    def _signatures(
        self,
        window: Window,
        place: tuple[int, int],
        number: int,
        text: str,
        rank: int | None,
        literals: set[str],
    ) -> None:
        start, at = place
        written, text = text, without_suggestion(text)
        around = bare = None
        for index, ready in self.ready.speaking(literals):
            known = ready.known
            signature = known.signature
            seen = self.per_signature[index]
            if self._has_enough(index, signature):
                continue
            if self._slow[index] >= MOST_SLOW:
                continue
            found = self._search(index, ready.pattern, text)
            if found is None:
                continue
            self.matched += 1
            # only now, as most lines match no pattern and removing sentences costs more than that
            bare = happened(self.ready.bare(text)) if bare is None else bare
            if bare != text:
                found = self._search(index, ready.pattern, bare)
            if found is None or is_left_out(bare):
                continue
            if any(words in self.result.flags for words in signature.not_after):
                continue
            if signature.near or signature.not_near:
                if around is None:
                    around = window.around(start)
                if signature.near and not any(t in around for t in signature.near):
                    continue
                if any(t in around for t in signature.not_near):
                    continue
            steps = self.steps_before(window, at)
            if signature.startup and steps:
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
                steps=steps,
                warned=is_warning(bare, *window.lines(start, REACH, REACH)),
                undated=not window.is_dated(start),
                written="" if bare == written else written,
            )
            self._keep(hit, seen)

    def _keep(self, hit: Hit, seen: int) -> None:
        """Keeps a hit if it adds something.

        Of a signature that has enough hits, the newest replaces an earlier one; if ranks are
        compared, only a hit that shows a difference is kept.
        """
        hits = self.result.hits
        if seen < KEPT:
            hits.append(hit)
            return
        if self.latest:
            first = next((at for at, one in enumerate(hits) if one.known is hit.known), None)
            if first is not None:
                del hits[first]
            hits.append(hit)
            return
        if hit.known.signature.compared:
            if ranks.adds(hit, (other for other in hits if other.known is hit.known)):
                hits.append(hit)
            return
        for place in range(len(hits) - 1, -1, -1):
            if hits[place].known is hit.known:
                hits[place] = hit
                return

    def _search(self, index: int, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
        if len(text) < LONGEST // 4:
            return pattern.search(text)
        begun = time.thread_time()
        found = pattern.search(text)
        if time.thread_time() - begun > SLOW:
            self._slow[index] += 1
        return found


def _further(lines: list[str], rank: int | None) -> str:
    """The lines of a rank up to its next traceback."""
    found: list[str] = []
    for text, who in map(strip_prefixes, lines):
        if text.startswith(TRACEBACK):
            break
        if who is None or rank is None or who == rank:
            found.append(text.strip())
    return " ".join(found)[:LONGEST]
