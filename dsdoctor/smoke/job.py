"""From a launch plan to the job that the ranks of a smoke run read. Pure functions."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from dsdoctor.errors import UsageError
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend.models import ModelShape

#: The learning rate of a run with a small model, whatever the config sets: the loss must fall in
#: ten steps, which the rates of real fine-tuning would not show.
SMALL_RATE = 1e-3
SEED = 1234
#: Default number of training steps.
STEPS = 10
LARGEST_MICRO_BATCH = 2
LARGEST_ACCUMULATION = 2
SMALL_SEQUENCE = 64
#: Seconds for which a rank continues after dsdoctor has stopped touching its file.
PATIENCE, REMOTE_PATIENCE = 20, 150

TINY = ModelShape(
    name="tiny", layers=2, hidden=128, heads=4, kv_heads=4, head_dim=32, intermediate=512,
    vocab=512, positions=SMALL_SEQUENCE, max_length=SMALL_SEQUENCE, tied=True, gated=False,
    qkv_bias=True, out_bias=True, mlp_bias=True, norm_bias=True,
)  # fmt: skip

#: The config of `dsdoctor smoke` without options: the optimizer is partitioned to test ZeRO too.
DEFAULT_CONFIG: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 1,
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}},
    "zero_optimization": {"stage": 1},
    "steps_per_print": 100,
}

_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
_ADAM = {"adam": True, "adamw": True}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmokePlan:
    """One run.

    Attributes:
        launch: the launch plan to prove, as the user would run it.
        job: what the ranks read.
        changed: changes to the user's config for this run, and why.
        device: `cuda` or `cpu`.
        uuids: UUID that each local rank must have, empty = not known.
        hostfile: value of `--hostfile`.
        full_size: the model has the planned shape.
        env: further variables (knobs of the bisection).
        model_name: as the user wrote it.
    """

    launch: LaunchPlan
    job: dict[str, Any]
    changed: tuple[str, ...]
    device: str
    uuids: tuple[str, ...] = ()
    hostfile: str | None = None
    full_size: bool = False
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    model_name: str = "tiny"

    @property
    def world(self) -> int:
        """Total number of ranks."""
        return self.launch.world


def small(shape: ModelShape) -> ModelShape:
    """A small model of the same kind (gates, biases, norms, shared heads), for runs of seconds."""
    heads = 4
    ratio = max(1, shape.heads // shape.kv_heads)
    kv_heads = max(1, heads // ratio) if heads % max(1, heads // ratio) == 0 else heads
    return dataclasses.replace(
        shape, layers=2, hidden=128, heads=heads, kv_heads=kv_heads, head_dim=32,
        intermediate=512, vocab=512, positions=SMALL_SEQUENCE if shape.positions else 0,
        max_length=SMALL_SEQUENCE, norms_per_layer=2, qk_norm=False, stated_parameters=None,
    )  # fmt: skip


def precision_of(config: dict[str, Any]) -> str:
    """The training precision of a DeepSpeed config."""
    for key, name in (("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")):
        block = config.get(key)
        if isinstance(block, dict) and block.get("enabled") is True:
            return name
    return "fp32"


def with_precision(config: dict[str, Any], precision: str) -> dict[str, Any]:
    """The config in another training precision."""
    changed = {key: value for key, value in config.items() if key not in ("bf16", "fp16")}
    changed.pop("bfloat16", None)
    if precision != "fp32":
        given = config.get(precision)
        block = dict(given) if isinstance(given, dict) else {}
        changed[precision] = {**block, "enabled": True}
    return changed


def offload_of(config: dict[str, Any]) -> tuple[int, str]:
    """Stage and offload of a config, in the terms of the launch plan."""
    zero = config.get("zero_optimization")
    zero = zero if isinstance(zero, dict) else {}
    stage = zero.get("stage", 0)
    stage = stage if isinstance(stage, int) else 0

    def is_on(key: str) -> bool:
        block = zero.get(key)
        return isinstance(block, dict) and block.get("device", "cpu") not in ("none", None)

    if is_on("offload_param") and stage == 3:  # noqa: PLR2004
        return stage, "optimizer+parameters"
    return stage, "optimizer" if is_on("offload_optimizer") and stage else "none"


def _without_auto(value: Any, path: str, dropped: list[str]) -> Any:
    if not isinstance(value, dict):
        return value
    result = {}
    for key, entry in value.items():
        place = f"{path}.{key}" if path else key
        if entry == "auto":
            dropped.append(place)
        else:
            result[key] = _without_auto(entry, place, dropped)
    return result


def _batch(config: dict[str, Any], world: int, *, shrink: bool) -> tuple[int, int, list[str]]:
    """Micro-batch and accumulation of this run; the keys in the config are set to match.

    Inconsistent batch sizes are not corrected: the ranks must see what the user's job would see.
    """
    given = {key: config[key] for key in _BATCH if key in config}
    if any(isinstance(value, bool) or not isinstance(value, int) for value in given.values()):
        return 1, 1, []
    total, micro, passes = (given.get(key) for key in _BATCH)
    if total is not None:
        if micro is None and passes is None:
            passes = 1
        if micro is None:
            micro, rest = divmod(total, world * (passes or 1))
        elif passes is None:
            passes, rest = divmod(total, world * micro) if micro else (1, 1)
        else:
            rest = total - micro * passes * world
        if rest or not micro or not passes:
            return 1, 1, []
    micro, passes = micro or 1, passes or 1
    if not shrink:
        return micro, passes, []
    fewer = (min(micro, LARGEST_MICRO_BATCH), min(passes, LARGEST_ACCUMULATION))
    changed = []
    if fewer != (micro, passes):
        changed.append(
            f"micro-batch {micro} to {fewer[0]} and accumulation {passes} to {fewer[1]}: "
            "a small run does not test memory use"
        )
    for key in _BATCH:
        config.pop(key, None)
    config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"] = fewer
    config["train_batch_size"] = fewer[0] * fewer[1] * world
    return fewer[0], fewer[1], changed


def _adam(config: dict[str, Any]) -> dict[str, Any] | None:
    """Adam's settings for the reference run, as in the engine; None for another optimizer."""
    block = config.get("optimizer")
    block = block if isinstance(block, dict) else {}
    kind = str(block.get("type", "")).lower()
    if kind not in _ADAM:
        return None
    params = block.get("params")
    params = params if isinstance(params, dict) else {}
    decoupled = kind == "adamw" or params.get("adam_w_mode", True) is True
    return {
        "betas": params.get("betas", [0.9, 0.999]),
        "eps": params.get("eps", 1e-8),
        "weight_decay": params.get("weight_decay", 0.0),
        "decoupled": decoupled,
    }


def ops_of(config: dict[str, Any], device: str) -> list[str]:
    """Builders of the ops that DeepSpeed 0.19.8 loads for a config (`engine.py`, `comm/torch.py`).

    On CPUs, the shared-memory all-reduce is added.
    """
    ops = ["ShareMemCommBuilder"] if device == "cpu" else []
    block = config.get("optimizer")
    block = block if isinstance(block, dict) else {}
    kind = str(block.get("type", "")).lower()
    params = block.get("params")
    if isinstance(params, dict) and params.get("torch_adam"):
        return ops
    on_host = offload_of(config)[1] != "none"
    if kind in _ADAM:
        ops.append("CPUAdamBuilder" if on_host else "FusedAdamBuilder")
    elif kind == "lion":
        ops.append("CPULionBuilder" if on_host else "FusedLionBuilder")
    elif kind == "adagrad" and on_host:
        ops.append("CPUAdagradBuilder")
    elif kind == "lamb":
        ops.append("FusedLambBuilder")
    return ops


def _shape_of(launch: LaunchPlan, shape: ModelShape) -> dict[str, Any]:
    keys = (
        "layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "positions",
        "tied", "gated", "qkv_bias", "out_bias", "mlp_bias", "norm_bias",
    )  # fmt: skip
    return {
        **{key: getattr(shape, key) for key in keys},
        "attention": launch.attention,
        "checkpointing": launch.checkpointing,
    }


def planned_uuids(launch: LaunchPlan, gpus: Gpus | None) -> tuple[str, ...]:
    """UUIDs of the chosen GPUs in the order of the local ranks; empty if one is not known."""
    if gpus is None:
        return ()
    by_index = {gpu.index: gpu.uuid or "" for gpu in gpus.gpus}
    found = tuple(by_index.get(index, "") for index in launch.gpu_ids)
    return found if all(found) else ()


def _job(
    launch: LaunchPlan,
    config: dict[str, Any],
    shape: ModelShape,
    *,
    sequence: int,
    steps: int,
    batch: tuple[int, int],
) -> dict[str, Any]:
    """The job file for the ranks of a run with a small model."""
    device = "cuda" if launch.gpu_ids else "cpu"
    clip = config.get("gradient_clipping", 0.0)
    return {
        "device": device,
        "world": launch.world,
        "nodes": launch.nodes,
        "precision": precision_of(config),
        "collective_timeout": 1800,
        "patience": PATIENCE if launch.nodes == 1 else REMOTE_PATIENCE,
        "ops": ops_of(config, device),
        "seed": SEED,
        "shape": _shape_of(launch, shape),
        "ds_config": config,
        "full_size": False,
        "checkpoint": True,
        "lr": SMALL_RATE,
        "micro_batch": batch[0],
        "accumulation": batch[1],
        "sequence": sequence,
        "steps": max(steps, 3),
        "clip": clip if isinstance(clip, (int, float)) else 0.0,
        "adam": _adam(config),
    }


def make(
    launch: LaunchPlan,
    shape: ModelShape,
    *,
    steps: int,
    full_size: bool,
    uuids: tuple[str, ...] = (),
    hostfile: str | None = None,
    fault: dict[str, Any] | None = None,
) -> SmokePlan:
    """The run that proves a launch plan.

    Args:
        launch: the plan to prove.
        shape: the model of the plan.
        steps: training steps.
        full_size: build that model; otherwise a small one of its kind.
        uuids: GPU of each local rank.
        hostfile: for several hosts.
        fault: breaks something on purpose; for tests.

    Raises:
        UsageError: the plan cannot be run.
    """
    if launch.finetune == "lora" and full_size:
        raise UsageError("`--full-size` trains all parameters; expected a plan without LoRA")
    config = copy.deepcopy(launch.ds_config)
    dropped: list[str] = []
    config = _without_auto(config, "", dropped)
    changed = [f'`{place}` is "auto": left to smoke\'s own value' for place in dropped]
    micro, passes, shrunk = _batch(config, launch.world, shrink=not full_size)
    changed += shrunk
    if not any(key in config for key in _BATCH):
        config["train_micro_batch_size_per_gpu"] = micro
    optimizer = config.get("optimizer")
    if not isinstance(optimizer, dict) or "type" not in optimizer:
        config["optimizer"] = {"type": "AdamW", "params": {"lr": SMALL_RATE}}
        changed.append("the config has no optimizer: AdamW")
    if not full_size:
        changed.append(f"learning rate {SMALL_RATE:g} in every step: the loss must fall visibly")
    sequence = launch.sequence if full_size else SMALL_SEQUENCE
    used = shape if full_size else small(shape)
    if used.positions and used.positions < sequence:
        raise UsageError(
            f"the sequence has {sequence} tokens, but {shape.name} has {used.positions} positions; "
            f"create the plan with `--seq-len {used.positions}`"
        )
    job = _job(launch, config, used, sequence=sequence, steps=steps, batch=(micro, passes))
    if full_size:
        job |= {"full_size": True, "checkpoint": False, "lr": None, "adam": None}
    if fault:
        job["fault"] = fault
    return SmokePlan(
        launch=launch,
        job=job,
        changed=tuple(changed),
        device=job["device"],
        uuids=uuids,
        hostfile=hostfile,
        full_size=full_size,
        model_name=shape.name,
    )
