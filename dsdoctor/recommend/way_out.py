"""What would make a plan fit that does not: each change is sized before it is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from dsdoctor.errors import UsageError
from dsdoctor.model.launch_plan import MemoryOption, Reason
from dsdoctor.model.units import gib
from dsdoctor.recommend import choice, memory
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.options import PlanOptions, note
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: Numbers of GPUs on a host, and of hosts, that are tried.
GPUS, NODES = (2, 4, 8), (2, 4, 8, 16)
#: Sequences are shortened by halves to no less than this.
SHORTEST = 512
#: GPU memory as it is sold, GiB.
CARDS = (16, 24, 32, 40, 48, 80, 96, 141, 180, 288)
#: FSDP divides a quantized model while it loads: README of LLaMA-Factory, 2024-03-20; documentation
#: of bitsandbytes, "FSDP-QLoRA" (read 2026-11-23).
FSDP = (
    "DeepSpeed divides a 4-bit model only after each GPU has held all of it; FSDP with QLoRA "
    "divides it while it loads"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """All that a plan is computed from."""

    machine: Machine
    model: ModelShape
    options: PlanOptions
    base: Setting
    limits: choice.Limits
    workers: int

    def fitting(self) -> MemoryOption | None:
        """The first option that fits."""
        for stage, offload in choice.ladder(self.machine, self.options):
            setting = dataclasses.replace(self.base, stage=stage, offload=offload)
            row = choice.size_option(self.model, setting, self.options, self.limits, self.workers)
            if row.fits:
                return row
        return None

    def changed(self, machine: Machine | None = None, **options: object) -> Request:
        """The same request with other options, or on another machine."""
        asked = dataclasses.replace(self.options, **options)  # type: ignore[arg-type]
        machine = machine or self.machine
        world = max(1, len(machine.devices)) * asked.nodes
        sequence = asked.sequence or self.base.sequence
        base = choice.base_setting(
            machine,
            self.model,
            asked,
            precision=self.base.precision,
            sequence=sequence,
            world=world,
            attention=self.base.attention,
            image_tokens=min(self.base.image_tokens, sequence),
        )
        return dataclasses.replace(self, machine=machine, options=asked, base=base)


def _changes(request: Request) -> Iterator[tuple[str, Request]]:
    """One change each, the cheapest for the user first."""
    options, machine = request.options, request.machine
    if not options.fused_loss:
        yield "`--fused-loss` (Liger kernels)", request.changed(fused_loss=True)
    if options.finetune == "full":
        yield "`--finetune lora`", request.changed(finetune="lora")
    if options.finetune in ("full", "lora"):
        yield "`--finetune qlora`", request.changed(finetune="qlora", modules_to_save=())
    length = request.base.sequence // 2
    while length >= SHORTEST:
        yield f"`--seq-len {length}`", request.changed(sequence=length)
        length //= 2
    for count in GPUS:
        if 0 < len(machine.devices) < count and not any(one.mig for one in machine.devices):
            more = dataclasses.replace(machine, devices=machine.devices[:1] * count)
            yield f"{count} such GPUs", request.changed(more, global_batch=None)
    for nodes in NODES:
        if nodes > options.nodes and machine.devices:
            text = f"{nodes} nodes of {len(machine.devices)} such GPUs"
            yield text, request.changed(nodes=nodes, hosts=(), global_batch=None)


def _card(request: Request, rows: tuple[MemoryOption, ...]) -> str:
    """The memory that each GPU would have to have, of what is sold."""
    least = min(rows, key=lambda row: row.gpu_bytes)
    for size in CARDS:
        limits = dataclasses.replace(request.limits, gpu=size << 30)
        if any(limits.fits(memory.Memory(row.gpu, row.host)) for row in rows):
            return f"as many GPUs of {size} GB"
    return f"GPUs with more than {gib(least.gpu_bytes)} GiB"


def ways_out(request: Request, rows: tuple[MemoryOption, ...]) -> list[Reason]:
    """What fits in place of a plan that does not.

    Args:
        request: what was asked for.
        rows: all options, of which none fits.
    """
    found: list[str] = []
    kinds: set[str] = set()
    for text, changed in _changes(request):
        kind = text.split()[-1] if text.endswith("GPUs") else text.split()[0]
        kind = "nodes" if "nodes" in text else kind
        if kind in kinds:
            continue
        try:
            row = changed.fitting()
        except UsageError:
            continue
        if row is not None:
            kinds.add(kind)
            found.append(f"{text} ({row.name}, {gib(row.gpu_bytes)} GiB each)")
    if request.machine.devices:
        found.append(_card(request, rows))
    words = "; or ".join(found) if found else "nothing that was tried: a smaller model is needed"
    reasons = [note("fit", f"nothing fits; what would, each by itself: {words}")]
    if request.base.quantised and request.base.world > 1:
        reasons.append(note("fsdp", FSDP))
    return reasons
