"""Settings whose value DeepSpeed looks up in a list of words.

Source: deepspeed 0.19.8 (read 2026-11-28): runtime/config.py, runtime/constants.py,
runtime/zenflow/zenflow_config.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import DsConfig


class Choice(NamedTuple):
    """What a setting accepts.

    Attributes:
        words: the values, as DeepSpeed's own message or documentation lists them.
        also: further spellings that it accepts, in some release at least.
        cased: upper and lower case differ.
        effect: what happens to another value.
    """

    words: tuple[str, ...]
    also: tuple[str, ...] = ()
    cased: bool = False
    effect: str = "`ValueError` when the config is read"


_COMMUNICATION = Choice(("fp16", "bf16", "fp32"), also=("bfp16",))
#: Spellings of `DtypeEnum` beside the short ones.
_TYPES = (
    "torch.float16", "float16", "half", "torch.float32", "float32", "float", "torch.int8", "int8",
    "torch.bfloat16", "bfloat16",
)  # fmt: skip

CHOICES = {
    "communication_data_type": _COMMUNICATION,
    "seq_parallel_communication_data_type": _COMMUNICATION,
    "torch_autocast.dtype": Choice(("bf16", "fp16", "fp32"), also=_TYPES, cased=True),
    "data_types.grad_accum_dtype": Choice(
        ("fp32", "bf16", "fp16"), also=_TYPES, cased=True, effect="`ValueError` in `initialize`"
    ),
    "gradient_allreduce_op": Choice(("mean", "sum")),
    "tensor_parallel.vocab_parallel_ce_backend": Choice(("torch", "liger"), cased=True),
    "checkpoint.tag_validation": Choice(
        ("Warn", "Ignore", "Fail"), effect="`DeepSpeedConfigError` when the config is read"
    ),
    "zero_optimization.zenflow.select_strategy": Choice(
        ("auto", "step", "epoch"), cased=True, effect="`ValidationError` when the config is read"
    ),
}


def refused_words(config: DsConfig) -> Iterator[tuple[str, str, str]]:
    """The settings with another value: key, what is expected, and the effect."""
    for key, choice in CHOICES.items():
        value = config.get(key)
        if value is None or value == "auto" or key in config.swallowed:
            continue
        known = (*choice.words, *choice.also)
        if isinstance(value, str):
            fits = value in known if choice.cased else value.lower() in map(str.lower, known)
            if fits:
                continue
        shown = [f"`{word}`" for word in choice.words]
        yield key, f"{', '.join(shown[:-1])} or {shown[-1]}", choice.effect
