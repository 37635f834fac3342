"""The choice among ZeRO stages and offload: what each needs, and the first that fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.model.launch_plan import MemoryOption
from dsdoctor.model.units import GIB
from dsdoctor.recommend import memory
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.measured import Measured
from dsdoctor.recommend.optimizers import OPTIMIZERS
from dsdoctor.recommend.options import HEADROOM, PlanOptions
from dsdoctor.recommend.releases import (
    CLEARED_GRADIENTS,
    UNCLEARED_GRADIENTS,
    UNSCALED_LOSS,
    UNSCALED_LOSS_READ,
    as_in,
    at_least,
    release_of,
)
from dsdoctor.recommend.saved import Saved, saved_of
from dsdoctor.recommend.setting import MAX_LIVE, PREFETCH, Setting
from dsdoctor.recommend.shape import ModelShape

#: (stage, offload): each step down the list moves more bytes per pass.
LADDER = (
    (0, "none"),
    (1, "none"),
    (2, "none"),
    (3, "none"),
    (1, "optimizer"),
    (2, "optimizer"),
    (3, "optimizer"),
    (3, "optimizer+parameters"),
)
#: What is offloaded to the host; each copies more at every step than the one before.
OFFLOADS = ("none", "optimizer", "optimizer+parameters")
#: Optimizers that DeepSpeed can run on the host.
HOST_OPTIMIZERS = frozenset({"adamw", "adam", "lion", "adagrad"})
#: By what share of the passes the formula and a measurement may be too low (docs/recommend.md).
FORMULA_ERROR, MEASURED_ERROR = 0.10, 0.05
#: Why fp16 uses stage 1 although stage 0 fits.
UNSCALED = (
    f"without ZeRO, DeepSpeed {UNSCALED_LOSS} to {UNSCALED_LOSS_READ}, and perhaps later releases, "
    "divides fp16 gradients by a loss scale that it did not apply to the loss"
)
#: Why bf16 with one of these optimizers also does.
UNCLEARED = (
    f"without ZeRO, DeepSpeed {UNCLEARED_GRADIENTS} to the release before {CLEARED_GRADIENTS} does"
    " not clear the bf16 gradients of this optimizer after a step"
)
#: Optimizers that DeepSpeed replaces by its `FusedAdam`, which clears the gradients itself.
_CLEARS = frozenset({"adamw", "adam"})
MICRO_BATCHES = (64, 32, 16, 8, 4, 2, 1)


@dataclasses.dataclass(frozen=True)
class Limits:
    """The available memory, and what share of it stays free.

    Attributes:
        gpu: free bytes of the fullest GPU, None = no GPU.
        host: bytes that the host allows, None = not known.
        headroom: share that stays free.
        error: by what share the passes may need more than was computed.
    """

    gpu: int | None
    host: int | None
    headroom: float
    error: float = FORMULA_ERROR

    def kept_free(self, need: memory.Memory) -> int:
        """Bytes that stay free on a GPU: the headroom, or the possible error of the figures."""
        passing = need.gpu_bytes - sum(item.bytes for item in need.gpu if item.phase == "resident")
        return int(max(self.headroom * (self.gpu or 0), self.error * passing))

    def fits(self, need: memory.Memory) -> bool:
        """Whether both peaks are below their limits minus what stays free."""
        gpu_ok = self.gpu is None or need.gpu_bytes + self.kept_free(need) <= self.gpu
        room = 1 - self.headroom
        return gpu_ok and (self.host is None or need.host_bytes <= self.host * room)

    def why_not(self, need: memory.Memory) -> str:
        """Which limit is exceeded, and the largest item."""
        parts = []
        on_host = self.headroom * (self.host or 0)
        for place, have, wanted, items, spare in (
            ("GPU", self.gpu, need.gpu_bytes, need.gpu, self.kept_free(need)),
            ("host", self.host, need.host_bytes, need.host, on_host),
        ):
            if have is not None and wanted + spare > have:
                most = max(memory.at_peak(items), key=lambda item: item.bytes)
                kept = (
                    f", of which {spare / GIB:.1f} are kept as headroom" if wanted <= have else ""
                )
                parts.append(
                    f"needs {wanted / GIB:.1f} GiB on each {place} ({most.name} alone "
                    f"{most.bytes / GIB:.1f}), but {have / GIB:.1f} GiB are free{kept}"
                )
        return "; ".join(parts)


def limits_of(machine: Machine, objective: str, *, measured: bool = False) -> Limits:
    """The limits of a machine: its fullest GPU sets the limit for all."""
    return Limits(
        min((device.free_bytes for device in machine.devices), default=None),
        machine.host_bytes,
        HEADROOM[objective],
        MEASURED_ERROR if measured else FORMULA_ERROR,
    )


def wrong_without_zero(options: PlanOptions, precision: str) -> str | None:
    """Why DeepSpeed silently trains wrongly without ZeRO; None if it does not."""
    release = release_of(options.deepspeed)
    if precision == "fp16" and at_least(release, UNSCALED_LOSS):
        return UNSCALED
    if precision == "bf16" and options.optimizer not in _CLEARS and release is not None:
        return UNCLEARED if UNCLEARED_GRADIENTS <= release < CLEARED_GRADIENTS else None
    return None


def ladder(machine: Machine, options: PlanOptions) -> list[tuple[int, str]]:
    """The options to compare: without GPUs, or for some optimizers, nothing can be offloaded.

    Raises:
        UsageError: the requested stage and offload are not among them.
    """
    steps = list(LADDER)
    if options.optimizer not in HOST_OPTIMIZERS or not machine.devices:
        steps = [step for step in LADDER if step[1] == "none"]
    found = [
        (stage, offload)
        for stage, offload in steps
        if options.stage in (None, stage) and options.offload in (None, offload)
    ]
    if not found:
        asked = "" if options.stage is None else f"`--stage {options.stage}` with "
        possible = ", ".join(sorted({offload for _, offload in steps}))
        raise UsageError(
            f"{asked}`--offload {options.offload}` is not possible with {options.optimizer} on "
            f"{len(machine.devices)} GPUs; expected offload {possible} and a stage that "
            "supports it (optimizer: 1 to 3, parameters: 3)"
        )
    return found


def base_setting(
    machine: Machine,
    model: ModelShape,
    options: PlanOptions,
    *,
    precision: str,
    sequence: int,
    world: int,
    attention: str = "flash",
    image_tokens: int = 0,
) -> Setting:
    """What all options have in common; buffers shrink with the free memory."""
    free = min((device.free_bytes for device in machine.devices), default=64 * GIB)
    small, tiny = free < 16 * GIB, free < 4 * GIB
    bucket = 5_000_000 if tiny else 50_000_000 if small else 200_000_000
    rank = 0 if options.finetune == "full" else options.lora_rank
    saved = saved_of(options.modules_to_save, model) if rank else Saved()
    trained = model.lora_parameters(rank) + saved.parameters if rank else model.parameters
    bucket = min(bucket, max(1_000_000, trained + trained % 2))
    live = 50_000_000 if tiny else 200_000_000 if small else MAX_LIVE
    setting = Setting(
        sequence=sequence,
        world=world,
        nodes=options.nodes,
        precision=precision,
        attention=attention,
        image_tokens=image_tokens,
        lora_rank=rank,
        lora_dropout=options.lora_dropout,
        lora_fp32=options.lora_fp32,
        saved=saved.parameters,
        saved_head=saved.head,
        saved_modules=saved.names,
        quantized=options.finetune == "qlora",
        fused_loss=options.fused_loss,
        loads_first=options.loads_first,
        state_bytes=OPTIMIZERS[options.optimizer].state,
        outer_bytes=OPTIMIZERS[options.optimizer].outer,
        step_bytes=OPTIMIZERS[options.optimizer].step,
        bucket=bucket,
        max_live=live,
        prefetch=min(PREFETCH, bucket),
        reuse=live,
        overlap=world > 1,
        pin_memory=machine.system == "Linux",
        on_gpu=bool(machine.devices),
    )
    return as_in(
        setting, release_of(options.deepspeed), options.transformers, release_of(options.liger)
    )


def micro_batches(options: PlanOptions, world: int) -> tuple[int, ...]:
    """Micro-batches to try, the largest first: a larger one is preferred to accumulation."""
    if options.micro_batch:
        return (options.micro_batch,)
    if not options.global_batch:
        return MICRO_BATCHES[-1:] if options.objective == "memory" else MICRO_BATCHES
    each = options.global_batch // world
    sizes = tuple(size for size in range(min(each, 64), 0, -1) if each % size == 0)
    return sizes[-1:] if options.objective == "memory" else sizes


def recomputation(options: PlanOptions) -> tuple[bool, ...]:
    """Whether to recompute activations: without comes first."""
    if options.checkpointing is not None:
        return (options.checkpointing,)
    return (True,) if options.objective == "memory" else (False, True)


def size_option(
    model: ModelShape,
    base: Setting,
    options: PlanOptions,
    limits: Limits,
    workers: int,
    measured: Measured | None = None,
) -> MemoryOption:
    """The option at the largest micro-batch that fits, without recomputation if possible.

    If none fits, it is shown at the smallest micro-batch, with recomputation if allowed.
    """
    sizes, modes = micro_batches(options, base.world), recomputation(options)
    tried = [
        dataclasses.replace(
            base,
            micro_batch=size,
            checkpointing=mode,
            accumulation=(options.global_batch or size * base.world) // (size * base.world),
        )
        for mode in modes
        for size in sizes
    ]
    for setting in tried:
        passes = measured.moments(model, setting) if measured else None
        need = memory.estimate(model, setting, workers=workers, passes=passes)
        if limits.fits(need):
            return _row(setting, need, limits, fits=True)
    return _row(setting, need, limits, fits=False)


def _row(setting: Setting, need: memory.Memory, limits: Limits, *, fits: bool) -> MemoryOption:
    name = f"zero-{setting.stage}"
    return MemoryOption(
        name=name if setting.offload == "none" else f"{name}+{setting.offload}",
        stage=setting.stage,
        offload=setting.offload,
        micro_batch=setting.micro_batch,
        accumulation=setting.accumulation,
        checkpointing=setting.checkpointing,
        gpu=need.gpu,
        host=need.host,
        gpu_bytes=need.gpu_bytes,
        host_bytes=need.host_bytes,
        gpu_limit_bytes=limits.gpu,
        host_limit_bytes=limits.host,
        fits=fits,
        reason="" if fits else limits.why_not(need),
    )


def choose(rows: Sequence[MemoryOption], objective: str, avoided: Mapping[int, str]) -> int:
    """Index of the chosen option; if none fits, the one that exceeds its limits least.

    Args:
        rows: the options.
        objective: what to prefer.
        avoided: ZeRO stages that are not used, each with the reason.
    """

    def excess(index: int) -> float:
        row = rows[index]
        gpu = row.gpu_bytes / row.gpu_limit_bytes if row.gpu_limit_bytes else 0.0
        host = row.host_bytes / row.host_limit_bytes if row.host_limit_bytes else 0.0
        return max(gpu, host)

    taken = [index for index, row in enumerate(rows) if row.stage not in avoided]
    fitting = [index for index in taken if rows[index].fits]
    if not fitting:
        return min(taken, key=excess)
    if objective == "memory":
        return min(fitting, key=lambda index: (rows[index].gpu_bytes, rows[index].host_bytes))

    def cost(index: int) -> tuple[int, bool, int]:
        row = rows[index]
        return (OFFLOADS.index(row.offload), row.checkpointing, index)

    return min(fitting, key=cost)


def verdicts(
    rows: Sequence[MemoryOption],
    best: int,
    objective: str,
    world: int,
    avoided: Mapping[int, str],
) -> tuple[MemoryOption, ...]:
    """The rows with the decision on each, and the reason."""
    won = rows[best]
    judged = []
    for index, row in enumerate(rows):
        why = avoided.get(row.stage)
        if why is not None and row.fits:
            judged.append(msgspec.structs.replace(row, verdict="not advised", reason=why))
        else:
            judged.append(_with_verdict(row, won, objective, world, chosen=index == best))
    return tuple(judged)


def _with_verdict(
    row: MemoryOption, won: MemoryOption, objective: str, world: int, *, chosen: bool
) -> MemoryOption:
    verdict, reason = "alternative" if row.fits else "too large", row.reason
    if chosen and row.fits:
        verdict = "chosen"
        reason = (
            "takes the least memory on each GPU of all options that fit"
            if objective == "memory"
            else "the first option that fits with headroom, in order of the data moved per step"
        )
        if row.host_limit_bytes is None and row.offload != "none":
            reason += f", if the host has {row.host_bytes / GIB:.0f} GiB"
    elif row.fits and objective == "memory":
        reason = f"takes no less memory than {won.name}"
    elif row.fits and OFFLOADS.index(row.offload) > OFFLOADS.index(won.offload):
        reason = (
            f"copies to the host at every step, which {won.name} does not"
            if won.offload == "none"
            else f"copies more to the host at every step than {won.name}"
        )
    elif row.fits and row.checkpointing and not won.checkpointing:
        reason = f"fits only with activations recomputed, which {won.name} does not need"
    elif row.fits and world == 1 and row.offload == won.offload:
        reason = f"with one rank there is nothing to partition: {won.name} does the same"
    elif row.fits:
        reason = f"moves at least as much data in each step as {won.name}"
    judged: MemoryOption = msgspec.structs.replace(row, verdict=verdict, reason=reason)
    return judged


def largest_block(model: ModelShape, setting: Setting, row: MemoryOption) -> int:
    """Bytes of the largest tensor that a step allocates and frees: it needs one place.

    Logits in fp32, or the fp32 gradients of a partition.
    """
    logits = 0 if setting.fused_loss else 4 * setting.micro_batch * setting.sequence * model.logits
    return max(logits, *(item.bytes for item in row.gpu if item.name == "gradients in fp32"), 0)


def fragments_matter(model: ModelShape, setting: Setting, row: MemoryOption) -> bool:
    """Whether less stays free than the largest block takes.

    torch's allocator gives back cached segments before it runs out, but none in which a tensor is
    alive. Gemma-2-9b on eight GPUs of 40 GiB (ZeRO-3) found no place for 3.9 GiB of logits in the
    second step of a real engine, with 3.3 GiB free and 4.6 in fragments (benchmarks/memory.md).
    """
    if not row.fits or row.gpu_limit_bytes is None:
        return False
    return row.gpu_limit_bytes - row.gpu_bytes < largest_block(model, setting, row)


def headroom_left(row: MemoryOption) -> str:
    """What stays free with an option, in words."""
    parts = []
    for place, used, limit in (
        ("each GPU", row.gpu_bytes, row.gpu_limit_bytes),
        ("the host", row.host_bytes, row.host_limit_bytes),
    ):
        if limit:
            left = limit - used
            parts.append(f"{left / GIB:.1f} GiB ({left / limit:.0%}) of {place}")
    return " and ".join(parts)
