"""Tracks the runs in a log and drops failures that a run outlived from the candidates."""

from __future__ import annotations

import collections
import functools

import msgspec

from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.line_reader import LineReader
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.outlived import BUFFERED, covers, ends_all
from dsdoctor.logs.progress import (
    STEPS,
    Step,
    Steps,
    advanced,
    begins_again,
    first_step,
    last_steps,
)
from dsdoctor.logs.runs import Openings
from dsdoctor.logs.window import Window
from dsdoctor.model.condition import Level

#: Most outlived failures that are kept for the report.
MOST_OUTLIVED = 20
#: Status of Python after an exception that nothing caught.
UNCAUGHT = 1
#: Lines between such an exception and the launcher's report: tracebacks of the other ranks.
NEAR = 200
#: If the last run has fewer lines and shows no failure, the run before it is explained instead.
SHORT_RUN = 40
#: Lines of a run that printed so few that nothing is said by their number.
FEWEST = 10


class Course:
    """The runs in a log, one after another, and which of their failures still count."""

    def __init__(self, lines: LineReader) -> None:
        self.lines = lines
        self.runs = Openings()
        self.before: Scan | None = None  # the result for the run before the last one
        self.reached = 0  # lines of that run above its failures

    def begin_run(self, window: Window, start: int, *, own: bool) -> None:
        """Sets the failures of the earlier run aside when another one begins.

        Args:
            window: the block.
            start: offset of the first line of the new run.
            own: the log's own opening marks it, which may also recur within one run.
        """
        result = self.lines.result
        hits = result.hits if own else [hit for hit in result.hits if self._told(hit)]
        if not (hits or self.lines.traces.errors or set(FATAL_MARKS) & result.marks.keys()):
            if own:
                self.runs.forget()
            return
        if own:
            self.runs.prove()
        self.before = msgspec.structs.replace(result, errors=list(self.lines.traces.errors))
        ended: list[Hit | Error] = [*result.hits, *self.lines.traces.errors]
        places = [one.line if isinstance(one, Hit) else one.begun for one in ended]
        self.reached = min(places, default=result.lines) - result.began
        result.outlived = (result.outlived + ended)[-MOST_OUTLIVED:]
        result.began = result.lines + 1
        result.restarts.append((result.began, window.when(start)))
        result.hits, result.marks, result.flags, result.failures = [], {}, set(), []
        result.step = None
        self.lines.steps = {}
        self.lines.fatal.clear()
        self.lines.traces.begin()
        self.lines.per_signature.clear()
        self.lines.renew()

    def _told(self, hit: Hit) -> bool:
        """Whether a hit tells of a failure, not of what a launcher says above its first line.

        DeepSpeed reports what it makes of CUDA_VISIBLE_DEVICES, then the command.
        """
        said = hit.known.signature
        needed = not said.requires or not self.lines.result.flags.isdisjoint(said.requires)
        return needed and said.level > Level.HINT

    def _just_ended(self) -> list[Hit | Error]:
        """What ended all processes so few lines ago that they still print."""
        result = self.lines.result
        found: list[Hit | Error] = [*result.hits, *self.lines.traces.errors]
        return [one for one in found if result.lines - one.line < BUFFERED and ends_all(one)]

    def note_progress(self, window: Window, begin: int, end: int, *, fragment: bool) -> None:
        """Records the last training step of a stretch, and drops what the run outlived."""
        steps = last_steps(window.data, begin, end)
        if not steps:
            return
        last = max(steps.values(), key=lambda step: step.place)
        result = self.lines.result

        def number_of(step: Step) -> int:
            """Line number of a step."""
            lines = window.data.count(b"\n", step.place, end)
            return result.lines - lines + (0 if fragment else 1)

        self.lines.steps = {**self.lines.steps, **steps}

        @functools.cache
        def first() -> int:
            """Line number of the first line of the stretch."""
            return result.lines - window.data.count(b"\n", begin, end) + 1

        result.step = (number_of(last), window.when(last.place), last)
        numbers = {kind: number_of(step) for kind, step in steps.items()}

        def is_over(line: int, before: Steps) -> bool:
            after = {kind: step for kind, step in steps.items() if line < numbers[kind]}
            both = before.keys() & after.keys()
            if not after or (both and advanced(before, after)):
                return bool(after)
            rest = window.data[begin:end].split(b"\n")[max(0, line - first()) :]
            if both:
                return any(begins_again(rest, before[kind], after[kind]) for kind in both)
            # no step of these kinds was seen before the line: compare with the first after it
            since = {kind: first_step(rest, kind) for kind in after}
            before = {
                kind: step
                for kind, step in since.items()
                if step is not None and (before or step.reached > STEPS)
            }
            return advanced(before, after)

        ends = self._just_ended()

        def over(item: Hit | Error) -> bool:
            return not _is_of(item, ends) and is_over(item.line, item.steps)

        if self.lines.fell is not None and is_over(self.lines.fell[0], self.lines.fell[2]):
            place, when, _ = self.lines.fell
            self.lines.fell = None
            if all(line < place for line, _ in result.restarts):
                result.restarts.append((place, when))
        gone: list[Hit | Error] = [error for error in self.lines.traces.errors if over(error)]
        gone += [hit for hit in result.hits if over(hit)]
        for name, before in list(self.lines.fatal.items()):
            if is_over(result.marks[name][0], before):
                del self.lines.fatal[name], result.marks[name]
                self.lines.renew()
        result.failures = [one for one in result.failures if not is_over(one.line, one.steps)]
        if not gone:
            return
        result.outlived = (result.outlived + gone)[-MOST_OUTLIVED:]
        result.hits = [hit for hit in result.hits if not over(hit)]
        self.lines.traces.forget(over)
        self.lines.per_signature = collections.Counter(
            self.lines.ready.number_of[id(hit.known)] for hit in result.hits
        )
        self.lines.renew()

    def restore(self) -> None:
        """Restores the run before the last one if the last one had hardly begun.

        One that came further than the run before it had begun, however few lines it printed.
        """
        result, before = self.lines.result, self.before
        lines = result.lines - result.began
        if before is None or lines >= SHORT_RUN or result.step is not None:
            return
        if self.runs.proven and lines >= max(self.reached, FEWEST):
            return
        if result.hits or result.errors or set(FATAL_MARKS) & result.marks.keys():
            return
        result.hits, result.errors, result.failures = before.hits, before.errors, before.failures
        result.marks = {**before.marks, **result.marks}
        result.flags |= before.flags
        result.step, result.began = before.step, 0
        result.restarts.pop()

    def recall(self) -> None:
        """Restores the exception that ended a rank while the bars of others still advanced.

        The launcher names that rank, which ended with the status of an uncaught exception.
        """
        result = self.lines.result
        failure = result.failures[-1] if result.failures else None
        if failure is None or failure.rank is None or failure.code != UNCAUGHT:
            return
        told = {error.rank for error in result.errors} | {hit.rank for hit in result.hits}
        if failure.rank in told:
            return
        errors = [
            item
            for item in result.outlived
            if isinstance(item, Error)
            and item.rank == failure.rank
            and item.line >= max(result.began, failure.line - NEAR)
        ]
        if not errors:
            return
        last = errors[-1]
        result.errors = sorted([*result.errors, last], key=lambda error: error.line)
        hits = [
            item
            for item in result.outlived
            if isinstance(item, Hit) and item.rank == last.rank and item.line >= last.begun
        ]
        result.hits = sorted([*result.hits, *hits], key=lambda hit: hit.line)
        back = {id(item) for item in (last, *hits)}
        result.outlived = [item for item in result.outlived if id(item) not in back]


def _is_of(item: Hit | Error, ends: list[Hit | Error]) -> bool:
    """Whether something is one of the ends, or on the lines of an exception among them."""
    return any(
        item is end or (isinstance(item, Hit) and isinstance(end, Error) and covers(item, end))
        for end in ends
    )
