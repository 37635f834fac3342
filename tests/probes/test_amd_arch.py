"""What torch for ROCm tells of the architecture of a GPU."""

from __future__ import annotations

from types import SimpleNamespace

from dsdoctor.probes.children import torch_live as child


def test_the_architecture_of_an_amd_gpu() -> None:
    for told, expected in (("gfx908:sramecc+:xnack-", "gfx908"), ("NVIDIA H200", None), ("", None)):
        assert child.amd_arch(SimpleNamespace(gcnArchName=told)) == expected
    assert child.amd_arch(SimpleNamespace(name="of an older torch")) is None
