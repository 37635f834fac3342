"""The host compiler for DeepSpeed's ops is missing or does not work.

## Why it matters
Every op that is built at first use is compiled by `$CXX` (default `c++`); nvcc calls the C compiler
`$CC`. `cpu_adam` needs the host compiler even without nvcc, and Triton needs a C compiler at run time.

## What to do
Install a compiler (`apt-get install build-essential`, `dnf install gcc-c++`), or point `CXX` and `CC`
to one.

## References
- torch/utils/cpp_extension.py: `get_cxx_compiler`, `-ccbin`
- DeepSpeed op_builder/builder.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Compiler,
    Compilers,
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Level,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    TracebackRule,
    check,
    ok,
    skip,
)

from . import _other_compiler_signatures
from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "jit-build-compiler-missing",
    id="DSD402",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-compiler",),
)


def _problem(compiler: Compiler, variable: str) -> str | None:
    command = f"`{compiler.command}`"
    if compiler.path is None:
        return f"the compiler {command} (`{variable}` or its default) is not on PATH"
    if compiler.version is None and compiler.error:
        return f"the compiler {command} at `{compiler.path}` does not work: {compiler.error}"
    return None


@check(CONDITION)
def compiler_is_found(
    compilers: Compilers,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Judges the C++ compiler; without a C compiler, only CUDA ops cannot be built."""
    if isinstance(os, OsInfo) and os.system == "Windows":
        yield skip("on Windows, MSVC builds the ops, and it is not examined")
        return
    ops = jit_ops(run, deepspeed, cache, own)
    if ops == ():
        yield ok("no op remains to be built")
        return
    for compiler, variable in ((compilers.cxx, "CXX"), (compilers.cc, "CC")):
        if (trouble := _problem(compiler, variable)) is None:
            continue
        yield tool_unusable(
            ops if variable == "CXX" else None,
            f"{trouble}, but building DeepSpeed ops requires it",
            effect="the first use of an op fails with `RuntimeError: Error building extension`",
            hint="install a C++ compiler (`apt-get install build-essential`, `dnf install gcc-c++`), "
            f"or set `{variable}` to one that works",
            command=compiler.command,
            path=compiler.path,
            error=compiler.error,
        )
        return


HINT = "install gcc and g++ (`build-essential`, `gcc-c++`), or set `CC` and `CXX`"

SIGNATURES = (
    *_other_compiler_signatures.SIGNATURES,
    Signature(
        pattern=r"'which', 'c\+\+'",
        source="torch 1.0-1.13 utils/cpp_extension.py, python 3.5-3.14 Lib/subprocess.py",
        examples=(
            "subprocess.CalledProcessError: Command '['which', 'c++']' returned non-zero exit status 1.",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"(?:\bc\+\+|g\+\+|gcc|clang\+\+|\bcc)(?:-\d+)?['\x22]?: (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=(
            "/bin/sh: 1: c++: not found",
            "/bin/sh: 1: /opt/gcc-13/bin/g++: not found",
            "gcc: not found",
            "clang++: not found",
            "sh: 1: x86_64-conda-linux-gnu-cc: not found",
        ),
        not_examples=("-bash: deepspeed: command not found",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"(?:No such file or directory|Errno 2\]).{0,30}(?:c\+\+|g\+\+|gcc|clang\+\+|\bcc)'",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENOENT",
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'g++'",
            "No such file or directory ... c++'",
            "No such file or directory ... gcc'",
            "No such file or directory ... clang++'",
            "No such file or directory ... cc'",
        ),
        not_examples=(
            "/opt/env/lib/python3.8/site-packages/deepspeed/ops/csrc/lamb/fused_lamb_cuda_kernel.cu:13:10: fatal error: THC/THC.h: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern="cannot execute .?cc1(?:plus)?",
        source="gcc 3-14 gcc/gcc.c",
        examples=("g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",),
        not_examples=("cannot execute is fine",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern="error trying to exec .?cc1",
        source="gcc 12.2.0 cc1plus, x86_64-linux-gnu-gcc-12",
        examples=("gcc: error trying to exec 'cc1plus': execvp: No such file or directory",),
        not_examples=("error trying to exec is fine",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern="Failed to find C compiler",
        source="triton 3.1.0 runtime/build.py",
        message="Triton finds no C compiler for its launchers",
        examples=(
            "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"No working C\+\+ compiler",
        source="torch 2.13.0 _inductor/exc.py",
        message="torch.compile finds no C++ compiler that works",
        examples=(
            "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern="InvalidCxxCompiler",
        source="torch 2.0-2.13 _inductor/exc.py",
        examples=(
            "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"command '\S*gcc' failed: No such",
        source="setuptools 60-84 _distutils/spawn.py, distutils of python 3.9-3.11",
        examples=("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",),
        not_examples=("'x86_64-linux-gnu-gcc' failed: No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"unable to execute '\S*(?:gcc|g\+\+)'",
        source="setuptools 50-84 _distutils/spawn.py",
        examples=(
            "unable to execute 'x1gcc'",
            "unable to execute 'x1g++'",
        ),
        not_examples=("unable to execute '/opt/cuda/bin/nvcc': No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"which: no (?:c|g)\+\+",
        source="GNU which 2.20-2.21 which.c",
        examples=("/usr/bin/which: no c++ in (/opt/env/bin:/usr/bin)",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"Error checking compiler version for (?:c|g|clang)\+\+",
        source="torch 1.0-2.13 utils/cpp_extension.py",
        examples=(
            "Error checking compiler version for c++: [Errno 2] No such file or directory: 'c++'",
            "WARNING: Error checking compiler version for g++: [Errno 2] No such file or directory: 'g++'",
            "Error checking compiler version for clang++: [Errno 2] No such file or directory: 'clang++'",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        pattern=r"(?:^|/|\s)(?:ba)?sh: (?:\d+: |line \d+: )?\S*(?:g\+\+|gcc|c\+\+|clang|-cc)\S*: (?:not found|No such file)",
        source="dash 0.5 src/exec.c, bash 3.2-5.2 execute_cmd.c",
        examples=(
            "/bin/sh: 1: /opt/x/bin/g++-13: not found",
            "sh: 1: x86_64-conda-linux-gnu-cc: not found",
            "/bin/sh: line 1: g++: No such file or directory",
            " sh: x1g++x1: not found",
            "/bin/sh: 1: /opt/gcc-13/bin/g++: not found",
            "/bin/sh: 1: c++: not found",
            "sh: x1clangx1: not found",
        ),
        not_examples=("sh: 1: foo: not found",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="Could not find (?:compiler set in|the compiler specified in the) environment variable (?:CC|CXX|CUDAHOSTCXX):",
        source="cmake 2.8-4.2, and 4.3-4.4 in other words, Modules/CMakeDetermineCCompiler.cmake, CMakeDetermineCXXCompiler.cmake",
        examples=(
            "  Could not find compiler set in environment variable CXX:",
            "  Could not find the compiler specified in the environment variable CC:",
            "  Could not find compiler set in environment variable CUDAHOSTCXX:",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="No CMAKE_CX?X?_COMPILER could be found",
        source="cmake 3.0-4.4 Source/cmGlobalGenerator.cxx",
        examples=(
            "  No CMAKE_CXX_COMPILER could be found.",
            "CMake Error: No CMAKE_C_COMPILER could be found.",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"No supported gcc/g\+\+ host compiler found|Failed to preprocess host compiler properties|Cannot find compiler 'cl\.exe' in PATH",
        source="nvcc 9-13",
        examples=(
            "nvcc fatal   : No supported gcc/g++ host compiler found, but clang-14 is available.",
            "nvcc fatal   : Failed to preprocess host compiler properties.",
            "Cannot find compiler 'cl.exe' in PATH",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        pattern=r"nvcc fatal\s{0,4}: (?:Unsupported NVHPC|Cannot find compiler|Failed to preprocess host compiler|Host compiler targets|Could not (?:set up|open)|Compiler '[^']{1,80}' in PATH)",
        source="nvcc 9-13",
        examples=(
            "nvcc fatal   : Unsupported NVHPC compiler found. nvc++ is the only NVHPC compiler that is supported.",
            "nvcc fatal   : Cannot find compiler 'cl.exe' in PATH",
            "nvcc fatal   : Failed to preprocess host compiler properties.",
            "nvcc fatal : Host compiler targets",
            "nvcc fatal : Could not set up",
            "nvcc fatal : Compiler 'x' in PATH",
        ),
        not_examples=("nvcc fatal   : Unsupported gpu architecture 'compute_90'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"(?:^|\s|/)(?:gcc|g\+\+|c\+\+|cc): error: (?!unrecognized|unknown argument|no input)",
        source="gcc 4.8-14 gcc/gcc.c",
        examples=(
            "gcc: error: : No such file or directory",
            "g++: error: /x/build/flatten.o: No such file or directory",
            "x86_64-conda-linux-gnu-c++: gcc: error: spawn: not found",
            "/gcc: error: ",
            "c++: error: ",
            "cc: error: ",
        ),
        not_examples=("gcc: error: unrecognized command line option '-std=c++17'",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"'which', '\S*(?:c\+\+|g\+\+|gcc|clang|-cc)\S*'\]' returned|error: command '\S*(?:g\+\+|c\+\+|gcc|clang|/cc)\S*' failed: No such file",
        source=(
            "python 3.5-3.14 Lib/subprocess.py, for torch 1.0-2.13 utils/cpp_extension.py; "
            "setuptools 60-84 _distutils/spawn.py"
        ),
        examples=(
            "subprocess.CalledProcessError: Command '['which', 'x86_64-linux-gnu-g++']' returned non-zero exit status 1.",
            "error: command '/usr/bin/g++' failed: No such file or directory",
            "error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
        ),
        not_examples=(
            "subprocess.CalledProcessError: Command '['which', 'git']' returned non-zero exit status 1.",
            "error: command '/usr/local/cuda/bin/nvcc' failed: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"make: (?:\S*g\+\+|\S*gcc|cc|c\+\+|clang): (?:Command not found|No such file)",
        source="make 3.81-4.4 src/job.c",
        examples=(
            "make: g++: Command not found",
            "make: gcc: No such file or directory",
            "make: cc: Command not found",
            "make: c++: Command not found",
            "make: clang: Command not found",
        ),
        not_examples=("make: pandoc: Command not found",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="collect2: fatal error: cannot find 'ld",
        source="gcc 4.8-14 gcc/collect2.c",
        examples=("collect2: fatal error: cannot find 'ld'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Executable \x22ld\x22 doesn't exist!",
        source="clang 3-19 lib/Driver, llvm lib/Support/Program.cpp",
        examples=('Executable "ld" doesn\'t exist!',),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Unable to find vcvarsall\.bat",
        source="CPython 3.11.7 distutils/_msvccompiler.py, distutils/msvc9compiler.py",
        examples=("Unable to find vcvarsall.bat",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="Compiler: cl is not found",
        source="torch 2.5-2.13 _inductor/cpp_builder.py",
        examples=("RuntimeError: Compiler: cl is not found.",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="CMAKE_(?:CXX|C)_COMPILER not set",
        source="cmake 2.8.7-4.4 Source/cmGlobalGenerator.cxx",
        examples=(
            "CMake Error: CMAKE_CXX_COMPILER not set, after EnableLanguage",
            "CMAKE_C_COMPILER not set",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)

TRACEBACK_RULES = tuple(
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function=function,
        kinds=("CalledProcessError", "FileNotFoundError", "PermissionError"),
        source="torch 1.10-2.13 utils/cpp_extension.py: it runs `$CXX` for its version",
        level=Level.STRONG,
        example=f'Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in {function}\nCalledProcessError: x',
    )
    for function in ("check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version")
)
