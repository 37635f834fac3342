"""`dsdoctor smoke` with real DeepSpeed, real ProcessGroupNCCL and a real CUDA build of torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.nvml import scenarios
from tests.standin import bed

pytestmark = [pytest.mark.standin, pytest.mark.timeout(400)]
Shown = Callable[..., dict[str, str]]


def smoke(env: dict[str, str], gpus: str, *more: str) -> tuple[int, dict[str, Any]]:
    return bed.dsdoctor(env, "smoke", "--gpus", gpus, "--no-bisect", *more, seconds=360)


def uuids(*gpus: int) -> list[str]:
    everyone = scenarios.h100_x8()["gpus"]
    return [everyone[gpu]["uuid"] for gpu in gpus]


@pytest.mark.parametrize(("built_in", "gpus", "more"), [
    (1, "0", ("--precision", "fp16")),
    (2, "0,1", ()),
    (4, "2,3", ("--launcher", "torchrun")),
])  # fmt: skip
def test_training_passes(shown: Shown, built_in: int, gpus: str, more: tuple[str, ...]) -> None:
    status, report = smoke(shown(gpus=built_in), gpus, *more)
    assert (status, report["verdict"]) == (0, "pass"), json.dumps(report, indent=1)
    chosen = [int(gpu) for gpu in gpus.split(",")]
    assert [rank["device_uuid"] for rank in report["ranks"]] == uuids(*chosen)
    figures = report["figures"]
    assert figures["last_loss"] == pytest.approx(figures["reference_loss"], rel=0.01)


@pytest.mark.parametrize(("fault", "condition", "rank", "words"), [
    ({"corrupt": {"ncclAllReduce@1": 1}}, "wrong-results", 1, "all_reduce gave"),
    ({"fail": {"ncclCommInitRank@0": 2}}, "nccl-ib-or-socket-interface", 0, "ncclCommInitRank"),
    ({"fail": {"cudaLaunchKernel@1": 719}, "after": {"cudaLaunchKernel@1": 3000}}, "cuda-kernel-failed", 1,
     "CUDA error: unspecified launch failure"),
    ({"fail": {"cudaLaunchKernel@1": 214}, "after": {"cudaLaunchKernel@1": 3000}}, "gpu-hardware-fault", 1,
     "uncorrectable ECC error"),
    ({"fail": {"cuDevicePrimaryCtxRetain@1": 46}}, "gpu-busy-exclusive-mode", 1, "busy or unavailable"),
    ({"fail": {"cudaMalloc@1": 2}}, "gpu-oom", 1, "CUDA out of memory"),
])  # fmt: skip
def test_a_fault_is_named_with_its_rank(
    shown: Shown, fault: dict[str, Any], condition: str, rank: int, words: str
) -> None:
    status, report = smoke(shown(**fault), "0,1")
    assert status == 1
    assert report["causes"][0]["condition"] == condition, json.dumps(report["causes"], indent=1)
    one = report["ranks"][rank]
    # NCCL's watchdog may end a rank before its exception is told
    ends = ("failed", "died") if condition == "cuda-kernel-failed" else ("failed",)
    assert one["outcome"] in ends, report["ranks"]
    assert words in (one["error"] or json.dumps(report["causes"][0]))


def test_a_rank_that_hangs_is_named_with_the_operation(shown: Shown) -> None:
    env = shown(hang={"ncclAllReduce@1": 300})
    status, report = smoke(env, "0,1", "--timeout", "60")
    assert status == 1
    assert report["causes"][0]["condition"] == "nccl-timeout-watchdog"
    assert "all_reduce" in report["causes"][0]["message"]
