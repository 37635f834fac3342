"""Judges what the ranks reported, across ranks: losses, devices, figures. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from dsdoctor.model.observation import Observation
from dsdoctor.model.smoke import Bandwidth, Comparison, Figures, SmokeCause
from dsdoctor.packs.registry import Registry
from dsdoctor.smoke import reference
from dsdoctor.smoke.attempt import Attempt
from dsdoctor.smoke.causes import cause_for
from dsdoctor.smoke.track import Progress

#: Allowed relative difference between two ranks' losses on the same tokens.
SAME = {"fp32": 1e-4, "bf16": 1e-3, "fp16": 1e-3}
#: Below this loss scale, scaled gradients cannot be distinguished from unscaled ones.
LEAST_SCALE = 64.0
#: Allowed relative difference between the run and a single process: sums have another order.
REFERENCE = {"fp32": 2e-3, "bf16": 2e-2, "fp16": 2e-2}
#: Ratio of the slowest rank's own time to the median from which it is reported.
STRAGGLER = {"cuda": 1.2, "cpu": 3.0}
STRAGGLER_MS = 20.0


def data_of(progress: Progress, phase: str) -> dict[str, Any]:
    """What a rank measured in a phase; empty if it did not complete the phase."""
    event = progress.ended(phase)
    return event.data if event is not None and event.state == "ok" else {}


def _relative_difference(one: float, two: float) -> float:
    return abs(one - two) / max(abs(one), abs(two), 1e-9)


def _bare_uuid(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")


def wrong(made: Attempt, registry: Registry) -> Iterator[SmokeCause]:
    """Problems of a run in which every rank reported that it finished."""
    yield from _other_gpus(made, registry)
    yield from _wrong_losses(made, registry)


def _other_gpus(made: Attempt, registry: Registry) -> Iterator[SmokeCause]:
    plan = made.plan
    for progress in made.tracker.ranks:
        seen = data_of(progress, "device")
        local = seen.get("local_rank", 0)
        if plan.uuids and seen.get("uuid") and isinstance(local, int) and local < len(plan.uuids):
            want = plan.uuids[local]
            if _bare_uuid(seen["uuid"]) != _bare_uuid(want):
                yield cause_for(
                    registry,
                    Observation.WRONG_DEVICES,
                    f"rank {progress.rank} computes on GPU-{_bare_uuid(seen['uuid'])}, "
                    f"but {want} was planned",
                )


def _wrong_losses(made: Attempt, registry: Registry) -> Iterator[SmokeCause]:
    plan, ranks = made.plan, made.tracker.ranks
    precision = plan.job["precision"]
    steps = [data_of(progress, "steps") for progress in ranks]
    if not all(steps):
        return
    for key in ("probe_before", "probe_after"):
        values = [step[key] for step in steps]
        low, high = min(values), max(values)
        if _relative_difference(low, high) > SAME[precision]:
            yield cause_for(
                registry,
                Observation.WRONG_VALUES,
                f"the loss on the same tokens is {low:.6f} on rank {values.index(low)}, but "
                f"{high:.6f} on rank {values.index(high)}",
            )
            return
    first = steps[0]
    losses = [row["loss"] for row in first["steps"]]
    skipped = first.get("skipped", 0)
    if (unscaled := _unscaled(first, data_of(ranks[0], "teardown"))) is not None:
        yield cause_for(registry, Observation.LOSS_UNSCALED, unscaled)
        return
    reference = data_of(ranks[0], "teardown").get("reference")
    if reference and not skipped:
        for number, (got, want) in enumerate(zip(losses, reference, strict=False)):
            if not _relative_difference(got, want) <= REFERENCE[precision]:
                yield cause_for(
                    registry,
                    Observation.WRONG_VALUES,
                    f"the loss of step {number} is {got:.6f}, but {want:.6f} in a single process "
                    "with the same seed",
                )
                return
    if not plan.full_size and losses[-1] >= losses[0] and skipped < len(losses) - 2:
        yield cause_for(
            registry,
            Observation.NOT_FINITE,
            f"the loss was {losses[0]:.4f} and is {losses[-1]:.4f} after {len(losses)} steps, "
            "but it should fall",
        )


def _unscaled(steps: Mapping[str, Any], teardown: Mapping[str, Any]) -> str | None:
    """Reports gradients of the first step that belong to an unscaled loss."""
    seen, norm = steps.get("gradients"), teardown.get("reference_norm")
    if not seen or not norm or seen["scale"] < LEAST_SCALE:
        return None
    # unscaled gradients are too small by the whole scale, so an order of magnitude decides
    if seen["norm"] > norm * math.sqrt(seen["scale"]):
        return None
    return (
        f"backward left gradients with a norm of {seen['norm']:.3g}, as a single process computes "
        f"without a loss scale ({norm:.3g}), but the step divides them by {seen['scale']:g}"
    )


def figures(made: Attempt) -> Figures:
    """Times, bandwidth, memory and losses."""
    plan, ranks = made.plan, made.tracker.ranks
    steps = [data_of(progress, "steps") for progress in ranks]
    times = [[row["ms"] for row in step.get("steps", ())[1:]] for step in steps]
    values: dict[str, Any] = {}
    full = [rows for rows in times if rows]
    if full and len(full) == len(ranks):
        slowest = max(full, key=statistics.median)
        middle = statistics.median(slowest)
        tokens = plan.job["micro_batch"] * plan.job["accumulation"] * plan.world
        values.update(
            step_ms=round(middle, 3),
            step_ms_low=round(min(slowest), 3),
            step_ms_high=round(max(slowest), 3),
            tokens_per_s=round(tokens * plan.job["sequence"] / middle * 1e3, 1),
            first_loss=steps[0]["steps"][0]["loss"],
            last_loss=steps[0]["steps"][-1]["loss"],
            losses=tuple(row["loss"] for row in steps[0]["steps"]),
            step_times_ms=tuple(
                round(max(row["ms"] for row in rows), 3)
                for rows in zip(*(step["steps"] for step in steps), strict=False)
            ),
        )
        own = own_ms(made)
        if len(own) > 1:
            rank = max(own, key=lambda number: own[number])
            others = [value for number, value in own.items() if number != rank]
            values.update(
                slowest_rank=rank,
                slowest_ratio=round(own[rank] / max(statistics.median(others), 1e-9), 3),
            )
    bandwidth = [data_of(p, "collectives").get("bandwidth") for p in ranks]
    if ranks and all(bandwidth):
        rows = [min(rows, key=lambda row: row[1]) for rows in zip(*bandwidth, strict=False)]
        values["bandwidth"] = tuple(Bandwidth(bytes=size, gb_per_s=rate) for size, rate in rows)
        wanted = wanted_bandwidth(made)
        if wanted is not None:
            values.update(reference_gb_per_s=wanted.gb_per_s, reference=wanted.words)
    built = [sum(data_of(p, "build-ops").get("seconds", {}).values()) for p in ranks]
    if built and any(p.ended("build-ops") for p in ranks):
        values["build_seconds"] = round(max(built), 2)
    reference = data_of(ranks[0], "teardown").get("reference") if ranks else None
    if reference:
        values["reference_loss"] = reference[-1]
    values["memory"] = tuple(memory(made))
    return Figures(**values)


def own_ms(made: Attempt) -> dict[int, float]:
    """Median time per step that each rank did not spend waiting for others: the forward pass.

    With ZeRO-3, the forward pass waits for the weights of others, so a slow rank slows down all.
    The matmul of the numerics phase is used instead.
    """
    found: dict[int, float] = {}
    for progress in made.tracker.ranks:
        rows = data_of(progress, "steps").get("steps", ())[1:]
        matmul = data_of(progress, "numerics").get("matmul_ms")
        if made.plan.launch.stage < 3 and rows:  # noqa: PLR2004
            found[progress.rank] = statistics.median(row["own_ms"] for row in rows)
        elif made.plan.launch.stage == 3 and matmul:  # noqa: PLR2004
            found[progress.rank] = matmul
    return found


def memory(made: Attempt) -> Iterator[Comparison]:
    """Predictions and measurements for the rank that needed the most memory."""
    from dsdoctor.smoke import predict  # noqa: PLC0415  # predictions need the memory model

    want = predict.model_states(made.plan)
    got = [
        sum(data_of(p, "steps").get("model_state", {}).get("bytes", {}).values())
        for p in made.tracker.ranks
    ]
    if want and got and all(got):
        yield compare("model states of a rank", want, max(got))
    if made.plan.full_size:
        peaks = [data_of(p, "steps").get("peak_device_bytes") or 0 for p in made.tracker.ranks]
        predicted = predict.device_peak(made.plan)
        if predicted and peaks and all(peaks):
            yield compare("peak GPU memory of a rank (torch allocator)", predicted, max(peaks))
        hosts = [data_of(p, "steps").get("peak_host_bytes") or 0 for p in made.tracker.ranks]
        predicted = predict.host_peak(made.plan)
        if predicted and hosts and all(hosts) and made.plan.launch.nodes == 1:
            yield compare("peak memory of the host", predicted, sum(hosts))


def compare(what: str, predicted: int, measured: int) -> Comparison:
    """A prediction and its measurement."""
    return Comparison(
        what=what,
        predicted_bytes=predicted,
        measured_bytes=measured,
        ratio=round(measured / predicted, 4),
    )


def wanted_bandwidth(made: Attempt) -> reference.Reference | None:
    """The reference bandwidth for the GPUs of the run."""
    if made.plan.device != "cuda":
        return None
    names = [str(data_of(progress, "device").get("device", "")) for progress in made.tracker.ranks]
    return reference.find(names, made.plan.launch.nodes)


def slow_words(made: Attempt, found: Figures) -> Iterator[str]:
    """Warnings about speed."""
    wanted = wanted_bandwidth(made)
    if wanted is not None and found.bandwidth:
        largest = found.bandwidth[-1]
        text = reference.below(largest.gb_per_s, wanted)
        if text is not None and largest.bytes >= reference.COMPARABLE_BYTES:
            yield text
    ratio = found.slowest_ratio
    own = own_ms(made)
    if ratio is None or found.slowest_rank is None:
        return
    excess = own[found.slowest_rank] * (1 - 1 / ratio)
    if ratio > STRAGGLER[made.plan.device] and excess > STRAGGLER_MS:
        yield (
            f"rank {found.slowest_rank} is the slowest: its own part of a step takes "
            f"{own[found.slowest_rank]:.0f} ms, {ratio:.1f} times as long as the others'"
        )
