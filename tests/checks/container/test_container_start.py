"""`docker-gpu-runtime-missing` and `shm-too-small` about a command that starts a container."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import ContainerRuntimes, ContainerStart, Gpus, Missing, OsInfo, RunNeeds, Why
from dsdoctor.testing import judge
from dsdoctor_checks.container import docker_gpu_runtime_missing
from dsdoctor_checks.host import shm_too_small
from tests.checks.machines import ABSENT, LINUX, NO_GPU, env, gpus, kernel, libcuda, live

RUNC = ContainerRuntimes(names=("nvidia", "runc"), default="runc")
NONE = Gpus(gpus=(), count=0)
AMD = msgspec.structs.replace(LINUX, amd_gpus=8)


def started(program: str = "docker run", **more: Any) -> RunNeeds:
    fields: dict[str, Any] = {"program": program, "launcher": "torchrun", "script": "t.py"}
    return RunNeeds(container=ContainerStart(**{**fields, **more}))


def judged(run: RunNeeds, runtimes: Any = RUNC, **more: Any) -> Any:
    facts: dict[str, Any] = {
        "os_info": LINUX,
        "nvidia_kernel": kernel(),
        "gpus": gpus("A100", "A100"),
        "environment": env(),
        "lib_cuda": libcuda(),
        "torch_live": live(),
    }
    check = docker_gpu_runtime_missing.runtime_hands_gpus_over
    return judge(check, **{**facts, "container_runtimes": runtimes, "run_needs": run, **more})


NVIDIA = ContainerRuntimes(names=("nvidia", "runc"), default="nvidia")


@pytest.mark.parametrize(
    ("run", "runtimes", "status"),
    [
        pytest.param(started(), RUNC, "fail", id="docker without --gpus"),
        pytest.param(started(gpus="--gpus all"), RUNC, "skip", id="docker with --gpus"),
        pytest.param(started(), NVIDIA, "skip", id="NVIDIA's runtime is the default"),
        pytest.param(started(), ABSENT, "skip", id="Docker is not on this machine"),
        pytest.param(started(unknown=True), RUNC, "skip", id="options that a shell knows"),
        pytest.param(started(on_cpu=True), RUNC, "skip", id="a job for the CPU"),
        pytest.param(
            started(launcher="python", uses_torch=True), RUNC, "warn", id="a script with torch"
        ),
        pytest.param(started(launcher="python"), RUNC, "skip", id="a script without torch"),
        pytest.param(started(launcher="", script=""), RUNC, "skip", id="another program"),
        pytest.param(
            started("apptainer exec"), ContainerRuntimes(), "fail", id="apptainer without --nv"
        ),
        pytest.param(
            started("apptainer exec"),
            ContainerRuntimes(gpus_by="APPTAINER_NV"), "skip", id="a variable gives it GPUs",
        ),
        pytest.param(started("podman run"), ContainerRuntimes(), "fail", id="podman"),
        pytest.param(
            started("srun --container-image"),
            ContainerRuntimes(enroot_hook=True), "fail", id="enroot without nvidia-container-cli",
        ),
        pytest.param(
            started("srun --container-image"),
            ContainerRuntimes(enroot_hook=True, container_cli=True), "skip", id="a sound enroot",
        ),
        pytest.param(
            started(), Missing(why=Why.NOT_ASKED, detail="-"), "fail", id="a paste of the command"
        ),
    ],
)  # fmt: skip
def test_a_start_on_a_machine_with_gpus(run: RunNeeds, runtimes: Any, status: str) -> None:
    assert judged(run, runtimes).status == status


def test_the_hint_is_that_of_the_program() -> None:
    assert "--nv" in judged(started("singularity run"), ContainerRuntimes()).findings[0].hint
    assert (
        "nvidia.com/gpu=all" in judged(started("podman run"), ContainerRuntimes()).findings[0].hint
    )


@pytest.mark.parametrize(
    ("os", "run", "status"),
    [
        pytest.param(LINUX, started(), "skip", id="no GPU at all"),
        pytest.param(AMD, started(), "fail", id="AMD GPUs and Docker"),
        pytest.param(AMD, started("apptainer exec"), "skip", id="Apptainer shows /dev/kfd anyway"),
    ],
)
def test_a_start_without_nvidia_gpus(os: OsInfo, run: RunNeeds, status: str) -> None:
    found = judged(run, os_info=os, gpus=NONE, nvidia_kernel=NO_GPU, lib_cuda=ABSENT)
    assert found.status == status
    assert status != "fail" or "/dev/kfd" in found.findings[0].hint


@pytest.mark.parametrize(
    ("run", "runtimes", "status"),
    [
        pytest.param(started(launcher="deepspeed"), RUNC, "fail", id="one rank for each GPU"),
        pytest.param(started(shm="--ipc host"), RUNC, "skip", id="with --ipc=host"),
        pytest.param(
            started(launcher="deepspeed"),
            ContainerRuntimes(default="runc", shm_by="x"), "skip", id="another default size",
        ),
        pytest.param(
            started(launcher="python", workers=True), RUNC, "warn", id="DataLoader workers"
        ),
        pytest.param(started(launcher="python"), RUNC, "skip", id="one process without workers"),
    ],
)  # fmt: skip
def test_shared_memory_of_the_container(run: RunNeeds, runtimes: Any, status: str) -> None:
    found = judge(
        shm_too_small.shm_is_large,
        run_needs=run,
        container_runtimes=runtimes,
        gpus=gpus("A100", "A100"),
        resources=ABSENT,
        os_info=LINUX,
        environment=env(),
    )
    assert found.status == status
    assert all(one.by_hand is True for one in found.bad)  # a larger /dev/shm of the host is no cure


def test_ranks_that_the_command_counts() -> None:
    run = msgspec.structs.replace(started(), container_ranks=1)
    found = judge(
        shm_too_small.shm_is_large,
        run_needs=run,
        container_runtimes=RUNC,
        gpus=gpus("A100", "A100"),
        resources=ABSENT,
        os_info=LINUX,
        environment=env(),
    )
    assert found.status == "skip"
