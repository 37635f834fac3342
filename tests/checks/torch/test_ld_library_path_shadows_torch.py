from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ImportOutcome, LibraryPath, LibraryShadow, TorchLive
from dsdoctor.testing import judge
from dsdoctor_checks.torch import ld_library_path_shadows_torch
from tests.checks import machines as m

CHECK = ld_library_path_shadows_torch.torch_loads_its_own


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"library_path": LibraryPath(), "torch_live": m.live()}, ["ok"], id="no library path"
        ),
        pytest.param(
            {
                "library_path": LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudart.so.12",
                            path="/opt/lib/libcudart.so.12",
                            owner="nvidia/x",
                        ),
                    )
                ),
                "torch_live": m.live(),
            },
            ["ok"],
            id="another libcudart of the same major version, and torch works",
        ),
        pytest.param(
            {
                "library_path": LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudnn.so.12", path="/opt/lib/libcudnn.so.12", owner="nvidia/x"
                        ),
                    )
                ),
                "torch_live": m.live(),
            },
            ["warn"],
            id="another libcudnn, although torch works",
        ),
        pytest.param(
            {
                "library_path": LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudart.so.12",
                            path="/opt/lib/libcudart.so.12",
                            owner="nvidia/x",
                        ),
                    )
                )
            },
            ["warn"],
            id="another libcudart, and torch was not tried",
        ),
        pytest.param(
            {
                "library_path": LibraryPath(
                    shadows=(
                        LibraryShadow(
                            name="libcudart.so.12",
                            path="/opt/lib/libcudart.so.12",
                            owner="nvidia/x",
                        ),
                    )
                ),
                "torch_live": TorchLive(imported=ImportOutcome(ok=False, error_type="OSError")),
            },
            ["fail"],
            id="another libcudart, and torch does not import",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
