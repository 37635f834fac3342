"""Machines that a fix is planned for: facts by the name of the fix and of the case.

Over 400 lines because it is a table: one entry for each case of a fix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dsdoctor import packs
from dsdoctor.api import (
    BuildLock,
    Compiler,
    Compilers,
    CudaToolkits,
    DamagedPackage,
    DamagedPackages,
    DeepSpeedEnvFile,
    DeepSpeedInstall,
    Environment,
    ExtensionCache,
    Fact,
    FreePort,
    Hostfile,
    InstalledGcc,
    LineProblem,
    MasterPort,
    MemoryDetail,
    Missing,
    OsInfo,
    OtherToolkits,
    PackageManagers,
    Packages,
    Patient,
    Reach,
    RepairFiles,
    Resources,
    RunNeeds,
    StaleBuilds,
    Toolkit,
    ToolkitArchives,
    ToolkitWheels,
    TorchBuild,
    Wheel,
    Why,
)
from dsdoctor.fixes import planner
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.judge import judge
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.facts.repair import Archive
from dsdoctor.model.fix_plan import Findings, FixRequest, PlanDocument
from dsdoctor.probes.config import parse_config
from dsdoctor.probes.hostfile import parse_env_file
from tests.checks import machines

REGISTRY = packs.load(builtin_only=True)
HOME = "/home/u"
LINUX = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="node")
VENV = Patient(
    executable="/e/bin/python",
    chosen_by="VIRTUAL_ENV",
    version="3.11.7",
    prefix="/e",
    base_prefix="/usr",
    kind="venv",
    bin_dir="/e/bin",
    sys_path=("/e/lib/python3.11/site-packages",),
)
OWN = msgspec.structs.replace(VENV, chosen_by="running interpreter")
CONDA = Patient(
    executable="/c/envs/t/bin/python",
    chosen_by="CONDA_PREFIX",
    version="3.11.7",
    prefix="/c/envs/t",
    base_prefix="/c/envs/t",
    kind="conda",
    bin_dir="/c/envs/t/bin",
    sys_path=("/c/envs/t/lib/python3.11/site-packages",),
)
SYSTEM = Patient(
    executable="/usr/bin/python3",
    chosen_by="python3 on PATH",
    version="3.11.2",
    prefix="/usr",
    base_prefix="/usr",
    kind="system",
    bin_dir="/usr/bin",
)
GCC12 = Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="12.2.0")
GCC15 = Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="15.1.0")
NO_WHEELS = Missing(why=Why.UNSUPPORTED, detail="pip has no nvcc for CUDA 12.4")
NO_ARCHIVES = Missing(why=Why.ABSENT, detail="`https://mirror/x.json` cannot be reached (refused)")
WHEELS = ToolkitWheels(
    release="13.0.2",
    lacking=(
        Wheel(name="nvidia-cuda-cccl", version="13.0.85"),
        Wheel(name="nvidia-cuda-crt", version="13.0.88"),
        Wheel(name="nvidia-cuda-nvcc", version="13.0.88"),
        Wheel(name="nvidia-curand", version="10.4.0.35"),
        Wheel(name="nvidia-nvvm", version="13.0.88"),
    ),
    present="/e/lib/python3.11/site-packages/nvidia/cu13",
)
ARCHIVES = ToolkitArchives(
    release="12.4.1",
    manifest="https://mirror/redistrib_12.4.1.json",
    archives=(
        Archive(component="cuda_nvcc", url="https://mirror/n.tar.xz", sha256="ab" * 32, size=9),
        Archive(component="libcurand", url="https://mirror/c.tar.xz", sha256="cd" * 32, size=8),
    ),
)


def compilers(cxx: Compiler = GCC12, **more: Any) -> Compilers:
    fields: dict[str, Any] = {"ninja": "/e/bin/ninja", "ninja_in_env": "/e/bin/ninja"}
    return Compilers(cxx=cxx, cc=cxx, **(fields | more))


def toolkit_machine(cuda: str = "12.4", **more: Any) -> dict[str, Fact | Missing | None]:
    """A venv with torch of some CUDA, DeepSpeed, an A100, no toolkit and nothing to install with."""
    torch = {"12.4": "2.5.1", "13.0": "2.11.0", "12.1": "2.3.1"}[cuda]
    facts: dict[str, Any] = {
        "patient": VENV,
        "torch": TorchBuild(version=torch, cuda=cuda, path="/e/torch"),
        "toolkits": CudaToolkits(),
        "others": OtherToolkits(),
        "managers": PackageManagers(),
        "wheels": NO_WHEELS,
        "archives": NO_ARCHIVES,
        "compilers": compilers(),
        "deepspeed": DeepSpeedInstall(version="0.19.8"),
        "gpus": machines.gpus("A100"),
        "kernel": machines.kernel("580.95.05"),
        "nvml": machines.nvml("580.95.05"),
        "env": Environment(),
        "system": LINUX,
        "packages": Packages(),
    }
    return facts | more


def plan(
    name: str,
    facts: dict[str, Any],
    request: FixRequest | None = None,
    run: RunNeeds | None = None,
) -> PlanDocument:
    """Plans a fix for a machine, with the findings that the real checks make of it."""
    have = [fact for fact in facts.values() if isinstance(fact, Fact)]
    lacks: dict[Any, Missing] = {}
    for kind, key in ((ToolkitWheels, "wheels"), (ToolkitArchives, "archives")):
        if isinstance(facts.get(key), Missing):
            lacks[kind] = facts[key]
    snapshot = snapshots.of([run or RunNeeds(), *have], lacks)
    findings = judge(snapshot, list(REGISTRY), REGISTRY).findings
    asked = FixRequest(state=f"{HOME}/.local/share/dsdoctor") if request is None else request
    import msgspec

    asked = msgspec.structs.replace(asked, asked=(name,) if name else ())
    return planner.plan(snapshot, REGISTRY, Findings(findings=tuple(findings)), asked)


def request(reach: Reach = Reach.ENV, **more: Any) -> FixRequest:
    return FixRequest(reach=reach, state=f"{HOME}/.local/share/dsdoctor", **more)


CONFIG = """{
  // ZeRO-2, as the guide has it
  "train_batch_size": 32,
  "train_micro_batch_size_per_gpu": 1, // small
  "optimizer": {"type": "AdamWW", "params": {"lr": 1e-5}},
  "gradient_cliping": 1.0, # typo
  "zero_optimization": {
    "stage": 2,
    "offload_param": {
      "device": "cpu" /* } not here */
    },
    "overlap_comm": true
  },
  "fp16": {"enabled": "True"}
}
"""
HOSTS = "# nodes\nnode-a slots=8\nnode-b 8\nnode-c:4\nnode-a slots=2\nwhat is this\n"
ENV_LINES = "NCCL_DEBUG=INFO\n\n# remark\nexport HF_HOME=/data\n"
LOCKED = ExtensionCache(
    root="/x", locks=(BuildLock(path="/x/cpu_adam/lock", op="cpu_adam", age_seconds=9000),)
)
YOUNG = ExtensionCache(
    root="/x", locks=(BuildLock(path="/x/cpu_adam/lock", op="cpu_adam", age_seconds=200),)
)
RESOURCES = Resources(
    cpus_logical=8,
    cpus_usable=8,
    memory_total_bytes=64 << 30,
    memory_available_bytes=60 << 30,
    shm_total_bytes=64 << 20,
    shm_free_bytes=64 << 20,
    limit_memlock=65536,
    limit_nofile=1024,
)

APT = PackageManagers(
    system="apt",
    candidates=("cuda-toolkit-12-4", "ninja-build", "libaio-dev", "python3.11-dev", "gcc-13",
                "g++-13", "gcc-12", "g++-12"),
)  # fmt: skip
BARE_12_4 = Toolkit(
    root="/usr/local/cuda-12.4", source="/usr/local", nvcc="/usr/local/cuda-12.4/bin/nvcc",
    version="12.4",
)  # fmt: skip
Case = tuple[str, Callable[[], dict[str, Any]], FixRequest, RunNeeds]


def _config_facts() -> dict[str, Any]:
    facts = toolkit_machine()
    config = parse_config(CONFIG)
    import msgspec

    config = msgspec.structs.replace(config, path="ds.json")
    return facts | {
        "config": config,
        "files": RepairFiles(texts={"config": ("/job/ds.json", CONFIG)}),
    }


def _launch_facts() -> dict[str, Any]:
    return {
        "hostfile": parse_hostfile(HOSTS, "/job/hostfile"),
        "envfile": parse_env_file(ENV_LINES, f"{HOME}/.deepspeed_env"),
        "files": RepairFiles(
            texts={
                "hostfile": ("/job/hostfile", HOSTS),
                "deepspeed-env": (f"{HOME}/.deepspeed_env", ENV_LINES),
            }
        ),
        "port": MasterPort(port=29500, asked=False, taken=True, holder="python (pid 7)"),
        "free": FreePort(port=29501),
        "system": LINUX,
    }


def _variables() -> dict[str, Any]:
    env = {
        "DS_SKIP_CUDA_CHECK": "1",
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_ASYNC_ERROR_HANDLING": "1",
        "NCCL_P2P_DISABLE": "1",
        "NCCL_TIMEOUT": "1800",
    }
    mismatch = CudaToolkits(chosen=0, how="nvcc on PATH", found=(machines.toolkit("11.5"),))
    text = "DS_SKIP_CUDA_CHECK=1\nHF_HOME=/data\n"
    return toolkit_machine(
        env=Environment(variables=env),
        toolkits=mismatch,
        files=RepairFiles(texts={"deepspeed-env": (f"{HOME}/.deepspeed_env", text)}),
    )


HOME_REACH, SYSTEM_REACH = request(Reach.HOME), request(Reach.SYSTEM)
ENV_REACH, RUN = request(), RunNeeds()
WITH_HOSTS = RunNeeds(hostfile="/job/hostfile")
DEEP_ENV = Environment(variables={"NCCL_IB_HCA": "mlx5"})


def mamba(kind: str, **more: Any) -> PackageManagers:
    return PackageManagers(conda=f"/opt/{kind}/bin/{kind}", conda_kind=kind, **more)


SEGMENT = "/dev/shm/deepspeed_allreduce_buffer_1000_127.0.0.1_29500_0"

CASES: dict[str, Case] = {
    "remove-stale-lock": (
        "remove-stale-lock",
        lambda: {"cache": LOCKED, "torch": TorchBuild(version="2.13.0")},
        ENV_REACH, RUN,
    ),
    "remove-stale-lock.no-way": (
        "remove-stale-lock",
        lambda: {"cache": YOUNG, "torch": TorchBuild(version="2.13.0")},
        ENV_REACH, RUN,
    ),
    "remove-stale-shm": (
        "remove-stale-shm",
        lambda: {"detail": MemoryDetail(shm_left={SEGMENT: 66 << 20}, shm_mine=(SEGMENT,))},
        ENV_REACH, RUN,
    ),
    "remove-stale-shm.no-way": (
        "remove-stale-shm",
        lambda: {"detail": MemoryDetail(shm_left={SEGMENT: 66 << 20})},
        ENV_REACH, RUN,
    ),
    "remove-stale-builds": (
        "remove-stale-builds",
        lambda: {"builds": StaleBuilds(folders={"/x/fused_adam": "its torch is gone"})},
        ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.on-disk": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(toolkits=CudaToolkits(found=(BARE_12_4,))),
        ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.conda": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(patient=CONDA, managers=mamba("conda")), ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.conda-forge": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(patient=CONDA, managers=mamba("mamba", conda_forge=True)),
        ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.conda-in-place": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(patient=CONDA, managers=mamba("conda")),
        request(in_place=True), RUN,
    ),
    "install-cuda-toolkit.micromamba-for-a-venv": (
        "install-cuda-toolkit", lambda: toolkit_machine(managers=mamba("micromamba")), ENV_REACH,
        RUN,
    ),
    "install-cuda-toolkit.pixi": (
        "install-cuda-toolkit", lambda: toolkit_machine(managers=mamba("pixi")), ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.pip": (
        "install-cuda-toolkit", lambda: toolkit_machine("13.0", wheels=WHEELS), ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.pip-in-place": (
        "install-cuda-toolkit", lambda: toolkit_machine("13.0", wheels=WHEELS),
        request(in_place=True), RUN,
    ),
    "install-cuda-toolkit.archives": (
        "install-cuda-toolkit", lambda: toolkit_machine(archives=ARCHIVES), ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.archives-for-the-system-python": (
        "install-cuda-toolkit", lambda: toolkit_machine(archives=ARCHIVES, patient=SYSTEM),
        HOME_REACH, RUN,
    ),
    "install-cuda-toolkit.apt": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(
            managers=PackageManagers(system="apt", candidates=APT.candidates, sudo="/usr/bin/sudo")
        ),
        SYSTEM_REACH, RUN,
    ),
    "install-cuda-toolkit.with-an-older-gcc": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(
            archives=ARCHIVES, compilers=compilers(GCC15), others=OtherToolkits(gccs=(12, 13, 14))
        ),
        ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.with-a-gcc-of-conda": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(managers=mamba("mamba"), compilers=compilers(GCC15)),
        ENV_REACH, RUN,
    ),
    "install-torch-build.cpu": (
        "install-torch-build",
        lambda: {"patient": VENV, "torch": TorchBuild(), "managers": PackageManagers(),
                 "system": LINUX},
        ENV_REACH, RUN,
    ),
    "install-torch-build.no-way": (
        "install-torch-build",
        lambda: {"patient": OWN, "torch": TorchBuild(), "managers": PackageManagers(),
                 "system": LINUX},
        ENV_REACH, RUN,
    ),
    "install-cuda-toolkit.no-way": (
        "install-cuda-toolkit",
        lambda: toolkit_machine(toolkits=CudaToolkits(found=(machines.toolkit("12.1"),))),
        ENV_REACH, RUN,
    ),
    "reinstall-package": (
        "reinstall-package",
        lambda: toolkit_machine(
            managers=PackageManagers(),
            damaged=DamagedPackages(
                packages=(
                    DamagedPackage(name="accelerate", version="1.15.0", empty=("accelerate/a.py",)),
                    DamagedPackage(name="tokenizers", version="0.23.3", cut=("tokenizers/t.so",)),
                )
            ),
        ),
        ENV_REACH, RUN,
    ),
    "reinstall-package.no-way": (
        "reinstall-package",
        lambda: toolkit_machine(
            managers=PackageManagers(),
            damaged=DamagedPackages(
                packages=(DamagedPackage(name="torchvision", version="0.28.0+cu130", cut=("t.so",)),)
            ),
        ),
        ENV_REACH, RUN,
    ),
    "install-ninja.pip": (
        "install-ninja", lambda: toolkit_machine(compilers=compilers(ninja=None, ninja_in_env=None)),
        ENV_REACH, RUN,
    ),
    "install-ninja.on-path": (
        "install-ninja", lambda: toolkit_machine(compilers=compilers(ninja=None)), ENV_REACH, RUN,
    ),
    "install-ninja.apt": (
        "install-ninja",
        lambda: toolkit_machine(
            patient=SYSTEM, managers=APT, compilers=compilers(ninja=None, ninja_in_env=None)
        ),
        SYSTEM_REACH, RUN,
    ),
    "install-python-headers.apt": (
        "install-python-headers",
        lambda: {"patient": Patient(**_without_headers()), "managers": APT, "system": LINUX},
        SYSTEM_REACH, RUN,
    ),
    "install-compiler.at-hand": (
        "install-compiler",
        lambda: toolkit_machine(
            toolkits=CudaToolkits(chosen=0, how="CUDA_HOME", found=(BARE_12_4,)),
            compilers=compilers(GCC15), others=OtherToolkits(gccs=(12, 13, 14)),
        ),
        ENV_REACH, RUN,
    ),
    "install-compiler.conda": (
        "install-compiler",
        lambda: toolkit_machine(
            managers=mamba("conda"), compilers=compilers(Compiler(command="c++"))
        ),
        ENV_REACH, RUN,
    ),
    "install-compiler.apt": (
        "install-compiler",
        lambda: toolkit_machine(
            managers=PackageManagers(system="apt", candidates=APT.candidates, sudo="/usr/bin/sudo"),
            compilers=compilers(Compiler(command="c++")),
        ),
        SYSTEM_REACH, RUN,
    ),
    "install-compiler.module": (
        "install-compiler",
        lambda: toolkit_machine(
            toolkits=CudaToolkits(chosen=0, how="CUDA_HOME", found=(BARE_12_4,)),
            compilers=compilers(GCC15),
            others=OtherToolkits(gccs_elsewhere=(
                InstalledGcc(major=14, cc="/s/14/bin/gcc", cxx="/s/14/bin/g++", source="gcc/14.1"),
                InstalledGcc(major=12, cc="/s/12/bin/gcc", cxx="/s/12/bin/g++", source="gcc/12.2",
                             libraries="/s/12/lib64"),
            )),
        ),
        ENV_REACH, RUN,
    ),
    "install-compiler.dnf": (
        "install-compiler",
        lambda: toolkit_machine(
            managers=PackageManagers(
                system="dnf", candidates=("gcc-toolset-13-gcc-c++",), sudo="/usr/bin/sudo"
            ),
            compilers=compilers(
                Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="8.5.0")
            ),
        ),
        SYSTEM_REACH, RUN,
    ),
    "install-torch-build.driver": (
        "install-torch-build",
        lambda: toolkit_machine("13.0", kernel=machines.kernel("535.104.05"),
                                nvml=machines.nvml("535.104.05")),
        ENV_REACH, RUN,
    ),
    "install-torch-build.volta": (
        "install-torch-build",
        lambda: toolkit_machine("13.0", gpus=machines.gpus("V100")), ENV_REACH, RUN,
    ),
    "install-deepspeed.missing": (
        "install-deepspeed", lambda: toolkit_machine(deepspeed=DeepSpeedInstall()), ENV_REACH, RUN,
    ),
    "install-deepspeed.old-torch": (
        "install-deepspeed",
        lambda: toolkit_machine(torch=TorchBuild(version="2.1.2+cu121", cuda="12.1", path="/e/torch")),
        ENV_REACH, RUN,
    ),
    "install-deepspeed.rebuild": (
        "install-deepspeed",
        lambda: toolkit_machine(
            deepspeed=DeepSpeedInstall(version="0.19.8", installed_ops={"fused_adam": True},
                                       built_for_torch="2.4", built_for_cuda="12.1"),
        ),
        ENV_REACH, RUN,
    ),
    "install-libaio.apt": (
        "install-libaio", lambda: {"managers": APT, "system": LINUX}, SYSTEM_REACH, RUN,
    ),
    "remount-shm": (
        "remount-shm",
        lambda: {"resources": RESOURCES, "system": LINUX, "gpus": machines.gpus("A100", "A100")},
        ENV_REACH, RUN,
    ),
    "raise-limits": (
        "raise-limits",
        lambda: {"resources": RESOURCES, "system": LINUX, "env": DEEP_ENV}, SYSTEM_REACH, RUN,
    ),
    "choose-port": ("choose-port", _launch_facts, ENV_REACH, RUN),
    "repair-hostfile": ("repair-hostfile", _launch_facts, HOME_REACH, WITH_HOSTS),
    "repair-env-file": ("repair-env-file", _launch_facts, HOME_REACH, WITH_HOSTS),
    "repair-ds-config": ("repair-ds-config", _config_facts, HOME_REACH, RunNeeds(gpus=("0",))),
    "unset-variables": ("unset-variables", _variables, HOME_REACH,
                        RunNeeds(build_ops=("FUSED_ADAM",))),
}  # fmt: skip


def _without_headers() -> dict[str, Any]:
    import msgspec

    return {**msgspec.structs.asdict(VENV), "has_headers": False, "include_dir": "/usr/include/p"}


__all__ = ["CASES", "DeepSpeedEnvFile", "Hostfile", "LineProblem", "plan"]
