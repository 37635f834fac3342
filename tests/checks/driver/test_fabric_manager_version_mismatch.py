from __future__ import annotations

import pytest

from dsdoctor.api import FabricManager, NvidiaKernel
from dsdoctor.testing import judge
from dsdoctor_checks.driver import fabric_manager_version_mismatch


@pytest.mark.parametrize(
    ("manager", "driver", "expected"),
    [
        pytest.param(
            FabricManager(switches=6, running=True, version="550.54.15"),
            "550.54.15",
            ["ok"],
            id="manager and driver are both 550.54.15",
        ),
        pytest.param(
            FabricManager(switches=6, running=True, version=None),
            "550.54.15",
            ["skip"],
            id="the version of the manager is unknown",
        ),
        pytest.param(
            FabricManager(switches=0, version="535.1.2"),
            "550.54.15",
            ["ok"],
            id="an old manager on a board without NVSwitches",
        ),
        pytest.param(
            FabricManager(switches=6, running=True, version="535.1.2"),
            None,
            ["skip"],
            id="the version of the driver is unknown",
        ),
        pytest.param(
            FabricManager(switches=6, running=True, version="550.54.14"),
            "550.54.15",
            ["warn"],
            id="a running manager one patch behind the driver",
        ),
        pytest.param(
            FabricManager(switches=6, running=None, version="550.54.14"),
            "550.54.15",
            ["warn"],
            id="an older manager of which nobody knows if it runs",
        ),
        pytest.param(
            FabricManager(switches=6, running=False, version="550.54.14"),
            "550.54.15",
            ["fail"],
            id="an older manager that has stopped",
        ),
    ],
)
def test_the_manager_s_version(
    manager: FabricManager, driver: str | None, expected: list[str]
) -> None:
    check = fabric_manager_version_mismatch.manager_is_of_the_driver
    assert (
        judge(
            check, fabric_manager=manager, nvidia_kernel=NvidiaKernel(module_version=driver)
        ).statuses
        == expected
    )
