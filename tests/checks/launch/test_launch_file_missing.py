"""launch_file_missing, and the probe that looks for program and script."""

from __future__ import annotations

import pytest

from dsdoctor.api import LaunchFiles, Patient, RunNeeds
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.launch import launch_file_missing
from tests.checks.launch.rows import command

HOST = FakeHost(
    env={"PATH": "/usr/bin"},
    files={
        "/usr/bin/torchrun": "",
        "/usr/bin/python3": "",
        "/opt/t/bin/deepspeed": "",
        "/job/train.py": "",
        "/job/run.sh": "",
        "/abs/train.py": "",
    },
)
PATIENT = Patient(
    executable="/opt/t/bin/python",
    chosen_by="--python",
    version="3.11.7",
    kind="venv",
    bin_dir="/opt/t/bin",
)


def look(text: str) -> LaunchFiles:
    found = launch_files.function(HOST, RunNeeds(cwd="/job"), command(text), PATIENT)
    assert isinstance(found, LaunchFiles)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torchrun train.py", "ok"),
        ("deepspeed --num_gpus 2 train.py --lr 1", "ok"),  # beside the interpreter, not on PATH
        ("NCCL_DEBUG=INFO nohup torchrun /abs/train.py", "ok"),
        ("./run.sh", "ok"),
        ("torchrun -m pkg.train", "ok"),
        ("PATH=/opt/t/bin deepspeed train.py", "ok"),
        ("torchrun $HOME/train.py", "skip"),
        ("source env.sh && torchrun gone.py", "skip"),
        ("cd /job", "skip"),
        ("deepseed train.py", "fail"),
        ("./rum.sh", "fail"),
        ("torchrun tran.py", "fail"),
        ("python3 sub/train.py", "fail"),
        ("python tran.py", "fail fail"),
    ],
)
def test_files(text: str, expected: str) -> None:
    judged = judge(launch_file_missing.program_and_script_are_there, launch_files=look(text))
    assert judged.statuses == expected.split()
    if text.startswith("deepseed"):
        assert "the closest launcher is `deepspeed`" in judged.findings[0].message


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
    files = look(f"{program} -n 2 python3 train.py")
    (found,) = judge(launch_file_missing.program_and_script_are_there, launch_files=files).bad
    assert advice in found.hint
    assert "closest" not in found.message
