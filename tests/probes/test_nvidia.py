from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.gpu import Gpus, GpuTopology, Nvml
from dsdoctor.probes.libcuda import libcuda
from dsdoctor.probes.nvidia import CHILD, SECURE_BOOT, UVM_DISABLE_HMM, nvidia_kernel, nvml
from dsdoctor.probes.nvidia_smi import nvidia_smi
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost

PCI = "/sys/bus/pci/devices"
GPU = {
    f"{PCI}/0000:1b:00.0/vendor": "0x10de\n",
    f"{PCI}/0000:1b:00.0/class": "0x030200\n",
    f"{PCI}/0000:1b:00.0/device": "0x2330\n",
}
SMI = "/usr/bin/nvidia-smi"
LIST = f"{SMI} --query-gpu"


def test_kernel() -> None:
    host = FakeHost(
        files={
            **GPU,
            f"{PCI}/0000:1b:00.1/vendor": "0x10de\n",
            f"{PCI}/0000:1b:00.1/class": "0x040300\n",  # its sound device
            f"{PCI}/0000:00:02.0/vendor": "0x8086\n",
            "/proc/driver/nvidia/version": (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
                "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
            ),
            "/proc/modules": "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 - Live 0x0\next4 1 0 - Live 0x0\n",
            "/dev/nvidia0": "",
            "/dev/nvidiactl": "",
            "/dev/nvidia-caps-imex-channels/channel0": "",
        },
        links={f"{PCI}/0000:1b:00.0/driver": "/sys/bus/pci/drivers/nvidia"},
    )
    fact = nvidia_kernel.function(host)
    assert (fact.module_version, fact.module_open) == ("580.95.05", True)
    assert fact.modules == ("nvidia", "nvidia_uvm")
    assert [(gpu.bdf, gpu.device_id, gpu.driver) for gpu in fact.pci] == [
        ("0000:1b:00.0", "0x2330", "nvidia")
    ]
    assert fact.device_nodes == ("nvidia-caps-imex-channels", "nvidia0", "nvidiactl")
    assert fact.imex_channels == ("channel0",)


def test_kernel_without_a_driver() -> None:
    fact = nvidia_kernel.function(FakeHost(files=GPU))
    assert fact.module_version is None
    assert fact.pci[0].driver is None
    assert fact.imex_channels == ()


@pytest.mark.parametrize(
    ("content", "on"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x06\0", None), (None, None)],
)
def test_secure_boot(content: bytes | None, on: bool | None) -> None:
    files = {} if content is None else {SECURE_BOOT: content}
    assert nvidia_kernel.function(FakeHost(files={**GPU, **files})).secure_boot is on
    loaded = {
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1  S"
    }
    assert nvidia_kernel.function(FakeHost(files={**files, **loaded})).secure_boot is None


@pytest.mark.parametrize(("content", "on"), [("N\n", True), ("Y\n", False), (None, None)])
def test_memory_of_the_host_that_the_driver_manages(content: str | None, on: bool | None) -> None:
    files = {} if content is None else {UVM_DISABLE_HMM: content}
    assert nvidia_kernel.function(FakeHost(files={**GPU, **files})).uvm_hmm is on


def test_kernel_with_a_version_that_cannot_be_told() -> None:
    with pytest.raises(HostError) as caught:
        nvidia_kernel.function(FakeHost(files={"/proc/driver/nvidia/version": "???"}))
    assert caught.value.missing.why is Why.BROKEN


@pytest.mark.parametrize(
    "probe",
    [pytest.param(nvidia_kernel, id="the kernel module"), pytest.param(libcuda, id="libcuda")],
)
def test_other_systems(probe: object) -> None:
    with pytest.raises(HostError) as caught:
        probe.function(FakeHost(system="Darwin"))  # type: ignore[attr-defined]
    assert caught.value.missing.why is Why.UNSUPPORTED


def smi_host(**commands: Result | str | HostError) -> FakeHost:
    return FakeHost(
        env={"PATH": "/usr/bin"},
        files={SMI: ""},
        commands={LIST: commands["first"], SMI: commands.get("second", "")},
    )


def test_smi() -> None:
    host = smi_host(
        first="0, GPU-1a, NVIDIA H200, 535.104.05\n1, GPU-1b, NVIDIA H200, 535.104.05\n",
        second="| NVIDIA-SMI 535.104.05  Driver Version: 535.104.05  CUDA Version: 12.2 |\n",
    )
    fact = nvidia_smi.function(host)
    assert (fact.driver_version, fact.cuda_version, fact.error) == ("535.104.05", "12.2", None)
    assert fact.gpus == ("0, GPU-1a, NVIDIA H200", "1, GPU-1b, NVIDIA H200")
    assert fact.cuda_missing is None


@pytest.mark.parametrize("word", ["ERR!", "N/A", "Not Found"])
def test_smi_without_a_cuda_version(word: str) -> None:
    host = smi_host(
        first="0, GPU-1a, NVIDIA H200, 535.104.05\n",
        second=f"| NVIDIA-SMI 535.104.05  Driver Version: 535.104.05  CUDA Version: {word} |\n",
    )
    fact = nvidia_smi.function(host)
    assert (fact.cuda_version, fact.cuda_missing) == (None, word)


@pytest.mark.parametrize(
    ("result", "error"),
    [
        pytest.param(
            Result(argv=(), returncode=None, timed_out=True), "timed out after 10 s", id="a timeout"
        ),
        pytest.param(
            Result(argv=(), returncode=9, stdout=b"NVIDIA-SMI has failed\n\n"),
            "exit 9: NVIDIA-SMI has failed",
            id="a failure",
        ),
        pytest.param(
            Result(argv=(), returncode=0, stdout=b"\xff\xfe\x00"),
            "its output is not text",
            id="no text",
        ),
        pytest.param(
            Result(argv=(), returncode=0, stdout=b"hello\n"), "it listed no GPU: hello", id="no GPU"
        ),
        pytest.param(Result(argv=(), returncode=-6), "ended by signal 6", id="a crash"),
        pytest.param(HostError(Why.DENIED, "may not be run"), "may not be run", id="no permission"),
    ],
)
def test_smi_in_trouble(result: Result | HostError, error: str) -> None:
    host = smi_host(first=result)
    fact = nvidia_smi.function(host)
    assert fact.path == SMI
    assert fact.error == error
    assert fact.timed_out == (error == "timed out after 10 s")
    assert len(host.ran) == 1  # the header is asked for only where the list came


def test_smi_is_not_there() -> None:
    assert nvidia_smi.function(FakeHost()).path is None


SYSTEM = "/usr/lib/x86_64-linux-gnu"
CACHE = f"\tlibcuda.so.1 (libc6,x86-64) => {SYSTEM}/libcuda.so.1\n"


def cuda_host(**more: object) -> FakeHost:
    return FakeHost(
        files={
            f"{SYSTEM}/libcuda.so.535.104.05": "",
            "/usr/local/cuda-13.0/compat/libcuda.so.580.1": "",
        },
        links={
            f"{SYSTEM}/libcuda.so.1": f"{SYSTEM}/libcuda.so.535.104.05",
            "/usr/local/cuda-13.0/compat/libcuda.so.1": "/usr/local/cuda-13.0/compat/libcuda.so.580.1",
        },
        commands={"/sbin/ldconfig -p": CACHE},
        **more,  # type: ignore[arg-type]
    )


def test_libcuda_of_the_driver() -> None:
    fact = libcuda.function(cuda_host())
    assert (fact.path, fact.via, fact.version) == (
        f"{SYSTEM}/libcuda.so.1", "ld.so.cache", "535.104.05",
    )  # fmt: skip
    assert not fact.compat
    assert fact.others == ("/usr/local/cuda-13.0/compat/libcuda.so.1",)


def test_libcuda_for_forward_compatibility() -> None:
    fact = libcuda.function(cuda_host(env={"LD_LIBRARY_PATH": "/none:/usr/local/cuda-13.0/compat"}))
    assert (fact.via, fact.version, fact.compat) == ("LD_LIBRARY_PATH", "580.1", True)
    assert fact.others == (f"{SYSTEM}/libcuda.so.1",)


def test_libcuda_stub() -> None:
    folder = "/usr/local/cuda/lib64/stubs"
    host = FakeHost(env={"LD_LIBRARY_PATH": folder}, files={f"{folder}/libcuda.so.1": ""})
    fact = libcuda.function(host)
    assert fact.stub
    assert fact.version is None


def test_libcuda_from_the_loaders_configuration() -> None:
    host = FakeHost(
        files={
            "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
            "/etc/ld.so.conf.d/a.conf": "/opt/driver\n",
            "/opt/driver/libcuda.so.1": "",
        }
    )
    assert libcuda.function(host).path == "/opt/driver/libcuda.so.1"
    assert libcuda.function(FakeHost()).path is None


def child(*records: Mapping[str, object], **result: object) -> FakeHost:
    out = "".join(f"noise\x1edsdoctor:{json.dumps(record)}\n" for record in records)
    given = {"returncode": 0, **result}
    answer = Result(argv=(), stdout=out.encode(), **given)  # type: ignore[arg-type]
    return FakeHost(queries={"executable": "py"}, commands={f"py {CHILD}": answer})


DRIVER = {"fact": "driver", "value": {"driver_version": "580.95.05"}}
NO_LIBRARY = {
    "fact": "nvml_error",
    "value": {"code": 12, "name": "LIBRARY_NOT_FOUND", "message": "not found", "call": "nvmlInit"},
}


def test_nvml() -> None:
    host = child(
        DRIVER,
        {"fact": "gpu_count", "value": 1},
        {"fact": "gpu", "value": {"index": 0, "name": "NVIDIA H200"}},
        {"fact": "topology", "value": {"pairs": []}},
        {"done": True},
    )
    driver, gpus, topology = nvml.function(host)
    assert driver.driver_version == "580.95.05"
    assert [gpu.name for gpu in gpus.gpus] == ["NVIDIA H200"]
    assert topology == GpuTopology()


def test_nvml_hangs() -> None:
    host = child(DRIVER, {"step": "nvmlDeviceGetCount_v2"}, returncode=None, timed_out=True)
    driver, gpus, topology = nvml.function(host)
    assert isinstance(driver, Nvml)
    assert gpus == topology
    assert gpus.why is Why.TIMEOUT
    assert "`nvmlDeviceGetCount_v2`" in gpus.detail


def test_nvml_hangs_after_the_first_gpu() -> None:
    host = child(
        DRIVER,
        {"fact": "gpu_count", "value": 2},
        {"fact": "gpu", "value": {"index": 0}},
        {"step": "gpu 1: nvmlDeviceGetName"},
        returncode=None,
        timed_out=True,
    )
    _, gpus, topology = nvml.function(host)
    assert gpus.stopped_at == "gpu 1: nvmlDeviceGetName"
    assert (len(gpus.gpus), gpus.count) == (1, 2)
    assert topology.why is Why.TIMEOUT


def test_nvml_crashes() -> None:
    driver, _, _ = nvml.function(child({"step": "nvmlInit"}, returncode=-11))
    assert driver.why is Why.BROKEN
    assert "signal 11" in driver.detail


def test_nvml_is_absent_and_so_is_the_gpu() -> None:
    driver, gpus, topology = nvml.function(child(NO_LIBRARY, {"done": True}))
    assert driver.error.code == 12
    assert gpus == Gpus(count=0)
    assert topology == GpuTopology()


def test_nvml_is_absent_but_the_gpu_is_not() -> None:
    host = child(NO_LIBRARY, {"done": True})
    host.files.update(GPU)
    driver, gpus, _ = nvml.function(host)
    assert driver.error.code == 12
    assert isinstance(gpus, Missing)
    assert gpus.why is Why.ABSENT


def test_nvml_says_nothing() -> None:
    driver, _, _ = nvml.function(child({"done": True}))
    assert driver.why is Why.BROKEN


def test_on_this_machine() -> None:
    host = LocalHost()
    driver, gpus, topology = nvml.function(host)
    assert all((driver, gpus, topology))
    kernel = nvidia_kernel.function(host)
    if not kernel.pci and not kernel.device_nodes:
        assert gpus == Gpus(count=0)
        assert driver.error is not None
    smi = nvidia_smi.function(host)
    assert smi.path is None or smi.error or smi.gpus
    found = libcuda.function(host)
    assert found.path is None or "libcuda" in found.path
