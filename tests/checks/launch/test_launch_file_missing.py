"""launch_file_missing, and the probe that looks for program and script."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dsdoctor.api import LaunchFiles, Package, Packages, Patient, RunNeeds
from dsdoctor.host import LocalHost
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.launch import launch_file_missing
from tests.checks.launch.rows import command

SITE = "/opt/t/lib/python3.11/site-packages"
HOST = FakeHost(
    env={"PATH": "/usr/bin"},
    files={
        "/usr/bin/torchrun": "",
        "/usr/bin/python3": "",
        "/opt/t/bin/deepspeed": "",
        "/job/train.py": "",
        "/job/run.sh": "",
        "/job/acc.yml": "",
        "/usr/bin/sh": "",
        "/usr/bin/sbatch": "",
        "/usr/bin/pixi": "",
        "/opt/t/bin2/accelerate": "",
        "/abs/train.py": "",
        "/opt/t/bin/python3.11": "",
        "/opt/t/bin/torchrun": "",
        f"{SITE}/torch/__init__.py": "",
        f"{SITE}/torch/distributed/__init__.py": "",
        f"{SITE}/torch/distributed/run.py": "",
        f"{SITE}/torch/_C.cpython-311-x86_64-linux-gnu.so": "",
        f"{SITE}/spread/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, 'x')",
        f"{SITE}/parts/one.py": "",
        "/job/src/__init__.py": "",
        "/job/src/train.py": "",
    },
)
PATIENT = Patient(
    executable="/opt/t/bin/python",
    chosen_by="--python",
    version="3.11.7",
    kind="venv",
    bin_dir="/opt/t/bin",
    sys_path=("/opt/t/lib/python3.11", SITE),
)


def look(text: str) -> LaunchFiles:
    found = launch_files.function(HOST, RunNeeds(cwd="/job"), command(text), PATIENT)
    assert isinstance(found, LaunchFiles)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "torchrun train.py", "ok", id="launcher on PATH and a script in the working directory"
        ),
        pytest.param(
            "deepspeed --num_gpus 2 train.py --lr 1",
            "ok",
            id="deepspeed is in the environment that is examined",
        ),  # beside the interpreter, not on PATH
        pytest.param(
            "NCCL_DEBUG=INFO nohup torchrun /abs/train.py",
            "ok",
            id="a command before the launcher and a script by absolute path",
        ),
        pytest.param("./run.sh", "ok", id="a shell script of the working directory"),
        pytest.param("torchrun -m pkg.train", "ok", id="a module is not looked for as a file"),
        pytest.param(
            "PATH=/opt/t/bin deepspeed train.py", "ok", id="the command sets a PATH of its own"
        ),
        pytest.param(
            "torchrun $HOME/train.py", "skip", id="a path with a shell variable cannot be checked"
        ),
        pytest.param(
            "source env.sh && torchrun gone.py",
            "skip",
            id="two commands in one line cannot be checked",
        ),
        pytest.param(
            'torchrun gone.py --kwargs {"use_reentrant":false} --out $OUT/*',
            "fail",
            id="what the script gets may be JSON, or for a shell",
        ),
        pytest.param("torchrun gone.py > log", "skip", id="a redirection is for a shell"),
        pytest.param("poetry run torchrun train.py", "fail", id="the runner is not installed"),
        pytest.param("env A=1 uv run train.py", "fail", id="the runner behind env"),
        pytest.param("uv pip list", "fail", id="a runner that runs nothing"),
        pytest.param("pixi run train", "skip", id="a task of the project"),
        pytest.param("pixi run torchrun gone.py", "fail", id="a runner's script"),
        pytest.param("pixi run torchrun train.py", "ok", id="a runner's launcher"),
        pytest.param("cd /job", "skip", id="a builtin of the shell is not a program to look for"),
        pytest.param("deepseed train.py", "fail", id="the launcher's name is misspelled"),
        pytest.param("./rum.sh", "fail", id="the shell script's name is misspelled"),
        pytest.param("torchrun tran.py", "fail", id="the name of torchrun's script is misspelled"),
        pytest.param("bash rum.sh", "fail fail", id="the shell itself is not on this PATH either"),
        pytest.param("/usr/bin/sh rum.sh", "fail", id="a shell is passed a misspelled script"),
        pytest.param("/usr/bin/sh run.sh", "ok", id="a shell is passed a script"),
        pytest.param("/usr/bin/sbatch run.sh", "ok", id="a job script"),
        pytest.param("/usr/bin/sbatch -N 2 rum.slurm 7", "fail", id="a misspelled job script"),
        pytest.param("/usr/bin/sbatch --wrap rum.sh", "ok", id="a line for sbatch"),
        pytest.param("/usr/bin/sh -c train.py", "ok", id="a shell is passed a line"),
        pytest.param(
            "/opt/t/bin2/accelerate launch --config_file a.yml train.py",
            "fail",
            id="accelerate's configuration does not exist",
        ),
        pytest.param(
            "/opt/t/bin2/accelerate launch --config_file acc.yml train.py", "ok", id="it exists"
        ),
        pytest.param(
            "/opt/t/bin2/accelerate launch --config_file src train.py", "fail", id="it is a folder"
        ),
        pytest.param("torchrun python train.py", "fail", id="`python` is not a script"),
        pytest.param("torchrun --no-python python train.py", "ok", id="the script is a program"),
        pytest.param("torchrun -m python", "ok", id="a module with the name `python`"),
        pytest.param("python3 sub/train.py", "fail", id="the script is in another folder"),
        pytest.param("python tran.py", "fail fail", id="neither interpreter nor script is found"),
    ],
)
def test_files(text: str, expected: str) -> None:
    judged = judge(launch_file_missing.program_and_script_are_there, launch_files=look(text))
    assert judged.statuses == expected.split()
    if text.startswith("deepseed"):
        assert "the closest launcher is `deepspeed`" in judged.findings[0].message


def test_a_program_that_is_a_path_is_not_looked_for_on_path() -> None:
    (found,) = judge(
        launch_file_missing.program_and_script_are_there, launch_files=look("./rum.sh")
    ).bad
    assert found.message == "the program `./rum.sh` does not exist in `/job`"
    assert "install" not in found.hint


def test_a_script_without_permission_to_run(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n")
    for mode, status in ((0o644, "fail"), (0o755, "ok")):
        script.chmod(mode)
        fact = launch_files.function(
            LocalHost(), RunNeeds(cwd=str(tmp_path)), command("./job.sh"), PATIENT
        )
        judged = judge(launch_file_missing.program_and_script_are_there, launch_files=fact)
        assert judged.status == status
        assert [one.hint.split(",")[0] for one in judged.bad] == (
            ["run `chmod +x ./job.sh`"] if status == "fail" else []
        )


def test_a_launcher_of_the_environment_that_nobody_may_execute(tmp_path: Path) -> None:
    launcher = tmp_path / "deepspeed"
    launcher.write_text("#!/usr/bin/python3\n", encoding="utf-8")
    (tmp_path / "train.py").touch()
    patient = msgspec.structs.replace(PATIENT, bin_dir=str(tmp_path))
    for mode, status in ((0o644, "fail"), (0o755, "ok")):
        launcher.chmod(mode)
        fact = launch_files.function(
            LocalHost({"PATH": str(tmp_path)}),
            RunNeeds(cwd=str(tmp_path)),
            command("deepspeed train.py"),
            patient,
        )
        judged = judge(launch_file_missing.program_and_script_are_there, launch_files=fact)
        assert judged.status == status
        assert all(f"chmod +x {launcher}" in one.hint for one in judged.bad)


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        ("mpirun", "install Open MPI or MPICH"),
        ("mpiexec", "install Open MPI or MPICH"),
        ("accelerate", "pip install accelerate"),
        ("srun", "Slurm"),
    ],
)
def test_a_launcher_that_is_not_installed(program: str, advice: str) -> None:
    files = look(f"{program} -n 2 {'' if program == 'accelerate' else 'python3'} train.py")
    (found,) = judge(launch_file_missing.program_and_script_are_there, launch_files=files).bad
    assert advice in found.hint
    assert "closest" not in found.message


def test_a_launcher_that_is_installed_but_not_on_path() -> None:
    installed = Packages(packages={"accelerate": Package(name="accelerate", version="1.4.0")})
    (found,) = judge(
        launch_file_missing.program_and_script_are_there,
        launch_files=look("accelerate launch train.py"),
        packages=installed,
    ).bad
    assert found.hint.startswith("start it as a module: `python -m accelerate.commands.launch`")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("/opt/t/bin/python3.11 -m torch.distributed.runn t.py", "torch.distributed.run"),
        ("/opt/t/bin/python3.11 -m torch.distribted.run t.py", "torch.distributed.run"),
        ("/opt/t/bin/torchrun --nproc-per-node 2 -m src.tran", "src.train"),
        ("/opt/t/bin/python3.11 -m torch.zzz", ""),
    ],
)
def test_a_module_that_its_package_does_not_contain(text: str, near: str) -> None:
    files = look(text)
    (found,) = judge(launch_file_missing.program_and_script_are_there, launch_files=files).bad
    assert (
        f"does not contain the module `{text.partition('-m ')[2].partition(' ')[0]}`"
        in found.message
    )
    assert files.module_near == near
    assert f"`{near}`" in found.hint or not near


@pytest.mark.parametrize(
    "text",
    [
        "/opt/t/bin/python3.11 -m torch.distributed.run t.py",
        "/opt/t/bin/python3.11 -m src.train",
        "/opt/t/bin/python3.11 -m torch._C",
        "/opt/t/bin/python3.11 -m torch.distributed",
        "/opt/t/bin/python3.11 -m spread.two",  # may have parts in other folders
        "/opt/t/bin/python3.11 -m parts.two",
        "/opt/t/bin/python3.11 -m elsewhere.main",  # an editable install has a finder of its own
        "/usr/bin/python3 -m torch.distributed.runn t.py",  # another interpreter's packages
        "/opt/t/bin/python3.11 -m $PKG.train",
    ],
)
def test_a_module_that_is_there_or_may_be_elsewhere(text: str) -> None:
    assert look(text).missing_module is None


def test_a_runner_that_is_not_installed() -> None:
    """Activating an environment does not bring one, and what it would start is not judged."""
    facts = look("conda run -n env python gone.py")
    finding = judge(launch_file_missing.program_and_script_are_there, launch_files=facts).worst
    assert finding.evidence["program"] == "conda"
    assert finding.hint == "install `conda`, or put its folder on PATH"


@pytest.mark.parametrize(
    ("text", "followed", "hint"),
    [
        pytest.param("torchrun gone.py", "", "correct its path, or start in", id="nowhere"),
        pytest.param("torchrun /gone/t.py", "", "correct its path", id="an absolute path"),
        pytest.param("torchrun one.py", "", "start in `sub`, which contains it", id="below"),
        pytest.param("torchrun top.py", "", "start in `..`, which contains it", id="above"),
        pytest.param("torchrun two.py", "", "correct its path, or start in", id="in two folders"),
        pytest.param(
            "torchrun deep.py",
            "line 3 of `a/b/run.sh`; what it launches after that was not checked (line 9)",
            "start in `a/b`, which contains it",
            id="beside the shell script",
        ),
    ],
)
def test_a_script_in_another_folder_is_found(text: str, followed: str, hint: str) -> None:
    there = ("sub/one.py", "sub/two.py", "other/two.py", "a/b/deep.py", "a/b/run.sh", "../top.py")
    files = {"/usr/bin/torchrun": "", **{f"/home/me/job/{name}": "" for name in there[:-1]}}
    host = FakeHost(env={"PATH": "/usr/bin"}, files={**files, "/home/me/top.py": ""})
    run = RunNeeds(cwd="/home/me/job", followed=followed)
    found = launch_files.function(host, run, command(text), PATIENT)
    judged = judge(launch_file_missing.program_and_script_are_there, launch_files=found)
    (finding,) = judged.bad
    assert finding.hint.startswith(hint)
    assert ("exist in `/home/me/job`" in finding.message) == ("/gone" not in text)
