"""CUDA does not initialize because the driver is in a bad state.

## Why it matters
A driver and a GPU are present, but CUDA cannot use them. Typical causes: its unified-memory module is not loaded, the machine
resumed from suspend, the fabric manager is not running, or a toolkit's stub library is loaded
instead of libcuda. Every rank exits at its first CUDA call.

## What to do
Reload the module (`modprobe -r nvidia_uvm && modprobe nvidia_uvm`) or reboot. For error 34, remove
the toolkit's `stubs` folder from `LD_LIBRARY_PATH`. For error 805, restart the MPS server. In a
confidential virtual machine, CUDA fails with error 802 until `nvidia-smi conf-compute -srs 1` has set
the GPU to the ready state.

## References
- driver_types.h: errors 3, 34, 802, 803, 805 and 999
- https://github.com/pytorch/pytorch/issues/35710
- https://docs.nvidia.com/confidential-computing/ (`nvidia-smi conf-compute -srs 1`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Level,
    LibCuda,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
)
from dsdoctor_checks._util import driver_loaded, gpu_expected
from dsdoctor_checks.driver import _tables

CONDITION = Condition(
    "cuda-init-driver-state",
    id="DSD108",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "fabric-manager-not-running",
        "driver-library-mismatch",
        "driver-too-old",
        "driver-missing",
        "container-lost-gpu",
        "gpu-lost",
    ),
)
_STUB, _MPS = 34, 805
_STATES = (3, _STUB, _tables.NOT_READY, _tables.MISMATCH, _MPS, 999)
_HINTS = {
    _STUB: "remove the toolkit's `stubs` folder from `LD_LIBRARY_PATH`",
    _tables.NOT_READY: "in a confidential virtual machine, run `nvidia-smi conf-compute -srs 1` as root;"
    " on a board with NVSwitches, start the fabric manager on its host",
    _MPS: "restart the MPS server with `nvidia-cuda-mps-control -d`, or unset `CUDA_MPS_*`",
}
_RELOAD = "reload the module with `modprobe -r nvidia_uvm && modprobe nvidia_uvm`, or reboot"


@check(CONDITION)
def driver_state_is_good(
    live: TorchLive,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    lib: LibCuda | Missing,
) -> Iterator[Finding]:
    """Fails on the CUDA errors that mean a bad driver state, if a driver is loaded."""
    code = live.cuda_error_code
    if live.cuda_ok is not False or code not in _STATES:
        return
    if not driver_loaded(kernel) and not gpu_expected(RunNeeds(), kernel, gpus):
        return
    uvm = isinstance(kernel, Missing) or "nvidia_uvm" in kernel.modules
    lacking = "" if uvm else ", and the `nvidia_uvm` module is not loaded"
    yield fail(
        f"CUDA initialization fails with error {code} ({_tables.NAMES[code]}){lacking},"
        " although a driver is loaded",
        effect="every rank exits at its first CUDA call",
        hint=_HINTS.get(code, _RELOAD),
        code=code,
        text=live.cuda_error,
        nvidia_uvm=uvm,
        libcuda=lib.path if isinstance(lib, LibCuda) else None,
    )


HINT = (
    "run `sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm`, or reboot; if it fails again, check"
    " `dmesg`; for WSL, run `wsl --shutdown` in Windows instead"
)

SIGNATURES = (
    Signature(
        pattern=r"MPS client failed to connect to the MPS|MPS server is not ready to accept",
        source="CUDA 11.4-13.0 cudaGetErrorString of errors 805 and 807",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 805: MPS client failed to connect to the MPS control daemon or the MPS server",
            "Error 807: MPS server is not ready to accept new MPS client requests",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible",),
        message="CUDA cannot reach the server of MPS",
        hint="start MPS with `nvidia-cuda-mps-control -d`, or unset `CUDA_MPS_PIPE_DIRECTORY` so that the job does not use it",
    ),
    Signature(
        pattern="CUDA unknown error",
        source="torch 2.4.1 libc10_cuda.so",
        examples=(
            "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
            "UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"(?:CUDA|cuda)(?: error:| runtime error \(3\)(?: :)?)? ?initialization error",
        source=(
            "torch 0.4-2.13 c10/cuda/CUDAException.cpp, THC/THCGeneral.cpp, with cudart's "
            "cudaGetErrorString"
        ),
        examples=(
            "RuntimeError: CUDA error: initialization error",
            "RuntimeError: cuda runtime error (3) : initialization error at x.cpp:50",
        ),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern=r"cuInit\b.{0,60}(?:fail|return|error)",
        source=(
            "programs that print the driver API's return value, such as tensorflow 1.0-2.20 "
            "stream_executor/cuda/cuda_driver.cc, CUDA samples and people's reports"
        ),
        examples=(
            "RuntimeError: operation cuInit(0) failed: CUDA_ERROR_SYSTEM_NOT_READY",
            "cuInit(0) returned 999",
            "cuInit ... error",
        ),
        not_examples=("RuntimeError: operation cuInit(0)",),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern="cudaErrorInitializationError",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=("cudaErrorInitializationError",),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern="CUDA driver initialization failed",
        source="torch 2.4.1 libc10_cuda.so",
        examples=(
            "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        ),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern=r"cudaGetDeviceCount\(\).{0,80}(?:unknown error|initialization error)",
        source="torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp",
        examples=(
            "cudaGetDeviceCount()unknown error",
            "cudaGetDeviceCount()initialization error",
        ),
        not_examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 999: unknown error",
        ),
        not_near=("fork", "spawn"),
    ),
    Signature(
        # torch's watchdog only polls work that has started, on a context that exists
        pattern=r"(?i)cuda runtime error \(30\)|(?<!with exception: )CUDA error: unknown error|cudaErrorUnknown|CUDA_ERROR_UNKNOWN",
        source=(
            "torch 0.3-2.13 c10/cuda/CUDAException.cpp, THC/THCGeneral.cpp, with cudart's "
            "cudaGetErrorString and cudaGetErrorName"
        ),
        examples=(
            "RuntimeError: cuda runtime error (30) : unknown error at x.cpp:50",
            "RuntimeError: CUDA error: unknown error",
            "cudaErrorUnknown: unknown error",
            "CUDA_ERROR_UNKNOWN",
        ),
        not_examples=(
            "[E1 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 0] Process group watchdog thread terminated with exception: CUDA error: unknown error",
        ),
        startup=True,
    ),
    Signature(
        # a module that is not found is `driver-missing`
        pattern="could not insert 'nvidia|modprobe: (?:FATAL|ERROR): (?!Module nvidia\\S* not found).{0,60}nvidia",
        source="kmod 20-33 tools/modprobe.c",
        examples=(
            "modprobe: ERROR: could not insert 'nvidia': No such device",
            "modprobe: FATAL: Error running install command for nvidia",
        ),
        not_examples=(
            "modprobe: ERROR: could not insert",
            "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"cudaGetDeviceCount\(\).{0,160}Error (?:3|34|201|304|999):",
        source="torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 304: OS call failed or operation not supported on this OS",
            "cudaGetDeviceCount()Error 3:",
            "cudaGetDeviceCount()Error 34:",
            "cudaGetDeviceCount()Error 201:",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 999: unknown error",
        ),
        not_examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
        message="CUDA has loaded the toolkit's stub in place of the driver's libcuda",
        hint="remove the toolkit's `stubs` folder from `LD_LIBRARY_PATH`",
    ),
    Signature(
        pattern="CUDA driver is a stub library",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("RuntimeError: CUDA error: CUDA driver is a stub library",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
    ),
    Signature(
        pattern="NVML: Driver Not Loaded",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=("Failed to initialize NVML: Driver Not Loaded",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
    ),
    Signature(
        pattern="NVMLError_DriverNotLoaded",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=("NVMLError_DriverNotLoaded",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
    ),
    Signature(
        pattern="nvml error: driver not loaded",
        source="libnvidia-container 1.0-1.17 src/nvc.c",
        examples=("nvml error: driver not loaded",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
    ),
    Signature(
        pattern="RmInitAdapter failed",
        source="NVIDIA driver 390-580 kernel module (NVRM)",
        examples=("RmInitAdapter failed",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
    ),
    Signature(
        pattern="OS call failed or operation not supported on this OS",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 304: OS call failed or operation not supported on this OS",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
    ),
    Signature(
        pattern=r"error=(?:30|999) : unknown error|cuda runtime error \(999\)|cudaError(?:_t)?\(?(?:30|999)\)?:? .{0,20}unknown error",
        source="torch 0.3-1.12 THC/THCGeneral.cpp",
        examples=(
            "THCudaCheck FAIL file=/pytorch/aten/src/THC/THCGeneral.cpp line=51 error=30 : unknown error",
            "RuntimeError: cuda runtime error (999) : unknown error at /x/THCGeneral.cpp:47",
            "cudaError30 unknown error",
        ),
        not_examples=("Exit with unknown error, error=31 : unknown error",),
    ),
    Signature(
        pattern=r"INTERNAL ASSERT FAILED at .{0,40}c10/cuda/driver_api\.cpp|cudaGetDeviceCount\(\).{0,200}Error 2: out of memory",
        source="torch 2.0-2.13 c10/cuda/driver_api.cpp, 1.8-2.13 c10/cuda/CUDAFunctions.cpp",
        examples=(
            'RuntimeError: handle_0 INTERNAL ASSERT FAILED at "../c10/cuda/driver_api.cpp":15, please report a bug to PyTorch.',
            "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 2: out of memory",
        ),
        not_examples=(
            'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830, please report a bug to PyTorch.',
        ),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"== cudaSuccess \((?:3|30|999) vs\. 0\)|CUDA driver error: unknown error|[Cc][Uu][Dd][Aa].{0,60}failed with error:? #?(?:3|30|304|999)\b|Error 500: named symbol not found",
        source=(
            "caffe 1.0 src/caffe/common.cpp (glog CHECK_EQ); torch 2.0-2.13 c10/cuda/driver_api.h; "
            "programs of NVIDIA that print a cudaError_t"
        ),
        examples=(
            "F1104 common.cpp:163] Check failed: error == cudaSuccess (30 vs. 0)  unknown error",
            "RuntimeError: CUDA driver error: unknown error",
            "cudaRuntimeGetVersion() failed with error #30",
            "CUDA initialization failed with error: 999",
            "Error 500: named symbol not found",
        ),
        not_examples=("upload failed with error: 999",),
        masks=("no-gpu-visible",),
    ),
    # CUDA's sample programs print the call and its number, then the text on its own line
    Signature(
        pattern=r"cudaGetDevice(?:Count|Properties)(?:\(\))? returned (?:30|304|999)\b|^\s*-> (?:unknown|initialization) error\s*$",
        source="CUDA samples 5-13 deviceQuery.cpp",
        examples=(
            "cudaGetDeviceCount returned 999",
            "-> unknown error",
            "cudaGetDeviceProperties returned 30",
            "-> initialization error",
        ),
        not_examples=("upload.py -> unknown error, next try in 5 s",),
        near=("cudaGetDevice",),
        masks=("no-gpu-visible",),
    ),
    # CUDA did not initialize, whatever the number; patterns for specific numbers rank higher
    Signature(
        pattern=r"Unexpected error from cudaGetDeviceCount\(\)\.",
        source="torch 2.4.1 libc10_cuda.so",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 719: unspecified launch failure",
            "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 36: API call is not supported in the installed CUDA driver",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern="(?<!= )NVML_ERROR_DRIVER_NOT_LOADED",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=("nvmlInit_v2: NVML_ERROR_DRIVER_NOT_LOADED",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "triton-unusable"),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern="CUDA_ERROR_(?:NOT_INITIALIZED|OPERATING_SYSTEM)",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=(
            "CUDA_ERROR_NOT_INITIALIZED: initialization error",
            "CUDA_ERROR_OPERATING_SYSTEM",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "triton-unusable"),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern="cudaErrorOperatingSystem",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=("cudaErrorOperatingSystem",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "triton-unusable"),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern=r"Triton Error \[CUDA\]: initialization error",
        source="triton 2.0-3.5 backends/nvidia/driver.c",
        examples=("RuntimeError: Triton Error [CUDA]: initialization error",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "triton-unusable"),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern="failed to initialize CUDA: (?:unknown|initialization) error",
        source="llama.cpp ggml/src/ggml-cuda/ggml-cuda.cu",
        examples=(
            "ggml_cuda_init: failed to initialize CUDA: unknown error",
            "failed to initialize CUDA: initialization error",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "triton-unusable"),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern="(?:NVIDIA|nvidia) kernel module is not loaded",
        source="NVIDIA driver 300-590 nvidia-installer, nvidia-settings",
        examples=(
            "ERROR: The NVIDIA kernel module is not loaded",
            "nvidia kernel module is not loaded",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "triton-unusable"),
        not_near=("fork", "spawn"),
    ),
    Signature(
        pattern=r"NVML_SUCCESS == \S{0,60}nvml\w+\(.{0,80}INTERNAL ASSERT FAILED|CUDA driver error: (?:operation not supported|invalid device context|initialization error|device is not ready)",
        source="torch 1.13-2.13 c10/cuda/CUDACachingAllocator.cpp, c10/cuda/driver_api.h",
        examples=(
            'RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":813',
            "RuntimeError: CUDA driver error: operation not supported",
        ),
        not_examples=(
            'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830, please report a bug to PyTorch.',
        ),
        level=Level.WEAK,
    ),
)
