"""What people write of their system in an issue's template."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated, value

TEMPLATE = """\
**System info (please complete the following information):**
 - OS: Ubuntu 20.04
 - GPU count and types: 2x A100 80GB
 - Interconnects (if applicable): NVLink
 - Python version: 3.10
 - Any other relevant info about your setup: torch 2.1.0+cu118, deepspeed 0.12.3, CUDA 11.8
"""


def facts(text: str) -> dict[str, Any]:
    """The facts of a text; empty if it states none."""
    found = environment_of(text)
    return {} if found is None else found.facts


def test_the_template_of_deepspeed() -> None:
    found = stated(TEMPLATE)
    assert value(found, "os_info/distribution") == "ubuntu 20.04"
    assert value(found, "patient/version") == "3.10"
    assert value(found, "torch_build/cuda") == "11.8"
    assert value(found, "deep_speed_install/version") == "0.12.3"
    assert value(found, "gpus/count") == 2
    # an A100 with 80 GB may be of two products, which have this in common
    assert value(found, "gpus/gpus")[1] == {"index": 1, "cc_major": 8, "cc_minor": 0}
    assert found.sources["patient"]["version"].line == 5


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("torch: 2.1.0\ntransformers: 4.36.2\n", "packages/packages/transformers/version", "4.36.2"),
        ("* **PyTorch version**: `2.3.0`\n* Python 3.11.5\n", "patient/version", "3.11.5"),
        ("1. torch 2.3.0\n2. NVIDIA driver 470.57.02\n", "nvml/driver_version", "470.57.02"),
        ("GPU: 4 x RTX 3090\nPython: 3.9\n", "gpus/gpus/3/name", "NVIDIA GeForce RTX 3090"),
        ("- 8xV100-32GB\n- Python 3.9\n", "gpus/gpus/7/cc_major", 7),
        ("GPU type: T4 x 2\nPython: 3.9\n", "gpus/count", 2),
        ("I use torch 2.3.0, deepspeed 0.14.2 and peft 0.11.1\n", "packages/packages/peft/version", "0.11.1"),
        ("OS: Windows 11\nPython: 3.10\n", "os_info/system", "Windows"),
    ],
    ids=["colons", "marks", "numbered", "a GPU", "a count", "a count after", "a row", "Windows"],
)  # fmt: skip
def test_lists_of_versions(text: str, path: str, expected: object) -> None:
    assert value(stated(text), path) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" - OS: [e.g. Ubuntu 18.04]\n - Python version\n", id="not filled in"),
        pytest.param("The bug is in torch 2.3.0.\n", id="one version"),
        pytest.param("torch 2.3.0 works and transformers 4.36 does not\n", id="a sentence"),
        pytest.param("```\ntorch==2.1.0\ntransformers==4.36.2\n```\n", id="requirements"),
        pytest.param(
            "It works with:\n```\ntorch 2.1.0\ntransformers 4.36.2\n```\n", id="what works"
        ),
        pytest.param("Hi\n> torch 2.1.0\n> transformers 4.36.2\n", id="quoted"),
        pytest.param("torch 2.1.0\n\n\n\n\n\ntransformers 4.36.2\n", id="far apart"),
        pytest.param(
            "I read the docs, asked in the forum, compared, torch 2.3.0, peft 0.11.1, gave up\n",
            id="versions in a sentence",
        ),
        pytest.param("torch      2.1.0\nnumpy      1.26.4\n", id="rows of a table"),
        pytest.param("torch: 2.1.x\ntransformers: latest\n", id="no versions"),
        pytest.param("GPU: 8x some board\nOS: TempleOS\n", id="unknown products"),
    ],
)
def test_what_is_no_list_of_the_system(text: str) -> None:
    assert facts(text) == {}


def test_a_name_of_products_that_differ_is_none() -> None:
    found = facts("GPU: 2x RTX 6000\nPython: 3.9\n")  # Turing, Ada and Blackwell
    assert "gpus" not in found
    assert found["patient"]["version"] == "3.9"


def test_two_versions_of_one_product_are_none() -> None:
    assert "torch_build" not in facts("torch 2.1.0\ntorch 2.3.0\nPython 3.10\ntransformers 4.36\n")


def test_what_a_tool_prints_is_believed_first() -> None:
    text = 'torch 2.3.0\nPython 3.9\n\n$ python -c "import torch; print(torch.__version__)"\n2.1.0+cu118\n'
    found = stated(text)
    assert value(found, "torch_build/version") == "2.1.0+cu118"
    assert not found.contradictions
