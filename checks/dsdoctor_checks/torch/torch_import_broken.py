"""torch is installed but cannot be imported.

## Why it matters
Every rank exits or hangs at its first line. How the import fails shows the kind of fault: an
ImportError points to a package or symbol, an OSError to a shared library, a signal to native code, and
a hang to a file system or a lock.

## What to do
Read the last line of the error. For a library, unset `LD_LIBRARY_PATH` and `LD_PRELOAD` and try again.
For a symbol, reinstall torch together with its `nvidia-*` wheels. For a hang, check the file system
that contains the environment.

## References
- torch/__init__.py: `_load_global_deps`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DamagedPackages,
    Environment,
    Finding,
    ImportOutcome,
    Level,
    LibraryPath,
    Missing,
    Packages,
    Resources,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    TracebackRule,
    check,
    fail,
    skip,
    without_fix,
)
from dsdoctor_checks._killed import killed, shortage
from dsdoctor_checks._util import variable

from ..python._util import (  # noqa: TID252  # families of one pack share it
    normalized,
    plainly_met,
)
from ..python.package_damaged import described, reported  # noqa: TID252

CONDITION = Condition(
    "torch-import-broken",
    id="DSD303",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-torch-build",),
    narrower=(
        "account-unknown",
        "variable-refused",
        "glibc-too-old",
        "libstdcxx-too-old",
        "cuda-runtime-lib-mismatch",
        "nccl-version-mismatch",
        "numpy-abi-2",
        "cudnn-mismatch",
        "module-shadowed-by-cwd",
        "ld-library-path-shadows-torch",
        "compiled-extension-broken",
    ),
)
_OF_A_MODULE = ("ImportError", "ModuleNotFoundError")
_REINSTALL = "reinstall torch with its `nvidia-*` wheels in a new environment"
_FIRST_LINE = "every rank exits at its first line"


def _stated(kind: str, words: str) -> tuple[str, str, str]:
    """Message, effect and hint, as whole sentences, of an import that ended in some way."""
    if kind == "hang":
        return (
            f"`import torch` does not finish: `{words}`",
            "the job hangs without a message",
            (
                "check whether the environment is on a slow or dead file system, then run it by "
                "hand with `python -X importtime -c 'import torch'`"
            ),
        )
    if kind == "signal":
        return (
            f"`import torch` is killed by `{words}`",
            "every rank exits at its first line, without a traceback",
            f"run `python -X faulthandler -c 'import torch'` to find where, then {_REINSTALL}",
        )
    if kind == "OSError":
        return (
            f"`import torch` cannot load a shared library: `{kind}: {words}`",
            _FIRST_LINE,
            f"unset `LD_LIBRARY_PATH` and `LD_PRELOAD` and try again; if it still fails, {_REINSTALL}",
        )
    return (
        f"`import torch` fails with `{kind}: {words}`",
        _FIRST_LINE,
        f"follow the last line of the error, or {_REINSTALL}",
    )


def _requirement_named(outcome: ImportOutcome, packages: Packages | Missing) -> str:
    """The package whose lack or release the error is about, and which torch requires; "" = none.

    Reinstalling torch is not the remedy then.
    """
    if isinstance(packages, Missing) or outcome.error_type not in _OF_A_MODULE:
        return ""
    for text in packages.requires.get("torch", ()):
        found = re.match(r"\s*([\w.-]+)", text)
        name = normalized(found[1]) if found else ""
        named = re.search(rf"'{re.escape(name.replace('-', '_'))}[.']", outcome.message or "")
        if name and named and "extra ==" not in text and not plainly_met(text, packages):
            return name
    return ""


@check(CONDITION)
def torch_imports(
    torch: TorchBuild,
    live: TorchLive,
    library_path: LibraryPath | Missing,
    resources: Resources | Missing,
    packages: Packages | Missing,
    damaged: DamagedPackages | Missing,
    env: Environment | Missing,
) -> Iterator[Finding]:
    """Judges the import in a child process of the environment's interpreter."""
    outcome = live.imported
    if outcome.ok:
        return
    if not torch.installed:
        yield skip("torch is not installed")
        return
    if killed(outcome):
        yield shortage(outcome, "torch", resources)
        return
    if name := _requirement_named(outcome, packages):
        yield skip(f"torch requires another `{name}`: dependency-version-conflict reports that")
        return
    if others := reported(damaged):
        yield skip(f"package-damaged reports {others}")
        return
    kind = outcome.error_type or "error"
    lines = (outcome.message or live.died or "").strip().splitlines()
    words = lines[-1].rstrip(".") if lines else "no message"
    message, effect, hint = _stated(kind, words)
    own = () if isinstance(damaged, Missing) else damaged.packages
    if own:
        message += f"; {described(own[0])}"
        hint = f"check that the file system is not full, then {_REINSTALL}"
    entries = list(library_path.entries) if isinstance(library_path, LibraryPath) else []
    finding = fail(
        message,
        effect=effect,
        hint=hint,
        torch=torch.version,
        error_type=outcome.error_type,
        error=outcome.message,
        signal=outcome.signal,
        died=live.died,
        last_step=live.last_step,
        seconds=outcome.seconds,
        traceback=outcome.traceback,
        error_text=f"{outcome.message or ''}\n{outcome.traceback}",
        ld_library_path=entries,
    )
    # what PYTHONPATH lists comes before whatever would be installed
    beyond = kind == "hang" or _is_on_pythonpath(packages, env)
    yield without_fix(finding) if beyond else finding


def _is_on_pythonpath(packages: Packages | Missing, env: Environment | Missing) -> bool:
    """Whether torch is imported from a folder of PYTHONPATH."""
    torch = None if isinstance(packages, Missing) else packages.packages.get("torch")
    place = torch.location if torch is not None else None
    entries = (variable(env, "PYTHONPATH") or "").split(":")
    return bool(place) and place in {entry.rstrip("/") for entry in entries}


HINT = (
    "reinstall torch; `dsdoctor fix install-torch-build` keeps the build that the driver supports"
)

#: A folder without `__init__.py` is imported as an empty package, which lacks every name.
_NO_INIT = "the folder of torch is there, but its `__init__.py` is not: an installation or its removal was interrupted"
_AGAIN = (
    "remove the rest and install it again: `python -m pip uninstall -y torch`, then delete `torch` in"
    " `site-packages`; if `torch` is a folder of the project, rename it"
)

SIGNATURES = (
    Signature(
        pattern=r"^ImportError: cannot import name '\w{1,60}' from 'torch' \(unknown location\)",
        source="python 3.7-3.14 Python/ceval.c",
        message=_NO_INIT,
        hint=_AGAIN,
        examples=("ImportError: cannot import name 'inf' from 'torch' (unknown location)",),
        not_examples=("ImportError: cannot import name '' from 'torch' (unknown location)",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        # torch's own file, before anything of another package
        pattern=r"^AttributeError: module 'torch' has no attribute '\w",
        source="python 3.5-3.14 Objects/moduleobject.c; torch 2.0-2.13 distributed/__init__.py",
        message=_NO_INIT,
        hint=_AGAIN,
        near=('/torch/distributed/__init__.py", line ',),
        examples=("AttributeError: module 'torch' has no attribute 'SymInt'",),
        not_examples=("AttributeError: module 'torch' has no attribute ''",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"(?<![\w.-])(?P<library>lib[\w.-]{1,100}\.so[\w.]{0,20}): cannot enable executable stack as shared object requires",
        source="glibc 2.41 elf/dl-execstack.c, with strerror of EINVAL",
        message="glibc refuses to load `{library}`, which requires an executable stack",
        hint="install a newer build of that package, or start with `GLIBC_TUNABLES=glibc.rtld.execstack=2`",
        examples=(
            "ImportError: libtorch_cpu.so: cannot enable executable stack as shared object requires: Invalid argument",
            "ImportError: librccl.so.1: cannot enable executable stack as shared object requires: Invalid argument",
        ),
        not_examples=("error: x.so: cannot enable executable stack as shared object requires",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?P<library>/[\w./+-]+\.so[\w.]*): cannot allocate memory in static TLS block",
        source="glibc 2.17-2.41 elf/dl-reloc.c",
        message="`{library}` was loaded too late for its thread-local memory",
        hint="run `export LD_PRELOAD={library}`, or import torch before other packages",
        examples=(
            "OSError: /v/torch/lib/libgomp-d22c30c5.so.1: cannot allocate memory in static TLS block",
        ),
        not_examples=("libgomp.so.1: cannot allocate memory in static TLS block",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\blib(?:hccl|ascendcl|atb|ascend_hal)\.so: cannot open shared object file",
        source="glibc 2.17-2.41 elf/dl-load.c, for torch_npu 2.0-2.8",
        message="torch_npu does not find the libraries of CANN",
        hint="run `source /usr/local/Ascend/ascend-toolkit/set_env.sh` in the shell of the job",
        examples=(
            "ImportError: libhccl.so: cannot open shared object file: No such file or directory",
            "ImportError: libascendcl.so: cannot open shared object file: No such file or directory",
            "ImportError: libatb.so: cannot open shared object file: No such file or directory",
            "ImportError: libascend_hal.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        # an extension that does not find them was built for another torch: cxx-abi-undefined-symbol
        pattern=r"\b(?P<library>lib(?:c10|torch|shm)(?:_\w{1,20})?\.so): cannot open shared object file",
        source="glibc 2.17-2.41 elf/dl-load.c, while torch 1.13-2.13 __init__.py loads its own libraries",
        message="torch does not find its own `{library}`: its installation is incomplete",
        examples=(
            "ImportError: libc10.so: cannot open shared object file: No such file or directory",
            "ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory",
            "ImportError: libshm.so: cannot open shared object file: No such file or directory",
            "OSError: /x/torch/lib/libtorch_global_deps.so: cannot open shared object file: No such file or directory",
        ),
        not_examples=(
            "ImportError: libtorchtext.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
        near=("from torch._C import", "in _load_global_deps"),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"torch/lib/\S+: (?:file too short|invalid ELF header)",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: /x/torch/lib/libc10.so: file too short",
            "ImportError: /x/torch/lib/libtorch_cpu.so: invalid ELF header",
        ),
        not_examples=(
            "ImportError: /shared/torch_extensions/py310_cu121/utils/utils.so: file too short",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        # glibc says so if `read` failed, not if the file is short
        pattern=r"(?:torch/lib/|site-packages/nvidia/)\S{0,200}?(?P<library>lib[\w.+-]{2,60}): cannot read file data",
        source="glibc 2.17-2.41 elf/dl-load.c, open_verify",
        message="`{library}`, which torch loads, cannot be read",
        hint=(
            "read that file with `cat`: if that shows an error too, the disk, the network file system or the"
            " permissions are at fault (see `dmesg`); else reinstall the package that has it"
        ),
        examples=(
            "ImportError: /x/site-packages/torch/lib/../../../../libcufft.so.10: cannot read file data",
            "ImportError: /x/site-packages/nvidia/cublas/lib/libcublas.so.12: cannot read file data: Input/output error",
        ),
        not_examples=(
            "ImportError: /shared/torch_extensions/utils/utils.so: cannot read file data",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\b(?P<library>lib(?:sycl|ze_loader|ur_loader|pi_level_zero|mkl_sycl\w{0,20}|ccl|OpenCL)\.so[\d.]*): cannot open shared object file",
        source="glibc 2.17-2.41 elf/dl-load.c, for torch 2.4-2.13 (XPU) and intel_extension_for_pytorch 1.13-2.8",
        message="torch for Intel GPUs does not find `{library}` of oneAPI or of the driver",
        hint="run `source /opt/intel/oneapi/setvars.sh` in the shell of the job; for `libze_loader` install the GPU driver's package `level-zero`",
        examples=(
            "ImportError: libsycl.so.8: cannot open shared object file: No such file or directory",
            "ImportError: libze_loader.so.1: cannot open shared object file: No such file or directory",
            "ImportError: libur_loader.so.0: cannot open shared object file: No such file or directory",
            "ImportError: libpi_level_zero.so: cannot open shared object file: No such file or directory",
            "ImportError: libmkl_sycl_blas.so.5: cannot open shared object file: No such file or directory",
            "ImportError: libccl.so.1: cannot open shared object file: No such file or directory",
            "ImportError: libOpenCL.so.1: cannot open shared object file: No such file or directory",
        ),
        not_examples=("ImportError: libsyclx.so: cannot open shared object file",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\[WinError (?P<code>1114|182|126|127|193)\].{0,160}Error loading \"(?:[^\"]{0,200}\\(?P<library>[^\"\\]{1,60}\.dll)\")?",
        source="torch 1.5-2.13 __init__.py: _load_dll_libraries, with the words of Windows 10-11",
        message="Windows cannot load a DLL of torch (error {code})",
        hint="install the Visual C++ Redistributable (2015-2022, x64), then reinstall torch in a fresh environment; 126 and 127: a DLL that it needs is missing or of another release",
        examples=(
            'OSError: [WinError 1114] A dynamic link library (DLL) initialization routine failed. Error loading "C:\\py\\torch\\lib\\c10.dll" or one of its dependencies.',
            'OSError: [WinError 182] The operating system cannot run %1. Error loading "C:\\py\\torch\\lib\\shm.dll" or one of its dependencies.',
            'OSError: [WinError 126] The specified module could not be found. Error loading "D:\\env\\torch\\lib\\fbgemm.dll" or one of its dependencies.',
            'OSError: [WinError 127] The specified procedure could not be found. Error loading "D:\\env\\torch\\lib\\c10_cuda.dll" or one of its dependencies.',
            'OSError: [WinError 193] %1 is not a valid Win32 application. Error loading "D:\\env\\torch\\lib\\c10.dll" or one of its dependencies.',
        ),
        not_examples=('OSError: [WinError 2] Error loading "D:\\env\\other\\lib\\x.dll"',),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol", "dependency-version-conflict"),
    ),
    Signature(
        pattern=r"Could not find module '(?:[^']{1,200}\\)?torch\\lib\\(?P<library>[^'\\]{1,60}\.dll)'",
        source="CPython 3.8-3.14 Lib/ctypes/__init__.py on Windows, for torch 1.4-1.5 __init__.py",
        message="Windows cannot load `{library}` of torch, or a DLL that it needs",
        hint="install the Visual C++ Redistributable (2015-2022, x64), then reinstall torch in a fresh environment",
        examples=(
            "FileNotFoundError: Could not find module 'D:\\env\\Lib\\site-packages\\torch\\lib\\c10.dll' (or one of its dependencies). Try using the full path with constructor syntax.",
        ),
        not_examples=("FileNotFoundError: Could not find module 'D:\\env\\lib\\aio.dll'",),
        level=Level.STRONG,
    ),
)

#: While torch itself is being imported, a module that is missing is one that torch needs.
TRACEBACK_RULES = (
    TracebackRule(
        file="torch/__init__.py",
        function="<module>",
        kinds=("ModuleNotFoundError",),
        source="torch 1.13-2.13 __init__.py: what its modules import while it is loaded",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/__init__.py", line 7, in <module>\n  File "/env/lib/python3.11/site-packages/torch/serialization.py", line 8, in <module>\nModuleNotFoundError: No module named \'typing_extensions\'',
    ),
)
