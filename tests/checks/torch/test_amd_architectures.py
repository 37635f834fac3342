"""Rows of `gpu-arch-unsupported` about AMD GPUs."""

from __future__ import annotations

import pytest

from dsdoctor.api import CudaDevice, RunNeeds, TorchBuild, TorchLive
from dsdoctor.testing import judge, missing
from dsdoctor_checks.torch import gpu_arch_unsupported
from tests.checks import machines as m

SERVERS = ("gfx90a", "gfx942", "gfx1100")


def told(
    archs: tuple[str | None, ...], code: tuple[str, ...] | None, run: RunNeeds | None = None
) -> list[str]:
    devices = tuple(
        CudaDevice(index=index, name="AMD GPU", major=9, minor=0, arch=arch)
        for index, arch in enumerate(archs)
    )
    found = judge(
        gpu_arch_unsupported.torch_has_code_for_gpus,
        torch_build=TorchBuild(version="2.7.0", hip="6.4"),
        torch_live=m.live(devices=devices, arch_list=code),
        gpus=missing(),
        run_needs=run or RunNeeds(),
    )
    return [finding.status.value for finding in found.bad]


@pytest.mark.parametrize(
    ("archs", "code", "expected"),
    [
        pytest.param(("gfx908", "gfx908"), SERVERS, ["fail", "fail"], id="an older server GPU"),
        pytest.param(("gfx942", "gfx1036"), SERVERS, ["warn"], id="the GPU in the CPU"),
        pytest.param(("gfx90a",), ("gfx90a:xnack-", "gfx942"), [], id="with a feature"),
        pytest.param(("gfx1103",), ("gfx11-generic",), [], id="a family"),
        pytest.param(("gfx908",), None, [], id="a list that is not known"),
        pytest.param((None,), SERVERS, [], id="a torch that does not tell"),
    ],
)
def test_rows(
    archs: tuple[str | None, ...], code: tuple[str, ...] | None, expected: list[str]
) -> None:
    assert told(archs, code) == expected


def test_a_gpu_that_is_asked_for_by_name_fails() -> None:
    assert told(("gfx942", "gfx1036"), SERVERS, RunNeeds(gpus=("1",))) == ["fail"]


def test_torch_for_cuda_has_no_such_names() -> None:
    live = m.live(devices=(m.device("A100"),), arch_list=("sm_80",))
    assert isinstance(live, TorchLive)
    found = judge(
        gpu_arch_unsupported.torch_has_code_for_gpus,
        torch_build=m.torch(),
        torch_live=live,
        gpus=m.gpus("A100"),
    )
    assert not found.bad
