"""Rows of the field guides that a repair answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import CudaToolkits, Environment, Fetch, PackageManagers, Run, TorchBuild, Write
from dsdoctor.api import Env as EnvStep
from tests.checks import machines
from tests.fixes import cases
from tests.fixes.fakes import Machine
from tests.support.command import dsdoctor


@pytest.mark.system
def test_guide_a2_conda_installs_the_toolkit_of_torch_and_nvcc_is_compiled_with(
    tmp_path: Path,
) -> None:
    """Its case: toolkit 11.5 on PATH, torch of a newer CUDA, conda at hand."""
    machine = Machine(tmp_path, "conda")
    old = machine.toolkit(tmp_path / "old", "11.5")
    env = {**machine.env, "PATH": f"{machine.env['PATH']}:{old}/bin"}
    before = dsdoctor("check", "--quick", "--select", "cuda", "--format", "json", env=env)
    assert before.of("cuda-toolkit-mismatch") == "fail"
    done = dsdoctor("fix", "--install-cuda-toolkit", "--yes", env=env)
    assert done.status == 0, done.err
    (call,) = machine.calls("create")
    assert call[call.index("--channel") + 1] == "nvidia/label/cuda-12.3.0"
    # the label does not pin what its packages require
    assert {"cuda-toolkit=12.3", "cuda-nvcc=12.3"} <= set(call)


def test_guide_a2_in_place_as_the_guide_does() -> None:
    name, facts, request, run = cases.CASES["install-cuda-toolkit.conda-in-place"]
    (plan,) = cases.plan(name, facts(), request, run).plans
    step = plan.steps[0]
    assert isinstance(step, Run)
    assert step.argv[:5] == ("/opt/conda/bin/conda", "install", "--yes", "--prefix", "/c/envs/t")
    assert step.inventory == "conda"


def test_guide_a3_the_skipped_check_is_switched_on_again_and_the_toolkit_comes() -> None:
    """`DS_SKIP_CUDA_CHECK=1 DS_BUILD_OPS=0`: the first hides a mismatch, the second does nothing."""
    env = Environment(variables={"DS_SKIP_CUDA_CHECK": "1", "DS_BUILD_OPS": "0"})
    mismatch = CudaToolkits(chosen=0, how="nvcc on PATH", found=(machines.toolkit("11.5"),))
    facts = cases.toolkit_machine(env=env, toolkits=mismatch, archives=cases.ARCHIVES)
    document = cases.plan("", facts)
    plans = {plan.name: plan for plan in document.plans}
    snippets = [s for s in plans["unset-variables"].steps if isinstance(s, EnvStep)]
    assert snippets[0].env == {"DS_SKIP_CUDA_CHECK": ""}
    assert any(isinstance(step, Fetch) for step in plans["install-cuda-toolkit"].steps)


@pytest.mark.parametrize(
    ("card", "driver", "cuda"),
    [
        ("V100", "580.95.05", "cu126"),
        ("A100", "535.104.05", "cu128"),
        ("T4", "535.104.05", "cu128"),
    ],
)
def test_guide_b2_the_index_that_serves_driver_and_gpus(card: str, driver: str, cuda: str) -> None:
    facts = cases.toolkit_machine(
        "13.0",
        gpus=machines.gpus(card),
        kernel=machines.kernel(driver),
        nvml=machines.nvml(driver),
    )
    (plan,) = cases.plan("install-torch-build", facts).plans
    step = plan.steps[0]
    assert isinstance(step, Run)
    assert step.argv[-2:] == ("--index-url", f"https://download.pytorch.org/whl/{cuda}")
    assert step.inventory == "pip"


@pytest.mark.parametrize(
    ("variables", "changes"),
    [
        pytest.param(
            {"CUDA_LAUNCH_BLOCKING": "1"},
            {"CUDA_LAUNCH_BLOCKING": ""},
            id="a variable for debugging is removed",
        ),
        pytest.param(
            {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segment:True"},
            {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
            id="a misspelled setting is corrected",
        ),
        pytest.param(
            {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "CUDA_LAUNCH_BLOCKING": "0"},
            None,
            id="sound values stay",
        ),
        pytest.param(
            {"NCCL_TIMEOUT": "1800"},
            {"NCCL_TIMEOUT": ""},
            id="a variable that NCCL does not read is removed",
        ),
        pytest.param(
            {"NCCL_ASYNC_ERROR_HANDLING": "1"},
            {"NCCL_ASYNC_ERROR_HANDLING": "", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
            id="an old name becomes the new one",
        ),
    ],
)
def test_guide_c4_variables_are_taken_away_renamed_or_left(
    variables: dict[str, str], changes: dict[str, str] | None
) -> None:
    facts: dict[str, Any] = cases.toolkit_machine(
        env=Environment(variables=variables), torch=TorchBuild(version="2.5.1", cuda="12.4")
    )
    document = cases.plan("unset-variables", facts)
    if changes is None:
        assert document.nothing_to_do == ["unset-variables"]
        return
    (plan,) = document.plans
    assert [step.env for step in plan.steps if isinstance(step, EnvStep)] == [changes]
    snippet = next(step for step in plan.steps if isinstance(step, Write))
    assert snippet.write == "/e/opt/dsdoctor/env.d/unset-variables.sh"
    assert all(name in snippet.content for name in changes)


def test_nothing_is_planned_for_a_healthy_machine() -> None:
    facts = cases.toolkit_machine(
        toolkits=CudaToolkits(chosen=0, how="CUDA_HOME", found=(machines.toolkit("12.4"),)),
        managers=PackageManagers(conda="/opt/conda/bin/conda", conda_kind="conda"),
    )
    document = cases.plan("install-cuda-toolkit", facts)
    assert document.nothing_to_do == ["install-cuda-toolkit"]
    assert document.plans == []
    assert cases.plan("", facts).plans == []
