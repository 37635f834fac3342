"""Messages of `cuda-init-driver-state`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern="This PCI I/O region assigned to your NVIDIA device is invalid",
        source="NVIDIA open-gpu-kernel-modules 515-590 kernel-open/nvidia/nv-pci.c",
        examples=(
            "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: NVRM: BAR1 is 0M @ 0x0 (PCI:0000:17:00.0)",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible",),
        message="The firmware gave a GPU no valid memory window (BAR)",
        hint="turn on `Above 4G Decoding` in the firmware settings (in a virtual machine: a larger 64-bit"
        " MMIO window), or boot with `pci=realloc`",
    ),
    Signature(
        pattern=r"MPS client failed to connect to the MPS|remote procedural call between the MPS server and|MPS server is not ready to accept",
        source="CUDA 11.4-13.0 cudaGetErrorString of errors 805 to 807",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 805: MPS client failed to connect to the MPS control daemon or the MPS server",
            "Error 806: the remote procedural call between the MPS server and the MPS client failed",
            "Error 807: MPS server is not ready to accept new MPS client requests",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible",),
        message="CUDA cannot reach the MPS server",
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
        message="CUDA does not initialize (error 3), although a driver is loaded",
        hint=(
            "run `sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm`, or reboot; if it fails again while"
            " `nvidia-smi` works, write `options nvidia_uvm uvm_disable_hmm=1` into `/etc/modprobe.d/uvm.conf` and reload the module again; for WSL, run `wsl --shutdown` in Windows instead"
        ),
    ),
    Signature(
        pattern=r"request_free_mem_region\(\) err -?\d",
        source="NVIDIA driver 535-590 nvidia-uvm uvm_pmm_gpu.c, for a kernel with KASLR (release notes of CUDA 12.8-13.2)",
        examples=(
            "nvidia-uvm: uvm_pmm_gpu.c:3176 devmem_alloc_pagemap[pid:812] request_free_mem_region() err -34",
        ),
        not_examples=("request_free_mem_region() err is printed",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "fabric-manager-not-running"),
        message="The module `nvidia_uvm` found no addresses for HMM, so CUDA does not initialize",
        hint=(
            "write `options nvidia_uvm uvm_disable_hmm=1` into `/etc/modprobe.d/uvm.conf` and run `sudo modprobe"
            " -r nvidia_uvm && sudo modprobe nvidia_uvm`, or boot with `nokaslr`"
        ),
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
        pattern=r"(?i)cuda runtime error \(30\)|cudaErrorUnknown|CUDA_ERROR_UNKNOWN",
        source=(
            "torch 0.3-1.12 THC/THCGeneral.cpp, with cudart's cudaGetErrorString and "
            "cudaGetErrorName"
        ),
        examples=(
            "RuntimeError: cuda runtime error (30) : unknown error at x.cpp:50",
            "cudaErrorUnknown: unknown error",
            "CUDA_ERROR_UNKNOWN",
        ),
        startup=True,
    ),
    Signature(
        # any call may report this error; these are the first ones of a process, or say that the
        # driver does not answer (torch 1.5-2.15 cuda/__init__.py, nn/modules/module.py)
        pattern=r"(?<!with exception: )CUDA error: unknown error",
        source="torch 1.5-2.13 c10/cuda/CUDAException.cpp, with cudart's cudaGetErrorString",
        examples=("RuntimeError: CUDA error: unknown error",),
        not_examples=(
            "[E1 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 0] Process group watchdog thread terminated with exception: CUDA error: unknown error",
        ),
        near=(
            "_lazy_init",
            "_cuda_init",
            "_cuda_setDevice",
            "_cuda_getDevice",
            "in convert",
            "nvidia-smi",
            "NVIDIA-SMI",
            "NVRM:",
            "NVML",
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
        message="The NVIDIA kernel module could not be loaded",
        hint="read the end of `dmesg`: the GPU may be missing (`lspci`), the module "
        "unsigned (Secure Boot), or built for another kernel (`dkms status`)",
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
        message="The toolkit's stub of libcuda was loaded instead of the driver's library",
        hint="remove the folder `stubs` from `LD_LIBRARY_PATH`",
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
        message="The NVIDIA kernel module is not loaded",
        hint="run `sudo modprobe nvidia` and read `dmesg | grep -i nvidia`; after a "
        "new kernel, see `dkms status`",
    ),
    Signature(
        pattern="nvml error: driver not loaded",
        source="libnvidia-container 1.0-1.17 src/nvc.c",
        examples=("nvml error: driver not loaded",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
        message="The NVIDIA kernel module is not loaded",
        hint="run `sudo modprobe nvidia` and read `dmesg | grep -i nvidia`; after a "
        "new kernel, see `dkms status`",
    ),
    Signature(
        pattern="OS call failed or operation not supported on this OS",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 304: OS call failed or operation not supported on this OS",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "docker-gpu-runtime-missing"),
        # what pinning host memory reports where the system refuses it
        not_near=("pin_memory", "cudaHostRegister", "cudaHostAlloc"),
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
        pattern=r"INTERNAL ASSERT FAILED at .{0,40}c10/cuda/driver_api\.cpp",
        source="torch 2.0-2.13 c10/cuda/driver_api.cpp",
        examples=(
            'RuntimeError: handle_0 INTERNAL ASSERT FAILED at "../c10/cuda/driver_api.cpp":15, please report a bug to PyTorch.',
        ),
        not_examples=(
            'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830, please report a bug to PyTorch.',
        ),
        masks=("no-gpu-visible",),
    ),
    # before a GPU is counted, no program has used any of its memory: error 2 then means memory or
    # another resource of the host (cuda.h, CUDA_ERROR_OUT_OF_MEMORY)
    Signature(
        pattern=(
            r"\b(?:cudaGetDeviceCount|cuInit)\b.{0,200}(?:\bout of memory\b|\bCUDA_ERROR_OUT_OF_MEMORY\b"
            r"|\bcudaErrorMemoryAllocation\b)|(?:\bout of memory\b|\bCUDA_ERROR_OUT_OF_MEMORY\b"
            r"|\bcudaErrorMemoryAllocation\b).{0,200}\bcudaGetDeviceCount\b"
            r"|failed to initialize CUDA: out of memory|\bcudaGetDeviceCount(?:\(\))? returned 2\b"
        ),
        source=(
            "torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp; tensorflow 1.0-2.20 stream_executor/cuda, "
            "`failed call to cuInit`; numba cuda/cudadrv/driver.py; pycuda src/cpp/cuda.hpp; "
            "llama.cpp ggml/src/ggml-cuda/ggml-cuda.cu; CUDA samples 5-13 deviceQuery.cpp"
        ),
        examples=(
            "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 2: out of memory",
            "failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            "cuInit: CUDA_ERROR_OUT_OF_MEMORY",
            "cudaGetDeviceCount(&n) failed: cudaErrorMemoryAllocation",
            "Error: CUDA error 2 'out of memory' - /x/gpu/device.cu:12: cudaGetDeviceCount(&count)",
            "CUDA_ERROR_OUT_OF_MEMORY returned where cudaGetDeviceCount is called",
            "cudaErrorMemoryAllocation in cudaGetDeviceCount",
            "ggml_cuda_init: failed to initialize CUDA: out of memory",
            "cudaGetDeviceCount returned 2",
        ),
        not_examples=(
            "cudaGetDeviceCount returned 200",
            "RuntimeError: CUDA error: out of memory",
            "[error] [buffers.cpp:55] cudaMalloc failed: out of memory",
        ),
        level=Level.STRONG,
        masks=("gpu-oom", "no-gpu-visible", "docker-gpu-runtime-missing"),
        message="CUDA does not start: it finds too little memory of the host when it counts the GPUs (error 2)",
        hint=(
            "set `ulimit -v unlimited`, and compare the memory limit of the container or job with what is in use; see"
            " the end of `dmesg`; try one GPU (`CUDA_VISIBLE_DEVICES=0`), above all in WSL, where CUDA starts so with"
            " two or three"
        ),
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
        message="The NVIDIA kernel module is not loaded",
        hint="run `sudo modprobe nvidia` and read `dmesg | grep -i nvidia`; after a "
        "new kernel, see `dkms status`",
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
        message="The NVIDIA kernel module is not loaded",
        hint="run `sudo modprobe nvidia` and read `dmesg | grep -i nvidia`; after a "
        "new kernel, see `dkms status`",
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
