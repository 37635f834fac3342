"""AMD's GPU runtime (HIP or HSA) reports an error.

## Why it matters
ROCm ends the process when a kernel faults, when the GPU is reset, or when a binary was not built
for its architecture. RCCL reports it as an unhandled HIP error on the other ranks.

## What to do
Look for amdgpu faults in `dmesg` and for resets in `rocm-smi`. Check that torch's ROCm version matches
the driver, and that torch was built for this architecture (`torch.cuda.get_arch_list()`). On consumer
cards, set `HSA_OVERRIDE_GFX_VERSION`.

## References
- https://rocm.docs.amd.com/projects/HIP/en/latest/reference/error_codes.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("hip-runtime-error", id="DSD660", scope=Scope.NODE, since="0.1")

HINT = "look for amdgpu faults in `dmesg`, and check that torch's ROCm build matches the driver and the GPU's architecture"

SIGNATURES = (
    Signature(
        pattern=r"\bHIP error: (?!out of memory)\w|hipError(?:InvalidDeviceFunction|IllegalAddress|LaunchFailure|Unknown|NotInitialized|SharedObjectInitFailed)",
        source="torch 1.12-2.13 (ROCm) c10/hip; HIP 5-7 hip_runtime_api.h",
        examples=(
            "RuntimeError: HIP error: invalid device function",
            "hipErrorInvalidDeviceFunction",
            "hipErrorIllegalAddress",
            "hipErrorLaunchFailure",
            "hipErrorUnknown",
            "hipErrorNotInitialized",
            "hipErrorSharedObjectInitFailed",
        ),
        not_examples=("RuntimeError: HIP error: out of memory",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        # people who quote it set the node in bold
        pattern=r"Memory access fault by GPU (?:\*\*)?node-\d+(?:\*\*)? (?:\(Agent handle: \w+\) )?on address",
        source="ROCR 1-7 core/runtime/runtime.cpp, which named the agent since 3",
        message="A kernel on an AMD GPU touched memory that is not mapped",
        examples=(
            "Memory access fault by GPU node-1 (Agent handle: 0x5) on address 0x7000. Reason: Unknown.",
            "Memory access fault by GPU node-3 on address 0x7000. Reason: Page not present or supervisor privilege.",
            "Memory access fault by GPU **node-3** on address 0x7000. Reason: Unknown.",
        ),
        not_examples=("Memory access fault by GPU node-one (Agent handle: ) on address",),
        level=Level.STRONG,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
            "rank-killed",
        ),
    ),
    Signature(
        pattern=r"\bHSA_STATUS_ERROR_\w+|amdgpu: .{0,80}(?:page fault|GPU reset begin|ring \S+ timeout)",
        source="ROCR 5-7 inc/hsa.h; Linux 5-6 drivers/gpu/drm/amd",
        examples=(
            ":0:rocdevice.cpp:2660: HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception.",
            "amdgpu: [gfxhub] page fault (src_id:0 ring:24)",
            "amdgpu: GPU reset begin!",
            "amdgpu: ring comp_1.0.0 timeout",
        ),
        not_examples=("HSA_STATUS_ERROR_", "amdgpu: ring timeout"),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"amdgpu.{0,40}VM_L2_PROTECTION_FAULT_STATUS:0x(?!0{8}\b)[0-9A-Fa-f]{8}\b",
        source="Linux 5.11, 6.8 drivers/gpu/drm/amd/amdgpu/gmc_v9_0.c, gfxhub_v2_0.c, mmhub_v3_0_2.c",
        message="A kernel on an AMD GPU touched memory that is not mapped",
        examples=(
            "amdgpu 0000:c6:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x00341051",
            "amdgpu 0000:03:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00801031",
        ),
        not_examples=("amdgpu 0000:c6:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x00000000",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"HW Exception by GPU node-\d+ \(Agent handle: \w+\) reason ?:|amdgpu: Fatal error during GPU init",
        source="ROCR 5-7 core/runtime/runtime.cpp; Linux 5-6 drivers/gpu/drm/amd/amdgpu/amdgpu_device.c",
        message="The GPU hangs, or the driver could not start it",
        examples=(
            "HW Exception by GPU node-2 (Agent handle: 0x55d7) reason :GPU Hang",
            "amdgpu 0000:1b:00.0: amdgpu: Fatal error during GPU init",
        ),
        not_examples=("HW Exception by GPU node-two (Agent handle: ) reason",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "rendezvous-timeout", "rank-killed"),
        hint="reset the GPU (`amd-smi reset --gpureset`) or reboot the node, then read `dmesg` for the "
        "first amdgpu error",
    ),
    Signature(
        pattern=r"\bROCm error: (?!out of memory\b)(?P<what>[a-z][\w ,'-]{2,100})",
        source="llama.cpp b3000-b9000 ggml/src/ggml-cuda/ggml-cuda.cu ggml_cuda_error, with the words of hipGetErrorString",
        message="AMD's GPU runtime reports an error: {what}",
        examples=(" ROCm error: unspecified launch failure",),
        not_examples=("ROCm error: out of memory",),
        level=Level.STRONG,
        masks=("native-crash",),
    ),
    Signature(
        pattern=r"Triton Error \[HIP\]: {1,2}Code: \d{1,4}, Mess{1,2}age: (?!out of memory)(?P<what>[a-z][\w ,'-]{2,100})",
        source="triton 2.2-3.6 third_party/amd/backend/driver.c",
        message="AMD's GPU runtime refused what Triton asked for: {what}",
        hint="run again with `AMD_SERIALIZE_KERNEL=3`; if the kernel is of a library, try a release of it and of Triton that lists this GPU",
        examples=(
            "RuntimeError: Triton Error [HIP]:  Code: 1, Messsage: invalid argument",
            "RuntimeError: Triton Error [HIP]: Code: 98, Message: invalid device function",
        ),
        not_examples=("RuntimeError: Triton Error [HIP]:  Code: 2, Messsage: out of memory",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="HIP kernel errors might be asynchronously reported",
        source="torch 1.12-2.13 (ROCm) c10/hip: what follows the name of any HIP error",
        examples=(
            "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        ),
        level=Level.HINT,
    ),
)
