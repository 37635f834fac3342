"""What systemd and the fabric manager print of it, in a paste."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import Status
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated, value

REGISTRY = packs.load(builtin_only=True)
UNITS = [unit for unit in REGISTRY if unit.condition.name.startswith("fabric-manager")]
STATUS = """\
$ systemctl status nvidia-fabricmanager
{mark} nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; preset: enabled)
     Active: {state} since Tue 2026-03-03 08:12:40 UTC; 2 days ago
    Process: 2101 ExecStart=/usr/bin/nv-fabricmanager-start.sh
"""
ABSENT = "Unit nvidia-fabricmanager.service could not be found.\n"
VERSION = "Fabric Manager version is : {}\n"


def listed(name: str, count: int) -> str:
    """The GPUs and the driver, as `collect_env` lists them."""
    rows = "".join(f"GPU {n}: {name}\n" for n in range(count))
    return (
        f"PyTorch version: 2.7.1+cu128\nIs debug build: False\nCUDA used to build PyTorch: 12.8\n"
        f"Is CUDA available: False\nGPU models and configuration: \n{rows}\nNvidia driver version: 570.10.04\ncuDNN version: Could not collect\n"
    )


@pytest.mark.parametrize(
    ("text", "running"),
    [
        pytest.param(ABSENT, False, id="not installed"),
        pytest.param(STATUS.format(mark="●", state="active (running)"), True, id="running"),
        pytest.param(STATUS.format(mark="○", state="inactive (dead)"), False, id="stopped"),
        pytest.param(STATUS.format(mark="×", state="failed (Result: exit-code)"), False, id="failed"),
        pytest.param("$ systemctl is-active nvidia-fabricmanager\ninactive\n", False, id="asked"),
    ],
)  # fmt: skip
def test_whether_it_runs(text: str, running: bool) -> None:
    assert value(stated(text), "fabric_manager/running") is running


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(STATUS.format(mark="●", state="activating (start)"), id="it is being started"),
        pytest.param("Unit nvidia-persistenced.service could not be found.\n", id="another unit"),
        pytest.param("systemctl start nvidia-fabricmanager.service\n", id="advice"),
    ],
)
def test_what_says_nothing_of_it(text: str) -> None:
    found = environment_of(text)
    assert found is None or "fabric_manager" not in found.facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(listed("NVIDIA H200", 8) + ABSENT, {"fabric-manager-not-running"}, id="an HGX"),
        pytest.param(listed("NVIDIA L40S", 8) + ABSENT, set(), id="cards need none"),
        pytest.param(listed("Tesla V100-SXM2-32GB", 8) + ABSENT, set(), id="GPUs joined directly"),
        pytest.param(listed("NVIDIA H200", 4) + ABSENT, set(), id="part of a board"),
        pytest.param(
            listed("NVIDIA H200", 8) + VERSION.format("570.10.04"), set(), id="of the driver's version"
        ),
        pytest.param(
            listed("NVIDIA H200", 8) + VERSION.format("550.10.04") + STATUS.format(mark="×", state="failed"),
            {"fabric-manager-version-mismatch"},
            id="of another version, which is why it failed",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong(text: str, expected: set[str]) -> None:
    report = judge(stated(text), UNITS, REGISTRY)
    bad = {one.condition for one in report.findings if one.status in (Status.FAIL, Status.WARN)}
    assert bad == expected
