"""The host compiler that builds DeepSpeed's ops is missing or does not work.

## Why it matters
Every op that is built at its first use is compiled by `$CXX` (`c++` when that is not set); nvcc
calls the C compiler `$CC`. `cpu_adam` needs the host compiler even on a machine without nvcc, and
Triton needs a C compiler at run time.

## What to do
Install a compiler (`apt-get install build-essential`, `dnf install gcc-c++`), or point `CXX` and
`CC` at one.

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
    ExtensionCache,
    Finding,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    check,
    ok,
    skip,
)

from ._util import jit_ops, lacking

CONDITION = Condition(
    "jit-build-compiler-missing",
    id="DSD402",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-compiler",),
)


def _trouble(compiler: Compiler, variable: str) -> str | None:
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
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Judges the C++ compiler; a missing C compiler alone only spoils CUDA ops."""
    if isinstance(os, OsInfo) and os.system == "Windows":
        yield skip("on Windows, ops are built by MSVC, which is not looked for")
        return
    ops = jit_ops(run, deepspeed, cache)
    if ops == ():
        yield ok("the config needs no op that is still to be built")
        return
    for compiler, variable in ((compilers.cxx, "CXX"), (compilers.cc, "CC")):
        trouble = _trouble(compiler, variable)
        if trouble is None:
            continue
        yield lacking(
            ops if variable == "CXX" else None,
            f"{trouble}, but builds of DeepSpeed ops need it",
            effect="the first use of an op ends in `RuntimeError: Error building extension`",
            hint=f"install a C++ compiler (`apt-get install build-essential`), or set `{variable}` "
            "to one that works",
            command=compiler.command,
            path=compiler.path,
            error=compiler.error,
        )
        return


HINT = "install gcc and g++ (`build-essential`, `gcc-c++`), or set `CC` and `CXX`"

SIGNATURES = (
    Signature(
        anchor=(
            "g++'",
            "gcc'",
            "cc1",
            "Failed to find C compiler",
            "No working C++ compiler",
            "InvalidCxxCompiler",
            "x86_64-linux-gnu-gcc",
            "cl.exe",
            "'cl'",
            "which: no c++",
            "c++'",
            ": command not found",
            ": not found",
            "Error checking compiler version for c",
            "Error checking compiler version for g",
            "No such file or directory",
            "Errno 2]",
        ),
        pattern=(
            r"'which', 'c\+\+'|(?:\bc\+\+|g\+\+|gcc|clang\+\+|\bcc)(?:-\d+)?['\x22]?: (?:command )?not found"
            r"|(?:No such file or directory|Errno 2\]).{0,30}(?:c\+\+|g\+\+"
            r"|gcc|clang\+\+|\bcc)'|cannot execute .?cc1(?:plus)?|error trying to exec .?cc1"
            r"|Failed to find C compiler|No working C\+\+ compiler|InvalidCxxCompiler"
            r"|command '\S*gcc' failed: No such|unable to execute '\S*(?:gcc"
            r"|g\+\+)'|which: no (?:c|g)\+\+|Error checking compiler version for (?:c"
            r"|g|cl)"
        ),
        examples=(
            "/bin/sh: 1: c++: not found",
            "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
            "g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",
        ),
        not_examples=("gcc (Debian) 12.2.0 found: '/usr/bin/gcc'",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        anchor=(": not found", ": No such file"),
        pattern=(
            r"(?:^|/|\s)(?:ba)?sh: (?:\d+: |line \d+: )?\S*(?:g\+\+|gcc|c\+\+|clang|-cc)\S*: (?:not found"
            r"|No such file)"
        ),
        examples=(
            "/bin/sh: 1: /opt/x/bin/g++-13: not found",
            "sh: 1: x86_64-conda-linux-gnu-cc: not found",
            "/bin/sh: line 1: g++: No such file or directory",
        ),
        not_examples=("sh: 1: foo: not found",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "No CMAKE_CX_COMPILER could be found"),
        pattern="No CMAKE_CX?X?_COMPILER could be found",
        examples=(
            "  No CMAKE_CXX_COMPILER could be found.",
            "CMake Error: No CMAKE_C_COMPILER could be found.",
        ),
        not_examples=("-- CMAKE_CXX_COMPILER: /usr/bin/c++",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("host compiler", "Cannot find compiler 'cl.exe'"),
        pattern=(
            r"No supported gcc/g\+\+ host compiler found|Failed to preprocess host compiler properties"
            r"|Cannot find compiler 'cl\.exe' in PATH"
        ),
        examples=(
            "nvcc fatal   : No supported gcc/g++ host compiler found, but clang-14 is available.",
            "nvcc fatal   : Failed to preprocess host compiler properties.",
        ),
        not_examples=("host compiler: g++ 11",),
        weight=64,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        anchor=("nvcc fatal",),
        pattern="nvcc fatal\\s{0,4}: (?:Unsupported NVHPC|Cannot find compiler|Failed to preprocess host compiler|Host compiler targets|Could not (?:set up|open)|Compiler '[^']{1,80}' in PATH)",
        examples=(
            "nvcc fatal   : Unsupported NVHPC compiler found. nvc++ is the only NVHPC compiler that is supported.",
            "nvcc fatal   : Cannot find compiler 'cl.exe' in PATH",
            "nvcc fatal   : Failed to preprocess host compiler properties.",
        ),
        not_examples=("nvcc fatal   : Unsupported gpu architecture 'compute_90'",),
        weight=64,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=("gcc: error: ", "g++: error: ", "c++: error: ", "cc: error: "),
        pattern="(?:^|\\s|/)(?:gcc|g\\+\\+|c\\+\\+|cc): error: (?!unrecognized|unknown argument|no input)",
        examples=(
            "gcc: error: : No such file or directory",
            "g++: error: /x/build/flatten.o: No such file or directory",
            "x86_64-conda-linux-gnu-c++: gcc: error: spawn: not found",
        ),
        not_examples=("gcc: error: unrecognized command line option '-std=c++17'",),
        weight=26,
    ),
    Signature(
        anchor=("'which', '", "' failed: No such file"),
        pattern=(
            r"'which', '\S*(?:c\+\+|g\+\+|gcc|clang|-cc)\S*'\]' returned"
            r"|error: command '\S*(?:g\+\+|c\+\+|gcc|clang|/cc)\S*' failed: No such file"
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
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=(
            "make: ",
            "collect2: fatal error: cannot find '",
            "doesn't exist!",
            "vcvarsall.bat",
            ": cl is not found",
            "CMAKE_CXX_COMPILER not set",
            "CMAKE_C_COMPILER not set",
        ),
        pattern=(
            r"make: (?:\S*g\+\+|\S*gcc|cc|c\+\+|clang): (?:Command not found|No such file)"
            r"|collect2: fatal error: cannot find 'ld|Executable \x22ld\x22 doesn't exist!"
            r"|Unable to find vcvarsall\.bat|Compiler: cl is not found|CMAKE_(?:CXX|C)_COMPILER not set"
        ),
        examples=(
            "make: g++: Command not found",
            "make: gcc: No such file or directory",
            "collect2: fatal error: cannot find 'ld'",
            "RuntimeError: Compiler: cl is not found.",
            "CMake Error: CMAKE_CXX_COMPILER not set, after EnableLanguage",
        ),
        not_examples=(
            "make: pandoc: Command not found",
            "make: Nothing to be done for 'default'.",
        ),
        weight=62,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
