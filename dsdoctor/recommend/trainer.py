"""What a script of the Hugging Face Trainer needs in addition to the DeepSpeed config.

The Trainer compares the config with its own arguments, rejects differences, and fills in what is
"auto" (`HfTrainerDeepSpeedConfig.trainer_config_process` of integrations/deepspeed.py, transformers
5.23, read on 2026-11-23). So the batch and the precision are set twice, and what a user tunes,
such as the learning rate, is "auto".
"""

from __future__ import annotations

from typing import Any

from dsdoctor.recommend.setting import Setting

#: Parameters of an optimizer that the Trainer takes from its arguments.
_TUNED = frozenset({"lr", "betas", "eps", "weight_decay"})
#: Optimizers that the Trainer makes itself: value of its `--optim` (training_args.py).
_MAKES = {"adamw8bit": "adamw_bnb_8bit"}


def makes(optimizer: str) -> bool:
    """Whether the Trainer makes an optimizer that DeepSpeed cannot."""
    return optimizer in _MAKES


def config(native: dict[str, Any]) -> dict[str, Any]:
    """The DeepSpeed config of a native script, as the Trainer takes it.

    >>> config({"gradient_clipping": 1.0, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}})
    {'gradient_clipping': 'auto', 'optimizer': {'type': 'SGD', 'params': {'lr': 'auto'}}}
    """
    made = {**native, "gradient_clipping": "auto"}
    if "optimizer" in native:
        params = native["optimizer"]["params"].items()
        filled = {key: "auto" if key in _TUNED else value for key, value in params}
        made["optimizer"] = {**native["optimizer"], "params": filled}
    return made


def arguments(setting: Setting, optimizer: str) -> tuple[str, ...]:
    """Arguments of the script that must agree with the config, or that it cannot hold."""
    words: tuple[str, ...] = (
        "--per_device_train_batch_size", str(setting.micro_batch),
        "--gradient_accumulation_steps", str(setting.accumulation),
    )  # fmt: skip
    if setting.precision in ("bf16", "fp16"):
        words += (f"--{setting.precision}", "true")
    if not setting.on_gpu:  # else it refuses bf16 without a GPU
        words += ("--use_cpu", "true")
    if setting.checkpointing:
        words += ("--gradient_checkpointing", "true")
    if optimizer in _MAKES:
        words += ("--optim", _MAKES[optimizer])
    return words
