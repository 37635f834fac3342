"""How far a setting reaches: the largest micro-batch and the longest sequence that fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from dsdoctor.model.launch_plan import Reach
from dsdoctor.recommend import memory
from dsdoctor.recommend.activations import Moment, moments
from dsdoctor.recommend.choice import Limits
from dsdoctor.recommend.measured import Measured
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: GPUs on each host that are compared.
COUNTS = (1, 2, 4, 8)
#: Sequences are sought in steps of this many tokens.
STEP = 128
#: Micro-batches are sought up to this one.
MOST = 1024


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits, 0 = not even 1.

    If a number does not fit, no larger one fits.

    >>> _largest(lambda size: size <= 37, 1000), _largest(lambda size: False, 8)
    (37, 0)
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _scaled(model: ModelShape, setting: Setting, measured: Measured | None) -> float:
    """The ratio of a measurement to the formula, at the setting of the plan."""
    passes = measured.moments(model, setting) if measured else None
    if not passes:
        return 1.0
    return max(one.bytes for one in passes) / max(one.bytes for one in moments(model, setting))


def _passes(model: ModelShape, setting: Setting, scale: float) -> list[Moment]:
    return [
        dataclasses.replace(
            one,
            activations=int(scale * one.activations),
            logits=int(scale * one.logits),
            working=int(scale * one.working),
        )
        for one in moments(model, setting)
    ]


def reach(
    model: ModelShape,
    setting: Setting,
    limits: Limits,
    workers: int,
    measured: Measured | None = None,
) -> tuple[Reach, ...]:
    """What fits on 1, 2, 4 and 8 GPUs per host and on the setting's own number of them.

    Each is computed without and with recomputation of activations.

    Args:
        model: the shape.
        setting: what is planned for.
        limits: of the machine.
        workers: data loader workers of each rank.
        measured: scales the formula to what was measured, at the setting.
    """
    longest = max(1, (model.positions or max(model.max_length, setting.sequence)) // STEP)
    counts = (
        sorted({*COUNTS, setting.ranks_per_node}) if setting.on_gpu else [setting.ranks_per_node]
    )
    rows = []
    for mode in (False, True):
        plan = dataclasses.replace(setting, checkpointing=mode)
        scale = _scaled(model, plan, measured)
        for count in counts:
            here = dataclasses.replace(plan, world=count * setting.nodes)

            def need(changed: Setting, scale: float = scale) -> memory.Memory:
                passes = _passes(model, changed, scale)
                return memory.estimate(model, changed, workers=workers, passes=passes)

            def by_batch(size: int, here: Setting = here) -> bool:
                return limits.fits(need(dataclasses.replace(here, micro_batch=size)))

            def by_length(steps: int, here: Setting = here) -> bool:
                return limits.fits(need(dataclasses.replace(here, sequence=STEP * steps)))

            micro_batch = _largest(by_batch, MOST)
            on_gpus = dataclasses.replace(limits, host=None)
            rows.append(
                Reach(
                    gpus=here.world,
                    checkpointing=mode,
                    gpu_bytes=need(here).gpu_bytes,
                    micro_batch=micro_batch,
                    sequence=STEP * _largest(by_length, longest),
                    host_short=not micro_batch
                    and on_gpus.fits(need(dataclasses.replace(here, micro_batch=1))),
                )
            )
    return tuple(rows)
