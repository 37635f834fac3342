"""Exceptions of which another line or another exception of the same chain tells what happened."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages"
HYDRA = "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def of_hydra(raised: str) -> str:
    return (
        "Error executing job with overrides: ['optim=adam']\n"
        f"Error in call to target 'optim.make':\n{raised}\nfull_key: optim\n\n{HYDRA}"
    )


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "TypeError(\"make() missing 1 argument: 'lr'\")",
            "TypeError: make() missing 1 argument: 'lr'",
        ),
        ("KeyError('beta')", "KeyError: beta"),
    ],
    ids=["double", "single"],
)
def test_hydra_prints_what_the_target_raised(raised: str, said: str) -> None:
    found = read(of_hydra(raised))
    assert found.outcome is Outcome.USER_CODE
    assert said in found.summary


def test_what_hydra_prints_of_the_machine_is_not_the_script_s() -> None:
    found = read(of_hydra("RuntimeError('CUDA error: unknown error')"))
    assert found.outcome is not Outcome.USER_CODE


def test_such_words_alone_are_no_exception() -> None:
    """A program prints what it caught by its `repr`, and goes on."""
    assert read("step 3\nKeyError('beta')\nstep 4 loss 1.0\n").outcome is Outcome.CLEAN


def test_a_task_that_ran_out_of_time_was_cancelled_first() -> None:
    tasks = '  File "/usr/lib/python3.11/asyncio/tasks.py", line 490, in wait_for\n'
    text = (
        f"Traceback (most recent call last):\n{tasks}asyncio.exceptions.CancelledError\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/serve.py", line 8, in <module>\n'
        f"{tasks}asyncio.exceptions.TimeoutError: no answer of the store\n"
    )
    assert "TimeoutError: no answer of the store" in read(text).summary


@pytest.mark.parametrize(
    ("last", "is_own"),
    [
        ("TypeError: tokenize() missing 1 required positional argument: 'prompter'", True),
        ("TypeError: tokenize() got an unexpected keyword argument 'rank'", True),
        ("RuntimeError: CUDA error: unknown error", False),
    ],
    ids=["missing", "unexpected", "another"],
)
def test_the_function_that_is_applied_to_rows(last: str, *, is_own: bool) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/run.py", line 70, in <module>\n'
        f'  File "{SITE}/datasets/arrow_dataset.py", line 3004, in map\n'
        f'  File "{SITE}/datasets/arrow_dataset.py", line 3261, in'
        f" apply_function_on_filtered_inputs\n{last}\n"
    )
    assert (read(text).outcome is Outcome.USER_CODE) == is_own


SPAWNED = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 7, in <module>\n    for batch in loader:\n'
    f'  File "{SITE}/torch/utils/data/dataloader.py", line 9, in __iter__\n'
    '  File "/usr/lib/python3.11/multiprocessing/reduction.py", line 60, in dump\n'
)
LOGGED = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 7, in <module>\n    log = WandbLogger(save_dir=dir)\n'
    f'  File "{SITE}/pytorch_lightning/loggers/wandb.py", line 3, in __init__\n'
    "TypeError: expected str, bytes or os.PathLike object, not {0}\n"
)


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        (
            f"{SPAWNED}AttributeError: Can't get local object 'Data.__init__.<locals>.<lambda>'\n",
            True,
        ),
        (f"{SPAWNED}AttributeError: Can't pickle local object 'main.<locals>.collate'\n", True),
        (f"{SPAWNED}BrokenPipeError: [Errno 32] Broken pipe\n", False),
        (LOGGED.format("builtin_function_or_method"), True),
        (LOGGED.format("NoneType"), False),
    ],
    ids=["lambda", "collate function", "another", "builtin", "nothing"],
)
def test_functions_that_cannot_be_passed(text: str, *, is_own: bool) -> None:
    assert (read(text).outcome is Outcome.USER_CODE) == is_own


def test_batches_below_a_caught_exception() -> None:
    """A program prints what it caught, and counts its batches."""
    caught = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 27, in pack\n    return pack_sequence(x)\n'
        "RuntimeError: Length of all samples has to be greater than 0\n"
    )
    parts = [f"{caught}batch: {n * 10} | loss: 5.1\n" * 1 for n in range(1, 30)]
    rest = "".join(f"batch: {n} | loss: 4.{n}\n" for n in range(300, 900, 10))
    assert read("".join(parts) + rest + "Finished Training!!!\n").outcome is Outcome.CLEAN


def test_a_program_that_uv_does_not_find() -> None:
    text = (
        "error: Failed to spawn: `train.py`\n  Caused by: No such file or directory (os error 2)\n"
    )
    assert [cause.condition for cause in read(text).causes] == ["launch-file-missing"]
