"""Messages of `gpu-arch-unsupported`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern="is not compatible with the current PyTorch",
        source="torch 2.13.0 cuda/__init__.py",
        examples=(
            "GeForce X with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        ),
        level=Level.STRONG,
        masks=("cuda-kernel-failed", "cudnn-mismatch", "gpu-oom", "nccl-unhandled-cuda-error"),
        goes_on=True,  # a warning; the first kernel fails, if nothing else does before it
    ),
    Signature(
        pattern="no kernel image is available",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"CUDA error:? ?\S* ?invalid device function",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("RuntimeError: CUDA error: invalid device function",),
        not_examples=("invalid device function name",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="hipErrorNoBinaryForGpu",
        source="HIP 3-7 hip_runtime_api.h, rocclr/hip_code_object.cpp, hip_fatbin.cpp",
        message="This build of torch or ROCm has no code for the AMD GPU",
        hint="install a build whose list of architectures (`torch.cuda.get_arch_list()`) contains the one that `rocminfo` shows; for a card of the same family, `HSA_OVERRIDE_GFX_VERSION` lets it run as the listed one",
        examples=("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="PyTorch no longer supports this GPU",
        source="torch 2.4.1 cuda/__init__.py",
        examples=("PyTorch no longer supports this GPU because it is too old.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="NoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName; cuda.h, cuGetErrorName",
        examples=(
            "CudaAPIError: [209] Call to cuModuleLoadDataEx results in CUDA_ERROR_NO_BINARY_FOR_GPU",
            "Search for `cudaErrorNoKernelImageForDevice' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        # what Triton compiles is for the GPU at hand, so there the driver is too old
        pattern=r"(?<!Triton Error \[CUDA\]: )device kernel image is invalid",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("device kernel image is invalid",),
        not_examples=("RuntimeError: Triton Error [CUDA]: device kernel image is invalid",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"runtime error \((?:48|8|209)\)",
        source="torch 0.3-1.12 THC/THCGeneral.cpp, aten/src/THC",
        examples=(
            "RuntimeError: cuda runtime error (48) : no kernel image is available for execution on the device at /pytorch/aten/src/THC/THCTensorMath.cu:15",
            "RuntimeError: cuda runtime error (8) : invalid device function at /pytorch/aten/src/THC/THCGeneral.cpp:405",
            "runtime error (209)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"is for sm\d+\S*, but was built for sm\d+",
        source=(
            "xformers 0.0.16-0.0.33 csrc/attention/cuda/fmha, torch 2.0-2.13 "
            "aten/src/ATen/native/transformers/cuda/mem_eff_attention"
        ),
        examples=(
            "FATAL: kernel `fmha_cutlassF_f16_aligned_64x64_rf_sm80` is for sm80-sm100, but was built for sm37",
            "FATAL: kernel `x` is for sm75-sm80, but was built for sm50",
        ),
        not_examples=("for sm80-sm100, but was built for sm37",),
        level=Level.STRONG,
        message="xFormers has no code for this GPU",
        hint="install an xFormers build for this GPU and torch, or use another attention (`sdpa`)",
    ),
    Signature(
        # a macro of NVIDIA's project template, which many extensions copied
        pattern=r"^Error (?:named symbol not found|no kernel image is available for execution on the device|invalid device function) at line \d+ in file (?P<file>\S{1,200}\.cuh?)",
        source="bitsandbytes 0.35-0.50 csrc/ops.cuh CUDA_CHECK_RETURN; CUDA 11-13 cudaGetErrorString",
        examples=(
            "Error named symbol not found at line 74 in file /mmfs1/home/dettmers/git/bitsandbytes/csrc/ops.cu",
            "Error no kernel image is available for execution on the device at line 167 in file /src/csrc/ops.cu",
            "Error invalid device function at line 46 in file /src/csrc/ops.cu",
        ),
        not_examples=("Error named symbol not found at line 74 in file ops.py",),
        level=Level.STRONG,
        message="An extension was built without code for this GPU (`{file}`)",
        hint="install a newer build of the extension that the file belongs to (`csrc/ops.cu`: bitsandbytes), or build it for this GPU",
    ),
    Signature(
        pattern="CU(?:BLAS|DNN)_STATUS_ARCH_MISMATCH",
        source="CUDA 7-13 cublasGetStatusName, cuDNN 7-9 cudnnGetErrorString, as torch prints them",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasGemmEx`",
            "CUDNN_STATUS_ARCH_MISMATCH",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="too old to be supported by the triton",
        source="torch 2.13.0 _inductor/exc.py",
        examples=(
            "RuntimeError: Found Tesla P100 which is too old to be supported by the triton GPU compiler, which is used as the backend.",
        ),
        level=Level.STRONG,
        message="`torch.compile` does not support this GPU",
        hint="do not use `torch.compile` here, or use a GPU of compute capability 7.0 or newer",
    ),
    Signature(
        pattern=r"type fp8\w+ not supported in this architecture",
        source="triton 2.1-3.9 language/semantic.py",
        examples=("ValueError: type fp8e4nv not supported in this architecture.",),
        not_examples=("fp8e4nv not supported in this architecture.",),
        level=Level.STRONG,
        message="This GPU does not have the fp8 type that a Triton kernel uses",
        hint="use another number format, or a GPU of compute capability 8.9 or newer",
    ),
    Signature(
        # the table of Turing's instructions has float16 and int8 only
        pattern=r"\bIndexError: map::at\b",
        source="triton 2.1-3.7 MMAv2.cpp mmaInstrPtxTuring, called by backends/nvidia/compiler.py make_llir, compiler/compiler.py ttgir_to_llir",
        examples=("IndexError: map::at",),
        not_examples=("IndexError: map::atoms",),
        near=("make_llir", "ttgir_to_llir", "translate_triton_gpu_to_llvmir"),
        level=Level.WEAK,
        message="Triton could not compile a kernel; the tensor cores of GPUs before Ampere (T4, RTX 20) do not support the number format",
        hint="Triton supports compute capability 8.0 and newer: use such a GPU, float16 instead of bfloat16 or float32, or the library's path without Triton",
        fixes=(),
    ),
    Signature(
        # the pipeline is printed if it fails
        pattern=r"\bRuntimeError: PassManager::run failed",
        source="triton 3.0-3.7 python/src/ir.cc, TritonNVIDIAGPUToLLVM/Passes.td; README: compute capability 8.0 and newer",
        examples=("RuntimeError: PassManager::run failed",),
        not_examples=("MyRuntimeError: PassManager::run failed",),
        requires=tuple(f"convert-triton-gpu-to-llvm{{compute-capability={n}" for n in (5, 6, 7)),
        level=Level.WEAK,
        message="Triton could not compile a kernel for a GPU of compute capability 7.x or older; it supports 8.0 and newer",
        hint="use a GPU of compute capability 8.0 or newer, float16 instead of bfloat16, or run without Triton (`TORCHDYNAMO_DISABLE=1`, another attention backend)",
        fixes=(),
    ),
    Signature(
        pattern=r"(?:Feature|Modifier|Instruction) '(?![^']{0,40}bf16)[^']{1,90}'.{0,40} (?:requires|not supported on) \.target",
        source="cuda toolkit 12.9.86 ptxas",
        examples=(
            "Feature 'x' requires .target",
            "ptxas /tmp/k.ptx, line 4; error   : Modifier '.evict_first' on 'ld' requires .target sm_70 or higher",
            "Instruction 'x' requires .target",
            "Feature 'x' not supported on .target",
        ),
        not_examples=("ptxas error   : Feature '.bf16' requires .target sm_80 or higher",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No supported GPU\(s\) detected",
        source="NVIDIA NGC containers 20.01-25.09 entrypoint",
        examples=("ERROR: No supported GPU(s) detected to run this container",),
        level=Level.STRONG,
        message="The image does not support this GPU",
        hint="use a newer release of the image",
    ),
    Signature(
        pattern="which is not yet supported in this version of the container",
        source="NVIDIA NGC containers 20.01-25.09 entrypoint",
        examples=("which is not yet supported in this version of the container",),
        level=Level.STRONG,
        message="The image does not support this GPU",
        hint="use a newer release of the image",
    ),
    Signature(
        pattern="PTX JIT compilation failed",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("RuntimeError: CUDA error: a PTX JIT compilation failed",),
        # TorchScript writes its kernels for the GPU at hand: there, the code is invalid, not for another
        not_near=("torch.jit.", "torch/jit/", "TorchScript"),
        unless=("torch.jit.script(", "torch.jit.trace("),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern="CUDA_ERROR_INVALID_PTX",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=("CUDA_ERROR_INVALID_PTX",),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern=r"cudaErrorInvalid(?:Ptx|DeviceFunction)\b",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=(
            "RuntimeError: parallel_for failed: cudaErrorInvalidDeviceFunction: invalid device function",
            "cudaErrorInvalidPtx",
        ),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern="invalid value for --gpu-architecture",
        source="nvrtc 9.0-13.0 libnvrtc.so, as torch's fuser prints it",
        examples=("RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)",),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern="not compiled with any CUDA arch",
        source="llama.cpp ggml-cuda, ggml/src/ggml-cuda/common.cuh",
        examples=("not compiled with any CUDA arch",),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern=r"'sm_\w+' is not a recognized processor for this target",
        source="cuda toolkit 12.9.86 libnvvm.so",
        examples=("'sm_121' is not a recognized processor for this target (ignoring processor)",),
        not_examples=(
            "'znver9' is not a recognized processor for this target (ignoring processor)",
        ),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern="nsupported (?:GPU |CUDA )?arch(?:itecture)?:? ?sm_",
        source="programs' own checks, such as triton 3.0-3.5 and vllm 0.6-0.11",
        examples=("AssertionError: Unsupported architecture: sm_121",),
        level=Level.STRONG,
        masks=("triton-unusable",),
    ),
    Signature(
        pattern=r"CUDA error \(\S*flash_(?:fwd|bwd)_launch_template\.h:\d{1,5}\): (?:invalid argument|invalid device function)|built for sm_?\d{2,3}\S* ?,? but running on sm",
        source="flash-attn 2.0-2.8 csrc/flash_attn/src, hopper; xformers",
        examples=(
            "CUDA error (/x/flash-attention/hopper/flash_fwd_launch_template.h:188): invalid argument",
            "FATAL: kernel built for sm80-sm100, but running on sm121",
        ),
        not_examples=(
            "CUDA error (/x/csrc/flash_attn/src/flash_fwd_launch_template.h:71): out of memory",
        ),
    ),
    Signature(
        pattern="due to no compute capabilities remaining",
        source="deepspeed 0.19.8 ops/op_builder/builder.py",
        examples=(
            "RuntimeError: Unable to load fp_quantizer op due to no compute capabilities remaining after filtering",
            "[rank0]: RuntimeError: Unable to load inference_core_ops op due to no compute capabilities remaining after filtering",
        ),
        masks=("cpu-adam-unbuilt",),
        message="The op has no code for these GPUs, or for the architectures in TORCH_CUDA_ARCH_LIST",
        hint="correct TORCH_CUDA_ARCH_LIST if it is set; otherwise use a newer GPU, or settings that do not need this op",
    ),
    Signature(
        pattern=r"rocBLAS error: Cannot read \S{0,300}TensileLibrary\S{0,60}\.dat: .{1,80} for GPU arch : (?P<arch>gfx\w{3,6})",
        source="rocBLAS 3.0-5.1 (ROCm 5-7) library/src/tensile_host.cpp",
        message="rocBLAS has no kernels for the GPU's architecture {arch}",
        hint="use a ROCm and a torch that support {arch} (`rocminfo | grep gfx`); for a GPU of the same family as a supported one, `HSA_OVERRIDE_GFX_VERSION` (such as 10.3.0 for gfx1030) selects its kernels",
        examples=(
            "rocBLAS error: Cannot read /x/torch/lib/rocblas/library/TensileLibrary.dat: No such file or directory for GPU arch : gfx1032",
        ),
        not_examples=("rocBLAS error: Cannot read /x/TensileLibrary.dat: Permission denied",),
        level=Level.STRONG,
        masks=("native-crash", "hip-runtime-error"),
    ),
    Signature(
        # one of its operators; it lists them only if none fits
        pattern=r"requires device with capability <= \((?P<most>\d{1,2}, \d)\) but your GPU has capability \((?P<have>\d{1,2}, \d)\) \(too new\)",
        source="xformers 0.0.33 ops/fmha/common.py",
        message="The GPU, of compute capability ({have}), is newer than what an attention kernel of xformers supports ({most})",
        hint="upgrade xformers and torch to builds for this GPU, or choose another attention, such as torch's own",
        examples=(
            "    requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)",
        ),
        not_examples=(
            "requires device with capability <= (9, 0) but your GPU has capability (?) (too new)",
        ),
    ),
)
