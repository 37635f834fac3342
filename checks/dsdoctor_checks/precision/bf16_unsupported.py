"""The config enables bf16, but a GPU of this run has no hardware for it.

## Why it matters
Hardware support for bf16 starts with compute capability 8.0 (Ampere). Since torch 2.3,
`torch.cuda.is_bf16_supported()` also returns true on a V100 or T4, because it counts emulation.
DeepSpeed relies on that function, so training starts and runs many times slower than in fp16.

## What to do
Enable `fp16` instead of `bf16` in the config, or use GPUs of capability 8.0 or higher.

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
    Level,
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
    """Judges the hardware, unlike torch, which counts emulation by default."""
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
        asked = (
            "the config does not enable bf16" if run.config is not None else "no config was passed"
        )
        yield skip(f"{asked}; {listed(lacking)} has no hardware for it", **evidence)
        return
    version = torch.version if isinstance(torch, TorchBuild) else None
    emulates = at_least(version, "2.3")
    emulated = live.bf16_emulated if isinstance(live, TorchLive) else None
    name, capability = next(iter(lacking.items()))
    yield fail(
        f"`{section}` is enabled, but {name} has capability {capability}"
        f" and bf16 needs {dotted(_FLOOR)}",
        effect="torch emulates bf16, and training runs many times slower"
        if emulates
        else "DeepSpeed fails with `Type bf16 is not supported on your device`",
        hint="enable `fp16` instead in the config, or use GPUs of capability 8.0 or higher",
        section=section,
        lacking=lacking,
        needs=dotted(_FLOOR),
        is_bf16_supported=emulated,
        torch=version,
        **evidence,
    )


HINT = (
    "enable `fp16` instead of `bf16` in the config, or use a GPU of compute capability 8.0 or newer"
)

SIGNATURES = (
    Signature(
        pattern=r"setup doesn't support bf16/gpu",
        source="transformers 4.17-5.24 training_args.py",
        message="transformers finds no GPU with bf16: torch sees none, or it is older than Ampere",
        hint="if this machine has such a GPU, find out with `dsdoctor check` why torch does not see"
        " it; to train on the CPU, pass `--use_cpu`; otherwise leave out bf16",
        examples=(
            "ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0",
            "ValueError: Your setup doesn't support bf16/gpu. You need to assign use_cpu if you want to train the model on CPU.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?i)(?:does ?n[o']t|not|n't) support(?:ed)? bf16(?!/gpu)|bf16 (?:\S+ ){0,3}(?:is )?not supported(?!,? (?:so |and )?(?:using|falling|fallback|we use|use) )(?! (?:by (?!your|this|the)|with )\w)|bfloat16 is not supported (?:on|by) (?:your|this|the)",
        source="torch 2.13.0 libtorch_cpu.so; cuda toolkit 12.9.86 ptxas; deepspeed 0.16.9-0.19.8 runtime/engine.py",
        examples=(
            "ValueError: this setup does not support bf16 training",
            "RuntimeError: bf16 is not supported on this device",
            "bfloat16 is not supported on your",
        ),
        not_examples=(
            "fp8 is not supported here, bf16 is",
            "dtype: float32 (sm_70, bf16 not supported, using float32)",
            "ValueError: bf16 is not supported by apex",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="bf16 mixed precision requires PyTorch",
        source="accelerate 0.12-1.15 accelerator.py, commands/launch.py",
        examples=(
            "ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.",
        ),
        level=Level.CERTAIN,
        message="accelerate is to train in bf16, for which a device of this machine has no hardware",
        hint="set `mixed_precision` to `fp16`, or use a GPU of compute capability 8.0 or newer",
    ),
    Signature(
        pattern="(?i)(?:Bfloat16 is only supported on GPUs with compute capability|type bf16 is not supported|(?:current|device|gpu|hardware|cuda)[^.]{0,60} does not support (?:bf16|bfloat16)|bfloat16 is not supported on (?:your|this|current))",
        source=("vllm 0.2-0.11 worker/worker.py; torch 1.10-2.13 amp/autocast_mode.py"),
        examples=(
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
            "ValueError: type bf16 is not supported on your device.",
            "RuntimeError: Current CUDA Device does not support bfloat16. Please switch dtype to float16.",
            "bfloat16 is not supported on your",
        ),
        not_examples=(" DOES NOT SUPPORT BF16 ",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="(?:bf16|BF16) requires (?:PyTorch|torch|Ampere)",
        source="programs' own checks before they use the type",
        examples=(
            "ValueError: bf16 requires PyTorch >= 1.10 and an Ampere GPU",
            "ValueError: BF16 requires Ampere GPUs",
            "bf16 requires torch",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Feature '(?:[\w.]*\.)?bf16[\w.]*' requires \.target sm_80|bf16 is only supported on A100\+ GPUs|CUBLAS_STATUS_NOT_SUPPORTED.{0,200}CUDA_R_16BF",
        source="torch 1.10-2.13 aten/src/ATen/cuda/CUDABlas.cpp",
        examples=(
            "ptxas /tmp/x, line 97; error   : Feature '.bf16' requires .target sm_80 or higher",
            "ptxas /tmp/x, line 9; error   : Feature 'cvt.rn.bf16.f32' requires .target sm_80 or higher",
            "    bf16 is only supported on A100+ GPUs",
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx( handle, opa, opb, m, n, k, &falpha, a, CUDA_R_16BF, lda, b, CUDA_R_16BF, ldb, &fbeta, c, CUDA_R_16BF, ldc, CUDA_R_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP)`",
        ),
        not_examples=("'.bf16' requires .target sm_80 or higher",),
        level=Level.STRONG,
        masks=("flash-attn-needs-ampere",),
    ),
    Signature(
        # a release of torch may lack the kernel for a GPU that has the type; `_amp_` is the scaler
        # of fp16, which has none for bf16 on any GPU
        pattern=r"RuntimeError: \"(?!_amp_)\w+\" not implemented for 'BFloat16'",
        source="torch 1.10-2.13 aten/src/ATen/Dispatch.h",
        examples=("RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'",),
        not_examples=(
            "RuntimeError: \"_amp_foreach_non_finite_check_and_unscale_cuda\" not implemented for 'BFloat16'",
        ),
        masks=("flash-attn-needs-ampere",),
    ),
    Signature(
        pattern="CUBLAS_STATUS_(?:INVALID_VALUE|ARCH_MISMATCH).{0,300}CUDA_R_16BF",
        source="torch 1.10-2.13 aten/src/ATen/cuda/CUDABlas.cpp",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx( h, a, b, CUDA_R_16BF, c)`",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasGemmEx(h, CUDA_R_16BF)`",
        ),
        not_examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasGemmStridedBatchedEx`",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"^\(int\)m, \(int\)n, \(int\)k, \(void\*\).{0,200}CUDA_R_16BF",
        source="torch 1.10-2.13 aten/src/ATen/cuda/CUDABlas.cpp",
        examples=("(int)m, (int)n, (int)k, (void*)&falpha, a, CUDA_R_16BF, (int)lda, stridea, b",),
        not_examples=("(int)m, (int)n, (int)k, (void*)&falpha, a, CUDA_R_16F, (int)lda",),
        level=Level.WEAK,
        near=("CUBLAS_STATUS_", "Error"),
    ),
    Signature(
        pattern=r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): (?=.{0,160}(?i:\bbf16|\bbfloat16))(?=.{0,200}(?:n't|not|only|requires?|needs?|lacks?))(?!.{0,200}not supported by (?!your|this|the)\w).{0,200}(?:\bGPUs?\b|[Dd]evice|[Hh]ardware|Ampere|compute capability)",
        source=(
            "any package that refuses the type and names the GPU, such as transformers 4.17-5.23 "
            "training_args.py"
        ),
        examples=(
            "RuntimeError: bf16 needs an Ampere card, this device is older",
            "ValueError: bfloat16 does not work on this GPU",
            "RuntimeException: bf16 n't GPU",
            "RuntimeError: bf16 n't Hardware",
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5. You can use float16 instead by explicitly setting the`dtype` flag in CLI, for example: --dtype=half.",
        ),
        not_examples=("ValueError: bf16 and fp16 are both set",),
        level=Level.HINT,
        not_near=("mps", "MPS"),
    ),
    Signature(
        pattern="(?:GPU|device|hardware|card)s? (?:doesn't|does not|don't|do not|cannot) support (?:bfloat16|bf16)",
        source=(
            "programs' own checks before they use the type, such as accelerate 0.20-1.15, pytorch "
            "lightning 2.0-2.6"
        ),
        examples=(
            "Your GPU doesn't support bfloat16, use fp16",
            "device doesn't support bfloat16",
            "hardware doesn't support bfloat16",
            "ValueError: the selected cards do not support bf16, use fp16",
            "GPU does not support bfloat16",
            "GPU don't support bfloat16",
            "GPU cannot support bfloat16",
        ),
        not_examples=(
            "ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0",
        ),
        not_near=("falling back", "Falling back"),
    ),
    Signature(
        pattern=r"assert .{0,40}is_bf16_supported\(\)",
        source=(
            "python 3.3-3.14 Lib/traceback.py: a line of the script that asks torch 1.10-2.13 "
            "cuda/__init__.py"
        ),
        examples=("    assert torch.cuda.is_bf16_supported()",),
        not_examples=("is_bf16_supported() -> True",),
        not_near=("falling back", "Falling back"),
    ),
    Signature(
        pattern="bfloat16 is not supported on (?:this|your|the|sm)",
        source=(
            "programs' own checks before they use the type, such as torch 1.10-2.13 "
            "cuda/amp/autocast_mode.py"
        ),
        examples=(
            "bfloat16 is not supported on this",
            "bfloat16 is not supported on your",
            "bfloat16 is not supported on the",
            "bfloat16 is not supported on sm",
        ),
        not_near=("falling back", "Falling back"),
    ),
    Signature(
        pattern=r"\b(?:does not|do not|doesn't|don't) support (?:bfloat16|bf16(?!/gpu)|BF16|BFloat16)\b",
        source=(
            "programs' own checks before they use the type, such as colossalai 0.1-0.4 "
            "nn/optimizer/cpu_adam.py, torchtune 0.4-0.6"
        ),
        examples=(
            "RTX 2080 does not support bfloat16",
            "RTX 2060 doesn't support bfloat16",
            "ValueError: these cards do not support bf16",
            "don't support bfloat16",
            "does not support BF16",
            "does not support BFloat16",
        ),
        level=Level.WEAK,
        not_near=("falling back", "Falling back"),
    ),
)
