"""The CUDA toolkit does not match torch's CUDA version.

## Why it matters
DeepSpeed compiles its CUDA ops with nvcc against torch's headers. When ops are pre-built
(`DS_BUILD_*=1`), DeepSpeed looks both versions up in a table and refuses any pair that is not in it. For
CUDA 13, it refuses every minor version but torch's own. When ops are built at first use (JIT), DeepSpeed
0.12.3 and newer do not compare the versions: a different minor version works, but a different major
version usually causes a compile error or an undefined symbol.

## What to do
Install the toolkit for torch's CUDA version (the toolkit alone, without a driver) and point `CUDA_HOME`
to it. Or install a torch build for the installed toolkit's CUDA version.

## References
- DeepSpeed op_builder/builder.py: `assert_no_cuda_mismatch`, `cuda_minor_mismatch_ok` (0.19.8)
- https://github.com/deepspeedai/DeepSpeed/pull/4639
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    Level,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    Signature,
    Toolkit,
    TorchBuild,
    TracebackRule,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least, listed, pair, variable
from dsdoctor_checks.cuda import _ops, _tables

CONDITION = Condition(
    "cuda-toolkit-mismatch",
    id="DSD201",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-cuda-toolkit", "install-torch-build"),
    leads_to=("cuda-runtime-lib-mismatch",),
)


def _hint(toolkits: CudaToolkits, want: str) -> str:
    for toolkit in toolkits.found:
        if toolkit.usable and pair(toolkit.version) == pair(want):
            return f"set `CUDA_HOME={toolkit.root}`, which is CUDA {want}"
    return f"install the CUDA {want} toolkit and point `CUDA_HOME` to it"


def _judge(
    toolkit: Toolkit, torch: TorchBuild, need: _ops.Need, version: str | None, skipping: bool
) -> str:
    """`refused`, `broken`, `risky` or `fine`."""
    have, want = pair(toolkit.version), pair(torch.cuda)
    refused = not _tables.accepts(toolkit.version or "", torch.cuda or "", version) and not skipping
    checked = need.use is _ops.Use.PREBUILD or not at_least(version, _tables.JIT_UNCHECKED)
    if need.certain and refused and checked:
        return "refused"
    if have is None or want is None or have[0] == want[0]:
        return "fine"
    return "broken" if need.certain and toolkit.trial_ok is False else "risky"


@check(CONDITION)
def toolkit_matches_torch(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """Judges the versions by what this run uses nvcc for."""
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    settled = need.settled()
    if settled is not None:
        yield settled
        return
    toolkit = toolkits.toolkit
    if toolkit is None or not toolkit.usable:
        yield skip("there is no usable nvcc to compare with torch")
        return
    version = None if isinstance(deepspeed, Missing) else deepspeed.version
    skipping = variable(env, "DS_SKIP_CUDA_CHECK") == "1"
    verdict = _judge(toolkit, torch, need, version, skipping)
    evidence: dict[str, Any] = {
        "nvcc": toolkit.nvcc,
        "nvcc_cuda": toolkit.version,
        "torch": torch.version,
        "torch_cuda": torch.cuda,
        "deepspeed": version,
        "need": need.use.value,
        "ops": list(need.ops),
        "trial_ok": toolkit.trial_ok,
    }
    place = "" if toolkit.nvcc == "nvcc" else f" at `{toolkit.nvcc}`"  # a paste names no place
    text = (
        f"nvcc{place} is CUDA {toolkit.version},"
        f" but torch {torch.version} was built for CUDA {torch.cuda}"
    )
    hint = _hint(toolkits, str(torch.cuda))
    if verdict == "refused":
        doing = "pre-build" if need.use is _ops.Use.PREBUILD else "build"
        yield fail(
            text,
            effect=f"DeepSpeed refuses to {doing} {need.words} (`CUDAMismatchException`)",
            hint=hint,
            **evidence,
        )
    elif verdict == "broken":
        yield fail(
            f"{text}, and a trial compile fails",
            effect=f"{listed(need.ops)} cannot be built at the first step",
            hint=hint,
            trial_error=toolkit.trial_error,
            **evidence,
        )
    elif verdict == "risky":
        yield warn(
            text,
            effect=f"{need.words} may not compile, or fail to load with an undefined symbol",
            hint=hint,
            **evidence,
        )
    else:
        yield ok(f"nvcc is CUDA {toolkit.version}, torch's is {torch.cuda}", **evidence)


HINT = "install the toolkit for torch's CUDA version and point `CUDA_HOME` to it"

SIGNATURES = (
    Signature(
        pattern=r"Installed CUDA version (?P<have>\d[\d.]*) does not match torch (?P<want>\d[\d.]*)",
        source="deepspeed 0.19.8 ops/op_builder/builder.py",
        examples=(
            "[WARNING] DeepSpeed Op Builder: Installed CUDA version 11.5 does not match torch 12.4",
            "[WARNING] DeepSpeed Op Builder: Installed CUDA version 12.2 does not match torch 11.8",
        ),
        not_examples=(
            "Installed CUDA version 11.8 does not match the version torch was compiled with 11.7 but since the APIs are compatible, accepting this combination",
        ),
        message="nvcc is CUDA {have}, but torch was built for CUDA {want}",
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        # as people shorten it in a title: what torch was built for is left out
        pattern=r"Installed CUDA version (?P<have>\d+\.\d+) does not match (?:the )?torch version\s*$",
        source="deepspeed 0.8-0.19 ops/op_builder/builder.py, in the words of titles",
        examples=("Installed CUDA version 12.6 does not match torch version",),
        not_examples=("[WARNING] Installed CUDA version 12.2 does not match torch version 11.8",),
        message="nvcc is CUDA {have}, and torch was built for another CUDA",
        masks=("cpu-adam-unbuilt",),
        level=Level.LIKELY,
    ),
    Signature(
        pattern=r"Installed CUDA version (?P<have>\S+) does not match the version torch was compiled with (?P<want>[\d.]+)(?=.{0,60}(?:unable|\Z))",
        source="deepspeed 0.19.8 ops/op_builder/builder.py",
        examples=(
            "Exception: >- DeepSpeed Op Builder: Installed CUDA version 12.1 does not match the version torch was compiled with 11.8, unable to compile cuda/cpp extensions",
            "Exception: Installed CUDA version 10.1 does not match the version torch was compiled with 11.1, unable to compile cuda/cpp extensions without a matching cuda version.",
        ),
        not_examples=(
            "Installed CUDA version 11.8 does not match the version torch was compiled with 11.7 but since the APIs are compatible, accepting this combination",
        ),
        level=Level.CERTAIN,
        message="nvcc is CUDA {have}, but torch was built for CUDA {want}",
        not_near=("APIs are compatible", "Python.h: No such"),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"(?:The )?detected CUDA version \(?.{0,12}\)? mismatches the version",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "RuntimeError: The detected CUDA version (11.4) mismatches the version that was used to compile PyTorch (12.1)",
            "RuntimeError: ('The detected CUDA version (%s) mismatches the version that was used to compilePyTorch (%s).', '13.0', '12.8')",
        ),
        not_examples=(
            "CUDA version (11.4) mismatches the version that was used to compile PyTorch (12.1)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^\S*CUDAMismatchException: ",
        source="deepspeed 0.7-0.19 ops/op_builder/builder.py, as Python prints an exception",
        examples=(
            "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: x",
            "op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: x",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="version of Cuda that does not match",
        source="xformers 0.0.29 third_party/flash-attention/csrc/rotary/setup.py, third_party/flash-attention/csrc/xentropy/setup.py",
        examples=(
            "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch binaries.",
            "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch binaries. Pytorch binaries were compiled with Cuda 10.2",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Value 'c\+\+(?:14|17|20)' is not defined for option 'std'",
        source="nvcc 7-13",
        examples=(
            "nvcc fatal   : Value 'c++17' is not defined for option 'std'",
            "nvcc fatal   : Value 'c++20' is not defined for option 'std'",
            "Value 'c++14' is not defined for option 'std'",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"nvcc fatal\s{0,4}: (?:Unknown option|Value '(?:c\+\+\d\w|gnu\+\+\d\w)' is not defined for option 'std'|'--?threads')",
        source="nvcc 7-13",
        examples=(
            "nvcc fatal   : Unknown option '-generate-dependencies-with-compile'",
            "nvcc fatal   : Value 'c++17' is not defined for option 'std'",
            "nvcc fatal   : Unknown option '--threads'",
            "nvcc fatal : '-threads'",
        ),
        not_examples=("nvcc fatal   : Unsupported gpu architecture 'compute_90'",),
    ),
    Signature(
        pattern=r"(?:Error|Exception): .{0,80}(?:only supported on|only supports|[Rr]equires) CUDA (?:version )?\d+(?:\.\d+)?(?:\+| (?:or|and) (?:newer|later|higher|above))",
        source="flash-attn 1.0-2.8 setup.py; transformer_engine 0.5-2.8 setup.py",
        examples=(
            "RuntimeError: FlashAttention is only supported on CUDA 11.7 and above.",
            "RuntimeError: Transformer Engine requires CUDA 11.8 or newer",
            "RuntimeError: FlashAttention is only supported on CUDA 11.6 and above.  Note: make sure nvcc has a supported version by running nvcc -V.",
            "Exception: only supported on CUDA 7+",
            "RuntimeError: only supports CUDA 7+",
        ),
        not_examples=("this image requires CUDA 12 or newer",),
    ),
    # the sources call functions that the toolkit's headers do not declare
    Signature(
        pattern=r"identifier \x22(?:cuda[A-Z]\w+|CUDA_R_\w+|cu[A-Z]\w{3,}|CU_\w+|cusparse[A-Z]\w+|cublas[A-Z]\w+|CUBLAS_\w+|cusolver[A-Z]\w+|__nv_bfloat\w+|__nv_fp8\w*|nv_bfloat16\w*)\x22 is undefined",
        source="nvcc 10-13 cudafe++ (EDG)",
        examples=(
            'x.cu(40): error: identifier "cudaLaunchKernelExC" is undefined',
            'error: identifier "__nv_bfloat16" is undefined',
            'error: identifier "CUBLAS_COMPUTE_32F" is undefined',
            'identifier "CUDA_R_name" is undefined',
            'identifier "cuAnam" is undefined',
            'identifier "CU_name" is undefined',
            'identifier "cusparseAname" is undefined',
            'identifier "cublasAname" is undefined',
            'identifier "cusolverAname" is undefined',
            'identifier "__nv_fp8name" is undefined',
            'identifier "nv_bfloat16name" is undefined',
        ),
        not_examples=(
            'error: identifier "my_kernel" is undefined',
            'error: identifier "customReduce" is undefined',
        ),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        pattern=r"nvcc fatal\s{0,4}: Unsupported option|: Unsupported \.version [\d.]+; current version is '",
        source="nvcc 7-13; ptxas 7-13",
        examples=(
            "nvcc fatal   : Unsupported option '-std=c++17'",
            "ptxas /tmp/x.ptx, line 9; fatal   : Unsupported .version 8.4; current version is '8.2'",
            "ptxas fatal   : Unsupported .version 7.5; current version is '7.4'",
        ),
        not_examples=("fatal   : Unsupported option '-std=c++17'",),
        masks=("cpu-adam-unbuilt",),
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function="_check_cuda_version",
        kinds=("RuntimeError",),
        source="torch 1.10-2.13 utils/cpp_extension.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in _check_cuda_version\nRuntimeError: x',
    ),
    TracebackRule(
        file="op_builder/builder.py",
        function="assert_no_cuda_mismatch",
        kinds=("CUDAMismatchException", "Exception"),
        source="deepspeed 0.9-0.19 op_builder/builder.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/ops/op_builder/builder.py", line 7, in assert_no_cuda_mismatch\nCUDAMismatchException: x',
    ),
)
