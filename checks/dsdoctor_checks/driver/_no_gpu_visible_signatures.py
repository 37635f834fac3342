"""Messages of `no-gpu-visible`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern=r"libcuda\.so\.1: cannot open shared object file",
        source="glibc elf/dl-load.c; the library is part of NVIDIA's driver",
        message="`libcuda.so.1` is missing: the NVIDIA driver is not installed, or not in this container",
        hint="start the container with `--gpus all`, or install the NVIDIA driver; `ldconfig -p | grep libcuda` shows whether it is there",
        examples=(
            "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"torch\.cuda\.is_available *\(\)['\x22`]?(?: is|:| =| ==|,? (?:it )?(?:always |still |only )?(?:returned|returns?|gives|shows|outputs))? ?['\x22`]?(?:False\b|(?<=s ['\x22`])false\b)",
        source="programs and people that print the answer of torch 1.0-2.13 cuda/__init__.py",
        examples=(
            "torch.cuda.is_available() = False",
            "torch.cuda.is_available(): False",
            "Attempting to deserialize object on a device but torch.cuda.is_available() is False",
            "torch.cuda.is_available() False",
            "`torch.cuda.is_available()` always returns `false` in WSL",
            "But when I use torch.cuda.is_available(), it return False",
        ),
        not_examples=(
            "if torch.cuda.is_available() and x is False:",
            "torch.cuda.is_available() = True",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern="No CUDA GPUs are available",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("RuntimeError: No CUDA GPUs are available",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Found no NVIDIA driver",
        source="torch 2.4.1 libc10_cuda.so",
        examples=("RuntimeError: Found no NVIDIA driver on your system.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"no CUDA-capable device|cuda runtime error \(100\)",
        source="cuda runtime 12.9.79 libcudart.so.12; CUDA 10.1-13.0 driver_types.h: cudaErrorNoDevice",
        examples=(
            "RuntimeError: cuda runtime error (100)",
            "RuntimeError: cuda runtime error (38) : no CUDA-capable device is detected at /pytorch/aten/src/THC/THCGeneral.cpp:50",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="no GPU resources available",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=("RuntimeError: Unable to proceed, no GPU resources available",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="No (?:GPU|CUDA devices?) (?:found|available)",
        source="accelerate 0.16-1.15 utils/bnb.py, transformers 4.27-5.23 modeling_utils.py",
        examples=(
            "No GPU found",
            "No CUDA device found",
            "No GPU available",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="cudaErrorNoDevice",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=("cudaErrorNoDevice",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"AMP or APEX \(`--fp16`\).{0,60}can only be used on CUDA",
        source="transformers 4.28.1-4.36.2 training_args.py",
        examples=("AMP or APEX (`--fp16`)can only be used on CUDA",),
        not_examples=("or APEX (`--fp16`)can only be used on CUDA",),
        level=Level.STRONG,
        hint=(
            "compare `nvidia-smi -L` with `CUDA_VISIBLE_DEVICES`; where the run is meant to use no "
            "GPU, set `fp16` and `fp16_full_eval` to false"
        ),
    ),
    Signature(
        pattern="(?:Error|error|Exception): .{0,40}CUDA is not available",
        source=(
            "programs that ask torch before they start, such as colossalai 0.1-0.4 legacy, nemo "
            "1-2 core/utils/cuda_python_utils.py"
        ),
        examples=(
            "RuntimeError: CUDA is not available",
            "error: CUDA is not available",
            "Exception: CUDA is not available",
        ),
        not_examples=(
            "/e/torch/amp/autocast_mode.py:204: UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="only supported with GPUs, no GPUs found",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "torch.distributed.DistBackendError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Cannot use fp16 without (?:CUDA|accelerator)",
        source="deepspeed 0.14.5-0.19.8 runtime/zero/stage3.py",
        examples=(
            "SystemError: Cannot use fp16 without CUDA.",
            "Cannot use fp16 without accelerator",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Accelerator is not detected, cannot perform",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("Accelerator is not detected, cannot perform",),
        level=Level.STRONG,
    ),
    Signature(
        # since 0.28 the device follows, which is never a CPU: a TPU, or Apple's MPS
        pattern=r"mixed precision requires a GPU(?! \(not )",
        source="accelerate 0.5-0.27 accelerator.py",
        message="fp16 is set as the mixed precision, but accelerate runs on no GPU",
        hint="give the job a GPU that torch sees; on a CPU, use `bf16` or `no`; do not pass `cpu=True` or `--cpu` on a machine with GPUs",
        examples=("ValueError: fp16 mixed precision requires a GPU",),
        not_examples=(
            "ValueError: fp16 mixed precision requires a GPU (not 'mps').",
            "ValueError: fp16 mixed precision requires a GPU (not 'xla').",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="GPU (?:or XPU )?is needed for quantization",
        source="transformers 4.36.2-5.23.0 quantizers/quantizer_eetq.py",
        examples=("RuntimeError: No GPU found. A GPU is needed for quantization.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="found no CUDA devices",
        source="deepspeed 0.19.8 ops/op_builder/builder.py",
        examples=(
            "RuntimeError: DeepSpeed JIT builder for 'cpu_adam' found no CUDA devices. Set TORCH_CUDA_ARCH_LIST or make GPUs visible.",
        ),
        level=Level.STRONG,
        message="An op is being built where no GPU is visible",
        hint="set `TORCH_CUDA_ARCH_LIST` to the compute capabilities of the job's "
        "GPUs, or build where they are visible",
    ),
    Signature(
        pattern=r"\b0 active drivers",
        source="torch 2.13.0 _inductor/runtime/autotune_cache.py",
        examples=("RuntimeError: 0 active drivers ([]). There should only be one.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Failed to infer device type",
        source="vllm 0.6-0.11 config.py, config/device.py",
        examples=("RuntimeError: Failed to infer device type",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Torch is not able to use GPU",
        source="stable-diffusion-webui 1.0-1.10 modules/launch_utils.py",
        examples=("Torch is not able to use GPU",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="(?:^|[Ss]tartup probe failed: )No devices were found",
        source="NVIDIA driver 390-580 nvidia-smi; kubernetes 1.20-1.34 pkg/kubelet/prober",
        examples=(
            "No devices were found",
            "Warning  Unhealthy  2m  kubelet  Startup probe failed: No devices were found",
        ),
        not_examples=("it says No devices were found",),
        level=Level.STRONG,
        message="nvidia-smi finds the driver, but no GPU",
        hint=(
            "look for the reason with `sudo dmesg | grep -i nvrm`: Blackwell GPUs need the open kernel modules;"
            " after `RmInitAdapter failed`, check power cables and reboot; in a container or a job, request GPUs"
        ),
    ),
    Signature(
        pattern=r"arch_list\[-1\] \+= '\+PTX'",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=("arch_list[-1] += '+PTX'",),
        level=Level.STRONG,
        message="An op is being built where no GPU is visible",
        hint="set `TORCH_CUDA_ARCH_LIST` to the compute capabilities of the job's "
        "GPUs, or build where they are visible",
    ),
    Signature(
        pattern=r"\bNo HIP GPUs are available|HIP initialization: .{0,200}hipGetDeviceCount\(\)|hipErrorNoDevice\b|Error 101: hipErrorInvalidDevice",
        source="torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp, hipified for ROCm",
        examples=(
            "RuntimeError: No HIP GPUs are available",
            "RuntimeError: HIP error: hipErrorNoDevice",
            "UserWarning: HIP initialization: Unexpected error from hipGetDeviceCount(). Did you run some cuda functions",
            "Error 101: hipErrorInvalidDevice (Triggered internally at x.cpp:110.)",
        ),
        not_examples=(
            "the HIP initialization: hipGetDeviceCount",
            "hipErrorNoDevices",
        ),
        message="torch is built for ROCm, but finds no AMD GPU",
        hint=(
            "compare `rocminfo`, and the groups of `ls -l /dev/kfd /dev/dri` (`render`, `video`) with those of"
            " the account; in a container, pass `--device /dev/kfd --device /dev/dri`"
        ),
    ),
    Signature(
        pattern=r"\bNo (?:XPU|NPU|CUDA) (?:GPUs|devices) are available|Error: [Nn]o GPUs? detected|Error: .{0,40}GPU not found",
        source=(
            "torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp (hipified for ROCm), c10/xpu; torch_npu "
            "2.0-2.7; bitsandbytes 0.35-0.37 cuda_setup/main.py; programs' own checks"
        ),
        examples=(
            "RuntimeError: No CUDA GPUs are available",
            "AssertionError: No GPU detected",
            "RuntimeError: GPU not found",
        ),
        not_examples=("GPU not found",),
    ),
    Signature(
        pattern="No supported gpu backend found",
        source="lightning 2.4.0 fabric/connector.py, pytorch/trainer/connectors/accelerator_connector.py",
        examples=(
            "lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!",
        ),
    ),
    Signature(
        pattern=r"But your machine only has: \[\]",
        source="lightning 1.0-2.6 fabric/utilities/device_parser.py",
        examples=(" But your machine only has: []",),
    ),
    Signature(
        pattern="`CUDAAccelerator` can ?not run on your system since the accelerator is not available",
        source="lightning 2.0-2.6 pytorch/trainer/connectors/accelerator_connector.py",
        examples=(
            "`CUDAAccelerator` cannot run on your system since the accelerator is not available",
        ),
    ),
    Signature(
        pattern="Flash ?Attention.{0,20} is not available on CPU",
        source="transformers 5.23.0 modeling_utils.py",
        examples=(
            "ValueError: Flash Attention 2 is not available on CPU. Please make sure torch can access a CUDA device.",
        ),
        not_examples=("Paged attention is not available on CPU, eager attention is used",),
    ),
    Signature(
        pattern="Unsloth: No NVIDIA GPU found",
        source="unsloth 2024-2025 __init__.py",
        examples=(
            "NotImplementedError: Unsloth: No NVIDIA GPU found? Unsloth currently only supports GPUs!",
        ),
    ),
    Signature(
        pattern="Unsloth cannot find any torch accelerator",
        source="unsloth 2024-2026 __init__.py, unsloth_zoo device_type.py",
        examples=("Unsloth cannot find any torch accelerator",),
    ),
    Signature(
        pattern="GPU is required to quantize",
        source="transformers 5.23.0 quantizers/quantizer_gptq.py",
        examples=("GPU is required to quantize",),
    ),
    Signature(
        pattern="NVML Shared Library Not Found",
        source="nvidia-ml-py 13.615.71 pynvml.py",
        examples=("pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",),
        message="The driver's library libnvidia-ml is not found",
        hint="start the container with `--gpus all`; outside a container, install the driver",
    ),
    Signature(
        pattern="No visible GPU devices",
        source="xla 2020-2025 pjrt/gpu, as jax prints it",
        examples=("No visible GPU devices",),
    ),
    Signature(
        pattern="CUDA unavailable, invalid device",
        source="ultralytics 8.0-8.3 utils/torch_utils.py, yolov5 7.0 utils/torch_utils.py",
        examples=("CUDA unavailable, invalid device",),
    ),
    Signature(
        pattern=r"torch\.cuda\.device_count\(\): 0\b",
        source="ultralytics 8.0-8.3 utils/torch_utils.py, yolov5 7.0 utils/torch_utils.py",
        examples=("torch.cuda.device_count(): 0",),
    ),
    Signature(
        pattern="Using `load_in_[48]bit=True` requires a GPU",
        source="transformers 4.30-4.41 quantizers",
        examples=("Using `load_in_4bit=True` requires a GPU",),
    ),
    Signature(
        pattern="(?<!= )NVML_ERROR_LIBRARY_NOT_FOUND",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=("nvmlInit failed: NVML_ERROR_LIBRARY_NOT_FOUND",),
        level=Level.STRONG,
        masks=("cuda-init-driver-state",),
        message="The driver's library libnvidia-ml is not found",
        hint="start the container with `--gpus all`; outside a container, install the driver",
    ),
    Signature(
        pattern="CUDA_ERROR_NO_DEVICE",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=("Call to cuInit results in CUDA_ERROR_NO_DEVICE",),
        level=Level.STRONG,
        masks=("cuda-init-driver-state",),
    ),
    Signature(
        pattern=r"libnvidia-ml\.so\S*: cannot open",
        source="glibc 2.17-2.41 elf/dl-load.c; the library is part of NVIDIA's driver",
        examples=(
            "OSError: libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
        ),
        not_examples=("libnvidia-ml.so.1 => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",),
        level=Level.STRONG,
        masks=("cuda-init-driver-state",),
        message="The driver's library libnvidia-ml is not found",
        hint="start the container with `--gpus all`; outside a container, install the driver",
    ),
    Signature(
        pattern=r"couldn't find libnvidia-ml\.so",
        source="NVIDIA driver 390-580 nvidia-smi",
        examples=("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",),
        level=Level.STRONG,
        masks=("cuda-init-driver-state",),
        message="The driver's library libnvidia-ml is not found",
        hint="start the container with `--gpus all`; outside a container, install the driver",
    ),
    # messages of scripts and other libraries
    Signature(
        pattern=r"(?i)(?:Error|Exception): (?:.{0,60}\W)?no (?:visible |usable |CUDA |NVIDIA ){0,2}GPUs?(?: devices?)? (?:(?:is|are|was|were) )?(?:available|found|detected|visible)",
        source=(
            "programs' own checks, such as deepspeed 0.6-0.19 autotuning/autotuner.py, "
            "transformers 4.36-5.23 quantizers, bitsandbytes 0.35-0.37 cuda_setup/main.py"
        ),
        examples=(
            "AssertionError: No GPUs available",
            "RuntimeError: You are trying to train with CUDA but no GPU is available.",
            "Exception: no GPU available",
            "torch.distributed.DistBackendError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
            "AssertionError: No GPU detected",
            "RuntimeError: no GPU visible",
        ),
        not_examples=(
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "ImportError: libcudart.so.12: file not found",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?i)(?:Error|Exception): (?:.{0,60}\W)?(?:GPU|GPU device|CUDA|CUDA device|CUDA GPU)s? (?:is|are|was|were)? ?not (?:available|found|detected)",
        source=(
            "programs' own checks, such as bitsandbytes 0.43-0.50 diagnostics/main.py, colossalai "
            "0.1-0.4 legacy; tensorflow tutorials' `GPU device not found`"
        ),
        examples=(
            "SystemError: GPU device not found",
            "RuntimeError: cuda is not available, but the device is set to cuda",
            "Exception: GPU not available",
            "RuntimeError: CUDA device not available",
            "RuntimeError: CUDA GPU not available",
            "RuntimeError: GPU not detected",
        ),
        not_examples=("ImportError: libcudart.so.12: file not found",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?i)(?:Error|Exception): (?:.{0,60}\W)?(?:at least one|need a?) ?(?:CUDA|GPU|NVIDIA)(?: GPU| device)? is (?:needed|required)",
        source=(
            "programs' own checks, such as accelerate 0.20-1.15 utils/bnb.py, transformers "
            "4.36-5.23 quantizers"
        ),
        examples=(
            "RuntimeError: At least one GPU is needed",
            "Exception: at least oneCUDA is needed",
            "RuntimeError: need CUDA is needed",
            "RuntimeError: at least oneNVIDIA is needed",
            "RuntimeError: at least oneCUDA is required",
        ),
        not_examples=(
            "RuntimeError: CUDA is required but not available for bitsandbytes. Please consider installing the multi-platform enabled version of bitsandbytes, which is currently a work in progress.",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?i)(?:Error|Exception): (?:.{0,60}\W)?CUDA is required\b",
        source=(
            "programs' own checks, such as transformers 4.44-4.51 integrations/bitsandbytes.py, "
            "detectron2 0.1-0.6 engine/train_loop.py"
        ),
        examples=(
            "RuntimeError: CUDA is required but not available for bitsandbytes. Please consider installing the multi-platform enabled version of bitsandbytes, which is currently a work in progress.",
            "Exception: CUDA is required",
        ),
        not_examples=(
            "CUDA is required but not available for bitsandbytes. Please consider installing the multi-platform enabled version of bitsandbytes, which is currently a work in progress.",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?i)(?:Error|Exception): (?:.{0,60}\W)?torch\.cuda\.is_available\(\)`? (?:is|returned|should be True but is) `?False",
        source=(
            "programs' own checks of torch 1.0-2.13 cuda/__init__.py, such as bitsandbytes and "
            "accelerate"
        ),
        examples=(
            "ValueError: torch.cuda.is_available() should be True but is False.",
            "Exception: torch.cuda.is_available() is False",
            "RuntimeError: torch.cuda.is_available() returned False",
        ),
        not_examples=("torch.cuda.is_available() should be True but is False.",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"(?i)(?:Error|Exception): (?:.{0,60}\W)?GPUs? requested but none (?:is|are) available",
        source="lightning 2.4.0 fabric/utilities/device_parser.py",
        examples=(
            "MisconfigurationException: GPUs requested but none are available.",
            "RuntimeError: GPU requested but none is available",
        ),
        not_examples=('raise MisconfigurationException("GPUs requested but none are available.")',),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"cuda driver can't be loaded|found no CUDA devices\. Set|op had not been implemented on CPU backend|The NVIDIA Driver was not detected",
        source=(
            "torch 1.12-2.13 cuda/__init__.py, cuda/memory.py; deepspeed 0.18-0.19 "
            "ops/op_builder/builder.py, 0.9-0.19 ops/op_builder/cpu/no_impl.py; NVIDIA NGC "
            "containers 20.01-25.09 entrypoint"
        ),
        examples=(
            "RuntimeError: cuda driver can't be loaded, is cuda enabled?",
            "RuntimeError: DeepSpeed JIT builder for 'fused_adam' found no CUDA devices. Set TORCH_CUDA_ARCH_LIST",
            "ValueError: This op had not been implemented on CPU backend.",
            "The NVIDIA Driver was not detected",
        ),
        level=Level.WEAK,
    ),
    Signature(
        # the first of these has one cause more than the others: `rocminfo` as a user outside of the
        # groups `render` and `video`
        pattern=r"Unable to open /dev/kfd read-write: \w|ROCk module is NOT loaded, possibly no GPU devices|Driver not initialized \(amdgpu not found in modules\)",
        source="rocminfo 3.3-7.2 rocminfo.cc; rocm_smi_lib 4-7 python_smi_tools/rocm_smi.py",
        message="ROCm cannot use the amdgpu driver on this machine",
        examples=(
            "Unable to open /dev/kfd read-write: Permission denied",
            "ROCk module is NOT loaded, possibly no GPU devices",
            "Driver not initialized (amdgpu not found in modules)",
        ),
        not_examples=("Unable to open /dev/kfd read-write: ",),
        level=Level.STRONG,
        hint="check that `amdgpu` is loaded (`lsmod`), that the user is in the groups `render` and "
        "`video`, and that a container was started with `--device /dev/kfd --device /dev/dri`",
    ),
    Signature(
        pattern=r"\[Errno 13\] Permission denied: '(?P<device>/dev/(?:nvidia|kfd|dri/|davinci)[\w/-]{0,60})'",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for EACCES",
        message="This account may not open `{device}`",
        hint="compare `ls -l {device}` with `id`: the account must be in the group of the device; in a batch job, use the GPUs that the scheduler assigned",
        examples=(
            "PermissionError: [Errno 13] Permission denied: '/dev/nvidia0'",
            "PermissionError: [Errno 13] Permission denied: '/dev/kfd'",
            "PermissionError: [Errno 13] Permission denied: '/dev/dri/renderD128'",
            "PermissionError: [Errno 13] Permission denied: '/dev/davinci0'",
        ),
        not_examples=("PermissionError: [Errno 13] Permission denied: '/dev/shm/x'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No device of requested type available",
        source="oneAPI SYCL 2023-2025 sycl/source/device_selector.cpp",
        message="No oneAPI GPU is visible to this process",
        hint="run `sycl-ls` to see the Level Zero devices; unset `ONEAPI_DEVICE_SELECTOR`, and start a container with `--device /dev/dri` and the group `render`",
        examples=(
            "  what():  No device of requested type available. -1 (PI_ERROR_DEVICE_NOT_FOUND)",
        ),
        level=Level.STRONG,
    ),
)
