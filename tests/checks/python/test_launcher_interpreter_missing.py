"""Rows of `launcher-interpreter-missing`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import LaunchCommand, Launcher, Launchers, Package, Packages
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.python import launcher_interpreter_missing
from tests.checks.python.support import patient

CHECK = launcher_interpreter_missing.interpreters_of_launchers_exist
GONE = "/old/env/bin/python"


def launcher(name: str, *, there: bool | None = False) -> Launcher:
    return Launcher(
        name=name,
        path=f"/env/bin/{name}",
        interpreter=GONE,
        interpreter_exists=there,
        same_env=False,
    )


def command(line: str) -> LaunchCommand:
    return parse_command(line.split())


@pytest.mark.parametrize(
    ("fact", "line", "chosen_by", "expected"),
    [
        ("deepspeed", "deepspeed --num_gpus=2 train.py", "--python", "fail"),
        ("accelerate", "srun accelerate launch train.py", "--python", "fail"),
        ("deepspeed", None, "VIRTUAL_ENV", "fail"),
        ("deepspeed", None, "--python", "warn"),
        ("torchrun", None, "VIRTUAL_ENV", "warn"),
        ("torchrun", "deepspeed --num_gpus=2 train.py", "VIRTUAL_ENV", "ok"),
        ("torchrun", "python -m torch.distributed.run train.py", "VIRTUAL_ENV", "ok"),
        ("python", None, "VIRTUAL_ENV", "ok"),
    ],
)
def test_launchers_of_the_command(
    fact: str, line: str | None, chosen_by: str, expected: str
) -> None:
    facts: dict[str, Any] = {
        "launchers": Launchers(launchers=(launcher(fact),)),
        "patient": patient(chosen_by=chosen_by),
    }
    if line:
        facts["launch_command"] = command(line)
    judged = judge(CHECK, **facts)
    assert judged.status == expected


@pytest.mark.parametrize("there", [True, None])
def test_an_interpreter_that_is_there_or_cannot_be_looked_for(there: bool | None) -> None:
    found = Launchers(launchers=(launcher("deepspeed", there=there),))
    assert not judge(CHECK, launchers=found, patient=patient()).bad


def test_a_launcher_that_the_environment_does_not_have() -> None:
    found = Launchers(launchers=(launcher("accelerate"),))
    torch = Package(name="torch", version="2.4.1")
    packages = Packages(origins={"torch": "/env/torch"}, packages={"torch": torch})
    assert not judge(CHECK, launchers=found, patient=patient(), packages=packages).bad


def test_all_launchers_of_an_environment_that_was_moved() -> None:
    names = ("deepspeed", "torchrun", "accelerate")
    found = Launchers(launchers=tuple(launcher(name) for name in names))
    (finding,) = judge(CHECK, launchers=found, patient=patient()).bad
    assert finding.message == (
        f"`deepspeed`, `torchrun` and `accelerate` on PATH start `{GONE}`, which does not exist"
    )
    assert finding.hint is not None
    assert "`/env/bin/python -m MODULE`" in finding.hint
