"""Passes that were measured instead of computed, and the measured model.

The figures come from `probes/children/measure_model.py`, which runs the real model on shapes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dsdoctor.errors import NotMeasuredError
from dsdoctor.recommend.activations import Moment, fused_gradient_bytes, fused_loss_bytes
from dsdoctor.recommend.buckets import passes_of_zero_3, reductions
from dsdoctor.recommend.device import REDUCTION, takes_norms_in_pass
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape
from dsdoctor.recommend.traits import traits_of

#: Micro-batches that are measured; others are interpolated.
MEASURED_BATCHES = (1, 4, 16, 64)
#: What torch says where values of a tensor are asked for that has none.
_READS_VALUES = (
    "on meta tensors",
    "out of meta tensor",
    "tensor with unallocated storage",
    "tensor(..., device='meta'",
    "data-dependent",
)
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_ATTENTION = {"flash": ("sdpa", "ones"), "sdpa": ("sdpa", "padded"), "eager": ("eager", "ones")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pass:
    """One measured pass.

    Attributes:
        batch: its micro-batch.
        forward: bytes alive when the forward pass is over.
        highest: its peak in the forward pass, 0 = not known.
        segments: for each stretch between two gradients of weights, its peak without weights and
            finished gradients, the bytes of the gradient at its end, and what is alive then. The
            first stretch contains the loss.
    """

    batch: int
    forward: int
    segments: tuple[tuple[int, int, int], ...]
    highest: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """All passes of one model, for one sequence, precision and kind of attention.

    Attributes:
        by: releases of torch and transformers, for the reader.
        plain: passes without recomputation, by increasing micro-batch.
        recomputing: passes with recomputation.
        stored: attention was eager although another was requested: the model has no other.
        guessed: operators whose result depends on data and was assumed.
        saved: parameters of the modules that were trained in full with adapters.
        no_loss: the model's class if it computes no loss; its first output was summed instead.
    """

    by: str
    plain: tuple[Pass, ...] = ()
    recomputing: tuple[Pass, ...] = ()
    stored: bool = False
    guessed: tuple[str, ...] = ()
    saved: int = 0
    no_loss: str = ""

    def moments(self, model: ModelShape, setting: Setting) -> tuple[Moment, ...] | None:
        """The moments of a setting; None if no pass of its kind was measured.

        Between two measured micro-batches each stretch is interpolated. Peaks are maxima of terms
        that grow with the batch, so that a straight line between two of them is never too low.
        """
        passes = self.recomputing if setting.checkpointing else self.plain
        found = _interpolated(passes, setting.micro_batch)
        if found is None:
            return None
        width = setting.width
        loss, *rest = found.segments
        peak = loss[0]
        if setting.fused_loss:  # its pieces are gone when the backward pass begins
            peak = max(
                peak + fused_gradient_bytes(model, setting),
                found.forward + fused_loss_bytes(model, setting),
            )
        moments = [
            Moment(name="loss", activations=min(found.forward, peak), logits=peak - found.forward)
            if peak > found.forward
            else Moment(name="loss", activations=peak)
        ]
        if setting.partitions_weights:
            before = (
                [Moment(name="forward", activations=found.highest, copied=0)]
                if found.highest
                else []
            )
            return (*moments, *before, *passes_of_zero_3(found.segments, setting))
        finished, highest = loss[1], -1
        later: list[Moment] = []
        total = finished + sum(size for _, size, _ in rest)
        # finished gradients only grow: a moment counts only if no later one is as high
        for stretch, size, _ in reversed(rest):
            total -= size
            if stretch > highest:
                highest = stretch
                later.append(Moment(name="backward", activations=stretch, finished=total // width))
        # ZeRO-1 that accumulates has all gradients before the pass in which it reduces them
        buckets = setting.stage == 2 or (setting.stage == 1 and setting.accumulation == 1)  # noqa: PLR2004
        copies = reductions(found.segments, setting) if buckets else ()
        return (*moments, *reversed(later), *_norms(found, setting), *copies)


def _norms(found: Pass, setting: Setting) -> tuple[Moment, ...]:
    """The moments at which a bucket is reduced, where a norm is computed of each gradient in it.

    That is when the next gradient does not fit (`reduce_independent_p_g_buckets_and_remove_grads`
    of stage_1_and_2.py), and at the end.
    """
    if not takes_norms_in_pass(setting):
        return ()
    moments = []
    inside = largest = total = 0
    for _, size, left in found.segments:
        count = size // setting.width
        if largest and (not size or inside + count > setting.bucket):
            moments.append(
                Moment(name=REDUCTION, activations=left, finished=total, reduced=largest)
            )
            inside = largest = 0
        inside, largest, total = inside + count, max(largest, count), total + count
    return tuple(moments)


def _interpolated(passes: Sequence[Pass], batch: int) -> Pass | None:
    exact = next((one for one in passes if one.batch == batch), None)
    if exact is not None:
        return exact
    below = [one for one in passes if one.batch < batch]
    above = [one for one in passes if one.batch > batch]
    if not below or not above:
        return None
    low, high = below[-1], above[0]
    if len(low.segments) != len(high.segments):
        return high
    share = (batch - low.batch) / (high.batch - low.batch)

    def between(start: int, end: int) -> int:
        return int(start + (end - start) * share)

    return Pass(
        batch=batch,
        forward=between(low.forward, high.forward),
        highest=between(low.highest, high.highest),
        segments=tuple(
            (between(first[0], last[0]), last[1], between(first[2], last[2]))
            for first, last in zip(low.segments, high.segments, strict=True)
        ),
    )


def batches_for(candidates: Sequence[int]) -> tuple[int, ...]:
    """The micro-batches to measure, so that every candidate is one of them or between two.

    >>> batches_for((64, 32, 16, 8, 4, 2, 1)), batches_for((8,)), batches_for((6, 3, 2, 1))
    ((1, 4, 16, 64), (8,), (1, 4, 6))
    """
    low, high = min(candidates), max(candidates)
    inner = [size for size in MEASURED_BATCHES if low < size < high]
    return tuple(dict.fromkeys([low, *inner, high]))


def cases(
    setting: Setting, batches: Sequence[int], modes: Sequence[bool], *, family: str = ""
) -> list[dict[str, Any]]:
    """The cases for the child: each micro-batch, with and without recomputation.

    If a kernel is requested explicitly, it is assumed to exist even if transformers does not offer
    it for the family.
    """
    attention, mask = _ATTENTION[setting.attention]
    common: dict[str, Any] = {
        "sequence": setting.sequence,
        "dtype": _DTYPES[setting.precision],
        "attention": attention,
        "mask": mask,
    }
    if setting.attention != "eager" and traits_of(family).eager:
        common["forced"] = True
    if setting.image_tokens:
        common["image_tokens"] = setting.image_tokens
    if setting.lora_rank:
        common["lora_rank"] = setting.lora_rank
        common["lora_dropout"] = 0.05 if setting.lora_dropout else 0.0
        common["lora_fp32"] = setting.lora_fp32
    if setting.saved_modules:
        common["saved"] = list(setting.saved_modules)
    if setting.fused_loss:
        common["fused_loss"] = True
    return [
        {"batch": batch, "checkpointing": mode, **common} for mode in modes for batch in batches
    ]


def read(records: Sequence[Mapping[str, Any]], asked: int) -> Measured:
    """Reads the answer of the child.

    Raises:
        NotMeasuredError: it could not build the model, or one of the passes failed.
    """
    for record in records:
        if "error" in record:
            raise NotMeasuredError(f"the model cannot be measured: {_reason(record['error'])}")
    found = [record for record in records if "segments" in record]
    if len(found) < asked:
        step = next((record["step"] for record in reversed(records) if "step" in record), "start")
        raise NotMeasuredError(f"the model cannot be measured: the child ended in step `{step}`")
    versions: Mapping[str, str] = next(
        (record["versions"] for record in records if "versions" in record), {}
    )
    passes: dict[bool, list[Pass]] = {False: [], True: []}
    for record in found:
        case = record["case"]
        first, *rest = record["segments"]
        segments = ((max(record["forward_peak"], first[0]), *first[1:]), *map(tuple, rest))
        passes[bool(case["checkpointing"])].append(
            Pass(
                batch=case["batch"],
                forward=record["forward"],
                highest=record["forward_peak"] if record["forward_peak"] > first[0] else 0,
                segments=segments,
            )
        )
    return Measured(
        by=", ".join(f"{name} {release}" for name, release in versions.items()),
        plain=tuple(sorted(passes[False], key=lambda one: one.batch)),
        recomputing=tuple(sorted(passes[True], key=lambda one: one.batch)),
        stored=any(
            record.get("attention", "") == "eager" != record["case"].get("attention", "eager")
            for record in found
        ),
        guessed=tuple(sorted({name for record in found for name in record["guessed"]})),
        saved=max((record.get("saved", 0) for record in found), default=0),
        no_loss=next(
            (
                str(record["model"].get("class"))
                for record in records
                if "model" in record and record["model"].get("loss") is False
            ),
            "",
        ),
    )


def _reason(error: Mapping[str, Any]) -> str:
    """Why the child could not measure, in one line.

    >>> _reason({"kind": "ModuleNotFoundError", "message": "No module named 'torch'"})
    'its environment has no torch'
    >>> _reason({"kind": "RuntimeError", "message": "item() on meta tensors"})
    'its code reads values of its tensors, and shapes have none'
    """
    kind, message = error.get("kind"), str(error.get("message"))
    if any(words in message for words in _READS_VALUES):
        return "its code reads values of its tensors, and shapes have none"
    if kind == "ModuleNotFoundError" and message.startswith("No module named '"):
        package = message.split("'")[1]
        return f"its environment has no {package}"
    return message if kind == "LookupError" else f"{kind}: {message}"


def shape_of(records: Sequence[Mapping[str, Any]], name: str) -> ModelShape | None:
    """The model as the child built it: exact sizes of all its tensors."""
    model = next((record["model"] for record in records if "model" in record), None)
    if model is None:
        return None
    adapted = [
        (record["trained"] - record.get("saved", 0)) // record["case"]["lora_rank"]
        for record in records
        if "segments" in record and record["case"].get("lora_rank")
    ]
    heads = max(1, model["heads"])
    return ModelShape(
        name=name,
        family=model["type"],
        layers=max(1, model["layers"]),
        hidden=max(1, model["hidden"]),
        heads=heads,
        kv_heads=max(1, model["kv_heads"]),
        head_dim=max(1, model["head_dim"]),
        intermediate=model["intermediate"] or 4 * model["hidden"],
        vocab=max(1, model["vocab"]),
        max_length=model["positions"] or 2048,
        experts=model["experts"],
        sizes=tuple(model["tensors"]),
        modules=tuple(tuple(row) for row in model.get("modules", ())),
        stacked=tuple(model.get("stacked", ())) if model["experts"] else (),
        shared=tuple((later, first) for later, first in model.get("shared", ())),
        built=True,
        adapted=adapted[0] if adapted else None,
    )
