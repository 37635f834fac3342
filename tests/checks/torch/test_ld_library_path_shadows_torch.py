from __future__ import annotations

import pytest

from dsdoctor.api import ImportOutcome, LibraryPath, LibraryShadow, TorchLive
from dsdoctor_checks.torch import ld_library_path_shadows_torch
from tests.checks import machines as m

CHECK = ld_library_path_shadows_torch.torch_loads_its_own.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((LibraryPath(), m.live()), ["ok"]),
        (
            (
                LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudart.so.12",
                            path="/opt/lib/libcudart.so.12",
                            owner="nvidia/x",
                        ),
                    )
                ),
                m.live(),
            ),
            ["ok"],
        ),
        (
            (
                LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudnn.so.12", path="/opt/lib/libcudnn.so.12", owner="nvidia/x"
                        ),
                    )
                ),
                m.live(),
            ),
            ["warn"],
        ),
        (
            (
                LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudart.so.12",
                            path="/opt/lib/libcudart.so.12",
                            owner="nvidia/x",
                        ),
                    )
                ),
                m.NOT_ASKED,
            ),
            ["warn"],
        ),
        (
            (
                LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudart.so.12",
                            path="/opt/lib/libcudart.so.12",
                            owner="nvidia/x",
                        ),
                    )
                ),
                TorchLive(imported=ImportOutcome(ok=False, error_type="OSError")),
            ),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
