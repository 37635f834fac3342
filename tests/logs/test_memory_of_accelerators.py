"""Memory that ran out on accelerators of all kinds, and processes that the kernel killed for it."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))


def said(text: str) -> str:
    found = diagnose([Source("log", data=text.encode())], KNOWN)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        pytest.param(
            "RuntimeError: MPS backend out of memory (MPS allocated: 17.90 GB, max allowed: 18.13 GB)",
            "gpu-oom",
            id="a Mac",
        ),
        pytest.param(
            "ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 1.5GB memory",
            "gpu-oom",
            id="Paddle",
        ),
        pytest.param(
            "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: x",
            "gpu-oom",
            id="MindSpore",
        ),
        pytest.param(
            "W bfc_allocator.cc:482] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB",
            "gpu-oom",
            id="TensorFlow",
        ),
        pytest.param(
            "W bfc_allocator.cc:290] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB "
            "with freed_by_count=0. The caller indicates that this is not a failure",
            "clean",
            id="TensorFlow, which tries an algorithm that needs less",
        ),
        pytest.param(
            "RuntimeError: level_zero backend failed with error: 39 "
            "(UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
            "gpu-oom",
            id="an Intel GPU",
        ),
        pytest.param(
            "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::9",
            "gpu-oom",
            id="Gaudi",
        ),
        pytest.param(
            "RuntimeError: x.cpp:9 NPU function error: c10_npu::acl::AclrtMalloc, error code is 207001",
            "gpu-oom",
            id="an NPU, by its code",
        ),
        pytest.param("\tCommand exited with non-zero status 137", "host-oom-killed", id="time"),
        pytest.param("Container killed on request. Exit code is 137", "host-oom-killed", id="YARN"),
        pytest.param(
            "c++: fatal error: Killed signal terminated program cc1plus",
            "host-oom-killed",
            id="a compiler",
        ),
    ],
)
def test_what_ran_out_is_named(line: str, condition: str) -> None:
    assert said(f"{line}\n") == condition


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
            id="a certificate",
        ),
        pytest.param(
            "urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='x.org'): Read timed out.",
            id="a server that does not answer",
        ),
        pytest.param(
            "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out.",
            id="a runtime that waits for another process",
        ),
    ],
)
def test_a_network_or_runtime_that_fails_is_not_the_scripts_fault(error: str) -> None:
    own = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in main\n'
    assert said(f"{own}{error}\n") != "user-code"
