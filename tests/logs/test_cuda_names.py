"""Errors of CUDA by the names of its runtime and its driver, and as torch printed them until 1.8."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from tests.support.error_index import read

KNOWN = signatures_of(packs.load(builtin_only=True))
TRACE = 'Traceback (most recent call last):\n  File "/home/me/t.py", line 3, in <module>\n'
TENSORFLOW = (
    "2021-03-04 10:11:12.131415: E tensorflow/core/common_runtime/direct_session.cc:1] Internal: "
    "failed call to cuDevicePrimaryCtxRetain: {name}: {words}\n"
    + TRACE
    + "tensorflow.python.framework.errors_impl.InternalError: Failed to create session.\n"
)
NUMBA = (
    TRACE + "numba.cuda.cudadrv.driver.CudaAPIError: [1] Call to cuMemcpyDtoH results in {name}\n"
)
CUPY = TRACE + "cupy_backends.cuda.api.runtime.CUDARuntimeError: {runtime}: {words}\n"
THC = (
    TRACE
    + "RuntimeError: cuda runtime error ({code}) : {words} at /x/aten/src/THC/THCGeneral.cpp:5\n"
)
#: Name in the driver, name in the runtime, number until CUDA 10.0, words, and the condition.
ERRORS = (
    ("CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", 10, "invalid device ordinal", "invalid-device-ordinal"),
    ("CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice", 48, "no kernel image is available for execution on the device", "gpu-arch-unsupported"),
    ("CUDA_ERROR_ECC_UNCORRECTABLE", "cudaErrorECCUncorrectable", 39, "uncorrectable ECC error encountered", "gpu-hardware-fault"),
    ("CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", 6, "the launch timed out and was terminated", "cuda-kernel-failed"),
    ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction", 73, "an illegal instruction was encountered", "gpu-hardware-fault"),
    ("CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", 77, "an illegal memory access was encountered", "cuda-kernel-failed"),
    ("CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError", 72, "hardware stack error", "cuda-kernel-failed"),
    ("CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", 74, "misaligned address", "cuda-kernel-failed"),
    ("CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", 76, "invalid program counter", "cuda-kernel-failed"),
    ("CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", 4, "unspecified launch failure", "cuda-kernel-failed"),
)  # fmt: skip


def diagnosed(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


@pytest.mark.parametrize("program", [TENSORFLOW, NUMBA, CUPY, THC], ids=["TensorFlow", "numba", "cupy", "THC"])  # fmt: skip
@pytest.mark.parametrize("error", ERRORS, ids=[error[0] for error in ERRORS])
def test_an_error_of_cuda_is_known_by_each_of_its_names(
    error: tuple[str, str, int, str, str], program: str
) -> None:
    name, runtime, code, words, condition = error
    found = diagnosed(program.format(name=name, runtime=runtime, code=code, words=words))
    assert [cause.condition for cause in found.causes] == [condition]


def test_an_assertion_of_a_kernel_by_its_name_in_the_driver() -> None:
    (cause,) = diagnosed(NUMBA.format(name="CUDA_ERROR_ASSERT")).causes
    assert cause.condition == "cuda-kernel-failed"
    assert "out of range" in cause.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "THCudaCheck FAIL file=/x/THC/THCTensorCopy.cu line=100 error=59 : device-side assert "
            "triggered\n/x/luajit: /x/nn/THNN.lua:110: cuda runtime error (59) : device-side "
            "assert triggered at /x/THC/THCTensorCopy.cu:100\n",
            id="Lua's torch",
        ),
        pytest.param(
            "epoch 1:  37%|###   | 521/1426 [02:47<04:46,  3.16it/s]\n"
            "/x/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [31,0,0], thread: "
            "[0,0,0] Assertion `srcIndex < srcSelectDimSize` \nfailed.\n",
            id="wrapped by a narrow terminal",
        ),
    ],
)
def test_an_assertion_of_a_kernel_is_a_kernel_that_failed(text: str) -> None:
    [cause] = diagnosed(text).causes
    assert cause.condition == "cuda-kernel-failed"
    assert "out of range" in cause.message


def test_an_assertion_of_another_products_kernel_is_not() -> None:
    found = diagnosed(
        "/v/site-packages/deepspeed/ops/csrc/fp_quantizer/x.cuh:77: void round(float): block: "
        '[0,0,0], thread: [0,0,0] Assertion `false && "not on this GPU"` failed.\n'
    )
    assert found.outcome is Outcome.UNRECOGNISED


def test_a_wrapped_assertion_is_read_as_a_whole() -> None:
    error = diagnosed(
        "x.cu:1: f: block: [0,0,0], thread: [1,0,0] Assertion `t >= 0 && t < n_classes`\nfailed.\n"
    ).first_error
    assert error is not None
    assert error.message.endswith("Assertion `t >= 0 && t < n_classes` failed.")
    assert error.type == "device-side assertion", "the internal name is not shown"


@pytest.mark.parametrize(
    "text",
    [
        THC.format(code=59, words="device-side assert triggered"),
        "THCudaCheck FAIL file=/x/THC/Copy.cu line=9 error=59 : device-side assert triggered\n",
    ],
    ids=["an exception", "a line"],
)
def test_an_assertion_of_a_kernel_in_torchs_former_words_is_explained(text: str) -> None:
    explained = read(text).explained
    assert explained is not None
    assert "CUDA_LAUNCH_BLOCKING=1" in explained.text


def test_an_error_of_the_memory_says_what_to_look_at() -> None:
    (cause,) = diagnosed(NUMBA.format(name="CUDA_ERROR_ECC_UNCORRECTABLE")).causes
    assert cause.message == "A GPU has an error in its memory that ECC cannot correct"
