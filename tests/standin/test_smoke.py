"""`dsdoctor smoke` with real DeepSpeed, real ProcessGroupNCCL and a real CUDA build of torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import scenarios
from tests.standin import bed

pytestmark = [pytest.mark.standin, pytest.mark.timeout(400)]
Shown = Callable[..., dict[str, str]]


def smoke(
    env: dict[str, str], gpus: str, *more: str, seconds: float = 360
) -> tuple[int, dict[str, Any]]:
    return bed.dsdoctor(env, "smoke", "--gpus", gpus, "--no-bisect", *more, seconds=seconds)


def uuids(*gpus: int) -> list[str]:
    everyone = scenarios.h100_x8()["gpus"]
    return [everyone[gpu]["uuid"] for gpu in gpus]


@pytest.mark.parametrize(("built_in", "gpus", "stage", "more"), [
    (1, "0", 0, ("--precision", "bf16")),
    (1, "0", 1, ("--precision", "fp16")),
    (2, "0,1", 3, ("--precision", "bf16")),
    (4, "2,3", 1, ("--precision", "fp32", "--launcher", "torchrun")),
])  # fmt: skip
def test_training_passes(
    shown: Shown, tmp_path: Path, built_in: int, gpus: str, stage: int, more: tuple[str, ...]
) -> None:
    """ZeRO-2 is what the optimizer on the host has, below."""
    config = tmp_path / "config.json"
    batch = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage}}
    config.write_text(json.dumps(batch), "utf-8")
    status, report = smoke(shown(gpus=built_in), gpus, "--config", str(config), *more)
    assert (status, report["verdict"]) == (0, "pass"), json.dumps(report, indent=1)
    assert any(f"ZeRO-{stage}" in line for line in report["proved"]), report["proved"]
    chosen = [int(gpu) for gpu in gpus.split(",")]
    assert [rank["device_uuid"] for rank in report["ranks"]] == uuids(*chosen)
    figures = report["figures"]
    assert figures["last_loss"] == pytest.approx(figures["reference_loss"], rel=0.01)


def test_a_loss_that_is_not_scaled_is_no_fault_of_the_gpu(shown: Shown, tmp_path: Path) -> None:
    """fp16 without ZeRO, as DeepSpeed 0.18.3 to 0.19.8 run it."""
    config = tmp_path / "config.json"
    config.write_text('{"train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true}}', "utf-8")
    status, report = smoke(shown(gpus=1), "0", "--config", str(config))
    assert (status, report["verdict"]) == (1, "fail"), json.dumps(report, indent=1)
    (cause,) = report["causes"]
    assert cause["condition"] == "fp16-loss-unscaled"
    assert "the step divides them by 65536" in cause["message"]


@pytest.mark.timeout(960)
def test_the_optimizer_trains_on_the_host(shown: Shown, tmp_path: Path) -> None:
    """DeepSpeed's own CPU Adam, compiled by DeepSpeed; an Xid that ends nothing is a warning."""
    config = tmp_path / "offload.json"
    zero = {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}
    optimizer = {"type": "AdamW", "params": {"lr": 1e-4}}
    batch = {"train_micro_batch_size_per_gpu": 2}
    config.write_text(
        json.dumps(
            {**batch, "bf16": {"enabled": True}, "optimizer": optimizer, "zero_optimization": zero}
        ),
        "utf-8",
    )
    env = shown(xid_events=[{"gpu": 0, "code": 94}])
    status, report = smoke(env, "0,1", "--config", str(config), seconds=900)
    assert (status, report["verdict"]) == (0, "pass"), json.dumps(report, indent=1)
    assert any("ZeRO-2 with the optimizer on the host" in line for line in report["proved"])
    assert any("GPU 0" in line and "Xid 94" in line for line in report["warnings"])


@pytest.mark.timeout(960)
def test_weights_and_optimizer_stay_on_the_host(shown: Shown, tmp_path: Path) -> None:
    """ZeRO-3 gathers each weight from the host, with DeepSpeed's own CPU Adam."""
    config = tmp_path / "offload.json"
    host = {"device": "cpu", "pin_memory": True}
    zero = {"stage": 3, "offload_optimizer": host, "offload_param": host}
    optimizer = {"type": "AdamW", "params": {"lr": 1e-4}}
    asked = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}}
    config.write_text(
        json.dumps({**asked, "optimizer": optimizer, "zero_optimization": zero}), "utf-8"
    )
    status, report = smoke(shown(), "0,1", "--config", str(config), seconds=900)
    assert (status, report["verdict"]) == (0, "pass"), json.dumps(report, indent=1)
    assert any("ZeRO-3 with" in line for line in report["proved"]), report["proved"]
    figures = report["figures"]
    assert figures["last_loss"] == pytest.approx(figures["reference_loss"], rel=0.01)


@pytest.mark.timeout(960)
def test_eight_ranks_train(shown: Shown) -> None:
    everyone = ",".join(map(str, range(8)))
    status, report = smoke(shown(gpus=8), everyone, "--timeout", "800", seconds=900)
    assert (status, report["verdict"]) == (0, "pass"), json.dumps(report, indent=1)
    assert [rank["device_uuid"] for rank in report["ranks"]] == uuids(*range(8))


def test_an_xid_comes_before_what_the_ranks_say(shown: Shown) -> None:
    env = shown(
        xid_events=[{"gpu": 1, "code": 79}],
        fail={"cudaLaunchKernel@1": 719},
        after={"cudaLaunchKernel@1": 3000},
    )
    status, report = smoke(env, "0,1")
    assert status == 1
    first, *others = report["causes"]
    assert first["condition"] == "gpu-hardware-fault", json.dumps(report["causes"], indent=1)
    assert "GPU 1" in first["message"]
    assert "Xid 79" in first["message"]
    assert [cause["condition"] for cause in others] == ["cuda-kernel-failed"]


@pytest.mark.parametrize(
    ("fault", "condition", "rank", "words"),
    [
        pytest.param(
            {"corrupt": {"ncclAllReduce@1": 1}},
            "wrong-results",
            1,
            "all_reduce gave",
            id="a sum that is wrong",
        ),
        pytest.param(
            {"fail": {"ncclCommInitRank@0": 2}},
            "nccl-ib-or-socket-interface",
            0,
            "ncclCommInitRank",
            id="a communicator that is not made",
        ),
        pytest.param(
            {"fail": {"cudaLaunchKernel@1": 719}, "after": {"cudaLaunchKernel@1": 3000}},
            "cuda-kernel-failed",
            1,
            "CUDA error: unspecified launch failure",
            id="a kernel that fails after a while",
        ),
        pytest.param(
            {"fail": {"cudaLaunchKernel@1": 214}, "after": {"cudaLaunchKernel@1": 3000}},
            "gpu-hardware-fault",
            1,
            "uncorrectable ECC error",
            id="an ECC error after a while",
        ),
        pytest.param(
            {"fail": {"cuDevicePrimaryCtxRetain@1": 46}},
            "gpu-busy-exclusive-mode",
            1,
            "busy or unavailable",
            id="a GPU of another process",
        ),
        pytest.param(
            {"fail": {"cudaMalloc@1": 2}},
            "gpu-oom",
            1,
            "CUDA out of memory",
            id="memory that runs out",
        ),
    ],
)
def test_a_fault_is_named_with_its_rank(
    shown: Shown, fault: dict[str, Any], condition: str, rank: int, words: str
) -> None:
    status, report = smoke(shown(**fault), "0,1")
    assert status == 1
    assert report["causes"][0]["condition"] == condition, json.dumps(report["causes"], indent=1)
    one = report["ranks"][rank]
    # NCCL's watchdog meets the failed kernel too, and may end the rank before its exception is told
    ends = ("failed", "died") if "cudaLaunchKernel@1" in fault.get("fail", {}) else ("failed",)
    assert one["outcome"] in ends, report["ranks"]
    assert words in (one["error"] or json.dumps(report["causes"][0]))


def test_a_rank_that_hangs_is_named_with_the_operation(shown: Shown) -> None:
    env = shown(hang={"ncclAllReduce@1": 300})
    status, report = smoke(env, "0,1", "--timeout", "60")
    assert status == 1
    assert report["causes"][0]["condition"] == "nccl-timeout-watchdog"
    assert "all_reduce" in report["causes"][0]["message"]


@pytest.mark.timeout(960)
def test_the_setting_that_helps_is_found(shown: Shown) -> None:
    """A transport that sums wrongly, and does not where NCCL leaves it out."""
    env = shown(corrupt={"ncclAllReduce@1": 1}, unless={"ncclAllReduce@1": "NCCL_SHM_DISABLE=1"})
    status, report = bed.dsdoctor(env, "smoke", "--gpus", "0,1", "--bisect", seconds=900)
    assert status == 1
    assert report["causes"][0]["condition"] == "wrong-results"
    tried = [(row["knob"], row["verdict"]) for row in report["bisect"]]
    assert tried == [("NCCL_P2P_DISABLE", "fail"), ("NCCL_SHM_DISABLE", "pass")]
    assert report["works_with"] == {"NCCL_SHM_DISABLE": "1"}
