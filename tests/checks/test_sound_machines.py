"""Sound machines of many kinds, composed from a few words each: nothing is found on any of them."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import Nvml, NvmlError, Status
from dsdoctor.judge import judge
from dsdoctor.model.facts.gpu import Gpus, MigDevice
from dsdoctor.model.report import Verdict
from dsdoctor.paste.environment import environment_of
from tests.paste import rendered
from tests.support.composed import machine
from tests.support.described import GIB, Described

REGISTRY = packs.load(builtin_only=True)
UNIFIED = {"memory_total_bytes": 122 << 30}
SLICE = MigDevice(index=0, uuid="MIG-1", profile="1g.10gb", memory_total_bytes=9984 << 20)
MACHINES = {
    "HGX H100": Described(gpus="8xNVIDIA H100 80GB HBM3", torch="2.4.0"),
    "HGX H100 with a newer nvcc": Described(
        gpus="8xNVIDIA H100 80GB HBM3", driver="535.161.08", torch="2.2.2+cu121", nvcc=("12.4",)
    ),
    "HGX H200 in a container": Described(
        gpus="8xNVIDIA H200", torch="2.8.0", container="docker", distribution="ubuntu 24.04"
    ),
    "HGX B200": Described(gpus="8xNVIDIA B200", torch="2.11.0", distribution="ubuntu 24.04"),
    "HGX A100 of old torch": Described(
        gpus="8xNVIDIA A100-SXM4-80GB", torch="2.0.1+cu118", distribution="ubuntu 20.04"
    ),
    "four A100 joined directly": Described(
        gpus="4xNVIDIA A100-SXM4-40GB", torch="2.6.0+cu124", links=12
    ),
    "A100 PCIe": Described(gpus="4xNVIDIA A100 80GB PCIe", driver="535.129.03", torch="2.1.2"),
    "A800 PCIe": Described(gpus="2xNVIDIA A800 80GB PCIe", driver="580.119.02", torch="2.9.1"),
    "V100": Described(gpus="Tesla V100-SXM2-16GB", torch="2.1.2+cu118"),
    "T4 of a notebook": Described(
        gpus="Tesla T4", driver="535.104.05", torch="2.1.0+cu118", container="docker",
        memory=12 * GIB, shm=6 * GIB,
    ),
    "A10 with NumPy 2": Described(
        gpus="NVIDIA A10", driver="580.105.08", torch="2.11.0+cu128", packages={"numpy": "2.2.6"}
    ),
    "workstation RTX 4090": Described(
        gpus="2xNVIDIA GeForce RTX 4090", driver="550.54.15", torch="2.4.0+cu121"
    ),
    "RTX 4090 on RHEL 8": Described(
        gpus="NVIDIA GeForce RTX 4090", driver="550.90.07", torch="2.4.0+cu121",
        distribution="rhel 8.10",
    ),
    "RTX 5090, driver 610": Described(
        gpus="2xNVIDIA GeForce RTX 5090", driver="610.57.04", torch="2.13.0",
        distribution="ubuntu 24.04",
    ),
    "RTX 5090 in WSL": Described(gpus="NVIDIA GeForce RTX 5090", torch="2.9.1", wsl=True),
    "laptop": Described(gpus="NVIDIA GeForce RTX 4060 Laptop GPU", torch="2.7.1+cu126"),
    "Pascal": Described(gpus="NVIDIA GeForce GTX 1060 6GB", torch="2.5.1+cu121"),
    "RTX PRO": Described(
        gpus="2xNVIDIA RTX PRO 6000 Blackwell Workstation Edition", torch="2.9.1"
    ),
    "Quadro RTX with an older nvcc": Described(
        gpus="8xQuadro RTX 6000", driver="550.67", torch="2.7.1+cu126", nvcc=("12.4",)
    ),
    "a slice of MIG": Described(
        gpus="NVIDIA H100 PCIe", driver="525.105.17", torch="2.0.1+cu118", container="kubernetes",
        each_gpu={"mig_mode": True, "mig_mode_pending": True, "mig_devices": (SLICE,)},
    ),
    "GH200": Described(gpus="NVIDIA GH200 480GB", torch="2.7.1+cu128", machine="aarch64"),
    "GB200": Described(
        gpus="4xNVIDIA GB200", torch="2.9.1+cu130", machine="aarch64", distribution="ubuntu 24.04"
    ),
    "DGX Spark": Described(
        gpus="NVIDIA GB10", driver="580.95.05", torch="2.9.0+cu130", machine="aarch64",
        distribution="ubuntu 24.04", each_gpu=UNIFIED,
    ),
    "MI300X": Described(torch="2.6.0+rocm6.2.4", amd=8),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_is_found_on_a_sound_machine(name: str) -> None:
    report = judge(machine(MACHINES[name]), list(REGISTRY), REGISTRY)
    loud = [one for one in report.findings if one.status not in (Status.OK, Status.SKIP)]
    assert loud == []
    assert report.verdict is Verdict.HEALTHY


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_is_found_in_what_its_tools_print(name: str) -> None:
    stated = environment_of(rendered.everything(machine(MACHINES[name])))
    assert stated is not None
    report = judge(stated, list(REGISTRY), REGISTRY)
    loud = [one for one in report.findings if one.status not in (Status.OK, Status.SKIP)]
    assert loud == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        pytest.param(
            Described(gpus="NVIDIA X900"), "compute capability", id="a product of the future"
        ),
        pytest.param(
            Described(gpus="NVIDIA GB10"), "memory", id="memory that is shared with the CPU"
        ),
        pytest.param(
            Described(gpus="Tesla T4", torch="1.7.0"), "CUDA", id="a torch before the table"
        ),
        pytest.param(
            Described(gpus="Tesla T4", torch="2.1.0+cu113"),
            "kernels",
            id="a wheel that was never published",
        ),
        pytest.param(
            Described(gpus="Tesla T4", driver="304.54"), "driver", id="a driver before CUDA 9"
        ),
    ],
)
def test_what_no_table_knows_is_not_made_up(said: Described, asked: str) -> None:
    with pytest.raises(ValueError, match=asked):
        machine(said)


def test_a_driver_that_does_not_start_lists_no_gpu() -> None:
    error = NvmlError(code=999, name="UNKNOWN", message="Unknown Error", call="nvmlInit")
    made = machine(Described(gpus="2xTesla T4", more=(Nvml(error=error),)))
    assert not isinstance(made.get(Gpus), Gpus)


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        pytest.param("MI300X", "8 × AMD Instinct MI300X", id="as torch names them"),
        pytest.param("HGX B200", "8 × NVIDIA B200", id="NVIDIA's"),
    ],
)
def test_the_heading_names_the_gpus(name: str, heading: str) -> None:
    report = judge(machine(MACHINES[name]), list(REGISTRY), REGISTRY)
    assert " + ".join(report.gpus) == heading
