"""ninja, which builds ops and extensions, is missing or does not work.

## Why it matters
DeepSpeed compiles an op at first use, and torch runs `ninja` by name through PATH. An interpreter that
is started by its full path does not add its environment's `bin` folder to PATH. ninja can then be
installed next to it and still not be found.

## What to do
Activate the environment, or install ninja into it: `pip install ninja`.

## References
- torch/utils/cpp_extension.py: `verify_ninja_availability`
- DeepSpeed requirements/requirements.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from dsdoctor.api import (
    Compilers,
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Level,
    Missing,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    TracebackRule,
    check,
    ok,
)
from dsdoctor_checks._pip import pip

from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "jit-build-ninja-missing",
    id="DSD401",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-ninja",),
)


@check(CONDITION)
def ninja_is_found(
    compilers: Compilers,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """Judges whether `ninja` is on the PATH of a job."""
    ops = jit_ops(run, deepspeed, cache, own)
    if compilers.ninja and compilers.ninja_error is None:
        yield ok(ninja=compilers.ninja)
        return
    if ops == ():
        yield ok("no op remains to be built", ninja=None)
        return
    effect = "the first op fails with `Ninja is required to load C++ extensions`"
    if compilers.ninja:
        yield tool_unusable(
            ops,
            f"`{compilers.ninja} --version` does not work: {compilers.ninja_error}, but DeepSpeed "
            "builds its ops with ninja",
            effect=effect,
            hint=f"run `{pip(patient, packages, 'install --force-reinstall ninja')}`, or remove "
            f"`{compilers.ninja}`",
            ninja=compilers.ninja,
            error=compilers.ninja_error,
        )
        return
    beside = compilers.ninja_in_env
    if beside is None:
        install = pip(patient, packages, "install ninja")
        yield tool_unusable(
            ops,
            "`ninja` is neither on PATH nor in the environment, but DeepSpeed builds its ops "
            "with it",
            effect=effect,
            hint=f"run `{install}`",
            ninja=None,
        )
        return
    folder = str(PurePath(beside).parent)
    activate = f"source {folder}/activate"
    if not isinstance(patient, Missing) and patient.kind == "conda":
        activate = f"conda activate {patient.prefix}"
    yield tool_unusable(
        ops,
        f"`{beside}` is installed, but `{folder}` is not on PATH: the environment is not activated",
        effect=effect,
        hint=f"run `{activate}`, or `export PATH={folder}:$PATH`",
        ninja_in_env=beside,
    )


HINT = (
    "run `python -m pip install ninja` in the environment, and activate it so that `bin` is on PATH"
)

SIGNATURES = (
    Signature(
        pattern="[Nn]inja is required to load",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=("RuntimeError: Ninja is required to load C++ extensions",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="due to ninja not being",
        source="deepspeed 0.19.8 ops/op_builder/builder.py, ops/op_builder/xpu/builder.py",
        examples=(
            "RuntimeError: Unable to JIT load the cpu_adam op due to ninja not being installed.",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?:No such file or directory|Errno 2\]|Errno 13\].*): '?ninja'",
        source=(
            "python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENOENT, ENOEXEC and "
            "EACCES"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
            "Errno 2]: ninja'",
            "Errno 13]: ninja'",
        ),
        not_examples=("such file or directory: 'ninja'",),
        message="ninja, which compiles C++ and CUDA code, is missing or cannot be run",
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="ninja: (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=("ninja: not found",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="No module named 'ninja'",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=("No module named 'ninja'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"'ninja', '--version'\].{0,40}non-zero",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=("'ninja', '--version']non-zero",),
        not_examples=("'ninja', '--version'] is fine",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?:Errno (?:2|8|13)\]|No such file).{0,60}'\S*/ninja'",
        source=(
            "python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENOENT, ENOEXEC and "
            "EACCES"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pip-build-env-x/overlay/bin/ninja'",
        ),
        not_examples=(
            "/opt/env/lib/python3.8/site-packages/deepspeed/ops/csrc/lamb/fused_lamb_cuda_kernel.cu:13:10: fatal error: THC/THC.h: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern="ninja version .{1,20} incompatible with build file",
        source="ninja 1.2-1.13 src/version.cc",
        examples=(
            "ninja: fatal: ninja version (1.3.4) incompatible with build file ninja_required_version version (1.5).",
        ),
        not_examples=(
            "version (1.3.4) incompatible with build file ninja_required_version version (1.5).",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern="Exec format error: 'ninja'",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENOEXEC",
        examples=("Exec format error: 'ninja'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern=r"build program corresponding to \x22Ninja\x22",
        source="cmake 2.8-4.0 Source/cmGlobalGenerator.cxx",
        examples=(
            'CMake Error: CMake was unable to find a build program corresponding to "Ninja".',
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern="cannot import name 'ninja'",
        source="python 3.7-3.14 Python/ceval.c import_from",
        examples=("cannot import name 'ninja'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern=r"No module named ninja\b",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=("ImportError: No module named ninja",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern="The 'ninja' distribution was not found",
        source="setuptools 30-81 pkg_resources/__init__.py",
        examples=("The 'ninja' distribution was not found",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "dependency-version-conflict"),
    ),
    Signature(
        pattern=r"ninja is required to build \w+ ext",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "AssertionError: With dlink=True, ninja is required to build cuda extension my_ext.",
            "AssertionError: ninja is required to build sycl extensions.",
        ),
        not_examples=("ninja is required to build the docs quickly",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function="verify_ninja_availability",
        source="torch 1.10-2.13 utils/cpp_extension.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in verify_ninja_availability\nRuntimeError: x',
    ),
)
