"""How `dependency-version-conflict` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "dependency-version-conflict"
TITLE = "Python packages of versions that do not fit each other"
HINT = "align the versions in the message: `python -m pip install -U` the older of the two"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="cannot import name",
        pattern=(
            r"cannot import name '\w+' from '(?:huggingface_hub|transformers"
            r"|peft|diffusers|accelerate|pydantic|tokenizers|datasets|numpy"
            r"|scipy|trl|typing_extensions|click|packaging|torchvision"
            r"|timm|setuptools|jinja2|markupsafe|urllib3|charset_normalizer"
            r"|sklearn|pytorch_lightning|pkg_resources|importlib_metadata"
            r"|tensorflow|google|keras|requests|collections|optimum|auto_gptq"
            r"|gradio\w*|fsspec|pyarrow|lightning\w*|torchmetrics|torchtext"
            r"|xformers|vllm|evaluate|sentence_transformers|safetensors)(?:\.[\w.]+)?'"
        ),
        examples=("ImportError: cannot import name 'cached_download' from 'huggingface_hub'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        weight=56,
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        anchor="is required for a normal functioning",
        pattern=r"is required for a normal functioning of this module, but found",
        examples=(
            "ImportError: tokenizers>=0.14 is required for a normal functioning of this module, but found tokenizers==0.13",
        ),
        not_examples=("is required",),
        weight=62,
    ),
    Signature(
        anchor=("pkg_resources", "DistributionNotFound", "VersionConflict"),
        pattern=(
            r"No module named 'pkg_resources'|pkg_resources\.(?:extern\S*)?(?:DistributionNotFound"
            r"|VersionConflict|ContextualVersionConflict)"
        ),
        examples=("ModuleNotFoundError: No module named 'pkg_resources'",),
        not_examples=("import pkg_resources",),
        weight=58,
    ),
    Signature(
        anchor=("PydanticUserError", "PydanticImportError", "PydanticDeprecatedSince", "pydantic"),
        pattern=(
            r"pydantic\S*\.(?:PydanticUserError|PydanticImportError)|PydanticUserError"
            r"|has been moved to the `pydantic-settings`|`BaseSettings` has been moved"
        ),
        examples=(
            "pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package",
        ),
        not_examples=("pydantic 2.5",),
        weight=58,
    ),
    Signature(
        anchor=("torchvision::nms",),
        pattern=r"operator torchvision::nms does not exist",
        examples=("RuntimeError: operator torchvision::nms does not exist",),
        not_examples=("torchvision::nms registered",),
        weight=62,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        anchor=("Detected that PyTorch and torch", "were compiled with different CUDA"),
        pattern=(r"Detected that PyTorch and torch(?:vision|audio) were compiled with different"),
        examples=(
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
        ),
        not_examples=("Detected that PyTorch is ready",),
        weight=64,
    ),
    Signature(
        anchor="Weights only load failed",
        pattern=r"Weights only load failed",
        examples=("_pickle.UnpicklingError: Weights only load failed.",),
        not_examples=("Weights loaded",),
        weight=46,
        near=("Unsupported global", "Unsupported class", "not an allowed global"),
    ),
    Signature(
        anchor=("has requirement", "which is incompatible", "incompatible with"),
        pattern=(
            r"(?:^|\s)\S+ \S+ (?:requires|has requirement) \S+.{0,60}, but you (?:have"
            r"|'ll have)|requires \S+ .{0,60}which is incompatible"
        ),
        examples=(
            "ERROR: peft 0.9 requires transformers>=4.40, but you have transformers 4.30 which is incompatible.",
        ),
        not_examples=("which is compatible",),
        weight=30,
    ),
    Signature(
        anchor="unexpected keyword argument",
        pattern=(
            r"(?:Trainer|SFTTrainer|TrainingArguments|LoraConfig|from_pretrained"
            r"|DPOTrainer|GenerationConfig|PeftConfig|AdamW|Llama\w*|Qwen\w*)(?:\.__init__)?\(\) got an unexpected keyword argument"
        ),
        examples=(
            "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'corda_config'",
        ),
        not_examples=("foo() got an unexpected keyword argument 'x'",),
        weight=48,
    ),
    Signature(
        anchor="No module named",
        pattern=(
            r"No module named '(?:transformers|peft|diffusers|accelerate"
            r"|huggingface_hub|datasets)\.(?!deepspeed)[\w.]+'"
        ),
        examples=("ModuleNotFoundError: No module named 'transformers.models.llava'",),
        not_examples=("No module named 'transformers.deepspeed'",),
        weight=50,
    ),
    Signature(
        anchor=("distutils",),
        pattern=(r"No module named 'distutils|module 'distutils' has no attribute 'version'"),
        examples=("AttributeError: module 'distutils' has no attribute 'version'",),
        not_examples=("distutils is deprecated",),
        weight=55,
    ),
)
