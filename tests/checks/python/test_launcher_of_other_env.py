"""Rows of `launcher-of-other-env`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Launcher, Launchers, Package, Packages
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.python import launcher_of_other_env
from tests.checks.python.support import patient


def launcher(name: str, *, same: bool | None) -> Launcher:
    return Launcher(name=name, path=f"/bin/{name}", interpreter="/usr/bin/python", same_env=same)


def installed(name: str) -> dict[str, Package]:
    return {name: Package(name=name, version="1.0")}


@pytest.mark.parametrize(
    ("fact", "chosen_by", "expected"),
    [
        pytest.param(
            launcher("deepspeed", same=True),
            "VIRTUAL_ENV",
            "ok",
            id="deepspeed on PATH belongs to the environment",
        ),
        pytest.param(
            launcher("deepspeed", same=None),
            "VIRTUAL_ENV",
            "ok",
            id="nobody can see where deepspeed on PATH belongs",
        ),
        pytest.param(
            Launcher(
                name="deepspeed",
                path="/bin/deepspeed",
                interpreter="/gone/bin/python",
                interpreter_exists=False,
                same_env=False,
            ),
            "VIRTUAL_ENV",
            "ok",
            id="deepspeed on PATH starts no environment at all",
        ),
        pytest.param(
            Launcher(name="deepspeed"), "VIRTUAL_ENV", "ok", id="deepspeed is not on PATH"
        ),
        pytest.param(
            launcher("python", same=False),
            "VIRTUAL_ENV",
            "ok",
            id="python on PATH is not a launcher",
        ),
        pytest.param(
            launcher("deepspeed", same=False),
            "VIRTUAL_ENV",
            "fail",
            id="deepspeed on PATH belongs to another environment",
        ),
        pytest.param(
            launcher("deepspeed", same=False),
            "--python",
            "warn",
            id="the user chose an environment other than that of PATH",
        ),
        pytest.param(
            launcher("torchrun", same=False),
            "CONDA_PREFIX",
            "warn",
            id="torchrun on PATH belongs to another environment",
        ),
    ],
)
def test_rows(fact: Launcher, chosen_by: str, expected: str) -> None:
    facts: dict[str, Any] = {
        "launchers": Launchers(launchers=(fact,)),
        "patient": patient(chosen_by=chosen_by),
    }
    assert judge(launcher_of_other_env.launchers_are_of_this_env, **facts).status == expected


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        pytest.param(Packages(), "warn", id="nobody knows what the environment has"),
        pytest.param(
            Packages(origins={"torch": "/env/torch"}, packages=installed("accelerate")),
            "warn",
            id="the environment has the launcher too",
        ),
        pytest.param(
            Packages(origins={"torch": "/env/torch"}),
            "ok",
            id="the environment has no such launcher, so the one on PATH is meant",
        ),
    ],
)
def test_only_a_launcher_that_the_environment_has_is_compared(
    packages: Packages, expected: str
) -> None:
    judged = judge(
        launcher_of_other_env.launchers_are_of_this_env,
        launchers=Launchers(launchers=(launcher("accelerate", same=False),)),
        patient=patient(),
        packages=packages,
    )
    assert judged.status == expected


def test_launchers_of_one_environment_are_one_finding() -> None:
    found = [launcher(name, same=False) for name in ("deepspeed", "torchrun", "accelerate")]
    judged = judge(
        launcher_of_other_env.launchers_are_of_this_env,
        launchers=Launchers(launchers=tuple(found)),
        patient=patient(chosen_by="--python"),
    )
    (finding,) = judged.bad
    assert finding.message.startswith("`deepspeed`, `torchrun` and `accelerate` on PATH are ")
    assert finding.hint == (
        "put `/env/bin` first on PATH, or run `/env/bin/python -m MODULE` instead, where MODULE is "
        "`deepspeed.launcher.runner` or `torch.distributed.run` or `accelerate.commands.launch`"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("torchrun t.py", "warn", id="by name"),
        pytest.param("/env/bin/torchrun t.py", "ok", id="by its path"),
        pytest.param("/env/bin/python -m torch.distributed.run t.py", "ok", id="as a module"),
        pytest.param("deepspeed t.py", "ok", id="another launcher"),
        pytest.param("python t.py torchrun", "ok", id="an argument of that name"),
    ],
)
def test_only_the_launcher_counts_that_the_command_starts_by_name(line: str, expected: str) -> None:
    judged = judge(
        launcher_of_other_env.launchers_are_of_this_env,
        launchers=Launchers(launchers=(launcher("torchrun", same=False),)),
        patient=patient(chosen_by="--python"),
        launch_command=parse_command(tuple(line.split())),
    )
    assert judged.status == expected
