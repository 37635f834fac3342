"""Which family of causes an exception belongs to, by the place where it was raised: a guess.

Asked only where no signature fits. The file and the function in which a product raises tell what
it was about even where its words are new. An exception of the user's own files is never judged.
Sources: deepspeed (runtime, launcher, ops/op_builder, utils), torch (utils/cpp_extension.py, cuda,
distributed, serialization.py), transformers, accelerate and triton, as of their last releases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dsdoctor.logs.errors import Error
from dsdoctor.logs.frames import Frame, frames_of
from dsdoctor.logs.missing_names import owner

#: So many lines behind its last frame a log may end in the middle of a traceback.
CUT_LINES = 3
CALLED = re.compile(r"\b(\w{3,80})\(")
#: What the setup.py of DeepSpeed, apex and flash-attn calls, which stands in a folder of pip's.
BUILDING = frozenset(
    {"installed_cuda_version", "assert_no_cuda_mismatch", "get_default_compute_capabilities",
     "get_cuda_bare_metal_version", "raise_if_cuda_home_none",
     "check_cuda_torch_binary_vs_bare_metal"}
)  # fmt: skip
#: Code that only passes calls on; the one who raises is the caller above it.
WRAPPERS = re.compile(
    r"/(?:subprocess|contextlib|functools|runpy|shutil|pathlib|threading|inspect|copy|os)\.py$"
    r"|/(?:importlib|multiprocessing|concurrent|json|ctypes|asyncio)/|^<|/torch/nn/modules/"
    r"|/torch/_utils\.py$|/torch/utils/_contextlib\.py$|/deepspeed/utils/nvtx\.py$|/pydantic"
    r"|/typeguard/|/torch/autograd/"
)
INSTALLED = re.compile(r"(?:site|dist)-packages/(?P<package>\w+)")
#: Products that are recognised in a source tree as well.
TREE = re.compile(
    r"(?:^|/)(?P<package>deepspeed|op_builder|transformers|accelerate|trl|peft|diffusers|datasets"
    r"|lightning|pytorch_lightning|lightning_fabric|torch|triton|bitsandbytes|flash_attn|mii"
    r"|mmengine|colossalai|huggingface_hub|tokenizers)/(?:\w+/)*\w+\.py$"
)
#: DeepSpeed's tools for checkpoints, which it copies into them.
SCRIPTS = re.compile(r"(?:^|/)(?:zero_to_fp32|ds_to_universal)\.py$")
TRAINERS = frozenset(
    {"transformers", "accelerate", "trl", "lightning", "pytorch_lightning", "lightning_fabric",
     "mmengine", "axolotl", "llamafactory", "swift", "peft", "diffusers", "optimum", "ray",
     "sentence_transformers"},
)  # fmt: skip
HUGGING = frozenset(
    {"transformers", "accelerate", "trl", "peft", "diffusers", "datasets", "huggingface_hub",
     "tokenizers", "safetensors", "optimum", "sentence_transformers", "evaluate", "timm"},
)  # fmt: skip
LOADERS = re.compile(
    r"^(?:_?load_(?:checkpoint|zero_checkpoint|universal_checkpoint|state_dict|optimizer_states?"
    r"|module_state_dict|moe_state_dict|hp_checkpoint_state|optimizer_and_scheduler)"
    r"|_load_(?:zero|legacy|elastic|universal)_checkpoint|_get_all_(?:zero|ckpt)\w+"
    r"|_restore_\w+|_rigid_load_state_dict|check_ckpt_list|merge_state_dict|get_sd_loader\w*"
    r"|get_(?:fp32|zero|model)\w*state\w*|parse_(?:optim|model)_states?|get_checkpoint_files"
    r"|convert_zero_checkpoint\w*|_?zero[23]_merge\w+|deepspeed_load_checkpoint|load_or_resume"
    r"|resume)$"
)
LOADING_FILES = re.compile(
    r"deepspeed/(?:checkpoint/|runtime/checkpoint_engine/|runtime/state_dict_factory|utils/zero_to)"
    r"|(?:^|/)(?:zero_to_fp32|ds_to_universal)\.py$"
)
SHARDS = re.compile(r"(?:model|optim)_states\.pt\b|\bglobal_step\d|/latest'|zero_pp_rank_")
UNFIT = re.compile(
    r"(?i)incompatib|not (?:yet |currently )?(?:compatible|supported|implemented|allowed)"
    r"|unsupported|only (?:works?|supported?|supports?|valid|available|when|if)|must |should "
    r"|requires?\b|cannot|can't|can not|does not|doesn't|expected|need|mutually exclusive|conflict"
    r"|both|instead|enable"
)
SETTING_UP = re.compile(
    r"^(?:__init__|_?configure_\w+|_?do_\w*(?:check|args)\w*|_sanity_checks?|_validate\w*|no_sync"
    r"|initialize|initialize_\w+|init_inference|_init\w*|offload_states|compile|set_\w+)$"
)
ASSERTING = frozenset(
    {"AssertionError", "ValueError", "RuntimeError", "NotImplementedError", "TypeError",
     "ZeRORuntimeException", "Exception", "DeepSpeedConfigError", "ValidationError",
     "MisconfigurationException"},
)  # fmt: skip
NAMES = frozenset(
    {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "NameError"}
)
LIBRARIES = "cuda-runtime-lib-mismatch"
#: Where ZeRO-3 keeps account of the modules that run; it loses count where they change.
PARTITIONS = re.compile(r"deepspeed/runtime/zero/(?:partition|parameter|stage)")
#: Where Hugging Face fills in "auto" from what the model tells of itself.
FILLING = frozenset({"trainer_config_finalize", "deepspeed_config_process", "fill_match"})
BATCH = re.compile(r"(?i)batch[ _]?size|micro_?batch|grad\w*_acc|accumulat|data.parallel")
WINDOWS = re.compile(r"(?:^|[\s\"'(])[A-Za-z]:[\\/]")


class Place(NamedTuple):
    """What an exception tells of itself.

    Attributes:
        kind: its type.
        text: its words and the lines behind them.
        raiser: the frame that raised it, wrappers left out.
        package: the product that the frame belongs to.
        functions: names of all functions above it.
        packages: products of all frames, the outermost first.
        files: paths of all frames.
    """

    kind: str
    text: str
    raiser: Frame
    package: str
    functions: frozenset[str]
    packages: tuple[str, ...]
    files: tuple[str, ...]


def package_of(path: str) -> str:
    """The product of a source file, "" for the user's own.

    >>> package_of("/x/lib/python3.10/site-packages/torch/cuda/__init__.py")
    'torch'
    >>> package_of("/home/u/DeepSpeed/deepspeed/runtime/engine.py"), package_of("/home/u/train.py")
    ('deepspeed', '')
    """
    found = INSTALLED.search(path) or TREE.search(path)
    if found is None and SCRIPTS.search(path):
        return "deepspeed"
    if found is None:
        return "python" if re.search(r"/lib(?:64)?/python3|/Lib/\w+\.py$|^<", path) else ""
    return "deepspeed" if found["package"] == "op_builder" else found["package"]


def family(error: Error) -> str | None:
    """The condition that the exception most likely belongs to, None where the place tells none."""
    return (_by_place(error) if error.frames else None) or owner(
        error.type, error.message, own=bool(error.file)
    )


def _by_place(error: Error) -> str | None:
    told = [frame for frame in error.frames if not WRAPPERS.search(frame.file)]
    raiser = told[-1] if told else error.frames[-1]
    package = package_of(raiser.file)
    place = Place(
        error.type,
        f"{error.message} {error.more}",
        raiser,
        package,
        frozenset(frame.function for frame in error.frames),
        tuple(dict.fromkeys(filter(None, (package_of(f.file) for f in error.frames)))),
        tuple(frame.file for frame in error.frames),
    )
    if not package and not place.functions & BUILDING:
        return None
    for judge in JUDGES:
        if found := judge(place):
            return found
    return None


def cut_off(tail: Sequence[tuple[int, str]], source: int) -> Error | None:
    """A traceback at the end of a log that breaks off before it names its exception."""
    last = [text for _, text in tail[-CUT_LINES:]]
    if not frames_of(last):
        return None
    number, text = tail[-1]
    frames = frames_of(row[1] for row in tail)
    # what the last lines call is where the traceback would have gone on
    called = tuple(Frame(frames[-1].file, name, 0) for name in CALLED.findall("\n".join(last)))
    return Error(
        source=source, line=number, rank=None, type="", message=text, file="", file_line=0,
        text=text, when="", traced=True, frames=(*called, *frames),
    )  # fmt: skip


def _windows(place: Place) -> str | None:
    if place.kind not in {"FileNotFoundError", "OSError", "PermissionError", "CalledProcessError"}:
        return None
    ours = any("deepspeed" in file.lower() for file in place.files)
    on_windows = any(re.match(r"[A-Za-z]:/", file) for file in place.files)
    return "unsupported-on-windows" if ours and on_windows else None


def _build(place: Place) -> str | None:
    builder = any(
        "torch/utils/cpp_extension" in file or "op_builder" in file for file in place.files
    )
    if not builder and not place.functions & BUILDING:
        return None
    by_function = {
        "_check_cuda_version": "cuda-toolkit-mismatch",
        "assert_no_cuda_mismatch": "cuda-toolkit-mismatch",
        "_join_cuda_home": "cuda-toolkit-missing",
        "installed_cuda_version": "cuda-toolkit-missing",
        "verify_ninja_availability": "jit-build-ninja-missing",
        "check_compiler_abi_compatibility": "jit-build-compiler-missing",
        "get_compiler_abi_compatibility_and_version": "jit-build-compiler-missing",
        "get_default_compute_capabilities": "cuda-toolkit-missing",
        "check_cuda_torch_binary_vs_bare_metal": "cuda-toolkit-mismatch",
        "get_cuda_bare_metal_version": "cuda-toolkit-missing",
        "raise_if_cuda_home_none": "cuda-toolkit-missing",
        "wait": "jit-build-stale-lock",
        "_run_ninja_build": "cpu-adam-unbuilt",
    }
    if "assert_no_cuda_mismatch" in place.functions and "NoneType" in place.text:
        # torch.version.cuda, unless it was the path of the toolkit
        known = "installed_cuda_version" in place.functions
        return "cuda-toolkit-missing" if known else "cpu-only-torch"
    for name, condition in by_function.items():
        if name in place.functions:
            return condition
    if "_get_cuda_arch_flags" in place.functions:
        return "no-gpu-visible" if place.kind == "IndexError" else "nvcc-arch-unsupported"
    if "_import_module_from_library" in place.functions:
        return "cpu-adam-unbuilt"
    if place.raiser.function == "jit_load":  # the op does not suit this machine
        nvme = any("swap_tensor" in file or "async_io" in file for file in place.files)
        return "libaio-missing" if nvme else "cpu-adam-unbuilt"
    if "assert_torch_info" in place.functions:
        return "cxx-abi-undefined-symbol"
    return None


def _checkpoint(place: Place) -> str | None:
    saving = any(name.startswith(("save_", "_save_")) for name in place.functions)
    if saving or place.kind in {"OutOfMemoryError", "PermissionError"}:
        return None
    by_deepspeed = "deepspeed" in place.packages or re.search(
        r"zero_to_fp32|deepspeed\.py$", place.raiser.file
    )
    loading = by_deepspeed and (
        any(LOADERS.match(name) for name in place.functions)
        or any(LOADING_FILES.search(file) for file in place.files)
    )
    missing = place.kind == "FileNotFoundError" and SHARDS.search(place.text)
    return "checkpoint-mismatch" if loading or missing else None


def _config(place: Place) -> str | None:
    if FILLING.intersection(place.functions) and place.kind in {"AttributeError", "TypeError"}:
        return "ds-config-auto-values"
    in_config = re.search(r"deepspeed/(?:\w+/){0,4}config(?:_utils)?\.py$", place.raiser.file)
    if not in_config and not re.search(r"for DeepSpeed\w*Config\b", place.text):
        return None
    if place.kind in {"ImportError", "ModuleNotFoundError", "AttributeError", "PydanticUserError"}:
        return None
    if re.search(r"'str' and '(?:int|float)'|'auto'|\"auto\"", place.text):
        return "ds-config-auto-values"
    if BATCH.search(place.text) or "_batch_assertion" in place.functions:
        return "ds-config-batch-mismatch"
    if place.kind in ASSERTING and UNFIT.search(place.text) and place.kind != "ValidationError":
        return "ds-config-unsupported-combination"
    return "ds-config-invalid-key"


def _launcher(place: Place) -> str | None:
    if "/deepspeed/launcher/" not in f"/{place.raiser.file}":
        return "launched-without-deepspeed" if "mpi_discovery" in place.functions else None
    if place.kind == "EnvironmentError" or "env_mapping" in place.functions:
        return "launched-without-deepspeed"
    if re.search(r"(?i)hostfile|host |ssh|slot", place.text) or place.functions & {
        "fetch_hostfile",
        "_parse_hostfile",
        "parse_resource_filter",
        "parse_inclusion_exclusion",
        "get_cmd",
    }:
        return "hostfile-or-ssh-problem"
    return None


def _importing(place: Place) -> str | None:
    """A log that ends while a product is being imported: what it shows no more is a name."""
    if place.kind or place.raiser.function != "<module>":
        return None
    if place.package in HUGGING and len(HUGGING.intersection(place.packages)) > 1:
        return "dependency-version-conflict"
    if place.package != "deepspeed":
        return None
    in_triton = re.search(r"/triton/|sparse_attention/", place.raiser.file)
    return "triton-unusable" if in_triton else "deepspeed-torch-incompatible"


def _names(place: Place) -> str | None:  # noqa: PLR0911  # a table of cases
    """Names that one product looks for in another and does not find."""
    if place.kind not in NAMES:
        return None
    text, package = place.text, place.package
    torchy = re.search(r"'torch[.\w]*'|\btorch\.\w+|_dynamo|torch\._", text)
    if package == "deepspeed" and torchy:
        return "deepspeed-torch-incompatible"
    if package == "triton" or re.search(r"/triton/|sparse_attention/", place.raiser.file):
        return "triton-unusable"
    if re.search(r"deepspeed|DeepSpeed", text) and package in TRAINERS | {"deepspeed"}:
        alone = package == "deepspeed" and not TRAINERS.intersection(place.packages)
        inner = alone and re.search(r"module '?deepspeed\.", text)
        return "deepspeed-torch-incompatible" if inner else "transformers-deepspeed-incompatible"
    if re.search(r"['\.](?:transformers|accelerate)['\.]", text) and package == "deepspeed":
        return "transformers-deepspeed-incompatible"
    own = re.search(r"'\w*(?:Model|For[A-Z]\w*)' object", text)  # a model of the script's
    meets = "deepspeed" in place.packages or ("deepspeed" in place.raiser.file and not own)
    crossing = meets and TRAINERS.intersection(place.packages)
    calls = place.kind in {"TypeError", "AttributeError"} and re.search(
        r"unexpected keyword|has no attribute|positional argument|multiple values|missing \d+",
        text,
    )
    if crossing and calls and package in TRAINERS | {"deepspeed"}:
        return "transformers-deepspeed-incompatible"
    if "/distributed/elastic/agent/" in place.raiser.file and place.kind != "NameError":
        return "deepspeed-torch-incompatible"
    if package == "deepspeed" and calls and not crossing and "self." not in text:
        return "deepspeed-torch-incompatible" if "torch" in place.packages else None
    if place.kind == "ImportError" and package in HUGGING | TRAINERS and "torch" not in text:
        return "dependency-version-conflict"
    if len(HUGGING.intersection(place.packages)) > 1 and calls and package in HUGGING:
        return "dependency-version-conflict"
    return None


def _engine(place: Place) -> str | None:
    """DeepSpeed's own refusals."""
    if place.package not in {"deepspeed", "lightning", "pytorch_lightning", "accelerate"}:
        return None
    if place.package != "deepspeed" and "deepspeed" not in place.raiser.file:
        return None
    if place.kind in {"IndexError", "KeyError"} and PARTITIONS.search(place.raiser.file):
        return "ds-config-unsupported-combination"
    lacking = place.kind == "AttributeError" and re.search(
        r"'(?:float|int|str|bool|dict|list|tuple|function|Namespace)' object has no", place.text
    )
    if place.kind not in ASSERTING | ({"AttributeError"} if lacking else set()) or (
        place.kind == "TypeError" and place.raiser.function in {"forward", "wrapped_fn"}
    ):
        return None  # what the model was given is the script's own
    if BATCH.search(place.text) and re.search(r"!=|equal|divisible|mismatch", place.text):
        return "ds-config-batch-mismatch"
    if re.search(r"'str' and '(?:int|float)'", place.text):
        return "ds-config-auto-values"
    inside = re.search(
        r"deepspeed/(?:runtime|pipe|moe|sequence|comm|ops/adam|inference|utils/groups)",
        place.raiser.file,
    )
    refusing = SETTING_UP.match(place.raiser.function) or UNFIT.search(place.text)
    if place.package != "deepspeed":
        return "ds-config-unsupported-combination" if UNFIT.search(place.text) else None
    if re.search(r"(?i)torch version|version of pytorch|pytorch (?:apis|build)", place.text):
        return "deepspeed-torch-incompatible"
    partitioning = place.kind == "RuntimeError" and "deepspeed/runtime/zero/" in place.raiser.file
    always = place.kind in {"AssertionError", "NotImplementedError"} or partitioning
    if inside and (refusing or always):
        return "ds-config-unsupported-combination"
    return None


def _cuda(place: Place) -> str | None:
    if not re.search(r"torch/cuda/(?:__init__|_utils)\.py$", place.raiser.file):
        return None
    if place.raiser.function in {"_lazy_init", "_cuda_init", "get_device_capability", "init"}:
        return "cuda-init-driver-state"
    return None


def _libraries(place: Place) -> str | None:
    """What torch loads of CUDA before anything else."""
    if not place.functions & {"_load_global_deps", "_preload_cuda_deps", "_preload_cuda_lib"}:
        return None
    other = re.search(r"lib(?:mpi|nccl|cudnn|stdc|gomp|c10|torch|shm)|WinError", place.text)
    return None if other or place.kind not in {"", "OSError", "ValueError"} else LIBRARIES


def _network(place: Place) -> str | None:
    text = place.text
    file = place.raiser.file
    if "torch/distributed" not in file and place.kind != "DistBackendError":
        return None
    if place.kind == "ImportError":
        return None  # a torch without a part, before any network
    if "rendezvous" in file or "create_c10d_store" in place.functions:
        if re.search(r"(?i)in use|EADDRINUSE|errno: 98|failed to bind", text):
            return "port-in-use"
        if re.search(r"environment variable|expected, but not set", text):
            return "launched-without-deepspeed"
        return "rendezvous-timeout"
    if place.kind == "DistBackendError":
        words = (
            (r"(?i)time[d ]*out", "nccl-timeout-watchdog"),
            (
                r"(?i)socket|connect|network|ibv_|bootstrap|remote peer",
                "nccl-ib-or-socket-interface",
            ),
            (r"(?i)system error|shm|shared memory", "nccl-intra-node-transport-failed"),
            (r"(?i)invalid usage|duplicate gpu", "nccl-duplicate-gpu"),
            (r"(?i)cuda", "nccl-unhandled-cuda-error"),
        )
        return next((name for pattern, name in words if re.search(pattern, text)), None)
    return None


def _products(place: Place) -> str | None:
    if place.package == "triton" and place.kind not in {"OutOfResources", "CompilationError"}:
        return "triton-unusable"
    if place.package == "bitsandbytes" and place.kind in NAMES | {"RuntimeError", "OSError"}:
        at_import = "<module>" in place.raiser.function or "cextension" in place.raiser.file
        return "bitsandbytes-cuda-setup" if at_import or "lib" in place.text else None
    if place.package == "mpi4py":
        return "mpi-missing"
    if place.package in {"huggingface_hub", "urllib3", "requests", "httpx", "httpcore"}:
        network = re.search(r"(?i)connect|timeout|ssl|proxy|offline", place.kind)
        return "hub-unreachable" if network and "hub" in str(place.files) else None
    reading = re.search(r"torch/serialization\.py$|/safetensors/", place.raiser.file)
    broken = {"UnpicklingError", "EOFError", "SafetensorError", "BadZipFile"}
    if place.kind in broken and (reading or place.package in {"transformers", "safetensors"}):
        return "weights-file-corrupt"
    return None


JUDGES: tuple[Callable[[Place], str | None], ...] = (
    _windows, _build, _importing, _checkpoint, _config, _launcher, _names, _engine, _cuda,
    _libraries, _network,
    _products,
)  # fmt: skip
