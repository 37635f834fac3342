"""What raised an exception: product, release, place, and a link to that line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.error_lookup import INTERNAL
from dsdoctor.logs.errors import Error
from dsdoctor.logs.knowledge import Answered
from dsdoctor.logs.products import caller_of, indexed_path, inner_path, package_of, raiser_of
from dsdoctor.model.diagnosis import Explained, RaisedBy


class Repository(NamedTuple):
    """Where the sources of a product's releases can be read.

    Attributes:
        name: owner and name.
        folder: folder that contains the package.
        tag: what precedes the release in the name of its tag.
        since: the first major release whose sources are in that folder.
    """

    name: str
    folder: str = ""
    tag: str = "v"
    since: int = 0


#: Of a repository whose releases have no tags.
UNTAGGED = 9999
REPOSITORIES = {
    "accelerate": Repository("huggingface/accelerate", "src/"),
    "axolotl": Repository("axolotl-ai-cloud/axolotl", "src/"),
    "colossalai": Repository("hpcaitech/ColossalAI"),
    "datasets": Repository("huggingface/datasets", "src/", tag=""),
    "deepspeed": Repository("deepspeedai/DeepSpeed"),
    "diffusers": Repository("huggingface/diffusers", "src/"),
    "flash_attn": Repository("Dao-AILab/flash-attention"),
    "huggingface_hub": Repository("huggingface/huggingface_hub", "src/"),
    "liger_kernel": Repository("linkedin/Liger-Kernel", "src/"),
    "lightning": Repository("Lightning-AI/pytorch-lightning", "src/", tag="", since=2),
    "llamafactory": Repository("hiyouga/LLaMA-Factory", "src/"),
    "megatron": Repository("NVIDIA/Megatron-LM", tag="core_v"),
    "openrlhf": Repository("OpenRLHF/OpenRLHF"),
    "peft": Repository("huggingface/peft", "src/"),
    "ray": Repository("ray-project/ray", "python/", tag="ray-"),
    "safetensors": Repository("huggingface/safetensors", "bindings/python/py_src/"),
    "sentence_transformers": Repository("huggingface/sentence-transformers"),
    "swift": Repository("modelscope/ms-swift"),
    "tokenizers": Repository("huggingface/tokenizers", "bindings/python/py_src/"),
    "torch": Repository("pytorch/pytorch"),
    "torchao": Repository("pytorch/ao"),
    "transformers": Repository("huggingface/transformers", "src/"),
    "triton": Repository("triton-lang/triton", "python/"),
    "trl": Repository("huggingface/trl"),
    "unsloth": Repository("unslothai/unsloth", since=UNTAGGED),
    "unsloth_zoo": Repository("unslothai/unsloth-zoo", since=UNTAGGED),
    "verl": Repository("volcengine/verl"),
    "vllm": Repository("vllm-project/vllm"),
}
#: Folders of an installation that are elsewhere in the repository.
MOVED = {
    "deepspeed/accelerator/": "accelerator/",
    "deepspeed/ops/csrc/": "csrc/",
    "deepspeed/ops/op_builder/": "op_builder/",
}
#: Suffixes of sources; a path with another one is that of a built library.
SOURCES = (".py", ".cpp", ".cu", ".cuh", ".h")
#: Files that a build copies from elsewhere in the repository.
COPIED = lazy(r"^triton/backends/\w+/")
#: A release that has a tag of its own.
TAGGED = lazy(r"^\d+\.\d+\.\d+$")
#: How logs state the release of a product: `DeepSpeed info: version=0.19.8`, `torch==2.4.0`,
#: `PyTorch version: 2.4.0`, and ds_report's `torch version .... 2.4.0`.
PRODUCT = (
    r"(?P<product>accelerate|axolotl|colossalai|datasets|deepspeed|diffusers|flash[-_]attn"
    r"|huggingface[-_]hub|liger[-_]kernel|lightning|llamafactory|megatron[-_]core|ms[-_]swift"
    r"|openrlhf|peft|ray|safetensors|sentence[-_]transformers|tokenizers|torch(?:ao)?|transformers"
    r"|triton|trl|unsloth(?:[-_]zoo)?|verl|vllm)"
)
#: Packages of another name than the product.
PACKAGES = {"megatron_core": "megatron", "ms_swift": "swift"}
NUMBER = (
    r"(?P<release>\d{1,4}\.\d{1,3}(?:\.\d{1,3})?)(?![.\d]{0,8}(?:\.dev|rc|a\d|b\d)| is required)"
)
RELEASE = lazy(
    rf"(?i)(?<!requires )(?<!install )\b(?:py)?{PRODUCT}"
    r"(?:`{0,2}(?: info: version|[ _]version(?: \(GPU\?\))?| info(?= \.{3}))[ .]{0,40}|==| v)"
    rf"[ :=.]{{0,6}}{NUMBER}"
)
#: The same in the line with which pip ends.
INSTALLED = lazy(rf"(?<= )(?:pytorch-)?{PRODUCT}-{NUMBER}(?:[ +]|$)")


def issues_of(product: str) -> str:
    """Where to report a defect of a product, "" if not known.

    >>> issues_of("deepspeed")
    'https://github.com/deepspeedai/DeepSpeed/issues'
    """
    found = REPOSITORIES.get(product)
    return f"https://github.com/{found.name}/issues" if found else ""


def releases_of(lines: Iterable[str]) -> dict[str, str]:
    """The releases of products that lines of a log state.

    >>> releases_of(["[INFO] DeepSpeed info: version=0.15.1, git-hash=unknown"])
    {'deepspeed': '0.15.1'}
    >>> releases_of(["x requires torch==2.0.1, but torch version 2.1.0 is installed"])
    {'torch': '2.1.0'}
    >>> releases_of(["transformers version: 4.39.0.dev0"])
    {}
    >>> releases_of(["Successfully installed a-1.0 pytorch-lightning-2.1.4 torch-2.4.0+cu121"])
    {'lightning': '2.1.4', 'torch': '2.4.0'}
    >>> releases_of(["sentence-transformers==3.0.1", "ms-swift==4.6.0"])
    {'sentence_transformers': '3.0.1', 'swift': '4.6.0'}
    """
    found: dict[str, str] = {}
    for line in lines:
        pattern = INSTALLED if line.startswith("Successfully installed ") else RELEASE
        for match in pattern.finditer(line):
            package = match["product"].lower().replace("-", "_")
            found.setdefault(PACKAGES.get(package, package), match["release"])
    return found


def explained(said: Answered) -> Explained:
    """An answer of the error index in the form of a report."""
    product = said.entry.product
    url = issues_of(product) if said.kind == INTERNAL else ""
    text = said.text or ("an internal check failed; report it to the authors with this log")
    return Explained(
        kind=said.kind, product=product, text=text, releases=said.entry.releases, url=url
    )


def url_of(product: str, release: str, path: str, line: int) -> str:
    """A link to a line of a release, "" if not known.

    >>> url_of("deepspeed", "0.16.4", "deepspeed/accelerator/cuda_accelerator.py", 9)
    'https://github.com/deepspeedai/DeepSpeed/blob/v0.16.4/accelerator/cuda_accelerator.py#L9'
    >>> url_of("datasets", "2.14.5", "datasets/builder.py", 9)
    'https://github.com/huggingface/datasets/blob/2.14.5/src/datasets/builder.py#L9'
    >>> url_of("ray", "2.60.0", "ray/actor.py", 9)
    'https://github.com/ray-project/ray/blob/ray-2.60.0/python/ray/actor.py#L9'
    >>> url_of("triton", "3.2.0", "triton/backends/nvidia/compiler.py", 9)
    ''
    >>> url_of("lightning", "1.9.5", "lightning/pytorch/trainer/trainer.py", 9)
    ''
    >>> url_of("torch", "2.4", "torch/cuda/memory.py", 9)
    ''
    """
    found = REPOSITORIES.get(product)
    readable = path.endswith(SOURCES) and not COPIED.search(path) and TAGGED.search(release)
    if found is None or not readable or int(release.partition(".")[0]) < found.since:
        return ""
    for folder, there in MOVED.items():
        if path.startswith(folder):
            path = there + path[len(folder) :]
    place = f"#L{line}" if line else ""
    return f"https://github.com/{found.name}/blob/{found.tag}{release}/{found.folder}{path}{place}"


def raised_by(error: Error, releases: dict[str, str]) -> RaisedBy | None:
    """What raised an exception; None for the user's own code, and without a traceback."""
    frame = raiser_of(error.frames)
    product = package_of(frame.file) if frame is not None else ""
    if frame is None or not product:
        return None
    release = releases.get(product, "")
    path = inner_path(frame.file)
    caller = caller_of(error.frames)
    return RaisedBy(
        product=product,
        version=release,
        file=path,
        line=frame.line,
        function=frame.function,
        url=url_of(product, release, indexed_path(frame.file), frame.line),
        called_from=f"{caller.file}:{caller.line}" if caller is not None else "",
    )
