from __future__ import annotations

import pytest

from dsdoctor.api import ImportOutcome, TorchBuild, TorchLive
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
    assert m.words(CHECK(*facts)) == expected
