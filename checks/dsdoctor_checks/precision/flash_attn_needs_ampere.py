"""FlashAttention-2 is used on a GPU older than Ampere.

## Why it matters
FlashAttention-2 has kernels for compute capability 8.0 and newer. On V100, T4 and RTX 20 it fails at
the first call.

## What to do
Use `attn_implementation="sdpa"`, or a GPU of compute capability 8.0 or newer.

## References
- flash-attn 2.8 csrc/flash_attn/flash_api.cpp; transformers 4.36-5.23 `attn_implementation`,
  LLaMA-Factory `flash_attn: fa2`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import capabilities, dotted
from dsdoctor_checks.precision._config import option_values

CONDITION = Condition("flash-attn-needs-ampere", id="DSD550", scope=Scope.USER_ENV, since="0.1")

_FLOOR = (8, 0)
#: Options of scripts, and their values that stand for FlashAttention-2.
_OPTIONS = {
    "attn_implementation": ("flash_attention_2",),
    "attention_implementation": ("flash_attention_2",),
    "flash_attn": ("fa2",),
    "use_flash_attention_2": ("", "1", "true", "yes"),
}


@check(CONDITION)
def gpus_run_flash_attention(
    command: LaunchCommand,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    env: Environment | Missing,
) -> Iterator[Finding]:
    """Compares the GPUs of the run with a request for FlashAttention-2 in the command."""
    asked = [
        (name, value)
        for name, value in option_values(command)
        if value.lower() in _OPTIONS.get(name, ())
    ]
    devices = capabilities(gpus, live, run, env)
    if not asked or not devices:
        yield skip("the command does not request FlashAttention-2, or no GPU is known")
        return
    lacking = {name: dotted(cc) for name, cc in devices.items() if cc < _FLOOR}
    if not lacking:
        yield ok(option=asked[0][0])
        return
    option = f"--{asked[0][0]} {asked[0][1]}".rstrip()
    name, capability = next(iter(lacking.items()))
    yield fail(
        f"`{option}` requests FlashAttention-2, but {name} has capability {capability} and it needs"
        f" {dotted(_FLOOR)}",
        effect="the first call stops with `FlashAttention only supports Ampere GPUs or newer`",
        hint="use `--attn_implementation sdpa`, or GPUs of capability 8.0 or newer",
        lacking=lacking,
        needs=dotted(_FLOOR),
    )


HINT = 'use `attn_implementation="sdpa"`, or a GPU of compute capability 8.0 or newer'

SIGNATURES = (
    Signature(
        pattern="FlashAttention(?:-2)? (?:only supports|requires|is only supported on|forward only supports|backward (?:for|only)).{0,60}(?:Ampere|Turing|sm8|A100|capability|head dim >)",
        source="flash-attn 1.0-2.8 csrc/flash_attn/flash_api.cpp, fmha_api.cpp; vllm, xformers",
        examples=(
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
            "RuntimeError: FlashAttention backward for head dim > 64 requires A100 or H100 GPUs as the implementation needs a large amount of shared memory.",
            "ValueError: FlashAttention-2 requires a GPU with compute capability 8.0 or higher; Ampere GPUs or newer",
            "FlashAttention is only supported on ... Ampere",
            "FlashAttention forward only supports ... Ampere",
            "FlashAttention only supports ... Turing",
            "FlashAttention only supports ... sm8",
        ),
        not_examples=(
            "RuntimeError: FlashAttention is only supported on CUDA 11.7 and above.  Note: make sure nvcc has a supported version by running nvcc -V.",
            "RuntimeError: FlashAttention forward only supports head dimension at most 256",
        ),
        level=Level.CERTAIN,
        masks=("gpu-arch-unsupported",),
    ),
    Signature(
        pattern=r"Expected is_sm(?:8x|90|80|75)\b|FlashAttention-?3? only supports Hopper|requires device with capability > \(8, 0\) but your GPU",
        source=(
            "torch 2.0-2.1 aten/src/ATen/native/transformers/cuda/flash_attn/fmha_api.cpp; flash-"
            "attn 2.7-2.8 hopper/flash_api.cpp; xformers"
        ),
        examples=(
            "RuntimeError: Expected is_sm90 || is_sm8x || is_sm75 to be true, but got false.",
            "RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.",
            "    requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)",
            "FlashAttention only supports Hopper",
        ),
        masks=("gpu-arch-unsupported",),
    ),
    Signature(
        pattern=r"GPU with CUDA capability \d{1,2} \d is not supported",
        source="cutlass 3-4 and programs of NVIDIA that print cudaDeviceProp major and minor",
        examples=(
            "RuntimeError: GPU with CUDA capability 7 5 is not supported!",
            "FATAL: kernel x is for sm80, and the GPU with CUDA capability 7 0 is not supported",
        ),
        not_examples=("GPU with CUDA capability 8 0 is supported",),
    ),
    Signature(
        pattern=r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): (?=.{0,120}(?i:flash[ _-]?att(?:entio)?n)).{0,200}(?:\bGPUs?\b|Amper|A100|H100|[Hh]ardware|compute capability|architecture|sm_?[78])",
        source=(
            "programs' own checks before they use flash-attn, such as transformers 4.34-5.23 "
            "modeling_utils.py, xformers 0.0.20-0.0.33 ops/fmha/flash.py"
        ),
        examples=(
            "AssertionError: Flash attention is only supported on A100 or H100 GPU during training",
            "ValueError: flash-attention needs newer hardware than sm_70",
            "RuntimeException: flashattn GPU",
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
            "ValueError: FlashAttention-2 requires a GPU with compute capability 8.0 or higher; Ampere GPUs or newer",
            "RuntimeError: flashattn architecture",
        ),
        not_examples=("RuntimeError: FlashAttention only support fp16 and bf16 data type",),
        level=Level.HINT,
    ),
    Signature(
        pattern="only supports gpu architectures in the range",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "UserWarning: Flash attention only supports gpu architectures in the range [sm80, sm90]. Attempting to run on a sm 7.5 gpu.",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern="sm8x gpu architectures",
        source="torch 2.0-2.1 aten/src/ATen/native/transformers/cuda/sdp_utils.h",
        examples=("sm8x gpu architectures",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="lash attention requires sm80",
        source="programs' own checks before they use flash-attn",
        examples=("lash attention requires sm80",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="ttention-3 requires Hopper",
        source=(
            "programs' own checks before they use flash-attn 3, such as transformer_engine 1-2, "
            "lmdeploy 0.6-0.11"
        ),
        examples=("AssertionError: FlashAttention-3 requires Hopper",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"fmha_(?:fwd|bwd)_launch_template\.h:\d{1,5}\): invalid",
        source="flash_attn 0.2-1.0 csrc/flash_attn/src/fmha_fwd_launch_template.h",
        examples=(
            "fmha_fwd_launch_template.h:7): invalid",
            "fmha_bwd_launch_template.h:7): invalid",
        ),
        not_examples=("fmha_fwd_launch_template.h:7):",),
        level=Level.WEAK,
    ),
)
