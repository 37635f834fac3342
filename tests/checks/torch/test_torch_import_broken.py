from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ImportOutcome, Resources, TorchBuild, TorchLive
from dsdoctor.testing import judge
from dsdoctor_checks.torch import torch_import_broken
from tests.checks import machines as m

CHECK = torch_import_broken.torch_imports


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"torch_build": m.torch(), "torch_live": m.live()}, ["ok"], id="torch imports"
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="ImportError", message="x")
                ),
            },
            ["fail"],
            id="a Python name is missing",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="OSError", message="x")
                ),
            },
            ["fail"],
            id="a shared library is missing",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="signal", message="x", signal=6)
                ),
            },
            ["fail"],
            id="the process is killed by a signal",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="hang", message="x")
                ),
            },
            ["fail"],
            id="the import hangs",
        ),
        pytest.param(
            {
                "torch_build": TorchBuild(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="ModuleNotFoundError")
                ),
            },
            ["skip"],
            id="torch is not installed",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param(1 << 30, "skip", id="memory is short: its own condition reports it"),
        pytest.param(64 << 30, "fail", id="memory is free again"),
    ],
)
def test_a_killed_import_is_not_a_broken_torch(free: int, expected: str) -> None:
    dead = ImportOutcome(ok=False, error_type="signal", message="SIGKILL", signal=9)
    resources = Resources(
        cpus_logical=8,
        cpus_usable=8,
        memory_total_bytes=64 << 30,
        memory_available_bytes=free,
    )
    found = judge(
        CHECK, torch_build=m.torch(), torch_live=TorchLive(imported=dead), resources=resources
    ).findings
    assert m.words(found) == [expected]
    assert "reinstall" not in found[0].hint
