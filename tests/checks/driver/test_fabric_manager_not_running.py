from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import FabricManager, Gpus, OsInfo
from dsdoctor.model.facts.gpu import GpuFabric, GpuLink
from dsdoctor.testing import judge
from dsdoctor_checks.driver import cuda_init_driver_state, fabric_manager_not_running
from tests.checks import machines as m

CHECK = fabric_manager_not_running.fabric_is_up


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=3)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="an H100 that has joined its fabric",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=0)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="an H100 on a board without NVSwitches",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=1)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="an H100 whose fabric registration has not started",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=2)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="an H100 whose fabric registration is still under way",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=2)),
                "nvml": m.nvml(),
                "torch_live": m.live(),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="registration is still under way, but CUDA works",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=1), mig_mode=True),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
            id="a GPU split by MIG does not join the fabric",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=3, status=15)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="registration ended with an error",
        ),
        pytest.param(
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=None)),
                "nvml": m.nvml(),
                "torch_live": m.live(802),
                "environment": m.NO_ENV,
            },
            ["fail"],
            id="NVML reports no fabric state, but CUDA says that the system is not ready",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


AMPERE = m.gpus("A100", fabric=GpuFabric(state=0))


@pytest.mark.parametrize(
    ("gpus", "live", "manager", "expected"),
    [
        pytest.param(
            AMPERE,
            m.NOT_ASKED,
            FabricManager(switches=6, running=True),
            ["ok"],
            id="an A100 board whose fabric manager runs",
        ),
        pytest.param(
            AMPERE,
            m.NOT_ASKED,
            FabricManager(switches=6, running=None),
            ["ok"],
            id="an A100 board on which nobody can see if the manager runs",
        ),
        pytest.param(
            AMPERE,
            m.NOT_ASKED,
            FabricManager(switches=0, running=False),
            ["ok"],
            id="an A100 board without NVSwitches needs no manager",
        ),
        pytest.param(
            AMPERE,
            m.live(),
            FabricManager(switches=6, running=False),
            ["ok"],
            id="the manager is not seen, but CUDA works",
        ),
        pytest.param(
            AMPERE,
            m.NOT_ASKED,
            FabricManager(switches=6, running=False),
            ["fail"],
            id="the manager does not run and CUDA was not tried",
        ),
        pytest.param(
            AMPERE,
            m.live(802),
            FabricManager(switches=6, running=False),
            ["fail"],
            id="the manager does not run and CUDA says that the system is not ready",
        ),
        pytest.param(
            m.gpus("A100", mig_mode=True),
            m.NOT_ASKED,
            FabricManager(switches=6, running=False),
            ["ok"],
            id="the manager does not run, but the A100 is split by MIG",
        ),
        pytest.param(
            m.gpus("H100", fabric=GpuFabric(state=3)),
            m.NOT_ASKED,
            FabricManager(switches=4, running=False),
            ["ok"],
            id="an H100 that has joined its fabric under a manager seen elsewhere",
        ),
    ],
)
def test_boards_before_hopper(
    gpus: Gpus, live: Any, manager: FabricManager, expected: list[str]
) -> None:
    facts: dict[str, Any] = {
        "gpus": gpus,
        "nvml": m.nvml(),
        "torch_live": live,
        "environment": m.NO_ENV,
        "fabric_manager": manager,
    }
    found = judge(CHECK, **facts).findings
    assert m.words(found) == expected
    if expected == ["fail"]:
        assert "6 NVSwitches" in found[0].message


@pytest.mark.parametrize(
    ("os", "said"), [(m.DOCKER, True), (m.LINUX, False)], ids=["in a container", "on a machine"]
)
def test_a_container_is_sent_to_its_host(os: OsInfo, said: bool) -> None:
    gpus = m.gpus("H100", fabric=GpuFabric(state=1))
    (finding,) = judge(CHECK, gpus=gpus, nvml=m.nvml(), environment=m.NO_ENV, os_info=os).findings
    assert ("` on the host;" in finding.hint) is said


@pytest.mark.parametrize(
    ("links", "manager", "expected"),
    [
        pytest.param((), FabricManager(switches=0, running=False), [], id="a PCIe card"),
        pytest.param(
            (), FabricManager(switches=4, running=None), ["fail"], id="switches without links"
        ),
        pytest.param(
            (GpuLink(link=0, state=0),), FabricManager(switches=0, running=False), ["fail"],
            id="a guest whose host owns the switches",
        ),
    ],
)  # fmt: skip
def test_error_802_of_gpus_without_nvlink_is_not_of_a_fabric(
    links: tuple[GpuLink, ...], manager: FabricManager, expected: list[str]
) -> None:
    """CUDA reports it for a GPU of a confidential guest that is not ready, too."""
    facts: dict[str, Any] = {
        "gpus": m.gpus("H100", links=links, name="NVIDIA H100 PCIe"),
        "nvml": m.nvml(),
        "torch_live": m.live(802),
        "environment": m.NO_ENV,
        "fabric_manager": manager,
    }
    found = [one.status.value for one in judge(CHECK, **facts).findings]
    assert [status for status in found if status != "ok"] == expected
    state = judge(
        cuda_init_driver_state.driver_state_is_good,
        torch_live=m.live(802),
        nvidia_kernel=m.kernel(),
        gpus=m.gpus("H100"),
    )
    assert "conf-compute -srs 1" in state.worst.hint


@pytest.mark.parametrize(
    ("version", "first"),
    [
        pytest.param(None, "install `nvidia-fabricmanager`", id="it was never installed"),
        pytest.param("570.195.03", "run `systemctl start", id="it was stopped"),
    ],
)
def test_the_hint_installs_what_is_not_there(version: str | None, first: str) -> None:
    found = judge(
        CHECK,
        gpus=m.gpus("V100", "V100"),
        nvml=m.nvml(),
        fabric_manager=FabricManager(switches=6, running=False, version=version),
        environment=m.NO_ENV,
    )
    assert found.findings[0].hint.startswith(first)
