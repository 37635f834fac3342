"""Finds CUDA toolkits, and the one that torch and DeepSpeed would use."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from dsdoctor.api import (
    CudaToolkits,
    Missing,
    Patient,
    RunNeeds,
    Toolkit,
    TorchBuild,
    Why,
    probe,
)
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists, matches, real_path
from dsdoctor.probes.at_once import at_once
from dsdoctor.probes.command_result import trouble
from dsdoctor.records import decode

#: How long the trial compile of `--deep` may take: torch's headers are large.
TRIAL_SECONDS = 120.0

#: Header (with the places it may have below a folder of headers) that torch's own headers, or
#: DeepSpeed's sources, include.
NEEDED_HEADERS: Mapping[str, tuple[str, ...]] = {
    "cuda_runtime.h": ("cuda_runtime.h",),
    "cublas_v2.h": ("cublas_v2.h",),
    "cusparse.h": ("cusparse.h",),
    "cusolverDn.h": ("cusolverDn.h",),
    "curand.h": ("curand.h",),
    "thrust/version.h": ("thrust/version.h", "cccl/thrust/version.h"),
    "cuda_profiler_api.h": ("cuda_profiler_api.h",),
}


def parse_nvcc(text: str) -> str | None:
    """CUDA version in the output of `nvcc --version`.

    >>> parse_nvcc("Cuda compilation tools, release 12.4, V12.4.131")
    '12.4'
    >>> parse_nvcc("command not licensed")
    """
    found = re.search(r"\brelease (\d+\.\d+)", text)
    return found[1] if found else None


def _nvcc_version(host: Host, nvcc: str) -> tuple[str | None, str | None]:
    """The version that an nvcc reports, or why it reports none."""
    try:
        result = host.run([nvcc, "--version"], timeout=TOOL_SECONDS)
    except HostError as error:
        return None, error.missing.detail
    words = trouble(result, TOOL_SECONDS)
    if words is not None:
        return None, words
    version = parse_nvcc(result.text)
    return version, None if version else "its output contains no release"


def _header_folders(host: Host, root: str) -> list[str]:
    return [f"{root}/include", *matches(host, f"{root}/targets/*/include")]


def missing_headers(host: Host, root: str) -> tuple[str, ...]:
    """Headers of NEEDED_HEADERS that are not under a toolkit's folder."""
    folders = _header_folders(host, root)
    return tuple(
        header
        for header, places in NEEDED_HEADERS.items()
        if not any(exists(host, f"{folder}/{place}") for folder in folders for place in places)
    )


def has_library(host: Host, root: str, library: str) -> bool:
    """Whether a toolkit has a library, by the name that the linker looks for."""
    if any(exists(host, f"{root}/{folder}/{library}") for folder in ("lib64", "lib")):
        return True
    return bool(
        matches(host, f"{root}/targets/*/lib/{library}")
        or matches(host, f"{root}/lib/*-linux-gnu/{library}")
    )


def _linked_by_default(host: Host, library: str, torch: TorchBuild | Missing, *added: str) -> bool:
    """Whether the linker finds a library without a toolkit's folder, or in folders added to it.

    torch's build adds its own folder; gcc(1) reads LIBRARY_PATH.
    """
    own = [] if isinstance(torch, Missing) or not torch.path else [f"{torch.path}/lib"]
    given = [folder for folder in host.env.get("LIBRARY_PATH", "").split(":") if folder]
    folders = ("/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib")
    if any(
        exists(host, posixpath.join(folder, library)) for folder in (*own, *given, *added, *folders)
    ):
        return True
    return any(matches(host, f"{place}/*-linux-gnu/{library}") for place in ("/usr/lib", "/lib"))


def _nvcc_of(host: Host, root: str) -> str | None:
    nvcc = posixpath.join(root, "bin", "nvcc")
    return nvcc if exists(host, nvcc) else None


def torch_choice(host: Host) -> tuple[str | None, str | None]:
    """The folder that torch takes as CUDA_HOME, and why; by its own search order.

    The variables are not checked for existence, and nvcc's links are not followed.
    """
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if value := host.env.get(name):
            return value.rstrip("/") or "/", name
    if nvcc := host.which("nvcc"):
        return posixpath.dirname(posixpath.dirname(nvcc)), "nvcc on PATH"
    if exists(host, "/usr/local/cuda"):
        return "/usr/local/cuda", "/usr/local/cuda"
    return None, None


def _places(host: Host, patient: Patient | Missing) -> Iterator[tuple[str, str]]:
    """Folders that may be toolkits: the folder, and where it was found."""
    for name, source in (
        ("CUDA_HOME", "CUDA_HOME"),
        ("CUDA_PATH", "CUDA_PATH"),
        ("EBROOTCUDA", "modules"),
    ):
        if value := host.env.get(name):
            yield value.rstrip("/") or "/", source
    for folder in host.env.get("PATH", "").split(":"):
        if folder and exists(host, posixpath.join(folder, "nvcc")):
            yield posixpath.dirname(folder.rstrip("/")), "PATH"
    for folder in ["/usr/local/cuda", *matches(host, "/usr/local/cuda-*")]:
        if _nvcc_of(host, folder) or exists(host, f"{folder}/include/cuda.h"):
            yield folder, "/usr/local"
    prefixes = [host.env.get("CONDA_PREFIX", "")]
    sys_path: Sequence[str] = ()
    if isinstance(patient, Patient):
        sys_path = patient.sys_path
        if patient.kind == "conda":
            prefixes.append(patient.prefix)
    for prefix in prefixes:
        if prefix and _nvcc_of(host, prefix):
            yield prefix, "conda"
    for folder in sys_path:
        if folder.startswith("/") and exists(host, f"{folder}/nvidia"):
            for nvcc in matches(host, f"{folder}/nvidia/*/bin/nvcc"):
                yield posixpath.dirname(posixpath.dirname(nvcc)), "pip"


@probe
def cuda_toolkits(
    host: Host, patient: Patient | Missing, run: RunNeeds, torch: TorchBuild | Missing
) -> CudaToolkits:
    """All toolkits, and the one that torch and DeepSpeed would take."""
    if host.system == "Darwin":
        raise HostError(Why.UNSUPPORTED, "there is no CUDA for macOS")
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"CUDA toolkits are not looked for on {host.system}")
    chosen_root, how = torch_choice(host)
    absent: str | None = None
    if chosen_root is not None and not exists(host, chosen_root):
        absent, chosen_root = chosen_root, None
    roots: dict[str, tuple[str, str]] = {}
    for root, source in _places(host, patient):
        if exists(host, root):
            roots.setdefault(real_path(host, root), (root, source))
    if chosen_root is not None:
        # /usr/local/cuda without a compiler in it is still what torch takes
        roots.setdefault(real_path(host, chosen_root), (chosen_root, "/usr/local"))
    nvccs = {real: _nvcc_of(host, root) for real, (root, _) in roots.items()}
    programs = {real_path(host, nvcc): nvcc for nvcc in nvccs.values() if nvcc}
    answers = _in_parallel(host, programs)
    found: list[Toolkit] = []
    for real, (root, source) in roots.items():
        nvcc = nvccs[real]
        version, error = answers[real_path(host, nvcc)] if nvcc else (None, None)
        found.append(
            Toolkit(
                root=root,
                source=source,
                nvcc=nvcc,
                version=version,
                error=error,
                missing_headers=missing_headers(host, root),
                has_cudart=has_library(host, root, "libcudart.so"),
                has_curand=has_library(host, root, "libcurand.so"),
                host_compiler=_compiler_of_package(host, nvcc),
            )
        )
    chosen = None if chosen_root is None else list(roots).index(real_path(host, chosen_root))
    if run.deep and chosen is not None and not isinstance(torch, Missing):
        found[chosen] = _with_trial_compile(host, found[chosen], torch)
    added = () if chosen_root is None else (chosen_root, f"{chosen_root}/lib64")
    return CudaToolkits(
        chosen=chosen,
        how=how,
        found=tuple(found),
        cuda_home_missing=absent,
        curand_by_default=_linked_by_default(host, "libcurand.so", torch),
        cuda_by_default=_linked_by_default(host, "libcuda.so", torch, *added),
    )


#: nvcc of the package `nvidia-cuda-toolkit`, and the link to a gcc that this release accepts, whose
#: folder nvcc.profile puts first on PATH (Debian 9 to 12, Ubuntu 18.04 to 24.04; lists of the
#: package's files, and a measurement on 24.04, where nvcc 12.0 compiles with gcc 12; 2026-11-23).
_PACKAGED_NVCC = "/usr/bin/nvcc"
_PACKAGED_GCC = "/usr/lib/nvidia-cuda-toolkit/bin/gcc"


def _compiler_of_package(host: Host, nvcc: str | None) -> str | None:
    return _PACKAGED_GCC if nvcc == _PACKAGED_NVCC and exists(host, _PACKAGED_GCC) else None


def _with_trial_compile(host: Host, toolkit: Toolkit, torch: TorchBuild) -> Toolkit:
    """The toolkit with the outcome of a trial compile against torch's headers (`--deep`)."""
    if not toolkit.usable or toolkit.nvcc is None or not torch.cuda or not torch.path:
        return toolkit
    # torch 2.12 and later need C++20
    major, minor = (int(part) for part in str(torch.version).split(".")[:2])
    standard = "c++20" if (major, minor) >= (2, 12) else "c++17"
    script = Path(__file__).parent / "children" / "trial_compile.py"
    argv = [str(host.query("executable")), str(script), toolkit.nvcc, toolkit.root, torch.path]
    argv += [standard, *([host.env["CC"]] if host.env.get("CC") else [])]
    result = host.run(argv, timeout=TRIAL_SECONDS)
    if result.timed_out:
        words = f"the trial compile did not end within {TRIAL_SECONDS:g} s"
        return msgspec.structs.replace(toolkit, trial_ok=False, trial_error=words)
    for record in decode(result.stdout):
        if "ok" in record:
            error = None if record["ok"] else str(record.get("error", ""))
            return msgspec.structs.replace(toolkit, trial_ok=bool(record["ok"]), trial_error=error)
    return toolkit


def _in_parallel(
    host: Host, programs: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """Versions of several nvcc in parallel, so one that hangs does not delay the others."""
    answers = at_once(lambda nvcc: _nvcc_version(host, nvcc), programs.values())
    return dict(zip(programs, answers, strict=True))
