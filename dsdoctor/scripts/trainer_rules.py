"""Options of transformers' `TrainingArguments` that do not go together.

Source: `__post_init__` and `_validate_args` of training_args.py, transformers 4.11 to 5.24, read
2026-11-30. They run while `HfArgumentParser` fills the class, in every rank.
"""

from __future__ import annotations

from collections.abc import Mapping

#: What `string_to_bool` of hf_argparser.py reads as true; an option without a value is true too.
_TRUE = frozenset({"", "1", "t", "true", "y", "yes"})


def refusal(options: Mapping[str, str]) -> str:
    """Why the options raise `ValueError`, close to its words; "" = they do not, as far as is known.

    Args:
        options: as the command passes them, the last of each, `_` for `-`; what is missing has its
            default.

    >>> refusal({"fp16": "", "bf16": "True"}), refusal({"fp16": "false", "bf16": ""})
    ('fp16 and bf16 are both on, but they are alternatives', '')
    """

    def on(name: str) -> bool:
        return options.get(name, "false").lower() in _TRUE

    evaluates = (options.get("eval_strategy") or options.get("evaluation_strategy") or "no").lower()
    saves = options.get("save_strategy", "steps").lower()
    if on("fp16") and on("bf16"):
        return "fp16 and bf16 are both on, but they are alternatives"
    if on("load_best_model_at_end") and saves != "best":
        if evaluates != saves:
            return (
                "--load_best_model_at_end requires the save and eval strategy to match;"
                f" save_strategy is {saves}, eval_strategy is {evaluates}"
            )
        of = "logging_steps" if options.get("eval_steps", "0") == "0" else "eval_steps"
        every = _steps(options, of, 500)
        save = _steps(options, "save_steps", 500)
        if evaluates == "steps" and every and save and save % every:
            return (
                "--load_best_model_at_end requires the saving steps to be a round multiple of the"
                f" evaluation steps, but found {save}, which is not a round multiple of {every}"
            )
    if options.get("lr_scheduler_type") == "reduce_lr_on_plateau" and evaluates == "no":
        return "lr_scheduler_type reduce_lr_on_plateau requires an eval strategy"
    workers = options.get("dataloader_num_workers", "0")
    if workers == "0" and options.get("dataloader_prefetch_factor", "").isdecimal():
        return "--dataloader_prefetch_factor can only be set when --dataloader_num_workers > 0"
    return ""


def _steps(options: Mapping[str, str], name: str, default: int = 0) -> int:
    """A number of steps; 0 for a part of the run, or what is no number."""
    value = options.get(name)
    return default if value is None else int(value) if value.isdecimal() else 0
