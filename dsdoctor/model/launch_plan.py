"""The launch plan: what `recommend` prints, `smoke` proves and `--plan` reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dsdoctor.model import decode as limits

#: Phase of items that are there all the time.
RESIDENT = "resident"
SCHEMA = "dsdoctor/launch"
VERSION = 1


class MemoryItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that takes memory.

    Attributes:
        name: what it is (`parameters`, `activations`, …).
        bytes: how much.
        phase: `resident` (always there), or when it is there: `load` (before training), `loss`,
            `backward`, `clip` (norms of gradients) or `step` on a GPU, `load` or `training` on a
            host; the peak is resident plus the phase that takes most.
    """

    name: str
    bytes: int
    phase: str = RESIDENT


def peak(items: Sequence[MemoryItem]) -> tuple[str, list[MemoryItem]]:
    """The phase that takes most, and its items at that moment, the largest first."""
    sums: dict[str, int] = {}
    for item in items:
        if item.phase != RESIDENT:
            sums[item.phase] = sums.get(item.phase, 0) + item.bytes
    phase = max(sums, key=lambda name: sums[name], default=RESIDENT)
    return phase, sorted(
        (item for item in items if item.phase in (RESIDENT, phase)), key=lambda item: -item.bytes
    )


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why something was decided.

    Attributes:
        subject: what was decided on: an option (`zero-2`), or `precision`, `micro-batch`, ….
        verdict: `chosen`, `alternative`, `not advised`, `too large` or `note`.
        text: why, with the figures.
    """

    subject: str
    verdict: str
    text: str


class MemoryOption(msgspec.Struct, frozen=True, kw_only=True):
    """What one ZeRO stage with one kind of offload would take.

    Attributes:
        name: `zero-2`, `zero-3+optimizer+parameters`, ….
        stage: ZeRO stage.
        offload: what lies in host memory: `none`, `optimizer` or `optimizer+parameters`.
        micro_batch: sequences for each GPU at once; the largest that fits, else the smallest.
        accumulation: passes before a step at that micro-batch.
        checkpointing: activations are recomputed.
        gpu: items on each GPU.
        host: items on each host, all its ranks together.
        gpu_bytes: peak on each GPU.
        host_bytes: peak on each host.
        gpu_limit_bytes: what the fullest chosen GPU has free; None = no GPU.
        host_limit_bytes: what the host allows; None = not known.
        fits: both are below their limits less the headroom.
        verdict: `chosen`, `alternative` (fits, another was preferred), `not advised` (fits, but
            DeepSpeed would train wrongly) or `too large`.
        reason: why.
    """

    name: str
    stage: int
    offload: str
    micro_batch: int
    accumulation: int = 1
    checkpointing: bool
    gpu: tuple[MemoryItem, ...]
    host: tuple[MemoryItem, ...]
    gpu_bytes: int
    host_bytes: int
    gpu_limit_bytes: int | None
    host_limit_bytes: int | None
    fits: bool
    verdict: str = "too large"
    reason: str = ""


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """How far the chosen option reaches on some number of GPUs.

    Attributes:
        gpus: ranks in all.
        checkpointing: activations are recomputed.
        gpu_bytes: peak on each GPU at the plan's micro-batch and sequence.
        micro_batch: the largest that fits at the plan's sequence, 0 = none.
        sequence: tokens of the longest sequence that fits at the plan's micro-batch, 0 = none.
        host_short: no micro-batch fits, although one fits on the GPUs: the host's memory is too
            small.
    """

    gpus: int
    checkpointing: bool
    gpu_bytes: int
    micro_batch: int
    sequence: int
    host_short: bool = False


class PlanMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted memory.

    Attributes:
        chosen: name of the chosen option, None when nothing fits.
        headroom: share of each limit that is left free.
        options: all that were weighed, in the order of what each moves for a step.
        reach: the chosen option, or the nearest, with and without recomputation, on several
            numbers of GPUs.
    """

    chosen: str | None
    headroom: float
    options: tuple[MemoryOption, ...]
    reach: tuple[Reach, ...] = ()


class PlanModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model that was planned for."""

    name: str
    parameters: int
    trainable: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    gated: bool
    tied: bool


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one launch; the JSON of `recommend --format json`.

    Attributes:
        schema: `dsdoctor/launch`.
        version: moves when a key is removed.
        argv: the launch command; paths of written files are relative to the plan's folder.
        env: variables to set.
        ds_config: the DeepSpeed configuration; without "auto" unless `framework` is `hf`.
        memory: predictions.
        reasons: why each thing was decided.
        fits: whether an option fits; if not, the plan shows the one that comes nearest.
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        model: what was planned for.
        precision: `bf16`, `fp16` or `fp32`.
        stage, offload: the chosen option.
        micro_batch, accumulation, global_batch, world: the batch triangle.
        sequence: tokens in a sequence.
        checkpointing: activations are recomputed.
        attention: `flash`, `sdpa` or `eager`.
        finetune: `full`, `lora` or `qlora`.
        optimizer: type of the optimizer.
        workers: workers of each data loader.
        nodes: number of hosts.
        gpus_per_node: GPUs (or CPU ranks) on each host.
        gpu_ids: indices in PCI order.
        gpu_names: their products, in the order of gpu_ids; `GPU` where only figures are known,
            empty in a plan of an older release.
        gpu_uuids: the devices themselves, in the order of gpu_ids; empty when not known.
        hosts: names of the nodes, the first is the master; empty when not known.
        master_port: port on which the ranks meet.
        script: the user's training script.
        framework: what passes the config to DeepSpeed: `hf` (the Hugging Face Trainer, which fills
            in "auto") or `native`; "" in a plan of an older release.
        facts_as_of: the oldest day on which the figures that were computed with were compared with
            their sources (`2026-11-21`); "" in a plan of an older release.
    """

    schema: str = SCHEMA
    version: int = VERSION
    argv: tuple[str, ...]
    env: dict[str, str]
    ds_config: dict[str, Any]
    memory: PlanMemory
    reasons: tuple[Reason, ...]
    fits: bool
    launcher: str
    model: PlanModel
    precision: str
    stage: int
    offload: str
    micro_batch: int
    accumulation: int
    global_batch: int
    world: int
    sequence: int
    checkpointing: bool
    attention: str
    finetune: str
    optimizer: str
    workers: int
    nodes: int
    gpus_per_node: int
    gpu_ids: tuple[int, ...] = ()
    gpu_names: tuple[str, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    master_port: int = 29500
    script: str = "train.py"
    framework: str = ""
    facts_as_of: str = ""


def place(plan: LaunchPlan) -> str:
    """What each rank of a plan runs on: `H100 80GB HBM3`, `GPU` where they differ, `CPU rank`."""
    if not plan.gpu_ids:
        return "CPU rank"
    products = set(plan.gpu_names)
    return products.pop().removeprefix("NVIDIA ") if len(products) == 1 else "GPU"


def encode(plan: LaunchPlan) -> bytes:
    """The plan as JSON."""
    return msgspec.json.encode(plan)


def decode(data: bytes | str) -> LaunchPlan:
    """A plan that was saved.

    Raises:
        msgspec.ValidationError: it is not one.
    """
    try:
        plan = limits.typed(data, LaunchPlan)
    except limits.DecodeError as error:
        raise msgspec.ValidationError(str(error)) from None
    if plan.schema != SCHEMA or plan.version != VERSION:
        raise msgspec.ValidationError(
            f"the file is `{plan.schema}` version {plan.version}, expected `{SCHEMA}` {VERSION}"
        )
    return plan
