"""Whether a `train_batch_size` can be split among the ranks, as DeepSpeed splits it.

Source: deepspeed 0.19.8 runtime/config.py (`DeepSpeedConfig.__init__`, `_batch_assertion`,
`_set_batch_related_parameters`), held against it case by case on 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dsdoctor.api import DsConfig, Finding, Ranks, fail, ok, skip, warn

EFFECT = "`Check batch related parameters`: every rank stops in `deepspeed.initialize`"


def divisor(config: DsConfig) -> Fraction | None:
    """`sequence_parallel_size`, by which DeepSpeed divides the ranks; None if it cannot."""
    split = config.get("sequence_parallel_size", 1)
    return Fraction(split) if isinstance(split, (int, float)) and split > 0 else None


def _world(config: DsConfig, ranks: Ranks | None, split: Fraction) -> Fraction | None:
    """The ranks that get data of their own.

    With both sizes, DeepSpeed arranges the ranks in a mesh, and takes the size from there.
    """
    meshed = config.get("data_parallel_size")
    if isinstance(meshed, int) and meshed > 0 and "sequence_parallel_size" in (config.parsed or {}):
        return Fraction(meshed)
    return None if ranks is None else ranks.count / split


def _fits(batch: tuple[float, float | None, float | None], world: Fraction) -> bool:
    """Whether the equation holds with what DeepSpeed puts in place of an absent size."""
    total, micro, steps = (None if one is None else Fraction(one) for one in batch)
    if total is None:
        return True
    if micro and not steps:
        steps = Fraction(total // micro // world)
    elif not micro:
        steps = steps or Fraction(1)
        micro = Fraction(total // world // steps)
    return bool(micro and steps) and total == (micro or 0) * (steps or 0) * world


def counted(number: Fraction | int) -> str:
    """A number of ranks.

    >>> counted(1), counted(Fraction(4)), counted(Fraction(3, 2))
    ('1 rank', '4 ranks', '1.5 ranks')
    """
    return "1 rank" if number == 1 else f"{plain(number)} ranks"


def plain(number: Fraction | int) -> float:
    """The number as a config would contain it.

    >>> plain(Fraction(8)), plain(Fraction(3, 2))
    (8, 1.5)
    """
    return int(number) if number.denominator == 1 else float(number)


def unequal(
    config: DsConfig, batch: tuple[float, float | None, float | None], ranks: Ranks | None
) -> Iterator[Finding]:
    """Judges the equation of the batch sizes.

    Args:
        config: the config.
        batch: `train_batch_size`, micro-batch and accumulation steps; None = not given.
        ranks: of this run; None = not known.
    """
    total, micro, steps = batch
    split = divisor(config) or Fraction(1)
    world = _world(config, ranks, split)
    product = Fraction(micro or 1) * Fraction(steps or 1)
    shown = " * ".join(
        f"{name} {value}"
        for name, value in (("micro-batch", micro), ("accumulation", steps))
        if value is not None
    )
    evidence: dict[str, Any] = {
        "train_batch_size": total,
        "micro_batch": micro,
        "accumulation": steps,
        "line": config.lines.get("train_batch_size"),
    }
    key = config.named("train_batch_size")
    whole = split.denominator == 1 and (world is None or world.denominator == 1)
    if Fraction(total) % product and whole:
        yield fail(
            f"{key} is {total}, which is not a multiple of {shown}",
            effect=EFFECT,
            hint=f"set `train_batch_size` to a multiple of {plain(product)}, or remove it",
            unit=plain(product),
            **evidence,
        )
        return
    if world is None:
        yield skip("the number of ranks is unknown; pass `--gpus` or `-- CMD`", **evidence)
        return
    if _fits(batch, world):
        yield ok(ranks=plain(world * split), **evidence)
        return
    # the ranks that would make it true
    wanted = Fraction(total) / product * split
    asked = ranks is None or ranks.asked
    if not asked and wanted % (world * split) == 0:
        more = plain(wanted)
        yield ok(ranks=plain(world * split), ranks_wanted=more, **evidence)  # several such nodes
        return
    per_step = product * world
    best = per_step if micro and steps else per_step * max(1, round(total / per_step))
    parts = f"{shown} * {counted(world)}" if shown else counted(world)
    expected = (
        f"{parts} is {plain(per_step)}" if micro and steps else f"it is not a multiple of {parts}"
    )
    source = "`data_parallel_size`" if ranks is None else ranks.source
    alone = micro and steps and wanted.denominator == 1
    yield (fail if asked else warn)(
        f"{key} is {total}, but {expected} ({source})",
        effect=EFFECT,
        hint=(
            f"use {counted(wanted)} or `train_batch_size` {plain(best)}, or remove"
            " `train_batch_size`"
            if alone
            else f"set `train_batch_size` to {plain(best)}"
        ),
        ranks=plain(world * split),
        world=plain(world),
        product=plain(per_step),
        ranks_wanted=plain(wanted),
        nearest=plain(best),
        **evidence,
    )
