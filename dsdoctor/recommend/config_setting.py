"""The setting that a DeepSpeed config describes, and the keys that the figures leave out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsdoctor.recommend import optimizers
from dsdoctor.recommend.setting import MAX_LIVE, PREFETCH, SUB_GROUP, Setting

_PARTITIONED = 3
#: Samples of a rank in one forward pass.
MICRO_BATCH = "train_micro_batch_size_per_gpu"
_FLOAT32 = frozenset({"fp32", "float32"})
#: Default of `reduce_bucket_size`.
_BUCKET = 500_000_000


def section(config: Mapping[str, object], key: str) -> Mapping[str, object]:
    """A section of the config, empty if it does not exist."""
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _number(value: object, default: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return default
    return int(value)


def _is_enabled(part: Mapping[str, object]) -> bool:
    return part.get("enabled") is True or part.get("enabled") == "auto"


def _bf16(config: Mapping[str, object]) -> Mapping[str, object]:
    return section(config, "bf16") or section(config, "bfloat16")


def away(config: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """What is offloaded, `optimizer` and `param`, with its section.

    The keys that DeepSpeed replaced (`cpu_offload`, `cpu_offload_param`) mean an offload to the
    CPU.
    """
    zero = section(config, "zero_optimization")
    found = {}
    for part, old in (("optimizer", "cpu_offload"), ("param", "cpu_offload_param")):
        where = section(zero, f"offload_{part}")
        if not where and zero.get(old) is True:
            where = {"device": "cpu"}
        if where.get("device") in ("cpu", "nvme"):
            found[part] = where
    return found


def setting_of(  # one line for each key that affects memory
    config: Mapping[str, object],
    *,
    world: int,
    nodes: int,
    on_gpu: bool,
    pinned: bool,
    hidden: int | None = None,
) -> Setting:
    """The setting that a DeepSpeed config describes, with DeepSpeed 0.19.8's defaults.

    Args:
        config: the config.
        world: ranks on each host.
        nodes: hosts.
        on_gpu: the ranks run on GPUs.
        pinned: the value of `pin_memory` if the config does not set it.
        hidden: hidden width of the model, from which transformers fills in `auto` of the bucket
            (`trainer_config_finalize` of its integrations/deepspeed.py).
    """
    zero = section(config, "zero_optimization")
    stage = zero.get("stage")
    stage = stage if isinstance(stage, int) and 0 <= stage <= _PARTITIONED else 0
    moved = away(config)
    offload = "none"
    if stage and "optimizer" in moved:
        offload = "optimizer"
    if stage == _PARTITIONED and set(moved) == {"optimizer", "param"}:
        offload = "optimizer+parameters"
    precision = "fp32"
    if _is_enabled(section(config, "fp16")):
        precision = "fp16"
    if _is_enabled(_bf16(config)):
        precision = "bf16"
    chosen = section(config, "optimizer")
    kept = optimizers.named(str(chosen.get("type", "adamw")), section(chosen, "params"))
    overlap = zero.get("overlap_comm")
    bucket = zero.get("reduce_bucket_size")
    automatic = hidden * hidden if hidden and bucket == "auto" else _BUCKET
    state, master = kept.state, _master_width(config)
    if _bf16(config).get("bf16_optimizer_states") is True:
        state /= 2
    return Setting(
        stage=stage,
        offload=offload,
        micro_batch=_number(config.get(MICRO_BATCH), 1),
        accumulation=_number(config.get("gradient_accumulation_steps"), 1),
        world=max(world, 1) * nodes,
        nodes=nodes,
        precision=precision,
        checkpointing=True,
        state_bytes=state,
        outer_bytes=kept.outer,
        step_bytes=kept.step,
        master_width=master,
        gradient_width=_width(section(config, "data_types").get("grad_accum_dtype")),
        reduce_width=_width(config.get("communication_data_type")),
        bucket=_number(bucket, automatic),
        overlap=overlap if isinstance(overlap, bool) else stage == _PARTITIONED,
        max_live=_number(zero.get("stage3_max_live_parameters"), MAX_LIVE),
        prefetch=_number(zero.get("stage3_prefetch_bucket_size"), PREFETCH),
        reuse=_number(zero.get("stage3_max_reuse_distance"), MAX_LIVE),
        sub_group=_number(zero.get("sub_group_size"), SUB_GROUP),
        secondary=_number(zero.get("zero_hpz_partition_size"), 1),
        pin_memory=any(part.get("pin_memory", pinned) is True for part in moved.values()),
        on_gpu=on_gpu,
    )


def _width(name: object) -> int | None:
    """4 if the config sets a type to fp32; None otherwise, which means the width of a weight."""
    return 4 if str(name).lower() in _FLOAT32 else None


def _master_width(config: Mapping[str, object]) -> int:
    """Bytes of a master weight: 4, or 2 if it is kept in the training precision."""
    half = section(config, "fp16").get("fp16_master_weights_and_grads") is True
    return 2 if half or _bf16(config).get("bf16_master_weights_and_grads") is True else 4


#: Keys of `zero_optimization` that change memory if set, and are not modeled.
_ZERO = (
    "zero_quantized_weights",
    "zero_quantized_nontrainable_weights",
    "zero_quantized_gradients",
    "zenflow",
    "stage3_module_granularity_threshold",
    "leaf_module",
)
#: The same of the config itself.
_SECTIONS = (
    "tensor_parallel",
    "expert_parallel",
    "hybrid_engine",
    "compile",
    "amp",
    "torch_autocast",
)
#: The same of `activation_checkpointing`; only `deepspeed.checkpointing` reads them.
_CHECKPOINTING = ("partition_activations", "cpu_checkpointing", "contiguous_memory_optimization")


def left_out(config: Mapping[str, object]) -> Iterator[str]:
    """Keys of the config that change memory and that the figures do not count."""
    zero = section(config, "zero_optimization")
    yield from (f"zero_optimization.{key}" for key in _ZERO if _set(zero.get(key)))
    if _number(zero.get("mics_shard_size"), 0) > 0:
        yield "zero_optimization.mics_shard_size"
    moved = away(config).get("optimizer", {})
    if moved.get("super_offload") is True:
        yield "zero_optimization.offload_optimizer.super_offload"
    ratio = moved.get("ratio")
    if isinstance(ratio, int | float) and ratio < 1:
        yield "zero_optimization.offload_optimizer.ratio"
    yield from (key for key in _SECTIONS if _set(config.get(key)))
    if _number(config.get("sequence_parallel_size"), 1) > 1:
        yield "sequence_parallel_size"
    part = section(config, "activation_checkpointing")
    yield from (f"activation_checkpointing.{key}" for key in _CHECKPOINTING if _set(part.get(key)))
    kind = section(config, "optimizer").get("type")
    if isinstance(kind, str) and not optimizers.is_known(kind):
        yield f"the state of optimizer {kind[:40]} (taken to be Adam's)"


def _set(value: object) -> bool:
    """Whether a key is set, or a section exists and is not turned off."""
    if isinstance(value, dict):
        return bool(value) and value.get("enabled", value.get("deepcompile")) is not False
    return value not in (None, False, 0, "", [])
