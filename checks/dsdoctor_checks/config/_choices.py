"""Settings whose value DeepSpeed looks up in a list of words.

Source: deepspeed 0.19.8: runtime/config.py, runtime/constants.py, runtime/zenflow/zenflow_config.py,
and runtime/config.py of all releases from 0.9.0 on (read 2026-11-28).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import DsConfig
from dsdoctor_checks._util import at_least


class Choice(NamedTuple):
    """What a setting accepts.

    Attributes:
        words: the values, as DeepSpeed's own message or documentation lists them.
        before: release that brought these words, and the words of earlier ones.
        since: release that reads the setting; "" = one before 0.9.0.
        also: further spellings that it accepts.
        cased: upper and lower case differ.
        effect: what happens to another value.
    """

    words: tuple[str, ...]
    before: tuple[str, tuple[str, ...]] | None = None
    since: str = ""
    also: tuple[str, ...] = ()
    cased: bool = False
    effect: str = "`ValueError` when the config is read"


_COMMUNICATION = Choice(("fp16", "bf16", "fp32"), before=("0.14.1", ("fp16", "bfp16", "fp32")))
#: Spellings of `DtypeEnum` beside the short ones.
_TYPES = (
    "torch.float16", "float16", "half", "torch.float32", "float32", "float", "torch.int8", "int8",
    "torch.bfloat16", "bfloat16",
)  # fmt: skip

CHOICES = {
    "communication_data_type": _COMMUNICATION,
    "seq_parallel_communication_data_type": _COMMUNICATION,
    "torch_autocast.dtype": Choice(
        ("bf16", "fp16", "fp32"), since="0.17.2", also=_TYPES, cased=True
    ),
    "data_types.grad_accum_dtype": Choice(
        ("fp32", "bf16", "fp16"), also=_TYPES, cased=True, effect="`ValueError` in `initialize`"
    ),
    "gradient_allreduce_op": Choice(("mean", "sum"), since="0.19.6"),
    "tensor_parallel.vocab_parallel_ce_backend": Choice(
        ("torch", "liger"), since="0.19.8", cased=True
    ),
    "checkpoint.tag_validation": Choice(
        ("Warn", "Ignore", "Fail"), effect="`DeepSpeedConfigError` when the config is read"
    ),
    "zero_optimization.zenflow.select_strategy": Choice(
        ("auto", "step", "epoch"),
        since="0.17.5",
        cased=True,
        effect="`ValidationError` when the config is read",
    ),
}


def refused_words(config: DsConfig, version: str | None) -> Iterator[tuple[str, str, str]]:
    """The settings with another value: key, what is expected, and the effect.

    Args:
        config: the config.
        version: the DeepSpeed release; None = that of the tables.
    """
    for key, choice in CHOICES.items():
        if version is not None and choice.since and not at_least(version, choice.since):
            continue
        words = choice.words
        if version is not None and choice.before and not at_least(version, choice.before[0]):
            words = choice.before[1]
        value = config.get(key)
        if value is None or value == "auto" or key in config.swallowed:
            continue
        known = (*words, *choice.also)
        if isinstance(value, str):
            fits = value in known if choice.cased else value.lower() in map(str.lower, known)
            if fits:
                continue
        shown = [f"`{word}`" for word in words]
        yield key, f"{', '.join(shown[:-1])} or {shown[-1]}", choice.effect
