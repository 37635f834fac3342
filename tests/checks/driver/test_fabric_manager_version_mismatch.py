from __future__ import annotations

import pytest

from dsdoctor.api import FabricManager, NvidiaKernel
from dsdoctor.testing import judge
from dsdoctor_checks.driver import fabric_manager_version_mismatch


@pytest.mark.parametrize(
    ("manager", "driver", "expected"),
    [
        (FabricManager(switches=6, running=True, version="550.54.15"), "550.54.15", ["ok"]),
        (FabricManager(switches=6, running=True, version=None), "550.54.15", ["skip"]),
        (FabricManager(switches=0, version="535.1.2"), "550.54.15", ["ok"]),
        (FabricManager(switches=6, running=True, version="535.1.2"), None, ["skip"]),
        (FabricManager(switches=6, running=True, version="550.54.14"), "550.54.15", ["warn"]),
        (FabricManager(switches=6, running=None, version="550.54.14"), "550.54.15", ["warn"]),
        (FabricManager(switches=6, running=False, version="550.54.14"), "550.54.15", ["fail"]),
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
