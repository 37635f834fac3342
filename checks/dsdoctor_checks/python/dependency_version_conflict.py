"""Installed packages do not satisfy each other's requirements.

## Why it matters
pip lets a later install break an earlier one and prints only a warning. The result fails at import,
or later, when code runs that needs the other version.

## What to do
Install a version that satisfies the requirement, preferably all packages in one `pip install`. Then
run `pip check`.

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
    Level,
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
#: Packages whose missing requirements stop the job at import.
VITAL = ("torch", "deepspeed")


@check(CONDITION)
def requirements_are_met(
    packages: Packages,
    patient: Patient,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges each requirement that applies; a missing package only if an import failed."""
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


HINT = "upgrade the older of the two packages that the error names: `python -m pip install -U NAME`"

SIGNATURES = (
    Signature(
        pattern=r"cannot import name '\w+' from 'huggingface_hub(?:\.[\w.]+)?'",
        examples=("ImportError: cannot import name 'cached_download' from 'huggingface_hub'",),
        not_examples=("import name 'cached_download' from 'huggingface_hub'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'transformers(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers' (/x/transformers/__init__.py)",
        ),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'peft(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'peft'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'diffusers(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'diffusers'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'accelerate(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'accelerate'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'pydantic(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'model_validator' from 'pydantic' (/opt/extra/pydantic-1.10.13/pydantic/__init__.cpython-311-x86_64-linux-gnu.so)",
        ),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'tokenizers(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'tokenizers'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'datasets(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'datasets'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'numpy(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'numpy'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'scipy(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'scipy'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'trl(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'trl'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'typing_extensions(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'typing_extensions'",),
        not_examples=("import name 'name' from 'typing_extensions'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'click(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'click'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'packaging(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'packaging'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'torchvision(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'torchvision'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'timm(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'timm'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'setuptools(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'setuptools'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'jinja2(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'jinja2'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'markupsafe(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'markupsafe'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'urllib3(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'urllib3'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'charset_normalizer(?:\.[\w.]+)?'",
        examples=("cannot import name 'name' from 'charset_normalizer'",),
        not_examples=("import name 'name' from 'charset_normalizer'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'sklearn(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'sklearn'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'pytorch_lightning(?:\.[\w.]+)?'",
        examples=("cannot import name 'name' from 'pytorch_lightning'",),
        not_examples=("import name 'name' from 'pytorch_lightning'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'pkg_resources(?:\.[\w.]+)?'",
        examples=("cannot import name 'name' from 'pkg_resources'",),
        not_examples=("import name 'name' from 'pkg_resources'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'importlib_metadata(?:\.[\w.]+)?'",
        examples=("cannot import name 'name' from 'importlib_metadata'",),
        not_examples=("import name 'name' from 'importlib_metadata'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'tensorflow(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'tensorflow'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'google(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'google'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'keras(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'keras'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'requests(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'requests'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'collections(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'collections'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'optimum(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'optimum'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'auto_gptq(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'auto_gptq'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'gradio\w*(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'gradioname'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'fsspec(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'fsspec'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'pyarrow(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'pyarrow'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'lightning\w*(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'lightningname'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'torchmetrics(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'torchmetrics'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'torchtext(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'torchtext'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'xformers(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'xformers'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'vllm(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'vllm'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'evaluate(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'evaluate'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'sentence_transformers(?:\.[\w.]+)?'",
        examples=("cannot import name 'name' from 'sentence_transformers'",),
        not_examples=("import name 'name' from 'sentence_transformers'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'safetensors(?:\.[\w.]+)?'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=("cannot import name 'name' from 'safetensors'",),
        not_examples=("cannot import name 'log' from 'torch.x'",),
        not_near=("integrations.deepspeed", "transformers.deepspeed"),
    ),
    Signature(
        pattern="is required for a normal functioning of this module, but found",
        source="transformers 5.23.0 utils/versions.py",
        examples=(
            "ImportError: tokenizers>=0.14 is required for a normal functioning of this module, but found tokenizers==0.13",
            "ImportError: accelerate>=0.26.0 is required for a normal functioning of this module, but found accelerate==0.21.0.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No module named 'pkg_resources'|pkg_resources\.(?:extern\S*)?(?:DistributionNotFound|VersionConflict|ContextualVersionConflict)",
        examples=(
            "ModuleNotFoundError: No module named 'pkg_resources'",
            "pkg_resources.ContextualVersionConflict: (tokenizers 0.19.1 (/x), Requirement.parse('tokenizers<0.19'), {'transformers'})",
        ),
        not_examples=("pkg_resources. is fine",),
    ),
    Signature(
        pattern=r"pydantic\S*\.(?:PydanticUserError|PydanticImportError)|PydanticUserError|has been moved to the `pydantic-settings`|`BaseSettings` has been moved",
        examples=(
            "pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package",
            "pydantic.errors.PydanticUserError: If you use `@root_validator` with pre=False (the default) you MUST specify `skip_on_failure=True`.",
        ),
        not_examples=(".PydanticImportError is fine",),
    ),
    Signature(
        pattern="operator torchvision::nms does not exist",
        examples=(
            "RuntimeError: operator torchvision::nms does not exist",
            "    RuntimeError: operator torchvision::nms does not exist",
        ),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="Detected that PyTorch and torch(?:vision|audio) were compiled with different",
        examples=(
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
            "RuntimeError: Detected that PyTorch and torchaudio were compiled with different CUDA versions.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Weights only load failed",
        source="torch 2.13.0 serialization.py",
        examples=(
            "_pickle.UnpicklingError: Weights only load failed.",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
        ),
        level=Level.WEAK,
        near=("Unsupported global", "Unsupported class", "not an allowed global"),
    ),
    Signature(
        pattern=r"(?:^|\s)\S+ \S+ (?:requires|has requirement) \S+.{0,60}, but you(?: have|'ll have)|requires \S+ .{0,60}which is incompatible",
        examples=(
            "ERROR: peft 0.9 requires transformers>=4.40, but you have transformers 4.30 which is incompatible.",
            "ERROR: tensorflow 2.4.1 has requirement numpy~=1.19.2, but you'll have numpy 1.24.1 which is incompatible.",
        ),
        not_examples=("transformers>=4.40, but you have transformers 4.30 which is incompatible.",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"\b(?:\w{0,40}(?:Trainer|TrainingArguments|ForCausalLM|ForConditionalGeneration)|LoraConfig|from_pretrained|DPOConfig|SFTConfig|BitsAndBytesConfig|GenerationConfig|PeftConfig|AdamW|Llama\w*|Qwen\w*)(?:\.__init__)?\(\) got an unexpected keyword argument",
        examples=(
            "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'corda_config'",
            "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'",
            "TypeError: Qwen2ForCausalLM.__init__() got an unexpected keyword argument 'use_flash_attention_2'",
            "from_pretrained() got an unexpected keyword argument",
            "DPOConfig() got an unexpected keyword argument",
            "SFTConfig() got an unexpected keyword argument",
            "BitsAndBytesConfig() got an unexpected keyword argument",
            "GenerationConfig() got an unexpected keyword argument",
            "PeftConfig() got an unexpected keyword argument",
            "AdamW() got an unexpected keyword argument",
            "Llamaname() got an unexpected keyword argument",
        ),
        not_examples=("foo() got an unexpected keyword argument 'x'",),
    ),
    Signature(
        pattern=r"No module named '(?:transformers|peft|diffusers|accelerate|huggingface_hub|datasets)\.(?!deepspeed)[\w.]+'",
        examples=(
            "ModuleNotFoundError: No module named 'transformers.models.llava'",
            "ModuleNotFoundError: No module named 'huggingface_hub.inference._text_generation'",
            "No module named 'peft.name'",
            "No module named 'diffusers.name'",
            "No module named 'accelerate.name'",
            "No module named 'datasets.name'",
        ),
        not_examples=("No module named 'transformers.deepspeed'",),
    ),
    Signature(
        pattern="No module named 'distutils|module 'distutils' has no attribute 'version'",
        examples=(
            "AttributeError: module 'distutils' has no attribute 'version'",
            "ModuleNotFoundError: No module named 'distutils'",
        ),
    ),
    Signature(
        pattern="requires (?:the )?`(?:accelerate|transformers)[><=]",
        examples=(
            "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.26.0`: Please run `pip install transformers[torch]`",
            "requires `transformers>",
        ),
    ),
    Signature(
        pattern="but Transformers does not recognize this architecture",
        source="transformers 5.23.0 models/auto/configuration_auto.py",
        examples=(
            "ValueError: The checkpoint you are trying to load has model type `qwen2_vl` but Transformers does not recognize this architecture.",
        ),
    ),
    Signature(
        pattern=r"Tokenizer class \w+ does not exist or is not currently imported",
        examples=(
            "ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.",
        ),
        not_examples=("class Qwen2Tokenizer does not exist or is not currently imported.",),
    ),
    Signature(
        pattern="did not match any variant of untagged enum",
        examples=(
            "Exception: data did not match any variant of untagged enum PyPreTokenizerTypeWrapper at line 78 column 3",
        ),
    ),
    Signature(
        pattern="must be a dictionary with (?:with )?two fields",
        examples=("must be a dictionary with two fields",),
    ),
    Signature(
        pattern="'DynamicCache' object has no attribute",
        examples=("'DynamicCache' object has no attribute",),
    ),
    Signature(
        pattern="unexpected keyword argument 'num_items_in_batch'",
        examples=("unexpected keyword argument 'num_items_in_batch'",),
    ),
    Signature(
        pattern="module 'numpy' has no attribute '(?:float|int|bool|object|complex|str|long|typeDict|asscalar)'",
        examples=(
            "AttributeError: module 'numpy' has no attribute 'bool'.",
            "module 'numpy' has no attribute 'float'",
            "module 'numpy' has no attribute 'int'",
            "module 'numpy' has no attribute 'object'",
            "module 'numpy' has no attribute 'complex'",
            "module 'numpy' has no attribute 'str'",
            "module 'numpy' has no attribute 'long'",
            "module 'numpy' has no attribute 'typeDict'",
            "module 'numpy' has no attribute 'asscalar'",
        ),
    ),
    Signature(
        pattern="has no attribute '(?:ANTIALIAS|ImpImporter|formatargspec)'",
        examples=(
            "has no attribute 'ANTIALIAS'",
            "has no attribute 'ImpImporter'",
            "has no attribute 'formatargspec'",
        ),
    ),
    Signature(
        pattern=r"`pydantic:\w+` has been removed in V2",
        examples=(
            "pydantic.errors.PydanticImportError: `pydantic:parse_raw_as` has been removed in V2.",
        ),
        not_examples=("` has been removed in V2 is fine",),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from '(?!torch\b|deepspeed\b|triton\b)[\w.]+' \(\S*(?:site|dist)-packages/",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'builder' from 'google.protobuf.internal' (/x/lib/python3.8/site-packages/google/protobuf/internal/__init__.py)",
            "ImportError: cannot import name 'Mapping' from 'jinja2.utils' (/x/dist-packages/jinja2/utils.py)",
        ),
        not_examples=(
            "ImportError: cannot import name 'helper' from 'mylib' (/home/me/project/mylib.py)",
            "ImportError: cannot import name 'log' from 'torch.distributed' (/x/site-packages/torch/distributed/__init__.py)",
        ),
        level=Level.WEAK,
        not_near=("integrations.deepspeed", "transformers.deepspeed", "partially initialized"),
    ),
    Signature(
        pattern=r"^KeyError: '(?:llama|mistral|mixtral|qwen\w*|gemma\w*|phi\w*|falcon|baichuan|chatglm|internlm\w*|deepseek\w*|mamba|starcoder\w*|minicpm\w*)'",
        examples=(
            "KeyError: 'qwen2'",
            "KeyError: 'mistral'",
            "KeyError: 'llama'",
            "KeyError: 'mixtral'",
            "KeyError: 'gemmaname'",
            "KeyError: 'phiname'",
            "KeyError: 'falcon'",
            "KeyError: 'baichuan'",
            "KeyError: 'chatglm'",
            "KeyError: 'internlmname'",
            "KeyError: 'deepseekname'",
            "KeyError: 'mamba'",
            "KeyError: 'starcodername'",
            "KeyError: 'minicpmname'",
        ),
        not_examples=("KeyError: 'label'",),
        near=("configuration_auto.py", "CONFIG_MAPPING", "auto_factory.py"),
    ),
    Signature(
        pattern=r"module 'torch[\w.]*' has no attribute|_set_gradient_checkpointing\(\) got an unexpected|Tokenizer(?:Fast)?' object has no attribute",
        examples=(
            "AttributeError: module 'torch.utils._pytree' has no attribute 'register_pytree_node'",
            "TypeError: ChatGLMPreTrainedModel._set_gradient_checkpointing() got an unexpected keyword argument 'enable'",
            "AttributeError: 'ChatGLMTokenizer' object has no attribute 'sp_tokenizer'",
        ),
        not_examples=("AttributeError: module 'deepspeed' has no attribute 'initialize'",),
        level=Level.WEAK,
        near=("site-packages", "dist-packages", "transformers", "Tokenizer'", "_set_gradient"),
        not_near=("/deepspeed/", "torch._C"),
    ),
    Signature(
        pattern=r"from partially initialized module '(?:transformers|peft|accelerate|trl|datasets|diffusers|huggingface_hub|tokenizers|pydantic|numpy|scipy|sklearn|pandas|torchvision|safetensors|optimum|sentence_transformers|evaluate|bitsandbytes|timm|gradio)[\w.]*'",
        examples=(
            "ImportError: cannot import name 'PeftModel' from partially initialized module 'peft' (most likely due to a circular import)",
            "from partially initialized module 'transformersname'",
            "from partially initialized module 'acceleratename'",
            "from partially initialized module 'trlname'",
            "from partially initialized module 'datasetsname'",
            "from partially initialized module 'diffusersname'",
            "from partially initialized module 'huggingface_hubname'",
            "from partially initialized module 'tokenizersname'",
            "from partially initialized module 'pydanticname'",
            "from partially initialized module 'numpyname'",
            "from partially initialized module 'scipyname'",
            "from partially initialized module 'sklearnname'",
            "from partially initialized module 'pandasname'",
            "from partially initialized module 'torchvisionname'",
            "from partially initialized module 'safetensorsname'",
            "from partially initialized module 'optimumname'",
            "from partially initialized module 'sentence_transformersname'",
            "from partially initialized module 'evaluatename'",
            "from partially initialized module 'bitsandbytesname'",
            "from partially initialized module 'timmname'",
            "from partially initialized module 'gradioname'",
        ),
        not_examples=("from partially initialized module 'accelerate is fine",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="partially initialized module '(?:transformers|peft|accelerate|trl|datasets|diffusers|huggingface_hub|tokenizers|pydantic|numpy|scipy|sklearn|pandas|torchvision|safetensors|optimum|sentence_transformers|evaluate|bitsandbytes|timm|gradio)' has no attribute",
        examples=(
            "AttributeError: partially initialized module 'datasets' has no attribute 'utils' (most likely due to a circular import)",
            "partially initialized module 'transformers' has no attribute",
            "partially initialized module 'peft' has no attribute",
            "partially initialized module 'accelerate' has no attribute",
            "partially initialized module 'trl' has no attribute",
            "partially initialized module 'diffusers' has no attribute",
            "partially initialized module 'huggingface_hub' has no attribute",
            "partially initialized module 'tokenizers' has no attribute",
            "partially initialized module 'pydantic' has no attribute",
            "partially initialized module 'numpy' has no attribute",
            "partially initialized module 'scipy' has no attribute",
            "partially initialized module 'sklearn' has no attribute",
            "partially initialized module 'pandas' has no attribute",
            "partially initialized module 'torchvision' has no attribute",
            "partially initialized module 'safetensors' has no attribute",
            "partially initialized module 'optimum' has no attribute",
            "partially initialized module 'sentence_transformers' has no attribute",
            "partially initialized module 'evaluate' has no attribute",
            "partially initialized module 'bitsandbytes' has no attribute",
            "partially initialized module 'timm' has no attribute",
            "partially initialized module 'gradio' has no attribute",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"cannot import name '\w+' from '(?:transformers|peft|accelerate|trl|datasets|diffusers|huggingface_hub|tokenizers|pydantic|numpy|scipy|sklearn|pandas|torchvision|safetensors|optimum|sentence_transformers|evaluate|bitsandbytes|timm|gradio)[\w.]*' \(unknown location\)",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'Trainer' from 'transformers' (unknown location)",
            "cannot import name 'name' from 'peftname' (unknown location)",
            "cannot import name 'name' from 'acceleratename' (unknown location)",
            "cannot import name 'name' from 'trlname' (unknown location)",
            "cannot import name 'name' from 'datasetsname' (unknown location)",
            "cannot import name 'name' from 'diffusersname' (unknown location)",
            "cannot import name 'name' from 'huggingface_hubname' (unknown location)",
            "cannot import name 'name' from 'tokenizersname' (unknown location)",
            "cannot import name 'name' from 'pydanticname' (unknown location)",
            "cannot import name 'name' from 'numpyname' (unknown location)",
            "cannot import name 'name' from 'scipyname' (unknown location)",
            "cannot import name 'name' from 'sklearnname' (unknown location)",
            "cannot import name 'name' from 'pandasname' (unknown location)",
            "cannot import name 'name' from 'torchvisionname' (unknown location)",
            "cannot import name 'name' from 'safetensorsname' (unknown location)",
            "cannot import name 'name' from 'optimumname' (unknown location)",
            "cannot import name 'name' from 'sentence_transformersname' (unknown location)",
            "cannot import name 'name' from 'evaluatename' (unknown location)",
            "cannot import name 'name' from 'bitsandbytesname' (unknown location)",
            "cannot import name 'name' from 'timmname' (unknown location)",
            "cannot import name 'name' from 'gradioname' (unknown location)",
        ),
        not_examples=(
            "ImportError: cannot import name 'f' from partially initialized module 'utils' (most likely due to a circular import)",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"'(?:Adam\w{0,20}|\w{0,20}Adam|Lion|Adafactor|Adagrad|SGD|RMSprop|Fused\w{1,20}|\w{0,30}Optimizer\w{0,20})' object has no attribute '(?:train|eval)'|'Lightning\w{0,20}Module\w{0,20}' object has no attribute '_\w",
        examples=(
            "AttributeError: 'AdamW' object has no attribute 'train'",
            "AttributeError: 'Lion' object has no attribute 'eval'",
            "AttributeError: 'LightningParallelModule' object has no attribute '_buffers'",
        ),
        not_examples=(
            "AttributeError: 'MyDataset' object has no attribute 'train'",
            "AttributeError: 'Net' object has no attribute '_head'",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"No module named '(?:torch|flash_attn|torchvision|torchaudio|trl|tokenizers|safetensors|pydantic|numpy|scipy|sklearn|pandas|bitsandbytes|lightning|pytorch_lightning|timm|gradio|optimum|evaluate|vllm|mmengine|mmcv|google\.protobuf)\.[\w.]+'|'torch\.(?:dtype|device|Tensor|Size)' object has no attribute",
        examples=(
            "ModuleNotFoundError: No module named 'torchvision.transforms.v2'",
            "ModuleNotFoundError: No module named 'numpy._core'",
            "AttributeError: 'torch.dtype' object has no attribute 'itemsize'",
        ),
        not_examples=("No module named 'bitsandbytes. is fine",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"^ImportError: .{0,160}\b(?:requires?|needs?|[Pp]lease (?:install|upgrade|update|run)|at least|too old|not compatible|incompatible)\b.{0,160}(?:[<>=~]=|version|upgrade|\d\.\d)",
        examples=(
            "ImportError: This loader requires safetensors>=0.4.1",
            "ImportError: the installed kernels package is too old, please upgrade it to version 0.9",
            "ImportError: need ... <=",
            "ImportError: at least ... <=",
            "ImportError: not compatible ... <=",
            "ImportError: incompatible ... <=",
        ),
        not_examples=("ImportError: libcudart.so.12: cannot open shared object file",),
        level=Level.HINT,
        not_near=("deepspeed", "DeepSpeed"),
    ),
    Signature(
        pattern="Error: Descriptors cannot (?:not )?be created directly",
        examples=("TypeError: Descriptors cannot be created directly.",),
    ),
    Signature(
        pattern="Keras 3, but this is not yet",
        examples=("Keras 3, but this is not yet",),
    ),
    Signature(
        pattern="LocalFileSystem is not supported",
        examples=(
            "NotImplementedError: Loading a dataset cached in a LocalFileSystem is not supported.",
        ),
    ),
    Signature(
        pattern="no validator found for <",
        examples=(
            "RuntimeError: no validator found for <class 'type'>, see `arbitrary_types_allowed` in Config",
        ),
    ),
    Signature(
        pattern="unable to infer type for attribute",
        examples=("unable to infer type for attribute",),
    ),
    Signature(
        pattern="only supports OpenSSL",
        examples=("only supports OpenSSL",),
    ),
    Signature(
        pattern="'X509_V_FLAG",
        examples=("'X509_V_FLAG",),
    ),
    Signature(
        pattern="Error: .?rope_scaling.{0,40} (?:should|must) be a dict",
        examples=(
            "RuntimeError: rope_scaling ...  should be a dict",
            "RuntimeError: rope_scaling ...  must be a dict",
        ),
        not_examples=("rope_scaling ...  should be a dict",),
    ),
    Signature(
        pattern="only be an entire path component",
        examples=("only be an entire path component",),
    ),
    Signature(
        pattern="Only a single TORCH_LIBRARY",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("Only a single TORCH_LIBRARY",),
    ),
    Signature(
        pattern="has no attribute '(?:DictValue|LINEAR)'",
        examples=(
            "AttributeError: module 'PIL.Image' has no attribute 'LINEAR'",
            "has no attribute 'DictValue'",
        ),
    ),
    Signature(
        pattern="Error: .{0,60} is not supported on Python 3",
        source="torch 2.13.0 __init__.py",
        examples=("RuntimeError: Dynamo is not supported on Python 3.12+",),
        not_examples=("rclone is not supported on Python 3.6, skipped",),
    ),
    Signature(
        pattern="have conflicting dependencies",
        examples=("have conflicting dependencies",),
    ),
    Signature(
        pattern="ResolutionImpossible",
        examples=("ResolutionImpossible",),
    ),
    Signature(
        pattern=r"issubclass\(\) arg 1 must be a class",
        examples=("issubclass() arg 1 must be a class",),
    ),
    Signature(
        pattern="overridden by a non-annotated attribute",
        examples=("overridden by a non-annotated attribute",),
    ),
    Signature(
        pattern=r"is removed\. use `pattern`",
        examples=("is removed. use `pattern`",),
    ),
    Signature(
        pattern=r"Error: Failed to import transformers\.",
        examples=(
            "RuntimeError: Failed to import transformers.trainer because of the following error (look up to see its traceback):",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern="toggled on, but it cannot be used",
        source="transformers 5.23.0 modeling_utils.py",
        examples=(
            "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: x",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern="requires? .{0,80}(?:library|packages?) .{0,40}not found in your environment",
        source="transformers 5.23.0 dynamic_module_utils.py",
        examples=(
            "ImportError: This modeling file requires the following packages that were not found in your environment: einops. Run `pip install einops`",
            "require library not found in your environment",
        ),
        not_examples=("the file was not found in your environment",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="instantiate the backend tokenizer",
        source="transformers 5.23.0 tokenization_utils_tokenizers.py",
        examples=("instantiate the backend tokenizer",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Error: .{0,120}requires Accelerate\b",
        examples=(
            "ImportError: Using `bitsandbytes` 8-bit quantization requires Accelerate: `pip install accelerate` and the latest version of bitsandbytes: `pip install -i https://pypi.org/simple/ bitsandbytes`",
        ),
        not_examples=(
            "Using `bitsandbytes` 8-bit quantization requires Accelerate: `pip install accelerate` and the latest version of bitsandbytes: `pip install -i https://pypi.org/simple/ bitsandbytes`",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Error: .{0,160}version of [`']?(?:PEFT|peft|transformers|accelerate|trl|diffusers|datasets|tokenizers|huggingface[-_]hub|safetensors|optimum|auto[-_]gptq|autoawq|pydantic|gradio|torchao)\b.{0,60}(?:not compatible|incompatible|too (?:old|new)|outdated|not supported|unsupported)",
        examples=(
            "ValueError: The version of PEFT you are using is not compatible, please use a version that is greater than 0.18.0",
            "RuntimeError: the installed version of `trl` is too old for this recipe",
            "RuntimeError: version of peft ... not compatible",
            "RuntimeError: version of transformers ... not compatible",
            "RuntimeError: version of accelerate ... not compatible",
            "RuntimeError: version of diffusers ... not compatible",
            "RuntimeError: version of datasets ... not compatible",
            "RuntimeError: version of tokenizers ... not compatible",
            "RuntimeError: version of huggingface-hub ... not compatible",
            "RuntimeError: version of safetensors ... not compatible",
            "RuntimeError: version of optimum ... not compatible",
            "RuntimeError: version of auto-gptq ... not compatible",
            "RuntimeError: version of autoawq ... not compatible",
            "RuntimeError: version of pydantic ... not compatible",
            "RuntimeError: version of gradio ... not compatible",
            "RuntimeError: version of torchao ... not compatible",
            "RuntimeError: version of PEFT ... incompatible",
            "RuntimeError: version of PEFT ... outdated",
            "RuntimeError: version of PEFT ... not supported",
            "RuntimeError: version of PEFT ... unsupported",
        ),
        not_examples=(
            "ValueError: the version of the file is not compatible with this reader",
            "UserWarning: the version of peft that wrote this adapter is outdated",
        ),
        level=Level.WEAK,
        not_near=("bitsandbytes",),
    ),
    Signature(
        pattern=r"Error: .{0,160}[Pp]lease (?:upgrade|update) (?:your )?(?:version of )?[`']?(?:PEFT|peft|transformers|accelerate|trl|diffusers|datasets|tokenizers|huggingface[-_]hub|safetensors|optimum|auto[-_]gptq|autoawq|pydantic|gradio|torchao)\b",
        examples=(
            "ValueError: adapters of this kind are unknown here. Please upgrade `peft` to load them",
            "RuntimeError: Please update PEFT",
            "RuntimeError: Please upgrade transformers",
            "RuntimeError: Please upgrade accelerate",
            "RuntimeError: Please upgrade trl",
            "RuntimeError: Please upgrade diffusers",
            "RuntimeError: Please upgrade datasets",
            "RuntimeError: Please upgrade tokenizers",
            "RuntimeError: Please upgrade huggingface-hub",
            "RuntimeError: Please upgrade safetensors",
            "RuntimeError: Please upgrade optimum",
            "RuntimeError: Please upgrade auto-gptq",
            "RuntimeError: Please upgrade autoawq",
            "RuntimeError: Please upgrade pydantic",
            "RuntimeError: Please upgrade gradio",
            "RuntimeError: Please upgrade torchao",
        ),
        not_examples=("RuntimeError: Please update your labels before training",),
        level=Level.WEAK,
        not_near=("bitsandbytes",),
    ),
    Signature(
        pattern=r"Exception: .{0,160}version of [`']?(?:PEFT|peft|transformers|accelerate|trl|diffusers|datasets|tokenizers|huggingface[-_]hub|safetensors|optimum|auto[-_]gptq|autoawq|pydantic|gradio|torchao)\b.{0,60}(?:not compatible|incompatible|too (?:old|new)|outdated|not supported|unsupported)",
        examples=(
            "Exception: version of PEFT ... not compatible",
            "Exception: version of peft ... not compatible",
            "Exception: version of transformers ... not compatible",
            "Exception: version of accelerate ... not compatible",
            "Exception: version of trl ... not compatible",
            "Exception: version of diffusers ... not compatible",
            "Exception: version of datasets ... not compatible",
            "Exception: version of tokenizers ... not compatible",
            "Exception: version of huggingface-hub ... not compatible",
            "Exception: version of safetensors ... not compatible",
            "Exception: version of optimum ... not compatible",
            "Exception: version of auto-gptq ... not compatible",
            "Exception: version of autoawq ... not compatible",
            "Exception: version of pydantic ... not compatible",
            "Exception: version of gradio ... not compatible",
            "Exception: version of torchao ... not compatible",
            "Exception: version of PEFT ... incompatible",
            "Exception: version of PEFT ... too old",
            "Exception: version of PEFT ... outdated",
            "Exception: version of PEFT ... not supported",
            "Exception: version of PEFT ... unsupported",
        ),
        not_examples=(
            "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1, 2, 3]",
        ),
        level=Level.WEAK,
        not_near=("bitsandbytes",),
    ),
    Signature(
        pattern=r"Exception: .{0,160}[Pp]lease (?:upgrade|update) (?:your )?(?:version of )?[`']?(?:PEFT|peft|transformers|accelerate|trl|diffusers|datasets|tokenizers|huggingface[-_]hub|safetensors|optimum|auto[-_]gptq|autoawq|pydantic|gradio|torchao)\b",
        examples=(
            "Exception: Please upgrade PEFT",
            "Exception: Please update PEFT",
            "Exception: Please upgrade peft",
            "Exception: Please upgrade transformers",
            "Exception: Please upgrade accelerate",
            "Exception: Please upgrade trl",
            "Exception: Please upgrade diffusers",
            "Exception: Please upgrade datasets",
            "Exception: Please upgrade tokenizers",
            "Exception: Please upgrade huggingface-hub",
            "Exception: Please upgrade safetensors",
            "Exception: Please upgrade optimum",
            "Exception: Please upgrade auto-gptq",
            "Exception: Please upgrade autoawq",
            "Exception: Please upgrade pydantic",
            "Exception: Please upgrade gradio",
            "Exception: Please upgrade torchao",
        ),
        not_examples=("RuntimeError: Please update your labels before training",),
        level=Level.WEAK,
        not_near=("bitsandbytes",),
    ),
    Signature(
        pattern=r"Could not find a version that satisfies the requirement (?!deepspeed|triton)\S+.{0,80}\(from versions: \d|mutable default <class '(?:fairseq|hydra|omegaconf|mmengine|tensordict|flax|nemo|megatron)\b|\b(?:Async|Sync)?(?:Client|HttpxClientWrapper)\.__init__\(\) got an unexpected keyword argument 'proxies'",
        examples=(
            "ERROR: Could not find a version that satisfies the requirement torchtext==0.13.1 (from versions: 0.1.1, 0.17.2, 0.18.0)",
            "ValueError: mutable default <class 'fairseq.dataclass.configs.CommonConfig'> for field common is not allowed: use default_factory",
            "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'",
        ),
        not_examples=(
            "ERROR: Could not find a version that satisfies the requirement my-lab-tools (from versions: none)",
        ),
        level=Level.HINT,
    ),
)
