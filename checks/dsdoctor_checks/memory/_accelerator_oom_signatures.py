"""Messages of `gpu-oom` about NPUs, HPUs, TPUs, Neuron devices and Intel GPUs."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
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
)
