"""Puts the stand-in libraries into an environment that has a CUDA build of torch and nothing of NVIDIA's.

    python tests/standin/build.py libraries    what torch is linked against, and the driver
    python tests/standin/build.py requirements prints what else torch requires
    python tests/standin/build.py operators    torch's operators on the CPU (needs the former)
    python tests/standin/build.py fused_adam   DeepSpeed's op, as if it were pre-built

Run with the interpreter of that environment. The libraries lie where NVIDIA's wheels would put them,
so torch finds them by its own search path; distributions of the versions that torch requires are
recorded, so that what reads package metadata sees a complete environment. The driver's two libraries
lie in a folder of their own, for LD_LIBRARY_PATH (`driver`).

What torch needs and we do not implement is refused: a stub for each symbol that `nm` finds undefined.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
PACKAGES = Path(sysconfig.get_path("purelib"))
HOME = Path(sys.prefix) / "standin"
DRIVER = HOME / "driver"
OPERATORS = HOME / "libstandin.so"

#: Folder of NVIDIA's wheel below `nvidia/` (CUDA 12), by the library's name.
FOLDERS = {
    "libcudart": "cuda_runtime", "libcublas": "cublas", "libcublasLt": "cublas", "libcudnn": "cudnn",
    "libcusparse": "cusparse", "libcusparseLt": "cusparselt", "libcufft": "cufft",
    "libcurand": "curand", "libcusolver": "cusolver", "libcupti": "cuda_cupti", "libnccl": "nccl",
    "libcufile": "cufile", "libnvshmem_host": "nvshmem", "libnvrtc": "cuda_nvrtc",
}  # fmt: skip
#: Symbols that carry no library's name as their version, by their first letters.
PREFIXES = {
    "nccl": "libnccl", "cuFile": "libcufile", "cusparseLt": "libcusparseLt",
    "curand": "libcurand", "nvshmem": "libnvshmem_host", "nvrtc": "libnvrtc",
    "cudnn": "libcudnn", "cusolver": "libcusolver", "cusparse": "libcusparse",
    "cublasLt": "libcublasLt", "cublas": "libcublas", "cufft": "libcufft", "cupti": "libcupti",
    "cuda": "libcudart", "__cuda": "libcudart",
}  # fmt: skip
#: "Not supported" in each library's own enumeration; 1 where it has none.
REFUSALS = {"libcudart": 801, "libcublas": 15, "libcublasLt": 15, "libcudnn": 3000,
            "libcusparse": 10, "libcusparseLt": 10, "libcufft": 16, "libcusolver": 7,
            "libcupti": 27}  # fmt: skip
IMPLEMENTED = {"libcudart": "cudart.cpp", "libcudnn": "cudnn.cpp", "libnccl": "nccl.cpp"}


def output_of(*command: str | Path) -> str:
    """Return what a tool of binutils prints."""
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    ).stdout


def compile_library(
    target: Path,
    sources: list[Path],
    *flags: str,
    soname: str = "",
    version: str = "",
    optimize: str = "-O2",
) -> None:
    """Compile a shared library whose symbols carry `version`, as NVIDIA's do."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-std=c++20", optimize, "-shared", "-fPIC", "-fvisibility=hidden", "-Wall"]
    command += ["-Wextra", f"-Wl,-soname,{soname or target.name}", "-o", str(target)]
    if version:
        script = HOME / f"{target.name}.map"
        script.write_text(f"{version} {{ global: *; }};\n", "utf-8")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run([*command, *map(str, sources), *flags, "-ldl", "-lpthread"], check=True)


def needed(libraries: list[Path]) -> tuple[dict[str, str], dict[str, set[str]], str]:
    """What torch's libraries are linked against.

    Returns:
        library to its soname, library to the undefined symbols that it must have, and the
        folders where torch looks.
    """
    sonames: dict[str, str] = {}
    symbols: dict[str, set[str]] = {}
    path = ""
    for library in libraries:
        dynamic = output_of("readelf", "-d", library)
        for soname in re.findall(r"NEEDED.*\[(lib[^\]]+)\]", dynamic):
            if soname.partition(".")[0] in FOLDERS:
                sonames[soname.partition(".")[0]] = soname
        path += "".join(re.findall(r"R(?:UN)?PATH.*\[([^\]]+)\]", dynamic))
        for line in output_of("nm", "-D", "--undefined-only", library).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            owner = version.lstrip("@").partition(".")[0]
            if owner not in FOLDERS:
                owner = next((PREFIXES[p] for p in PREFIXES if symbol.startswith(p)), "")
            if owner:
                symbols.setdefault(owner, set()).add(symbol)
    return sonames, symbols, path


def stubs(name: str, symbols: set[str], have: str) -> str:
    """C that refuses every symbol that the source `have` does not define."""
    left = sorted(s for s in symbols if not re.search(rf"\b{s}\b", have))
    refusal = REFUSALS.get(name, 1)
    lines = [
        f'extern "C" __attribute__((visibility("default"))) long {symbol}() {{ return {refusal}; }}'
        for symbol in left
    ]
    return "\n".join(lines) + "\n"


def pinned(name: str) -> int:
    """Return the release of a distribution that torch pins, as cuDNN and NCCL count: 22705."""
    found = next(version for full, version in nvidia_requirements() if full.startswith(name))
    major, minor, patch = (int(part) for part in found.split(".")[:3])
    return major * 10000 + minor * 100 + patch


def nvidia_requirements() -> list[tuple[str, str]]:
    """Return NVIDIA's distributions that torch pins."""
    found = []
    for line in metadata.requires("torch") or ():
        match = re.match(r"(nvidia-[\w-]+|cuda-[\w-]+)(?:\[[^\]]*\])?\s*==\s*([\w.]+)", line)
        if match:
            found.append((match[1], match[2]))
    return found


def cuda_version() -> str:
    """Return the CUDA release of this torch, read without importing it."""
    text = (PACKAGES / "torch" / "version.py").read_text("utf-8")
    match = re.search(r"cuda[^=\n]*= '([\d.]+)'", text)
    if match is None:
        raise SystemExit("this torch is not a CUDA build")
    return match[1]


def libraries() -> None:
    """The driver, the runtime, NCCL, and refusals for the rest."""
    torch = PACKAGES / "torch" / "lib"
    sonames, symbols, path = needed(sorted(torch.glob("*.so")))
    major, minor = (int(part) for part in cuda_version().split("."))
    work = HOME / "stubs"
    work.mkdir(parents=True, exist_ok=True)
    for name, soname in sonames.items():
        folder = FOLDERS[name]
        if f"nvidia/{folder}/lib" not in path:
            folder = f"cu{major}"
        source = IMPLEMENTED.get(name)
        have = (SOURCES / source).read_text("utf-8") if source else ""
        refused = work / f"{name}.cpp"
        refused.write_text(stubs(name, symbols.get(name, set()), have), "utf-8")
        versioned = {"libnccl": "", "libcufile": "", "libcusparseLt": ""}
        compile_library(
            PACKAGES / "nvidia" / folder / "lib" / soname,
            [*([SOURCES / source] if source else []), refused],
            f"-DCUDART_VERSION={major * 1000 + minor * 10}",
            f"-DCUDNN_VERSION={pinned('nvidia-cudnn')}",
            f"-DNCCL_VERSION={pinned('nvidia-nccl')}",
            soname=soname,
            version="NVSHMEM" if name == "libnvshmem_host" else versioned.get(name, soname),
        )
    compile_library(DRIVER / "libcuda.so.1", [SOURCES / "cuda.cpp"])
    for name, version in nvidia_requirements():
        record(name, version)
    shutil.copy(HERE / "hook.py", PACKAGES / "standin_hook.py")
    (PACKAGES / "standin.pth").write_text(
        "import os; os.environ.get('FAKE_NVML') and __import__('standin_hook')\n", "utf-8"
    )


def requirements() -> None:
    """Print what torch requires beside NVIDIA's libraries."""
    for line in metadata.requires("torch") or ():
        if "extra ==" not in line and not re.match(r"nvidia-|cuda-toolkit", line):
            print(line)


def record(name: str, version: str) -> None:
    """Note a distribution as installed."""
    folder = PACKAGES / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: stand-in\n", "utf-8"
    )
    (folder / "INSTALLER").write_text("standin\n", "utf-8")
    (folder / "RECORD").write_text("", "utf-8")


def torch_flags() -> list[str]:
    """Return how a C++ file is compiled against this torch."""
    torch = PACKAGES / "torch"
    include = torch / "include"
    return [
        f"-I{include}", f"-I{include / 'torch/csrc/api/include'}",
        f"-I{sysconfig.get_path('include')}", f"-L{torch / 'lib'}", "-ltorch", "-ltorch_cpu",
        "-lc10", "-lc10_cuda", "-Wno-unused-parameter", f"-Wl,-rpath,{torch / 'lib'}",
    ]  # fmt: skip


def operators() -> None:
    """torch's CUDA operators, computed on the CPU."""
    compile_library(OPERATORS, [SOURCES / "operators.cpp"], *torch_flags())


def fused_adam() -> None:
    """DeepSpeed's fused_adam, recorded as pre-built."""
    deepspeed = PACKAGES / "deepspeed"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    target = deepspeed / "ops" / "adam" / f"fused_adam_op{suffix}"
    compile_library(
        target, [SOURCES / "fused_adam.cpp"], "-DTORCH_EXTENSION_NAME=fused_adam_op",
        "-ltorch_python", *torch_flags(),
    )  # fmt: skip
    installed = deepspeed / "git_version_info_installed.py"
    text = installed.read_text("utf-8")
    text = re.sub(r"'fused_adam': False", "'fused_adam': True", text)
    # what a machine with a GPU notes; DeepSpeed ignores ops that were built for another accelerator
    text = re.sub(r"accelerator_name='\w+'", "accelerator_name='cuda'", text)
    installed.write_text(text, "utf-8")


PARTS = {
    "libraries": libraries,
    "requirements": requirements,
    "operators": operators,
    "fused_adam": fused_adam,
}

if __name__ == "__main__":
    for part in sys.argv[1:]:
        PARTS[part]()
