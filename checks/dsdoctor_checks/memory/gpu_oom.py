"""The GPU's memory is exhausted.

## Why it matters
Parameters, gradients, optimizer states, activations and logits together exceed what is free on
the GPU.

## What to do
Lower the micro batch or the sequence length, raise the ZeRO stage, or offload.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("gpu-oom", id="DSD1451", scope=Scope.JOB, since="0.1")

HINT = "lower the micro batch or the sequence length, raise the ZeRO stage, or offload"

SIGNATURES = (
    Signature(
        anchor=(
            "OutOfMemoryError",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "runtime error (2)",
            "cudaErrorMemoryAllocation",
            "CUDA_ERROR_OUT_OF_MEMORY",
            " out of memory",
            "(out of memory",
            "failure 2 'out of memory'",
            "failure 'out of memory'",
            "CUDNN_STATUS_ALLOC_FAILED",
            "failed to allocate memory on device",
        ),
        pattern=(
            r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang"
            r"|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*(?:CUDA out of memory"
            r"|OutOfMemoryError|CUDA [Ee]rror: out of memory"
            r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
            r"|cuda runtime error \(2\)|cudaErrorMemoryAllocation"
            r"|CUDA_ERROR_OUT_OF_MEMORY|(?:HIP|NPU|XPU) out of memory"
            r"|[Cc]uda failure (?:2 )?'out of memory'|(?:CUDA|cuda|Cuda|HIP|[Dd]evice)\b.{0,30}[ (]out of memory)"
        ),
        examples=(
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
            "RuntimeError: cuda runtime error (2) : out of memory at x.cu:66",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        not_examples=(
            "Out of memory: Killed process 77",
            "reduce the batch size to avoid CUDA out of memory errors",
            "java.lang.OutOfMemoryError: Java heap space",
        ),
        weight=68,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        anchor="CUBLAS_STATUS_NOT_INITIALIZED",
        pattern=r"CUBLAS_STATUS_NOT_INITIALIZED",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)",
        ),
        not_examples=("CUBLAS_STATUS_SUCCESS",),
        weight=40,
    ),
    Signature(
        anchor=("dispatched on the CPU or the disk", "enough GPU RAM"),
        pattern="Some modules are dispatched on the CPU or the disk",
        examples=(
            "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.",
            "ValueError: Some modules are dispatched on the CPU or the disk.",
        ),
        not_examples=("all modules are dispatched on the GPU",),
        weight=52,
    ),
    Signature(
        anchor="Allocation on device",
        pattern=(
            r"Allocation on device \d* ?would exceed|Allocation on device \d*\.? ?\(out of memory\)"
        ),
        examples=(
            "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
            "Allocation on device (out of memory)",
        ),
        not_examples=("Allocation on device cuda:0 done",),
        weight=66,
        masks=("nccl-timeout-watchdog",),
    ),
)
