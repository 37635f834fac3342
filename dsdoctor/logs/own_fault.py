"""Whether an exception is the fault of the script or its data, or of the environment."""

from __future__ import annotations

import re

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import ATTRIBUTES, is_echo
from dsdoctor.logs.errors import PYTHONS_WORDS, Error
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.importing import is_importing
from dsdoctor.logs.outside import OUTSIDE, OUTSIDE_TEXT, SERVICE
from dsdoctor.logs.own_advice import WHILE_IMPORTED
from dsdoctor.logs.own_files import closed_itself
from dsdoctor.logs.plain_errors import DEVICE_ASSERT
from dsdoctor.logs.products import (
    ENTRY_POINT,
    STACK,
    caller_of,
    package_of,
    passer_of,
    raiser_of,
)
from dsdoctor.logs.suggestions import without_suggestion

#: What the hub and Python raise for a wrong name in the script, or for one without a main guard.
OWN_MISTAKE = lazy(
    r"is not a local folder and is not a valid model identifier|EntryNotFoundError"
    r"|does not appear to have a file named|Unable to load vocabulary"
    r"|Repo id must (?:be in the form|use alphanumeric)|Incorrect path_or_model_id"
    rf"|{WHILE_IMPORTED}",
)
#: Exceptions that products raise both to reject a request and to report an internal failure; a
#: bare `Exception` without frames may be anybody's.
REFUSALS = frozenset(
    {"AssertionError", "Exception", "NotImplementedError", "RuntimeError", "ValueError"}
)
#: What torch (1.0-2.13 aten/src/ATen/native, torch/csrc/autograd, nn/functional.py) raises for
#: tensors and gradients of the script that do not fit each other.
OWN_TENSORS = lazy(
    r"Error\(s\) in loading state_dict|shapes cannot be multiplied|[Ss]izes? of tensor"
    r"|expected scalar type|[Ee]xpanded size of the tensor|Found dtype \w+ but expected"
    r"|Expected all tensors to be on the same device"
    r"|(?:must|to) have (?:the )?same (?:dtype|number of dimensions)|\) should be the same$"
    r"|to have \d+ channels, but got \d|Expected more than 1 value per channel"
    r"|is invalid for input of size \d|view size is not compatible with|to match target batch_size"
    r"|stack expects each tensor to be equal size|expected sequence of length \d+ at dim \d"
    r"|Trying to resize storage that is not resizable"
    r"|Boolean value of Tensor with more than one value|only one element tensors can be converted"
    r"|does not require grad\b|through the graph a second time|modified by an inplace operation"
    r"|implicitly created only for scalar outputs|leaf Variable that requires grad"
)
#: What torch (1.5-2.15 aten/src/ATen/TensorUtils.cpp checkScalarTypes, native/Convolution.cpp)
#: says of tensors of another type than its function takes, whoever passed them on; and of gradients
#: in bf16 that a scaler of the loss for fp16 gets (1.10-2.15 native/cuda/AmpKernels.cu).
OWN_TYPES = lazy(
    r"^Expected tensor for argument #\d{1,2} '\w{1,40}' to have (?:scalar type |the same type|"
    r"one of the following scalar types)|^Input type \(.{1,60}\) and (?:bias|weight) type"
    r" \(.{1,60}\) should be the same|^\"_amp_\w{1,80}\" not implemented for 'BFloat16'"
)
#: The user's data: an index out of range, reported as an assertion on a GPU and as an exception on
#: a CPU (torch 1.0-2.13 aten/src/ATen/native: Embedding, LossNLL, TensorAdvancedIndexing).
DATA_ASSERT = lazy(
    r"device-side assert|(?:\.cuh?:\d{1,5}: |\bthread: \[).{0,300}Assertion `[^`]{1,200}` failed"
    r"|IndexError: index out of range in self$"
    r"|IndexError: Target -?\d+ is out of bounds|: Tried to access index \d+ out of table with"
    r"|index -?\d+ is out of bounds for dimension \d+ with size \d+",
)
#: What torch.compile tried on shapes alone fails without it too (torch 2.1-2.15 _dynamo/utils.py).
FAKE_TENSORS = ("with fake tensors: ", "when making fake tensor call")
#: What TorchScript does not accept in the script's code (torch 1.2-2.15 jit/frontend.py).
OF_TORCHSCRIPT = frozenset({"UnsupportedNodeError"})
#: CPython's words for a call of a model with wrong arguments; below, frames that only pass them on.
WRONG_CALL = lazy(r"\bforward\(\) (?:got (?:an unexpected|multiple)|missing \d|takes \d)")
#: Where a function of the script's stands that only it can name, so no other process can have it
#: (CPython 3.3-3.14 Modules/_pickle.c, Lib/pickle.py), and a function instead of a value.
LOCAL_OBJECT = lazy(
    r"^(?:AttributeError: Can't (?:pickle|get)|PicklingError: Can't pickle) local object "
    r"|^TypeError: .{0,200}, not (?:builtin_function_or_method|function|method)$"
)
#: The same of any function.
WRONG_ARGUMENTS = lazy(
    r"^[\w.<>]{1,200}\(\) (?:got (?:an unexpected|multiple)|missing \d|takes \d)"
)
#: A function that another one has defined, as CPython (3.10-3.15) names it when a call fails.
INNER_FUNCTION = lazy(r"^(?P<outer>\w{1,80})\.<locals>\.")
PASSES_ARGUMENTS = lazy(
    r"/torch/nn/(?:modules/module\.py _call_impl|modules/module\.py _wrapped_call_impl"
    r"|modules/module\.py inner|parallel/\S+ \w+)$|/deepspeed/(?:runtime/engine\.py forward"
    r"|utils/nvtx\.py \w+)$|/accelerate/utils/operations\.py \w+$|/torch/amp/\S+ \w+$"
)
#: Packages that belong to a training environment; any other missing module is the script's.
PACKAGES = lazy(
    r"No module named '?(?:torch|deepspeed|transformers|accelerate|peft|trl|datasets|flash_attn"
    r"|apex|xformers|triton|bitsandbytes|numpy|scipy|sklearn|pandas|mpi4py|vllm|sentencepiece"
    r"|tokenizers|huggingface_hub|safetensors|diffusers|einops|wandb|tensorboard|packaging|ninja"
    r"|psutil|yaml|cv2|PIL|tqdm|mmcv|pkg_resources|distutils|setuptools|amp_C|fused_\w+|\w+_cuda)\b",
)
IMPORTED = lazy(r"cannot import name .{1,200} \((?P<path>[/~.\w][^()]{1,400}\.py)\)$")
#: Functions that look up a key or an attribute: their caller chose it.
LOOKUPS = frozenset({"__getitem__", "__missing__", "get_loc", "_check_valid_index_key", ATTRIBUTES})
#: Frames below which a trainer prepares rows of the script's data: `map` of datasets (2-5), and the
#: loader of torch (0.4-2.15).
APPLIES = lazy(
    r"/datasets/arrow_dataset\.py (?:apply_function|iter_outputs|apply_function_on_filt)"
    r"|/torch/utils/data/_utils/fetch\.py fetch$"
)
#: Where torch (1.0-2.15) makes a batch of samples that have other keys, types or sizes.
COLLATES = lazy(r"/torch/utils/data/_utils/collate\.py \S+$")
#: Exceptions that a library raises for a sample that is empty or shorter than it takes.
UNFIT_SAMPLE = frozenset({"IndexError", "ZeroDivisionError"})
#: Functions that call the script's callbacks: an object that does not support the call is its own.
CALLS_BACK = lazy(
    r"/transformers/trainer_callback\.py call_event$"
    r"|/(?:pytorch_lightning|lightning/pytorch)/trainer/call\.py _call_callback_hooks$"
)
#: Functions of products that look up what the script's data names (verl 0.1-0.7: a reward for
#: `data_source`).
NAMED_BY_DATA = lazy(r"/verl/utils/reward_score/__init__\.py _?default_compute_score$")
#: Functions that build what a configuration of the script names, with the arguments that it gives:
#: mmcv (1.0-1.7, 2.0) and mmengine (0.1-0.10) raise again whatever the class raised.
BUILDS = lazy(
    r"/mmcv/utils/registry\.py build_from_cfg$"
    r"|/mmengine/registry/build_functions\.py build_\w+_from_cfg$"
)
BUILT_WRONGLY = frozenset({"AssertionError", "KeyError", "TypeError", "ValueError"})
#: Exceptions about what a function was called with; openai's (1.0-2.41) about a wrong request.
OF_ARGUMENTS = lazy(
    r"^[\w.]{0,80}(?:Assertion|File\w{0,10}|Index|IO|Key|OS|Template|Type|Value)Error: "
    r"|^\S{1,80}: Error code: (?:400|422) - "
    # a function where a value is expected, as CPython names its types
    r"|^AttributeError: '(?:builtin_function_or_method|function|method|type)' object has no attr"
)
#: Libraries that only read data or a configuration, so what they reject is the script's, whoever
#: called them.
LIBRARIES_OF_DATA = frozenset(
    {"numpy", "pandas", "pyarrow", "json", "yaml", "PIL", "cv2", "sklearn", "scipy", "omegaconf"}
)
#: Exceptions of files that do not parse: pyarrow 0.15-22, pandas 1-3, PyYAML, Pillow, the standard
#: library.
UNREADABLE = frozenset(
    {
        "ArrowInvalid", "BadGzipFile", "BadZipFile", "EmptyDataError", "JSONDecodeError",
        "ParserError", "ScannerError", "UnicodeDecodeError", "UnidentifiedImageError",
    },
)  # fmt: skip
#: Functions of transformers (4.0-5.3) and datasets (1.2-5.2) that only prepare what the script
#: passes: what they reject is its texts, columns or examples, or a tokenizer not set up for them.
PREPARING = lazy(
    r"(?:^|/)transformers/(?:data/data_collator\.py (?!__)\w+|tokenization_utils_base\.py (?:"
    r"__call__|_call_one|_get_padding_truncation_strategies|_?pad|apply_chat_template|as_tensor"
    r"|convert_to_tensors|truncate_sequences))$|(?:^|/)datasets/arrow_writer\.py finalize$"
)
#: The modules of datasets (1.2-5.2) that read files of the user's.
READERS = "/datasets/packaged_modules/"


def is_user_code(error: Error) -> bool:
    """Whether an exception is the script's fault: its code raised it, or its data caused it."""
    text = without_suggestion(f"{error.type}: {error.message}")
    error = msgspec.structs.replace(error, message=text[len(error.type) + 2 :])
    if error.type == DEVICE_ASSERT:
        return _of_torch(error)
    if (
        error.type == "SystemExit"
        or DATA_ASSERT.search(text)
        or OWN_TYPES.search(error.message)
        or _misused(error)
        or _rejects_data(error)
        or _ends_in(error, NAMED_BY_DATA)
        or (error.type in BUILT_WRONGLY and _ends_in(error, BUILDS))
    ):
        return True
    if error.type == "FileNotFoundError" or OWN_MISTAKE.search(text):
        return _users(error) or OWN_MISTAKE.search(text) is not None or _lacks_data(error)
    if error.type in {"ModuleNotFoundError", "ImportError"}:
        is_own = bool(error.file) or (bool(error.frames) and _users(error))
        return (is_own and not PACKAGES.search(text) and error.type[0] == "M") or _own_import(error)
    if any(words in error.message for words in FAKE_TENSORS):
        return bool(error.file)
    if SERVICE.match(error.text) or _class_of_a_product(error):
        return False
    if _of_a_library(error):
        return _users(error)
    outside = error.type in OUTSIDE or OUTSIDE_TEXT.search(text) or is_echo(error)
    if outside or is_importing(error):
        return False
    looked_up = error.type in {"AttributeError", "IndexError", "KeyError"} and _looked_up(error)
    called_back = error.type in {"AttributeError", "TypeError"} and _ends_in(error, CALLS_BACK)
    return looked_up or called_back or _users(error)


def prepares_data(file: str, function: str) -> bool:
    """Whether a function of a product only prepares what the script passes to it."""
    return PREPARING.search(f"{file} {function}") is not None


def _of_torch(error: Error) -> bool:
    """Whether a kernel of torch, or of no known product, stopped: torch's stop for a wrong index.

    Those of other products also stop for a GPU or a size that they do not support.
    """
    return package_of(error.message.partition(":")[0].strip()) in {"", "torch"}


def _rejects_data(error: Error) -> bool:
    raiser = raiser_of(error.frames)
    return (
        raiser is not None
        and error.type in {"SchemaInferenceError", "TypeError", "ValueError"}
        and not PYTHONS_WORDS.search(error.message)
        and prepares_data(raiser.file, raiser.function)
    )


def is_about_data(error: Error) -> bool:
    """Whether an exception of the script's says what is wrong with its data, or not known of it."""
    raiser = passer_of(error.frames)
    in_a_file = raiser is not None and package_of(raiser.file) in LIBRARIES_OF_DATA
    return (
        error.type in UNREADABLE
        or _rejects_data(error)
        or (in_a_file and _in_a_reader(error))
        or _ends_in(error, NAMED_BY_DATA)
    )


def _lacks_data(error: Error) -> bool:
    """Whether a library that reads data did not find a file of it, whoever called the library."""
    raiser = raiser_of(error.frames)
    return raiser is not None and package_of(raiser.file) in LIBRARIES_OF_DATA


def _unread(error: Error) -> bool:
    return error.type in UNREADABLE and _in_a_reader(error)


def _in_a_reader(error: Error) -> bool:
    return any(READERS in frame.file for frame in error.frames)


def _class_of_a_product(error: Error) -> bool:
    """Whether nothing but the exception is shown, and a product of the stack defines its class."""
    package, dot, _ = error.text.partition(".")
    return bool(dot) and not error.traced and not error.frames and package in STACK


def _looked_up(error: Error) -> bool:
    """Whether the script looked up what an object of a library does not have."""
    frames = list(error.frames)
    while frames and frames[-1].function in LOOKUPS:
        frames.pop()
    asked = bool(frames) and len(frames) < len(error.frames)
    return asked and not package_of(frames[-1].file)


def _ends_in(error: Error, functions: re.Pattern[str]) -> bool:
    """Whether one of these functions raised an exception."""
    frames = error.frames
    return bool(frames) and functions.search(f"{frames[-1].file} {frames[-1].function}") is not None


def _misused(error: Error) -> bool:
    """Whether a library found a mistake in what the script gave it, whoever raised."""
    return (
        _unread(error)
        or error.type in OF_TORCHSCRIPT
        or closed_itself(error)
        or LOCAL_OBJECT.search(f"{error.type}: {error.message}") is not None
        or (error.type == "TypeError" and _called_wrongly(error))
        or (_ends_in(error, COLLATES) and _is_of_arguments(error))
        or (error.type == "KeyError" and _lacks_column(error))
        or (error.type in UNFIT_SAMPLE and _while_reading(error))
        or (error.text.startswith("triton.compiler.errors.") and _wrote_the_kernel(error))
    )


def _wrote_the_kernel(error: Error) -> bool:
    """Whether the script called the kernel that Triton could not compile."""
    callers = [frame for frame in error.frames if package_of(frame.file) != "triton"]
    return bool(callers) and not package_of(callers[-1].file)


def _lacks_column(error: Error) -> bool:
    """Whether a function that was applied to a row of the script's data did not find a column."""
    return any(APPLIES.search(f"{frame.file} {frame.function}") for frame in error.frames)


def _while_reading(error: Error) -> bool:
    """Whether the script's dataset called the library that raised, for a sample of a loader."""
    places = [n for n, f in enumerate(error.frames) if APPLIES.search(f"{f.file} {f.function}")]
    behind = error.frames[places[-1] + 1 :] if places else ()
    return any(not package_of(frame.file) for frame in behind)


def _called_wrongly(error: Error) -> bool:
    """Whether a model does not take what the script gave it, or its callback what it is given."""
    if inner := INNER_FUNCTION.match(error.message):
        own = [frame.function for frame in error.frames if not package_of(frame.file)]
        return inner["outer"] in own
    if _ends_in(error, APPLIES) and WRONG_ARGUMENTS.match(error.message):
        return True  # it is the function that is applied which does not take a row
    if not WRONG_CALL.search(error.message):
        return False
    frames = list(error.frames)
    while frames and PASSES_ARGUMENTS.search(f"{frames[-1].file} {frames[-1].function}"):
        frames.pop()
    return len(frames) < len(error.frames) and bool(frames) and not package_of(frames[-1].file)


def _of_a_library(error: Error) -> bool:
    """Whether it is an `OSError` that a library raised about its data, not the operating system."""
    raiser = passer_of(error.frames)
    return (
        error.type in {"OSError", "IOError"}
        and raiser is not None
        and package_of(raiser.file) not in STACK | {"", "python"}
        and "[Errno" not in error.message
    )


def _users(error: Error) -> bool:
    """Whether the user's code raised, or a library that only reads the user's data.

    Of an exception without a traceback only the type is known; products raise REFUSALS too.
    """
    # some services print the call after the exception
    raiser = passer_of(error.frames) or passer_of(frames_of([error.more]))
    if raiser is None:
        refused = error.type in REFUSALS and not OWN_TENSORS.search(error.message)
        return bool(error.file) or not (error.traced or refused)
    product = package_of(raiser.file)
    caller = caller_of(error.frames)
    called = any(
        file and not ENTRY_POINT.search(file)
        for file in (error.file, caller.file if caller is not None else "")
    )
    if product in LIBRARIES_OF_DATA | {""}:
        return True
    return product not in STACK and called and (product == "python" or _is_of_arguments(error))


def _is_of_arguments(error: Error) -> bool:
    """Whether an exception is about what a function was called with."""
    text = f"{error.type}: {error.message}"
    return bool(OF_ARGUMENTS.search(text) or OWN_TENSORS.search(text))


def _own_import(error: Error) -> bool:
    """Whether one file of the script imported a missing name, or a file beside it, wrongly."""
    own = error.file or (error.frames and not package_of(error.frames[-1].file))  # or a cell
    if error.message.startswith("attempted relative import "):
        return bool(own)
    found = IMPORTED.search(error.message)
    return bool(found and own and not package_of(found["path"]))
