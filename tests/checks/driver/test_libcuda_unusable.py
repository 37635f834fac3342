from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import NvidiaSmi, OsInfo
from dsdoctor.testing import judge
from dsdoctor_checks.driver import libcuda_unusable
from tests.checks import machines as m

CHECK = libcuda_unusable.libcuda_answers
ERR = NvidiaSmi(path="/usr/bin/nvidia-smi", cuda_missing="ERR!")
ABSENT = NvidiaSmi(path="/usr/bin/nvidia-smi", cuda_missing="N/A")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"nvidia_smi": m.smi()}, ["ok"], id="the header shows a CUDA version"),
        pytest.param({"nvidia_smi": NvidiaSmi()}, ["ok"], id="there is no nvidia-smi"),
        pytest.param(
            {"nvidia_smi": ERR, "torch_live": m.live()},
            ["ok"],
            id="the header shows an error, but torch uses CUDA",
        ),
        pytest.param({"nvidia_smi": ERR}, ["warn"], id="libcuda does not answer nvidia-smi"),
        pytest.param(
            {"nvidia_smi": ABSENT, "torch_live": m.live(100)},
            ["fail"],
            id="nvidia-smi finds no libcuda, and torch finds no device",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert [f.status.value for f in judge(CHECK, **facts).findings] == expected


@pytest.mark.parametrize(
    ("smi", "wsl", "hint"),
    [
        pytest.param(ERR, True, "`wsl --shutdown`", id="no answer in WSL"),
        pytest.param(ERR, False, "`stubs` folder", id="no answer elsewhere"),
        pytest.param(ABSENT, False, "NVIDIA_DRIVER_CAPABILITIES=compute,utility", id="no libcuda"),
    ],
)
def test_the_hint_fits_the_place(smi: NvidiaSmi, wsl: bool, hint: str) -> None:
    os = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="n", wsl=wsl)
    (finding,) = judge(CHECK, nvidia_smi=smi, os_info=os).findings
    assert hint in finding.hint
