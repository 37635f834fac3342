"""Reads the NVIDIA driver from four sources: the kernel, NVML, `nvidia-smi` and libcuda.

Over 400 lines because the four sources are read and parsed here; each is short.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dsdoctor import records
from dsdoctor.api import (
    Gpus,
    GpuTopology,
    LibCuda,
    Missing,
    NvidiaKernel,
    NvidiaSmi,
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
#: PCI classes of VGA-compatible and of 3D controllers (the last two digits vary).
GPU_CLASSES = ("0x0300", "0x0302")
LIBRARY = "libcuda.so.1"
DEFAULT_FOLDERS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
WSL_FOLDER = "/usr/lib/wsl/lib"
CHILD = Path(__file__).parent / "children" / "nvml.py"

#: NVML answers within this time, plus a second for each GPU, if the driver is loaded.
USUAL_SECONDS = 2.0

_VERSION = r"\d{3,}\.\d+(?:\.\d+)?"
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
    found = re.search(rf"\s({_VERSION})(?:\s|$)", lines[0])
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


def _read_or_none(host: Host, path: str) -> str | None:
    """A file's text, None if it does not exist; other errors are raised."""
    try:
        return read_text(host, path)
    except HostError as error:
        if error.missing.why is Why.ABSENT:
            return None
        raise


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
        dxg=exists(host, "/dev/dxg"),
    )


# ---- nvidia-smi --------------------------------------------------------------------------------


class SmiList(msgspec.Struct, frozen=True, kw_only=True):
    """What `nvidia-smi --query-gpu` listed.

    Attributes:
        gpus: `index, uuid, name` of each.
        driver_version: the version in the first row that has one.
    """

    gpus: tuple[str, ...] = ()
    driver_version: str | None = None


def parse_smi_list(text: str) -> SmiList:
    r"""Parses `--query-gpu=index,uuid,name,driver_version --format=csv,noheader`.

    >>> parse_smi_list("0, GPU-1a, NVIDIA H200, 580.95.05\nrubbish\n")
    SmiList(gpus=('0, GPU-1a, NVIDIA H200',), driver_version='580.95.05')
    """
    gpus: list[str] = []
    driver = None
    for line in text.splitlines():
        found = re.fullmatch(r"(\d+\s*,[^,]+,.+?)\s*,\s*([^,]+)", line.strip())
        if not found:
            continue
        gpus.append(found[1])
        if driver is None and re.fullmatch(_VERSION, found[2].strip()):
            driver = found[2].strip()
    return SmiList(gpus=tuple(gpus), driver_version=driver)


def parse_smi_cuda(text: str) -> str | None:
    """The CUDA version in the header of `nvidia-smi`.

    >>> parse_smi_cuda("| NVIDIA-SMI 535.104.05  Driver Version: 535.104.05  CUDA Version: 12.2 |")
    '12.2'
    >>> parse_smi_cuda("| CUDA Version: N/A |")
    """
    found = re.search(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)", text)
    return found[1] if found else None


def parse_smi_no_cuda(text: str) -> str | None:
    """What the header of `nvidia-smi` prints where a CUDA version should be.

    >>> parse_smi_no_cuda("| NVIDIA-SMI 535.54.03  Driver Version: 536.25  CUDA Version: ERR! |")
    'ERR!'
    >>> parse_smi_no_cuda("| CUDA Version: 12.2 |")
    """
    found = re.search(r"CUDA (?:UMD )?Version\s*:\s*(ERR!|N/A|Not Found)", text)
    return found[1] if found else None


def trouble(result: Result, seconds: float) -> str | None:
    """The error of a command in words; None if it succeeded.

    >>> trouble(Result(argv=("x",), returncode=None, timed_out=True), 10)
    'timed out after 10 s'
    >>> trouble(Result(argv=("x",), returncode=9, stdout=b"no driver"), 10)
    'exit 9: no driver'
    """
    if result.timed_out:
        return f"timed out after {seconds:g} s"
    if result.returncode is None:
        return "it did not end"
    if result.returncode < 0:
        return f"ended by signal {-result.returncode}"
    if not result.is_text:
        return "its output is not text"
    if result.returncode > 0:
        words = _words(result)
        return f"exit {result.returncode}" + (f": {words}" if words else "")
    return None


def _words(result: Result) -> str:
    """The first lines of a command's output, with secrets masked."""
    for stream in (result.stderr, result.stdout):
        lines = stream.decode("utf-8", "replace").replace("\0", " ").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        if said:
            return mask("; ".join(said[:2]))[:300]
    return ""


@probe
def nvidia_smi(host: Host) -> NvidiaSmi:
    """The driver as `nvidia-smi` reports it; hangs, errors and garbage are recorded, not raised."""
    if host.system == "Darwin":
        raise HostError(Why.UNSUPPORTED, "there is no NVIDIA driver for macOS")
    path = host.which("nvidia-smi")
    if path is None and exists(host, f"{WSL_FOLDER}/nvidia-smi"):
        path = f"{WSL_FOLDER}/nvidia-smi"
    if path is None:
        return NvidiaSmi()
    columns = "--query-gpu=index,uuid,name,driver_version"
    try:
        first = host.run([path, columns, "--format=csv,noheader"], timeout=TOOL_SECONDS)
    except HostError as error:
        return NvidiaSmi(path=path, error=error.missing.detail)
    error_words = trouble(first, TOOL_SECONDS)
    listed = SmiList() if error_words else parse_smi_list(first.text)
    if error_words is None and not listed.gpus:
        said = _words(first)
        error_words = f"it listed no GPU: {said}" if said else "it listed no GPU"
    cuda = no_cuda = None
    if error_words is None:
        # both calls together stay within the time limit of a tool
        with contextlib.suppress(HostError):
            header = host.run([path], timeout=max(1.0, TOOL_SECONDS - first.seconds))
            if header.ok:
                cuda, no_cuda = parse_smi_cuda(header.text), parse_smi_no_cuda(header.text)
    return NvidiaSmi(
        path=path,
        returncode=first.returncode,
        driver_version=listed.driver_version,
        cuda_version=cuda,
        cuda_missing=no_cuda,
        gpus=listed.gpus,
        error=error_words,
        timed_out=first.timed_out,
    )


# ---- libcuda -----------------------------------------------------------------------------------


def parse_ldconfig(text: str, library: str = LIBRARY) -> list[str]:
    r"""Paths of a library in the output of `ldconfig -p`, the loader's choice first; 64-bit only.

    >>> parse_ldconfig("\tlibcuda.so.1 (libc6,x86-64) => /a/libcuda.so.1\n"
    ...                "\tlibcuda.so.1 (libc6) => /b/libcuda.so.1\n")
    ['/a/libcuda.so.1']
    """
    found = re.findall(r"^\s*(\S+) \(([^)]*)\) => (\S.*?)\s*$", text, re.MULTILINE)
    return [path for name, flags, path in found if name == library and re.search("64", flags)]


def parse_ld_conf(text: str) -> tuple[list[str], list[str]]:
    r"""Folders, and patterns of further files, in /etc/ld.so.conf.

    >>> parse_ld_conf("include ld.so.conf.d/*.conf\n/opt/lib  # ours\n")
    (['/opt/lib'], ['/etc/ld.so.conf.d/*.conf'])
    """
    folders: list[str] = []
    includes: list[str] = []
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        if line.startswith("include "):
            includes.extend(posixpath.join("/etc", name) for name in line.split()[1:])
        elif line.startswith("/"):
            folders.append(line.split("=", 1)[0].strip())
    return folders, includes


def parse_library_version(path: str) -> str | None:
    """Driver version in the name of the file that libcuda.so.1 links to.

    >>> parse_library_version("/usr/lib64/libcuda.so.535.104.05"), parse_library_version("/x.so.1")
    ('535.104.05', None)
    """
    found = re.search(rf"\.so\.({_VERSION})$", path)
    return found[1] if found else None


def _cached(host: Host) -> list[str]:
    """Paths of the library in the loader's cache; without `ldconfig`, from its configuration."""
    for program in (host.which("ldconfig"), "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if program is None:
            continue
        with contextlib.suppress(HostError):
            result = host.run([program, "-p"])
            if result.ok:
                return parse_ldconfig(result.text)
    folders: list[str] = []
    with contextlib.suppress(HostError):
        folders, includes = parse_ld_conf(read_text(host, "/etc/ld.so.conf"))
        for path in (path for pattern in includes for path in host.glob(pattern)):
            with contextlib.suppress(HostError):
                folders.extend(parse_ld_conf(read_text(host, path))[0])
    return [posixpath.join(folder, LIBRARY) for folder in folders]


def _candidates(host: Host) -> Iterator[tuple[str, str]]:
    """The files that the loader would consider, in its order, each with the reason."""
    for folder in host.env.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield "LD_LIBRARY_PATH", posixpath.join(folder, LIBRARY)
    for path in _cached(host):
        yield ("wsl" if path.startswith(WSL_FOLDER) else "ld.so.cache"), path
    for folder in DEFAULT_FOLDERS:
        yield "default", posixpath.join(folder, LIBRARY)
    yield "wsl", posixpath.join(WSL_FOLDER, LIBRARY)


def _resolved(host: Host, path: str) -> str:
    try:
        return host.readlink(path)
    except HostError:
        return path


@probe
def libcuda(host: Host) -> LibCuda:
    """The libcuda.so.1 that a job would load, and other copies; none is loaded."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"libcuda is not looked for on {host.system}")
    found: dict[str, tuple[str, str]] = {}
    for via, path in _candidates(host):
        if exists(host, path):
            found.setdefault(_resolved(host, path), (via, path))
    spare: dict[str, str] = {}
    with contextlib.suppress(HostError):
        for path in host.glob(f"/usr/local/cuda*/compat/{LIBRARY}"):
            spare.setdefault(_resolved(host, path), path)
    if not found:
        return LibCuda(others=tuple(spare.values()))
    (real, (via, path)), *rest = found.items()
    others = [where for _, (_, where) in rest]
    others += [where for target, where in spare.items() if target not in found]
    parts = {*path.split("/"), *real.split("/")}
    return LibCuda(
        path=path,
        via=via,
        version=parse_library_version(real),
        compat=any(re.fullmatch(r"compat(?:_orig)?|cuda-compat\S*", part) for part in parts),
        stub="stubs" in parts,
        others=tuple(others),
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
