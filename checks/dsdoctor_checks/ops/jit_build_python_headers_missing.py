"""Python.h is missing, so no op can be built.

## Why it matters
Distributions ship the interpreter without its C headers. Every DeepSpeed op includes `Python.h` through
torch's headers, and so does the launcher stub that Triton compiles.

## What to do
Install the headers of exactly this interpreter (`apt-get install python3.11-dev`), or use a Python that
includes them (conda, uv, pyenv).

## References
- torch/include/torch/extension.h
- triton/runtime/build.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Level,
    Missing,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    check,
    ok,
)

from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "jit-build-python-headers-missing",
    id="DSD405",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-python-headers",),
)


@check(CONDITION)
def headers_are_there(
    patient: Patient,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges whether Python.h is where a build looks for it."""
    ops = jit_ops(run, deepspeed, cache, own)
    if patient.has_headers or ops == ():
        yield ok(include_dir=patient.include_dir)
        return
    short = ".".join(patient.version.split(".")[:2])
    where = f"`{patient.include_dir}`" if patient.include_dir else "the interpreter's folder"
    yield tool_unusable(
        ops,
        f"{where} has no `Python.h`, but every build of an op includes it",
        effect="builds fail with `Python.h: No such file or directory`",
        hint=f"run `apt-get install python{short}-dev` (`dnf install python{short}-devel`)",
        include_dir=patient.include_dir,
        python=patient.version,
    )


HINT = "install the headers of this Python (`python3-dev` on Debian, `python3-devel` on Red Hat)"

SIGNATURES = (
    Signature(
        pattern=r"(?:Python|pyconfig)\.h['\x22]?:? (?:No such file|file not found)|Cannot open include file: 'Python\.h'",
        source=(
            "gcc 4.8-14 libcpp/files.cc, clang 3-19 DiagnosticCommonKinds; Microsoft C/C++ 19 "
            "cl.exe"
        ),
        examples=(
            "fatal error: Python.h: No such file or directory",
            "fatal error: 'Python.h' file not found",
            "fatal error: pyconfig.h: No such file or directory",
            "Cannot open include file: 'Python.h'",
        ),
        level=Level.CERTAIN,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
            "cuda-toolkit-mismatch",
        ),
    ),
    Signature(
        pattern=r"Could NOT find Python3? \(missing: .{0,80}(?:INCLUDE_DIR|Development)",
        source="cmake 3.12-4.0 Modules/FindPackageHandleStandardArgs.cmake",
        examples=(
            "-- Could NOT find Python3 (missing: Python3_INCLUDE_DIRS Development.Module)",
            "Could NOT find Python (missing: Python3_INCLUDE_DIRS)",
        ),
        not_examples=("Could NOT find Python (missing: is fine",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"include file '(?:Python|pyconfig|patchlevel)\.h' not found|cannot find -lpython[23]|patchlevel\.h: No such file|library 'python3\w*' not found",
        source=(
            "tcc 0.9.27 tccpp.c, as triton-windows runs it; binutils 2.20-2.44 ld/ldmain.c; gcc "
            "4.8-14 libcpp/files.cc; Apple ld64"
        ),
        examples=(
            "C:/x/cuda_utils.c:14: error: include file 'Python.h' not found",
            "Python.h:12: error: include file 'pyconfig.h' not found",
            "/usr/bin/ld: cannot find -lpython3.10",
            "tcc: error: library 'python3' not found",
            "patchlevel.h: No such file",
        ),
        not_examples=("tcc: error: library 'python3' not",),
        level=Level.CERTAIN,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "jit-build-compiler-missing",
            "build-dependency-missing",
            "cuda-toolkit-mismatch",
        ),
    ),
    # Triton's launcher, which includes Python.h: what most often fails if the compiler's own
    # line is cut off
    Signature(
        pattern=r"Command '\['\S{0,200}(?:gcc|clang|/cc|tcc\.exe|'cl)\S{0,8}', '\S{0,200}(?:main|cuda_utils|__triton\w*|launcher\w*)\.c(?:pp|xx)?'.{0,1800}returned non-zero exit status",
        source="python 3.5-3.14 Lib/subprocess.py, for triton 2.0-3.5 runtime/build.py",
        examples=(
            "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpa/main.c', '-O3', '-shared', '-lcuda', '-o', '/tmp/tmpa/cuda_utils.so']' returned non-zero exit status 1.",
            "subprocess.CalledProcessError: Command '['/usr/bin/clang', '/tmp/tmpb/__triton_launcher.c', '-O3']' returned non-zero exit status 1.",
            "Command '['x1/ccx1', 'x1main.c'returned non-zero exit status",
            "subprocess.CalledProcessError: Command '['tcc.exe', 'cuda_utils.c']' returned non-zero exit status 1.",
            "Command '['x1'clx1', 'x1main.c'returned non-zero exit status",
        ),
        not_examples=(
            "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
        ),
        level=Level.WEAK,
        masks=("triton-unusable",),
    ),
)
