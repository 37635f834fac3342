"""Sections that switch a feature on when they are present, whatever their `enabled` says.

Source: comm/config.py and utils/comms_logging.py (0.8.0 to 0.19.8), datastates/config.py (0.18.1 to
0.19.8), runtime/model_checkpointing/config.py and runtime/checkpoint_engine/utils.py (0.17.1 to
0.19.8), runtime/zero/partition_parameters.py (0.10.3 to 0.19.8); read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import DsConfig

from ._releases import has


class Present(NamedTuple):
    """A feature that is on though the config says that it is off.

    Attributes:
        key: the dotted key that says so.
        why: what DeepSpeed does, for a sentence.
        effect: what the run does then.
        remove: the key to remove.
    """

    key: str
    why: str
    effect: str
    remove: str


#: Section, the setting in it that does the work ("" = the section alone), and the effect.
_SECTIONS = (
    ("comms_logger", "", "each collective is timed and logged, which slows training"),
    (
        "datastates_ckpt",
        "",
        "checkpoints are written by DataStates, or by `torch.save` after an error in the log",
    ),
    (
        "checkpoint.writer",
        "",
        "checkpoints are written by DeepSpeed's own writer, which needs the op `async_io`",
    ),
    (
        "weight_quantization",
        "quantized_initialization",
        "weights are quantized when the model is created with ZeRO stage 3",
    ),
)
#: The only value of this key that is not taken for "on".
_LITERAL = "datastates_ckpt"
_SAYS_OFF = frozenset({"", "false", "no", "off", "0"})


def present_though_off(config: DsConfig, version: str | None) -> Iterator[Present]:
    """Features that the config says are off, and that a release turns on.

    Args:
        config: the config.
        version: the release; None = that of the tables.
    """
    for section, setting, effect in _SECTIONS:
        held = config.get(section)
        if not isinstance(held, dict) or not has(section, version):
            continue
        if "enabled" not in held or not _says_off(held["enabled"]):
            continue
        if setting and not held.get(setting):
            continue
        by = f"`{section}.{setting}`" if setting else f"`{section}`"
        why = f"{by} turns this on wherever it is present"
        yield Present(f"{section}.enabled", why, effect, section)
    whole = config.get(_LITERAL)
    stated = _LITERAL in (config.parsed or {}) and whole is not False
    if stated and has(_LITERAL, version) and not isinstance(whole, dict) and _says_off(whole):
        effect = next(effect for section, _, effect in _SECTIONS if section == _LITERAL)
        why = "DeepSpeed takes every value except `false` without quotes for on"
        yield Present(_LITERAL, why, effect, _LITERAL)


def _says_off(value: object) -> bool:
    return value is None or value is False or str(value).lower() in _SAYS_OFF
