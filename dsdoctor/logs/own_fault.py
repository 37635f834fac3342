"""Whether an exception is the script's own fault, or one of the environment."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.frames import Frame, frames_of
from dsdoctor.logs.products import STACK, caller_of, package_of, passer_of

#: Words of the hub and of Python for a wrong name in the script, not for the machine.
OWN_MISTAKE = lazy(
    r"is not a local folder and is not a valid model identifier|EntryNotFoundError"
    r"|does not appear to have a file named|Unable to load vocabulary"
    r"|Repo id must (?:be in the form|use alphanumeric)|Incorrect path_or_model_id",
)
#: Exceptions that are never the script's own: the machine, the network, the disk, an accelerator.
FOREIGN = frozenset(
    {
        "AcceleratorError", "BlockingIOError", "BrokenPipeError", "ChildFailedError",
        "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DistBackendError",
        "DistError", "DistNetworkError", "DistStoreError", "GatedRepoError", "HTTPError",
        "HfHubHTTPError", "MemoryError", "NotADirectoryError", "OSError", "PermissionError",
        "ProcessExitedException", "RendezvousConnectionError", "RendezvousError",
        "RendezvousTimeoutError", "RepositoryNotFoundError", "SubprocessError", "TimeoutError",
        "TimeoutExpired", "CalledProcessError", "KeyboardInterrupt", "OutOfMemoryError",
        "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "LocalEntryNotFoundError",
        "IOError", "SSLError", "InternalTorchDynamoError", "BackendCompilerFailed",
    },
)  # fmt: skip
#: Exceptions with which products refuse what they are asked for, and report what failed in them.
REFUSALS = frozenset({"AssertionError", "NotImplementedError", "RuntimeError", "ValueError"})
#: torch's words for tensors of the script that do not fit each other.
OWN_TENSORS = lazy(
    r"Error\(s\) in loading state_dict|shapes cannot be multiplied|[Ss]izes? of tensor"
    r"|expected scalar type"
)
FOREIGN_TEXT = lazy(
    r"CUDA(?:[ _]driver)? error|cuda runtime error|NCCL|nccl|cuDNN|CUDNN|CUBLAS|CUSOLVER|HIP error"
    r"|can't start new thread|Resource temporarily unavailable|driver|gloo/transport|HCCL|MPS "
    r"|\b40[134] (?:Client Error|Unauthorized|Forbidden)"
    # openai 1.0-2.41 _base_client.py, of a server that the script asks; 400, 422: a wrong question
    r"|^\S{0,80}: Error code: (?:40[1-9]|429|5\d\d) - "
    r"|Input/output error|INTERNAL ASSERT|(?i:\bout of memory\b)|unhandled (?:system|cuda) error",
)
#: The user's data: an index beyond a table, which a kernel of the GPU asserts and one of the CPU
#: says (torch 1.0-2.13 aten/src/ATen/native: Embedding, LossNLL, TensorAdvancedIndexing).
DATA_ASSERT = lazy(
    r"device-side assert|Assertion `[^`]{1,200}` failed|IndexError: index out of range in self$"
    r"|IndexError: Target -?\d+ is out of bounds"
    r"|index -?\d+ is out of bounds for dimension \d+ with size \d+",
)
#: A package that a training environment brings; a missing module of another name is the script's.
PACKAGES = lazy(
    r"No module named '?(?:torch|deepspeed|transformers|accelerate|peft|trl|datasets|flash_attn"
    r"|apex|xformers|triton|bitsandbytes|numpy|scipy|sklearn|pandas|mpi4py|vllm|sentencepiece"
    r"|tokenizers|huggingface_hub|safetensors|diffusers|einops|wandb|tensorboard|packaging|ninja"
    r"|psutil|yaml|cv2|PIL|tqdm|mmcv|pkg_resources|distutils|setuptools|amp_C|fused_\w+|\w+_cuda)\b",
)
IMPORTED = lazy(r"cannot import name .{1,200} \((?P<path>[/~.\w][^()]{1,400}\.py)\)$")
#: Functions that look a key up: what they do not find, their caller asked for.
LOOKUPS = frozenset({"__getitem__", "__missing__", "get_loc", "_check_valid_index_key"})
#: Functions that call the script's callbacks: an object that cannot be called so is its own.
CALLS_BACK = lazy(
    r"/transformers/trainer_callback\.py call_event$"
    r"|/(?:pytorch_lightning|lightning/pytorch)/trainer/call\.py _call_callback_hooks$"
)
#: Libraries that only read data, so that what they refuse is the script's, whoever called them.
LIBRARIES_OF_DATA = frozenset({"numpy", "pandas", "json", "yaml", "PIL", "cv2", "sklearn", "scipy"})


def is_user_code(error: Error) -> bool:
    """Whether an exception is the script's own: its last frame is the user's, or its data fail."""
    text = f"{error.type}: {error.message}"
    if error.type in {"SystemExit", "DeviceAssert"} or DATA_ASSERT.search(text):
        return True
    if error.type == "FileNotFoundError" or OWN_MISTAKE.search(text):
        return _users(error) or OWN_MISTAKE.search(text) is not None
    if error.type in {"ModuleNotFoundError", "ImportError"}:
        return (bool(error.file) and not PACKAGES.search(text) and error.type[0] == "M") or (
            _own_import(error)
        )
    if error.text.startswith("ray.exceptions."):  # of a worker that is gone
        return False
    if _of_a_library(error):
        return _users(error)
    if error.type in FOREIGN or FOREIGN_TEXT.search(text) or is_echo(error):
        return False
    if _while_importing(error):
        return False
    if error.type in {"KeyError", "IndexError"} and _looked_up(error):
        return True
    if error.type in {"AttributeError", "TypeError"} and _called_back(error):
        return True
    return _users(error)


def _while_importing(error: Error) -> bool:
    """An installed package fails while it is imported: it does not fit another, or this Python."""
    below: list[Frame] = []
    for frame in reversed(error.frames):
        if not package_of(frame.file):
            break
        below.append(frame)
    return any(
        frame.function == "<module>" and package_of(frame.file) != "python" for frame in below
    )


def _looked_up(error: Error) -> bool:
    """The script asks a container of a library for what is not in it."""
    frames = list(error.frames)
    while frames and frames[-1].function in LOOKUPS:
        frames.pop()
    asked = bool(frames) and len(frames) < len(error.frames)
    return asked and not package_of(frames[-1].file)


def _called_back(error: Error) -> bool:
    """A trainer calls what the script registered with it, and that is not of the kind it calls."""
    return (
        bool(error.frames)
        and CALLS_BACK.search(f"{error.frames[-1].file} {error.frames[-1].function}") is not None
    )


def _of_a_library(error: Error) -> bool:
    """An `OSError` that a library of the script raises of the data, not the system of a file."""
    raiser = passer_of(error.frames)
    return (
        error.type in {"OSError", "IOError"}
        and raiser is not None
        and package_of(raiser.file) not in STACK | {"", "python"}
        and "[Errno" not in error.message
    )


def _users(error: Error) -> bool:
    """The frame that raised is the user's, or of a library that only reads the user's data.

    Of an exception without a traceback nothing is known but its name: products refuse with some.
    """
    # where a service prints the call below the exception, it is what goes on behind it
    raiser = passer_of(error.frames) or passer_of(frames_of([error.more]))
    if raiser is None:
        refused = error.type in REFUSALS and not OWN_TENSORS.search(error.message)
        return bool(error.file) or not (error.traced or refused)
    product = package_of(raiser.file)
    called = bool(error.file) or caller_of(error.frames) is not None
    return product in LIBRARIES_OF_DATA | {""} or (product not in STACK and called)


def _own_import(error: Error) -> bool:
    """A name that one file of the script looks for in another and does not find."""
    found = IMPORTED.search(error.message)
    return bool(found and error.file and not package_of(found["path"]))
