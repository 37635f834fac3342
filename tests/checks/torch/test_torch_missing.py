from __future__ import annotations

import pytest

from dsdoctor.api import Patient, TorchBuild
from dsdoctor_checks.torch import torch_missing
from tests.checks import machines as m

CHECK = torch_missing.torch_is_installed.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.torch(), m.ABSENT), []),
        ((TorchBuild(), m.ABSENT), ["fail"]),
        ((TorchBuild(error="no version"), m.ABSENT), ["fail"]),
        (
            (
                TorchBuild(),
                Patient(
                    executable="/v/bin/python",
                    chosen_by="VIRTUAL_ENV",
                    version="3.11.7",
                    prefix="/v",
                    kind="venv",
                ),
            ),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
