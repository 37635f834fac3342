"""What torch's C++ code says of what a script passes: the script's own error, with an answer."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.error_lookup import REFUSAL
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))
SCRIPT = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 88, in <module>\n'
    "    main()\n"
)
SITE = "/opt/env/lib/python3.11/site-packages/"
LAYER = f'  File "{SITE}torch/nn/modules/linear.py", line 125, in forward\n    return F.linear()\n'
MODEL = f'  File "{SITE}transformers/models/llama/modeling_llama.py", line 90, in forward\n'
BACKWARD = f'  File "{SITE}torch/_tensor.py", line 626, in backward\n'
BACKWARD += f'  File "{SITE}torch/autograd/graph.py", line 823, in _engine_run_backward\n'


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        pytest.param(
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x768 and 1024x512)",
            "layer's input size", id="shapes of a product",
        ),
        pytest.param("RuntimeError: expected scalar type Half but found Float", "one data type",
                     id="data types of a product"),
        pytest.param(
            "RuntimeError: Expected all tensors to be on the same device, but found at least two "
            "devices, cuda:0 and cpu! (when checking argument for argument mat1 in method "
            "wrapper_CUDA_addmm)", "to one device", id="two devices",
        ),
        pytest.param("IndexError: index out of range in self", "resize_token_embeddings",
                     id="a token beyond the embedding, on a CPU"),
        pytest.param("IndexError: Target 5 is out of bounds.", "Keep labels", id="a label"),
        pytest.param(
            "RuntimeError: value cannot be converted to type at::Half without overflow",
            "torch.finfo", id="a mask value beyond fp16",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("frames", [LAYER, ""], ids=["in a layer of torch", "in the script"])
def test_the_scripts_own_error_has_an_answer(message: str, advice: str, frames: str) -> None:
    found = read(f"{SCRIPT}{frames}{message}\n")
    assert found.outcome.value == "user-code"
    assert found.explained is not None
    assert (found.explained.kind, found.explained.product) == (REFUSAL, "torch")
    assert advice in found.explained.text


@pytest.mark.parametrize(
    ("frames", "message", "advice"),
    [
        pytest.param(
            BACKWARD, "element 0 of tensors does not require grad and does not have a grad_fn",
            "enable_input_require_grads", id="in the backward pass",
        ),
        pytest.param(MODEL, "mat1 and mat2 must have the same dtype, but got Float and BFloat16",
                     "one data type", id="in a model of another product"),
    ],
)  # fmt: skip
def test_frames_of_a_product_do_not_hide_what_native_code_says(
    frames: str, message: str, advice: str
) -> None:
    found = read(f"{SCRIPT}{frames}RuntimeError: {message}\n")
    assert found.explained is not None
    assert found.explained.product == "torch"
    assert advice in found.explained.text
    assert not found.causes


@pytest.mark.parametrize("frames", [LAYER, ""], ids=["in a layer of torch", "in the script"])
@pytest.mark.parametrize("error", ["RuntimeError", "torch.AcceleratorError"])
def test_an_assertion_of_a_kernel_that_the_log_does_not_show(frames: str, error: str) -> None:
    found = read(f"{SCRIPT}{frames}{error}: CUDA error: device-side assert triggered\n")
    [cause] = found.causes
    assert cause.condition == "cuda-kernel-failed"
    assert "LAUNCH_BLOCKING" in cause.hint


def test_the_assertion_that_a_kernel_prints_says_what_was_out_of_range() -> None:
    where = "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1239: indexSelectSmallIndex"
    lines = "".join(
        f"[rank2]: {where}: block: [3,0,0], thread: [{i},0,0] "
        "Assertion `srcIndex < srcSelectDimSize` failed.\n"
        for i in range(64, 68)
    )
    found = read(f"{lines}{SCRIPT}RuntimeError: CUDA error: device-side assert triggered\n")
    [cause] = found.causes
    assert cause.condition == "cuda-kernel-failed"
    assert "Keep token IDs below" in cause.hint


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: Target is out of bounds for the scheduler of this experiment",
        "IndexError: list index out of range",
        "RuntimeError: the devices of rank 3 are not the same as those of rank 0",
        "AssertionError: mat1 and mat2 shapes cannot be multiplied (4x768 and 1024x512)",
    ],
    ids=["more words than torch's", "Python's words", "other words", "another exception"],
)
def test_similar_words_of_a_script_have_no_answer(message: str) -> None:
    found = read(f"{SCRIPT}{message}\n")
    assert found.outcome.value == "user-code"
    assert found.explained is None
