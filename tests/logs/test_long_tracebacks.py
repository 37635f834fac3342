"""The first frame of a long traceback is read."""

from __future__ import annotations

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.frames import KEPT_FRAMES, frames_of
from dsdoctor.model.diagnosis import Diagnosis

SIGNATURES = signatures_of(packs.load(builtin_only=True))


def of(text: str) -> Diagnosis:
    return diagnose([Source(name="a.log", data=text.encode())], SIGNATURES)


def condition(text: str) -> str:
    found = of(text)
    return found.causes[0].condition if found.causes else found.outcome.value


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


def test_a_launcher_that_python_2_starts_has_no_torch() -> None:
    assert condition("/usr/bin/python: No module named torch.distributed\n") == "torch-missing"
