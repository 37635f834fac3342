"""Versions in sentences: what is told of this machine, and what is told of others."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.paste.environment import environment_of
from tests.paste import texts
from tests.paste.reading import stated, value

REGISTRY = packs.load()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "I use torch 2.1.0+cu121 on Ubuntu 22.04, driver 470.57.02.\n", id="a sentence"
        ),
        pytest.param("- PyTorch: 2.1.0+cu121\n- Driver: 470.57.02\n", id="a list"),
        pytest.param(
            "pytorch version: 2.1.0+cu121 / NVIDIA driver version 470.57.02\n",
            id="one line with a slash",
        ),
        pytest.param(
            "torch==2.1.0+cu121\n\nNvidia Driver = 470.57.02 on all nodes\n",
            id="lines with equals signs",
        ),
    ],
)
def test_what_the_reporter_has_is_judged(text: str) -> None:
    snapshot = stated(text)
    assert value(snapshot, "torch_build/cuda") == "12.1"
    assert value(snapshot, "nvml/driver_version") == "470.57.02"
    assert "error" not in snapshot.facts["nvml"]
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    bad = [one.condition for one in report.findings if one.status in (Status.FAIL, Status.WARN)]
    assert bad == ["driver-too-old"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("driver 525.60 or newer\n", id="a minimum"),
        pytest.param("I upgraded the driver 470.57 yesterday\n", id="an upgrade"),
        pytest.param("with driver 535.104 it works\n", id="another machine"),
        pytest.param("does driver 470.57 support this?\n", id="a question"),
        pytest.param("driver 470.57 here\ndriver 535.10 there\n", id="two versions"),
        pytest.param("driver 550.x on the host\n", id="a branch"),
        pytest.param("driver version 10.2.3\n", id="of another product"),
        pytest.param("torch 2.1.0 on this box\n", id="a torch without its build"),
        pytest.param("- PyTorch: 2.9.0+cpu\n", id="a CPU build, and GPUs not known"),
        pytest.param("CUDA 12.1 on this box\n", id="a CUDA of a toolkit, a driver or a build"),
        pytest.param("pip install torch==2.1.0+cu121\n", id="a command"),
        pytest.param("the wheel is compiled with torch 2.1.0+cu121\n", id="of a wheel"),
    ],
)
def test_what_is_not_told_of_this_machine_is_not_known(text: str) -> None:
    assert environment_of(text) is None


def test_a_tool_is_believed_before_a_sentence() -> None:
    text = "My driver is 470.57.02\n\n" + texts.COLLECT_ENV
    assert value(stated(text), "nvml/driver_version") == "535.104.05"
