"""Whether a training script can start DeepSpeed: by importing it, or by telling a library to."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Sequence

from dsdoctor.framework import packages_in

#: Packages that start no DeepSpeed, or only if they are told to: by an option, an argument, a
#: configuration or a variable that names it. What reads such a configuration itself (hydra,
#: mmengine), and what is built on DeepSpeed (openrlhf), is left out.
_QUIET = frozenset(
    {"absl", "accelerate", "addict", "albumentations", "apex", "bitsandbytes", "click", "cv2",
     "datasets", "datasketch", "diffusers", "dill", "dotenv", "easydict", "einops", "evaluate",
     "faiss", "fastapi", "filelock", "fire", "flash_attn", "fsspec", "google", "gradio", "gym",
     "gymnasium", "h5py", "huggingface_hub", "imageio", "jax", "jieba", "joblib", "jsonlines",
     "kornia", "librosa", "liger_kernel", "lightning", "lightning_fabric", "lmdb", "loguru",
     "lpips", "matplotlib", "mlflow", "msgpack", "networkx", "nltk", "numba", "numpy", "nvtx",
     "open_clip", "openai", "orjson", "packaging", "pandas", "peft", "PIL", "psutil", "pyarrow",
     "pycocotools", "pydantic", "pynvml", "pytest", "pytorch_lightning", "regex", "requests",
     "rich", "rouge_score", "sacrebleu", "safetensors", "scipy", "seaborn",
     "sentence_transformers", "sentencepiece", "setproctitle", "shapely", "simplejson", "skimage",
     "sklearn", "soundfile", "spacy", "tabulate", "tensorboard", "tensorboardX", "tensordict",
     "tensorflow", "termcolor", "tiktoken", "timm", "tokenizers", "torch", "torch_geometric",
     "torch_npu", "torch_scatter", "torch_sparse", "torch_xla", "torchao", "torchaudio",
     "torchdata", "torchmetrics", "torchtext", "torchvision", "tqdm", "transformers", "triton",
     "trl", "typer", "typing_extensions", "uvicorn", "wandb", "webdataset", "xformers", "yaml"}
)  # fmt: skip
#: Classes that start it, of accelerate, Lightning and transformers.
_CLASSES = frozenset({"DeepSpeedPlugin", "DeepSpeedStrategy", "HfDeepSpeedConfig"})
#: Arguments and fields that start it unless they are empty.
_ARGUMENTS = frozenset(
    {"deepspeed", "deepspeed_config", "deepspeed_plugin", "deepspeed_plugins", "ds_config"}
)
_NAME = "deepspeed"


def may_start_deepspeed(trees: Sequence[ast.Module], own: Collection[str]) -> bool:
    r"""Whether a script with its own modules may start DeepSpeed by itself.

    That it only asks for DeepSpeed's state (`is_deepspeed_zero3_enabled()`), or defines an option
    for it, starts nothing.

    Args:
        trees: syntax trees of all of them.
        own: modules that are among them.

    >>> def may(text):
    ...     return may_start_deepspeed([ast.parse(text)], {"net"})
    >>> may("import torch, net"), may("import torch, openrlhf"), may("def f():\n import deepspeed")
    (False, True, True)
    >>> may("A(deepspeed=None)"), may("A(deepspeed=x)"), may("Trainer(strategy='deepspeed')")
    (False, True, True)
    """
    quiet = _QUIET | sys.stdlib_module_names | {"", *own}
    return any(packages_in(tree) - quiet or any(map(_starts, ast.walk(tree))) for tree in trees)


def _starts(node: ast.AST) -> bool:
    """Whether a part of a script may start DeepSpeed."""
    if isinstance(node, ast.Constant):  # the name of a strategy, a key of a configuration
        text = node.value if isinstance(node.value, str) else ""
        return text.lower().startswith(_NAME) and " " not in text
    if isinstance(node, ast.keyword):
        return node.arg in _ARGUMENTS and not _is_empty(node.value)
    if isinstance(node, ast.AnnAssign):
        named = isinstance(node.target, ast.Name) and node.target.id in _ARGUMENTS
        return named and node.value is not None and not _is_default(node.value)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return (node.id if isinstance(node, ast.Name) else node.attr) in _CLASSES
    return False


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _is_default(value: ast.expr) -> bool:
    """Whether the default of a field is empty, also as `field(default=None)`."""
    if isinstance(value, ast.Call):
        return all(_is_empty(part.value) for part in value.keywords if part.arg == "default")
    return _is_empty(value)
