from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import KernelLog, LibCuda
from dsdoctor.testing import assert_fail, judge
from dsdoctor_checks.driver import cuda_init_driver_state
from tests.checks import machines as m

CHECK = cuda_init_driver_state.driver_state_is_good


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"torch_live": m.live(), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["ok"],
            id="torch initializes CUDA on an A100",
        ),
        pytest.param(
            {"torch_live": m.live(999), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["fail"],
            id="CUDA fails with an unknown error although the A100 is on the bus",
        ),
        pytest.param(
            {"torch_live": m.live(802), "nvidia_kernel": m.kernel(), "gpus": m.gpus("H100")},
            ["fail"],
            id="CUDA says that the system of an H100 is not ready yet",
        ),
        pytest.param(
            {
                "torch_live": m.live(34),
                "nvidia_kernel": m.kernel(),
                "gpus": m.gpus("H100"),
                "lib_cuda": m.libcuda(),
            },
            ["fail"],
            id="CUDA loads the stub library instead of the driver's",
        ),
        pytest.param(
            {"torch_live": m.live(999), "nvidia_kernel": m.NO_GPU},
            ["ok"],
            id="an unknown error on a machine without an NVIDIA GPU",
        ),
        pytest.param(
            {"torch_live": m.live(100), "nvidia_kernel": m.kernel(), "gpus": m.gpus("A100")},
            ["ok"],
            id="CUDA sees no device, which is not a state of the driver",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


def test_a_compat_library_older_than_the_driver_is_named() -> None:
    older = LibCuda(path="/usr/local/cuda/compat/libcuda.so.1", version="520.61.05", compat=True)
    found = judge(
        CHECK,
        torch_live=m.live(803),
        nvidia_kernel=m.kernel(),
        gpus=m.gpus("A100"),
        lib_cuda=older,
    )
    finding = assert_fail(found, "`cuda-compat` libcuda 520.61.05 would be loaded")
    assert "ldconfig" in finding.hint
    newer = msgspec.structs.replace(older, version="999.1")
    again = judge(
        CHECK, torch_live=m.live(803), nvidia_kernel=m.kernel(), gpus=m.gpus("A100"), lib_cuda=newer
    )
    assert "cuda-compat" not in assert_fail(again).message


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        (("nvidia0", "nvidiactl"), True),
        (("nvidia0", "nvidiactl", "nvidia-uvm"), False),
        ((), False),
    ],
)
def test_a_device_file_that_cuda_needs_is_named(nodes: tuple[str, ...], named: bool) -> None:
    kernel = msgspec.structs.replace(
        m.kernel(), device_nodes=nodes, modules=("nvidia", "nvidia_uvm")
    )
    found = judge(CHECK, torch_live=m.live(999), nvidia_kernel=kernel, gpus=m.gpus("A100"))
    assert ("`/dev/nvidia-uvm` does not exist" in assert_fail(found).message) is named


def test_what_turns_hmm_off_is_told_where_the_kernel_has_no_room_for_it() -> None:
    facts: dict[str, Any] = {"torch_live": m.live(3), "gpus": m.gpus("A100")}
    log = KernelLog(source="dmesg", hmm_failed=True)
    failed = assert_fail(judge(CHECK, nvidia_kernel=m.kernel(), kernel_log=log, **facts), "HMM")
    assert "uvm_disable_hmm=1" in failed.hint
    on = msgspec.structs.replace(m.kernel(), uvm_hmm=True)
    assert "uvm_disable_hmm=1" in assert_fail(judge(CHECK, nvidia_kernel=on, **facts)).hint
    off = msgspec.structs.replace(m.kernel(), uvm_hmm=False)
    assert "hmm" not in assert_fail(judge(CHECK, nvidia_kernel=off, **facts)).hint
    sound = judge(CHECK, nvidia_kernel=on, kernel_log=log, torch_live=m.live(), gpus=facts["gpus"])
    assert sound.statuses == ["ok"]


@pytest.mark.parametrize(
    ("modules", "first"),
    [
        pytest.param(("nvidia",), "load the module", id="nvidia_uvm is not loaded"),
        pytest.param(("nvidia", "nvidia_uvm"), "reload the module", id="nvidia_uvm is loaded"),
    ],
)
def test_a_module_that_is_not_loaded_is_not_unloaded_first(
    modules: tuple[str, ...], first: str
) -> None:
    kernel = msgspec.structs.replace(m.kernel(), modules=modules)
    found = judge(CHECK, torch_live=m.live(999), nvidia_kernel=kernel, gpus=m.gpus("A100"))
    assert found.findings[0].hint.startswith(first)
