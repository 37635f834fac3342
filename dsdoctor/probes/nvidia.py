"""Reads the NVIDIA driver and the GPUs from the kernel and from NVML."""

from __future__ import annotations

import contextlib
import posixpath
import re
from pathlib import Path

import msgspec

from dsdoctor import records
from dsdoctor.api import (
    Gpus,
    GpuTopology,
    Missing,
    NvidiaKernel,
    Nvml,
    NvmlError,
    PciGpu,
    Why,
    probe,
)
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists, read_text
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.redact import mask
from dsdoctor.probes import gpu_parse
from dsdoctor.process import Result

NVIDIA_VENDOR = "0x10de"
#: Its name is fixed by UEFI 2.10, 3.3.
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
UVM_DISABLE_HMM = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"
#: Source: NVIDIA IMEX guide 580, "IMEX Channels", read 2026-11-28.
IMEX_CHANNELS = "/dev/nvidia-caps-imex-channels/channel*"
#: PCI classes of VGA-compatible and of 3D controllers (the last two digits vary).
GPU_CLASSES = ("0x0300", "0x0302")
WSL_FOLDER = "/usr/lib/wsl/lib"
CHILD = Path(__file__).parent / "children" / "nvml.py"

#: NVML answers within this time, plus a second for each GPU, if the driver is loaded.
USUAL_SECONDS = 2.0

#: A driver version.
VERSION = r"\d{3,}\.\d+(?:\.\d+)?"
#: NVML's codes: 4 no permission, 9 driver not loaded, 10 timeout, 12 no library.
_NO_PERMISSION, _NOT_LOADED, _TIMEOUT, _NO_LIBRARY = 4, 9, 10, 12


# ---- the kernel --------------------------------------------------------------------------------


def parse_module_version(text: str) -> tuple[str | None, bool]:
    """Version of the kernel module in /proc/driver/nvidia/version, and whether it is the open one.

    >>> parse_module_version(
    ...     "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC"
    ... )
    ('535.104.05', False)
    >>> parse_module_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05")
    ('580.95.05', True)
    """
    lines = [line for line in text.splitlines() if line.startswith("NVRM")] or [text]
    found = re.search(rf"\s({VERSION})(?:\s|$)", lines[0])
    return (found[1] if found else None), "Open Kernel Module" in lines[0]


def parse_modules(text: str) -> tuple[str, ...]:
    r"""NVIDIA's modules, and nouveau, in /proc/modules.

    >>> parse_modules("ext4 1 0 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\nnouveau 1 0 - Live 0x0\n")
    ('nouveau', 'nvidia_uvm')
    """
    names = {line.split(" ", 1)[0] for line in text.splitlines()}
    wanted = ("nouveau", "nv_peer_mem")
    return tuple(sorted(n for n in names if n.startswith("nvidia") or n in wanted))


def _pci_gpu(host: Host, folder: str) -> PciGpu | None:
    """The GPU at a sysfs folder, None for other devices."""
    try:
        if read_text(host, f"{folder}/vendor").strip().lower() != NVIDIA_VENDOR:
            return None
        if not read_text(host, f"{folder}/class").strip().lower().startswith(GPU_CLASSES):
            return None
        device = read_text(host, f"{folder}/device").strip().lower()
    except HostError:
        return None
    driver = None
    with contextlib.suppress(HostError):
        target = host.readlink(f"{folder}/driver")
        driver = None if target.endswith("/driver") else posixpath.basename(target)
    return PciGpu(bdf=posixpath.basename(folder), device_id=device, driver=driver)


def pci_gpus(host: Host) -> tuple[PciGpu, ...]:
    """NVIDIA GPUs on the PCI bus; none if a container hides the bus."""
    try:
        folders = host.glob("/sys/bus/pci/devices/*")
    except HostError:
        return ()
    return tuple(gpu for folder in folders if (gpu := _pci_gpu(host, folder)) is not None)


def device_nodes(host: Host) -> tuple[str, ...]:
    """Names of /dev/nvidia*."""
    try:
        return tuple(posixpath.basename(path) for path in host.glob("/dev/nvidia*"))
    except HostError:
        return ()


def imex_channels(host: Host) -> tuple[str, ...] | None:
    """Names of the IMEX channels of this machine or container."""
    try:
        return tuple(posixpath.basename(path) for path in host.glob(IMEX_CHANNELS))
    except HostError:
        return None


def _read_or_none(host: Host, path: str) -> str | None:
    """A file's text, None if it does not exist; other errors are raised."""
    try:
        return read_text(host, path)
    except HostError as error:
        if error.missing.why is Why.ABSENT:
            return None
        raise


def secure_boot(host: Host) -> bool | None:
    """Whether UEFI Secure Boot is on; None if the firmware does not say.

    The variable has four bytes of attributes and one of content (UEFI 2.10, 3.3; Linux
    Documentation/filesystems/efivarfs.rst).
    """
    try:
        data = host.read(SECURE_BOOT)
    except HostError:
        return None
    return data[4] == 1 if len(data) == 5 else None  # noqa: PLR2004


def uvm_hmm(host: Host) -> bool | None:
    """Whether the loaded nvidia_uvm may use HMM: a parameter that the kernel prints as Y or N."""
    try:
        return read_text(host, UVM_DISABLE_HMM).strip() == "N"
    except HostError:
        return None


@probe
def nvidia_kernel(host: Host) -> NvidiaKernel:
    """What the kernel knows about NVIDIA GPUs; neither hangs nor needs a library."""
    if host.system != "Linux":
        raise HostError(
            Why.UNSUPPORTED,
            f"the kernel's view of GPUs is not read on {host.system}, only on Linux",
        )
    text = _read_or_none(host, "/proc/driver/nvidia/version")
    version = is_open = None
    if text is not None:
        version, is_open = parse_module_version(text)
        if version is None:
            raise HostError(Why.BROKEN, "`/proc/driver/nvidia/version` contains no driver version")
    modules = ""
    with contextlib.suppress(HostError):
        modules = read_text(host, "/proc/modules")
    return NvidiaKernel(
        module_version=version,
        module_open=is_open,
        modules=parse_modules(modules),
        pci=pci_gpus(host),
        device_nodes=device_nodes(host),
        imex_channels=imex_channels(host),
        dxg=exists(host, "/dev/dxg"),
        secure_boot=secure_boot(host) if version is None else None,
        uvm_hmm=uvm_hmm(host),
    )


# ---- NVML --------------------------------------------------------------------------------------


def _why(error: NvmlError) -> Why:
    if error.code in (_NOT_LOADED, _NO_LIBRARY):
        return Why.ABSENT
    if error.code == _NO_PERMISSION:
        return Why.DENIED
    return Why.TIMEOUT if error.code == _TIMEOUT else Why.BROKEN


def _ending(result: Result, step: str | None) -> Missing:
    """Why the records are incomplete."""
    where = f"in `{step}`" if step and step != "start" else "before its first call"
    if result.timed_out:
        return Missing(
            why=Why.TIMEOUT, detail=f"NVML did not answer within {TOOL_SECONDS:g} s {where}"
        )
    if result.returncode is not None and result.returncode < 0:
        detail = f"the process that queries NVML was ended by signal {-result.returncode} {where}"
    else:
        words = mask(result.error_text) if result.stderr else ""
        said = f" ({words})" if words else ""
        detail = (
            f"the process that queries NVML ended with status {result.returncode} {where}{said}"
        )
    return Missing(why=Why.BROKEN, detail=detail)


def _no_device(host: Host) -> bool:
    """Whether there is no sign of an NVIDIA GPU in this machine."""
    if host.system == "Windows":
        return False
    return not (pci_gpus(host) or device_nodes(host) or exists(host, "/proc/driver/nvidia"))


@probe
def nvml(host: Host) -> tuple[Nvml | Missing, Gpus | Missing, GpuTopology | Missing]:
    """Driver and GPUs as NVML reports them, queried in a child because any call may hang.

    Facts that were read before a hang or a crash are kept; missing ones report the call.
    """
    argv = [str(host.query("executable")), str(CHILD)]
    result = host.run(argv, timeout=TOOL_SECONDS, idle_timeout=TOOL_SECONDS)
    parsed = gpu_parse.parse(records.decode(result.stdout))
    absent = parsed.nvml is not None and parsed.nvml.error is not None and _no_device(host)
    return from_child(parsed, result, no_device=absent)


#: What `nvml` and `from_child` return, in their order.
NVML_FACTS: tuple[type[Fact], ...] = (Nvml, Gpus, GpuTopology)


def from_child(
    parsed: gpu_parse.ParsedNvml, result: Result, *, no_device: bool
) -> tuple[Nvml | Missing, Gpus | Missing, GpuTopology | Missing]:
    """Facts from what the child printed, and from how it ended.

    Args:
        parsed: its records.
        result: its end.
        no_device: there is no sign of an NVIDIA GPU in that machine.
    """
    driver: Nvml | Missing | None = parsed.nvml
    gpus: Gpus | Missing | None = parsed.gpus
    topology: GpuTopology | Missing | None = parsed.topology
    if parsed.stopped_at is not None:
        lack = _ending(result, parsed.stopped_at)
    elif parsed.nvml is not None and parsed.nvml.error is not None:
        error = parsed.nvml.error
        lack = Missing(why=_why(error), detail=f"NVML: {error.message} (`{error.call}`)")
        if error.code in (_NOT_LOADED, _NO_LIBRARY) and no_device:
            gpus, topology = Gpus(count=0), GpuTopology()
    else:
        words = "; ".join(parsed.malformed)[:300] or "no answer"
        lack = Missing(why=Why.BROKEN, detail=f"NVML's answer could not be parsed: {words}")
    if isinstance(driver, Nvml) and isinstance(gpus, Gpus) and gpus.stopped_at is None:
        usual = USUAL_SECONDS + len(gpus.gpus)
        if result.seconds > usual:
            driver = msgspec.structs.replace(driver, slow_seconds=round(result.seconds, 1))
    return driver or lack, gpus or lack, topology or lack
