"""The config asks for bf16, but a GPU of this run has no hardware for it.

## Why it matters
Hardware for bf16 begins with compute capability 8.0 (Ampere). From torch 2.3 on
`torch.cuda.is_bf16_supported()` is true on a V100 or T4 as well, because it counts emulation, and
DeepSpeed asks just that: training starts, and runs many times slower than in fp16.

## What to do
Use `fp16` instead of `bf16` in the config, or GPUs of capability 8.0 or higher.

## References
- torch/cuda/__init__.py: `is_bf16_supported(including_emulation=True)`
- DeepSpeed accelerator/cuda_accelerator.py, runtime/engine.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import at_least, capabilities, dotted, listed
from dsdoctor_checks.precision._config import asks

CONDITION = Condition("bf16-unsupported", id="DSD501", scope=Scope.JOB, since="0.1")
_FLOOR = (8, 0)


@check(CONDITION)
def hardware_has_bf16(
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    torch: TorchBuild | Missing,
    run: RunNeeds,
    env: Environment | Missing,
) -> Iterator[Finding]:
    """The hardware's answer, which is not the one torch gives by default."""
    devices = capabilities(gpus, live, run, env)
    evidence: dict[str, Any] = {"capabilities": {name: dotted(cc) for name, cc in devices.items()}}
    if not devices:
        yield skip("no GPU whose compute capability is known")
        return
    lacking = {name: dotted(cc) for name, cc in devices.items() if cc < _FLOOR}
    if not lacking:
        yield ok(**evidence)
        return
    section = asks(run.config, "bf16", "bfloat16")
    if section is None:
        asked = "the config does not ask for bf16" if run.config is not None else "no config given"
        yield skip(f"{asked}; {listed(lacking)} has no hardware for it", **evidence)
        return
    version = torch.version if isinstance(torch, TorchBuild) else None
    emulates = at_least(version, "2.3")
    emulated = live.bf16_emulated if isinstance(live, TorchLive) else None
    name, capability = next(iter(lacking.items()))
    yield fail(
        f"`{section}` is enabled, but {name} is of capability {capability}"
        f" and bf16 needs {dotted(_FLOOR)}",
        effect="torch says yes because it counts emulation, and training runs many times slower"
        if emulates
        else "DeepSpeed ends with `Type bf16 is not supported on your device`",
        hint="use `fp16` in the config, or GPUs of capability 8.0 or higher",
        section=section,
        lacking=lacking,
        needs=dotted(_FLOOR),
        is_bf16_supported=emulated,
        torch=version,
        **evidence,
    )


HINT = (
    "set `fp16` in place of `bf16` in the config, or use a GPU of compute capability 8.0 or newer"
)

SIGNATURES = (
    Signature(
        anchor=(
            "support bf16",
            "supported bf16",
            "supported BF16",
            "support BF16",
            "not supported",
        ),
        pattern=(
            r"(?i)(?:does ?n[o']t|not|n't) support(?:ed)? bf16"
            r"|bf16 (?:\S+ ){0,3}(?:is )?not supported|bfloat16 is not supported (?:on"
            r"|by) (?:your|this|the)"
        ),
        examples=(
            "ValueError: this setup does not support bf16/gpu",
            "RuntimeError: bf16 is not supported on this device",
        ),
        not_examples=("fp8 is not supported here, bf16 is",),
        weight=70,
    ),
    Signature(
        anchor=(
            "loat16 is only supported on GPUs",
            "loat16 is only supported on gpus",
            "type bf16 is not",
            "16 mixed precision requires",
            "not support b",
            "not support B",
            "loat16 is not supported on",
        ),
        pattern=(
            r"(?i)(?:Bfloat16 is only supported on GPUs with compute capability"
            r"|type bf16 is not supported|bf16 mixed precision requires"
            r"|(?:current|device|gpu|hardware|cuda)[^.]{0,60} does not support (?:bf16"
            r"|bfloat16)|bfloat16 is not supported on (?:your"
            r"|this|current))"
        ),
        examples=(
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
            "ValueError: type bf16 is not supported on your device.",
        ),
        not_examples=("bfloat16 is not supported on paper", "this does not support bases"),
        weight=70,
    ),
    Signature(
        anchor=("tf32 requires", "TF32 requires"),
        pattern=r"(?i)--tf32 requires Ampere|tf32 requires (?:an )?Ampere",
        examples=(
            "ValueError: --tf32 requires Ampere or a newer GPU arch",
            "ValueError: TF32 requires Ampere or newer",
        ),
        not_examples=("tf32 requires nothing here",),
        weight=65,
    ),
    Signature(
        anchor=("bf16 requires", "BF16 requires"),
        pattern=r"(?i)bf16 requires (?:PyTorch|torch|Ampere)",
        examples=(
            "ValueError: bf16 requires PyTorch >= 1.10 and an Ampere GPU",
            "ValueError: BF16 requires Ampere GPUs",
        ),
        not_examples=(
            "bf16 enabled",
            "bf16 requires no loss scaling",
        ),
        weight=65,
    ),
    Signature(
        anchor=(
            ".bf16'",
            "bf16.f32",
            "bf16 is only supported on A100",
            "CUDA_R_16BF",
            "'BFloat16'",
            "' requires .target sm_80",
        ),
        pattern=(
            r"Feature '(?:[\w.]*\.)?bf16[\w.]*' requires \.target sm_80"
            r"|bf16 is only supported on A100\+ GPUs|CUBLAS_STATUS_NOT_SUPPORTED.{0,200}CUDA_R_16BF"
            r"|not implemented for 'BFloat16'"
        ),
        examples=(
            "ptxas /tmp/x, line 97; error   : Feature '.bf16' requires .target sm_80 or higher",
            "ptxas /tmp/x, line 9; error   : Feature 'cvt.rn.bf16.f32' requires .target sm_80 or higher",
            "RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'",
            "    bf16 is only supported on A100+ GPUs",
        ),
        not_examples=("dtype 'BFloat16' used", "Feature '.f16' requires .target sm_53"),
        weight=62,
        masks=("flash-attn-needs-ampere",),
    ),
    Signature(
        anchor="CUDA_R_16BF",
        pattern=r"CUBLAS_STATUS_(?:INVALID_VALUE|ARCH_MISMATCH).{0,300}CUDA_R_16BF",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx( h, a, b, CUDA_R_16BF, c)`",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasGemmEx(h, CUDA_R_16BF)`",
        ),
        not_examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `x(CUDA_R_16BF)`",
        ),
        weight=42,
    ),
    Signature(
        anchor=("(int)n, (int)k, (void*)", "ype fp16 is not supported"),
        pattern=r"^\(int\)m, \(int\)n, \(int\)k, \(void\*\).{0,200}CUDA_R_16BF|[Tt]ype fp16 is not supported",
        examples=(
            "(int)m, (int)n, (int)k, (void*)&falpha, a, CUDA_R_16BF, (int)lda, stridea, b",
            "ValueError: Type fp16 is not supported.",
            "ValueError: Type fp16 is not supported on your device.",
        ),
        not_examples=(
            "(int)m, (int)n, (int)k, (void*)&falpha, a, CUDA_R_16F, (int)lda",
            "datatype fp16 is not supposed to be here",
        ),
        weight=40,
        near=("CUBLAS_STATUS_", "Error"),
    ),
    Signature(
        anchor=("bf16", "BF16", "float16", "Float16"),
        pattern=(
            r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): (?=.{0,160}(?i:\bbf16|\bbfloat16))"
            r"(?=.{0,200}(?:n't|not|only|requires?|needs?|lacks?))"
            r".{0,200}(?:\bGPUs?\b|[Dd]evice|[Hh]ardware|Ampere|compute capability)"
        ),
        examples=(
            "RuntimeError: bf16 needs an Ampere card, this device is older",
            "ValueError: bfloat16 does not work on this GPU",
        ),
        not_examples=("ValueError: bf16 and fp16 are both set",),
        weight=29,
        not_near=("mps", "MPS"),
    ),
    Signature(
        anchor=(
            "support bfloat16",
            "support bf16",
            "is_bf16_supported()",
            "tf32 is not supported",
            "TF32 is not supported",
            "with bfloat16 requires",
            "bfloat16 is not supported on",
        ),
        pattern=(
            r"(?:GPU|device|hardware|card)s? (?:doesn't|does not|don't|do not|cannot) support (?:bfloat16|bf16)"
            r"|assert .{0,40}is_bf16_supported\(\)|(?:tf32|TF32) is not supported on"
            r"|with bfloat16 requires|bfloat16 is not supported on (?:this|your|the|sm)"
        ),
        examples=(
            "Your GPU doesn't support bfloat16, use fp16",
            "    assert torch.cuda.is_bf16_supported()",
            "AssertionError: attention with bfloat16 requires SM80 or newer",
        ),
        not_examples=(
            "is_bf16_supported() -> True",
            "all cards support bfloat16",
        ),
        weight=50,
        not_near=("falling back", "Falling back"),
    ),
    Signature(
        anchor=("not support b", "n't support b", "t support BF16", "t support BFloat16"),
        pattern=(r"\b(?:does not|do not|doesn't|don't) support (?:bfloat16|bf16|BF16|BFloat16)\b"),
        examples=(
            "RTX 2080 does not support bfloat16",
            "ValueError: these cards do not support bf16",
        ),
        not_examples=("does not support bfloat8",),
        weight=36,
        not_near=("falling back", "Falling back"),
    ),
)
