"""What `collect_env_details.py` of Lightning prints."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from tests.paste import texts
from tests.paste.reading import stated, value

REGISTRY = packs.load(builtin_only=True)

REPORT = texts.LIGHTNING
#: Before 1.6; torch is one of the packages.
OLD = """\
* CUDA:
    - GPU:
        - Tesla V100-SXM2-16GB
    - available:         True
    - version:           10.2
* Packages:
    - numpy:             1.19.2
    - pyTorch_debug:     False
    - pyTorch_version:   1.8.1
    - pytorch-lightning: 1.3.8
    - tqdm:              4.59.0
* System:
    - OS:                Linux
    - python:            3.7.10
"""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("torch_build/version", "2.2.2"),
        ("torch_build/cuda", "12.1"),
        ("torch_live/cuda_ok", True),
        ("gpus/gpus/1/name", "NVIDIA A10G"),
        ("patient/version", "3.10.13"),
        ("os_info/system", "Linux"),
        ("packages/packages/numpy/version", "1.26.4"),
        ("deep_speed_install/version", "0.14.0"),
    ],
)
def test_it_is_read(place: str, expected: object) -> None:
    assert value(stated(REPORT), place) == expected


def test_the_old_form_is_read() -> None:
    found = stated(OLD)
    assert found.origin == "a paste of collect_env of Lightning"
    assert value(found, "torch_build/version") == "1.8.1"
    assert value(found, "torch_build/cuda") == "10.2"
    assert "pyTorch_debug" not in str(found.facts["packages"])


@pytest.mark.parametrize("text", [REPORT, OLD], ids=["2.2", "1.3"])
def test_a_sound_environment_gets_no_finding(text: str) -> None:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    assert [one for one in report.findings if one.status.value in ("warn", "fail")] == []


def test_a_gpu_that_torch_does_not_use_is_a_finding() -> None:
    text = REPORT.replace("available:         True", "available:         False")
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    found = {one.condition for one in report.findings if one.status.value == "fail"}
    assert found == {"torch-cuda-init-failed"}


def test_without_gpus_none_is_invented() -> None:
    text = REPORT.replace(
        "\t- GPU:\n\t\t- NVIDIA A10G\n\t\t- NVIDIA A10G\n", "\t- GPU:               None\n"
    )
    assert "gpus" not in stated(text.replace("True", "False").replace("12.1", "None")).facts


def test_a_list_of_another_kind_is_not_read() -> None:
    text = "* CUDA:\n  - we use version: 12.1 here\n* Packages:\n  - torch: 2.2.2\n"
    assert environment_of(text) is None or "gpus" not in stated(text).facts
