"""Messages of `driver-too-old`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern="(?i)CUDA driver version is insufficient",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version",
            "NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        pattern=r"(?i)driver on your system is too old(?: \(found version (?P<v>\d+)\))?|NVIDIA driver is too old",
        source="torch 2.4.1 libc10_cuda.so",
        examples=(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
            "AssertionError: The NVIDIA driver on your system is too old (found version 9000).",
            "NVIDIA driver is too old",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        # Triton's ptxas (12.8 in Triton 3.3) writes code for the GPU at hand
        pattern=r"Triton Error \[CUDA\]: device kernel image is invalid",
        source="triton 2.1-3.5 third_party/nvidia/backend/driver.c, with the words of CUDA's cuGetErrorString",
        message="The NVIDIA driver is older than the `ptxas` of this Triton, and does not load what it compiles",
        hint="upgrade the driver; or set `TRITON_PTXAS_PATH` to the `ptxas` of a CUDA toolkit that the driver supports, and delete `~/.triton/cache`",
        examples=("RuntimeError: Triton Error [CUDA]: device kernel image is invalid",),
        level=Level.LIKELY,
    ),
    Signature(
        pattern="compiled with an unsupported toolchain",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="forward compatibility was attempted",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW",
        ),
        level=Level.LIKELY,  # a libcuda of another release than the loaded module may say it too
        message="CUDA's forward compatibility was tried on a GPU that does not support it",
        hint="remove CUDA's folder `compat` from `LD_LIBRARY_PATH` and upgrade the "
        "driver, or install a torch build that the driver supports; `dsdoctor fix"
        " install-torch-build` picks it",
    ),
    Signature(
        pattern="cudaErrorInsufficientDriver",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=("cudaErrorInsufficientDriver",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="UnsupportedPtxVersion",
        source="CUDA 10.2-13.0 driver_types.h, cudaGetErrorName",
        examples=("UnsupportedPtxVersion",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="UNSUPPORTED_PTX_VERSION",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=("CUDA_ERROR_UNSUPPORTED_PTX_VERSION",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="unsatisfied condition: (?:cuda|driver)",
        source="libnvidia-container 1.0-1.17 src/cli/dsl.c",
        examples=(
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
            "nvidia-container-cli: requirement error: unsatisfied condition: driver>=525, please update your driver to a newer version",
        ),
        level=Level.CERTAIN,
        masks=("docker-gpu-runtime-missing",),
        message="The image needs a newer driver than the host has",
        hint="upgrade the driver on the host, or use an image with an older CUDA",
        fixes=(),
    ),
    Signature(
        pattern=r"Driver version found is (?P<v>\d+)\. Minimum requirement is",
        source="nccl 2.13-2.28 src/misc/cudawrap.cc",
        examples=(
            "NCCL WARN CUDA Driver version found is 10020. Minimum requirement is 11030",
            "misc/cudawrap.cc:120 NCCL WARN CUDA Driver version found is 11000. Minimum requirement is 11030",
        ),
        not_examples=("NCCL WARN CUDA Driver version found is 10020. Minimum requirement",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"was built for NVIDIA Driver Release \S+ or later|\blib(?:cuda|nvidia-ml)\.so\S*: undefined symbol|CUDA initialization failure with error:? (?:35|222|804)\b|requires CUDA driver version \d",
        source=(
            "NVIDIA NGC containers 20.01-25.09 entrypoint; glibc 2.17-2.41 elf/dl-lookup.c; nccl-"
            "tests and CUDA samples"
        ),
        examples=(
            "ERROR: This container was built for NVIDIA Driver Release 545.23 or later, but version 525.105 was detected and compatibility mode is UNAVAILABLE.",
            "OSError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: undefined symbol: cuLibraryLoadData",
            "[TRT] CUDA initialization failure with error: 35",
            "NCCL WARN NCCL requires CUDA driver version 11.0 or later",
        ),
        not_examples=(
            "NOTE: this library was built for NVIDIA Driver Release notes",
            "ImportError: /x/libfoo.so: undefined symbol: cuGetErrorString",
        ),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol", "nccl-unhandled-cuda-error"),
        hint="upgrade the driver (for a container, on the host), or use an older "
        "release of the image or of torch",
    ),
    Signature(
        pattern=r"c10/cuda/driver_api\.cpp.{0,80}Can't find cu[A-Z]\w+",
        source="torch 2.11.0 libc10_cuda.so",
        examples=(
            'RuntimeError: r.cuMemRetainAllocationHandle_ INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/driver_api.cpp":22, please report a bug to PyTorch. Can\'t find cuMemRetainAllocationHandle',
        ),
        not_examples=(
            'RuntimeError: handle INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/driver_api.cpp":12, please report a bug to PyTorch. Can\'t open libcuda.so.1: no such file',
        ),
        level=Level.STRONG,
        masks=("cuda-init-driver-state",),
    ),
    Signature(
        pattern=r"not supported in the installed CUDA driver|cudaErrorCallRequiresNewerDriver|CUDA_ERROR_COMPAT_NOT_SUPPORTED|undefined symbol: cu(?!Module(?:Get[FG]|Load(?:Data)?\b|Un)|LaunchKernel\b|DeviceGet\b|MemAlloc_v2)(?:TensorMap|GetProcAddress|Mem|Kernel|Library|Launch|Stream|Module|Device|Ctx|Graph|Multicast|Func|Green)[A-Z]?\w*",
        source=(
            "CUDA 11-13 cudart cudaGetErrorString, cudaGetErrorName, cuGetErrorName; glibc "
            "2.17-2.41 elf/dl-lookup.c"
        ),
        examples=(
            "RuntimeError: CUDA error: API call is not supported in the installed CUDA driver",
            "ImportError: /x/_C.abi3.so: undefined symbol: cuTensorMapEncodeTiled",
            "symbol lookup error: /x/libcudart.so.12: undefined symbol: cuKernelGetName",
            "cudaErrorCallRequiresNewerDriver",
            "CUDA_ERROR_COMPAT_NOT_SUPPORTED",
        ),
        # every driver since CUDA 9 has it
        not_examples=("ImportError: /x/cuda_utils.so: undefined symbol: cuModuleGetFunction",),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
)
