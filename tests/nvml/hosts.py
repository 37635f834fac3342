"""Whole machines: the GPUs of a scenario of the fake NVML in a host that fits them.

Everything but NVML is replayed: files of /proc and /sys, tools, and what the children print in an
environment whose torch and DeepSpeed serve these GPUs. NVML is really asked, through the real
binding, of the fake library. So all probes run, and all checks judge what they read.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dsdoctor.host import LocalHost
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost
from tests.nvml import fakenvml
from tests.nvml.fakenvml import Scenario

COMPILERS = ("c++", "cc", "g++", "gcc")
PYTHON = "/opt/train/bin/python"
SITE = "/opt/train/lib/python3.11/site-packages"
GIB = 1 << 20  # in kB, as /proc/meminfo counts


@dataclasses.dataclass(frozen=True)
class Software:
    """The environment of a host.

    Attributes:
        torch: its version with the build.
        cuda: CUDA that it was built for.
        nccl: NCCL wheel beside it.
        arches: architectures in the wheel (knowledge of the builds, A5).
        deepspeed: release.
        toolkit: CUDA toolkit on disk, None = none.
    """

    torch: str = "2.11.0+cu130"
    cuda: str = "13.0"
    nccl: str = "2.28.9"
    arches: tuple[str, ...] = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
    deepspeed: str = "0.19.8"
    toolkit: str | None = "13.0"


#: What serves Volta with a driver of today: the last wheels with its code.
VOLTA = Software(
    torch="2.10.0+cu128",
    cuda="12.8",
    nccl="2.27.5",
    arches=("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
    toolkit="12.8",
)
#: What driver 470 serves: CUDA 11.
CUDA_11 = Software(
    torch="2.5.1+cu118",
    cuda="11.8",
    nccl="2.21.5",
    arches=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
    toolkit="11.8",
)
#: What a GPU that nobody knows yet would come with.
FUTURE = Software(
    torch="4.0.0+cu190",
    cuda="19.0",
    nccl="4.1.0",
    arches=("sm_120", "sm_150"),
    deepspeed="0.30.0",
    toolkit="19.0",
)


def records(*facts: tuple[str, Any]) -> str:
    """What a child prints."""
    rows = [{"fact": name, "value": value} for name, value in facts] + [{"done": True}]
    return "".join("\x1edsdoctor:" + json.dumps(row) + "\n" for row in rows)


def _package(name: str, version: str) -> dict[str, Any]:
    return {"name": name, "version": version, "location": SITE, "duplicates": []}


def static_records(software: Software) -> str:
    """What `children/static.py` prints in this environment."""
    major = software.cuda.partition(".")[0]
    torch_version = software.torch.partition("+")[0]
    wheels = {
        "torch": torch_version,
        "deepspeed": software.deepspeed,
        "numpy": "2.3.0",
        "pydantic": "2.12.0",
        "ninja": "1.13.0",
        "nvidia-ml-py": "13.580.82",
        "packaging": "25.0",
        "psutil": "7.1.0",
        "hjson": "3.1.0",
        "einops": "0.8.1",
        "msgpack": "1.1.2",
        "py-cpuinfo": "9.0.0",
        "tqdm": "4.67.1",
        f"nvidia-nccl-cu{major}": software.nccl,
    }
    origins = {
        name: f"{SITE}/{name}/__init__.py"
        for name in ("torch", "deepspeed", "numpy", "pydantic", "ninja", "psutil", "packaging")
    }
    return records(
        (
            "patient",
            {
                "version": "3.11.7",
                "implementation": "CPython",
                "prefix": "/opt/train",
                "base_prefix": "/usr",
                "kind": "venv",
                "user_site": None,
                "include_dir": "/usr/include/python3.11",
                "has_headers": True,
                "sys_path": ["/home/user", "/usr/lib/python3.11", SITE],
                "bin_dir": "/opt/train/bin",
            },
        ),
        (
            "torch",
            {
                "path": f"{SITE}/torch",
                "cuda": software.cuda or None,
                "hip": None,
                "debug": False,
                "version": software.torch,
            },
        ),
        (
            "deepspeed",
            {
                "path": f"{SITE}/deepspeed",
                "version": software.deepspeed,
                "installed_ops": {"async_io": False, "cpu_adam": False, "fused_adam": False},
                "torch_info": {
                    "version": "0.0",
                    "bf16_support": False,
                    "cuda_version": "0.0",
                    "nccl_version": "0.0",
                    "hip_version": "0.0",
                },
            },
        ),
        ("modules", {"origins": origins}),
        ("packages", {"packages": {name: _package(name, wheels[name]) for name in wheels}}),
    )


def live_records(scenario: Scenario, software: Software) -> str:
    """What `children/torch_live.py` prints: torch starts, and every GPU works."""
    facts: list[tuple[str, Any]] = [
        ("torch_import", {"ok": True, "seconds": 2.0, "version": software.torch, "file": "x"}),
        (
            "torch_build",
            {
                "arch_list": list(software.arches),
                "arch_source": "_cuda_getArchFlags",
                "cxx11_abi": True,
                "nccl": software.nccl,
            },
        ),
        ("cuda", {"ok": True}),
    ]
    for index, gpu in enumerate(scenario["gpus"]):
        device = {
            "index": index,
            "name": gpu["name"],
            "major": gpu["cc_major"],
            "minor": gpu["cc_minor"],
            "memory_bytes": gpu["memory_total"],
            "uuid": gpu["uuid"],
        }
        facts += [("device", device), ("device_tried", {"index": index, "ok": True})]
    facts += [
        ("bf16", True),
        ("deepspeed_import", {"ok": True, "seconds": 1.0}),
        ("accelerator", "cuda"),
    ]
    return records(*facts)


def _proc_files(scenario: Scenario) -> dict[str, str]:
    driver = scenario["driver"]
    return {
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  "
        "Wed Sep 17 00:00:00 UTC 2025\n",
        "/proc/modules": "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 0 - Live 0x0\n",
        "/proc/meminfo": f"MemTotal: {512 * GIB} kB\nMemFree: {400 * GIB} kB\n"
        f"MemAvailable: {480 * GIB} kB\nSwapTotal: 0 kB\n",
        "/proc/uptime": "864000.0 1.0\n",
        "/proc/net/tcp": "  sl  local_address\n",
        "/proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-191\n",
        "/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu avx2\n",
        "/etc/os-release": "ID=ubuntu\nVERSION_ID=22.04\n",
        "/sys/class/net/lo/flags": "0x9\n",
        "/sys/class/net/eth0/flags": "0x1003\n",
        "/dev/shm/.keep": "",
        "/dev/nvidiactl": "",
        "/dev/nvidia-uvm": "",
        "/home/user/train.py": "",
    }


def _pci_files(scenario: Scenario) -> tuple[dict[str, str], dict[str, str]]:
    """Files and links of every GPU in the PCI tree, each on a root port of its own."""
    files: dict[str, str] = {}
    links: dict[str, str] = {"/sys/bus/pci/drivers/nvidia": "/sys/bus/pci/drivers/nvidia"}
    for index, gpu in enumerate(scenario["gpus"]):
        bdf = gpu["pci_bus_id"].lower().removeprefix("0000")
        folder = f"/sys/bus/pci/devices/{bdf}"
        files |= {
            f"{folder}/vendor": "0x10de\n",
            f"{folder}/class": "0x030200\n",
            f"{folder}/device": f"{gpu['pci_device_id'] >> 16:#06x}\n",
            f"{folder}/numa_node": f"{gpu.get('memory_affinity', '0')}\n",
            f"/dev/nvidia{index}": "",
        }
        links[f"{folder}/driver"] = "/sys/bus/pci/drivers/nvidia"
    return files, links


class WholeHost(FakeHost):
    """A machine of which everything is replayed but NVML, which is asked of the fake library.

    `variables`, `answers` (of queries), `tools` (commands) and `added` (files) add to what a sound
    machine has; `gone` are beginnings of paths that it lacks; without `library` there is no NVML;
    `live` is what torch's start prints instead.
    """

    def __init__(self, scenario: Scenario, folder: Path, software: Software, **more: Any) -> None:
        driver = scenario["driver"]
        files, links = _pci_files(scenario)
        files |= _proc_files(scenario)
        tools = ["c++", "cc", "g++", "gcc", "ldconfig", "nvidia-smi", "dmesg", "getent"]
        files |= {f"/usr/bin/{tool}": "" for tool in tools}
        files |= {f"/opt/train/bin/{tool}": "#!" + PYTHON for tool in ("deepspeed", "torchrun")}
        files |= {
            PYTHON: "",
            "/opt/train/bin/ninja": "",
            "/opt/train/pyvenv.cfg": "home = /usr/bin\n",
        }
        files |= {
            "/usr/include/python3.11/Python.h": "",
            f"{SITE}/torch/lib/libtorch.so": "",
            f"/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}": "",
        }
        links["/usr/lib/x86_64-linux-gnu/libcuda.so.1"] = (
            f"/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}"
        )
        smi = "".join(
            f"{index}, {gpu['uuid']}, {gpu['name']}, {driver}\n"
            for index, gpu in enumerate(scenario["gpus"])
        )
        gcc = (
            "c++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0\n"
            "Copyright (C) 2021 Free Software Foundation, Inc.\n"
        )
        commands: dict[str, Result | str] = {
            "/usr/bin/nvidia-smi --query-gpu": smi,
            "/usr/bin/nvidia-smi": f"| Driver Version: {driver}   CUDA Version: 13.0 |\n",
            "/usr/bin/ldconfig -p": "\tlibcuda.so.1 (libc6,x86-64) => "
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1\n",
            "/usr/bin/dmesg -r": "<6>[    0.000000] Linux version 6.8.0\n",
            **{f"/usr/bin/{tool} --version": gcc for tool in COMPILERS},
            **{f"/usr/bin/{tool} -dump": "11.4.0\n" for tool in COMPILERS},
        }
        root = f"/usr/local/cuda-{software.toolkit}"
        if software.toolkit:
            files |= {
                f"{root}/bin/nvcc": "",
                f"{root}/bin/ptxas": "",
                f"{root}/include/cuda.h": "",
                f"{root}/include/cuda_runtime.h": "",
                f"{root}/include/thrust/version.h": "",
                f"{root}/include/cusparse.h": "",
                f"{root}/include/cublas_v2.h": "",
                f"{root}/include/cusolverDn.h": "",
                f"{root}/include/curand.h": "",
                f"{root}/include/cuda_profiler_api.h": "",
                f"{root}/lib64/libcudart.so": "",
                f"{root}/lib64/libcurand.so": "",
            }
            links["/usr/local/cuda"] = root
            version = f"Cuda compilation tools, release {software.toolkit}, V{software.toolkit}.1\n"
            commands |= {f"{root}/bin/nvcc": version, "/usr/local/cuda/bin/nvcc": version}
        usual: dict[str, Any] = {
            "env": {
                "PATH": "/opt/train/bin:/usr/bin:/usr/local/cuda/bin",
                "HOME": "/home/user",
                "VIRTUAL_ENV": "/opt/train",
            },
            "queries": {
                "release": "6.8.0-79-generic",
                "machine": "x86_64",
                "hostname": "gpu-17",
                "libc": "glibc 2.35",
                "cpu_count": 192,
                "affinity": 192,
                "limits": {
                    "memlock": None,
                    "nofile": 1048576,
                    "stack": 8 << 20,
                    "address_space": None,
                },
                "euid": 1000,
                "home": "/home/user",
                "cwd": "/home/user",
                "executable": "/usr/bin/python3",
                "prefix": "/usr",
                "processes": [],
                "addresses": {"lo": ["127.0.0.1"], "eth0": ["10.0.0.17"]},
            },
        }
        usual["env"] |= more.pop("variables", {})
        usual["queries"] |= more.pop("answers", {})
        commands |= more.pop("tools", {})
        files |= more.pop("added", {})
        gone = tuple(more.pop("gone", ()))
        files = {path: text for path, text in files.items() if not path.startswith(gone or "//")}
        library = more.pop("library", True)
        live = more.pop("live", None)
        super().__init__(files=files, links=links, commands=commands, **{**usual, **more})
        self._static = static_records(software)
        self._live = live_records(scenario, software) if live is None else live
        found = fakenvml.environment(scenario, folder) if library else {}
        self._nvml = LocalHost({**found, "PATH": "/usr/bin:/bin"})

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 10.0,
        idle_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> Result:
        script = Path(argv[1]).name if len(argv) > 1 else ""
        if script == "nvml.py":
            return self._nvml.run([sys.executable, *argv[1:]], timeout=timeout)
        canned = {"static.py": self._static, "torch_live.py": self._live}.get(script)
        if canned is not None:
            return Result(argv=tuple(argv), returncode=0, stdout=canned.encode(), seconds=0.1)
        return super().run(argv, timeout=timeout)
