"""Whole machines from the few things that somebody says of one, the rest as on a sound machine.

    machine(Described(gpus="2xNVIDIA GeForce RTX 4090", driver="550.54.15", torch="2.4.0+cu121"))

What is not said is filled in so that it fits what is: the compute capability of the product, the
CUDA of the wheel, a driver that supports it, an nvcc of that CUDA, a gcc that both accept. What no
table knows is an error, never a zero; who knows it says so.
"""

from __future__ import annotations

import re
from typing import Any

from dsdoctor.api import (
    Compiler,
    Compilers,
    CudaDevice,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    ExtensionCache,
    Fact,
    Gpu,
    Gpus,
    ImportOutcome,
    LibCuda,
    MemoryDetail,
    NvidiaKernel,
    NvidiaSmi,
    Nvml,
    OsInfo,
    Package,
    Packages,
    Patient,
    PciGpu,
    Place,
    Resources,
    Storage,
    Toolkit,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.capabilities import capability
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.fabric import FabricManager
from dsdoctor.model.facts.gpu import (
    FabricHealth,
    FabricState,
    GpuFabric,
    GpuHealth,
    GpuLink,
)
from dsdoctor.model.facts.python import DeepSpeedLive, LibraryPath, PatientChoice
from dsdoctor.model.products import PRODUCTS
from dsdoctor.model.snapshot import Snapshot, of
from dsdoctor.paste.pip_show import PYPI_CUDA
from dsdoctor_checks.driver._tables import OWN_DRIVER, supported
from dsdoctor_checks.ops._tables import NEWEST_GCC
from dsdoctor_checks.torch._tables import archs
from tests.support.described import DISTRIBUTIONS, GIB, Described

PYTHON = "/opt/train/bin/python"
#: A DeepSpeed of about the same month as a torch release.
_DEEPSPEED = {
    "1.13": "0.9.5", "2.0": "0.10.3", "2.1": "0.12.6", "2.2": "0.14.0", "2.3": "0.14.2",
    "2.4": "0.15.1", "2.5": "0.16.2", "2.6": "0.16.4", "2.7": "0.17.0", "2.8": "0.17.5",
    "2.9": "0.18.2", "2.10": "0.18.5", "2.11": "0.18.9", "2.12": "0.19.5", "2.13": "0.19.6",
    "2.14": "0.19.7", "2.15": "0.19.8",
}  # fmt: skip
_NO_NVIDIA = Missing(why=Why.ABSENT, detail="no NVIDIA driver")
_BOARD = 8


def machine(said: Described) -> Snapshot:
    """The whole snapshot of such a machine.

    Raises:
        ValueError: something is not said, and no table knows it.
    """
    cuda = _cuda_of(said)
    names = _names(said.gpus)
    driver = said.driver or (OWN_DRIVER.get(cuda or "12.4", "580.95.05") if names else None)
    works = cuda is not None and bool(names) and said.cuda_error is None
    facts: list[Fact] = [
        *_system(said),
        *(_nvidia(said, names, driver) if names and driver else ()),
        *_python(said, cuda, names, works=works),
        *_toolchain(said, cuda),
    ]
    kinds = {type(fact) for fact in said.more}
    snapshot = of([*(fact for fact in facts if type(fact) not in kinds), *said.more])
    if not names:
        for kind in (Nvml, Gpus, NvidiaSmi, LibCuda):
            if kind not in kinds:
                snapshot.lack(kind, _NO_NVIDIA)
    nvml = snapshot.get(Nvml)
    if isinstance(nvml, Nvml) and nvml.error is not None:  # it can have listed none
        snapshot.facts.pop(Gpus.key(), None)
        snapshot.lack(Gpus, Missing(why=Why.ABSENT, detail="NVML did not start"))
    return snapshot


def _names(gpus: str) -> list[str]:
    found: list[str] = []
    for part in gpus.split(" + ") if gpus else ():
        counted = re.fullmatch(r"(?:(\d+)x)?(.+)", part)
        if counted is None:
            raise ValueError(part)
        found += [counted[2]] * int(counted[1] or 1)
    return found


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _cuda_of(said: Described) -> str | None:
    """The CUDA of torch: of its version, as said, or of PyPI's wheel."""
    if said.torch is None or "+cpu" in said.torch or "rocm" in said.torch:
        return None
    tag = re.search(r"\+cu(\d+)(\d)\b", said.torch)
    if tag:
        return f"{tag[1]}.{tag[2]}"
    known = said.cuda or PYPI_CUDA.get(".".join(said.torch.split(".")[:2]))
    if known is None:
        raise ValueError(f"which CUDA was torch {said.torch} built for?")
    return known


def _memory(name: str, said: Described) -> int:
    known = PRODUCTS.get(name.removeprefix("NVIDIA ").removeprefix("Tesla "))
    if known is not None:
        return known.mib << 20
    size: int | None = said.each_gpu.get("memory_total_bytes")
    if size is None:
        raise ValueError(f"how much memory does {name} have?")
    return size


def _capability(name: str, said: Described) -> tuple[int, int]:
    if "cc_major" in said.each_gpu:
        return said.each_gpu["cc_major"], said.each_gpu["cc_minor"]
    known = capability(name)
    if known is None:
        raise ValueError(f"which compute capability does {name} have?")
    return known


#: NVLinks of boards with NVSwitches, or of the superchip's board.
_SWITCHED = {
    "A100-SXM4": 12, "A800-SXM4": 8, "H100 80GB HBM3": 18, "H20": 18, "H200": 18, "B200": 18,
}  # fmt: skip
#: Superchips of a rack whose switches are not in the node.
_RACK = {"GB200": 18, "GB300": 18}
_JOINS_FABRIC = ("H100 80GB HBM3", "H200", "H20", "B200", "GB200", "B300")


def _bdf(index: int) -> str:
    return f"0000:{0x10 + 0x11 * index:02x}:00.0"


def _gpu(index: int, name: str, count: int, said: Described) -> Gpu:
    major, minor = _capability(name, said)
    plain = name.removeprefix("NVIDIA ").removeprefix("Tesla ")
    fields: dict[str, Any] = {
        "uuid": f"GPU-{index:08x}-1111-2222-3333-444444444444",
        "name": name,
        "brand": next((word for word in ("GeForce", "Quadro", "Tesla") if word in name), "NVIDIA"),
        "cc_major": major,
        "cc_minor": minor,
        "pci_bdf": _bdf(index),
        "memory_total_bytes": _memory(name, said),
        "persistence_mode": True,
        "compute_mode": 0,
        "mig_mode": False if major in (8, 9, 10) and "GeForce" not in name else None,
        "mig_devices": (),
        "virtualization": "NONE",
        "processes": (),
        "health": GpuHealth(recovery_action=0, event_reasons=1),
    }
    links = _RACK.get(plain, said.links)
    if links is None and count >= _BOARD:
        links = next((each for board, each in _SWITCHED.items() if plain.startswith(board)), 0)
    if links:
        switched = count >= _BOARD or plain in _RACK
        others = [one for one in range(count) if one != index] or [index + 1]
        fields["links"] = tuple(
            GpuLink(
                link=number,
                state=1,
                remote_type="SWITCH" if switched else "GPU",
                remote_bdf="0000:f0:00.0" if switched else _bdf(others[number % len(others)]),
            )
            for number in range(links)
        )
    if plain.startswith(_JOINS_FABRIC) and count >= _BOARD:
        fields["fabric"] = GpuFabric(
            state=FabricState.COMPLETED, status=0, health_summary=FabricHealth.HEALTHY
        )
    fields |= said.each_gpu | said.gpu.get(index, {})
    return Gpu(index=index, **fields)


def _nvidia(said: Described, names: list[str], driver: str) -> list[Fact]:
    newest = supported(driver)
    if newest is None:
        raise ValueError(f"which CUDA does driver {driver} support?")
    number = 1000 * int(newest.split(".")[0]) + 10 * int(newest.split(".")[1])
    gpus = tuple(_gpu(index, name, len(names), said) for index, name in enumerate(names))
    modules = () if said.wsl else ("nvidia", "nvidia_uvm", "nvidia_modeset")
    folder = "/usr/lib/wsl/lib" if said.wsl else f"/usr/lib/{said.machine}-linux-gnu"
    nodes = tuple(f"nvidia{gpu.index}" for gpu in gpus)
    facts: list[Fact] = [
        NvidiaKernel(
            module_version=None if said.wsl else driver,
            modules=modules,
            pci=()
            if said.wsl
            else tuple(
                PciGpu(bdf=gpu.pci_bdf or "", device_id="0x2330", driver="nvidia") for gpu in gpus
            ),
            device_nodes=() if said.wsl else (*nodes, "nvidiactl", "nvidia-uvm"),
            dxg=said.wsl,
        ),
        Nvml(driver_version=driver, nvml_version=f"13.{driver}", cuda_version=number),
        Gpus(gpus=gpus, count=len(gpus)),
        NvidiaSmi(
            path=f"{folder}/nvidia-smi" if said.wsl else "/usr/bin/nvidia-smi",
            returncode=0,
            driver_version=driver,
            cuda_version=newest,
            gpus=tuple(f"{gpu.index}, {gpu.uuid}, {gpu.name}" for gpu in gpus),
        ),
        LibCuda(
            path=f"{folder}/libcuda.so.1", via="wsl" if said.wsl else "default", version=driver
        ),
    ]
    switched = any(gpu.links and gpu.links[0].remote_type == "SWITCH" for gpu in gpus)
    if switched and not said.container:
        facts.append(FabricManager(switches=4, running=True, version=driver))
    return facts


def _system(said: Described) -> list[Fact]:
    libc, _ = DISTRIBUTIONS[said.distribution]
    shm = said.memory // 2 if said.shm is None else said.shm
    kernel = "5.15.153.1-microsoft-standard-WSL2" if said.wsl else "5.15.0-119-generic"
    return [
        OsInfo(
            system="Linux",
            release=kernel,
            machine=said.machine,
            hostname="node",
            distribution=said.distribution,
            libc=f"glibc {libc}",
            wsl=said.wsl,
            container=said.container,
            amd_gpus=said.amd,
        ),
        Resources(
            cpus_logical=64,
            cpus_usable=64,
            memory_total_bytes=said.memory,
            memory_available_bytes=said.memory * 9 // 10,
            swap_total_bytes=8 * GIB,
            shm_total_bytes=shm,
            shm_free_bytes=shm,
            limit_memlock=None,
            limit_nofile=1048576,
            limit_stack=8 << 20,
            limit_address_space=None,
            limit_nproc=None,
        ),
        MemoryDetail(swap_total_bytes=8 * GIB, swap_free_bytes=8 * GIB),
        Storage(
            places=(
                Place(
                    purpose="temporary files",
                    path="/tmp",
                    kind="dir",
                    total_bytes=900 * GIB,
                    free_bytes=400 * GIB,
                ),
            )
        ),
        Environment(variables={"PATH": "/opt/train/bin:/usr/bin", **said.variables}),
        *(() if said.gpus else (NvidiaKernel(),)),
    ]


def _python(said: Described, cuda: str | None, names: list[str], *, works: bool) -> list[Fact]:
    choice = PatientChoice(executable=PYTHON, chosen_by="VIRTUAL_ENV", why="it holds torch")
    patient = Patient(executable=PYTHON, chosen_by="VIRTUAL_ENV", version=said.python, kind="venv")
    versions: dict[str, str] = {}
    facts: list[Fact] = [choice, patient, LibraryPath()]
    deepspeed = said.deepspeed
    if said.torch is not None:
        release = _release(said.torch)
        versions["torch"] = said.torch
        versions["numpy"] = "1.26.4" if release < (2, 4) else "2.1.3"
        if deepspeed == "":
            deepspeed = _DEEPSPEED[f"{release[0]}.{release[1]}"]
        hip = re.search(r"\+rocm([\d.]+)", said.torch)
        facts.append(
            TorchBuild(
                version=said.torch,
                cuda=cuda,
                hip=hip[1] if hip else None,
                path="/opt/train/lib/torch",
            )
        )
        facts.append(_live(said, cuda, names, works=works or (bool(hip) and said.amd > 0)))
    else:
        facts.append(TorchBuild())
    deepspeed = deepspeed or None
    if deepspeed:
        versions["deepspeed"] = deepspeed
    facts.append(DeepSpeedInstall(version=deepspeed, path="/opt/train/lib/deepspeed"))
    if deepspeed and said.torch:
        accelerator = "cuda" if works or (said.amd and "rocm" in said.torch) else "cpu"
        facts.append(DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=accelerator))
    versions |= said.packages
    packages = {name: Package(name=name, version=one) for name, one in versions.items()}
    return [*facts, Packages(packages=packages)]


def _live(said: Described, cuda: str | None, names: list[str], *, works: bool) -> TorchLive:
    if cuda is None and not works:
        return TorchLive(imported=ImportOutcome(ok=True), version=said.torch)
    kernels = said.archs
    if kernels is None and cuda is not None:
        kernels = archs(_release(said.torch or ""), cuda, said.machine)
        if kernels is None:
            raise ValueError(f"which kernels does torch {said.torch} of CUDA {cuda} have?")
    devices = [
        CudaDevice(
            index=index,
            name=name,
            major=_capability(name, said)[0],
            minor=_capability(name, said)[1],
            memory_bytes=_memory(name, said),
        )
        for index, name in enumerate(names)
    ]
    if said.amd:
        devices = [
            CudaDevice(index=index, name="AMD Instinct MI300X", major=9, minor=4)
            for index in range(said.amd)
        ]
    return TorchLive(
        imported=ImportOutcome(ok=True),
        cuda_ok=works,
        cuda_error_code=said.cuda_error,
        cuda_error=said.cuda_message,
        devices=tuple(devices) if works else (),
        arch_list=kernels,
        arch_source="get_arch_list",
        version=said.torch,
    )


def _toolchain(said: Described, cuda: str | None) -> list[Fact]:
    versions = said.nvcc if said.nvcc is not None else ((cuda,) if cuda else ())
    found = tuple(
        Toolkit(
            root=f"/usr/local/cuda-{one}",
            source="/usr/local",
            nvcc=f"/usr/local/cuda-{one}/bin/nvcc",
            version=one,
        )
        for one in versions
    )
    gcc = said.gcc or _gcc_for(said, versions[0] if versions else None)
    return [
        CudaToolkits(
            chosen=0 if found else None, how="nvcc on PATH" if found else None, found=found
        ),
        Compilers(
            cxx=Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version=gcc),
            cc=Compiler(command="cc", path="/usr/bin/cc", kind="gcc", version=gcc),
            ninja="/opt/train/bin/ninja",
        ),
        ExtensionCache(root="/home/me/.cache/torch_extensions"),
    ]


def _gcc_for(said: Described, nvcc: str | None) -> str:
    """The gcc of the distribution, unless a sound machine of this kind would have another."""
    own = DISTRIBUTIONS[said.distribution][1]
    major = int(own.split(".")[0])
    newest = NEWEST_GCC.get(_release(nvcc), major) if nvcc else major
    oldest = 10 if said.torch and _release(said.torch) >= (2, 12) else 9
    if oldest <= major <= newest:
        return own
    return f"{min(max(major, oldest), newest)}.1.0"
