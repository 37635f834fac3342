"""The host compiler is newer than nvcc accepts.

## Why it matters
nvcc checks the host compiler (`-ccbin $CC`) and rejects versions released after it:
`unsupported GNU version! gcc versions later than N are not supported!`. Every CUDA op then fails to
build. `cpu_adam` of DeepSpeed 0.19.8 or newer does not need nvcc and still builds.

## What to do
Install the gcc version named in the hint and set `CC` and `CXX` to it, or use a newer CUDA toolkit of
the same major version. `CUDAHOSTCXX` does not affect DeepSpeed's builds.

## References
- crt/host_config.h of the CUDA toolkits 11.7 to 13.5
- torch/utils/cpp_extension.py: `CUDA_GCC_VERSIONS`, `CUDA_CLANG_VERSIONS`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Compilers,
    Condition,
    CudaToolkits,
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
    Toolkit,
    TorchBuild,
    Why,
    check,
    ok,
    skip,
)
from dsdoctor_checks._util import pair

from ._tables import CLANG_BELOW, NEWEST_GCC, PACKAGED_NVCC
from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "jit-build-gcc-too-new",
    id="DSD403",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-compiler",),
)


def newest(kind: str | None, cuda: tuple[int, int]) -> int | None:
    """The newest major version of a compiler that an nvcc accepts; None if unknown."""
    if kind == "gcc":
        return NEWEST_GCC.get(cuda)
    if kind == "clang" and cuda in CLANG_BELOW:
        return CLANG_BELOW[cuda] - 1
    return None


def _may_be_packaged(toolkit: Toolkit, cuda: tuple[int, int], os: OsInfo | Missing) -> bool:
    """Whether a pasted version, which has no path, is that of the distribution's package."""
    if isinstance(os, Missing) or (toolkit.nvcc or "").startswith("/"):
        return False
    return PACKAGED_NVCC.get((os.distribution or "").lower()) == cuda


@check(CONDITION)
def nvcc_accepts_compiler(
    compilers: Compilers,
    toolkits: CudaToolkits,
    torch: TorchBuild | Missing,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Compares the compiler that nvcc would call with nvcc's own limit."""
    toolkit, compiler = toolkits.toolkit, compilers.cc
    if isinstance(torch, Missing) and torch.why is not Why.NOT_ASKED:
        yield skip("torch could not be read, so it is not known whether nvcc is used")
        return
    if isinstance(torch, TorchBuild) and torch.cuda is None:
        yield skip("torch is not a CUDA build, so nvcc is not used")
        return
    cuda = pair(toolkit.version) if toolkit and toolkit.usable else None
    if toolkit is None or cuda is None:
        yield skip("there is no usable nvcc, so nothing limits the host compiler")
        return
    major = compiler.major
    bound = newest(compiler.kind, cuda)
    if major is None or bound is None:
        yield skip(
            f"the host compilers that nvcc {toolkit.version} accepts, or the version of "
            f"`{compiler.command}`, are not known",
            cuda=toolkit.version,
            compiler=compiler.version,
        )
        return
    if toolkit.host_compiler and compiler.command == "cc":  # without `CC`, torch passes none
        yield ok(cuda=toolkit.version, host_compiler=toolkit.host_compiler)
        return
    if major > bound and _may_be_packaged(toolkit, cuda, os):
        yield skip(
            f"nvcc {toolkit.version} may be that of the distribution's package, which calls a gcc of"
            " its own",
            cuda=toolkit.version,
        )
        return
    evidence: dict[str, Any] = {
        "compiler": compiler.path,
        "compiler_version": compiler.version,
        "cuda": toolkit.version,
        "newest_accepted": bound,
        "source": "table",
    }
    ops = jit_ops(run, deepspeed, cache, own)
    if major <= bound:
        yield ok(**evidence)
        return
    cuda_ops = None if ops is None else tuple(op for op in ops if not op.startswith("cpu_"))
    if cuda_ops == ():
        yield ok("no CUDA op of this config remains to be built", **evidence)
        return
    kind = compiler.kind
    yield tool_unusable(
        cuda_ops,
        f"`{compiler.command}` is {kind} {compiler.version}, but nvcc {toolkit.version} accepts "
        f"{kind} up to {bound}",
        effect="builds of CUDA ops fail with `unsupported GNU version`",
        hint=f"install {kind} {bound} and run `export CC={kind}-{bound} "
        + (f"CXX=g++-{bound}`" if kind == "gcc" else f"CXX=clang++-{bound}`"),
        **evidence,
    )


HINT = "install an older gcc and set `CC` and `CXX` to it, or use a newer CUDA toolkit"

SIGNATURES = (
    Signature(
        pattern="[Uu]nsupported GNU version|unsupported (?:GNU compiler|clang version|Microsoft Visual Studio version)|STL1002: Unexpected compiler version",
        source="CUDA toolkit 7-13 include/crt/host_config.h; MSVC 19 STL yvals_core.h",
        examples=(
            "error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!",
            "#error -- unsupported clang version! clang version must be less than 17 and greater than 3.2.",
            "STL1002: Unexpected compiler version",
        ),
        level=Level.CERTAIN,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"installed version of \S+ \([\d.]+\) is greater than the maximum",
        source="transformers 5.23.0 models/kyutai_speech_to_text/modeling_kyutai_speech_to_text.py, models/kyutai_speech_to_text/modular_kyutai_speech_to_text.py",
        examples=(
            "RuntimeError: The current installed version of g++ (13.2) is greater than the maximum required version by CUDA 11.8",
            "RuntimeError: The current installed version of x86_64-linux-gnu-g++ (12.3.0) is greater than the maximum required version by CUDA 11.7.",
        ),
        not_examples=(
            "version of g++ (13.2) is greater than the maximum required version by CUDA 11.8",
        ),
        level=Level.CERTAIN,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="parameter packs not expanded with",
        source="gcc 12.2.0 cc1plus",
        examples=(
            "std_function.h:435:145: error: parameter packs not expanded with '...':",
            "/usr/include/c++/11/bits/std_function.h:530:146: error: parameter packs not expanded with '...':",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"identifier \x22(?:__builtin_ia32_\w+|__builtin_(?:bswap|addressof|is)\w*|_Float\w+|__float128|__is_\w+|__remove_\w+|__bf16)\x22 is undefined|exception specification is incompatible with that of previous function \x22(?:cos|sin|rsqrt)",
        source="nvcc 8-13 cudafe++ (EDG)",
        examples=(
            '/usr/lib/gcc/x86_64-linux-gnu/9/include/avx512fintrin.h(9146): error: identifier "__builtin_ia32_rndscaless_round" is undefined',
            '/usr/include/x86_64-linux-gnu/bits/floatn.h(74): error: identifier "_Float128" is undefined',
            'math_functions.h(4629): error: exception specification is incompatible with that of previous function "cospi"',
        ),
        not_examples=('error: identifier "my_kernel" is undefined',),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    # nvcc's own front end, which prints line numbers in parentheses, fails on the compiler's headers
    Signature(
        pattern=r"/include/c\+\+/1\d\S{0,200}\(\d{1,6}\): error: |/lib/gcc/\S{1,80}/1\d[\d.]*/include/\S{1,80}\(\d{1,6}\): error: |/include/c\+\+/1\d\S{0,200}: internal compiler error",
        source=(
            "nvcc 8-13 cudafe++ (EDG), gcc 4.8-14 gcc/diagnostic.cc: the path is that of libstdc++ "
            "10 to 19"
        ),
        examples=(
            "/usr/include/c++/11/type_traits(1406): error: type name is not allowed",
            "/usr/lib/gcc/x86_64-linux-gnu/12/include/amxtileintrin.h(42): error: attribute is unknown",
            "/usr/include/c++/10/chrono:428:27: internal compiler error: Segmentation fault",
        ),
        not_examples=(
            "/usr/include/c++/11/bits/stl_vector.h:1045: error: no matching function for call",
            "/usr/include/c++/9/type_traits(1406): error: expected a type",
        ),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"pybind11/\S*cast\.h:\d{1,5}:\d{1,4}: error: expected template-name before|alloc_copy_of_pending_pragma|/usr/include/(?:\S{1,60}/)?bits/\S{1,60}\(\d{1,6}\): error: ",
        source="nvcc 9-13 cudafe++ (EDG); gcc 9-14 cp/parser.cc, for pybind11's cast.h",
        examples=(
            "pybind11/detail/../cast.h:45:120: error: expected template-name before '<' token",
            "/usr/include/bits/floatn.h(86): error: invalid combination of type specifiers",
            "cudafe++: alloc_copy_of_pending_pragma: copied pragma has source sequence entry",
        ),
        not_examples=(
            "my/cast.h:12:4: error: expected template-name before 'x'",
            "note: in /usr/include/bits/floatn.h, included from here",
        ),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
