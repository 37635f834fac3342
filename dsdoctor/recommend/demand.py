"""What a run will need: the memory model for the given config or plan."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dsdoctor.api import (
    DeepSpeedInstall,
    Environment,
    Gpu,
    Gpus,
    LaunchCommand,
    Packages,
    RunNeeds,
    TrainingJob,
)
from dsdoctor.model import partial
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.memory import Fit, MemoryDemand
from dsdoctor.model.facts.run import PlanNeeds
from dsdoctor.model.launch_plan import MemoryItem
from dsdoctor.recommend import memory, releases
from dsdoctor.recommend.choice import Limits
from dsdoctor.recommend.config_setting import MICRO_BATCH, away, left_out, section, setting_of
from dsdoctor.recommend.device import QUANTIZED_BITS
from dsdoctor.recommend.options import HEADROOM, choose_attention, choose_images
from dsdoctor.recommend.reach import reach
from dsdoctor.recommend.saved import saved_of
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import Latent, ModelShape, Tower
from dsdoctor.recommend.traits import traits_of

#: Items that depend on the data, on buffers that DeepSpeed can shrink, on NCCL, or on how a script
#: loads its weights, and items that are guesses per process.
_VARIABLE = frozenset(
    {
        "NCCL",
        "activations",
        "data loader workers",
        "dequantized matrix",
        "finished gradients",
        "flattening",
        "fragmentation",
        "gathered parameters",
        "boundary gradients",
        "gradient in flight",
        "gradient beside bucket",
        "logits",
        "norm in fp64",
        "overflow check",
        "processes",
        "reduction copy",
        "weights being loaded",
        "working block",
        "workspaces",
    }
)
#: What torch adds to pinned blocks.
_PINNED = frozenset({"pinned rounding", "pinned cache"})
#: What NVMe offload removes from host memory.
_SWAPPED = frozenset({"master weights", "optimizer"})
_PARTITIONED = 3
#: Configs that come with ms-swift 4.2 (config/ of the package), by the name of `--deepspeed`.
_PRESET = re.compile(r"(?:default-|deepspeed_)?zero([0-3])(_offload)?")


def gpus_and_nodes(
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
) -> tuple[int, int]:
    """GPUs that the run uses on this host (0 = none), and its nodes."""
    nodes = 1
    if isinstance(command, LaunchCommand):
        nodes = command.num_nodes or 1
        if command.num_gpus:
            return command.num_gpus, nodes
    if run.gpus or run.expect_gpus:
        return len(run.gpus) or run.expect_gpus or 0, nodes
    if isinstance(gpus, Missing):
        return 0, nodes
    count = len(gpus.gpus)
    visible = None if isinstance(env, Missing) else env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        count = min(count, len([token for token in visible.split(",") if token.strip()]))
    return count, nodes


def shape_of(model: Mapping[str, object]) -> ModelShape:
    """The shape of `RunNeeds.model`."""
    names = {field.name for field in dataclasses.fields(ModelShape)}
    known: dict[str, Any] = {key: value for key, value in model.items() if key in names}
    if isinstance(known.get("latent"), dict):
        known["latent"] = Latent(**known["latent"])
    known["towers"] = tuple(
        Tower(**{**tower, "blocks": shape_of(tower["blocks"])}) for tower in known.get("towers", ())
    )
    known["sizes"] = tuple(known.get("sizes", ()))
    known["modules"] = tuple(tuple(row) for row in known.get("modules", ()))
    known["stacked"] = tuple(known.get("stacked", ()))
    known["shared"] = tuple((later, first) for later, first in known.get("shared", ()))
    return ModelShape(**known)


def of_plan(plan: PlanNeeds) -> MemoryDemand:
    """The demand according to the plan of --plan."""
    return MemoryDemand(
        source="plan",
        what=f"the plan `{plan.path}` ({plan.option})",
        ranks_here=max(plan.gpus_per_node, 1),
        on_gpu=plan.gpus_per_node > 0,
        gpu_bytes=plan.gpu_bytes,
        gpu_state_bytes=plan.gpu_state_bytes,
        host_bytes=plan.host_bytes,
        host_state_bytes=plan.host_state_bytes,
        gpu_items=plan.gpu_items,
        host_items=plan.host_items,
        pinned_rounding_bytes=plan.host_items.get("pinned rounding", 0),
    )


def _words(setting: Setting, ranks: int) -> str:
    moved = {"none": "", "optimizer": " with the optimizer offloaded"}.get(
        setting.offload, " with optimizer and parameters offloaded"
    )
    where = f"{ranks} {'GPU' if ranks == 1 else 'GPUs'}" if setting.on_gpu else "the CPU"
    nodes = f" of each of {setting.nodes} nodes" if setting.nodes > 1 else ""
    return f"ZeRO-{setting.stage}{moved} on {where}{nodes}"


def _kind(item: MemoryItem) -> str:
    """The name of an item without the mark `(ranks)`, which the items of CPU ranks have."""
    return item.name.removesuffix(" (ranks)")


def certain_bytes(items: Iterable[MemoryItem]) -> int:
    """The peak of the memory that is needed whatever the data."""
    return memory.peak(item for item in items if _kind(item) not in _VARIABLE)


def _without_weights(need: memory.Memory, setting: Setting, run: RunNeeds) -> memory.Memory:
    """Moves the weights to the host if only they are offloaded.

    DeepSpeed 0.19.8 allows it (zero/stage3.py: `offload_param` without `offload_optimizer`), and
    the memory model has no option of that kind.
    """
    if (
        "param" not in away(run.config or {})
        or setting.stage != _PARTITIONED
        or setting.offload != "none"
    ):
        return need
    kept = tuple(item for item in need.gpu if item.name != "parameters")
    moved = tuple(
        MemoryItem(name="parameters", bytes=item.bytes * setting.ranks_per_node)
        for item in need.gpu
        if item.name == "parameters"
    )
    return memory.Memory(kept, need.host + moved)


def _floors(model: ModelShape, adapters: Setting, run: RunNeeds) -> tuple[int, int]:
    """The minimum need of adapters on 4-bit weights, on a GPU and on this host.

    Buckets and the rounding of pinned blocks are left out: buckets depend on the trained
    parameters, and rounding on the size of blocks, which are not those of 16-bit weights.
    """
    small = dataclasses.replace(adapters, bucket=0)
    need = _without_weights(memory.estimate(model, small), small, run)
    width = 8 * adapters.width / QUANTIZED_BITS
    gpu, host = (
        [
            msgspec.structs.replace(item, bytes=int(item.bytes / width))
            if _kind(item) == "parameters"
            else item
            for item in items
            if item.name not in _PINNED
        ]
        for items in (need.gpu, need.host)
    )
    return certain_bytes(gpu), certain_bytes(host)


def _fits(model: ModelShape, setting: Setting, free: int | None) -> tuple[Fit, ...]:
    """What fits on GPUs with this much free memory; none if it is not known."""
    if free is None or not setting.on_gpu:
        return ()
    limits = Limits(free, None, HEADROOM["speed"])
    return tuple(
        Fit(**msgspec.structs.asdict(row)) for row in reach(model, setting, limits, workers=0)
    )


def completed(run: RunNeeds, job: TrainingJob | Missing) -> RunNeeds:
    """The request with what the command says of the training, where the request does not."""
    if isinstance(job, Missing):
        return run
    config = run.config
    if config is None and (preset := _PRESET.fullmatch(job.preset)):
        to_cpu = {"device": "cpu"}
        zero: dict[str, object] = {"stage": int(preset[1])}
        if preset[2]:
            zero["offload_optimizer"] = to_cpu
            zero |= {"offload_param": to_cpu} if preset[1] == "3" else {}
        config = {"bf16": {"enabled": "auto"}, "zero_optimization": zero}
    if config is not None and job.micro_batch and config.get(MICRO_BATCH) in ("auto", None):
        config = {**config, MICRO_BATCH: job.micro_batch}
    adapters = run.finetune is None and job.method == "lora" and job.lora_rank
    changed: RunNeeds = msgspec.structs.replace(
        run,
        config=config,
        model=job.shape if run.model is None else run.model,
        model_given=run.model_given or job.path,
        sequence=run.sequence or job.sequence,
        finetune=run.finetune or job.method or None,
        lora_rank=job.lora_rank if adapters else run.lora_rank,
    )
    return changed


def demand_of(
    run: RunNeeds,
    ranks: int,
    nodes: int,
    deepspeed: DeepSpeedInstall | Missing,
    free: int | None = None,
    transformers: str | None = None,
    *,
    source: str = "model",
) -> MemoryDemand:
    """The demand of a model with --config on these GPUs and hosts.

    Args:
        run: the request.
        ranks: GPUs of this host, 0 = none.
        nodes: hosts.
        deepspeed: its release decides the default of `pin_memory`.
        free: free bytes of the fullest GPU, None = not known.
        transformers: its release decides how T5 computes attention, None = not known.
        source: `model` if it was given with --model, or `command`.
    """
    model = shape_of(run.model or {})
    known = None if isinstance(deepspeed, Missing) else deepspeed.version
    release = releases.release_of(known)
    setting = setting_of(
        run.config or {},
        world=max(ranks, 1),
        nodes=nodes,
        on_gpu=ranks > 0,
        pinned=releases.at_least(release, releases.PINNED_BY_DEFAULT),
        hidden=model.hidden,
    )
    sequence = run.sequence or min(model.max_length, 2048)
    setting = dataclasses.replace(
        releases.as_in(setting, release, transformers),
        sequence=sequence,
        attention=choose_attention(model, None, sequence, transformers)[0],
        image_tokens=choose_images(model, sequence, None)[0],
    )
    saved = saved_of(run.modules_to_save, model)
    adapters = dataclasses.replace(
        setting, lora_rank=run.lora_rank, saved=saved.parameters, saved_head=saved.head
    )
    if run.finetune == "lora":
        setting = adapters
    need = _without_weights(memory.estimate(model, setting), setting, run)
    plain = dataclasses.replace(setting, checkpointing=False)
    kept = _without_weights(memory.estimate(model, plain), plain, run)
    host = {item.name: item.bytes for item in need.host}
    host_bytes, host_state = need.host_bytes, certain_bytes(need.host)
    nvme = section(section(run.config or {}, "zero_optimization"), "offload_optimizer")
    if nvme.get("device") == "nvme":
        swapped = sum(host.pop(name, 0) for name in _SWAPPED)
        host_bytes, host_state = host_bytes - swapped, host_state - swapped
    gpu_floor = host_floor = None
    if run.finetune != "full":
        gpu_floor, host_floor = _floors(model, adapters, run)
    trained = {"full": [], "lora": ["frozen weights are held in 16 bits"]}
    assumed = [*trained.get(run.finetune or "", ["all parameters are trained"])]
    assumed.append("activations are recomputed")
    if model.stated_parameters is not None:
        assumed.append("the shape of a typical model of that size")
    if not isinstance((run.config or {}).get(MICRO_BATCH), int):
        assumed.append(f"micro-batch of {setting.micro_batch}")
    if run.sequence is None:
        assumed.append(f"sequences of {sequence} tokens")
    if traits_of(model.family).relative_bias and setting.bias_kernel is None:
        assumed.append(
            f"attention scores of {model.family} are stored, as before transformers "
            f"{releases.T5_KERNEL}"
        )
    if setting.image_tokens:
        assumed.append(f"{setting.image_tokens} tokens of a sequence are an image")
    assumed += [f"`{key}` is not counted" for key in left_out(run.config or {})]
    if run.config is None:
        assumed.append("no config: ZeRO-0 in fp32")
    if source == "command":  # what depends on more than its options say is not judged
        stated = model.stated_parameters is not None
        assumed = ["the size that the model's name states"] if stated else []
    return MemoryDemand(
        source=source,
        model=run.model_given,
        what=f"{model.name}{', adapters' if setting.lora_rank else ''}, {_words(setting, ranks)}",
        ranks_here=max(ranks, 1),
        on_gpu=ranks > 0,
        gpu_bytes=need.gpu_bytes,
        gpu_state_bytes=certain_bytes(need.gpu),
        gpu_floor_bytes=gpu_floor,
        host_floor_bytes=host_floor,
        host_state_bytes=host_state,
        host_bytes=host_bytes,
        gpu_items={item.name: item.bytes for item in memory.at_peak(need.gpu)},
        plain_bytes=kept.gpu_bytes,
        plain_items={item.name: item.bytes for item in memory.at_peak(kept.gpu)},
        host_items=host,
        fits=_fits(model, setting, free),
        pinned_rounding_bytes=host.get("pinned rounding", 0),
        assumed=tuple(assumed),
    )


def transformers_in(packages: Packages | Missing) -> str | None:
    """The release of transformers; None = not known."""
    if isinstance(packages, Missing):
        return None
    with contextlib.suppress(partial.NotStated):  # a paste may not contain it
        return packages.version("transformers")
    return None


def _most_of_slices(gpu: Gpu) -> int | None:
    """Memory of the largest MIG device, of which a process sees one; None = there is none."""
    with contextlib.suppress(partial.NotStated):  # a paste may not contain it
        held = gpu.mig_devices or () if gpu.mig_mode else ()
        return max((one.memory_total_bytes or 0 for one in held), default=None)
    return None


def free_of(gpus: Gpus | Missing) -> int | None:
    """Free bytes of the fullest GPU; None = not known."""
    if isinstance(gpus, Missing):
        return None
    with contextlib.suppress(partial.NotStated):  # a paste may not contain it
        sizes = [
            slices
            if (slices := _most_of_slices(gpu)) is not None
            else gpu.memory_total_bytes
            if gpu.memory_free_bytes is None
            else gpu.memory_free_bytes
            for gpu in gpus.gpus
        ]
        return min((size for size in sizes if size), default=None)
    return None
