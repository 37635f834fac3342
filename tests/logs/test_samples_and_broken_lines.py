"""Batches that torch cannot make of the samples, and tracebacks that a terminal has broken."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages"
DATA = f"{SITE}/torch/utils/data/_utils"


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def in_a_worker(last: str, *frames: tuple[str, str]) -> str:
    """What a worker of a DataLoader sends: it names no frame of the script."""
    lines = [f'  File "{file}", line 7, in {function}' for file, function in frames]
    return "\n".join(
        [
            f"{last.partition(':')[0]}: Caught {last.partition(':')[0]} in DataLoader worker process 0.",
            "Original Traceback (most recent call last):",
            f'  File "{DATA}/worker.py", line 3, in _worker_loop',
            f'  File "{DATA}/fetch.py", line 5, in fetch',
            *lines,
            last,
            "",
        ]
    )


@pytest.mark.parametrize(
    "last",
    [
        "KeyError: 'mask'",
        "RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1",
        "RuntimeError: Trying to resize storage that is not resizable",
        "TypeError: default_collate: batch must contain tensors, but found <class 'NoneType'>",
    ],
    ids=["key", "size", "storage", "type"],
)
def test_samples_that_make_no_batch_are_the_script_s(last: str) -> None:
    text = in_a_worker(last, (f"{DATA}/collate.py", "collate"))
    assert read(text).outcome is Outcome.USER_CODE


@pytest.mark.parametrize(
    "last",
    [
        "RuntimeError: unable to write to file </torch_7_1>: (28)",
        "RuntimeError: received 0 items of ancdata",
    ],
    ids=["shared memory", "descriptors"],
)
def test_what_fails_there_for_another_reason_is_not(last: str) -> None:
    text = in_a_worker(last, (f"{DATA}/collate.py", "collate"))
    assert read(text).outcome is not Outcome.USER_CODE


@pytest.mark.parametrize(
    ("kind", "package", "is_own"),
    [
        ("builtin_function_or_method", "timm/layers/patch_embed.py", True),
        ("method", "timm/layers/patch_embed.py", True),
        ("NoneType", "timm/layers/patch_embed.py", False),  # may be a state of the library's
        ("function", "deepspeed/runtime/engine.py", False),
    ],
)
def test_a_function_that_is_passed_for_a_value(kind: str, package: str, is_own: bool) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 3, in <module>\n'
        '  File "/home/me/train.py", line 9, in main\n'
        f'  File "{SITE}/{package}", line 5, in forward\n'
        f"AttributeError: '{kind}' object has no attribute 'shape'\n"
    )
    assert (read(text).outcome is Outcome.USER_CODE) == is_own


@pytest.mark.parametrize("width", [58, 70, 80])
def test_lines_that_a_terminal_has_broken(width: int) -> None:
    """Copied out of a narrow window: paths and the names of functions go on in the next line."""
    text = in_a_worker("KeyError: 'mask'", (f"{DATA}/collate.py", "collate"))
    cut = [line[at : at + width] for line in text.splitlines() for at in range(0, len(line), width)]
    assert len(cut) > len(text.splitlines())
    assert read("\n".join([*cut, ""])).outcome is Outcome.USER_CODE


def test_weights_in_a_list_are_no_document() -> None:
    """transformers lists them below its warning, as `- NAME: found shape`."""
    rows = "".join(
        f"- layers.{n}.up_proj.weight: found shape torch.Size([0]) in the checkpoint and"
        " torch.Size([64, 8]) in the model instantiated\n"
        for n in range(6)
    )
    found = read(f"Some weights were newly initialized because the shapes did not match:\n{rows}")
    assert [cause.condition for cause in found.causes] == ["zero3-empty-weights"]
