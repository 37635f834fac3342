"""FlashAttention-2 is used on a GPU older than Ampere.

## Why it matters
FlashAttention-2 has kernels for compute capability 8.0 and newer; on V100, T4 and RTX 20 it stops
at the first call.

## What to do
Use `attn_implementation="sdpa"`, or a GPU of compute capability 8.0 or newer.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("flash-attn-needs-ampere", id="DSD550", scope=Scope.USER_ENV, since="0.1")

HINT = 'use `attn_implementation="sdpa"`, or a GPU of compute capability 8.0 or newer'

SIGNATURES = (
    Signature(
        anchor=("Ampere GPUs or newer", "FlashAttention"),
        pattern=(
            r"FlashAttention(?:-2)? (?:only supports|requires|is only supported on"
            r"|forward only supports|backward (?:for|only)).{0,60}(?:Ampere"
            r"|Turing|sm8|A100|capability|head dim)"
        ),
        examples=(
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
            "RuntimeError: FlashAttention backward for head dim > 64 requires A100 or H100 GPUs as the implementation needs a large amount of shared memory.",
        ),
        not_examples=(
            "FlashAttention enabled",
            "RuntimeError: FlashAttention only support fp16 and bf16 data type",
        ),
        weight=72,
        masks=("gpu-arch-unsupported",),
    ),
    Signature(
        anchor=(
            "is_sm8x",
            "is_sm90",
            "only supports Hopper",
            "requires device with capability",
            "Expected is_sm80",
            "Expected is_sm75",
        ),
        pattern=(
            r"Expected is_sm(?:8x|90|80|75)\b|FlashAttention-?3? only supports Hopper"
            r"|requires device with capability > \(8, 0\) but your GPU"
        ),
        examples=(
            "RuntimeError: Expected is_sm90 || is_sm8x || is_sm75 to be true, but got false.",
            "RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.",
            "    requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
        ),
        not_examples=("is_sm90 = True",),
        weight=58,
        masks=("gpu-arch-unsupported",),
    ),
    Signature(
        anchor="GPU with CUDA capability ",
        pattern=r"GPU with CUDA capability \d{1,2} \d is not supported",
        examples=(
            "RuntimeError: GPU with CUDA capability 7 5 is not supported!",
            "FATAL: kernel x is for sm80, and the GPU with CUDA capability 7 0 is not supported",
        ),
        not_examples=("GPU with CUDA capability 8 0 is supported",),
        weight=56,
    ),
    Signature(
        anchor=("lashAttention", "lash attention", "lash Attention", "lash-attention", "lash_attn"),
        pattern=(
            r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): "
            r"(?=.{0,120}(?i:flash[ _-]?att(?:entio)?n)).{0,200}"
            r"(?:\bGPUs?\b|Amper|A100|H100|[Hh]ardware|compute capability|architecture|sm_?[78])"
        ),
        examples=(
            "AssertionError: Flash attention is only supported on A100 or H100 GPU during training",
            "ValueError: flash-attention needs newer hardware than sm_70",
        ),
        not_examples=("RuntimeError: FlashAttention only support fp16 and bf16 data type",),
        weight=30,
    ),
    Signature(
        anchor=(
            "gpu architectures in the range",
            "sm8x gpu architectures",
            "lash attention requires sm80",
            "ttention-3 requires Hopper",
            "for Volta and Turing",
            "fmha_fwd_launch_template",
            "fmha_bwd_launch_template",
            "lash_attn requires GPU",
            "lash-attn requires GPU",
        ),
        pattern=(
            r"only supports gpu architectures in the range|sm8x gpu architectures"
            r"|lash attention requires sm80|ttention-3 requires Hopper"
            r"|annot use FlashAttention\S{0,4} (?:backend )?for Volta and Turing"
            r"|fmha_(?:fwd|bwd)_launch_template\.h:\d{1,5}\): invalid"
            r"|lash[_-]attn requires GPU"
        ),
        examples=(
            "UserWarning: Flash attention only supports gpu architectures in the range [sm80, sm90]. Attempting to run on a sm 7.5 gpu.",
            "Cannot use FlashAttention-2 backend for Volta and Turing GPUs.",
            "AssertionError: FlashAttention-3 requires Hopper",
        ),
        not_examples=(
            "compiling fmha_fwd_launch_template.h",
            "kernels for Volta and Turing are built",
        ),
        weight=40,
    ),
)
