from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Nvml, NvmlError
from dsdoctor.testing import judge
from dsdoctor_checks.driver import container_lost_gpu
from tests.checks import machines as m

CHECK = container_lost_gpu.container_keeps_gpu


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"os_info": m.DOCKER, "nvml": m.nvml(), "nvidia_smi": m.smi(), "torch_live": m.live()},
            ["ok"],
            id="a container in which NVML, nvidia-smi and torch all reach the GPU",
        ),
        pytest.param(
            {
                "os_info": m.DOCKER,
                "nvml": Nvml(error=NvmlError(code=999, name="X", message="x", call="nvmlInit")),
            },
            ["fail"],
            id="NVML answers with an unknown error in a container",
        ),
        pytest.param(
            {
                "os_info": m.DOCKER,
                "nvidia_smi": m.smi(
                    returncode=255, error="Failed to initialize NVML: Unknown Error"
                ),
            },
            ["fail"],
            id="nvidia-smi says unknown error in a container",
        ),
        pytest.param(
            {
                "os_info": m.LINUX,
                "nvml": Nvml(error=NvmlError(code=999, name="X", message="x", call="nvmlInit")),
            },
            ["ok"],
            id="the same unknown error outside a container has another cause",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
