"""A GPU reports a hardware fault.

## Why it matters
A restart on the same GPU does not fix an Xid, a GPU off the bus or an uncorrectable ECC error. The
driver writes each Xid to the kernel log; NVML does not report past ones. Xids that programs cause
(13, 31, 43) are only noted. So are old ones, because a reset leaves no trace in the log.

## What to do
Drain the node, read `dmesg | grep -i xid` and run `dcgmi diag -r 3`. The finding includes NVIDIA's
advice for the Xid.

## References
- https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (version of 2025-10-29)
- The check is skipped if this user cannot read the kernel log (`kernel.dmesg_restrict`).
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    KernelLog,
    Level,
    Limits,
    Missing,
    OsInfo,
    RecoveryAction,
    RunNeeds,
    Scope,
    Signature,
    XidEvent,
    check,
    fail,
    ok,
    warn,
)

from ._util import judged, named
from ._xids import FATAL, INFO, WARN, XIDS, Xid, lookup

CONDITION = Condition("gpu-hardware-fault", id="DSD650", scope=Scope.NODE, since="0.1")

HOUR = 3600.0
#: "GPU has fallen off the bus" (NVIDIA's Xid catalog of 2025-10-29).
FELL_OFF = 79

#: For a GPU of which the driver only says that it cannot reach it.
_LOST = "look for `Xid` in `dmesg` and reboot the node; if it recurs, have the card and its power cables reseated. In a container, start a new one"


class XidLimits(Limits, frozen=True, kw_only=True):
    """How old an Xid may be to count.

    Attributes:
        window_hours: older ones are only noted. NVIDIA's and cloud providers' own checks look
            back 2 hours to 3 days.
    """

    window_hours: float = 24


@check(CONDITION)
def kernel_log_is_clean(
    log: KernelLog,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    limits: XidLimits,
) -> Iterator[Finding]:
    """Judges the newest Xid of each number on each GPU of this run, and NVSwitch SXids."""
    newest: dict[tuple[str, int, bool], XidEvent] = {}
    counts: dict[tuple[str, int, bool], int] = {}
    for event in log.xids:
        key = (event.bdf, event.code, event.switch)
        newest[key] = event
        counts[key] = counts.get(key, 0) + 1
    noted: dict[str, int] = {}
    for key, event in newest.items():
        gpu, ours = _owner(event, gpus, run, env, os)
        if not ours:
            continue
        rule = lookup(event.code, event.text, switch=event.switch)
        # the log begins at the last boot, so a GPU that fell off the bus and is not there is lost
        gone = event.code == FELL_OFF and not event.switch and isinstance(gpus, Gpus) and not gpu
        level = FATAL if gone else _level(rule, event, gpu, limits)
        word = "SXid" if event.switch else "Xid"
        if level == INFO:
            noted[f"{event.bdf} {word} {event.code}"] = counts[key]
            continue
        where = named(gpu) if gpu else f"the NVIDIA device at {event.bdf}"
        age = _ago(event.age_s)
        yield (fail if level == FATAL else warn)(
            f"the kernel log reports {word} {event.code} ({rule.meaning}) for {where}{age}, but a "
            "healthy GPU has none",
            effect="runs on this GPU fail with a CUDA error or hang, even after a restart"
            if level == FATAL
            else "a run on this GPU has failed, or will be slower",
            hint=rule.action,
            code=event.code,
            bdf=event.bdf,
            gpu=gpu.index if gpu else None,
            count=counts[key],
            age_s=event.age_s,
            text=event.text,
            window_hours=limits.window_hours,
        )
    yield ok(noted=noted, source=log.source, begins_s=log.begins_s)


def _level(rule: Xid, event: XidEvent, gpu: Gpu | None, limits: XidLimits) -> str:
    """How severe an Xid is now, given its age and what the driver says that the GPU needs."""
    if event.age_s is not None and event.age_s > limits.window_hours * HOUR:
        return INFO
    if gpu is None or rule.level != FATAL:
        settled = gpu is not None and gpu.health.remapped_rows_pending is False
        return INFO if rule.level == WARN and rule.settles and settled else rule.level
    if rule.nvlink and not gpu.active_links:
        return WARN
    if gpu.error is None and gpu.health.recovery_action == RecoveryAction.NONE:
        # the driver requests no recovery action, so the GPU has been reset since
        return WARN
    return FATAL


def _owner(
    event: XidEvent,
    gpus: Gpus | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    os: OsInfo | Missing,
) -> tuple[Gpu | None, bool]:
    """The GPU that an Xid is about, and whether it concerns this run.

    A container sees the log of the whole host. An address that matches no GPU therefore concerns
    this run only outside a container and if the run uses every GPU: then a GPU has vanished.
    """
    inside = not isinstance(os, Missing) and os.container is not None
    if isinstance(gpus, Missing):
        return None, not inside
    used = judged(gpus, run, env)
    for gpu in gpus.gpus:
        if gpu.pci_bdf is not None and gpu.pci_bdf.rpartition(".")[0] == event.bdf:
            return gpu, gpu in used
    return None, not inside and len(used) == len(gpus.gpus)


def _ago(age: float | None) -> str:
    """An age, for a message.

    >>> _ago(90), _ago(7200), _ago(None)
    (', 2 min ago', ', 2.0 h ago', '')
    """
    if age is None:
        return ""
    return f", {age / 60:.0f} min ago" if age < HOUR else f", {age / HOUR:.1f} h ago"


HINT = "drain the node, read `dmesg | grep -i xid` and run `dcgmi diag -r 3`"

#: What a program sees of it.
_VICTIMS = (
    "cuda-kernel-failed",
    "nccl-timeout-watchdog",
    "nccl-unhandled-cuda-error",
    "rendezvous-timeout",
)
_NOTED = "|".join(str(number) for number, xid in XIDS.items() if xid.level == INFO)

SIGNATURES = (
    Signature(
        # not those that a program causes, or that are harmless
        pattern=rf"NVRM: Xid(?! \([^)]{{1,40}}\): (?:{_NOTED})\b)",
        source="NVIDIA's Xid catalog of 2025-10-29 (`_xids.py`)",
        examples=("NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.",),
        not_examples=(
            "NVRM: Xid (PCI:0000:4b:00): 31, pid=991, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
            "NVRM: Xid (PCI:0000:4b:00): 43, pid=991, name=python, Ch 00000010",
        ),
        level=Level.CERTAIN,
        masks=_VICTIMS,
    ),
    Signature(
        pattern="fallen off the bus",
        source="NVIDIA driver 300-590 kernel module (NVRM), Xid 79; NVML nvmlErrorString",
        examples=("NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.",),
        level=Level.CERTAIN,
        masks=_VICTIMS,
    ),
    Signature(
        pattern="(?i:uncorrectable (?:ECC|NVLink|error))",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution",
            "uncorrectable error",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"[Uu]ncorrectable hardware error\(ERREVENT_ATHUB_INTERRUPT\) detected",
        source="Linux 5.3-6.12 drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, ras/ras_mgr/amdgpu_ras_mgr.c",
        message="An AMD GPU reports an uncorrectable hardware error",
        examples=(
            "amdgpu 0000:1c:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
            "amdgpu 0000:1c:00.0: {7} Uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        ),
        level=Level.CERTAIN,
        masks=(
            "hip-runtime-error",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern="ECCUncorrectable",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName: cudaErrorECCUncorrectable",
        examples=("ECCUncorrectable",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="GPU is lost",
        source="NVIDIA driver 300-590 NVML nvmlErrorString, nvidia-smi",
        message="A GPU is lost: the driver cannot reach it",
        hint=_LOST,
        examples=(
            "Unable to determine the device handle for GPU0000:8A:00.0: GPU is lost.  Reboot the system to recover this GPU",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"caused by previous Xid 1(?:4[4-9]|50)\b",
        source="NVIDIA driver 560-590, Xid 45; 144 to 150 are errors of NVLink 5 (Xid catalog)",
        message="an NVLink error ended the program",
        examples=(
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 1 caused by previous Xid 150",
        ),
        not_examples=(
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 1 caused by previous Xid 13",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(  # its configuration space reads as all ones; on laptops, also when it is powered off
        pattern=r"NVIDIA Corporation (?!\w+M\b)(?!.*(?:Mobile|Max-Q)).*\(rev ff\)",
        source="pciutils 3.5-3.13 lspci.c",
        message="the GPU does not answer on the PCI bus",
        examples=(
            "1c:00.0 VGA compatible controller: NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev ff)",
            "0b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff)",
        ),
        not_examples=(
            "01:00.0 3D controller: NVIDIA Corporation TU117M [GeForce GTX 1650 Mobile / Max-Q] (rev ff)",
            "01:00.0 3D controller: NVIDIA Corporation GF108M [GeForce GT 540M] (rev ff)",
            "1a:00.0 VGA compatible controller: NVIDIA Corporation TU102GL (rev a1)",
        ),
        level=Level.LIKELY,
    ),
    Signature(
        pattern="requires? (?:a )?reset",
        source="NVIDIA driver 450-590 nvidia-smi, NVML nvmlErrorString",
        examples=("require reset",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Unable to determine the device handle",
        source="NVIDIA driver 390-590 nvidia-smi",
        message="A GPU is lost: the driver cannot reach it",
        hint=_LOST,
        examples=("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="CUDA error: (?:an illegal instruction was encountered|hardware stack error)",
        source="CUDA 7.0-13.0 cudart, cudaGetErrorString",
        examples=(
            "RuntimeError: CUDA error: an illegal instruction was encountered",
            "RuntimeError: CUDA error: hardware stack error",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"PCIe Bus Error: severity=Uncorrected|AER: (?:Multiple )?Uncorrected \(Fatal\)|has no AER-aware driver",
        source="linux 4.4-6.12 drivers/pci/pcie/aer.c",
        examples=(
            "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
            "pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010",
            "has no AER-aware driver",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="over nvlink or a hardware error",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern=r"CUDA_ERROR_(?:CONTAINED|HARDWARE_STACK_ERROR|NVLINK_UNCORRECTABLE)\b",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=(
            "CUDA_ERROR_CONTAINED",
            "CUDA_ERROR_HARDWARE_STACK_ERROR",
            "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="because it is insufficiently powered",
        source="NVIDIA driver 390-590 NVML nvmlErrorString (NVML_ERROR_INSUFFICIENT_POWER)",
        examples=("Unable to communicate with GPU because it is insufficiently powered.",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="Insufficient External Power",
        source="nvidia-ml-py 13.615.71 pynvml.py",
        examples=("Insufficient External Power",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern=r"SXid \(PCI:[\w:.]+\): \d+,.{0,20}\bFatal\b",
        source="NVIDIA driver 450-590 kernel module (nvidia-nvswitch)",
        examples=(
            "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 20009, Fatal, Link 12 RX Short Error Rate",
        ),
        not_examples=(
            "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 19084, Non-fatal, Link 31 AN1 Heartbeat Timeout Error",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="infoROM is corrupted at",
        source="NVIDIA driver 390-580 nvidia-smi",
        examples=("infoROM is corrupted at",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="GpuIsLost",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=("pynvml.NVMLError_GpuIsLost: GPU is lost",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="the launch timed out and was terminated",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("RuntimeError: CUDA error: the launch timed out and was terminated",),
        level=Level.WEAK,
    ),
)
