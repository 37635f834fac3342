"""Facts of machines that the tests of checks share."""

from __future__ import annotations

from typing import Any

from dsdoctor.api import (
    CudaDevice,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpu,
    Gpus,
    ImportOutcome,
    LibCuda,
    Missing,
    NvidiaKernel,
    NvidiaSmi,
    Nvml,
    OsInfo,
    PciGpu,
    RunNeeds,
    Toolkit,
    TorchBuild,
    TorchLive,
    Why,
)

ABSENT = Missing(why=Why.ABSENT, detail="not there")
NOT_ASKED = Missing(why=Why.NOT_ASKED, detail="not asked (`--quick`)")
TIMEOUT = Missing(why=Why.TIMEOUT, detail="no answer within 10 s")
ANY = RunNeeds()
WANTS = RunNeeds(gpus=("0",))
NO_ENV = Environment()
LINUX = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="node")
DOCKER = OsInfo(
    system="Linux", release="6.1", machine="x86_64", hostname="node", container="docker"
)
NO_GPU = NvidiaKernel()
ADAM = RunNeeds(config={"optimizer": {"type": "AdamW"}})
OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "AdamW"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)
DEEPSPEED = DeepSpeedInstall(version="0.19.8")

CARDS: dict[str, tuple[str, int, int, int]] = {
    "V100": ("Tesla V100-SXM2-32GB", 7, 0, 32768),
    "T4": ("Tesla T4", 7, 5, 15360),
    "P100": ("Tesla P100-PCIE-16GB", 6, 0, 16384),
    "A100": ("NVIDIA A100-SXM4-80GB", 8, 0, 81920),
    "4090": ("NVIDIA GeForce RTX 4090", 8, 9, 24564),
    "5090": ("NVIDIA GeForce RTX 5090", 12, 0, 32607),
    "H100": ("NVIDIA H100 80GB HBM3", 9, 0, 81559),
    "B200": ("NVIDIA B200", 10, 0, 183359),
}


def gpu(card: str, index: int = 0, **more: Any) -> Gpu:
    name, major, minor, mib = CARDS[card]
    brand = "GeForce" if "GeForce" in name else "NVIDIA"
    fields: dict[str, Any] = {
        "uuid": f"GPU-{index}{card.lower()}",
        "name": name,
        "brand": brand,
        "cc_major": major,
        "cc_minor": minor,
        "memory_total_bytes": mib << 20,
    }
    return Gpu(index=index, **(fields | more))


def gpus(*cards: str, **more: Any) -> Gpus:
    return Gpus(gpus=tuple(gpu(c, i, **more) for i, c in enumerate(cards)), count=len(cards))


def kernel(version: str | None = "580.95.05", driver: str | None = "nvidia") -> NvidiaKernel:
    return NvidiaKernel(
        module_version=version,
        modules=("nvidia", "nvidia_uvm") if version else (),
        pci=(PciGpu(bdf="0000:1b:00.0", device_id="0x2330", driver=driver),),
        device_nodes=("nvidia0", "nvidiactl", "nvidia-uvm") if version else (),
    )


def nvml(version: str = "580.95.05") -> Nvml:
    return Nvml(driver_version=version, nvml_version=f"13.{version}")


def libcuda(version: str = "580.95.05", *, compat: bool = False) -> LibCuda:
    folder = "/usr/local/cuda/compat" if compat else "/usr/lib/x86_64-linux-gnu"
    return LibCuda(path=f"{folder}/libcuda.so.1", via="default", version=version, compat=compat)


def torch(version: str = "2.9.1", cuda: str | None = "12.8", **more: Any) -> TorchBuild:
    return TorchBuild(version=version, cuda=cuda, path="/env/torch", **more)


def live(code: int | None = None, *, works: bool | None = None, **more: Any) -> TorchLive:
    cuda_ok = (code is None) if works is None else works
    return TorchLive(imported=ImportOutcome(ok=True), cuda_ok=cuda_ok, cuda_error_code=code, **more)


def device(card: str, index: int = 0, **more: Any) -> CudaDevice:
    name, major, minor, mib = CARDS[card]
    return CudaDevice(
        index=index, name=name, major=major, minor=minor, memory_bytes=mib << 20, **more
    )


def toolkit(version: str | None = "12.8", **more: Any) -> Toolkit:
    root = f"/usr/local/cuda-{version}"
    fields: dict[str, Any] = {
        "root": root,
        "source": "/usr/local",
        "nvcc": f"{root}/bin/nvcc",
        "version": version,
    }
    return Toolkit(**(fields | more))


def toolkits(*found: Toolkit, how: str = "nvcc on PATH", **more: Any) -> CudaToolkits:
    return CudaToolkits(chosen=0 if found else None, how=how, found=found, **more)


def env(**variables: str) -> Environment:
    return Environment(variables=variables)


def smi(**more: Any) -> NvidiaSmi:
    fields: dict[str, Any] = {"path": "/usr/bin/nvidia-smi", "returncode": 0}
    return NvidiaSmi(**(fields | more))


def words(findings: Any) -> list[str]:
    """The status words of findings, in order."""
    found: list[Finding] = list(findings)
    return [finding.status.value for finding in found]
