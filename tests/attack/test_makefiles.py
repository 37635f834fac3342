"""Hostile Makefiles cost linear time, and their variables do not grow without limit."""

from __future__ import annotations

import itertools
import time

import pytest

from dsdoctor.probes.makefiles import UNKNOWN, arguments, shell_text

SHAPES = {
    "spaces": (" ", "train: ", "\n"),
    "continued lines": ("\\\n", "A = ", "\ntrain:\n"),
    "a recipe": ("\ttorchrun $(A) t.py\n", "A = 1\ntrain:\n", ""),
    "prerequisites": ("a ", "train: ", "\n"),
    "an added value": ("A += x\n", "train:\n\ttorchrun $(A) t.py\n", ""),
    "a doubled value": ("A := $(A)$(A)\n", "A := x\ntrain:\n\ttorchrun $(A) t.py\n", ""),
    "colons": (":", "train", "\n"),
    "comments": ("#", "train:\n\ttrue\n", "\n"),
    "rules": ("train: a\n\ttrue\n", "", ""),
}


def seconds(size: int, unit: str, head: str, tail: str) -> float:
    text = head + unit * (size // len(unit)) + tail
    begun = time.process_time()
    shell_text(text, arguments(["train"]), {}, bool)
    return time.process_time() - begun


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_makefile_is_read_in_linear_time(shape: tuple[str, str, str]) -> None:
    short = min(seconds(12_000, *shape) for _ in range(2))
    long = min(seconds(96_000, *shape) for _ in range(2))
    # eight times the text: linear is eight times the time, quadratic sixty-four
    assert long < max(24 * short, 0.1)


def test_values_do_not_grow_without_limit() -> None:
    names = [f"A{number}" for number in range(7)]
    lines = [f"{one} = {f'$({other})' * 60}\n" for one, other in itertools.pairwise(names)]
    text = f"train:\n\ttorchrun $(A0) t.py\n{''.join(lines)}A6 = x\n"
    script, reason = shell_text(text, arguments(["train"]), {}, bool)
    assert reason == ""
    assert UNKNOWN in script
    assert len(script) < 100_000
