"""What a machine's tools would print: collect_env, ds_report and `nvidia-smi` from its facts."""

from __future__ import annotations

from typing import TypeVar

from dsdoctor.api import (
    Compilers,
    CudaToolkits,
    DeepSpeedInstall,
    DeepSpeedLive,
    Environment,
    Fact,
    Gpu,
    Gpus,
    Nvml,
    OsInfo,
    Packages,
    Patient,
    Resources,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.snapshot import Snapshot

_F = TypeVar("_F", bound=Fact)
_GIB = 1 << 30
_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
_SWITCH = {True: "Enabled", False: "Disabled", None: "N/A"}
_YES = {True: "Yes", False: "No", None: "N/A"}


def _of(snapshot: Snapshot, kind: type[_F]) -> _F | None:
    found = snapshot.get(kind)
    return found if isinstance(found, kind) else None


def everything(snapshot: Snapshot) -> str:
    """The output of all tools, one below the other, as the templates of issues ask for it."""
    parts = (collect_env, ds_report, nvidia_smi, pip_list)
    return "\n".join(f"```\n{part(snapshot)}```\n" for part in parts)


def _names(snapshot: Snapshot) -> list[str]:
    gpus = _of(snapshot, Gpus)
    return [f"GPU {gpu.index}: {gpu.name}" for gpu in gpus.gpus if gpu.name] if gpus else []


def collect_env(snapshot: Snapshot) -> str:
    """`python -m torch.utils.collect_env`, with vLLM's list of variables."""
    torch, live = _of(snapshot, TorchBuild), _of(snapshot, TorchLive)
    system, patient = _of(snapshot, OsInfo), _of(snapshot, Patient)
    compilers, toolkits = _of(snapshot, Compilers), _of(snapshot, CudaToolkits)
    nvml, packages = _of(snapshot, Nvml), _of(snapshot, Packages)
    variables = _of(snapshot, Environment)
    if torch is None or torch.version is None or system is None or patient is None:
        return ""
    toolkit = toolkits.toolkit if toolkits else None
    names = _names(snapshot)
    libc = (system.libc or "N/A").replace("glibc ", "glibc-")
    driver = nvml.driver_version if nvml and nvml.error is None else None
    none = not names and driver is None and toolkit is None
    gcc = compilers.cc.version if compilers and compilers.cc.kind == "gcc" else None
    available = bool(live and live.cuda_ok)
    lines = [
        "Collecting environment information...",
        f"PyTorch version: {torch.version}",
        "Is debug build: False",
        f"CUDA used to build PyTorch: {torch.cuda or 'None'}",
        f"ROCM used to build PyTorch: {torch.hip or 'N/A'}",
        "",
        f"OS: Ubuntu 22.04.5 LTS ({system.machine})",
        f"GCC version: {f'(GCC) {gcc}' if gcc else 'Could not collect'}",
        f"Libc version: {libc}",
        "",
        f"Python version: {patient.version} (main) [GCC 11.2.0] (64-bit runtime)",
        f"Python platform: {_platform(system)}",
        f"Is CUDA available: {available}",
        f"CUDA runtime version: {toolkit.version if toolkit else 'Could not collect'}",
        f"GPU models and configuration: {'No CUDA' if none else ''}",
        *names,
        "",
        f"Nvidia driver version: {driver or ('No CUDA' if none else 'Could not collect')}",
        "",
        "Versions of relevant libraries:",
        *(
            f"[pip3] {one.name}=={one.version}"
            for one in (packages.packages if packages else {}).values()
        ),
        "",
        *(f"{name}={value}" for name, value in (variables.variables if variables else {}).items()),
    ]
    return "\n".join(lines) + "\n"


def _platform(system: OsInfo) -> str:
    if system.system == "Windows":
        return f"Windows-{system.release}"
    libc = (system.libc or "glibc 2.35").replace(" ", "")
    return f"{system.system}-{system.release}-{system.machine}-with-{libc}"


def pip_list(snapshot: Snapshot) -> str:
    """`pip list`."""
    torch, deepspeed = _of(snapshot, TorchBuild), _of(snapshot, DeepSpeedInstall)
    packages = _of(snapshot, Packages)
    versions: dict[str, str | None] = {
        one.name: one.version for one in (packages.packages if packages else {}).values()
    }
    versions |= {"torch": torch.version} if torch else {}
    versions |= {"deepspeed": deepspeed.version} if deepspeed else {}
    rows = [f"{name:<14} {version}" for name, version in sorted(versions.items()) if version]
    return "\n".join(["Package        Version", "-------------- -------", *rows]) + "\n"


def ds_report(snapshot: Snapshot) -> str:
    """`ds_report`, which imports deepspeed."""
    live = _of(snapshot, DeepSpeedLive)
    if live is not None and not live.imported.ok:
        return f"ImportError: {live.imported.message}\n"
    torch, deepspeed = _of(snapshot, TorchBuild), _of(snapshot, DeepSpeedInstall)
    compilers, toolkits = _of(snapshot, Compilers), _of(snapshot, CudaToolkits)
    resources = _of(snapshot, Resources)
    if deepspeed is None or torch is None or deepspeed.version is None:
        return ""
    toolkit = toolkits.toolkit if toolkits else None
    nvcc = toolkit.version if toolkit else " [FAIL] cannot find CUDA_HOME via torch"
    nvcc = "None" if torch.hip else nvcc  # deepspeed 0.19.8 env_report.py asks only with CUDA
    shm = (resources.shm_total_bytes or 0) / _GIB if resources else 0
    wheel = f"torch {deepspeed.built_for_torch or '0.0'}, cuda {deepspeed.built_for_cuda or '0.0'}"
    return f"""\
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
ninja .................. [{"OKAY" if compilers and compilers.ninja else "FAIL"}]
--------------------------------------------------
{"".join(f"{op} ...... [{'YES' if built else 'NO'}] ...... [OKAY]{chr(10)}" for op, built in deepspeed.installed_ops.items())}\
--------------------------------------------------
DeepSpeed general environment info:
torch version .................... {torch.version}
deepspeed info ................... {deepspeed.version}, unknown, unknown
torch cuda version ............... {torch.cuda}
torch hip version ................ {torch.hip}
nvcc version ..................... {nvcc}
deepspeed wheel compiled w. ...... {wheel}
shared memory (/dev/shm) size .... {shm:.4f} GB
"""


def nvidia_smi(snapshot: Snapshot) -> str:
    """`nvidia-smi -q`, `topo -m` and `nvlink -s`, or what they print in place of a report."""
    nvml, gpus = _of(snapshot, Nvml), _of(snapshot, Gpus)
    if nvml is None:
        return "bash: nvidia-smi: command not found\n"
    if nvml.error is not None:
        words = {
            9: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            18: "Failed to initialize NVML: Driver/library version mismatch",
        }
        return words.get(nvml.error.code or 0, "Failed to initialize NVML: Unknown Error") + "\n"
    if gpus is None or not gpus.gpus:
        return "No devices were found\n"
    for gpu in gpus.gpus:
        if gpu.error is not None:
            word = {15: "GPU is lost", 16: "GPU requires reset"}.get(gpu.error.code or 0)
            bus = f"0000:{0x10 + gpu.index:02x}:00.0"
            return (
                f"Unable to determine the device handle for GPU {bus}: {word or 'Unknown Error'}\n"
            )
    text = "==============NVSMI LOG==============\n\n"
    text += f"Driver Version                            : {nvml.driver_version}\n\n"
    text += f"Attached GPUs                             : {len(gpus.gpus)}\n"
    text += "".join(_queried(gpu) for gpu in gpus.gpus)
    return text + "\n\n\n\n" + "".join(_links(gpu) for gpu in gpus.gpus)


def _queried(gpu: Gpu) -> str:
    health = gpu.health
    rows: list[tuple[int, str, object]] = [
        (1, "Product Name", gpu.name),
        (1, "Persistence Mode", _SWITCH[gpu.persistence_mode]),
        (1, "MIG Mode", None),
        (2, "Current", _SWITCH[gpu.mig_mode]),
        (2, "Pending", _SWITCH[gpu.mig_mode_pending]),
        (1, "GPU UUID", gpu.uuid),
        (1, "GSP Firmware Version", gpu.gsp_version or "N/A"),
        (1, "Compute Mode", _MODES[gpu.compute_mode or 0]),
        (1, "ECC Mode", None),
        (2, "Current", _SWITCH[gpu.ecc_mode]),
        (2, "Pending", _SWITCH[gpu.ecc_mode_pending]),
        (1, "ECC Errors", None),
        (2, "Volatile", None),
        (3, "SRAM Uncorrectable", "N/A" if gpu.ecc_mode is None else 0),
        (3, "DRAM Correctable", "N/A" if gpu.ecc_mode is None else 0),
        (3, "DRAM Uncorrectable", _count(health.ecc_volatile_uncorrected)),
        (1, "Retired Pages", None),
        (2, "Single Bit ECC", _count(health.retired_pages_single_bit)),
        (2, "Double Bit ECC", _count(health.retired_pages_double_bit)),
        (2, "Pending Page Blacklist", _YES[health.retired_pages_pending]),
        (1, "Remapped Rows", None),
        (2, "Correctable Error", _count(health.remapped_rows_corrected)),
        (2, "Uncorrectable Error", _count(health.remapped_rows_uncorrected)),
        (2, "Pending", _YES[health.remapped_rows_pending]),
        (2, "Remapping Failure Occurred", _YES[health.remapped_rows_failure]),
    ]
    text = f"GPU 00000000:{0x10 + gpu.index:02X}:00.0\n"
    for depth, key, value in rows:
        head = "    " * depth + key
        text += head + "\n" if value is None else f"{head:<42}: {value}\n"
    return text


def _count(number: int | None) -> object:
    return "N/A" if number is None else number


def _links(gpu: Gpu) -> str:
    if gpu.links is None:
        return ""
    rows = [
        f"\t Link {link.link}: {'25 GB/s' if link.active else '<inactive>'}\n" for link in gpu.links
    ]
    return f"GPU {gpu.index}: {gpu.name} (UUID: GPU-aaaa{gpu.index:04d})\n" + "".join(rows)
