"""What people type above Python, and what scripts print after texts of their own."""

from __future__ import annotations

import pytest

from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.paste.environment import environment_of
from tests.paste.test_judged import REGISTRY

SMI = "| NVIDIA-SMI {v}       Driver Version: {v}       CUDA Version: {cuda}     |\n"
SCRIPT = "```\nimport torch\nprint('usable:', torch.cuda.is_available())\n```\n"


def named(text: str) -> dict[str, Status]:
    snapshot = environment_of(text)
    if snapshot is None:
        return {}
    found = judge(snapshot, list(REGISTRY), REGISTRY).findings
    return {f.condition: f.status for f in found if f.status in (Status.FAIL, Status.WARN)}


CONDA = "I installed torch with:\n```\nconda install pytorch torchvision cudatoolkit={}\n```\n"


def test_the_cuda_that_conda_installed() -> None:
    old = SCRIPT + "```\n" + SMI.format(v="418.67", cuda="10.1") + "usable: False\n```\n"
    assert named(CONDA.format("10.2") + old)["driver-too-old"] is Status.FAIL
    assert "driver-too-old" not in named(CONDA.format("10.1") + old)
    typed = "$ mamba install pytorch==1.12.1 pytorch-cuda=11.7 -c pytorch\n$ python\n"
    snapshot = environment_of(typed + ">>> import torch\n>>> torch.cuda.is_available()\nFalse\n")
    assert snapshot is not None
    assert snapshot.facts["torch_build"]["version"] == "1.12.1"
    assert snapshot.facts["torch_build"]["cuda"] == "11.7"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "You could use:\n```\nconda install pytorch cudatoolkit=10.2\n```\n", id="advice"
        ),
        pytest.param(
            "I installed it with:\n```\nconda install pytorch cpuonly\n```\n", id="no CUDA"
        ),
        pytest.param(CONDA.format("10.2") + CONDA.format("11.3"), id="two of them"),
        pytest.param(
            "I ran:\n```\nconda install magma-cuda102 cudatoolkit=10.2\n```\n", id="no torch"
        ),
    ],
)
def test_an_installation_that_says_nothing(text: str) -> None:
    snapshot = environment_of(text + SCRIPT + "usable: True\n")
    assert snapshot is None or "cuda" not in snapshot.facts.get("torch_build", {})


@pytest.mark.parametrize(
    ("script", "printed", "expected"),
    [
        ("print('usable:', torch.cuda.is_available())", "usable: False", False),
        ('print("usable:", torch.cuda.is_available())', "usable: True", True),
        ('print(f"usable {torch.cuda.is_available()}")', "usable True", True),
        ("print('usable:', torch.cuda.is_available())", "usable: maybe", None),
        ("print('usable:', torch.cuda.is_available())", "usable: True\nusable: False", None),
        ("print('usable:', model.is_available())", "usable: False", None),
    ],
)
def test_a_script_prints_after_a_text(script: str, printed: str, expected: bool | None) -> None:
    snapshot = environment_of(f"```\n{script}\n```\nprints\n```\n{printed}\n```\n")
    live = snapshot.facts.get("torch_live", {}) if snapshot else {}
    assert live.get("cuda_ok") is expected


BELOW = "$ python\n>>> import torch\n>>> torch.cuda.is_available()\nFalse\n"
BOTH = "$ export ROCR_VISIBLE_DEVICES=2\n$ export HIP_VISIBLE_DEVICES=2\n"


def test_variables_typed_above_python() -> None:
    assert named(BOTH + BELOW)["visible-devices-invalid"] is Status.FAIL
    told = "### Steps to reproduce\n\nTake two GPUs and try\n\n```\n" + BOTH + BELOW + "```\n"
    assert named(told)["visible-devices-invalid"] is Status.FAIL


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("You can try\n\n```\n" + BOTH + BELOW + "```\n", id="advice"),
        pytest.param(BOTH.replace("$ ", "") + BELOW, id="lines that nobody typed"),
        pytest.param(
            BOTH + "$ rocminfo\nROCk module is loaded\n" + BELOW, id="above another program"
        ),
        pytest.param(BOTH + "$ python\n", id="nothing below"),
    ],
)
def test_variables_that_may_not_be_in_effect(text: str) -> None:
    assert "visible-devices-invalid" not in named(text)


LIST = "$ conda list | grep torch\n{}pytorch    1.13.1    py3.9_cpu_0    pytorch\n"


def test_conda_has_another_build_beside_that_for_the_cpu() -> None:
    mutex = "pytorch-mutex             1.0                         cpu    pytorch\n"
    assert named(LIST.format(mutex))["cpu-only-torch"] is Status.WARN
    # so are all builds of conda-forge for macOS
    assert "cpu-only-torch" not in named(LIST.format(""))
