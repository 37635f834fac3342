"""What the error index and the patterns say where both know a message."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Knowledge, Source, diagnose, prepared, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(text: str, known: Knowledge = KNOWN) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], known)


def test_a_check_of_native_code_is_found_by_the_place_that_it_prints() -> None:
    file = "/x/site-packages/deepspeed/ops/csrc/aio/common/deepspeed_aio_common.cpp"
    line = f"python3: {file}:288: int regular_read(const char*, int): Assertion `fd != -1' failed."
    found = read(f"{line}\n")
    assert found.explained is not None
    assert "asynchronous I/O" in found.explained.text
    assert found.raised_by is not None
    assert (found.raised_by.line, found.raised_by.function) == (288, "regular_read")
    unknown = read(line.replace("deepspeed/ops/csrc/aio/common/deepspeed_aio", "mine/io") + "\n")
    assert [cause.condition for cause in unknown.causes] == ["native-crash"]


@pytest.mark.parametrize("known", [KNOWN, prepared.knowledge()], ids=["modules", "prepared"])
def test_a_pattern_of_other_products_words_gives_way_to_the_index(known: Knowledge) -> None:
    line = "ValueError: atomic_max does not support bf16"
    found = read(
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        '    main()\n  File "/x/site-packages/triton/language/semantic.py", line 7, in '
        f"atom_red_typechecking_impl\n    raise\n{line}\n",
        known,
    )
    assert found.causes == ()
    assert found.explained is not None
    assert found.explained.product == "triton"


@pytest.mark.parametrize("known", [KNOWN, prepared.knowledge()], ids=["modules", "prepared"])
def test_a_pattern_for_many_messages_leaves_the_words_to_the_index(known: Knowledge) -> None:
    """Both name the same condition; the pattern only says that something is not supported."""
    (cause,) = read(
        "ValueError: Muon optimizer is currently incompatible with DeepSpeed\n", known
    ).causes
    assert cause.condition == "ds-config-unsupported-combination"
    assert cause.message == "axolotl does not use Muon with DeepSpeed"
    (other,) = read("ValueError: This sampler is incompatible with DeepSpeed\n", known).causes
    assert other.message == "DeepSpeed does not support something that the error names"


def test_a_healthy_run_that_shows_such_messages_has_no_finding() -> None:
    text = (
        "WARNING: Could not load bitsandbytes native library: libcuda.so.1\n"
        "UserWarning: FlashAttention only supports Ampere GPUs or newer, using sdpa\n"
        "Flash Attention 2 only supports torch.float16 and torch.bfloat16 dtypes\n"
    )
    steps = "".join(f"{{'loss': {9 / n:.3f}, 'step': {n}}}\n" for n in range(1, 60))
    found = read(text + steps + "Training completed.\n")
    assert found.causes == ()
    assert found.explained is None


@pytest.mark.parametrize(
    ("build", "condition"),
    [
        pytest.param("2.8.0+rocm6.4", "rocm-toolkit-missing", id="rocm"),
        pytest.param("2.8.0+cu126", "cuda-toolkit-missing", id="cuda"),
    ],
)
def test_words_elsewhere_in_the_log_say_which_toolkit_is_missing(
    build: str, condition: str
) -> None:
    """The index knows the message, but not for what torch is built."""
    builder = "/e/lib/python3.12/site-packages/deepspeed/ops/op_builder/builder.py"
    text = (
        f"torch {build}\nTraceback (most recent call last):\n"
        '  File "/home/me/train.py", line 3, in <module>\n    import deepspeed\n'
        f'  File "{builder}", line 51, in installed_cuda_version\n'
        "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to "
        "compile CUDA op(s)\n"
    )
    assert [cause.condition for cause in read(text).causes] == [condition]


def test_the_sentence_of_the_index_replaces_that_of_a_general_pattern() -> None:
    found = read(
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        '    loader = prepare()\n  File "/x/site-packages/accelerate/data_loader.py", line 428, in '
        "__init__\n    raise ImportError(\n"
        "ImportError: StatefulDataLoader is not available. Please install torchdata version 0.8.0"
        " or higher to use it.\n"
    )
    (cause,) = found.causes
    assert cause.condition == "dependency-version-conflict"
    assert "torchdata 0.8" in cause.message


@pytest.mark.parametrize("devices", ["CUDA or NPU devices", "CUDA or MLU devices or NPU devices"])
def test_fp16_without_a_gpu_may_be_meant(devices: str) -> None:
    """A run on a CPU or on MPS ends with it too, and there no GPU is missing."""
    found = read(
        'Traceback (most recent call last):\n  File "/x/site-packages/transformers/training_args.py"'
        ", line 1612, in __post_init__\n    raise ValueError(\n"
        "ValueError: FP16 Mixed precision training with AMP or APEX (`--fp16`) and FP16 half"
        f" precision evaluation (`--fp16_full_eval`) can only be used on {devices} or certain XPU"
        " devices (with IPEX).\n"
    )
    (cause, *_) = found.causes
    assert cause.condition == "no-gpu-visible"
    assert "set `fp16` and `fp16_full_eval` to false" in cause.hint


def test_a_sentence_without_an_answer_gives_way_to_the_others_of_its_function() -> None:
    """`load_sharded_checkpoint` puts its message together from three."""
    trace = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n    go()\n'
        '  File "/x/site-packages/{0}", line 7, in {1}\n    raise\n'
        "RuntimeError: Error(s) in loading state_dict for LlamaForCausalLM\n"
        'Missing key(s): "lm_head.weight".\n'
    )
    place = ("transformers/trainer_utils.py", "load_sharded_checkpoint")
    found = diagnose([Source(name="log", data=trace.format(*place).encode())], KNOWN)
    assert [cause.condition for cause in found.causes] == ["checkpoint-mismatch"]
    other = diagnose(
        [Source(name="log", data=trace.format(place[0], "nested_cpu").encode())], KNOWN
    )
    assert not other.causes
