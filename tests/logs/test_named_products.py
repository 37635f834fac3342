"""Errors that name a product, a device or a path, and what they are evidence of."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            "ValueError: `.to` is not supported for `4-bit` or `8-bit` bitsandbytes models.",
            id="a rule of transformers about quantized models",
        ),
        pytest.param("ValueError: Triton kernels do not support dropout", id="a rule of a kernel"),
        pytest.param(
            "RuntimeError: Failed to set the allowed dynamic shared memory size to 163840",
            id="shared memory of a GPU",
        ),
        pytest.param(
            "RuntimeError: value cannot be converted to type at::Half without overflow",
            id="a constant that fp16 cannot hold",
        ),
    ],
)
def test_an_error_that_names_a_product_is_not_a_defect_of_its_installation(message: str) -> None:
    assert not read(f"{message}\n").causes


def test_a_model_by_its_path_is_not_looked_up_on_the_hub() -> None:
    error = "OSError: Can't load tokenizer for '{}'. If you were trying to load it from\n"
    assert said(error.format("/data/model")) == "path-missing"
    # a wrong name, a folder of that name and a hub that does not answer all end so
    assert not read(error.format("bert-base-chinese")).causes
