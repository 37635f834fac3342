"""Messages that are not about what a condition's title says: another answer, or none."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.error_lookup import REFUSAL
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))
OWN = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 30, in main\n'
    "    loss = run(batch)\n"
)
FRAME = 'Traceback (most recent call last):\n  File "/x/site-packages/{}", line 9, in {}\n    f()\n'
ABSENT = (
    "OSError: Can't load tokenizer for 'my-model'. If you were trying to load it from "
    "'https://huggingface.co/models', make sure you don't have a local directory with the same "
    "name. Otherwise, make sure 'my-model' is the correct path to a directory containing all "
    "relevant files for a LlamaTokenizerFast tokenizer.\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ABSENT, id="a tokenizer that is neither here nor on the hub"),
        pytest.param(
            "OSError: Can't load the configuration of 'my-model'. If you were trying to load it "
            "from 'https://huggingface.co/models'\n",
            id="a configuration that cannot be read",
        ),
        pytest.param(
            "ValueError: Couldn't instantiate the backend tokenizer from one of: \n",
            id="a tokenizer in no form that can be read",
        ),
        pytest.param("RuntimeError: expected input to be on cuda\n", id="a tensor on the CPU"),
        pytest.param("TypeError: issubclass() arg 1 must be a class\n", id="a class of the script"),
        pytest.param(
            "ValueError: Invalid pattern: '**' can only be an entire path component\n",
            id="a pattern of the script",
        ),
        pytest.param("AttributeError: 'Mode' object has no attribute 'LINEAR'\n", id="own enum"),
    ],
)
def test_a_message_that_has_several_causes_names_none_of_them(error: str) -> None:
    assert not [one.condition for one in read(OWN + error).causes if one.condition != "user-code"]


@pytest.mark.parametrize(
    ("file", "function", "error", "answer"),
    [
        pytest.param(
            "transformers/tokenization_utils_base.py",
            "from_pretrained",
            ABSENT,
            "Check the name",
            id="a tokenizer that is neither here nor on the hub",
        ),
        pytest.param(
            "deepspeed/ops/adam/multi_tensor_apply.py",
            "__call__",
            "RuntimeError: expected input to be on cuda\n",
            "Create the fused optimizer after",
            id="the fused optimizer on the CPU",
        ),
        pytest.param(
            "accelerate/state.py",
            "__getattr__",
            "AttributeError: 'AcceleratorState' object has no attribute 'foo_bar'\n",
            "Use an attribute that `AcceleratorState` has",
            id="an attribute that no release of accelerate has",
        ),
        pytest.param(
            "deepspeed/launcher/multinode_runner.py",
            "get_cmd",
            "AssertionError: slurm backend does not support remapping visible devices\n",
            "Leave out `--detect_nvlink_pairs`",
            id="an option of the launcher",
        ),
    ],
)
def test_what_has_several_causes_is_answered_by_its_product(
    file: str, function: str, error: str, answer: str
) -> None:
    found = read(FRAME.format(file, function) + error)
    assert found.causes == ()
    assert found.explained is not None
    assert found.explained.kind == REFUSAL
    assert found.explained.text.startswith(answer)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param("AssertionError: num_elems 9 > buffer 7", "swaps it to NVMe", id="buffer"),
        pytest.param(
            "AssertionError: attempting to reduce an unsupported grad type: torch.float64",
            "dtype",
            id="gradients in fp64",
        ),
        pytest.param(
            "RuntimeError: tracing error at step 4: ",
            "forward pass took a different path",
            id="trace",
        ),
        pytest.param(
            "AssertionError: rank 0 - Invalid to reduce Param 1 with None gradient",
            "has no gradient",
            id="no gradient",
        ),
        pytest.param(
            "RuntimeError: expected there to be only one unique element in <generator object f>",
            "different dtypes",
            id="mixed dtypes",
        ),
        pytest.param(
            "ValueError: You can't train a model that has been loaded with `device_map='auto'` in any",
            "loaded for one process",
            id="device map",
        ),
        pytest.param(
            "RuntimeError: Direct calls to tensor.backward() are not supported in this configuration",
            "calls `backward()`",
            id="backward of a tensor",
        ),
    ],
)
def test_what_is_no_pair_of_settings_is_not_called_one(error: str, words: str) -> None:
    assert words in read(OWN + error + "\n").causes[0].message


@pytest.mark.parametrize(
    ("text", "condition", "words"),
    [
        pytest.param(
            "reading ds_config.json\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1\n",
            "ds-config-unreadable",
            "cannot be read",
            id="JSON that cannot be parsed",
        ),
        pytest.param(
            "    state = torch.load(path)['optimizer_states']\nKeyError: 'optimizer_states'\n",
            "checkpoint-mismatch",
            "no entry `optimizer_states`",
            id="a file without the entry",
        ),
        pytest.param(
            "ValueError: Invalid communication_data_type. Supported data types: ['fp16']\n",
            "ds-config-invalid-key",
            "a value that DeepSpeed does not know",
            id="a value, not a key",
        ),
        pytest.param(
            "TypeError: compute_loss() got an unexpected keyword argument 'num_items_in_batch'\n",
            "dependency-version-conflict",
            "`num_items_in_batch`",
            id="an overridden method",
        ),
    ],
)
def test_the_answer_is_about_what_the_message_says(text: str, condition: str, words: str) -> None:
    first = read(OWN + text).causes[0]
    assert first.condition == condition
    assert words in first.message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(
            "zipfile.BadZipFile: File is not a zip file",
            "A zip archive is truncated, or is not a zip archive",
            id="an archive of data",
        ),
        pytest.param(
            "RuntimeError: Internal: could not parse ModelProto from m/tokenizer.model",
            "sentencepiece cannot parse the tokenizer's model file",
            id="a tokenizer",
        ),
        pytest.param(
            "OSError: It looks like the config file at 'm/config.json' is not a valid JSON file.",
            "A configuration file of the model is not valid JSON",
            id="a configuration",
        ),
        pytest.param(
            "tarfile.ReadError: unexpected end of data", "A tar archive is cut off", id="tar"
        ),
        pytest.param(
            "gzip.BadGzipFile: Not a gzipped file (b've')",
            "A file that should be compressed with gzip is not",
            id="gzip",
        ),
        pytest.param(
            "_pickle.UnpicklingError: invalid load key, '<'.",
            "A file that should be a pickle is something else: a Git LFS pointer, a web page, or "
            "another format",
            id="a web page for a pickle",
        ),
        pytest.param(
            "pydantic.errors.PydanticUserError: A non-annotated attribute was detected: `x = 1`",
            "pydantic 2 rejects a class that was written for another pydantic",
            id="a class of a model",
        ),
    ],
)
def test_a_message_about_another_file_does_not_speak_of_weights(error: str, message: str) -> None:
    assert read(FRAME.format("a/b.py", "f") + error + "\n").causes[0].message == message


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            "RuntimeError: PytorchStreamReader failed locating file constants.pkl: file not found",
            id="a checkpoint that is loaded as a TorchScript archive",
        ),
        pytest.param(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            "  Input should be a valid integer [type=int_type, input_value='x', input_type=str]",
            id="a pydantic model of another library",
        ),
        pytest.param("ValueError: the checksum does not depend on the seed", id="a checksum"),
    ],
)
def test_a_message_of_another_kind_is_no_corrupt_file_and_no_wrong_setting(error: str) -> None:
    found = {one.condition for one in read(FRAME.format("a/b.py", "f") + error + "\n").causes}
    assert not found & {"weights-file-corrupt", "ds-config-wrong-type", "ds-config-invalid-key"}


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        pytest.param("distributed_type", False, id="no release differs in it"),
        pytest.param("deepspeed_plugins", True, id="a name of a newer release"),
        pytest.param("foo_bar", False, id="a name of no release"),
    ],
)
def test_only_a_name_that_releases_differ_in_is_a_pair_of_releases(
    name: str, *, is_told: bool
) -> None:
    error = f"AttributeError: 'AcceleratorState' object has no attribute '{name}'\n"
    named = [one.condition for one in read(FRAME.format("accelerate/state.py", "f") + error).causes]
    assert named == (["transformers-deepspeed-incompatible"] if is_told else [])


def test_a_sentence_of_flash_attn_is_not_answered_as_deepspeeds() -> None:
    found = read("RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n")
    assert [one.condition for one in found.causes] == ["flash-attn-needs-ampere"]
    assert found.explained is None
