"""Names that one release expects and another lacks, told without any frame."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

SIGNATURES = signatures_of(packs.load(builtin_only=True))
OWN = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n'
CUT = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 2, in <module>\n'
    '  File "/x/site-packages/deepspeed/{}", line 5, in <module>\n    from .linear import'
)


def said(text: str) -> str:
    found = diagnose([Source(name="log", data=text.encode())], SIGNATURES)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "AttributeError: module 'peft' has no attribute 'OddConfig'",
            "dependency-version-conflict",
        ),
        (
            "ModuleNotFoundError: No module named 'swift.odd.part'",
            "dependency-version-conflict",
        ),
        (
            "AttributeError: module 'deepspeed' has no attribute 'odd_name'",
            "deepspeed-missing",
        ),
        (
            "AttributeError: partially initialized module 'deepspeed.ops' has no attribute 'odd'",
            "deepspeed-torch-incompatible",
        ),
        (
            "AttributeError: module 'transformers' has no attribute 'is_deepspeed_odd'",
            "transformers-deepspeed-incompatible",
        ),
        (
            "AttributeError: module 'bitsandbytes.nn' has no attribute 'OddLinear'",
            "bitsandbytes-cuda-setup",
        ),
        (
            "x.InductorError: AttributeError: type object 'CompiledKernel' has no attribute 'odd'",
            "triton-unusable",
        ),
        (
            "TypeError: __init__() got an unexpected keyword argument 'even_batches'",
            "transformers-deepspeed-incompatible",
        ),
        (
            "TypeError: forward() got an unexpected keyword argument 'cache_position'",
            "dependency-version-conflict",
        ),
        (
            "AttributeError: 'MistralModel' object has no attribute '_odd_mask'",
            "dependency-version-conflict",
        ),
        ("ImportError: cannot import name 'log'", "deepspeed-torch-incompatible"),
        # nobody's, or the script's own
        ("AttributeError: 'MyNet' object has no attribute 'head'", "user-code"),
        ("AttributeError: module 'helpers' has no attribute 'read'", "user-code"),
        ("TypeError: forward() got an unexpected keyword argument 'masks'", "user-code"),
        (OWN + "AttributeError: 'MistralModel' object has no attribute 'my_head'", "user-code"),
        ("AttributeError: partially initialized module 'torch' has no attribute 'nn'", "user-code"),
        (OWN + "KeyError: 'peft'", "user-code"),
    ],
)
def test_whose_name_is_missing(text: str, wanted: str) -> None:
    assert said(text) == wanted


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("runtime/zero/partition_parameters.py", "deepspeed-torch-incompatible"),
        ("ops/transformer/inference/triton/mlp.py", "triton-unusable"),
    ],
)
def test_a_log_that_ends_in_an_import(file: str, wanted: str) -> None:
    assert said(CUT.format(file)) == wanted


def test_an_import_of_the_script_that_is_cut_off_tells_nothing() -> None:
    text = CUT.format("x.py").replace("/x/site-packages/deepspeed/", "/home/me/")
    assert said(text) not in {"deepspeed-torch-incompatible", "triton-unusable"}


def test_an_import_of_one_product_by_another_that_is_cut_off() -> None:
    text = CUT.format("x.py").replace("/deepspeed/", "/transformers/")
    text += '  File "/x/site-packages/peft/auto.py", line 3, in <module>\n    from .odd import y\n'
    assert said(text) == "dependency-version-conflict"
