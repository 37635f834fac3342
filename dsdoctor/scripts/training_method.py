"""Which parameters a command trains: all of them, adapters, or not known.

What cannot be told from options and source is not known: a script may freeze parameters, train with
another optimizer, or only evaluate. A word that speaks of such a thing anywhere in it is enough.

Sources, read 2026-11-30: transformers 4.30 to 5.24 training_args.py and examples/pytorch; trl 0.9
to 1.6 trainer/model_config.py; LLaMA-Factory 0.9 hparams/finetuning_args.py; ms-swift 2.0 to 4.2
arguments; axolotl 0.8 to 0.19 utils/schemas.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Mapping, Sequence

from dsdoctor.framework import packages_in
from dsdoctor.lazy_regex import lazy
from dsdoctor.scripts.reached_words import falsy_options, reached

FULL, LORA, UNKNOWN = "full", "lora", ""

#: Options that choose adapters if they are on.
_SWITCHES = frozenset(
    {"use_peft", "use_lora", "use_qlora", "lora_enable", "enable_lora", "qlora", "lora", "peft"}
)
#: Options whose value is the method (LLaMA-Factory, ms-swift, axolotl).
_CHOICES = frozenset({"finetuning_type", "tuner_type", "train_type", "sft_type", "adapter"})
_ADAPTERS = frozenset({"lora", "qlora", "dora"})
#: What a trainer does without such an option; TRL's own command and axolotl train everything.
_DEFAULTS = {"llamafactory-cli": LORA, "swift": LORA, "axolotl": FULL, "trl": FULL}
#: Commands of these trainers that train.
_TRAINS = frozenset({"train", "sft", "pt", "rlhf", "dpo", "kto", "orpo"})
#: What a word of an option or script may mean: fewer parameters are trained, or in fewer bits.
_FEWER = lazy(
    r"lora|peft|adapter|[48]_?bit|quant|\bbnb|bitsandbytes|requires_grad|freez|frozen|galore"
    r"|badam|lomo|lisa|unsloth|prompt_?tun|prefix_?tun|\bia3\b|apollo",
    re.IGNORECASE,
)
#: Optimizers that keep less for each parameter than Adam does.
_SMALLER = lazy(
    r"adafactor|\bsgd\b|\blion\b|muon|adam_?mini|sophia|shampoo|schedule_?free|adalomo|\bcame\b",
    re.IGNORECASE,
)
#: What divides a model in other ways than ZeRO.
_DIVIDED = lazy(
    r"tensor_?(?:model_?)?parallel|pipeline_?(?:model_?)?parallel|PipelineModule|\b[tp]p_size|autotp"
    r"|megatron|fsdp|\bmpu\b|expert_?parallel",
    re.IGNORECASE,
)
#: Options that give a model another size than its config states.
_RESIZED = lazy(r"config_overrides|config_name|num_hidden_layers|n_layer|hidden_size")
#: The same as an argument or attribute in a script.
_SIZES = frozenset(
    {"num_hidden_layers", "num_layers", "n_layer", "n_layers", "hidden_size", "n_embd", "layers"}
)
#: Classes of a model without the head of a language model, or with another one.
_OTHER_HEAD = lazy(r"Classification|Reward(?:Trainer|Config)|QuestionAnswering|\bAutoModel\b")
#: What sets an optimizer in a script.
_OPTIMIZER = frozenset({"optim", "optimizer", "optimizers", "optimizer_cls_and_kwargs"})
#: What a script with TRL's `ModelConfig` calls whatever its options; they decide, and are off
#: unless they are passed.
_TRL = frozenset(
    {"get_peft_config", "peft_config", "get_quantization_config", "quantization_config",
     "get_kbit_device_map"}
)  # fmt: skip
#: Values that transformers' `--optim` has for Adam with states in 32 bits.
_ADAM = frozenset({"", "adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused"})
#: Values that turn an option off; a switch has none.
OFF = frozenset({"0", "false", "no", "none", "null"})
#: Packages that do not decide which parameters of a model are trained, beside Python's own.
_NEUTRAL = frozenset(
    {"torch", "torchvision", "torchaudio", "transformers", "trl", "datasets", "accelerate",
     "deepspeed", "evaluate", "numpy", "pandas", "scipy", "sklearn", "pyarrow", "tqdm", "wandb",
     "mlflow", "swanlab", "tensorboard", "tensorboardX", "yaml", "omegaconf", "hydra", "dotenv",
     "fire", "click", "rich", "loguru", "packaging", "safetensors", "sentencepiece", "tokenizers",
     "tiktoken", "huggingface_hub", "modelscope", "nltk", "jieba", "rouge", "rouge_score",
     "rouge_chinese", "sacrebleu", "matplotlib", "PIL", "cv2", "einops", "psutil", "requests",
     "jinja2", "flash_attn", "liger_kernel", "orjson", "ujson", "jsonlines", "peft",
     "bitsandbytes", "xformers", "colorlog"}
)  # fmt: skip


def of_options(values: Mapping[str, str]) -> str | None:
    """The method that options choose by themselves; None = they do not.

    >>> of_options({"use_peft": "true"}), of_options({"finetuning_type": "full"})
    ('lora', 'full')
    >>> of_options({"finetuning_type": "freeze"}), of_options({"lr": "1e-4"})
    ('', None)
    """
    chosen = [value.lower() for name, value in values.items() if name in _CHOICES]
    if chosen and chosen[0] not in {"", *OFF}:
        return LORA if chosen[0] in _ADAPTERS else FULL if chosen[0] == "full" else UNKNOWN
    switches = [value.lower() for name, value in values.items() if name in _SWITCHES]
    if any(value not in OFF for value in switches):
        return LORA
    return None


def _are_plain(values: Mapping[str, str], *, own_optimizer: bool) -> bool:
    """Whether no option says that less is trained, with another optimizer, or divided otherwise.

    Args:
        values: the options.
        own_optimizer: DeepSpeed's config contains the optimizer.
    """
    for name, value in values.items():
        if name in _CHOICES or name in _SWITCHES or value.lower() in OFF:
            continue
        if _FEWER.search(name) or _DIVIDED.search(name) or _RESIZED.search(name):
            return False
    return own_optimizer or values.get("optim", "").lower() in _ADAM


def of_trainer(
    program: str, words: Sequence[str], values: Mapping[str, str], *, own_optimizer: bool
) -> str:
    """The method of a trainer that has its own command.

    Args:
        program: `llamafactory-cli`, `swift`, `axolotl` or `trl`.
        words: its arguments; the first one is what it does.
        values: its options, on the command line and in its YAML.
        own_optimizer: DeepSpeed's config contains the optimizer.

    >>> of_trainer("swift", ["sft"], {"train_type": "full"}, own_optimizer=False)
    'full'
    >>> of_trainer("swift", ["sft"], {}, own_optimizer=False)
    'lora'
    >>> of_trainer("llamafactory-cli", ["export"], {}, own_optimizer=False)
    ''
    """
    if not words or words[0] not in _TRAINS or values.get("stage") in ("rm", "ppo"):
        return UNKNOWN
    method = of_options(values)
    method = _DEFAULTS.get(program, UNKNOWN) if method is None else method
    if method == FULL and not _are_plain(values, own_optimizer=own_optimizer):
        return UNKNOWN
    return method


def of_script(
    trees: Sequence[ast.Module],
    own: Collection[str],
    values: Mapping[str, str],
    *,
    own_optimizer: bool,
) -> str:
    r"""The method of a script with transformers' Trainer, or one derived from it.

    Args:
        trees: the script, and the modules next to it.
        own: names of those modules.
        values: the options of the command.
        own_optimizer: DeepSpeed's config contains the optimizer.

    >>> tree = ast.parse("from transformers import Trainer\nTrainer(model=m, args=a).train()\n")
    >>> of_script([tree], [], {}, own_optimizer=False)
    'full'
    >>> of_script([tree, ast.parse("p.requires_grad = False")], [], {}, own_optimizer=False)
    ''
    """
    if of_options(values) == LORA:
        return LORA
    if not _are_plain(values, own_optimizer=own_optimizer):
        return UNKNOWN
    off = falsy_options(trees) | {"do_train"}

    def is_off(name: str) -> bool:
        return values.get(name, "false").lower() in OFF and (name in off or name in values)

    words = reached(trees, is_off)
    if "train" not in words.called or not any(name.endswith("Trainer") for name in words.called):
        return UNKNOWN
    of_trl = _TRL if words.used & {"ModelConfig"} else frozenset()
    used = " ".join(words.used - of_trl)
    if _FEWER.search(used) or _DIVIDED.search(used) or _OTHER_HEAD.search(used):
        return UNKNOWN
    if words.assigned & _SIZES:
        return UNKNOWN
    if not own_optimizer and (words.assigned & _OPTIMIZER or _SMALLER.search(used)):
        return UNKNOWN
    known = _NEUTRAL | sys.stdlib_module_names | set(own)
    return FULL if all(packages_in(tree) - {""} <= known for tree in trees) else UNKNOWN
