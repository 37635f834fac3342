"""`wsl-driver-unavailable` in WSL 1, and in pastes that do not say whether there is /dev/dxg."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.paste.environment import environment_of
from tests.support.composed import machine
from tests.support.described import Described

REGISTRY = packs.load(builtin_only=True)
WSL2 = "5.15.153.1-microsoft-standard-WSL2"
LSPCI = (
    "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"
    "\tKernel driver in use: nvidia\n"
)
NAME = "wsl-driver-unavailable"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("$ uname -r\n4.4.0-19041-Microsoft\n", True, id="WSL 1"),
        pytest.param(f"$ uname -r\n{WSL2}\n", False, id="WSL 2"),
        pytest.param(f"$ uname -r\n{WSL2}\n{LSPCI}", False, id="WSL 2 and a list of devices"),
        pytest.param("$ uname -r\n4.4.0-19041-generic\n", False, id="a Linux of that version"),
    ],
)
def test_what_a_release_says(text: str, named: bool) -> None:
    snapshot = environment_of(text)
    assert snapshot is not None
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    bad = {one.condition for one in report.findings if one.status.value in ("warn", "fail")}
    assert (NAME in bad) is named


COUNTED = (
    "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some"
    " cuda functions before calling NumCudaDevices() that might have already set an error?"
    " Error {error} (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)\n"
)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param(Described(wsl=True, cuda_error=2), [NAME], id="out of memory"),
        pytest.param(
            Described(wsl=True, cuda_error=3), ["cuda-init-driver-state"], id="another error"
        ),
        pytest.param(Described(cuda_error=2), ["torch-cuda-init-failed"], id="not in WSL"),
        pytest.param(Described(wsl=True), [], id="it works"),
    ],
)
def test_too_many_gpus_for_wsl(said: Described, named: list[str]) -> None:
    eight = msgspec.structs.replace(said, gpus="8xNVIDIA RTX A4000", torch="2.4.0+cu121")
    report = judge(machine(eight), list(REGISTRY), REGISTRY)
    bad = [one for one in report.findings if one.status.value in ("warn", "fail")]
    assert [one.condition for one in bad] == named
    assert all(("with four or more" in one.message) is (named == [NAME]) for one in bad)


@pytest.mark.parametrize(
    ("error", "platform", "said"),
    [
        pytest.param("2: out of memory", WSL2, True, id="in WSL"),
        pytest.param("2: out of memory", "5.15.0-generic", False, id="elsewhere"),
        pytest.param("3: initialization error", WSL2, False, id="another error"),
    ],
)
def test_a_log_of_too_many_gpus_for_wsl(error: str, platform: str, said: bool) -> None:
    text = f"{COUNTED.format(error=error)}Python platform: Linux-{platform}-x86_64\n"
    known = signatures_of(REGISTRY)
    causes = diagnose([Source("log", data=text.encode())], known).causes
    assert ("with four or more" in " ".join(one.message for one in causes)) is said
