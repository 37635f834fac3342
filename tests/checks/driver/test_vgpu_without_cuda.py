"""Rows of `vgpu-without-cuda`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.driver import vgpu_without_cuda


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("GRID T4-2B", "fail", id="a desktop"),
        pytest.param("GRID P40-1B4", "fail", id="a desktop of the second kind"),
        pytest.param("NVIDIA A40-4A", "fail", id="applications"),
        pytest.param("NVIDIA A10-24Q", "ok", id="a workstation"),
        pytest.param("GRID V100DX-32C", "ok", id="compute"),
        pytest.param("NVIDIA A100-SXM4-80GB", "ok", id="a whole GPU"),
        pytest.param("NVIDIA A100-1-5C", "ok", id="a slice of MIG"),
        pytest.param("Tesla V100-SXM2-16GB", "ok", id="a name with a memory size"),
        pytest.param(None, "ok", id="no name"),
    ],
)
def test_rows(name: str | None, expected: str) -> None:
    gpus = Gpus(gpus=(Gpu(index=0, name=name),))
    assert judge(vgpu_without_cuda.types_have_cuda, gpus=gpus).status == expected
