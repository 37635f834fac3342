"""What the memory model of `recommend` predicts for a smoke run."""

from __future__ import annotations

from dsdoctor.model.launch_plan import MemoryItem
from dsdoctor.recommend import memory, optimizers
from dsdoctor.recommend.models import ModelShape
from dsdoctor.smoke.job import SmokePlan, offload_of

#: Items that, if resident, are allocated between the backward pass and the step.
STATES = frozenset(
    {
        "parameters", "gradients", "optimizer", "master weights", "accumulated gradients",
        "16-bit staging", "gradients in fp32",
    }
)  # fmt: skip
#: Memory that torch has not allocated: the context, NCCL's own buffers, gaps.
OUTSIDE = frozenset({"CUDA context", "NCCL", "fragmentation"})


def shape_of(plan: SmokePlan) -> ModelShape:
    """The model that the ranks build."""
    shape = {k: v for k, v in plan.job["shape"].items() if k not in ("attention", "checkpointing")}
    return ModelShape(name=plan.model_name, max_length=plan.job["sequence"], **shape)


def setting_of(plan: SmokePlan) -> memory.Setting:
    """The run as the memory model sees it."""
    config = plan.job["ds_config"]
    zero = config.get("zero_optimization")
    zero = zero if isinstance(zero, dict) else {}
    stage, offload = offload_of(config)
    block = config.get("optimizer", {})
    kept = optimizers.named(str(block.get("type", "adamw")), block.get("params"))
    return memory.Setting(
        stage=stage,
        offload=offload,
        micro_batch=plan.job["micro_batch"],
        sequence=plan.job["sequence"],
        accumulation=plan.job["accumulation"],
        world=plan.world,
        nodes=plan.launch.nodes,
        precision=plan.job["precision"],
        attention=plan.job["shape"]["attention"],
        checkpointing=bool(plan.job["shape"]["checkpointing"]),
        state_bytes=kept.state,
        outer_bytes=kept.outer,
        step_bytes=kept.step,
        bucket=int(zero.get("reduce_bucket_size", 500_000_000)),
        overlap=bool(zero.get("overlap_comm", stage == 3)),  # noqa: PLR2004
        max_live=int(zero.get("stage3_max_live_parameters", memory.MAX_LIVE)),
        on_gpu=plan.device == "cuda",
    )


def _is_state(name: str, phase: str) -> bool:
    """Whether it is a model state; gradients of stages 1 and 2 exist until the step."""
    return name in STATES and (phase == "resident" or (name == "gradients" and phase == "step"))


def _sum(items: tuple[MemoryItem, ...], share: int = 1) -> int:
    return sum(
        item.bytes // share
        for item in items
        if _is_state(item.name.removesuffix(" (ranks)"), item.phase)
    )


def model_states(plan: SmokePlan) -> int:
    """Bytes of one rank's weights, gradients and optimizer on any device, before a step."""
    setting = setting_of(plan)
    need = memory.estimate(shape_of(plan), setting)
    return _sum(need.gpu) + _sum(need.host, setting.ranks_per_node)


def device_peak(plan: SmokePlan) -> int | None:
    """The predicted peak of torch's allocator on one GPU."""
    if plan.device != "cuda":
        return None
    need = memory.estimate(shape_of(plan), setting_of(plan))
    return memory.peak(item for item in need.gpu if item.name not in OUTSIDE)


def host_peak(plan: SmokePlan) -> int:
    """The predicted host memory of all ranks of one host."""
    return memory.estimate(shape_of(plan), setting_of(plan)).host_bytes
