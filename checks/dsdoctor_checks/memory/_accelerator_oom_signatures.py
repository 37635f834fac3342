"""Messages of `gpu-oom` about NPUs, HPUs, TPUs, Neuron devices and Intel GPUs."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        # the caller gets hipErrorOutOfMemory, and may try again after it has freed memory
        pattern=r"hip_\w{1,20}\.cpp\s{0,20}:\d{1,6}\s{0,4}: .{0,100}Allocation failed : Device memory : required :\d{1,20} \| free :\d{1,20} ?\| total :\d",
        source="ROCm 4.3-7.0 hipamd/src/hip_memory.cpp, hip_vm.cpp, hip_mempool_impl.cpp, logged with AMD_LOG_LEVEL",
        message="The GPU ran out of memory",
        examples=(
            ":1:hip_memory.cpp           :303 : 96167 us: 4277 : [tid:0x7f2a] Allocation failed : Device memory : required :4 | free :2314338304 | total :17163091968 ",
            ":1:hip_vm.cpp:84  : 96167 us: [pid:4277 tid:0x7f2a] Allocation failed : Device memory : required :8192 | free :0| total :17163091968",
        ),
        not_examples=(
            "Allocation failed : Device memory : required :4 | free :2314338304 | total :17163091968",
        ),
        level=Level.WEAK,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error"),
        echo=True,
    ),
    Signature(
        pattern=r"NPU (?:function )?error\b.{0,200}, error code is (?:20[07]001|207018|207005|200000)\b",
        source="torch_npu 1.8-2.9 csrc/core/npu/NPUErrorCodes.h: CANN's codes of memory that is not to be had",
        examples=(
            "RuntimeError: malloc:NPUCachingAllocator.cpp:9 NPU function error: c10_npu::acl::AclrtMalloc, error code is 207001",
            "RuntimeError: x.cpp:9 NPU error, error code is 207018",
            "RuntimeError: x.cpp:9 NPU error, error code is 207005",
            "RuntimeError: x.cpp:9 NPU error, error code is 200000",
        ),
        not_examples=("NPU error, error code is 2070180",),
        level=Level.STRONG,
        masks=("npu-kernel-failed", "hccl-error", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"\bE[LI]00(?:04|07|11)\b.{0,60}(?:Failed to allocate memory|Failed to allocate resource\[memory\]|Failed to allocate \[?\d+)",
        source="CANN 7-8 runtime and hccl: error codes EL0004, EI0007, EI0011",
        message="The NPU ran out of memory",
        examples=(
            "EL0004: [PID: 7] 2024-05-21-10:00:00.123.456 Failed to allocate memory.",
            "EI0007: [PID: 7] 2024-05-21-10:00:00.123.456 Failed to allocate resource[memory] with info [size:1].",
            "EI0011: Failed to allocate [1024] bytes of NPU memory.",
        ),
        not_examples=("EL0003: Failed to allocate memory",),
        level=Level.STRONG,
        masks=("npu-kernel-failed", "hccl-error", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"\bERR0[0-4]006 (?:PTA|OPS|DIST|GRAPH) memory error",
        source="torch_npu 2.1-2.9 csrc/core/npu/NPUException.cpp: formatErrorCode",
        examples=(
            "[ERROR] 2025-01-01-10:00:00 (PID:7, Device:0, RankID:0) ERR00006 PTA memory error",
            "ERR01006 OPS memory error",
            "ERR02006 DIST memory error",
            "ERR03006 GRAPH memory error",
        ),
        not_examples=("XERR00006 PTA memory error",),
        masks=("npu-kernel-failed", "hccl-error", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?:UR|ZE)_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        source="oneAPI Unified Runtime 0.7-0.12 ur_api.h; Level Zero 1.0-1.24 ze_api.h, as SYCL, oneCCL and torch's XPU backend print them",
        examples=(
            "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
            "EXCEPTION: ze error at zeMemAllocDevice, code: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern=r"(?:UR_RESULT|PI)_ERROR_OUT_OF_RESOURCES",
        source="oneAPI SYCL 2023-2025 pi.h, ur_api.h: also the code for memory of the device that is used up",
        message="The GPU ran out of memory or of another resource",
        examples=(
            "RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES) -5 (PI_ERROR_OUT_OF_RESOURCES)",
            "RuntimeError: level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)",
        ),
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern=r"MODULE:PT_DEVMEM Allocation failed for size",
        source="Gaudi PyTorch bridge 1.5-1.23, as accelerate 0.30-1.15 utils/memory.py recognizes it",
        message="The Gaudi HPU ran out of memory",
        examples=(
            "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::939524096 (896)MB",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern=r"\bTDRV:dmem_alloc\w{0,20} +Failed to alloc|\bNRT_RESOURCE\b|\bNERR_RESOURCE\b",
        source="AWS Neuron runtime 2.0-2.29 libnrt: nrt_status.h",
        message="The Neuron device ran out of memory",
        examples=(
            "2024-Jan-01 00:00:00.0000 1:2 ERROR  TDRV:dmem_alloc_internal   Failed to alloc DEVICE memory: 2147483648",
            "nrt_load failed with NRT_RESOURCE",
            "(NERR_RESOURCE)",
        ),
        not_examples=("TDRV:dmem_alloc is fine", "NRT_RESOURCES", "NERR_RESOURCES"),
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern=r"Ran out of memory in memory space (?:hbm|vmem|smem)\b",
        source="libtpu 2022-2026: the compiler of TPU programs",
        message="The program does not fit into the memory of the TPU",
        examples=(
            "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 17.91G of 15.48G hbm.",
            "Ran out of memory in memory space vmem.",
            "Ran out of memory in memory space smem.",
        ),
        not_examples=("Ran out of memory in memory space hbmx",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*MPS backend out of memory",
        source="torch 1.12-2.13 aten/src/ATen/mps/MPSAllocator.mm",
        message="The Mac ran out of GPU memory (MPS)",
        hint="lower the batch or the sequence length, or use a smaller model; `PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0` lifts the limit, and the Mac may then swap",
        examples=(
            "RuntimeError: MPS backend out of memory (MPS allocated: 17.90 GB, other allocations: 401.00 MB, max allowed: 18.13 GB). Tried to allocate 200.00 MB on private pool.",
        ),
        not_examples=("UserWarning: MPS backend out of memory",),
        level=Level.STRONG,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"Out of memory error on (?:GPU|XPU|NPU) \d+\. Cannot allocate",
        source="paddlepaddle 2.0-3.2 paddle/phi/core/memory/allocation: RetryAllocator, CUDAAllocator",
        examples=(
            "ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 1.5GB memory on GPU 0, 39.0GB memory has been allocated and available memory is only 1.2GB.",
            "Out of memory error on XPU 0. Cannot allocate 1.5GB memory",
            "Out of memory error on NPU 0. Cannot allocate 1.5GB memory",
        ),
        not_examples=("Out of memory error on GPU 0. Cannot tell",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern=r"\bDevice\(id:\d+\) memory isn't enough and alloc failed",
        source="mindspore 1.3-2.6 ccsrc/runtime/device, ccsrc/plugin/device/ascend",
        examples=(
            "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/x, alloc size: 10B.",
        ),
        not_examples=("Device(id:x) memory isn't enough and alloc failed",),
        level=Level.STRONG,
        masks=("npu-kernel-failed", "hccl-error", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Allocator \((?:GPU|xpu)_\d+_bfc\) ran out of memory trying to allocate (?!.{0,80}not a failure)",
        source="tensorflow 1.0-2.20 core/common_runtime/bfc_allocator.cc; jaxlib",
        examples=(
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)",
            "Allocator (xpu_0_bfc) ran out of memory trying to allocate 2.00GiB",
        ),
        not_examples=(
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB. The caller indicates that this is not a failure",
        ),
    ),
    Signature(
        pattern=r"ONNXRuntimeError.{0,200}Failed to allocate memory for requested buffer of size",
        source="onnxruntime 1.0-1.23 core/framework/bfc_arena.cc",
        message="ONNX Runtime could not allocate memory on its device",
        examples=(
            "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running x node. bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 268435456",
        ),
        not_examples=("Failed to allocate memory for requested buffer of size 9",),
    ),
    Signature(
        pattern=r"\bCUSOLVER_STATUS_ALLOC_FAILED\b|\bCUSPARSE_STATUS_ALLOC_FAILED\b|\bCUFFT_ALLOC_FAILED\b",
        source="cuSOLVER, cuSPARSE and cuFFT 10-13: their codes, printed by torch 1.5-2.15 cuda/Exceptions.cpp, CuFFTUtils.h",
        message="A CUDA library could not allocate GPU memory",
        examples=(
            "torch._C._LinAlgError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
            "RuntimeError: CUDA error: CUSPARSE_STATUS_ALLOC_FAILED when calling `cusparseCreate(handle)`",
            "RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED",
        ),
        not_examples=(
            "CUSOLVER_STATUS_ALLOC_FAILED_X",
            "CUSPARSE_STATUS_ALLOC_FAILEDX",
            "CUFFT_ALLOC_FAILEDX",
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
        pattern=r"^Error:? out of memory at line \d+ in file \S",
        source="bitsandbytes 0.35-0.50 csrc/ops.cuh, csrc/pythonInterface.c",
        examples=(
            "Error out of memory at line 380 in file /src/bitsandbytes/csrc/pythonInterface.c",
        ),
        not_examples=("Error out of memory at line of sight",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
    Signature(
        pattern=r"\bpycuda\._driver\.MemoryError: (?!cuInit\b)|Allocation is out of device memory on current platform\b|\bError Code 2: OutOfMemory\b",
        source="pycuda 2020-2025 src/cpp/cuda.hpp; Intel Extension for PyTorch 2.0-2.10 csrc/gpu; TensorRT 8-10 (virtualMemoryBuffer.cpp)",
        examples=(
            "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory",
            "RuntimeError: Allocation is out of device memory on current platform.",
            "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::144] Error Code 2: OutOfMemory (no further information)",
        ),
        not_examples=(
            "xpycuda._driver.MemoryError: x",
            "pycuda._driver.MemoryError: cuInit failed: out of memory",
            "Allocation is out of device memory on current platforms",
            "Error Code 2: OutOfMemoryX",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "host-oom-killed",
        ),
    ),
)
