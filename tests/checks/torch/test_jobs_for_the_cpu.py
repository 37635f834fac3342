"""A job that says itself that it runs on the CPU lacks no GPU, and no build of torch for one."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Check, Nvml, NvmlError, RunNeeds
from dsdoctor.probes.command_line import parse_command, with_accelerate
from dsdoctor.testing import judge
from dsdoctor_checks._util import capabilities
from dsdoctor_checks.container import docker_gpu_runtime_missing
from dsdoctor_checks.driver import no_gpu_visible, nvml_unusable
from dsdoctor_checks.torch import cpu_only_torch, gpu_arch_unsupported, torch_cuda_init_failed
from tests.checks import machines as m

_TORCH_FOR_CPUS: dict[str, Any] = {
    "torch_build": m.torch("2.7.0+cpu", None),
    "nvidia_kernel": m.kernel(),
    "os_info": m.DOCKER,
}
#: What each check needs to fail for a job that uses GPUs.
FAULTS = [
    pytest.param(cpu_only_torch.torch_has_cuda, _TORCH_FOR_CPUS, id="a build of torch for CPUs"),
    pytest.param(
        docker_gpu_runtime_missing.runtime_hands_gpus_over,
        {
            "nvidia_kernel": m.kernel(),
            "os_info": m.DOCKER,
            "lib_cuda": m.ABSENT,
            "torch_live": m.live(100),
        },
        id="a container without NVIDIA's runtime",
    ),
    pytest.param(
        gpu_arch_unsupported.torch_has_code_for_gpus,
        {
            "torch_build": m.torch("2.5.1", "12.4"),
            "torch_live": m.live(arch_list=("sm_80", "sm_90"), arch_source="torch"),
            "gpus": m.gpus("5090"),
        },
        id="a GPU that torch has no code for",
    ),
    pytest.param(
        nvml_unusable.nvml_answers,
        {
            "nvml": Nvml(error=NvmlError(code=12, name="X", message="x", call="nvmlInit")),
            "nvidia_kernel": m.kernel(),
            "os_info": m.DOCKER,
        },
        id="a container without NVML",
    ),
    pytest.param(
        torch_cuda_init_failed.cuda_initializes,
        {"torch_live": m.live(100), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
        id="CUDA does not start",
    ),
    pytest.param(
        no_gpu_visible.some_gpu_visible,
        {"nvidia_kernel": m.NO_GPU, "gpus": m.ABSENT, "torch_build": m.torch()},
        id="a machine without a GPU",
    ),
]
ON_CPU = [
    pytest.param("python t.py", {"DS_ACCELERATOR": "cpu"}, id="the environment"),
    pytest.param("env DS_ACCELERATOR=cpu python t.py", {}, id="DS_ACCELERATOR in front"),
    pytest.param("env CUDA_VISIBLE_DEVICES= python t.py", {}, id="no visible device"),
    pytest.param("CUDA_VISIBLE_DEVICES=-1 python t.py", {}, id="device -1"),
    pytest.param("accelerate launch --cpu t.py", {}, id="--cpu of accelerate"),
    pytest.param("python t.py --use_cpu", {}, id="--use_cpu of the Trainer"),
]
ON_GPUS = [
    pytest.param("python t.py", {}, id="nothing says so"),
    pytest.param("env CUDA_VISIBLE_DEVICES=0 python t.py", {}, id="a visible device"),
    pytest.param("DS_ACCELERATOR=cuda python t.py", {"DS_ACCELERATOR": "cpu"}, id="set again"),
    pytest.param("accelerate launch t.py --cpu 8", {}, id="a number of cores"),
    pytest.param("accelerate launch t.py --use_cpu false", {}, id="--use_cpu false"),
]


def _statuses(
    check: Check, facts: dict[str, Any], line: str, variables: dict[str, str]
) -> set[str]:
    return {
        str(status)
        for status in judge(
            check,
            environment=m.env(**variables),
            launch_command=parse_command(line.split()),
            **facts,
        ).statuses
    }


@pytest.mark.parametrize(("line", "variables"), ON_CPU)
@pytest.mark.parametrize(("check", "facts"), FAULTS)
def test_a_job_for_the_cpu_needs_no_gpu(
    check: Check, facts: dict[str, Any], line: str, variables: dict[str, str]
) -> None:
    assert not _statuses(check, facts, line, variables) & {"warn", "fail"}


@pytest.mark.parametrize(("line", "variables"), ON_GPUS)
@pytest.mark.parametrize(("check", "facts"), FAULTS)
def test_any_other_job_does(
    check: Check, facts: dict[str, Any], line: str, variables: dict[str, str]
) -> None:
    assert _statuses(check, facts, line, variables) & {"warn", "fail"}


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(m.WANTS, id="GPUs are asked for"),
        pytest.param(RunNeeds(gpu_needed_by="NCCL in line 3 of `t.py`"), id="its script needs one"),
    ],
)
def test_what_asks_for_gpus_all_the_same_counts(run: RunNeeds) -> None:
    judged = judge(
        cpu_only_torch.torch_has_cuda,
        environment=m.env(DS_ACCELERATOR="cpu"),
        run_needs=run,
        **_TORCH_FOR_CPUS,
    )
    assert judged.status == "fail"


@pytest.mark.parametrize(("value", "expected"), [(True, "skip"), (False, "fail")])
def test_configuration_of_accelerate(value: bool, expected: str) -> None:
    command = with_accelerate(parse_command(["accelerate", "launch", "t.py"]), {"use_cpu": value})
    judged = judge(
        cpu_only_torch.torch_has_cuda,
        environment=m.NO_ENV,
        launch_command=command,
        **_TORCH_FOR_CPUS,
    )
    assert judged.status == expected


@pytest.mark.parametrize(("visible", "count"), [("", 0), ("-1", 0), ("1", 1), (None, 2)])
def test_what_the_command_hides_is_not_taken_from_torch(visible: str | None, count: int) -> None:
    gpus = m.gpus("5090", "5090")
    live = m.live(devices=(m.device("5090"), m.device("5090", 1)))
    found = capabilities(gpus, live, RunNeeds(visible_devices=visible), m.NO_ENV)
    assert len(found) == count
