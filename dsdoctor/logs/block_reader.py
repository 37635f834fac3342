"""Works through the blocks of one log: which lines are examined, and in which order."""

from __future__ import annotations

import bisect
import collections

from dsdoctor.logs import reader
from dsdoctor.logs.course import Course
from dsdoctor.logs.hits import TAIL, Scan
from dsdoctor.logs.line_reader import COURSE, FRAME_LINES, MOST_FRAME_LINES, LineReader
from dsdoctor.logs.pieces import LONGEST
from dsdoctor.logs.prefixes import strip_prefixes
from dsdoctor.logs.products import package_of
from dsdoctor.logs.ready import ReadySignatures
from dsdoctor.logs.runs import shape
from dsdoctor.logs.window import CONTEXT, Window

#: Most blank lines at the end of a block that are skipped to find its last lines.
BLANK = 10_000
#: Most lines remembered as adding nothing, and the longest of them: floods repeat a few lines.
MOST_DULL, LONGEST_DULL = 10_000, 1000
#: Lines around an ignored traceback in which other ranks may end with the same exception.
NEAR = 60
#: Lines above an ignored traceback from which on a log is no excerpt that was cut out around it.
EXCERPT = 100
#: Bytes after which failures that the run outlived are dropped, so they take no room.
STRETCH = 1 << 18


class BlockReader:
    """Reads one log, block by block."""

    def __init__(
        self,
        ready: ReadySignatures,
        index: int,
        rank: int | None,
        *,
        latest: bool = False,
        one_run: bool = False,
    ) -> None:
        self.ready = ready
        self.lines = LineReader(ready, index, rank, latest=latest)
        self.course = Course(self.lines)
        self.tail: collections.deque[tuple[int, bytes]] = collections.deque(maxlen=TAIL)
        self.carry = b""
        self.above = b""  # what stands above `carry`, for a long traceback
        self.done = 0  # bytes of `carry` that were already processed
        self.fragment = False  # the last processed line is still incomplete
        self.one_run = one_run  # the openings of others are not searched for
        self.started = False  # a launcher wrote its first line, so this is no excerpt

    def feed(self, block: bytes, *, last: bool) -> None:
        """Works through a block.

        The last lines of a block wait for the next block, so a hit always has context on both
        sides.
        """
        if last:
            self.carry, self.done = self.above + self.carry, len(self.above) + self.done
        window = Window(self.carry + block, self.done)
        data, begin = window.data, self.done
        end = len(data)
        if not last:
            kept = window.back(end, CONTEXT)
            if data.find(b"\n", max(0, kept - 1)) < 0:
                kept = end  # an endless line: waiting is of no use
            elif kept and data[kept - 1] != 10:  # noqa: PLR2004  # newline
                kept = data.find(b"\n", kept) + 1
            end = max(begin, kept)
        if end > begin:
            self._stretches(window, begin, end)
        first = window.back(end, FRAME_LINES)
        self.above = data[window.back(first, MOST_FRAME_LINES) : first]
        self.carry = data[first:]
        self.done = end - first

    def _stretches(self, window: Window, begin: int, end: int) -> None:
        data = window.data
        if self.fragment:  # the part of the line before `begin` was already processed
            rest, began = self.ready.hot(data[begin:end])
            hot = {begin + at: texts for at, texts in rest.items()}
            began = [begin + at for at in began]
        else:
            hot, began = self.ready.hot(data)
        self.started = self.started or bool(began)
        places = sorted(place for place in hot if begin <= place < end)
        if not self.lines.result.lines and not self.one_run:
            self.course.runs.learn(data[begin:end])
        starts = self.course.runs.find(data, begin, end, began)
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
            if first in news and (self.lines.result.lines or first > begin):
                self.course.begin_run(window, first, own=news[first])
            low, high = bisect.bisect_left(places, first), bisect.bisect_left(places, stop)
            self._read_stretch(
                window, first, stop, {place: hot[place] for place in places[low:high]}
            )
            self.course.note_progress(window, first, stop, fragment=self.fragment)
            first = stop
        self._note_tail(data, begin, end)

    def _read_stretch(self, window: Window, begin: int, end: int, hot: dict[int, set[str]]) -> None:
        data = window.data
        number = self.lines.result.lines + (0 if self.fragment else 1)
        place = begin
        for start, literals in hot.items():
            while self.lines.traces.busy and place < start:
                self.lines.line(window, place, number, set())
                place = data.find(b"\n", place, end) + 1
                number += 1
            number += data.count(b"\n", place, start)
            place = start
            if self.lines.traces.busy:
                self.lines.line(window, start, number, literals)
            elif not literals <= self.lines.spent:
                self._take_unless_dull(window, start, number, literals)
            following = data.find(b"\n", start, end) + 1
            place = following or end
            number += 1 if following else 0
        while self.lines.traces.busy and place < end:
            self.lines.line(window, place, number, set())
            following = data.find(b"\n", place, end) + 1
            place = following or end
            number += 1 if following else 0
        self.lines.place_errors(window)
        number += data.count(b"\n", place, end)
        self.fragment = data[end - 1] != 10  # noqa: PLR2004  # newline
        self.lines.result.lines = number if self.fragment else number - 1

    def _take_unless_dull(
        self, window: Window, start: int, number: int, literals: set[str]
    ) -> None:
        """Reads a line outside tracebacks, unless the same line added nothing before."""
        raw = window.line(start)
        if raw in self.lines.dull:
            return
        before = self.lines.added()
        self.lines.line(window, start, number, literals)
        if self.lines.added() == before and len(raw) <= LONGEST_DULL and not literals & COURSE:
            if len(self.lines.dull) >= MOST_DULL:
                self.lines.dull.clear()
            self.lines.dull.add(raw)

    def _note_tail(self, data: bytes, begin: int, end: int) -> None:
        number = self.lines.result.lines
        found: list[tuple[int, bytes]] = []
        stop = end if self.fragment else end - 1
        for _ in range(BLANK):  # blank lines left by a progress bar or a buffer
            start = max(begin, data.rfind(b"\n", begin, stop) + 1)
            if start <= begin or stop - start > LONGEST or data[start:stop].strip():
                break
            number, stop = number - 1, start - 1
        for _ in range(TAIL):
            start = max(begin, data.rfind(b"\n", begin, stop) + 1)
            line = data[start : min(stop, start + LONGEST)]
            if stop - start > LONGEST:  # progress bars without newlines: keep both ends
                line = line[: LONGEST // 2] + data[stop - LONGEST // 2 : stop]
            if line.strip():
                found.append((number, line))
            number -= 1
            stop = start - 1
            if stop <= begin:
                break
        self.tail.extend(reversed(found))

    def _leave_out_ignored(self, result: Scan) -> None:
        """Drops hits and exceptions with the text of a hit in an ignored traceback.

        Where several processes write into each other, the head of a traceback may be lost. An
        exception that no hit is for must be near the traceback that was ignored. One with frames of
        the script was not ignored: Python ignores those of libraries' callbacks and finalizers.
        """
        left = {error.line for error in result.errors if error.file and not package_of(error.file)}
        beside = [(lines, shape(said)) for lines, said in self.lines.aside]
        result.errors = [
            error
            for error in result.errors
            if error.line in left
            or not any(
                shape(error.text) == said and lines.start - NEAR < error.line < lines.stop + NEAR
                for lines, said in beside
            )
        ]
        alike = {(id(hit.known), shape(hit.text)) for hit in self.lines.ignored}
        if alike:
            result.hits = [
                hit
                for hit in result.hits
                if hit.line in left or (id(hit.known), shape(hit.text)) not in alike
            ]
            texts = {text for _, text in alike}
            result.errors = [
                error
                for error in result.errors
                if error.line in left or shape(error.text) not in texts
            ]

    def finish(self) -> Scan:
        """The result for the whole log."""
        result = self.lines.result
        result.errors = self.lines.traces.errors
        traces = self.lines.traces
        result.cut = traces.cut or traces.unfinished(result.lines)
        self.course.restore()
        self.course.recall()
        died = self.lines.fell is not None or self.lines.fatal or result.failures
        trained = bool(self.lines.steps) and not died  # an excerpt shows no steps
        self._leave_out_ignored(result)
        ignored = self.lines.ignored
        begins_far_above = bool(ignored) and ignored[0].line > EXCERPT
        whole = (self.started or begins_far_above) and not died
        if trained or whole or result.hits or result.errors:
            result.ignored = ignored
        else:
            result.hits = ignored
        tail = list(self.tail)
        if trained or whole:
            aside = self.lines.aside
            tail = [row for row in tail if not any(row[0] in lines for lines, _ in aside)] or (
                tail[-1:]
            )
        result.tail = [(number, strip_prefixes(reader.decode(line))[0]) for number, line in tail]
        return result
