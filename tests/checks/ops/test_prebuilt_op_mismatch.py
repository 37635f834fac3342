"""Rows of `prebuilt-op-mismatch`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall, DeepSpeedLive, ImportOutcome, RunNeeds, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.ops import prebuilt_op_mismatch

NO_CONFIG = RunNeeds()
OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "Adam"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)
FUSED = RunNeeds(config={"optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}})


@pytest.mark.parametrize(
    ("fact", "run", "expected"),
    [
        pytest.param(
            DeepSpeedInstall(
                version="0.19.8",
                installed_ops={"fused_adam": True, "cpu_adam": False},
                built_for_torch="2.9",
                built_for_cuda="12.8",
            ),
            NO_CONFIG,
            "ok",
            id="ops built for the torch and CUDA that are installed",
        ),
        pytest.param(
            DeepSpeedInstall(version="0.19.8"),
            NO_CONFIG,
            "skip",
            id="DeepSpeed was installed without ops",
        ),
        pytest.param(
            DeepSpeedInstall(
                version="0.19.8",
                installed_ops={"fused_adam": True, "cpu_adam": False},
                built_for_torch="2.5",
                built_for_cuda="12.8",
            ),
            NO_CONFIG,
            "fail",
            id="ops built for torch 2.5 where 2.9 is installed",
        ),
        pytest.param(
            DeepSpeedInstall(
                version="0.19.8",
                installed_ops={"fused_adam": True, "cpu_adam": False},
                built_for_torch="2.9",
                built_for_cuda="12.4",
            ),
            FUSED,
            "fail",
            id="the op that the config needs was built for CUDA 12.4",
        ),
        pytest.param(
            DeepSpeedInstall(
                version="0.19.8",
                installed_ops={"fused_adam": True, "cpu_adam": False},
                built_for_torch="2.5",
                built_for_cuda="12.4",
            ),
            OFFLOAD,
            "warn",
            id="an op that the config does not need was built for another torch",
        ),
        pytest.param(
            DeepSpeedInstall(
                version="0.19.8",
                installed_ops={"fused_adam": True, "cpu_adam": False},
                built_for_torch="2.9",
                built_for_cuda="0.0",
            ),
            FUSED,
            "ok",
            id="ops built on a machine without CUDA",
        ),
    ],
)
def test_rows(fact: DeepSpeedInstall, run: RunNeeds, expected: str) -> None:
    assert (
        judge(
            prebuilt_op_mismatch.ops_match_torch,
            deep_speed_install=fact,
            torch_build=TorchBuild(version="2.9.1+cu128", cuda="12.8"),
            run_needs=run,
        ).status
        == expected
    )


@pytest.mark.parametrize(
    ("built", "used", "expected"),
    [
        pytest.param("cpu", "cuda", "warn", id="built where no GPU was visible, used on GPUs"),
        pytest.param("cuda", "cuda", "ok", id="built for GPUs and used on GPUs"),
        pytest.param("cuda", "cpu", "ok", id="built for GPUs, checked on a login node"),
        pytest.param(None, "cuda", "ok", id="a release that does not record the accelerator"),
        pytest.param("cpu", None, "ok", id="DeepSpeed was not imported"),
    ],
)
def test_ops_of_another_accelerator_are_ignored_by_deepspeed(
    built: str | None, used: str | None, expected: str
) -> None:
    judged = judge(
        prebuilt_op_mismatch.ops_match_torch,
        deep_speed_install=DeepSpeedInstall(
            version="0.19.8", installed_ops={"fused_adam": True}, built_for_torch="2.9",
            built_for_cuda="12.8", built_for_accelerator=built,
        ),
        deep_speed_live=DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=used),
        torch_build=TorchBuild(version="2.9.1+cu128", cuda="12.8"),
        run_needs=FUSED,
    )  # fmt: skip
    assert judged.status == expected
    if expected == "warn":
        assert f"for the accelerator `{built}`, but DeepSpeed uses `{used}` here" in str(
            judged.worst
        )
        assert f"DS_ACCELERATOR={used}" in str(judged.worst)
