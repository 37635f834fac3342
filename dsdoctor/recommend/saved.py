"""Modules that are trained in full together with adapters (PEFT's `modules_to_save`).

PEFT keeps the module as it was and trains a copy of it (`ModulesToSaveWrapper` of
peft/utils/other.py, 0.3 to 0.19): the copy is a weight, a gradient and a share of the optimizer.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from dsdoctor.errors import UsageError
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

_COUNT = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{0,60})=(?P<count>\d{1,6}(?:\.\d{1,6})?)(?P<unit>[KMB]?)$"
)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}
_HEADS = ("embed_tokens", "lm_head")


@dataclasses.dataclass(frozen=True)
class Saved:
    """Modules that are trained in full together with adapters.

    Attributes:
        parameters: of all of them.
        head: the embedding or the output layer is among them.
        names: of the modules, without their sizes.
    """

    parameters: int = 0
    head: bool = False
    names: tuple[str, ...] = dataclasses.field(default=(), compare=False)


def saved_of(names: Sequence[str], model: ModelShape) -> Saved:
    """The modules of these names in a model.

    Args:
        names: `embed_tokens`, `lm_head`, `vision` (all that runs before the decoder), or
            `NAME=COUNT` for a module whose size is in no config (`resampler=76M`).
        model: its shape.

    Raises:
        UsageError: a name is not known, or the model has no such module.
    """
    total = 0
    for name in dict.fromkeys(names):
        counted = _COUNT.match(name)
        if counted:
            total += int(float(counted["count"]) * _UNITS[counted["unit"]])
        elif name in _HEADS:
            total += model.embedding_parameters
        elif name == "vision":
            if not model.towers:
                raise UsageError(
                    f"`--modules-to-save vision`: {model.name} has no vision tower of known size; "
                    "pass its size, as in `vision=400M`"
                )
            total += sum(tower.blocks.block_parameters for tower in model.towers)
        else:
            raise UsageError(
                f"`--modules-to-save {name[:60]}` is not a module of known size; expected "
                "`embed_tokens`, `lm_head`, `vision`, or NAME=COUNT as in `resampler=76M`"
            )
    plain = tuple(name.partition("=")[0] for name in dict.fromkeys(names))
    return Saved(total, any(name in _HEADS for name in names), plain)


def trained_parameters(model: ModelShape, setting: Setting) -> int:
    """Parameters that have a gradient: all, or adapters and what is trained with them."""
    if not setting.lora_rank:
        return model.parameters
    return model.lora_parameters(setting.lora_rank) + setting.saved


def trained_head(model: ModelShape, setting: Setting) -> int:
    """Parameters of the embedding if it is trained, else 0; the output layer is as large."""
    frozen = setting.lora_rank and not setting.saved_head
    return 0 if frozen else model.embedding_parameters
