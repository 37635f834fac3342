"""`wsl-driver-unavailable` in WSL 1, and in pastes that do not say whether there is /dev/dxg."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of

REGISTRY = packs.load(builtin_only=True)
WSL2 = "5.15.153.1-microsoft-standard-WSL2"
LSPCI = (
    "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"
    "\tKernel driver in use: nvidia\n"
)
NAME = "wsl-driver-unavailable"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("$ uname -r\n4.4.0-19041-Microsoft\n", True, id="WSL 1"),
        pytest.param(f"$ uname -r\n{WSL2}\n", False, id="WSL 2"),
        pytest.param(f"$ uname -r\n{WSL2}\n{LSPCI}", False, id="WSL 2 and a list of devices"),
        pytest.param("$ uname -r\n4.4.0-19041-generic\n", False, id="a Linux of that version"),
    ],
)
def test_what_a_release_says(text: str, named: bool) -> None:
    snapshot = environment_of(text)
    assert snapshot is not None
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    bad = {one.condition for one in report.findings if one.status.value in ("warn", "fail")}
    assert (NAME in bad) is named
