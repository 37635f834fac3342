"""Settings whose value DeepSpeed looks up in a list of words.

Source: deepspeed 0.19.8: runtime/config.py, runtime/constants.py, runtime/zenflow/zenflow_config.py,
runtime/model_checkpointing/config.py, inference/config.py, and runtime/config.py of all releases from
0.9.0 on (read 2026-11-28 and 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import DsConfig
from dsdoctor_checks._util import at_least

from ._releases import has

_NOT_GIVEN = object()


class Choice(NamedTuple):
    """What a setting accepts.

    Attributes:
        words: the values, as DeepSpeed's own message or documentation lists them.
        before: release that brought these words, and the words of earlier ones.
        also: further spellings that it accepts.
        cased: upper and lower case differ.
        null: it accepts null.
        drops_auto: it ignores `"auto"`, as sections with a model do.
        effect: what happens to another value.
    """

    words: tuple[str, ...]
    before: tuple[str, tuple[str, ...]] | None = None
    also: tuple[str, ...] = ()
    cased: bool = False
    null: bool = True
    drops_auto: bool = False
    effect: str = "`ValueError` when the config is read"


_COMMUNICATION = Choice(("fp16", "bf16", "fp32"), before=("0.14.1", ("fp16", "bfp16", "fp32")))
#: Spellings of `DtypeEnum` beside the short ones.
_TYPES = (
    "torch.float16", "float16", "half", "torch.float32", "float32", "float", "torch.int8", "int8",
    "torch.bfloat16", "bfloat16",
)  # fmt: skip

_ASSERTED = "`AssertionError` when the config is read"
_VALIDATED = "`ValidationError` when the config is read"

CHOICES = {
    "communication_data_type": _COMMUNICATION,
    "seq_parallel_communication_data_type": _COMMUNICATION,
    "torch_autocast.dtype": Choice(("bf16", "fp16", "fp32"), also=_TYPES, cased=True, null=False),
    "data_types.grad_accum_dtype": Choice(
        ("fp32", "bf16", "fp16"), also=_TYPES, cased=True, effect="`ValueError` in `initialize`"
    ),
    "gradient_allreduce_op": Choice(("mean", "sum"), null=False),
    "tensor_parallel.vocab_parallel_ce_backend": Choice(
        ("torch", "liger"), cased=True, null=False, drops_auto=True, effect=_VALIDATED
    ),
    "checkpoint.tag_validation": Choice(
        ("Warn", "Ignore", "Fail"),
        null=False,
        effect="`DeepSpeedConfigError` when the config is read",
    ),
    "checkpoint.writer.type": Choice(("fast", "python", "mock"), effect=_ASSERTED),
    "checkpoint.writer.data_parallel": Choice(("replica", "socket", "machine"), effect=_ASSERTED),
    "weight_quantization.q_type": Choice(
        ("symmetric", "asymmetric"), cased=True, null=False, drops_auto=True, effect=_VALIDATED
    ),
    "zero_optimization.zenflow.select_strategy": Choice(
        ("auto", "step", "epoch"), cased=True, null=False, drops_auto=True, effect=_VALIDATED
    ),
}


def refused_words(
    config: DsConfig, version: str | None, *, filled: bool
) -> Iterator[tuple[str, str, str]]:
    """The settings with another value: key, what is expected, and the effect.

    Args:
        config: the config.
        version: the DeepSpeed release; None = that of the tables.
        filled: a trainer reads the config first, which fills in or rejects `"auto"`.
    """
    for key, choice in CHOICES.items():
        value = config.get(key, _NOT_GIVEN)
        if value is _NOT_GIVEN or key in config.swallowed or not has(key, version):
            continue
        if (value is None and choice.null) or (value == "auto" and (filled or choice.drops_auto)):
            continue
        words = choice.words
        if version is not None and choice.before and not at_least(version, choice.before[0]):
            words = choice.before[1]
        known = (*words, *choice.also)
        if isinstance(value, str):
            fits = value in known if choice.cased else value.lower() in map(str.lower, known)
            if fits:
                continue
        shown = [f"`{word}`" for word in words]
        yield key, f"{', '.join(shown[:-1])} or {shown[-1]}", choice.effect
