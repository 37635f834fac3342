"""Messages of `gpu-oom`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: A line about CUDA's own start, which reserves memory of the host and uses none of the GPU's: `cuda-init-driver-state`.
_USED = r"^(?!.*(?:\bcudaGetDeviceCount\b|\bcuInit\b|failed to initialize CUDA: ))"
_PATTERN = r"(?:CUDA|HIP) out of memory|OutOfMemoryError:(?! out of resource: )"
_EXAMPLES = (
    "RuntimeError: HIP out of memory. Tried to allocate 256.00 MiB",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 GiB",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB (GPU 0; 31.75 GiB total capacity)",
    "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB",
)


def _out_of_memory_while(
    doing: str, hint: str, near: tuple[str, ...], not_near: tuple[str, ...] = ()
) -> Signature:
    """The same error, where the frames above it show what was being done."""
    return Signature(
        pattern=_PATTERN,
        source="torch 0.4-2.13 c10/cuda/CUDACachingAllocator.cpp",
        examples=_EXAMPLES,
        level=Level.CERTAIN,
        near=near,
        not_near=not_near,
        message=f"The GPU ran out of memory {doing}",
        hint=hint,
    )


_STATES = "raise the ZeRO stage, offload the optimizer, or use more GPUs"
_ACTIVATIONS = "lower the micro-batch or the sequence length, or use activation checkpointing"

#: Four GiB and more; the context that each other rank leaves on a GPU takes less.
_OTHERS = r"Process \d+ has (?:[4-9]|\d{2,4})\.\d{1,3} GiB memory in use\."
_OWN = r"this process has \S{1,10} [KMG]iB memory in use\."
#: Without `this process`, one of them may be this one: a container has process numbers of its own.
HELD_BY_OTHERS = Signature(
    pattern=rf"OutOfMemoryError: .{{0,300}}(?:{_OTHERS} .{{0,300}}{_OWN}|{_OWN} .{{0,300}}{_OTHERS})",
    source="torch 2.1-2.13 c10/cuda/CUDACachingAllocator.cpp: reportProcessMemoryInfo",
    examples=(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 25.38 MiB is free. Process 3451 has 60.10 GiB memory in use. Including non-PyTorch memory, this process has 19.00 GiB memory in use. Of the allocated memory 18.00 GiB is allocated by PyTorch",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 23.64 GiB of which 5.38 MiB is free. Including non-PyTorch memory, this process has 612.00 MiB memory in use. Process 811 has 7.25 GiB memory in use. Process 812 has 15.70 GiB memory in use.",
    ),
    not_examples=(
        "torch.OutOfMemoryError: CUDA out of memory. Process 3451 has 520.00 MiB memory in use. Including non-PyTorch memory, this process has 19.00 GiB memory in use.",
        "torch.OutOfMemoryError: CUDA out of memory. Process 3451 has 19.00 GiB memory in use. Of the allocated memory 18.00 GiB is allocated by PyTorch",
    ),
    level=Level.CERTAIN,
    message="Other processes hold memory of this GPU, and the rest was too small",
    hint="see with `nvidia-smi` which processes these are, and end them or choose another GPU; if they are"
    " ranks of this job, give each its own GPU (`torch.cuda.set_device` with `LOCAL_RANK`)",
)

_HOLDS = r"(?:(?! and ).){0,400} and "
#: The pool holds more that nothing uses than the allocation asked for, but in pieces.
IN_PIECES = Signature(
    pattern=(
        rf"CUDA out of memory\. Tried to allocate (?:\d{{1,4}}\.\d\d MiB\.{_HOLDS}(?:[2-9]|\d{{2,4}})"
        rf"|[12]\.\d\d GiB\.{_HOLDS}(?:[4-9]|\d{{2,4}})|[3-6]\.\d\d GiB\.{_HOLDS}(?:[89]|\d{{2,4}})"
        rf"|[7-9]\.\d\d GiB\.{_HOLDS}\d{{2,4}})\.\d\d GiB is reserved by PyTorch but unallocated"
    ),
    source="torch 2.1-2.13 c10/cuda/CUDACachingAllocator.cpp",
    examples=tuple(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {wanted}. GPU 0 has a total capacity of 23.69 GiB of which 5.25 MiB is free. Including non-PyTorch memory, this process has 18.43 GiB memory in use. Of the allocated memory 11.14 GiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
        for wanted, unused in (
            ("734.00 MiB", "6.77 GiB"),
            ("2.00 GiB", "4.01 GiB"),
            ("3.50 GiB", "8.77 GiB"),
            ("9.00 GiB", "12.77 GiB"),
        )
    ),
    not_examples=(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.34 GiB. GPU 0 has a total capacity of 23.69 GiB of which 5.25 GiB is free. Of the allocated memory 11.14 GiB is allocated by PyTorch, and 6.77 GiB is reserved by PyTorch but unallocated.",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. Of the allocated memory 62.82 GiB is allocated by PyTorch, and 1.47 GiB is reserved by PyTorch but unallocated.",
    ),
    level=Level.CERTAIN,
    message="The GPU ran out of memory although torch holds more unused memory than it asked for: that memory is in pieces",
    hint="set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (Linux); if it still runs out, lower the micro-batch or the sequence length",
)

#: What the last frames of the traceback contain, in order: the first match is used.
PLACES = (
    HELD_BY_OTHERS,
    IN_PIECES,
    _out_of_memory_while(
        "in an inference engine (vLLM or SGLang)",
        "use more GPUs (tensor parallelism) or quantized weights, lower the longest sequence and the"
        " number of sequences, and end what else uses the GPU (`nvidia-smi`)",
        ("/vllm/v1/", "/vllm/worker/", "/vllm/model_executor/", "/vllm/engine/", "/sglang/srt/"),
        ("deepspeed/runtime/", "run_backward", "loss.backward()"),
    ),
    _out_of_memory_while(
        "while the model was moved to the GPU, before DeepSpeed partitioned it",
        "load the model on the CPU and do not call `.to('cuda')` before `deepspeed.initialize`; with"
        " ZeRO-3 create it under `deepspeed.zero.Init`",
        ("return t.to(", "in _apply\n", "_load_state_dict_into", "caching_allocator_warmup"),
        ("deepspeed/runtime/", "_configure_"),
    ),
    _out_of_memory_while(
        "during DeepSpeed's setup: parameters, gradients and optimizer states do not fit at this ZeRO stage",
        _STATES,
        (
            "_configure_zero_optimizer",
            "_configure_optimizer",
            "initialize_optimizer_states",
            "_setup_for_real_optimizer",
        ),
    ),
    _out_of_memory_while(
        "in the optimizer step: the optimizer states do not fit at this ZeRO stage without offload",
        _STATES,
        ("exp_avg", "in _init_group", "_take_model_step", "self.optimizer.step()"),
    ),
    _out_of_memory_while(
        "in the logits or the loss, whose size is micro-batch × sequence length × vocabulary",
        "lower the micro-batch or the sequence length, or use a fused loss (Liger)",
        ("cross_entropy", "logits.float()", "self.lm_head(", "log_softmax"),
    ),
    _out_of_memory_while(
        "in attention, whose memory grows with the sequence length",
        "lower the sequence length or the micro-batch, or use `attn_implementation='sdpa'` or"
        " FlashAttention",
        (
            "scaled_dot_product_attention",
            "attn_weights",
            "attention_scores",
            "eager_attention_forward",
            "flash_attn",
        ),
    ),
    _out_of_memory_while(
        "in the backward pass: activations and gradients of this micro-batch do not fit",
        _ACTIVATIONS,
        ("run_backward", "loss.backward()", "engine.backward", "self.engine.backward"),
    ),
    _out_of_memory_while(
        "in the forward pass: the activations of this micro-batch and sequence length do not fit",
        _ACTIVATIONS,
        ("in forward\n", "in _call_impl"),
    ),
)

SIGNATURES = (
    *PLACES,
    Signature(
        pattern=r"Not enough memory\. Please try (?:to increase|increasing) --mem-fraction-static",
        source="sglang 0.2-0.5 srt/model_executor/model_runner.py",
        examples=(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "RuntimeError: Not enough memory. Please try increasing --mem-fraction-static.",
        ),
        level=Level.CERTAIN,
        message="No GPU memory is left for the KV cache after the weights are loaded",
        hint="raise `--mem-fraction-static`, end what else uses the GPU, or use more GPUs (`--tp`)",
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*CUDA out of memory",
        source="torch 2.4.1 libc10_cuda.so",
        examples=("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",),
        not_examples=("reduce the batch size to avoid CUDA out of memory errors",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*(?<!On)OutOfMemoryError(?!: out of resource: )",
        source="torch 2.4.1 libc10_cuda.so, libtorch_cuda.so",
        examples=("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",),
        not_examples=(
            "java.lang.OutOfMemoryError: Java heap space",
            "JVM arguments [-Xmx1g, -XX:+HeapDumpOnOutOfMemoryError]",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        # somebody says no more than the error, not where it was raised
        pattern=r"(?:RuntimeError|AcceleratorError): CUDA error: out of memory",
        source=(
            "CUDA 7-13 cudart cudaGetErrorString, as torch 1.5-2.13 c10/cuda/CUDAException.cpp "
            "prints it"
        ),
        examples=(
            "RuntimeError: CUDA error: out of memory",
            "torch.AcceleratorError: CUDA error: out of memory",
        ),
        level=Level.STRONG,
        not_near=("Traceback (most recent call last)", 'File "'),
        message="The GPU ran out of memory, outside torch's own pool",
        hint=(
            "see with `nvidia-smi` which other processes use the GPU, and end them or choose another GPU;"
            " if there are none, lower the micro-batch or the sequence length"
        ),
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        # what fails within torch's allocator is an OutOfMemoryError; here the process has none yet
        pattern=r"(?:RuntimeError|AcceleratorError): CUDA error: out of memory",
        source=(
            "CUDA 7-13 cudart cudaGetErrorString, as torch 1.5-2.13 c10/cuda/CUDAException.cpp "
            "prints it"
        ),
        examples=(
            "RuntimeError: CUDA error: out of memory",
            "torch.AcceleratorError: CUDA error: out of memory",
        ),
        level=Level.STRONG,
        near=("_cuda_setDevice", "_cuda_init()", "in _lazy_init", "return t.to("),
        not_near=("deepspeed/runtime/",),
        message="No memory was left on the GPU for this process: it failed as soon as it used the GPU",
        hint="see with `nvidia-smi` which other processes use the GPU, and end them or choose another GPU",
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=_USED
        + r"(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*CUDA (?:[Ee]rror: |error 2 ')out of memory",
        source=(
            "CUDA 7-13 cudart cudaGetErrorString, as torch 1.5-2.13 c10/cuda/CUDAException.cpp "
            "and marian 1.7-1.12 src/tensors/gpu/cuda_helpers.h print it"
        ),
        examples=(
            "torch.AcceleratorError: CUDA error: out of memory",
            "Error: CUDA error 2 'out of memory' - /x/gpu/device.cu:32: cudaMalloc(&data_, size)",
        ),
        not_examples=(
            "Error: CUDA error 2 'out of memory' - /x/gpu/device.cu:12: cudaGetDeviceCount(&count)",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*CUBLAS_STATUS_ALLOC_FAILED",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*CUDNN_STATUS_ALLOC_FAILED",
        source="cuDNN 7-9 cudnn.h, cudnnGetErrorString",
        examples=("CUDNN_STATUS_ALLOC_FAILED",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*cuda runtime error \(2\)",
        source="torch 0.3-1.12 THC/THCGeneral.cpp",
        examples=("RuntimeError: cuda runtime error (2) : out of memory at x.cu:66",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=_USED
        + r"(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*cudaErrorMemoryAllocation",
        source="torch 2.4.1 libc10_cuda.so",
        examples=("cudaErrorMemoryAllocation",),
        not_examples=("cudaGetDeviceCount(&n) failed: cudaErrorMemoryAllocation",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=_USED
        + r"(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*CUDA_ERROR_OUT_OF_MEMORY",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=("CUDA_ERROR_OUT_OF_MEMORY",),
        not_examples=("failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*(?:HIP|NPU|XPU) out of memory",
        source=(
            "torch 1.8-2.13 (ROCm) c10/cuda/CUDACachingAllocator.cpp, torch 2.3-2.13 "
            "c10/xpu/XPUCachingAllocator.cpp, torch_npu 1.8-2.7 "
            "csrc/core/npu/NPUCachingAllocator.cpp"
        ),
        examples=(
            "HIP out of memory",
            "NPU out of memory",
            "XPU out of memory",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"^(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*[Cc]uda failure (?:2 )?'out of memory'",
        source="nccl 2.2-2.32 src/include/checks.h, with cudart's words",
        examples=(
            "node1:771:801 [1] include/alloc.h:102 NCCL WARN Cuda failure 2 'out of memory'",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=_USED
        + r"(?!.*\b(?:if|avoid|case|prevent|may|might|java\.lang|ray\.exceptions)\b.{0,60}(?:out of memory|OutOfMemory)).*(?:CUDA|cuda|Cuda|HIP|[Dd]evice)\b.{0,30}[ (]out of memory",
        source="torch 2.4.1 libc10_cuda.so",
        examples=(
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
            "RuntimeError: cuda runtime error (2) : out of memory at x.cu:66",
            "Cuda ...  out of memory",
            "HIP ...  out of memory",
            "Device ...  out of memory",
        ),
        not_examples=(
            "Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB",
            "ggml_cuda_init: failed to initialize CUDA: out of memory",
            "reduce the batch size to avoid CUDA out of memory errors",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"\b(?:parallel_for|for_each|transform|radix_sort|merge_sort|reduce|reduce_by_key|inclusive_scan|exclusive_scan|scan|scan_by_key|copy_if|partition|unique|unique_by_key|trivial_device_copy [DH]->[DH])(?::| failed\b)[^:]{0,60}: out of memory\b",
        source="thrust 1.9-2.8 thrust/system/cuda/detail: cuda_cub::throw_on_error, before the messages name their code",
        examples=(
            "  what():  parallel_for failed: out of memory",
            "for_each: failed to synchronize: out of memory",
            "transform failed: out of memory",
            "RuntimeError: radix_sort: failed to get memory buffer: out of memory",
            "merge_sort: failed on 1st step: out of memory",
            "reduce failed to synchronize: out of memory",
            "reduce_by_key failed to synchronize: out of memory",
            "inclusive_scan failed: out of memory",
            "exclusive_scan failed: out of memory",
            "scan failed to synchronize: out of memory",
            "scan_by_key failed: out of memory",
            "copy_if failed on 2nd step: out of memory",
            "partition: failed to synchronize: out of memory",
            "unique: failed on 1st step: out of memory",
            "unique_by_key: failed to synchronize: out of memory",
            "trivial_device_copy D->H failed: out of memory",
        ),
        not_examples=("fork failed: out of memory",),
        level=Level.STRONG,
        masks=(
            "native-crash",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"\b[A-Za-z]\w{2,80} failed with error(?: code)?:? out of memory$|\bunable to create (?:CUDA )?stream(?: for \S{1,200})?: (?:CUDA error: )?out of memory\b",
        source="flashinfer 0.2 csrc, with the words of cudaGetErrorString; tritonserver, of the stream of a model instance",
        examples=(
            "RuntimeError: TopKSamplingFromProbs failed with error code out of memory",
            "RuntimeError: Check failed: (status == cudaSuccess) is false: BatchDecode failed with error out of memory",
            "failed to load 'bert' version 1: Internal: unable to create stream: out of memory",
            "failed to load 'bert' version 1: Internal: unable to create stream for bert_0_gpu0: out of memory",
        ),
        not_examples=(
            "fork of 3 workers failed with error: out of memory in the worker",
            "unable to create stream for topic-7: connection refused",
        ),
        level=Level.STRONG,
        masks=(
            "native-crash",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        # memory of the host, though the GPU is to reach it, has another limit
        pattern=_USED
        + r".*(?:\bcuda(?!Host|MallocHost)[A-Z]\w{1,40}\b.{0,100}\b(?:failed|[Ee]rror|ERROR)\b.{0,30}\bout of memory\b|\bCUDA runtime error in .{1,200}: out of memory\b)",
        source="TensorRT-LLM 0.5-1.2 cpp/include/tensorrt_llm/common/cudaUtils.h; loggers of C++ programs that print cudaGetErrorString",
        examples=(
            "[error] [buffers.cpp:55] cudaMalloc failed: out of memory",
            "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMalloc(ptr, n): out of memory (/src/tllmBuffers.h:100)",
        ),
        not_examples=(
            "[error] [buffers.cpp:55] cudaHostAlloc failed: out of memory",
            "[error] [devices.cpp:12] cudaGetDeviceCount failed: out of memory",
            "CUDA runtime error in cudaDeviceSynchronize(): an illegal memory access was encountered",
        ),
        level=Level.STRONG,
        masks=(
            "native-crash",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern="CUBLAS_STATUS_NOT_INITIALIZED",
        source="xformers 0.0.29 third_party/cutlass/tools/util/include/cutlass/util/cublas_wrappers.hpp",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)",
        ),
        level=Level.WEAK,
        # a kernel's assertion leaves a context in which cuBLAS does not start either
        unless=("device-side assert", "Assertion `"),
        message="cuBLAS could not start, usually because GPU memory ran out",
        hint="lower the micro-batch; if GPU memory is free, run with "
        "`CUDA_LAUNCH_BLOCKING=1` and look for an earlier error, such as labels "
        "out of range",
    ),
    Signature(
        pattern="Some modules are dispatched on the CPU or the disk",
        source="accelerate 1.15.0 utils/bnb.py",
        examples=(
            "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.",
            "ValueError: Some modules are dispatched on the CPU or the disk.",
        ),
        message="The quantized model does not fit into the memory of the GPUs",
        hint="use a smaller model or more GPUs, free GPU memory, or set "
        "`llm_int8_enable_fp32_cpu_offload=True`",
    ),
    Signature(
        pattern=r"Allocation on device \d* ?would exceed|Allocation on device \d*\.? ?\(out of memory\)",
        source="torch 2.0-2.13 c10/cuda/CUDAMallocAsyncAllocator.cpp",
        examples=(
            "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
            "Allocation on device (out of memory)",
        ),
        not_examples=("Allocation on device 0 took 20.00 MiB (80.00 GiB in all)",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern="No available memory for the cache blocks",
        source="vllm 0.2-0.11 worker/worker.py, core/kv_cache_utils.py",
        examples=(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        message="No GPU memory is left for the KV cache",
        hint="raise `gpu_memory_utilization`, lower `max_model_len`, or use more GPUs "
        "(`tensor_parallel_size`)",
    ),
    Signature(
        pattern="is less than desired GPU memory utilization",
        source="vllm 0.9-0.11 v1/worker/gpu_worker.py",
        examples=("is less than desired GPU memory utilization",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        message="Less GPU memory is free than vLLM is told to use",
        hint="end what else uses the GPU (`nvidia-smi`), or lower `gpu_memory_utilization`",
    ),
    Signature(
        pattern="OOM when allocating tensor",
        source="tensorflow 1.0-2.20 core/framework/op_kernel.cc",
        examples=("ResourceExhaustedError: OOM when allocating tensor with shape[8,512]",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        hint="lower the batch or the sequence length, or spread the model over more devices",
    ),
    Signature(
        pattern=r"RayTaskError\(OutOfMemoryError\)",
        source="ray 2.0-2.50 python/ray/exceptions.py: the exception of torch that a task raised",
        examples=(
            "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Actor.load() (pid=7, ip=10.0.0.2)",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern="RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)",
        source="xla 2019-2025 tsl/framework/bfc_allocator.cc",
        examples=(
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 512 bytes.",
            "RESOURCE_EXHAUSTED: Failed to allocate",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        hint="lower the batch or the sequence length, or spread the model over more devices",
    ),
    Signature(
        pattern="larger than the (?:maximum|available) .{0,60}KV cache",
        source="vllm 0.2-0.11 core/kv_cache_utils.py, worker/worker.py",
        examples=(
            "larger than the maximum KV cache",
            "larger than the available KV cache",
        ),
        not_examples=("larger than the maximum KV",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        message="The KV cache is smaller than one sequence of the model's maximum length",
        hint="lower `max_model_len`, raise `gpu_memory_utilization`, or use more GPUs",
    ),
    Signature(
        pattern=r"\bROCm error: out of memory\b",
        source="llama.cpp b3000-b9000 ggml/src/ggml-cuda/ggml-cuda.cu ggml_cuda_error",
        examples=("ROCm error: out of memory",),
        not_examples=("the ROCm error: out of memoryX",),
        level=Level.STRONG,
        masks=("native-crash",),
    ),
    Signature(
        pattern=r"error == cudaSuccess\. 2 vs 0",
        source="caffe2 in torch 1.0-2.0 caffe2/core/context_gpu.cu",
        examples=("error == cudaSuccess. 2 vs 0",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern="Unable to find a valid cuDNN algorithm|(?:FIND|GET) was unable to find an engine to execute",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
            "RuntimeError: FIND was unable to find an engine to execute this computation",
        ),
        level=Level.WEAK,
        message="cuDNN finds no algorithm for a convolution, usually because GPU memory ran out",
        hint="lower the batch; if GPU memory is free, check that the installed cuDNN is the one that torch requires",
    ),
    Signature(
        pattern=r"CUDA Error while trying to pin memory\. error: 2\b",
        source=(
            "trainers that move blocks of a model by cudaHostRegister, and print its return value: "
            "2 is cudaErrorMemoryAllocation"
        ),
        examples=(
            "RuntimeError: CUDA Error while trying to pin memory. error: 2, ptr: 140, size: 8",
        ),
        not_examples=(
            "RuntimeError: CUDA Error while trying to pin memory. error: 209, ptr: 140, size: 8",
        ),
        message="Host memory could not be pinned",
        hint="request more host memory, raise `ulimit -l`, or set `pin_memory` to "
        "false in the offload settings",
    ),
)
