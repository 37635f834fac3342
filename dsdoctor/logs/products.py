"""Which product a source file belongs to, and which frame of a traceback raised an exception."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.frames import INDUCTOR, Frame

#: Code that only forwards calls; if it raises, its caller is taken for the raiser.
WRAPPERS = lazy(
    r"/(?:subprocess|contextlib|functools|runpy|shutil|pathlib|threading|inspect|copy|os)\.py$"
    # packages have folders of these names too, such as datasets/packaged_modules/json
    r"|/multiprocessing/|^(?!.*(?:site|dist)-packages/).*/(?:importlib|concurrent|json|ctypes|asyncio)/"
    r"|^<(?!ipython-input-)|/torch/nn/modules/"
    r"|/torch/_utils\.py$|/torch/utils/_contextlib\.py$|/deepspeed/utils/nvtx\.py$|/pydantic"
    r"|/typeguard/|/torch/autograd/"
)
#: Functions of torch in such folders that raise errors of their own; the others call the script's.
RAISING = lazy(r"/torch/(?:distributed/elastic/)?multiprocessing/\S+ (?!_?wrap(?:per)?$)\w+$")
#: Functions that only forward calls, in files that also raise errors of their own.
PASSED_ON = lazy(
    r"/torch/amp/autocast_mode\.py decorate_\w+$"
    r"|/accelerate/utils/operations\.py (?:forward|__call__)$"
    # called by a chat template, which rejects what it is given
    r"|/transformers/(?:tokenization_utils_base|utils/chat_template_utils)\.py raise_exception$"
)
#: Functions, mostly of torch, that only check and read what their caller passes: a wrong shape or
#: type, a missing file, samples that do not collate.
THIN = lazy(
    r"/torch/(?:functional|_?tensor|_refs/\w+|_prims_common/\w+|serialization|storage)\.py$"
    r"|/torch/(?:nn/(?:functional|init|utils/rnn)\.py|nn/parallel/|utils/data/|distributions/)"
    r"|/torchvision/(?:transforms|datasets|io|models)/|/safetensors/|/PIL/|/torchaudio/"
)
#: Products that run the training: an exception that they raise may be a defect of theirs. Other
#: packages are the script's choice, and read its data.
STACK = frozenset(
    {
        "accelerate", "aiohttp", "apex", "axolotl", "bitsandbytes", "botocore", "colossalai",
        "composer", "datasets", "deepspeed", "diffusers", "flash_attn", "grpc", "horovod",
        "httpcore", "httpcore2", "httpx", "httpx2", "huggingface_hub",
        "intel_extension_for_pytorch", "jax", "jaxlib", "keras", "liger_kernel", "lightning",
        "lightning_fabric", "llamafactory", "megatron", "mii", "mmcv", "mmengine", "nemo", "nvidia",
        "openrlhf", "peft", "pip", "pytorch_lightning", "ray", "requests", "safetensors",
        "sentence_transformers", "setuptools", "sglang", "streaming", "swanlab", "swift",
        "tensorflow", "tensorrt_llm", "tilelang", "tokenizers", "torch", "torch_npu", "torch_xla",
        "torchao", "torchtitan", "torchtune", "torchvision", "transformer_engine", "transformers",
        "triton", "trl", "tvm", "tvm_ffi", "unsloth", "unsloth_zoo", "urllib3", "verl", "vllm",
        "wandb", "xformers",
    },
)  # fmt: skip
INSTALLED = lazy(r"(?:site|dist)-packages/(?:[\w.+-]+\.egg/)?(?P<package>\w+)(?P<inner>/.*)?")
#: Products that are recognized in a source tree as well. Many projects have folders with names such
#: as `datasets`, `torch` and `lightning`, so for these, and for servers that are often run from a
#: checkout, the path must fit the product's own tree.
TREE = lazy(
    r"(?:^|/)(?P<package>deepspeed|op_builder|transformers|accelerate|trl|peft|diffusers"
    r"|pytorch_lightning|lightning_fabric|triton|bitsandbytes|flash_attn|mii|mmengine|colossalai"
    r"|huggingface_hub|liger_kernel|sentence_transformers|tokenizers|torchao|tilelang|tvm|unsloth_zoo|unsloth"
    r"|(?<=/src/)datasets|(?<=/src/)lightning|lightning(?=/(?:fabric|pytorch)/)|(?<=pytorch/)torch"
    r"|torch(?=/(?:_\w+|amp|ao|autograd|cuda|distributed|export|fx|jit|nn|optim)/)"
    r"|vllm(?=/(?:v1|config|engine|entrypoints|executor|worker|model_executor|distributed|platforms)/)"
    r"|sglang(?=/(?:srt|lang)/)|megatron(?=/(?:core|data|legacy|model|optimizer|training)/)"
    r"|verl(?=/(?:experimental|interactions|models|single_controller|tools|trainer|utils|workers)/)"
    r"|openrlhf(?=/(?:cli|datasets|models|trainer|utils)/)|nemo(?=/(?:collections|core|utils)/)"
    r"|torchtitan(?!/torchtitan/)|torchtune(?!/torchtune/|/recipes/)"
    r"|swift(?=/(?:llm|megatron|pipelines|rlhf_trainers|trainers|tuners)/)"
    r"|(?<=/src/)axolotl|(?<=/src/)llamafactory)"
    r"(?P<inner>/(?:\w+/)*\w+\.py)$"
)
#: Packages that are parts of another one, and the folder of their sources in it: Lightning's are
#: released under both names (lightning 2.6 README.md; 2026-11-29).
PARTS = {"pytorch_lightning": "lightning/pytorch", "lightning_fabric": "lightning/fabric"}
#: DeepSpeed's tools for checkpoints, which it copies into them.
SCRIPTS = lazy(r"(?:^|/)(?:zero_to_fp32|ds_to_universal)\.py$")
#: Cython sources that were compiled into a package.
COMPILED = lazy(r"^(?:python/|src/)?(?P<package>\w+)(?P<inner>/(?:[\w-]+/)*\w+\.p(?:yx|xi|xd))$")
#: What pip (10-26) unpacks to build it, since 20.3 with a random number behind the name.
UNPACKED = lazy(r"/pip-install-\w{4,16}/(?P<package>[\w.-]+?)(?:_[0-9a-f]{32})?(?P<inner>/.*)")
#: The program that an installed package puts into an environment; it only calls the package.
ENTRY_POINT = lazy(
    r"(?:^|/)(?:usr/(?:local/)?|\.local/|[^/]*(?:env|conda)[^/]*/(?:[^/]+/){0,2})bin/[\w-]+$"
    r"|[\\/]Scripts[\\/][\w-]+(?:\.exe[\\/]__main__|-script)\.py$"
)
STANDARD = lazy(r"/lib(?:64)?/python3|/Lib/\w+\.py$|^<(?!ipython-input-)")


def products_in(source: str) -> set[str]:
    """The products of the training stack that the source of a signature names.

    >>> sorted(products_in("torch 2.13.0 libtorch_cpu.so; flash-attn 2.3-2.8"))
    ['flash_attn', 'torch']
    """
    return set(re.findall(r"[a-z_]+", source.lower().replace("-", "_"))) & STACK


def package_of(path: str) -> str:
    """The product that a source file belongs to, "" for the user's own.

    >>> package_of("/x/lib/python3.10/site-packages/torch/cuda/__init__.py")
    'torch'
    >>> package_of("/home/u/DeepSpeed/deepspeed/runtime/engine.py"), package_of("/home/u/train.py")
    ('deepspeed', '')
    >>> package_of("python/ray/_raylet.pyx")
    'ray'
    >>> package_of("/x/site-packages/pytorch_lightning/trainer/trainer.py")
    'lightning'
    >>> package_of("/tmp/pip-install-c74kecsx/flash-attn/setup.py")
    'flash_attn'
    """
    found = _in_product(path)
    if found is None and SCRIPTS.search(path):
        return "deepspeed"
    if found is None and INDUCTOR.search(path):
        return "torch"
    if found is None:
        return "python" if STANDARD.search(path) else ""
    package = found["package"].replace("-", "_")
    return "deepspeed" if package == "op_builder" else PARTS.get(package, package).split("/")[0]


def _in_product(path: str) -> re.Match[str] | None:
    """The place of a source file in a product: `package`, and `inner` below it."""
    return (
        INSTALLED.search(path)
        or TREE.search(path)
        or UNPACKED.search(path)
        or COMPILED.search(path)
    )


def inner_path(path: str) -> str:
    """The path of a source file within its product.

    >>> inner_path("/x/site-packages/deepspeed/runtime/engine.py")
    'deepspeed/runtime/engine.py'
    >>> inner_path("/x/site-packages/apex-0.1-py3.6-linux-x86_64.egg/apex/optimizers/fused_adam.py")
    'apex/optimizers/fused_adam.py'
    """
    found = _in_product(path)
    return f"{found['package']}{found['inner'] or ''}" if found else path


def indexed_path(path: str) -> str:
    """The path of a source file within its product, as the error index names it.

    >>> indexed_path("/x/site-packages/lightning_fabric/connector.py")
    'lightning/fabric/connector.py'
    """
    package, slash, rest = inner_path(path).partition("/")
    return f"{PARTS.get(package, package)}{slash}{rest}"


def passes_on(frame: Frame) -> bool:
    """Whether a frame only forwards a call.

    >>> file = "/x/site-packages/accelerate/utils/operations.py"
    >>> passes_on(Frame(file, "forward", 1)), passes_on(Frame(file, "gather", 1))
    (True, False)
    """
    return bool(WRAPPERS.search(frame.file) or PASSED_ON.search(f"{frame.file} {frame.function}"))


def raiser_of(frames: Sequence[Frame]) -> Frame | None:
    """The frame that raised, not counting code that only forwards calls.

    >>> train = Frame("/home/u/train.py", "main", 1)
    >>> folder = "/x/site-packages/torch/multiprocessing"
    >>> sent = Frame(f"{folder}/reductions.py", "reduce_tensor", 1)
    >>> called = Frame(f"{folder}/spawn.py", "_wrap", 1)
    >>> raiser_of([train, sent]) == sent, raiser_of([train, called]) == train
    (True, True)
    """
    if frames and RAISING.search(f"{frames[-1].file} {frames[-1].function}"):
        return frames[-1]
    raising = [frame for frame in frames if not passes_on(frame)]
    return raising[-1] if raising else (frames[-1] if frames else None)


def passer_of(frames: Sequence[Frame]) -> Frame | None:
    """The frame that passed the rejected value: it raised itself, or called THIN functions."""
    passing = [f for f in frames if not passes_on(f) and not THIN.search(f.file)]
    return passing[-1] if passing else raiser_of(frames)


def caller_of(frames: Sequence[Frame]) -> Frame | None:
    """The deepest frame of the user's own code."""
    return next((frame for frame in reversed(frames) if not package_of(frame.file)), None)
