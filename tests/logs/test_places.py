"""Where the first exception was raised, and what is said of each start."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.10/site-packages/"
HEAD = "Traceback (most recent call last):\n"
OWN = HEAD + '  File "/home/me/train.py", line 18, in main\n    step(rows)\n'
STARTED = (
    "[2026-03-01 10:00:02,200] [INFO] [runner.py:570:main] cmd = python3 -u -m"
    " deepspeed.launcher.launch train.py\n"
    "[2026-03-01 10:00:05,100] [INFO] [launch.py:163:main] dist_world_size=1\n"
)
INCLUDES = "Detected CUDA_VISIBLE_DEVICES=1: setting --include=localhost:1\n"
IGNORES = (
    "Detected CUDA_VISIBLE_DEVICES=1 but ignoring it because one or several of --include/--exclude"
    "/--num_gpus/--num_nodes cl args were used.\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def place(text: str) -> tuple[str, int]:
    first = read(text).first_error
    assert first is not None
    return first.file, first.line


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param('"<string>", line 9, in __init__', id="dataclass"),
        pytest.param('"<string>", line 3, in Config.__new__', id="named-tuple"),
        pytest.param('"<__array_function__ internals>", line 180, in stack', id="numpy"),
        pytest.param('"<decorator-gen-53>", line 2, in load', id="decorator"),
        pytest.param('"<attrs generated init proj.Config>", line 4, in __init__', id="attrs"),
        pytest.param('"<@beartype(proj.box) at 0x7f1c>", line 30, in box', id="beartype"),
        pytest.param('"<eval_with_key>.7", line 12, in forward', id="torch-fx"),
    ],
)
def test_generated_code_is_not_where_an_exception_was_raised(frame: str) -> None:
    raised = f'  File {frame}\n  File "{SITE}some/shapes.py", line 426, in check\n    raise X\n'
    assert place(f"{OWN}{raised}ValueError: steps must be positive\n") == ("/home/me/train.py", 18)


COMPILED = f"/tmp/torchinductor_me/4k/c4k{'a7' * 24}e.py"


def test_what_torch_compile_generated_is_not_the_scripts() -> None:
    frame = f'  File "{COMPILED}", line 77, in call\n    check(x)\n'
    text = f"{OWN}{frame}AssertionError: expected size 8==16, stride 512==512 at dim=0\n"
    found = read(text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is not None
    assert found.raised_by.product == "torch"
    assert place(text) == ("/home/me/train.py", 18)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(COMPILED.replace("/4k/", "/4j/"), id="another-folder"),
        pytest.param("/home/me/torchinductor_bench/4k/c4k.py", id="a-short-name"),
    ],
)
def test_a_script_beside_the_cache_is_the_scripts_own(path: str) -> None:
    text = f'{OWN}  File "{path}", line 77, in call\n    check(x)\nAssertionError: 3 rows\n'
    assert read(text).outcome is Outcome.USER_CODE
    assert place(text) == (path, 77)


@pytest.mark.parametrize(
    ("message", "key", "shown"),
    [
        ("Missing key rate", "optim.rate", "Missing key rate (optim.rate)"),
        ("Key 'rate' is not in struct", "rate", "Key 'rate' is not in struct"),
    ],
    ids=["nested", "at-the-top"],
)
def test_the_place_of_a_key_in_a_configuration_is_shown(message: str, key: str, shown: str) -> None:
    first = read(
        f"{OWN}omegaconf.errors.ConfigAttributeError: {message}\n"
        f"    full_key: {key}\n    object_type=dict\n"
    ).first_error
    assert first is not None
    assert first.message == shown


def test_a_program_on_the_command_line_is_where_its_exception_was_raised() -> None:
    text = (
        HEAD + '  File "<string>", line 6, in <module>\n  File "<string>", line 4, in load\n'
        "KeyError: 'lr'\n"
    )
    assert place(text) == ("<string>", 4)


@pytest.mark.parametrize(
    "where",
    ["replica 0 on device 0", "DataLoader worker process 3", "pin memory thread for device 0"],
)
def test_what_another_thread_or_process_raised_is_the_first_error(where: str) -> None:
    text = (
        f'{OWN}  File "{SITE}torch/_utils.py", line 385, in reraise\n    raise exception\n'
        f"IndexError: Caught IndexError in {where}.\nOriginal {HEAD}"
        '  File "/home/me/model.py", line 29, in forward\n    return self.items[i]\n'
        "IndexError: list index out of range\n"
    )
    first = read(text).first_error
    assert first is not None
    assert (first.message, first.file, first.line) == (
        "list index out of range", "/home/me/model.py", 29,
    )  # fmt: skip


def test_an_exception_about_what_was_caught_is_its_own() -> None:
    text = f"{OWN}RuntimeError: Caught 3 mice in trap 2.\n{OWN}ValueError: no bait\n"
    first = read(text).first_error
    assert first is not None
    assert first.message == "Caught 3 mice in trap 2."


@pytest.mark.parametrize("notice", [INCLUDES, IGNORES], ids=["includes", "ignores"])
def test_what_a_launcher_says_above_its_command_is_no_attempt(notice: str) -> None:
    assert not read(f"{notice}{STARTED}{OWN}KeyError: 'lr'\n").attempts


def test_a_start_that_failed_is_one() -> None:
    failed = f"{STARTED}{OWN}KeyError: 'lr'\n"
    said = [one.ended_by for one in read(failed + IGNORES + failed).attempts]
    assert said == ["KeyError: 'lr'"] * 2


def test_an_attempt_is_said_to_have_ended_as_the_line_shows() -> None:
    found = read(f"{STARTED}Killed\n{STARTED}step 1\nKilled\n")
    assert {one.ended_by for one in found.attempts} == {found.causes[0].message}
