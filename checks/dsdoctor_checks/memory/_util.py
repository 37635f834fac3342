"""Helpers shared by the memory checks."""

from __future__ import annotations

from collections.abc import Mapping

from dsdoctor.api import MemoryDemand
from dsdoctor_checks._util import gib

_SHOWN = 4


def otherwise(demand: MemoryDemand) -> str:
    """What a message says if another way of training would fit."""
    if any("16 bits" in assumption for assumption in demand.assumed):
        return "frozen 4-bit weights (QLoRA) would fit"
    return "LoRA adapters would fit (choose with `--finetune lora` or `--finetune full`)"


def itemized(items: Mapping[str, int]) -> str:
    """The largest items of a demand.

    >>> itemized({"parameters": 3 << 30, "optimizer": 12 << 30})
    'optimizer 12.0, parameters 3.0 GiB'
    """
    largest = sorted(items.items(), key=lambda row: -row[1])[:_SHOWN]
    return ", ".join(f"{name} {gib(size)}" for name, size in largest) + " GiB"
