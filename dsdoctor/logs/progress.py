"""Training steps in a log: a run that advances after a failure has outlived it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy

#: Factor that combines an epoch and a step within it into one number.
EPOCH = 1e6
#: A loss of 0.0 is what a step that was skipped reports. Megatron's lines count the iterations that
#: gave NaN, mostly 0 (Megatron-LM, megatron/training/training.py). A client of vLLM (0.8-0.15
#: entrypoints/llm.py) hands requests to an engine that has died, too.
NO_PROGRESS = lazy(
    r"(?i)\bAdding requests: "
    r"|\bnan\b(?! iterations: +0\b)|\binf\b|loss'?[:=]? *0\.0*(?:\D|$)|overflow|skipping"
)
#: Progress bars of loading a model: every rank loads its own, even after another has died
#: (transformers 4.20-5.23 modeling_utils.py, core_model_loading.py; diffusers pipeline_utils.py).
LOADING = lazy(r"Loading (?:checkpoint shards|weights|pipeline components)[^|\n]{0,20}\|")
#: A progress line contains one of these.
LITERALS = (b"it/s", b"s/it", b"loss", b"Loss", b"step=", b"[batch=", b"; xent: ")
#: Lines examined for each literal, from the end of a block.
MOST_TRIES = 8
LONGEST = 1000
#: Lines below a bar that is full at once in which another one of its length is searched for.
MOST_FURTHER = 2000
#: Steps after which a run has outlived a failure: ranks run one or two steps apart.
STEPS = 3


class Step(NamedTuple):
    """A progress line.

    Attributes:
        place: where it begins in the data that was searched.
        kind: what it counts: `n` and the total (a bar; `r` for one of a program that directs all
            ranks), `s` (steps), `p` or `e` (epochs), "" (nothing).
        reached: the number that training has reached.
    """

    place: int
    kind: str
    reached: float

    @property
    def is_last(self) -> bool:
        """Whether a bar is full."""
        total = self.kind[1:]
        return total.isdecimal() and 0 < int(total) <= self.reached

    def beyond(self, before: Step | None) -> bool:
        """Whether training advanced between the two."""
        enough = 1 if self.kind.startswith("r") else STEPS
        if before is None or before.kind != self.kind:
            return self.reached >= enough or self.kind in {"", "e"}
        if self.kind in {"", "e"}:
            return self.reached != before.reached or not self.kind
        return abs(self.reached - before.reached) >= enough


#: In front of a line of the process that directs all ranks: it counts a step when every rank has
#: taken it (verl 0.1-0.7 trainer/main_ppo.py, whose tasks Ray names).
DIRECTOR = lazy(rb"(?:\x1b\[\d{1,3}m)?\((?:main_task|\w{0,40}TaskRunner) pid=\d")
#: A progress bar. It counts more finely than an epoch in front of it.
BAR = lazy(r"(?P<n>\d{1,9})/(?P<of>\d{1,9}) \[[\d:]+<[\d:]+, +[\d.]+ ?(?:it/s|s/it)")


#: A progress line: the formats in which trainers print steps or epochs with a loss.
@functools.cache  # most short logs show no progress
def _progress() -> re.Pattern[str]:
    return re.compile(
        # composer, loggers/console_logger.py
        r"\[batch=(?P<b>\d{1,9})(?:/\d{1,9})?\]:"
        # deepspeed 0.19.8, utils/timer.py
        r"|global_step=(?P<t>\d{1,9}), RunningAvgSamplesPerSec"
        r"|(?i:\b(?:global[_ ]?step|micro[_ ]?step|iteration|iter|step|update|batch)s?\b"
        r"[ :=#]{0,12}[\[(]? {0,12}(?P<s>\d{1,9})\b.{0,600}?loss)"
        r"|\[ {0,8}(?P<g>\d{1,6}), {1,8}(?P<h>\d{1,9})(?:/ {0,8}\d{1,9})?\].{0,80}loss"
        r"|(?i:\b(?:epoch|train)\b[^\d\n]{0,12}(?P<f>\d{1,6})(?:/\d{1,6})?[^\w\n]{1,8}"
        r"(?P<i>\d{1,9}) ?/ ?\d{1,9}\b"
        r".{0,200}loss)"
        r"|(?i:\bepoch\b[ :=#]*\[?(?P<p>\d{1,9}).{0,200}?loss)"
        r"|^\{'(?:train_)?loss': .{0,200}'epoch': '?(?P<e>\d{1,6}(?:\.\d{1,9})?)"
        # OpenNMT-py 0.3-3.5 onmt/utils/statistics.py; PreSumm models/reporter.py
        r"|\bStep (?P<q>\d{1,9})/ {0,4}\d{1,9}; .{0,80}xent: "
        r"|^\{'loss': |'train_runtime'|\[Rank 0\] step=(?P<d>\d{1,9}), skipped"
    )


def step_of(text: str, place: int = 0) -> Step | None:
    """The step that a line reports; None if it does not report progress.

    >>> step_of(" 12%|# | 120/1000 [00:40<04:53,  3.00it/s]")
    Step(place=0, kind='n1000', reached=120.0)
    >>> step_of("INFO:root:[9,   200/ 6090] train_loss: 2.728")
    Step(place=0, kind='s', reached=9000200.0)
    >>> step_of("Step 50/100000; acc:  31.2; ppl: 51.2; xent: 3.9; lr: 0.00001; 3/41 tok/s")
    Step(place=0, kind='s', reached=50.0)
    >>> step_of("batch:   20 | loss: 5.1")
    Step(place=0, kind='s', reached=20.0)
    >>> step_of("Epoch 1:  3%|# | 3000/60000 [25:00<9:00:00,  2.01it/s, v_num=7, loss=0.1]")
    Step(place=0, kind='n60000', reached=3000.0)
    """
    bar = BAR.search(text)
    found = bar or _progress().search(text)
    if found is None or NO_PROGRESS.search(text):
        return None
    if bar is not None:  # bars of another length count something else
        return Step(place, f"{_counter(text.encode())}{bar['of']}", float(bar["n"]))
    for epoch, step in (("g", "h"), ("f", "i")):
        if found[epoch] is not None:
            return Step(place, "s", float(found[epoch]) * EPOCH + float(found[step]))
    for kind, count in (
        ("s", "s"),
        ("b", "s"),
        ("t", "s"),
        ("d", "s"),
        ("q", "s"),
        ("p", "p"),
        ("e", "e"),
    ):
        if found[kind] is not None:
            return Step(place, count, float(found[kind]))
    return Step(place, "", 0.0)


def _counter(line: bytes) -> str:
    """The kind of a bar, given what its line begins with."""
    return "r" if DIRECTOR.match(line) else "n"


#: The last step of each kind.
Steps = dict[str, Step]


def advanced(before: Steps, after: Steps) -> bool:
    """Whether training advanced between two places of a log.

    A progress bar and the lines of a logger are never compared with each other: the bar of rank 0
    may print the step in which another rank has already failed.
    """
    both = before.keys() & after.keys()
    if both:
        return any(after[kind].beyond(before[kind]) for kind in both)
    return any(step.beyond(None) for step in after.values())


def last_steps(data: bytes, begin: int, end: int) -> Steps:
    """The last progress line of each kind in a stretch of a log."""
    found: Steps = {}
    for literal in LITERALS:
        stop = end
        for _ in range(MOST_TRIES):
            place = data.rfind(literal, begin, stop)
            if place < 0:
                break
            line = max(begin, data.rfind(b"\n", begin, place) + 1)
            start = max(line, data.rfind(b"\r", line, place) + 1)
            close = data.find(b"\n", place, min(end, place + LONGEST))
            text = data[start : close if close > 0 else min(end, place + LONGEST)]
            step = step_of(text[:LONGEST].decode("utf-8", "replace"), start)
            if step is not None and start > line and step.kind[:1] == "n":
                step = step._replace(kind=_counter(data[line:start]) + step.kind[1:])
            if step is not None and (step.kind not in found or start > found[step.kind].place):
                found[step.kind] = step
                break
            stop = start
            if stop <= begin:
                break
    return found


def first_step(lines: Iterable[bytes], kind: str) -> Step | None:
    """The first progress line of a kind, if possible of a bar that is not full yet.

    One that is full at once is of something quick, such as a list that is prepared for the work
    that another bar of the same length counts.

    >>> bars = [b"9/9 [00:00<00:00, 900.00it/s]", b"4/9 [00:20<00:25,  5.00s/it]"]
    >>> first_step(bars, "n9").reached
    4.0
    """
    full, further = None, MOST_FURTHER
    for line in lines:
        if not further:
            break
        further -= full is not None
        if any(literal in line for literal in LITERALS):
            for part in dict.fromkeys((line[:LONGEST], line[-LONGEST:])):
                step = step_of(part.decode("utf-8", "replace"))
                if step is not None and step.kind == kind:
                    if not step.is_last:
                        return step
                    full = full or step
    return full


def begins_again(lines: Iterable[bytes], before: Step, after: Step) -> bool:
    """Whether the count of one kind begins again in lines, and advances to `after`.

    Loading a model does not count: every rank loads its own, even after another has died.
    """
    step = first_step((line for line in lines if b"Loading " not in line), before.kind)
    return (
        step is not None
        and step.reached < STEPS <= before.reached - step.reached
        and after.beyond(step)
    )
