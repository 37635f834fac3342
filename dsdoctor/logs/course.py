"""What the run outlived: no longer a candidate for the cause, at most reported."""

from __future__ import annotations

import collections
import functools

import msgspec

from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.line_reader import LineReader
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.progress import STEPS, Step, Steps, first_step, last_steps, went_on
from dsdoctor.logs.runs import Openings
from dsdoctor.logs.window import Window

#: What was outlived and is still reported.
MOST_OUTLIVED = 20
#: A last run of fewer lines that shows nothing leaves the one before it to be explained.
SHORT_RUN = 40


class Course:
    """The course of the runs that a log holds, and what of them still counts."""

    def __init__(self, lines: LineReader) -> None:
        self.lines = lines
        self.runs = Openings()
        self.before: Scan | None = None  # what the run before the last one showed

    def begin_run(self, window: Window, start: int, *, own: bool) -> None:
        """Puts aside what an earlier run died of, where another begins.

        Args:
            window: the block.
            start: place of the first line of the new run.
            own: the log's own first lines mark it, and they may be those of one run.
        """
        result = self.lines.result
        if not (result.hits or self.lines.traces.errors or set(FATAL_MARKS) & result.marks.keys()):
            if own:
                self.runs.forget()
            return
        if own:
            self.runs.prove()
        self.before = msgspec.structs.replace(result, errors=list(self.lines.traces.errors))
        ended: list[Hit | Error] = [*result.hits, *self.lines.traces.errors]
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

    def went_on(self, window: Window, begin: int, end: int, *, fragment: bool) -> None:
        """Notes the last step of a block, and forgets what the run outlived."""
        steps = last_steps(window.data, begin, end)
        if not steps:
            return
        last = max(steps.values(), key=lambda step: step.place)
        result = self.lines.result

        def number_of(step: Step) -> int:
            """Number of the line of a step in what was worked through."""
            lines = window.data.count(b"\n", step.place, end)
            return result.lines - lines + (0 if fragment else 1)

        self.lines.steps = {**self.lines.steps, **steps}

        @functools.cache
        def first() -> int:
            """Number of the stretch's first line."""
            return result.lines - window.data.count(b"\n", begin, end) + 1

        result.step = (number_of(last), window.when(last.place), last)
        numbers = {kind: number_of(step) for kind, step in steps.items()}

        def is_over(line: int, before: Steps) -> bool:
            behind = {kind: step for kind, step in steps.items() if line < numbers[kind]}
            if behind and not before.keys() & behind.keys():
                # not counted so before: what these kinds count from here on decides
                rest = window.data[begin:end].split(b"\n")[max(0, line - first()) :]
                since = {kind: first_step(rest, kind) for kind in behind}
                before = {
                    kind: step
                    for kind, step in since.items()
                    if step is not None and (before or step.reached > STEPS)
                }
            return went_on(before, behind)

        def over(item: Hit | Error) -> bool:
            return is_over(item.line, item.steps)

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
        """Takes back the run before the last one, where the last one had hardly begun."""
        result, before = self.lines.result, self.before
        if before is None or result.lines - result.began >= SHORT_RUN or result.step is not None:
            return
        if result.hits or result.errors or set(FATAL_MARKS) & result.marks.keys():
            return
        result.hits, result.errors, result.failures = before.hits, before.errors, before.failures
        result.marks = {**before.marks, **result.marks}
        result.flags |= before.flags
        result.step, result.began = before.step, 0
        result.restarts.pop()
