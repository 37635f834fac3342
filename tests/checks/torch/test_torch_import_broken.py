from __future__ import annotations

import pytest

from dsdoctor.api import ImportOutcome, Resources, TorchBuild, TorchLive
from dsdoctor_checks.torch import torch_import_broken
from tests.checks import machines as m

CHECK = torch_import_broken.torch_imports.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.torch(), m.live(), m.ABSENT), []),
        (
            (
                m.torch(),
                TorchLive(imported=ImportOutcome(ok=False, error_type="ImportError", message="x")),
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                TorchLive(imported=ImportOutcome(ok=False, error_type="OSError", message="x")),
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                TorchLive(
                    imported=ImportOutcome(ok=False, error_type="signal", message="x", signal=6)
                ),
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                TorchLive(imported=ImportOutcome(ok=False, error_type="hang", message="x")),
                m.ABSENT,
            ),
            ["fail"],
        ),
        (
            (
                TorchBuild(),
                TorchLive(imported=ImportOutcome(ok=False, error_type="ModuleNotFoundError")),
                m.ABSENT,
            ),
            ["skip"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts, m.ABSENT)) == expected


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
    found = list(CHECK(m.torch(), TorchLive(imported=dead), m.ABSENT, resources))
    assert m.words(found) == [expected]
    assert "reinstall" not in found[0].hint
