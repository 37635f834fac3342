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

_ANCHORS = ("CUDA out of memory", "OutOfMemoryError", "HIP out of memory")
_PATTERN = r"(?:CUDA|HIP) out of memory|OutOfMemoryError:"
_EXAMPLES = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 GiB",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB (GPU 0; 31.75 GiB total capacity)",
    "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB",
)


def _while(doing: str, near: tuple[str, ...], not_near: tuple[str, ...] = ()) -> Signature:
    """The same death, where the frames above it tell what was being done (guide row C1)."""
    return Signature(
        anchor=_ANCHORS,
        pattern=_PATTERN,
        examples=_EXAMPLES,
        not_examples=("Out of memory: Killed process 77", "except torch.OutOfMemoryError as error"),
        weight=69,
        near=near,
        not_near=not_near,
        message=f"The GPU's memory is exhausted {doing}",
    )


#: What stands in the last frames of the traceback, in order: the first that fits speaks.
PLACES = (
    _while(
        "while the model was moved to the GPU, before DeepSpeed shared it out among the ranks",
        ("return t.to(", "in _apply\n", "_load_state_dict_into", "caching_allocator_warmup"),
        ("deepspeed/runtime/", "_configure_"),
    ),
    _while(
        "while DeepSpeed set up: parameters, gradients and optimizer states alone do not fit at this ZeRO stage",
        (
            "_configure_zero_optimizer",
            "_configure_optimizer",
            "initialize_optimizer_states",
            "_setup_for_real_optimizer",
        ),
    ),
    _while(
        "in the optimizer's step: the optimizer states do not fit at this ZeRO stage without offload",
        ("exp_avg", "in _init_group", "_take_model_step", "self.optimizer.step()"),
    ),
    _while(
        "in the logits or the loss, which take micro batch × sequence length × vocabulary",
        ("cross_entropy", "logits.float()", "self.lm_head(", "log_softmax"),
    ),
    _while(
        "in the attention, whose memory grows with the sequence length",
        (
            "scaled_dot_product_attention",
            "attn_weights",
            "attention_scores",
            "eager_attention_forward",
            "flash_attn",
        ),
    ),
    _while(
        "in the backward pass: activations and gradients of this micro batch do not fit",
        ("run_backward", "loss.backward()", "engine.backward", "self.engine.backward"),
    ),
    _while(
        "in the forward pass: the activations of this micro batch and sequence length do not fit",
        ("in forward\n", "in _call_impl"),
    ),
)

SIGNATURES = (
    *PLACES,
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
            "Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB",
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
        not_examples=(
            "cublasCreate(handle) returned CUBLAS_STATUS_SUCCESS, not CUBLAS_STATUS_NOT_INIT",
        ),
        weight=40,
    ),
    Signature(
        anchor=("dispatched on the CPU or the disk", "enough GPU RAM"),
        pattern="Some modules are dispatched on the CPU or the disk",
        examples=(
            "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.",
            "ValueError: Some modules are dispatched on the CPU or the disk.",
        ),
        not_examples=(
            "no module is dispatched on the CPU or the disk",
            "12 modules were asked to be dispatched on the CPU or the disk by the device_map",
        ),
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
        not_examples=("Allocation on device 0 took 20.00 MiB (80.00 GiB in all)",),
        weight=66,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        anchor=(
            "gpu_memory_utilization",
            "OOM when allocating tensor",
            "RESOURCE_EXHAUSTED: ",
            "KV cache",
            "desired GPU memory",
            "available memory for the cache",
            "error == cudaSuccess. 2 vs 0",
        ),
        pattern=r"No available memory for the cache blocks|is less than desired GPU memory utilization|OOM when allocating tensor|RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)|larger than the (?:maximum|available) .{0,60}KV cache|error == cudaSuccess\. 2 vs 0",
        examples=(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
            "ResourceExhaustedError: OOM when allocating tensor with shape[8,512]",
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 512 bytes.",
        ),
        not_examples=(
            "INFO gpu_memory_utilization=0.9, 4301 blocks for the cache",
            "RESOURCE_EXHAUSTED: quota of requests per minute",
        ),
        weight=62,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        anchor=("find a valid cuDNN algorithm", "unable to find an engine to execute"),
        pattern=r"Unable to find a valid cuDNN algorithm|(?:FIND|GET) was unable to find an engine to execute",
        examples=(
            "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
            "RuntimeError: FIND was unable to find an engine to execute this computation",
        ),
        not_examples=("autotune: did not find a valid cuDNN algorithm in the cache, measuring",),
        weight=42,
    ),
    Signature(
        anchor=("pin memory",),
        pattern=r"pin memory.{0,40}out of memory",
        examples=(
            "RuntimeError: CUDA Error while trying to pin memory. error: out of memory",
            "could not pin memory: out of memory",
        ),
        not_examples=("pin memory is off, as it is out of use",),
        weight=56,
    ),
)
