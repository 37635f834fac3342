"""Reads what compiles DeepSpeed's ops: CUDA toolkits, host compilers, ninja, the cache.

Over 400 lines because every place where a toolkit can be is searched here.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor.api import (
    BuildLock,
    Compiler,
    Compilers,
    CudaToolkits,
    ExtensionCache,
    Missing,
    Patient,
    RunNeeds,
    Toolkit,
    TorchBuild,
    Why,
    probe,
)
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists
from dsdoctor.probes.at_once import at_once
from dsdoctor.probes.nvidia import trouble
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
}
#: Programs that work in a build folder while it is being built.
_BUILDERS = re.compile(
    r"(?:\S*-)?(?:ninja|nvcc|cicc|ptxas|fatbinary|cudafe\+\+|cc1(?:plus)?|collect2|gcc|g\+\+|cc|c\+\+"
    r"|clang(?:\+\+)?|as|ld(?:\.\w+)?|hipcc)(?:-[\d.]+)?(?:\.exe)?",
)


# ---- toolkits ----------------------------------------------------------------------------------


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


def _resolved(host: Host, path: str) -> str:
    try:
        return host.readlink(path)
    except HostError:
        return path


def _glob(host: Host, pattern: str) -> list[str]:
    try:
        return host.glob(pattern)
    except HostError:
        return []


def _header_folders(host: Host, root: str) -> list[str]:
    return [f"{root}/include", *_glob(host, f"{root}/targets/*/include")]


def missing_headers(host: Host, root: str) -> tuple[str, ...]:
    """Headers of NEEDED_HEADERS that are not under a toolkit's folder."""
    folders = _header_folders(host, root)
    return tuple(
        header
        for header, places in NEEDED_HEADERS.items()
        if not any(exists(host, f"{folder}/{place}") for folder in folders for place in places)
    )


def _has_cudart(host: Host, root: str) -> bool:
    if any(exists(host, f"{root}/{folder}/libcudart.so") for folder in ("lib64", "lib")):
        return True
    return bool(
        _glob(host, f"{root}/targets/*/lib/libcudart.so")
        or _glob(host, f"{root}/lib/*-linux-gnu/libcudart.so")
    )


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
    for folder in ["/usr/local/cuda", *_glob(host, "/usr/local/cuda-*")]:
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
            for nvcc in _glob(host, f"{folder}/nvidia/*/bin/nvcc"):
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
            roots.setdefault(_resolved(host, root), (root, source))
    if chosen_root is not None:
        # /usr/local/cuda without a compiler in it is still what torch takes
        roots.setdefault(_resolved(host, chosen_root), (chosen_root, "/usr/local"))
    nvccs = {real: _nvcc_of(host, root) for real, (root, _) in roots.items()}
    programs = {_resolved(host, nvcc): nvcc for nvcc in nvccs.values() if nvcc}
    answers = _in_parallel(host, programs)
    found: list[Toolkit] = []
    for real, (root, source) in roots.items():
        nvcc = nvccs[real]
        version, error = answers[_resolved(host, nvcc)] if nvcc else (None, None)
        found.append(
            Toolkit(
                root=root,
                source=source,
                nvcc=nvcc,
                version=version,
                error=error,
                missing_headers=missing_headers(host, root),
                has_cudart=_has_cudart(host, root),
                host_compiler=_compiler_of_package(host, nvcc),
            )
        )
    chosen = None if chosen_root is None else list(roots).index(_resolved(host, chosen_root))
    if run.deep and chosen is not None and not isinstance(torch, Missing):
        found[chosen] = _with_trial_compile(host, found[chosen], torch)
    return CudaToolkits(chosen=chosen, how=how, found=tuple(found), cuda_home_missing=absent)


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


# ---- compilers ---------------------------------------------------------------------------------


def parse_compiler(text: str) -> tuple[str | None, str | None]:
    r"""Kind and version of a compiler, from `--version`.

    >>> parse_compiler("c++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) Free Software Foundation")
    ('gcc', '12.2.0')
    >>> parse_compiler("Ubuntu clang version 14.0.0-1ubuntu1.1\nTarget: x86_64")
    ('clang', '14.0.0')
    >>> parse_compiler("hello")
    (None, None)
    """
    clang = re.search(r"\bclang version (\d+(?:\.\d+)*)", text)
    if clang:
        return "clang", clang[1]
    if "Free Software Foundation" in text:
        bare = re.sub(r"\([^)]*\)", "", text.splitlines()[0])
        version = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", bare)
        return "gcc", version[1] if version else None
    other = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text.splitlines()[0] if text else "")
    return None, other[1] if other else None


def parse_dump_version(text: str) -> str | None:
    r"""Version in the output of `gcc -dumpfullversion -dumpversion`.

    >>> parse_dump_version("12.2.0\n"), parse_dump_version("cc: error")
    ('12.2.0', None)
    """
    found = re.fullmatch(r"\d+(?:\.\d+)*", text.strip())
    return found[0] if found else None


def _words(command: str) -> list[str]:
    """The words of a command line; one with an open quote is split at spaces."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _find(host: Host, program: str) -> str | None:
    if "/" in program:
        return program if exists(host, program) else None
    return host.which(program)


def compiler(host: Host, command: str) -> Compiler:
    """One compiler, called as a build would call it (also a command such as `ccache g++ -m64`)."""
    words = _words(command)
    path = _find(host, words[0]) if words else None
    if path is None:
        return Compiler(command=command)
    argv = [path, *words[1:]]
    try:
        result = host.run([*argv, "--version"], timeout=TOOL_SECONDS)
    except HostError as error:
        return Compiler(command=command, path=path, error=error.missing.detail)
    if (wrong := trouble(result, TOOL_SECONDS)) is not None:
        return Compiler(command=command, path=path, error=wrong)
    kind, version = parse_compiler(result.text)
    if kind == "gcc":
        with contextlib.suppress(HostError):
            dump = host.run([*argv, "-dumpfullversion", "-dumpversion"], timeout=TOOL_SECONDS)
            version = (parse_dump_version(dump.text) if dump.ok else None) or version
    error_words = None if version else "its output contains no version"
    return Compiler(command=command, path=path, kind=kind, version=version, error=error_words)


@probe
def compilers(host: Host, patient: Patient | Missing) -> Compilers:
    """The host compilers and ninja."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "compilers are not looked for on Windows")
    commands = [host.env.get("CXX") or "c++", host.env.get("CC") or "cc"]
    cxx, cc = at_once(lambda command: compiler(host, command), commands)
    beside = None
    if isinstance(patient, Patient) and patient.bin_dir:
        candidate = posixpath.join(patient.bin_dir, "ninja")
        beside = candidate if exists(host, candidate) else None
    ninja = host.which("ninja")
    return Compilers(
        cxx=cxx,
        cc=cc,
        ninja=ninja,
        ninja_in_env=beside,
        ninja_error=None if ninja is None else _ninja_error(host, ninja),
    )


def _ninja_error(host: Host, ninja: str) -> str | None:
    """What fails when torch tries ninja (`verify_ninja_availability`); None = nothing."""
    try:
        result = host.run([ninja, "--version"], timeout=TOOL_SECONDS)
    except HostError:  # a recording without it
        return None
    return trouble(result, TOOL_SECONDS)


# ---- the cache of built ops --------------------------------------------------------------------


def cache_root(host: Host) -> tuple[str, bool]:
    """Where torch puts JIT-built ops, and whether TORCH_EXTENSIONS_DIR sets that."""
    given = host.env.get("TORCH_EXTENSIONS_DIR")
    if given:
        return given.rstrip("/") or "/", True
    home = host.env.get("HOME") or str(host.query("home"))
    if host.system == "Darwin":
        return f"{home}/Library/Caches/torch_extensions", False
    cache = host.env.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return f"{cache.rstrip('/')}/torch_extensions", False


def python_tag(version: str) -> str | None:
    """How the cache's folders for a Python version begin.

    >>> python_tag("3.11.7"), python_tag("?")
    ('py311_', None)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return f"py{found[1]}{found[2]}_" if found else None


def builders_in(folder: str, processes: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Pids of compilers and build tools that work in a folder, and of the holder of its lock.

    torch keeps the lock file open from the beginning of a build to its end (`FileBaton` of
    torch/utils/file_baton.py); those that wait for it do not open it.

    >>> builders_in("/c/op", [
    ...     {"pid": 1, "name": "ninja", "argv": ["ninja", "-v"], "cwd": "/c/op"},
    ...     {"pid": 2, "name": "bash", "argv": ["bash"], "cwd": "/c/op"},
    ...     {"pid": 3, "name": "ninja", "argv": ["ninja"], "cwd": "/elsewhere"},
    ...     {"pid": 4, "name": "python", "locks": ["/c/op/lock"]},
    ... ])
    (1, 4)
    """
    inside = re.compile(re.escape(folder.rstrip("/")) + r"(?:/|$|\s)")
    found: list[int] = []
    for process in processes:
        argv = [str(word) for word in process.get("argv") or ()]
        names = {str(process.get("name", "")), posixpath.basename(argv[0]) if argv else ""}
        if f"{folder.rstrip('/')}/lock" in process.get("locks", ()):
            found.append(int(process["pid"]))
            continue
        if not any(_BUILDERS.fullmatch(name) for name in names):
            continue
        if any(inside.search(text) for text in (str(process.get("cwd", "")), *argv)):
            found.append(int(process["pid"]))
    return tuple(found)


def _lock(host: Host, path: str, processes: Sequence[Mapping[str, Any]]) -> BuildLock | None:
    try:
        made = host.stat(path).mtime
    except HostError:
        return None  # its build has just ended
    folder = posixpath.dirname(path)
    builders = {*builders_in(folder, processes), *builders_in(_resolved(host, folder), processes)}
    return BuildLock(
        path=path,
        op=posixpath.basename(folder),
        age_seconds=max(0.0, time.time() - made),
        builders=tuple(sorted(builders)),
    )


def _writable(host: Host, path: str) -> bool:
    """Whether a folder, or else the nearest parent that exists, may be written to."""
    while True:
        try:
            found = host.stat(path)
        except HostError as error:
            parent = posixpath.dirname(path)
            if error.missing.why is not Why.ABSENT or parent == path:
                return False
            path = parent
            continue
        return found.kind == "dir" and found.writable


@probe
def extension_cache(host: Host, patient: Patient | Missing) -> ExtensionCache:
    """The cache of JIT-built ops: its place, its content, and running builds."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "the cache of built ops is not examined on Windows")
    root, from_env = cache_root(host)
    if from_env:
        folders = f"{root}/*"  # torch adds no sub-folder for the Python and CUDA versions there
    else:
        # a lock of another Python version does not block builds here
        tag = python_tag(patient.version) if isinstance(patient, Patient) else None
        folders = f"{root}/{tag or 'py'}*/*"
    locks = _glob(host, f"{folders}/lock")
    processes: list[dict[str, Any]] = []
    if locks:
        with contextlib.suppress(HostError):
            processes = list(host.query("processes"))
    built = {posixpath.basename(posixpath.dirname(path)) for path in _glob(host, f"{folders}/*.so")}
    free = None
    with contextlib.suppress(HostError):
        free = host.disk(root).free
    return ExtensionCache(
        root=root,
        from_env=from_env,
        writable=_writable(host, root),
        locks=tuple(lock for path in locks if (lock := _lock(host, path, processes))),
        built=tuple(sorted(built)),
        free_bytes=free,
    )
