"""docker_gpu_runtime_missing, container_gpu_mismatch, wsl_driver_unavailable, cpus_fewer_than_ranks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Gpus, LibCuda, NvidiaKernel, Nvml, NvmlError, OsInfo, Resources, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.container import container_gpu_mismatch, docker_gpu_runtime_missing
from dsdoctor_checks.host import cpus_fewer_than_ranks, wsl_driver_unavailable
from tests.checks.machines import (
    ABSENT,
    ANY,
    DOCKER,
    LINUX,
    NO_ENV,
    WANTS,
    env,
    gpus,
    kernel,
    libcuda,
    live,
    words,
)

POD = OsInfo(
    system="Linux", release="6.1", machine="x86_64", hostname="pod", container="kubernetes"
)
WSL = OsInfo(
    system="Linux", release="5.15-microsoft-standard-WSL2", machine="x86_64", hostname="w", wsl=True
)
ENROOT = msgspec.structs.replace(DOCKER, container="enroot")
#: /proc/driver/nvidia of the host can be read in a container to which nothing was handed over.
BARE = NvidiaKernel(module_version="580.95.05", modules=("nvidia",), pci=kernel().pci)


@pytest.mark.parametrize(
    ("os", "fact", "variables", "lib", "run", "status"),
    [
        pytest.param(
            DOCKER,
            kernel(),
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            libcuda(),
            WANTS,
            "ok",
            id="a container with device nodes and libcuda",
        ),
        pytest.param(
            DOCKER,
            BARE,
            {},
            ABSENT,
            ANY,
            "ok",
            id="a container of a GPU machine that asks for none",
        ),  # a container for the CPU
        pytest.param(
            DOCKER,
            BARE,
            {"NVIDIA_VISIBLE_DEVICES": "void"},
            ABSENT,
            ANY,
            "ok",
            id="a container that asks for no GPU by the word void",
        ),
        pytest.param(
            DOCKER,
            NvidiaKernel(),
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            ABSENT,
            ANY,
            "ok",
            id="a container on a machine without a driver",
        ),
        pytest.param(LINUX, BARE, {}, ABSENT, WANTS, "skip", id="a machine without a container"),
        pytest.param(
            DOCKER,
            BARE,
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            ABSENT,
            ANY,
            "warn",
            id="all GPUs are asked for, but the runtime brought none in",
        ),
        pytest.param(
            DOCKER, BARE, {}, ABSENT, WANTS, "fail", id="no GPU is asked for, but the run needs one"
        ),
        pytest.param(
            POD,
            BARE,
            {"NVIDIA_VISIBLE_DEVICES": "GPU-1"},
            ABSENT,
            ANY,
            "fail",
            id="a pod was given a GPU that the runtime did not bring in",
        ),
        pytest.param(
            ENROOT,
            BARE,
            {"SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "1"},
            ABSENT,
            ANY,
            "warn",
            id="Slurm gave the job a GPU, which its container does not have",
        ),
        pytest.param(
            ENROOT,
            BARE,
            {"SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "0"},
            ABSENT,
            ANY,
            "ok",
            id="Slurm gave the job no GPU",
        ),
        pytest.param(
            ENROOT,
            kernel(),
            {"SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "1"},
            libcuda(),
            ANY,
            "ok",
            id="Slurm gave the job a GPU, and enroot passed it on",
        ),
        pytest.param(
            DOCKER, kernel(), {}, ABSENT, WANTS, "fail", id="device nodes without libcuda"
        ),  # device nodes, but no libcuda
    ],
)
def test_runtime(
    os: OsInfo, fact: Any, variables: Any, lib: Any, run: RunNeeds, status: str
) -> None:
    check = docker_gpu_runtime_missing.runtime_hands_gpus_over
    assert judge(
        check,
        os_info=os,
        nvidia_kernel=fact,
        environment=env(**variables),
        lib_cuda=lib,
        run_needs=run,
    ).statuses == [status]


APPTAINER = msgspec.structs.replace(DOCKER, container="apptainer")


@pytest.mark.parametrize(
    ("fact", "lib", "starts", "expected"),
    [
        pytest.param(kernel(), ABSENT, live(100), "fail", id="torch for CUDA finds no driver"),
        pytest.param(kernel(), ABSENT, ABSENT, "ok", id="no torch that looks for a GPU"),
        pytest.param(NvidiaKernel(), ABSENT, live(100), "ok", id="a login node"),
        pytest.param(kernel(), libcuda(), live(100), "ok", id="with --nv"),
        pytest.param(
            kernel(),
            LibCuda(path="/cuda/stubs/libcuda.so.1", stub=True, others=("/usr/lib/libcuda.so.1",)),
            live(100),
            "ok",
            id="a stub in front of the driver's",
        ),
        pytest.param(
            kernel(),
            LibCuda(path="/cuda/stubs/libcuda.so.1", stub=True),
            live(100),
            "fail",
            id="only a stub",
        ),
    ],
)
def test_apptainer_without_nv(fact: Any, lib: Any, starts: Any, expected: str) -> None:
    found = judge(
        docker_gpu_runtime_missing.runtime_hands_gpus_over,
        os_info=APPTAINER,
        nvidia_kernel=fact,
        environment=env(),
        lib_cuda=lib,
        run_needs=ANY,
        torch_live=starts,
    )
    assert found.status == expected
    assert expected == "ok" or "without `--nv`" in found.findings[0].message


def test_a_container_in_which_cuda_works_is_right_whatever_it_looks_like() -> None:
    check = docker_gpu_runtime_missing.runtime_hands_gpus_over
    assert judge(
        check,
        os_info=DOCKER,
        nvidia_kernel=BARE,
        environment=NO_ENV,
        torch_live=live(),
        run_needs=WANTS,
    ).statuses == ["skip"]


@pytest.mark.parametrize(
    ("os", "kind", "words_"),
    [
        pytest.param(DOCKER, "Docker", "--gpus all", id="docker"),
        pytest.param(POD, "Kubernetes", "resources.limits", id="kubernetes"),
    ],
)
def test_advice_fits_the_container(os: OsInfo, kind: str, words_: str) -> None:
    check = docker_gpu_runtime_missing.runtime_hands_gpus_over
    (found,) = judge(
        check, os_info=os, nvidia_kernel=BARE, environment=NO_ENV, run_needs=WANTS
    ).findings
    assert words_ in found.hint
    assert kind in found.message


UUIDS = [gpu.uuid for gpu in gpus("H100", "H100").gpus]


@pytest.mark.parametrize(
    ("os", "value", "count", "status"),
    [
        pytest.param(
            POD, ",".join(map(str, UUIDS)), 2, "ok", id="a pod that sees the two GPUs it was given"
        ),
        pytest.param(POD, "all", 2, "skip", id="a pod that was given all GPUs"),
        pytest.param(POD, "0,1", 2, "skip", id="a pod whose GPUs are given by index"),
        pytest.param(POD, None, 2, "skip", id="a pod that was given nothing by name"),
        pytest.param(
            POD,
            "/var/run/nvidia-container-devices",
            2,
            "skip",
            id="a pod whose GPUs are given by a folder of device names",
        ),
        pytest.param(LINUX, str(UUIDS[0]), 2, "skip", id="a machine without a container"),
        pytest.param(POD, str(UUIDS[0]), 2, "warn", id="a pod that was given one GPU and sees two"),
        pytest.param(
            DOCKER,
            ",".join(map(str, UUIDS)),
            1,
            "fail",
            id="a container that was given two GPUs and sees one",
        ),
        pytest.param(
            DOCKER,
            ",".join(map(str, UUIDS)),
            2,
            "ok",
            id="a container that sees the two GPUs it was given",
        ),
        pytest.param(
            POD,
            ",".join(map(str, UUIDS)),
            1,
            "ok",
            id="a pod that misses a GPU, which the check of pods reports",
        ),  # the family cluster speaks
    ],
)
def test_allotted_gpus(os: OsInfo, value: str | None, count: int, status: str) -> None:
    variables = {} if value is None else {"NVIDIA_VISIBLE_DEVICES": value}
    check = container_gpu_mismatch.container_sees_what_it_was_given
    assert judge(
        check, os_info=os, environment=env(**variables), gpus=gpus(*["H100"] * count)
    ).statuses == [status]


@pytest.mark.parametrize(
    ("os", "dxg", "path", "alive", "run", "status"),
    [
        pytest.param(LINUX, False, None, ABSENT, ANY, "skip", id="Linux outside WSL"),
        pytest.param(
            WSL,
            True,
            "/usr/lib/wsl/lib/libcuda.so.1",
            live(),
            ANY,
            "ok",
            id="WSL with its own libcuda",
        ),
        pytest.param(
            WSL,
            True,
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            live(),
            ANY,
            "ok",
            id="another libcuda that works all the same",
        ),
        pytest.param(
            WSL,
            True,
            "/usr/lib/wsl/drivers/nv_1/libcuda.so.1.1",
            ABSENT,
            ANY,
            "ok",
            id="WSL's libcuda from the folder of the driver",
        ),
        pytest.param(
            WSL,
            True,
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            ABSENT,
            ANY,
            "fail",
            id="a Linux driver installed in WSL hides the one of WSL",
        ),
        pytest.param(WSL, False, None, ABSENT, ANY, "warn", id="WSL without the GPU device"),
        pytest.param(
            WSL,
            False,
            None,
            ABSENT,
            WANTS,
            "fail",
            id="WSL without the GPU device for a run that needs a GPU",
        ),
    ],
)
def test_wsl(os: OsInfo, dxg: bool, path: Any, alive: Any, run: RunNeeds, status: str) -> None:
    lib = LibCuda(path=path, via="default")
    check = wsl_driver_unavailable.wsl_driver_is_used
    assert judge(
        check,
        os_info=os,
        nvidia_kernel=NvidiaKernel(dxg=dxg),
        lib_cuda=lib,
        torch_live=alive,
        run_needs=run,
    ).statuses == [status]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param(9, "fail", id="no-driver"),
        pytest.param(12, "fail", id="no-library"),
        pytest.param(18, "ok", id="another-error"),
    ],
)
def test_nvml_without_a_driver_in_wsl(code: int, status: str) -> None:
    error = NvmlError(code=code, name="X", message="x", call="nvmlInit")
    judged = judge(wsl_driver_unavailable.wsl_driver_is_used, os_info=WSL, nvml=Nvml(error=error))
    assert judged.status == status
    assert status == "ok" or "wsl --update" in judged.bad[0].hint


@pytest.mark.parametrize(
    ("cpus", "count", "status"),
    [
        pytest.param(1, 1, "ok", id="one CPU for one GPU"),
        pytest.param(8, 8, "ok", id="eight CPUs for eight GPUs"),
        pytest.param(2, 8, "warn", id="two CPUs for eight GPUs"),
        pytest.param(1, 0, "ok", id="one CPU and no GPU"),
    ],
)
def test_cpu_limit_of_the_pod(cpus: int, count: int, status: str) -> None:
    machine = Resources(
        cpus_logical=64,
        cpus_usable=cpus,
        memory_total_bytes=1 << 40,
        memory_available_bytes=1 << 40,
    )
    found = judge(
        cpus_fewer_than_ranks.ranks_have_cpus,
        resources=machine,
        gpus=gpus(*["H100"] * count) if count else Gpus(),
        environment=NO_ENV,
        os_info=POD,
    ).findings
    assert words(found) == [status]
    if status == "warn":
        assert "resources.limits.cpu" in found[0].hint
