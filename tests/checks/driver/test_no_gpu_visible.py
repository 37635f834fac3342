from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import (
    DeepSpeedLive,
    Gpus,
    ImportOutcome,
    LaunchCommand,
    Missing,
    ModuleImports,
    NvidiaKernel,
    OsInfo,
    Package,
    Packages,
    RunNeeds,
    TorchBuild,
)
from dsdoctor.testing import judge
from dsdoctor_checks.driver import no_gpu_visible
from tests.checks import machines as m

CHECK = no_gpu_visible.some_gpu_visible
BIND = {"bind_cores_to_rank": ""}
ON_CPU = {"DS_ACCELERATOR": "cpu"}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "environment": m.NO_ENV,
                "os_info": m.LINUX,
                "torch_live": m.live(),
            },
            ["ok"],
            id="an A100 that torch uses",
        ),
        pytest.param(
            {"nvidia_kernel": m.NO_GPU, "environment": m.NO_ENV, "os_info": m.LINUX},
            ["warn"],
            id="no GPU, and nothing says that the run needs one",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.NO_GPU,
                "environment": m.NO_ENV,
                "os_info": m.LINUX,
                "run_needs": m.WANTS,
            },
            ["fail"],
            id="no GPU, but the run asks for GPU 0",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.NO_GPU,
                "environment": m.NO_ENV,
                "os_info": m.LINUX,
                "run_needs": RunNeeds(expect_gpus=8),
            },
            ["fail"],
            id="no GPU, but the run expects 8",
        ),
        pytest.param(
            {"nvidia_kernel": m.kernel(None, None), "environment": m.NO_ENV, "os_info": m.LINUX},
            ["fail"],
            id="a GPU on the bus without a driver",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.kernel(None, "vfio-pci"),
                "environment": m.NO_ENV,
                "os_info": m.LINUX,
            },
            ["warn"],
            id="the only GPU is passed through to a virtual machine",
        ),
        pytest.param(
            {
                "nvidia_kernel": NvidiaKernel(module_version="580.95.05", pci=m.kernel().pci),
                "environment": m.NO_ENV,
                "os_info": m.DOCKER,
            },
            ["warn"],
            id="a container started without the GPU's device nodes",
        ),
        pytest.param(
            {
                "nvidia_kernel": m.kernel(),
                "environment": m.env(SLURM_JOB_ID="1"),
                "os_info": m.LINUX,
                "run_needs": m.WANTS,
            },
            ["fail"],
            id="a Slurm job that was not granted the GPU it asks for",
        ),
        pytest.param(
            {
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "environment": m.env(CUDA_VISIBLE_DEVICES=""),
                "os_info": m.LINUX,
            },
            ["warn"],
            id="an empty CUDA_VISIBLE_DEVICES hides the A100",
        ),
        pytest.param(
            {
                "gpus": m.gpus("A100"),
                "nvidia_kernel": m.kernel(),
                "environment": m.env(CUDA_VISIBLE_DEVICES="-1"),
                "os_info": m.LINUX,
                "run_needs": m.WANTS,
            },
            ["fail"],
            id="CUDA_VISIBLE_DEVICES=-1 hides the A100 from a run that needs it",
        ),
        pytest.param(
            {
                "gpus": m.TIMEOUT,
                "nvidia_kernel": m.kernel(),
                "environment": m.NO_ENV,
                "os_info": m.LINUX,
            },
            ["skip"],
            id="the list of GPUs did not arrive in time",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


MACOS = OsInfo(system="Darwin", release="24.6.0", machine="arm64", hostname="mac")


@pytest.mark.parametrize(
    ("os", "torch", "deepspeed", "packages", "named"),
    [
        pytest.param(
            m.LINUX, m.ABSENT, "npu", {}, "Ascend NPU (`npu`)", id="DeepSpeed has chosen the NPU"
        ),
        pytest.param(
            m.LINUX, m.ABSENT, "mps", {}, "Apple MPS (`mps`)", id="DeepSpeed has chosen MPS"
        ),
        pytest.param(
            MACOS,
            m.ABSENT,
            None,
            {},
            "Apple MPS or the CPU",
            id="a Mac on which DeepSpeed was not tried",
        ),
        pytest.param(
            m.LINUX,
            m.ABSENT,
            None,
            {"torch-npu": Package(name="torch-npu", version="2.9.0")},
            "Ascend NPU (`npu`)",
            id="torch-npu is installed",
        ),
        pytest.param(
            m.LINUX,
            TorchBuild(version="2.1.2+cu121", cuda="12.1"),
            None,
            {"torch-neuronx": Package(name="torch-neuronx", version="2.1.2.2.2.0")},
            "AWS Neuron",
            id="torch-neuronx beside a build for CUDA",
        ),
        pytest.param(
            m.LINUX,
            TorchBuild(version="2.9.1", hip="6.4"),
            None,
            {},
            "AMD ROCm",
            id="torch is built for ROCm",
        ),
    ],
)
def test_another_accelerator_is_not_called_the_cpu(
    os: OsInfo,
    torch: TorchBuild | Missing,
    deepspeed: str | None,
    packages: dict[str, Package],
    named: str,
) -> None:
    chosen = DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=deepspeed)
    live = chosen if deepspeed else m.NOT_ASKED
    facts: dict[str, Any] = {
        "nvidia_kernel": m.NO_GPU,
        "environment": m.NO_ENV,
        "os_info": os,
        "torch_build": torch,
        "deep_speed_live": live,
    }
    facts["packages"] = Packages(packages=packages)
    (finding,) = judge(CHECK, **facts).findings
    assert finding.status.value == "skip"
    assert finding.message == f"DeepSpeed uses {named} here, not an NVIDIA GPU"


@pytest.mark.parametrize(("version", "cuda"), [(None, None), ("2.9.1+cu128", "12.8")])
def test_amd_gpus_need_a_build_for_rocm(version: str | None, cuda: str | None) -> None:
    torch = TorchBuild(version=version, cuda=cuda)
    facts: dict[str, Any] = {"environment": m.NO_ENV, "torch_build": torch}
    os = msgspec.structs.replace(m.LINUX, amd_gpus=8)
    (finding,) = judge(CHECK, nvidia_kernel=m.NO_GPU, os_info=os, **facts).findings
    assert finding.status.value == "warn"
    assert finding.message.startswith("8 AMD GPUs and none from NVIDIA")
    assert "ROCm build" in finding.hint
    (finding,) = judge(CHECK, nvidia_kernel=m.NO_GPU, os_info=m.LINUX, **facts).findings
    assert "AMD" not in finding.message


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param({"nvml": m.nvml("550.54.15")}, ["warn"], id="a driver is known"),
        pytest.param(
            {"cuda_toolkits": m.toolkits(m.toolkit("12.4"))}, ["warn"], id="a toolkit is known"
        ),
        pytest.param({}, ["skip"], id="nothing shows that GPUs are meant"),
        pytest.param(
            {"nvml": m.nvml("550.54.15"), "torch_live": m.live(devices=(m.device("A100"),))},
            ["ok"],
            id="torch finds one",
        ),
    ],
)
def test_a_torch_without_a_device_where_gpus_were_not_asked_for(
    known: dict[str, Any], expected: list[str]
) -> None:
    """As in a paste that says nothing of GPUs."""
    live = m.live(100)
    facts = {"gpus": m.NOT_ASKED, "nvidia_kernel": m.NOT_ASKED, "torch_live": live, **known}
    assert [f.status.value for f in judge(CHECK, **facts).findings] == expected


def test_a_cpu_build_beside_amd_gpus_is_left_to_the_condition_of_cpu_builds() -> None:
    os = msgspec.structs.replace(m.LINUX, amd_gpus=8)
    torch = TorchBuild(version="2.13.0+cpu")
    found = judge(
        CHECK, nvidia_kernel=m.NO_GPU, os_info=os, environment=m.NO_ENV, torch_build=torch
    )
    assert found.bad == []


@pytest.mark.parametrize(
    ("options", "cuda", "variables", "run", "expected"),
    [
        pytest.param(BIND, None, {}, RunNeeds(), ["skip"], id="cores for ranks of a CPU build"),
        pytest.param(BIND, "12.4", {}, RunNeeds(), ["warn"], id="the same of a build for CUDA"),
        pytest.param({}, "12.4", ON_CPU, RunNeeds(), ["skip"], id="the variable"),
        pytest.param({}, "12.4", ON_CPU, m.WANTS, ["fail"], id="a GPU is wanted"),
        pytest.param({}, "12.4", {}, RunNeeds(), ["warn"], id="nothing says so, a build for CUDA"),
        pytest.param({}, None, {}, RunNeeds(), ["skip"], id="nothing says so, a build for the CPU"),
        pytest.param(
            {},
            None,
            {"CUDA_VISIBLE_DEVICES": "0,1"},
            RunNeeds(),
            ["warn"],
            id="a build for the CPU, GPUs are listed",
        ),
        pytest.param({}, None, {}, m.WANTS, ["fail"], id="a build for the CPU, a GPU is wanted"),
        pytest.param(
            {},
            None,
            {},
            RunNeeds(gpu_needed_by="`--fp16`"),
            ["fail"],
            id="a build for the CPU, an option needs a GPU",
        ),
    ],
)
def test_a_run_on_the_cpu_accelerator(
    options: dict[str, str],
    cuda: str | None,
    variables: dict[str, str],
    run: RunNeeds,
    expected: list[str],
) -> None:
    argv = ("deepspeed", "train.py")
    found = judge(
        CHECK,
        nvidia_kernel=m.NO_GPU,
        os_info=m.LINUX,
        environment=m.env(**variables),
        run_needs=run,
        launch_command=LaunchCommand(launcher="deepspeed", argv=argv, options=options),
        torch_build=TorchBuild(version="2.6.0", cuda=cuda),
    )
    assert found.statuses == expected


@pytest.mark.parametrize(
    ("writable", "amd", "expected"),
    [
        pytest.param(False, 2, ["fail"], id="the account may not open the device"),
        pytest.param(True, 2, ["ok"], id="it may, and another condition judges why"),
        pytest.param(None, 2, ["ok"], id="it is not known"),
        pytest.param(None, 0, ["warn"], id="the kernel offers none"),
    ],
)
def test_a_build_for_rocm_that_finds_no_gpu(
    writable: bool | None, amd: int, expected: list[str]
) -> None:
    os = msgspec.structs.replace(m.LINUX, amd_gpus=amd, kfd_writable=writable)
    found = judge(
        CHECK,
        nvidia_kernel=m.NO_GPU,
        os_info=os,
        environment=m.NO_ENV,
        torch_build=TorchBuild(version="2.6.0+rocm6.2.4", hip="6.2.4"),
        torch_live=m.live(100),
    )
    assert found.statuses == expected


def test_a_plug_in_for_npus_that_does_not_load_is_left_to_its_own_condition() -> None:
    broken = ImportOutcome(ok=False, error_type="ImportError", message="libhccl.so: cannot open")
    found = judge(
        CHECK,
        nvidia_kernel=m.NO_GPU,
        os_info=m.LINUX,
        environment=m.NO_ENV,
        module_imports=ModuleImports(outcomes={"torch_npu": broken}),
    )
    assert found.statuses == ["skip"]


def test_without_the_pci_bus_it_is_not_said_that_there_is_no_gpu() -> None:
    none = Gpus(gpus=(), count=0)
    unread = judge(CHECK, gpus=none, environment=m.NO_ENV, os_info=m.LINUX)
    assert unread.status == "warn"
    assert "lspci" in unread.bad[0].hint
    read = judge(CHECK, gpus=none, nvidia_kernel=m.NO_GPU, environment=m.NO_ENV, os_info=m.LINUX)
    assert "lspci" not in read.bad[0].hint


def test_a_container_without_gpus_fails_once_torch_has_tried() -> None:
    facts: dict[str, Any] = {
        "nvidia_kernel": msgspec.structs.replace(m.kernel(), device_nodes=()),
        "environment": m.NO_ENV,
        "os_info": msgspec.structs.replace(m.LINUX, container="docker"),
        "gpus": Gpus(gpus=(), count=0),
    }
    assert judge(CHECK, **facts).status == "warn"
    tried: dict[str, Any] = {"torch_live": m.live(100, works=False)}
    built = TorchBuild(version="2.4.0", cuda="12.1")
    assert judge(CHECK, torch_build=built, **tried, **facts).status == "fail"
    cpu = TorchBuild(version="2.4.0+cpu", cuda=None)
    assert judge(CHECK, torch_build=cpu, **tried, **facts).status == "warn"


def test_wsl_without_its_device_is_another_condition_s() -> None:
    wsl = msgspec.structs.replace(m.LINUX, wsl=True)
    for dxg, status in ((False, "skip"), (True, "warn")):
        kernel = NvidiaKernel(dxg=dxg)
        found = judge(CHECK, nvidia_kernel=kernel, environment=m.NO_ENV, os_info=wsl)
        assert found.status == status
