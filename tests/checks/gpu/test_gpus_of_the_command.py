"""A command selects GPUs, and only those are judged."""

from __future__ import annotations

import shlex

import pytest

from dsdoctor import packs
from dsdoctor.api import RunNeeds, Status
from dsdoctor.job.resolve import resolve
from dsdoctor.judge import judge
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import FakeHost
from tests.paste.reading import stated
from tests.support.composed import machine
from tests.support.described import Described

REGISTRY = packs.load(builtin_only=True)
ALIKE = [unit for unit in REGISTRY if unit.condition.name == "mixed-gpus"]
MIXED = Described(gpus="2xNVIDIA A10 + 2xTesla T4", torch="2.7.1+cu128")


def found(command: str, said: Described = MIXED) -> bool:
    """Whether the GPUs of a command are said to differ."""
    host = FakeHost(queries={"hostname": "gpu-1", "home": "/home/user"})
    run = resolve(RunNeeds(command=tuple(shlex.split(command))), host)
    snapshot = machine(said)
    snapshot.put(run)
    report = judge(snapshot, ALIKE, REGISTRY)
    return any(one.status is Status.WARN for one in report.findings)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("deepspeed --include localhost:0,1 train.py", id="slots of this host"),
        pytest.param("deepspeed --include gpu-1:2,3 train.py", id="slots of this host by its name"),
        pytest.param("deepspeed --num_gpus 2 train.py", id="a number for deepspeed"),
        pytest.param("torchrun --nproc_per_node=2 train.py", id="a number for torchrun"),
        pytest.param("accelerate launch --num_processes 2 train.py", id="a number for accelerate"),
        pytest.param("accelerate launch --gpu_ids 2,3 train.py", id="the ids of accelerate"),
        pytest.param("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 a.py", id="a variable"),
    ],
)
def test_equal_gpus_are_selected(command: str) -> None:
    assert not found(command)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("deepspeed train.py", id="deepspeed takes all"),
        pytest.param("deepspeed --include localhost:1,2 train.py", id="two that differ"),
        pytest.param("deepspeed --include other:0,1 train.py", id="slots of another host"),
        pytest.param("deepspeed --num_gpus 3 train.py", id="more than are equal"),
        pytest.param("torchrun --nproc_per_node=4 train.py", id="all for torchrun"),
        pytest.param("python train.py", id="one process may use all"),
        pytest.param("CUDA_VISIBLE_DEVICES=$FREE python train.py", id="only a shell knows"),
    ],
)
def test_gpus_that_differ_are_selected(command: str) -> None:
    assert found(command)


def test_the_first_of_the_visible_ones() -> None:
    """`torchrun` counts the GPUs that the environment leaves visible."""
    last = Described(
        gpus=MIXED.gpus, torch=MIXED.torch, variables={"CUDA_VISIBLE_DEVICES": "1,2,3"}
    )
    assert found("torchrun --nproc_per_node=2 train.py", last)
    assert not found("deepspeed --num_gpus 2 train.py", last)


def test_a_command_in_a_paste() -> None:
    run = stated("```\n$ deepspeed --num_gpus 2 train.py\n```\n").run
    assert run.visible_devices == "0,1"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("docker run --gpus 2 image deepspeed train.py", 2, id="docker"),
        pytest.param("sudo podman run -it --gpus=1 image torchrun a.py", 1, id="sudo podman"),
        pytest.param("docker run --gpus all image deepspeed train.py", None, id="all of them"),
        pytest.param("docker run image python train.py --gpus 2", None, id="of the script"),
        pytest.param("deepspeed train.py --gpus 2", None, id="no container"),
    ],
)
def test_gpus_of_a_container(command: str, expected: int | None) -> None:
    host = FakeHost(queries={"hostname": "gpu-1", "home": "/home/user"})
    run = resolve(RunNeeds(command=tuple(command.split())), host)
    assert run.container_gpus == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("docker run --gpus 2 image deepspeed --num_gpus 4 train.py", True, id="more"),
        pytest.param("docker run --gpus 4 image deepspeed --num_gpus 4 train.py", False, id="as many"),
        pytest.param("docker run --gpus 2 image deepspeed train.py", False, id="all that there are"),
        pytest.param("docker run --gpus 1 image torchrun --nproc_per_node=2 a.py", True, id="torchrun"),
        pytest.param("docker run --gpus 1 image python train.py --num_gpus 2", False, id="a script"),
    ],
)  # fmt: skip
def test_ranks_in_a_container(command: str, expected: bool) -> None:
    host = FakeHost(queries={"hostname": "gpu-1", "home": "/home/user"})
    snapshot = machine(Described(gpus="8xNVIDIA A10", torch="2.7.1+cu128"))
    run = resolve(RunNeeds(command=tuple(command.split())), host)
    snapshot.put(run)
    snapshot.put(parse_command(run.command))
    units = [unit for unit in REGISTRY if unit.condition.name == "invalid-device-ordinal"]
    report = judge(snapshot, units, REGISTRY)
    assert any(one.status is Status.FAIL for one in report.findings) is expected
