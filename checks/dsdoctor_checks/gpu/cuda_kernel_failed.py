"""A CUDA kernel failed while it ran.

## Why it matters
A kernel read or wrote outside its memory, or ended in a way that CUDA does not explain. Every
further CUDA call of that process fails, so the process ends with an abort as often as with an
exception, and the other ranks report a lost peer. The traceback shows the line of Python where the
error was noticed, not where it occurred.

## What to do
1. Run again with `CUDA_LAUNCH_BLOCKING=1`: the traceback then shows the operator that failed.
2. If the same operator fails each time, the code is at fault: an extension that was built for another
   torch or GPU, or an index out of range. Rebuild the extension, or run
   `compute-sanitizer python train.py` on a small case.
3. If a different operator fails each time, or always on the same GPU, look for `Xid` in `dmesg` and
   test the GPU with `dcgmi diag -r 3`.

## References
- CUDA driver_types.h: cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorMisalignedAddress
- https://docs.nvidia.com/compute-sanitizer/
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Observation, Scope, Signature

CONDITION = Condition(
    "cuda-kernel-failed",
    id="DSD651",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.KERNEL_ASSERTED,),
)

HINT = (
    "run again with `CUDA_LAUNCH_BLOCKING=1` to see the operator that failed; if it differs each time,"
    " look for `Xid` in `dmesg`"
)

_VICTIMS = (
    "native-crash",
    "rank-killed",
    "rendezvous-timeout",
    "nccl-timeout-watchdog",
    "nccl-unhandled-cuda-error",
)

SIGNATURES = (
    Signature(
        pattern=r"out of resource: (?P<what>shared memory|tensor memory|registers|threads), Required: (?P<need>\d{1,12}), Hardware limit: (?P<limit>\d{1,12})",
        source="triton 2.1-3.5 runtime/errors.py, third_party/nvidia/backend/driver.c",
        level=Level.STRONG,  # it names what is lacking, so the index's advice does not replace it
        message="A Triton kernel needs more {what} than the GPU has ({need}, the limit is {limit})",
        hint="use smaller block sizes or fewer stages, a smaller head dimension or 16-bit types, or"
        " upgrade the package that the kernel belongs to",
        examples=(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
            "RuntimeError: Triton Error [CUDA]: out of resource: tensor memory, Required: 1024, Hardware limit: 512",
            "OutOfResources: out of resource: registers, Required: 70000, Hardware limit: 65536",
            "OutOfResources: out of resource: threads, Required: 2048, Hardware limit: 1024",
        ),
        not_examples=("out of resource: shared memory, Required: all",),
        masks=_VICTIMS,
    ),
    Signature(
        # as a warning, the compiler only drops one of its candidates
        pattern=r"Error: No valid triton configs\. \w{1,40}: out of resource: (?P<kernel>\w{1,200}) Required: (?P<need>\d{1,12}) Hardware limit: ?(?P<limit>\d{1,12})",
        source="torch 2.2-2.3 _inductor/triton_heuristics.py, 2.4-2.14 _inductor/runtime/triton_heuristics.py",
        level=Level.STRONG,
        message="The kernel `{kernel}` that torch.compile made needs more shared memory than the GPU has ({need} bytes, the limit is {limit})",
        hint='upgrade torch; for flex_attention, pass smaller blocks in `kernel_options`, else do not use `mode="max-autotune"`',
        examples=(
            "torch._inductor.exc.InductorError: RuntimeError: No valid triton configs. OutOfMemoryError: out of resource: triton_tem_fused_0 Required: 131072 Hardware limit:101376 Reducing block sizes or `num_stages` may help.",
        ),
        not_examples=(
            "RuntimeError: No valid triton configs. OutOfMemoryError: CUDA out of memory.",
        ),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?P<what>CUBLAS_STATUS_EXECUTION_FAILED|CUDNN_STATUS_EXECUTION_FAILED)\b",
        source="torch 1.0-2.13 csrc cuda/Exceptions.h; cuBLAS 11-13, cuDNN 8-9",
        level=Level.WEAK,
        message="A kernel of cuBLAS or cuDNN failed ({what})",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`",
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        ),
        not_examples=("CUDNN_STATUS_EXECUTION_FAILED_CUDART",),
        masks=_VICTIMS,
    ),
    Signature(
        # CUBLAS_STATUS_EXECUTION_FAILED; on a GPU that is newer than the CUDA of this torch as well
        pattern=r"cublas runtime error : the GPU program failed to execute",
        source="torch 0.1-1.4 aten/src/THC/THCBlas.cu",
        level=Level.WEAK,
        message="A kernel of cuBLAS failed (the GPU program failed to execute)",
        hint="check that this torch was built for the GPU (`python -m torch.utils.collect_env`; these"
        " releases use CUDA 8 to 10), then run with `CUDA_LAUNCH_BLOCKING=1`",
        examples=(
            "RuntimeError: cublas runtime error : the GPU program failed to execute at /x/THC/THCBlas.cu:258",
        ),
        not_examples=(),
        masks=_VICTIMS,
    ),
    Signature(
        # driver_types.h of cudaErrorLaunchTimeout: the kernel took too long, and the device has a
        # limit on that, which a GPU without a display does not have
        pattern="the launch timed out and was terminated|CUDA_ERROR_LAUNCH_TIMEOUT",
        source="CUDA 7.0-13.0 cudaGetErrorString, driver_types.h, cuGetErrorName",
        level=Level.LIKELY,
        message="A kernel ran longer than the driver's watchdog allows",
        hint="use a GPU without a display, or a smaller batch; if the GPU has no display, look for"
        " `Xid` in `dmesg`",
        examples=(
            "RuntimeError: CUDA error: the launch timed out and was terminated",
            "CudaAPIError: [702] Call to cuMemcpyDtoH results in CUDA_ERROR_LAUNCH_TIMEOUT",
        ),
        not_examples=(),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"watchdog thread terminated with exception: CUDA (?:driver )?error: device-side assert triggered",
        source="torch 2.0-2.15 csrc/distributed/c10d/ProcessGroupNCCL.cpp; CUDA 7-13 cudaGetErrorString",
        level=Level.LIKELY,
        message="An assertion in a CUDA kernel failed, mostly about an index that is out of range",
        hint="run the step on the CPU to see the line, and look for a token ID beyond the embedding or a label beyond the classes",
        examples=(
            "Process group watchdog thread terminated with exception: CUDA error: device-side assert triggered",
        ),
        not_examples=(),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"watchdog thread terminated with exception: CUDA (?:driver )?error: unknown error",
        source="torch 2.0-2.13 csrc/distributed/c10d/ProcessGroupNCCL.cpp; CUDA 12.8 cudaGetErrorString",
        level=Level.LIKELY,
        message="A CUDA kernel failed, and CUDA does not say why (unknown error)",
        examples=(
            "Process group watchdog thread terminated with exception: CUDA error: unknown error",
            "NCCL watchdog thread terminated with exception: CUDA driver error: unknown error",
        ),
        not_examples=(),
        masks=_VICTIMS,
    ),
    Signature(
        # CUDA's own words for error 999: an unknown internal error; any call may report it
        pattern=r"CUDA error(?:: | 999 ')unknown error",
        source="torch 1.5-2.15 c10/cuda/CUDAException.cpp; marian 1.7-1.12 src/tensors/gpu/cuda_helpers.h; CUDA 10-13 cudaGetErrorString, driver_types.h",
        level=Level.HINT,
        message="CUDA failed with an error that it does not explain (unknown error)",
        hint="look for `Xid` in `dmesg`, and run again with `CUDA_LAUNCH_BLOCKING=1`; if"
        ' `python -c "import torch; torch.zeros(1).cuda()"` fails too, the driver is in a bad state:'
        " reload `nvidia_uvm` or reboot",
        examples=(
            "RuntimeError: CUDA error: unknown error",
            "Error: CUDA error 999 'unknown error' - /x/gpu/algorithm.cu:54: cudaStreamSynchronize(0)",
        ),
        not_examples=(),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:CUDA (?:driver )?error: |CUDA error \d{1,4} '|cuda runtime error \(\d{1,4}\) : |cudaError[A-Z]\w{1,40}: | error=\d{1,4} : )(?P<what>an illegal memory access was encountered|unspecified launch failure|misaligned address|invalid program counter|operation not supported on global/shared address space|hardware stack error)",
        source="torch 1.9-2.13 c10/cuda/CUDAException.cpp, 0.3-1.8 aten/src/THC/THCGeneral.cpp; marian 1.7-1.12 src/tensors/gpu/cuda_helpers.h; CUDA 7.0-13.0 cudaGetErrorString, after cudaGetErrorName in cupy and numba",
        message="A CUDA kernel failed: {what}",
        examples=(
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "torch.AcceleratorError: CUDA error: unspecified launch failure",
            "  what():  CUDA error: misaligned address",
            "torch.AcceleratorError: CUDA error: invalid program counter",
            "torch.AcceleratorError: CUDA error: operation not supported on global/shared address space",
            "RuntimeError: CUDA error: hardware stack error",
            "RuntimeError: CUDA driver error: an illegal memory access was encountered",
            "Error: CUDA error 716 'misaligned address' - /x/gpu/algorithm.cu:54: cudaStreamSynchronize(0)",
            "RuntimeError: cuda runtime error (77) : an illegal memory access was encountered at /x/THC/THCReduceAll.cuh:327",
            "CUDARuntimeError: cudaErrorLaunchFailure: unspecified launch failure",
            "THCudaCheck FAIL file=/w/THC/generic/THCStorage.cu line=58 error=77 : an illegal memory access was encountered",
        ),
        not_examples=("nothing is known of an illegal memory access was encountered",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?P<what>CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED|MISALIGNED_ADDRESS|INVALID_PC|HARDWARE_STACK_ERROR))\b",
        source="CUDA 7.0-13.0 cuda.h, cuGetErrorName, as TensorFlow, XLA, numba and Triton print it",
        message="A CUDA kernel failed ({what})",
        examples=(
            "CudaAPIError: [700] Call to cuMemcpyDtoH results in CUDA_ERROR_ILLEGAL_ADDRESS",
            "failed to synchronize the stop event: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure",
            "CUDA_ERROR_MISALIGNED_ADDRESS: misaligned address",
            "CUDA_ERROR_INVALID_PC: invalid program counter",
            "CUDA_ERROR_HARDWARE_STACK_ERROR",
        ),
        not_examples=("CUDA_ERROR_ILLEGAL_ADDRESS_SPACE",),
        masks=_VICTIMS,
    ),
    Signature(
        # CUDA's runtime says of it only "device-side assert triggered", which is read as the script's
        pattern=r"CUDA_ERROR_ASSERT\b",
        source="CUDA 7.0-13.0 cuda.h, cuGetErrorName, as TensorFlow, XLA, numba and Triton print it",
        message="An assertion in a CUDA kernel failed, mostly about an index that is out of range",
        hint="run the step on the CPU to see the line, and look for a token ID beyond the embedding or a label beyond the classes",
        examples=("CudaAPIError: [710] Call to cuMemcpyDtoH results in CUDA_ERROR_ASSERT",),
        not_examples=("CUDA_ERROR_ASSERTED",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"^Error (?P<what>an illegal memory access was encountered|unspecified launch failure|misaligned address) at line \d+ in file (?P<file>\S{1,200}\.cuh?)",
        source="bitsandbytes 0.35-0.50 csrc/ops.cuh CUDA_CHECK_RETURN; CUDA 11-13 cudaGetErrorString",
        message="A CUDA kernel failed: {what} (noticed in `{file}`)",
        examples=(
            "Error an illegal memory access was encountered at line 90 in file /src/csrc/ops.cu",
            "Error unspecified launch failure at line 46 in file /src/csrc/ops.cu",
            "Error misaligned address at line 46 in file /src/csrc/ops.cu",
        ),
        not_examples=("Error misaligned address at line 46 in file ops.py",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"CUDA runtime error in .{1,200}: (?P<what>an illegal memory access was encountered|unspecified launch failure|misaligned address)",
        source="TensorRT-LLM 0.5-1.2 cpp/include/tensorrt_llm/common/cudaUtils.h; CUDA 11-13 cudaGetErrorString",
        message="A CUDA kernel failed: {what}",
        examples=(
            "[TensorRT-LLM][ERROR] CUDA runtime error in cudaStreamSynchronize(stream): an illegal memory access was encountered (/src/x.cpp:90)",
            "CUDA runtime error in cudaGetLastError(): unspecified launch failure",
            "CUDA runtime error in cudaGetLastError(): misaligned address",
        ),
        not_examples=("CUDA runtime error in cudaMalloc(p, n): out of memory",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:\b[A-Za-z]\w{2,80} failed with error(?: code)?:? |^CUDA Error: )(?P<what>an illegal memory access was encountered|unspecified launch failure|misaligned address)(?= \(\d{1,4}\) \S|$)",
        source="flashinfer 0.2 csrc, include/flashinfer/utils.cuh; CUDA 11-13 cudaGetErrorString",
        message="A CUDA kernel failed: {what}",
        examples=(
            "RuntimeError: BatchDecode failed with error an illegal memory access was encountered",
            "RuntimeError: Check failed: (status == cudaSuccess) is false: PrefillRun failed with error: unspecified launch failure",
            "CUDA Error: misaligned address (716) /x/flashinfer/attention/prefill.cuh: line 9 at function cudaLaunchKernel",
        ),
        not_examples=(
            "RuntimeError: BatchDecode failed with error misaligned address of the table",
        ),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"Triton Error \[CUDA\]: (?P<what>an illegal memory access was encountered|unspecified launch failure|misaligned address)",
        source="triton 2.1-3.5 third_party/nvidia/backend/driver.c",
        message="A CUDA kernel of Triton failed: {what}",
        examples=(
            "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
            "RuntimeError: Triton Error [CUDA]: unspecified launch failure",
            "RuntimeError: Triton Error [CUDA]: misaligned address",
        ),
        not_examples=(),
        masks=_VICTIMS,
    ),
)
