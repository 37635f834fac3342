"""A driver that answers, and a torch that says why CUDA does not start beside it."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from tests.paste.reading import stated

REGISTRY = packs.load(builtin_only=True)
#: Without its rows, so that no GPU is listed.
HEAD = "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4     |\n"
COUNTING = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling"
    " NumCudaDevices() that might have already set an error? Error {}"
)


def troubles(text: str) -> dict[str, Status]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    bad = (Status.FAIL, Status.WARN)
    return {one.condition: one.status for one in report.findings if one.status in bad}


def tried(words: str) -> str:
    """A session in which torch warns."""
    warning = f"UserWarning: CUDA initialization: {words} (Triggered internally at ../c10/x.cpp:1.)"
    return f">>> import torch\n>>> torch.cuda.is_available()\n/env/x.py:88: {warning}\nFalse\n"


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        pytest.param(
            "CUDA driver initialization failed, you might not have a CUDA gpu.",
            "cuda-init-driver-state",
            id="error 3, in torch's own words",
        ),
        pytest.param(
            "CUDA unknown error - this may be due to an incorrectly set up environment",
            "cuda-init-driver-state",
            id="error 999, in torch's own words",
        ),
        pytest.param(
            COUNTING.format("802: system not yet initialized"),
            "fabric-manager-not-running",
            id="error 802",
        ),
        pytest.param(
            COUNTING.format("2: out of memory"),
            "cuda-init-driver-state",
            id="no memory of the host",
        ),
        pytest.param(
            COUNTING.format("46: all CUDA-capable devices are busy or unavailable"),
            "gpu-busy-exclusive-mode",
            id="busy",
        ),
        pytest.param(
            COUNTING.format("719: unspecified launch failure"),
            "cuda-init-driver-state",
            id="an error of no other condition",
        ),
    ],
)
def test_the_reason_is_said_where_no_gpu_is_listed(words: str, condition: str) -> None:
    assert troubles(tried(words) + HEAD) == {condition: Status.FAIL}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            tried(COUNTING.format("100: no CUDA-capable device is detected")) + HEAD,
            id="no device",
        ),
        pytest.param(tried("No CUDA GPUs are available") + HEAD, id="none, in torch's own words"),
        pytest.param(">>> import torch\n>>> torch.cuda.is_available()\nFalse\n" + HEAD, id="none"),
    ],
)
def test_a_torch_that_finds_no_device_is_warned_of(text: str) -> None:
    assert troubles(text) == {"no-gpu-visible": Status.WARN}


def test_nothing_is_said_of_a_machine_without_a_driver() -> None:
    assert not troubles(tried(COUNTING.format("719: unspecified launch failure")))


def test_nothing_is_wrong_where_cuda_starts() -> None:
    assert not troubles(">>> import torch\n>>> torch.cuda.is_available()\nTrue\n" + HEAD)
