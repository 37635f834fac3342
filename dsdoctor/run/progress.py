"""Reads steps, loss, learning rate and throughput from the output of trainers.

Sources of the formats: deepspeed 0.19.8 `runtime/engine.py` (_report_progress, save_checkpoint),
`runtime/pipe/engine.py`, `utils/timer.py`, `runtime/fp16/loss_scaler.py`; transformers 4.51 to 5.23
`trainer_callback.py`, `trainer.py`; accelerate 1.15 `accelerator.py` (save_state); tqdm 4.67
`std.py` (format_meter); Lightning 2.5 progress bars (tqdm's form with metrics after the rate).
Read 2026-11.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Callable

from dsdoctor.model.masking import mask
from dsdoctor.model.plain import printable

#: A chunk that contains none of these has no line to parse.
HINTS = (
    b"loss", b"step", b"it/s", b"s/it", b"iter", b"SamplesPerSec", b"tokens", b"Saving ",
)  # fmt: skip
#: Longer lines are printed tensors and configs.
LONGEST = 2000
#: Number of step times for the median.
KEPT_STEPS = 200

_NUMBER = r"(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|NaN|NAN|inf|Inf|Infinity))"
_STEP = re.compile(
    r"\b(?:global_step|[Ss]teps?|[Ii]ter(?:ation)?s?)\s{0,3}[:=#]?\s{0,3}\[?\s{0,3}(\d{1,12})\b"
)
_LOSS = re.compile(
    r"(?<![\w-])(?:train(?:ing)?[_ ])?(?:lm )?[Ll]oss['\"]?\s{0,3}[:=]?\s{0,3}['\"]?"
    rf"({_NUMBER})"
)
_RATE = re.compile(
    rf"\b(?:learning_rate|learning rate|lr)['\"]?\s{{0,3}}[:=]\s{{0,3}}\[?['\"]?({_NUMBER})"
)
_BAR = re.compile(
    r"(?<![\d/.])(\d{1,12})/(\d{1,12}) \[(?:\d+:)?\d+:\d+<[\d:?]+, {0,3}([\d.]+|\?) ?(it/s|s/it)"
)
_TIME = re.compile(
    r"(?:iter(?:ation)? time|step time|elapsed time per iteration|time)"
    r" ?\(?(s|ms)?\)?['\"]?\s{0,3}[:=]?\s{0,3}([\d.]+) ?(ms|s)?\b"
)
_SAMPLES = re.compile(
    r"(?:CurrSamplesPerSec=|samples/sec: ?|samples_per_second['\"]?: ?['\"]?)([\d.]+)"
)
_TOKENS = re.compile(
    r"(?:tokens?(?:/s(?:ec)?|_per_sec(?:ond)?)|tok/s)['\"]?\s{0,3}[:=]?\s{0,3}['\"]?([\d.,]+)"
)
_SCALE = re.compile(r"Attempted loss scale: (\d+), reducing to (\d+)")
_CHECKPOINT = re.compile(
    r"\bSaving (?:model checkpoint(?: to|:)|current state to) ['\"]?(?P<path>[^\s'\",]{1,400})"
)
#: Files of ranks in DeepSpeed's checkpoints; a job resumes from their folder.
_RANK_FILE = re.compile(r"/[^/]*(?:mp_rank_|zero_pp_rank_|layer_|bf16_zero_)[^/]*\.pt$")
_SCALE_FLOOR = "Current loss scale already at minimum"


@dataclasses.dataclass
class Step:
    """What one line reports. None = not reported.

    Attributes:
        step: number of the optimizer step (or of the bar's position).
        loss: loss.
        learning_rate: learning rate.
        seconds: wall time of a step, s.
        samples_per_second: throughput.
        tokens_per_second: throughput.
        loss_scale: fp16 loss scale after an overflow.
    """

    step: int | None = None
    loss: float | None = None
    learning_rate: float | None = None
    seconds: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    loss_scale: int | None = None


def parse(line: str) -> Step | None:
    """What a line of a training log reports; None for all other lines.

    >>> parse("{'loss': 2.31, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1}")
    Step(step=None, loss=2.31, learning_rate=5e-05, seconds=None, samples_per_second=None, tokens_per_second=None, loss_scale=None)
    >>> parse("steps: 10 loss: 2.3 iter time (s): 0.512 samples/sec: 15.6").seconds
    0.512
    >>> parse("  3%|▎  | 12/400 [00:10<05:20,  1.25it/s]").step
    12
    >>> parse("loading checkpoint shards") is None
    True
    """  # noqa: E501  # the repr of a dataclass is one line
    found = Step()
    if (bar := _BAR.search(line)) is not None:
        _from_bar(bar, found)
    elif (step := _STEP.search(line)) is not None:
        found.step = int(step[1])
    if (loss := _LOSS.search(line)) is not None:
        found.loss = float(loss[1])
    if (rate := _RATE.search(line)) is not None:
        found.learning_rate = float(rate[1])
    if (samples := _SAMPLES.search(line)) is not None:
        found.samples_per_second = _number(samples[1])
    if (tokens := _TOKENS.search(line)) is not None:
        found.tokens_per_second = _number(tokens[1])
    if (scale := _SCALE.search(line)) is not None:
        found.loss_scale = int(scale[2])
    elif _SCALE_FLOOR in line:
        found.loss_scale = 0
    if found.seconds is None and found.step is not None:
        found.seconds = _seconds(line)
    # a step number alone could be any line with "step 3"; with a bar or a figure it is progress
    figures = (found.loss, found.samples_per_second, found.tokens_per_second, found.loss_scale)
    if bar is None and all(value is None for value in figures):
        return found if "skipped=" in line and found.step is not None else None
    return found


def _shown(path: str | None) -> str:
    """A path from the job's output, without control characters and secrets."""
    return mask(printable(path or ""))


def checkpoint(line: str) -> str | None:
    """The checkpoint that was saved according to a line.

    >>> checkpoint("[Rank 0] Saving model checkpoint: out/global_step9/mp_rank_00_model_states.pt")
    'out/global_step9'
    >>> checkpoint("Saving model checkpoint to out/checkpoint-500")
    'out/checkpoint-500'
    """
    found = _CHECKPOINT.search(line)
    return None if found is None else _RANK_FILE.sub("", found["path"]).rstrip(".:")


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None


def _from_bar(bar: re.Match[str], found: Step) -> None:
    found.step = int(bar[1])
    rate = _number(bar[3])
    if rate:
        found.seconds = rate if bar[4] == "s/it" else 1.0 / rate


def _seconds(line: str) -> float | None:
    found = _TIME.search(line)
    value = _number(found[2]) if found else None
    if found is None or not value:
        return None
    unit = found[3] or found[1] or ""
    return value / 1000 if unit == "ms" else value if unit == "s" else None


class Progress:
    """What a job has reported so far.

    Attributes:
        last: newest value of each field.
        begun: when the first step was reported, seconds of the caller's clock.
        loss_is_nan: a loss of NaN was reported.
        checkpoint: the last checkpoint reported as saved; "" = none.
    """

    def __init__(self, on_step: Callable[[float, Step], None] | None = None) -> None:
        self.last = Step()
        self.begun: float | None = None
        self.loss_is_nan = False
        self.checkpoint = ""
        self._on_step = on_step
        self._carry = b""
        self._times: list[float] = []
        self._previous: tuple[int, float] | None = None

    def feed(self, data: bytes, now: float) -> None:
        """Reads output of the job; almost free if it contains nothing of interest."""
        if not any(hint in data for hint in HINTS) and not self._carry:
            return
        *rows, carry = (self._carry + data).replace(b"\r", b"\n").split(b"\n")
        self._carry = carry if len(carry) < LONGEST else b""
        for raw in rows:
            if len(raw) < LONGEST and any(hint in raw for hint in HINTS):
                line = raw.decode("utf-8", "replace")
                self.checkpoint = _shown(checkpoint(line)) or self.checkpoint
                step = parse(line)
                if step is not None:
                    self._take(step, now)

    def _take(self, step: Step, now: float) -> None:
        if step.loss is not None and math.isnan(step.loss):
            self.loss_is_nan = True
        if step.step is not None:
            self.begun = now if self.begun is None else self.begun
            if self._previous is not None and step.step > self._previous[0]:
                done = step.step - self._previous[0]
                step.seconds = step.seconds or (now - self._previous[1]) / done
            if self._previous is None or step.step != self._previous[0]:
                self._previous = (step.step, now)
        if step.seconds:
            self._times = [*self._times[-KEPT_STEPS:], step.seconds]
        for field in dataclasses.fields(Step):
            value = getattr(step, field.name)
            if value is not None:
                setattr(self.last, field.name, value)
        if self._on_step is not None:
            self._on_step(now, step)

    @property
    def median_seconds(self) -> float | None:
        """Median time of a step, s."""
        return statistics.median(self._times) if self._times else None

    def recent_seconds(self, count: int = 5) -> float | None:
        """Median of the newest step times; None until there are enough."""
        return statistics.median(self._times[-count:]) if len(self._times) >= count else None

    @property
    def counted(self) -> int:
        """Number of known step times."""
        return len(self._times)
