"""`dsdoctor check` with a real CUDA build of torch: silent on a sound machine, right about a broken one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.nvml.scenarios import GPU_IS_LOST
from tests.standin import bed

pytestmark = [pytest.mark.standin, pytest.mark.timeout(300)]
Shown = Callable[..., dict[str, str]]

#: The host's own, of which the scenario says nothing.
HOST = ("--ignore", "stale-shm-segments", "--ignore", "port-in-use", "--ignore", "host-memory-low",
        "--ignore", "disk-full")  # fmt: skip


def bad(report: dict[str, Any]) -> list[str]:
    return sorted(
        {f["condition"] for f in report["findings"] if f["status"] in ("fail", "unknown", "crash")}
    )


def test_a_sound_machine_is_healthy(shown: Shown) -> None:
    status, report = bed.dsdoctor(shown(), "check", *HOST)
    assert (status, bad(report), report["verdict"]) == (0, [], "healthy")


def test_a_sound_machine_passes_the_deep_check(shown: Shown) -> None:
    status, report = bed.dsdoctor(shown(memory=2 << 30), "check", "--deep", *HOST)
    assert (status, bad(report)) == (0, [])
    passed = {f["condition"] for f in report["findings"] if f["status"] == "ok"}
    assert {
        "gpu-kernel-fails",
        "gpu-memory-unallocatable",
        "p2p-copy-corrupt",
        "all-reduce-wrong",
    } <= passed


@pytest.mark.parametrize(("fault", "condition", "words"), [
    ({"fail": {"cuInit": 3}}, "cuda-init-driver-state", "error 3 (cudaErrorInitializationError)"),
    ({"fail": {"cuInit": 46}}, "gpu-busy-exclusive-mode", "busy or unavailable"),
    ({"fail": {"cuInit": 100}}, "no-gpu-visible", "No CUDA GPUs are available"),
    ({"fail": {"cuInit": 101}}, "cuda-init-driver-state", "101"),
    ({"fail": {"cuInit": 304}}, "cuda-init-driver-state", "OS call failed"),
    ({"fail": {"cuInit": 802}}, "fabric-manager-not-running", "802"),
    ({"fail": {"cuInit": 803}}, "driver-library-mismatch", "803"),
    ({"fail": {"cuInit": 804}}, "driver-too-old", "CUDA rejects it on this GPU"),
    ({"fail": {"cuInit": 805}}, "cuda-init-driver-state", "cudaErrorMpsConnectionFailed"),
    ({"fail": {"cuInit": 999}}, "cuda-init-driver-state", "error 999 (cudaErrorUnknown)"),
    ({"cuda": 11080, "driver": "520.61.05"}, "driver-too-old", "supports up to CUDA 11.8"),
    ({"fail": {"cuDevicePrimaryCtxRetain@1": 46}}, "gpu-busy-exclusive-mode", "device 1"),
    ({"fail": {"cuDevicePrimaryCtxRetain@1": 214}}, "gpu-hardware-fault", "device 1"),
    ({"fail": {"cudaMalloc@1": 2}}, "torch-cuda-init-failed", "out of memory. Tried to allocate 2.00 MiB"),
    ({"fail": {"cuDevicePrimaryCtxRetain@0": 719}}, "torch-cuda-init-failed", "device 0"),
    ({"fail": {"*@1": GPU_IS_LOST}}, "gpu-lost", "GPU 1"),
])  # fmt: skip
def test_a_fault_is_named(shown: Shown, fault: dict[str, Any], condition: str, words: str) -> None:
    status, report = bed.dsdoctor(shown(**fault), "check", *HOST)
    failed = [f for f in report["findings"] if f["status"] == "fail"]
    assert [f["condition"] for f in failed] == [condition]
    assert words in failed[0]["message"]
    assert status == 1
