"""docker_gpu_runtime_missing, container_gpu_mismatch, wsl_driver_unavailable, cpus_fewer_than_ranks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpus, LibCuda, NvidiaKernel, OsInfo, Resources, RunNeeds
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
#: /proc/driver/nvidia of the host can be read in a container to which nothing was handed over.
BARE = NvidiaKernel(module_version="580.95.05", modules=("nvidia",), pci=kernel().pci)


@pytest.mark.parametrize(
    ("os", "fact", "variables", "lib", "run", "status"),
    [
        (DOCKER, kernel(), {"NVIDIA_VISIBLE_DEVICES": "all"}, libcuda(), WANTS, "ok"),
        (DOCKER, BARE, {}, ABSENT, ANY, "ok"),  # a container for the CPU
        (DOCKER, BARE, {"NVIDIA_VISIBLE_DEVICES": "void"}, ABSENT, ANY, "ok"),
        (DOCKER, NvidiaKernel(), {"NVIDIA_VISIBLE_DEVICES": "all"}, ABSENT, ANY, "ok"),
        (LINUX, BARE, {}, ABSENT, WANTS, "skip"),
        (DOCKER, BARE, {"NVIDIA_VISIBLE_DEVICES": "all"}, ABSENT, ANY, "warn"),
        (DOCKER, BARE, {}, ABSENT, WANTS, "fail"),
        (POD, BARE, {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, ABSENT, ANY, "fail"),
        (DOCKER, kernel(), {}, ABSENT, WANTS, "fail"),  # device nodes, but no libcuda
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
    [(DOCKER, "docker", "--gpus all"), (POD, "kubernetes", "resources.limits")],
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
        (POD, ",".join(map(str, UUIDS)), 2, "ok"),
        (POD, "all", 2, "skip"),
        (POD, "0,1", 2, "skip"),
        (POD, None, 2, "skip"),
        (POD, "/var/run/nvidia-container-devices", 2, "skip"),
        (LINUX, str(UUIDS[0]), 2, "skip"),
        (POD, str(UUIDS[0]), 2, "warn"),
        (DOCKER, ",".join(map(str, UUIDS)), 1, "fail"),
        (DOCKER, ",".join(map(str, UUIDS)), 2, "ok"),
        (POD, ",".join(map(str, UUIDS)), 1, "ok"),  # the family cluster speaks
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
        (LINUX, False, None, ABSENT, ANY, "skip"),
        (WSL, True, "/usr/lib/wsl/lib/libcuda.so.1", live(), ANY, "ok"),
        (WSL, True, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", live(), ANY, "ok"),
        (WSL, True, "/usr/lib/wsl/drivers/nv_1/libcuda.so.1.1", ABSENT, ANY, "ok"),
        (WSL, True, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", ABSENT, ANY, "fail"),
        (WSL, False, None, ABSENT, ANY, "warn"),
        (WSL, False, None, ABSENT, WANTS, "fail"),
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
    ("cpus", "count", "status"), [(1, 1, "ok"), (8, 8, "ok"), (2, 8, "warn"), (1, 0, "ok")]
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
