"""How `gpu-oom` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "gpu-oom"
TITLE = "the GPU's memory is exhausted"
HINT = "lower the micro batch or the sequence length, raise the ZeRO stage, or offload"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "CUDA out of memory",
            "OutOfMemoryError",
            "CUDA error: out of memory",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "runtime error (2)",
            "cudaErrorMemoryAllocation",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "HIP out of memory",
            "CUDNN_STATUS_ALLOC_FAILED",
            "failed to allocate memory on device",
            "cuda out of memory",
            "CUDA Error: out of memory",
        ),
        pattern=(
            r"CUDA out of memory|OutOfMemoryError|CUDA [Ee]rror: out of memory"
            r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|cuda runtime error \(2\)"
            r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory"
        ),
        examples=(
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
            "RuntimeError: cuda runtime error (2) : out of memory at x.cu:66",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        not_examples=("Out of memory: Killed process 77",),
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
        ),
        not_examples=("CUBLAS ok",),
        weight=40,
    ),
)
