"""Error 2 of CUDA's own start: memory of the host, not of the GPU."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))
OWN = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 1, in <module>\n'


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


_COUNTED = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling"
    " NumCudaDevices() that might have already set an error? Error 2: out of memory"
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"UserWarning: CUDA initialization: {_COUNTED}", id="torch warns"),
        pytest.param(f"{OWN}RuntimeError: {_COUNTED}", id="torch raises"),
        pytest.param("failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory", id="cuInit"),
        pytest.param("pycuda._driver.MemoryError: cuInit failed: out of memory", id="pycuda"),
        pytest.param("ggml_cuda_init: failed to initialize CUDA: out of memory", id="llama.cpp"),
        pytest.param("cudaGetDeviceCount returned 2\n-> out of memory", id="deviceQuery"),
        pytest.param("[error] cudaGetDeviceCount(&n) failed: out of memory", id="a C++ program"),
        pytest.param("CUDA error 2 'out of memory' at x.cu:3: cudaGetDeviceCount", id="its macro"),
    ],
)
def test_cuda_that_finds_no_memory_to_start_in_has_not_filled_the_gpu(text: str) -> None:
    found = read(f"{text}\n")
    assert [cause.condition for cause in found.causes][:1] == ["cuda-init-driver-state"]
    assert "gpu-oom" not in {cause.condition for cause in found.causes}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("RuntimeError: CUDA error: out of memory", id="torch"),
        pytest.param("[error] cudaSetDevice failed: out of memory", id="a context"),
        pytest.param("cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY", id="the driver's call"),
        pytest.param(
            "found 2 GPUs (cudaGetDeviceCount)\ncudaMalloc failed: out of memory", id="a line later"
        ),
    ],
)
def test_a_gpu_that_is_full_is_still_said_to_be(text: str) -> None:
    assert read(f"{text}\n").causes[0].condition == "gpu-oom"
