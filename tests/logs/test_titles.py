"""The title of an issue is read, and so is the first frame of a long traceback."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.frames import KEPT_FRAMES, frames_of
from dsdoctor.logs.titles import without_mark
from dsdoctor.model.diagnosis import Diagnosis

SIGNATURES = signatures_of(packs.load(builtin_only=True))


def of(text: str) -> Diagnosis:
    return diagnose([Source(name="a.log", data=text.encode())], SIGNATURES)


def condition(text: str) -> str:
    found = of(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        pytest.param("RuntimeError: cuda runtime error (100)", "no-gpu-visible", id="gpu"),
        pytest.param("/usr/bin/python: No module named torch.distributed", "torch-missing", id="2"),
    ],
)
def test_the_title_of_an_issue_is_the_error(title: str, expected: str) -> None:
    body = "\n\nI ran the example as it is.\nHow can I solve this?\n"
    assert condition(f"# {title}{body}") == expected
    assert condition(f"\ufeff# {title}{body}") == expected
    assert of(f"# {title}{body}").causes[0].evidence[0].line == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("# make the data\necho done\n", id="a comment"),
        pytest.param("#!/bin/bash\n\necho done\n", id="an interpreter"),
        pytest.param("## RuntimeError: a\n\n", id="a section"),
        pytest.param("# CUDA out of memory\n\nUse less.\n", id="a subject"),
        pytest.param("done\n# RuntimeError: a\n\n", id="further down"),
        pytest.param("", id="nothing"),
    ],
)
def test_other_lines_with_a_mark_stay_as_they_are(text: str) -> None:
    assert b"".join(without_mark(iter([text.encode()]))) == text.encode()


def boxed(frames: list[tuple[str, str]], last: str) -> str:
    """A traceback as rich draws it, with the source around each line."""
    rows = ["╭──────────────── Traceback (most recent call last) ────────────────╮"]
    for file, function in frames:
        rows += [f"│ {file}:20 in {function}".ljust(68) + "│", "│" + " " * 67 + "│"]
        rows += [f"│   {number} │   x = x + {number}".ljust(68) + "│" for number in range(17, 20)]
        rows += ["│ ❱ 20 │   call(x)".ljust(68) + "│"]
        rows += [f"│   {number} │   x = x + {number}".ljust(68) + "│" for number in range(21, 24)]
    return "\n".join([*rows, "╰" + "─" * 67 + "╯", last, ""])


OUT_OF_MEMORY = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 48.00 MiB (GPU 0; 79.15 GiB total "
    "capacity; 5.17 GiB already allocated; 6.44 MiB free; 5.26 GiB reserved in total by PyTorch)"
)


def test_a_start_below_a_long_traceback_is_another_one() -> None:
    """rich shows nine lines for each frame, so the first one is far above the exception."""
    site = "/env/lib/python3.9/site-packages/torch/nn/modules/module.py"
    main, own = ("/home/me/main.py", "<module>"), ("/home/me/model.py", "fit")
    steps = "".join(f"step {number} loss 1.{number}\n" for number in range(30))
    died = boxed([main, own, *[(site, "forward")] * 8], OUT_OF_MEMORY)
    failed = boxed([main, own, *[("/home/me/data.py", "draw")] * 4], "ValueError: sample too large")
    assert condition(f"{steps}{died}") == "gpu-oom"
    assert condition(f"{steps}{died}{steps}{failed}") == "user-code"


def test_the_outermost_frame_is_kept_beside_the_deepest() -> None:
    lines = [f'  File "/home/me/a.py", line {number}, in f' for number in range(1, 40)]
    found = frames_of(lines)
    assert len(found) == KEPT_FRAMES
    assert [frame.line for frame in (found[0], found[1], found[-1])] == [
        1,
        40 - KEPT_FRAMES + 1,
        39,
    ]
