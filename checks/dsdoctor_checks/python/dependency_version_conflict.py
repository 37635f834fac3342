"""Installed packages do not satisfy what others of them require.

## Why it matters
pip lets a later install break an earlier one with no more than a line of warning. The result fails
at an import, or works by luck until a line is reached that needs the other version.

## What to do
Install a version that satisfies the requirement, best all packages in one `pip install`, and run
`pip check`.

## References
- https://packaging.python.org/en/latest/specifications/dependency-specifiers/
- DeepSpeed requirements/requirements.txt
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Finding,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    warn,
)

from ._util import imports, normalized, parse_requirement

CONDITION = Condition("dependency-version-conflict", id="DSD906", scope=Scope.USER_ENV, since="0.1")
#: Whose missing requirements stop an import of the job.
VITAL = ("torch", "deepspeed")


@check(CONDITION)
def requirements_are_met(
    packages: Packages,
    patient: Patient,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges each requirement that applies; an absent package only where an import failed."""
    broken = imports(torch, deepspeed) is False
    for owner, requirements in sorted(packages.requires.items()):
        own = packages.version(owner)
        for text in requirements:
            wanted = parse_requirement(text, patient)
            if own is None or wanted is None or wanted.url:
                continue
            name = normalized(wanted.name)
            have = packages.version(name)
            if have is None:
                if not (broken and owner in VITAL):
                    continue
                what = f"`{name}` is not installed"
            else:
                try:
                    if wanted.specifier.contains(have, prereleases=True):
                        continue
                except InvalidVersion:
                    continue
                what = f"{name} {have} is installed"
            needed = f"{name}{wanted.specifier}"
            yield (fail if broken and owner in VITAL else warn)(
                f"{what}, but {owner} {own} requires `{needed}`",
                effect=f"{owner} fails at import or where it uses `{name}`",
                hint=f"run `pip install '{needed}'`, then `pip check`",
                package=name,
                version=have,
                required_by=owner,
                owner_version=own,
                requirement=needed,
            )


HINT = "align the versions in the message: `python -m pip install -U` the older of the two"

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
        examples=(
            "ImportError: cannot import name 'cached_download' from 'huggingface_hub'",
            "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers' (/x/transformers/__init__.py)",
        ),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        weight=56,
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        anchor="is required for a normal functioning",
        pattern=r"is required for a normal functioning of this module, but found",
        examples=(
            "ImportError: tokenizers>=0.14 is required for a normal functioning of this module, but found tokenizers==0.13",
            "ImportError: accelerate>=0.26.0 is required for a normal functioning of this module, but found accelerate==0.21.0.",
        ),
        not_examples=(
            "tokenizers>=0.14 is required for fast tokenizers",
            "a network is required for a normal functioning of the tracker",
        ),
        weight=62,
    ),
    Signature(
        anchor=("pkg_resources", "DistributionNotFound", "VersionConflict"),
        pattern=(
            r"No module named 'pkg_resources'|pkg_resources\.(?:extern\S*)?(?:DistributionNotFound"
            r"|VersionConflict|ContextualVersionConflict)"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'pkg_resources'",
            "pkg_resources.ContextualVersionConflict: (tokenizers 0.19.1 (/x), Requirement.parse('tokenizers<0.19'), {'transformers'})",
        ),
        not_examples=("import pkg_resources",),
        weight=58,
    ),
    Signature(
        anchor=(
            "PydanticUserError",
            "PydanticImportError",
            "PydanticDeprecatedSince",
            "pydantic",
            "`BaseSettings` has been moved",
        ),
        pattern=(
            r"pydantic\S*\.(?:PydanticUserError|PydanticImportError)|PydanticUserError"
            r"|has been moved to the `pydantic-settings`|`BaseSettings` has been moved"
        ),
        examples=(
            "pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package",
            "pydantic.errors.PydanticUserError: If you use `@root_validator` with pre=False (the default) you MUST specify `skip_on_failure=True`.",
        ),
        not_examples=("pydantic 2.5",),
        weight=58,
    ),
    Signature(
        anchor=("torchvision::nms",),
        pattern=r"operator torchvision::nms does not exist",
        examples=(
            "RuntimeError: operator torchvision::nms does not exist",
            "    RuntimeError: operator torchvision::nms does not exist",
        ),
        not_examples=("torchvision::nms registered",),
        weight=62,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        anchor=("Detected that PyTorch and torch", "were compiled with different CUDA"),
        pattern=(r"Detected that PyTorch and torch(?:vision|audio) were compiled with different"),
        examples=(
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
            "RuntimeError: Detected that PyTorch and torchaudio were compiled with different CUDA versions.",
        ),
        not_examples=(
            "Detected that PyTorch is ready",
            "Detected that PyTorch and torchvision are of one release",
        ),
        weight=64,
    ),
    Signature(
        anchor="Weights only load failed",
        pattern=r"Weights only load failed",
        examples=(
            "_pickle.UnpicklingError: Weights only load failed.",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
        ),
        not_examples=("Weights only load succeeded",),
        weight=46,
        near=("Unsupported global", "Unsupported class", "not an allowed global"),
    ),
    Signature(
        anchor=("has requirement", "which is incompatible", "incompatible with", " requires "),
        pattern=(
            r"(?:^|\s)\S+ \S+ (?:requires|has requirement) \S+.{0,60}, but you(?: have"
            r"|'ll have)|requires \S+ .{0,60}which is incompatible"
        ),
        examples=(
            "ERROR: peft 0.9 requires transformers>=4.40, but you have transformers 4.30 which is incompatible.",
            "ERROR: tensorflow 2.4.1 has requirement numpy~=1.19.2, but you'll have numpy 1.24.1 which is incompatible.",
        ),
        not_examples=(
            "which is compatible",
            "the file has requirement lines for 12 packages",
        ),
        weight=30,
    ),
    Signature(
        anchor="unexpected keyword argument",
        pattern=(
            r"\b(?:\w{0,40}(?:Trainer|TrainingArguments|ForCausalLM|ForConditionalGeneration)"
            r"|LoraConfig|from_pretrained|DPOConfig|SFTConfig|BitsAndBytesConfig"
            r"|GenerationConfig|PeftConfig|AdamW|Llama\w*|Qwen\w*)"
            r"(?:\.__init__)?\(\) got an unexpected keyword argument"
        ),
        examples=(
            "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'corda_config'",
            "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'",
            "TypeError: Qwen2ForCausalLM.__init__() got an unexpected keyword argument 'use_flash_attention_2'",
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
        examples=(
            "ModuleNotFoundError: No module named 'transformers.models.llava'",
            "ModuleNotFoundError: No module named 'huggingface_hub.inference._text_generation'",
        ),
        not_examples=("No module named 'transformers.deepspeed'",),
        weight=50,
    ),
    Signature(
        anchor=("distutils",),
        pattern=(r"No module named 'distutils|module 'distutils' has no attribute 'version'"),
        examples=(
            "AttributeError: module 'distutils' has no attribute 'version'",
            "ModuleNotFoundError: No module named 'distutils'",
        ),
        not_examples=("distutils is deprecated",),
        weight=55,
    ),
    Signature(
        anchor=(
            "requires `accelerate",
            "requires the `accelerate",
            "requires `transformers",
            "does not recognize this architecture",
            "does not exist or is not currently imported",
            "untagged enum",
            "must be a dictionary with two fields",
            "must be a dictionary with with two fields",
            "'DynamicCache' object",
            "num_items_in_batch",
            "module 'numpy' has no attribute",
            "'ANTIALIAS'",
            "'ImpImporter'",
            "has been removed in V2",
            "`BaseSettings`",
            "'Qwen2Tokenizer'",
            "no attribute 'formatargspec'",
            "requires the `transformers>",
        ),
        pattern=(
            r"requires (?:the )?`(?:accelerate|transformers)[><=]"
            r"|but Transformers does not recognize this architecture"
            r"|Tokenizer class \w+ does not exist or is not currently imported"
            r"|did not match any variant of untagged enum|must be a dictionary with (?:with )?two fields"
            r"|'DynamicCache' object has no attribute|unexpected keyword argument 'num_items_in_batch'"
            r"|module 'numpy' has no attribute '(?:float|int"
            r"|bool|object|complex|str|long|typeDict|asscalar)'"
            r"|has no attribute '(?:ANTIALIAS|ImpImporter|formatargspec)'"
            r"|`pydantic:\w+` has been removed in V2"
        ),
        examples=(
            "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.26.0`: Please run `pip install transformers[torch]`",
            "ValueError: The checkpoint you are trying to load has model type `qwen2_vl` but Transformers does not recognize this architecture.",
            "Exception: data did not match any variant of untagged enum PyPreTokenizerTypeWrapper at line 78 column 3",
            "AttributeError: module 'numpy' has no attribute 'bool'.",
        ),
        not_examples=(
            "AttributeError: module 'numpy' has no attribute 'BUFSIZE'",
            "the model uses a DynamicCache",
        ),
        weight=57,
    ),
    Signature(
        anchor="cannot import name",
        pattern=(
            r"cannot import name '\w+' from '(?!torch\b|deepspeed\b"
            r"|triton\b)[\w.]+' \(\S*(?:site|dist)-packages/"
        ),
        examples=(
            "ImportError: cannot import name 'builder' from 'google.protobuf.internal' (/x/lib/python3.8/site-packages/google/protobuf/internal/__init__.py)",
            "ImportError: cannot import name 'Mapping' from 'jinja2.utils' (/x/dist-packages/jinja2/utils.py)",
        ),
        not_examples=(
            "ImportError: cannot import name 'helper' from 'mylib' (/home/me/project/mylib.py)",
            "ImportError: cannot import name 'log' from 'torch.distributed' (/x/site-packages/torch/distributed/__init__.py)",
        ),
        weight=46,
        not_near=("integrations.deepspeed", "transformers.deepspeed", "partially initialized"),
    ),
    Signature(
        anchor=("model type", "KeyError: '"),
        pattern=(
            r"^KeyError: '(?:llama|mistral|mixtral|qwen\w*|gemma\w*"
            r"|phi\w*|falcon|baichuan|chatglm|internlm\w*|deepseek\w*"
            r"|mamba|starcoder\w*|minicpm\w*)'"
        ),
        examples=("KeyError: 'qwen2'", "KeyError: 'mistral'"),
        not_examples=("KeyError: 'label'",),
        weight=50,
        near=("configuration_auto.py", "CONFIG_MAPPING", "auto_factory.py"),
    ),
    Signature(
        anchor=(
            "module 'torch",
            "_set_gradient_checkpointing()",
            "Tokenizer' object has no attribute",
            "TokenizerFast' object has no attribute",
        ),
        pattern=(
            r"module 'torch[\w.]*' has no attribute|_set_gradient_checkpointing\(\) got an unexpected"
            r"|Tokenizer(?:Fast)?' object has no attribute"
        ),
        examples=(
            "AttributeError: module 'torch.utils._pytree' has no attribute 'register_pytree_node'",
            "TypeError: ChatGLMPreTrainedModel._set_gradient_checkpointing() got an unexpected keyword argument 'enable'",
            "AttributeError: 'ChatGLMTokenizer' object has no attribute 'sp_tokenizer'",
        ),
        not_examples=(
            "AttributeError: module 'torchtools' is missing",
            "AttributeError: 'MyTokenizerConfig' object has no attribute 'x'",
        ),
        weight=46,
        near=("site-packages", "dist-packages", "transformers", "Tokenizer'", "_set_gradient"),
        not_near=("/deepspeed/", "torch._C"),
    ),
    Signature(
        anchor=("partially initialized module", "(unknown location)"),
        pattern="from partially initialized module '(?:transformers|peft|accelerate|trl|datasets|diffusers|huggingface_hub|tokenizers|pydantic|numpy|scipy|sklearn|pandas|torchvision|safetensors|optimum|sentence_transformers|evaluate|bitsandbytes|timm|gradio)[\\w.]*'|partially initialized module '(?:transformers|peft|accelerate|trl|datasets|diffusers|huggingface_hub|tokenizers|pydantic|numpy|scipy|sklearn|pandas|torchvision|safetensors|optimum|sentence_transformers|evaluate|bitsandbytes|timm|gradio)' has no attribute|cannot import name '\\w+' from '(?:transformers|peft|accelerate|trl|datasets|diffusers|huggingface_hub|tokenizers|pydantic|numpy|scipy|sklearn|pandas|torchvision|safetensors|optimum|sentence_transformers|evaluate|bitsandbytes|timm|gradio)[\\w.]*' \\(unknown location\\)",
        examples=(
            "ImportError: cannot import name 'PeftModel' from partially initialized module 'peft' (most likely due to a circular import)",
            "ImportError: cannot import name 'Trainer' from 'transformers' (unknown location)",
            "AttributeError: partially initialized module 'datasets' has no attribute 'utils' (most likely due to a circular import)",
        ),
        not_examples=(
            "ImportError: cannot import name 'f' from partially initialized module 'utils' (most likely due to a circular import)",
        ),
        weight=44,
    ),
    Signature(
        anchor=(
            "object has no attribute 'train'",
            "object has no attribute 'eval'",
            "' object has no attribute '_",
        ),
        pattern=(
            r"'(?:Adam\w{0,20}|\w{0,20}Adam|Lion|Adafactor|Adagrad|SGD|RMSprop|Fused\w{1,20}"
            r"|\w{0,30}Optimizer\w{0,20})' object has no attribute '(?:train|eval)'"
            r"|'Lightning\w{0,20}Module\w{0,20}' object has no attribute '_\w"
        ),
        examples=(
            "AttributeError: 'AdamW' object has no attribute 'train'",
            "AttributeError: 'Lion' object has no attribute 'eval'",
            "AttributeError: 'LightningParallelModule' object has no attribute '_buffers'",
        ),
        not_examples=(
            "AttributeError: 'MyDataset' object has no attribute 'train'",
            "AttributeError: 'LightningModule' object has no attribute 'my_loss'",
            "AttributeError: 'Net' object has no attribute '_head'",
        ),
        weight=30,
    ),
    Signature(
        anchor=("No module named", "object has no attribute"),
        pattern="No module named '(?:torch|flash_attn|torchvision|torchaudio|trl|tokenizers|safetensors|pydantic|numpy|scipy|sklearn|pandas|bitsandbytes|lightning|pytorch_lightning|timm|gradio|optimum|evaluate|vllm|mmengine|mmcv|google\\.protobuf)\\.[\\w.]+'|'torch\\.(?:dtype|device|Tensor|Size)' object has no attribute",
        examples=(
            "ModuleNotFoundError: No module named 'torchvision.transforms.v2'",
            "ModuleNotFoundError: No module named 'numpy._core'",
            "AttributeError: 'torch.dtype' object has no attribute 'itemsize'",
        ),
        not_examples=("ModuleNotFoundError: No module named 'src.model'",),
        weight=32,
    ),
    Signature(
        anchor=("ImportError: ",),
        pattern="^ImportError: .{0,160}\\b(?:requires?|needs?|[Pp]lease (?:install|upgrade|update|run)|at least|too old|not compatible|incompatible)\\b.{0,160}(?:[<>=~]=|version|upgrade|\\d\\.\\d)",
        examples=(
            "ImportError: This loader requires safetensors>=0.4.1",
            "ImportError: the installed kernels package is too old, please upgrade it to version 0.9",
        ),
        not_examples=("ImportError: libcudart.so.12: cannot open shared object file",),
        weight=28,
        not_near=("deepspeed", "DeepSpeed"),
    ),
    Signature(
        anchor=(
            "Descriptors cannot",
            "Keras 3, but this is not yet",
            "LocalFileSystem is not supported",
            "no validator found for <",
            "unable to infer type for attribute",
            "only supports OpenSSL",
            "'X509_V_FLAG",
            "rope_scaling",
            "only be an entire path component",
            "Only a single TORCH_LIBRARY",
            "has no attribute 'DictValue'",
            "has no attribute 'LINEAR'",
            "is not supported on Python 3",
            "have conflicting dependencies",
            "ResolutionImpossible",
            "issubclass() arg 1 must be a class",
            "overridden by a non-annotated attribute",
            "is removed. use `pattern`",
        ),
        pattern=(
            r"Error: Descriptors cannot (?:not )?be created directly|Keras 3, but this is not yet"
            r"|LocalFileSystem is not supported|no validator found for <"
            r"|unable to infer type for attribute|only supports OpenSSL|'X509_V_FLAG"
            r"|Error: .?rope_scaling.{0,40} (?:should|must) be a dict|only be an entire path component"
            r"|Only a single TORCH_LIBRARY|has no attribute '(?:DictValue|LINEAR)'"
            r"|Error: .{0,60} is not supported on Python 3|have conflicting dependencies"
            r"|ResolutionImpossible|issubclass\(\) arg 1 must be a class"
            r"|overridden by a non-annotated attribute|is removed\. use `pattern`"
        ),
        examples=(
            "TypeError: Descriptors cannot be created directly.",
            "NotImplementedError: Loading a dataset cached in a LocalFileSystem is not supported.",
            "RuntimeError: no validator found for <class 'type'>, see `arbitrary_types_allowed` in Config",
            "AttributeError: module 'PIL.Image' has no attribute 'LINEAR'",
            "RuntimeError: Dynamo is not supported on Python 3.12+",
        ),
        not_examples=(
            "rope_scaling: linear, factor 4",
            "rclone is not supported on Python 3.6, skipped",
        ),
        weight=54,
    ),
    Signature(
        anchor=(
            "Failed to import transformers",
            "toggled on, but it cannot be used",
            "not found in your environment",
            "instantiate the backend tokenizer",
            "requires Accelerate",
        ),
        pattern=(
            r"Error: Failed to import transformers\.|toggled on, but it cannot be used"
            r"|requires? .{0,80}(?:library|packages?) .{0,40}not found in your environment"
            r"|instantiate the backend tokenizer|Error: .{0,120}requires Accelerate\b"
        ),
        examples=(
            "RuntimeError: Failed to import transformers.trainer because of the following error (look up to see its traceback):",
            "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: x",
            "ImportError: This modeling file requires the following packages that were not found in your environment: einops. Run `pip install einops`",
        ),
        not_examples=("the file was not found in your environment",),
        weight=36,
    ),
    Signature(
        anchor=(
            "version of ",
            "lease upgrade",
            "lease update",
        ),
        pattern=(
            r"(?:Error|Exception): .{0,160}(?:version of [`']?(?:PEFT|peft|transformers|accelerate|trl"
            r"|diffusers|datasets|tokenizers|huggingface[-_]hub|safetensors|optimum|auto[-_]gptq|autoawq"
            r"|pydantic|gradio|torchao)\b.{0,60}(?:not compatible|incompatible|too (?:old|new)|outdated"
            r"|not supported|unsupported)|[Pp]lease (?:upgrade|update) (?:your )?(?:version of )?[`']?(?:PEFT"
            r"|peft|transformers|accelerate|trl|diffusers|datasets|tokenizers|huggingface[-_]hub"
            r"|safetensors|optimum|auto[-_]gptq|autoawq|pydantic|gradio|torchao)\b)"
        ),
        examples=(
            "ValueError: The version of PEFT you are using is not compatible, please use a version that is greater than 0.18.0",
            "RuntimeError: the installed version of `trl` is too old for this recipe",
            "ValueError: adapters of this kind are unknown here. Please upgrade `peft` to load them",
        ),
        not_examples=(
            "ValueError: the version of the file is not compatible with this reader",
            "RuntimeError: Please update your labels before training",
            "UserWarning: the version of peft that wrote this adapter is outdated",
        ),
        weight=45,
        not_near=("bitsandbytes",),
    ),
    Signature(
        anchor=(
            "satisfies the requirement",
            "mutable default <class '",
            "unexpected keyword argument 'proxies'",
        ),
        pattern=(
            r"Could not find a version that satisfies the requirement (?!deepspeed|triton)\S+.{0,80}"
            r"\(from versions: \d"
            r"|mutable default <class '(?:fairseq|hydra|omegaconf|mmengine|tensordict|flax|nemo|megatron)\b"
            r"|\b(?:Async|Sync)?(?:Client|HttpxClientWrapper)\.__init__\(\) got an unexpected keyword"
            r" argument 'proxies'"
        ),
        examples=(
            "ERROR: Could not find a version that satisfies the requirement torchtext==0.13.1 (from versions: 0.1.1, 0.17.2, 0.18.0)",
            "ValueError: mutable default <class 'fairseq.dataclass.configs.CommonConfig'> for field common is not allowed: use default_factory",
            "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'",
        ),
        not_examples=(
            "ERROR: Could not find a version that satisfies the requirement my-lab-tools (from versions: none)",
            "ValueError: mutable default <class 'train.Options'> for field opts is not allowed: use default_factory",
            "TypeError: Crawler.__init__() got an unexpected keyword argument 'proxies'",
        ),
        weight=34,
    ),
)
