"""What a log proves to have been active: the answers to `diagnose --expect` (guide row C5).

The patterns match what DeepSpeed's engine, its configuration print and its launchers print
(runtime/engine.py, runtime/config.py, runtime/zero/stage3.py, launcher/launch.py; 0.9 to 0.19).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.marks import mark_pattern
from dsdoctor.model.diagnosis import Expectation, Line

#: Names of `ZeroStageEnum`, which Python 3.12 and later print instead of the number.
STAGES = {"disabled": "0", "optimizer_states": "1", "gradients": "2", "weights": "3"}
#: Maps an expectation to what shows it: mark, its group, the values that prove it ("" = presence).
#: Any other value of the group refutes it; a mark without a group can only prove it.
PROOFS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "zero0": (("zero-config", "n", "0"), ("zero", "n", "0")),
    "zero1": (("zero-config", "n", "1"), ("zero", "n", "1")),
    "zero2": (("zero-config", "n", "2"), ("zero", "n", "2")),
    "zero3": (
        ("zero-config", "n", "3"),
        ("zero", "n", "3"),
        ("stage3", "", ""),
        ("zero3-offload", "", ""),
        ("zero-init", "", ""),
    ),
    "offload": (
        ("cpu-offload", "v", "True"),
        ("offload-config", "v", "cpu nvme"),
        ("offload-param", "v", "cpu nvme"),
        ("cpu-adam", "", ""),
    ),
    "bf16": (("bf16", "v", "True"), ("bf16-optimizer", "", "")),
    "fp16": (("fp16", "v", "True"), ("fp16-config", "v", "True"), ("fp16-optimizer", "", "")),
    "deepspeed": (("deepspeed-info", "", ""), ("spawned", "", ""), ("zero-config", "", "")),
}
#: Signs of stage 3, which refute the other stages.
STAGE3 = ("stage3", "zero3-offload", "zero-init")
#: Marks whose other values do not refute: optimizer and parameters are offloaded independently.
WEAK = frozenset({"offload-config", "offload-param"})
GPUS = lazy(r"([1-9]\d{0,5})gpus?")
WORLD = ("world", "world-size", "distributed")

Marks = Mapping[str, tuple[int, str, int]]
"""Maps a mark to line number, text and index of the log."""


def known_expectations() -> tuple[str, ...]:
    """The names that `--expect` accepts, apart from those such as `4gpus`."""
    return tuple(PROOFS)


def _value(mark: str, group: str, text: str) -> tuple[str, str] | None:
    """The value that a mark shows, and the text that shows it."""
    match = mark_pattern(mark).search(text)
    if match is None:
        return None
    value = (match[group] or "") if group else ""
    return STAGES.get(value, value), match[0]


def expectation(
    name: str, marks: Marks, line_of: Callable[[tuple[int, str, int]], Line]
) -> Expectation:
    """What the log shows about one expectation.

    Args:
        name: `zero3`, `offload`, `4gpus`, ...
        marks: the marks in the logs.
        line_of: makes a line that is safe to show from a mark.
    """
    if found := GPUS.fullmatch(name):
        return _gpus(name, found[1], marks, line_of)
    refuted: Expectation | None = None
    for mark, group, wanted in PROOFS.get(name, ()):
        if mark not in marks:
            continue
        line = line_of(marks[mark])
        shown = _value(mark, group, marks[mark][1])
        if shown is None:
            continue
        words = f"the log shows `{shown[1]}`"
        if not group or shown[0] in wanted.split():
            return Expectation(name=name, state="proved", message=words, evidence=line)
        if mark not in WEAK and refuted is None:
            refuted = Expectation(name=name, state="refuted", message=words, evidence=line)
    if refuted is None and name in {"zero0", "zero1", "zero2"}:
        for mark in STAGE3:
            if mark in marks:
                message = "the log shows stage 3"
                line = line_of(marks[mark])
                return Expectation(name=name, state="refuted", message=message, evidence=line)
    return refuted or _offload_is_off(name, marks, line_of) or _not_shown(name)


def _offload_is_off(
    name: str, marks: Marks, line_of: Callable[[tuple[int, str, int]], Line]
) -> Expectation | None:
    if name != "offload" or "offload-none" not in marks:
        return None
    message = "the configuration that DeepSpeed printed offloads neither optimizer nor parameters"
    return Expectation(
        name=name, state="refuted", message=message, evidence=line_of(marks["offload-none"])
    )


def _not_shown(name: str) -> Expectation:
    message = "the log neither proves nor refutes it"
    return Expectation(name=name, state="not-shown", message=message)


def _gpus(
    name: str, wanted: str, marks: Marks, line_of: Callable[[tuple[int, str, int]], Line]
) -> Expectation:
    for mark in WORLD:
        shown = _value(mark, "n", marks[mark][1]) if mark in marks else None
        if shown is None:
            continue
        state, message = "refuted", f"the log shows a world of {shown[0]}"
        if shown[0] == wanted:
            state = "proved"
            if "accelerator-cpu" in marks:
                state, message = "refuted", f"{message}, but on the CPU"
        return Expectation(name=name, state=state, message=message, evidence=line_of(marks[mark]))
    return Expectation(
        name=name, state="not-shown", message="the log does not state the world size"
    )
