"""The launch plan: the first setting that fits this machine with headroom."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from dsdoctor.errors import UsageError
from dsdoctor.framework import HF
from dsdoctor.model.launch_plan import (
    LaunchPlan,
    MemoryOption,
    PlanMemory,
    PlanModel,
    Reach,
    Reason,
)
from dsdoctor.model.units import GIB
from dsdoctor.recommend import choice, output, trainer, way_out
from dsdoctor.recommend.machine import Machine, machine_from, machine_of
from dsdoctor.recommend.measured import Measured
from dsdoctor.recommend.models import ASSUMED_VOCAB
from dsdoctor.recommend.notes import notes_on
from dsdoctor.recommend.optimizers import OPTIMIZERS
from dsdoctor.recommend.options import (
    PlanOptions,
    choose_attention,
    choose_images,
    choose_launcher,
    choose_precision,
    choose_sequence,
    note,
    validate,
)
from dsdoctor.recommend.reach import reach
from dsdoctor.recommend.saved import trained_parameters
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape
from dsdoctor.recommend.tables import FACTS_AS_OF

#: Measures a model: its shape, a setting, micro-batches, and whether to recompute.
Measure = Callable[
    [ModelShape, Setting, tuple[int, ...], tuple[bool, ...]], tuple[ModelShape, Measured]
]

__all__ = ["OPTIMIZERS", "Machine", "PlanOptions", "machine_from", "machine_of", "recommend"]


def _world(machine: Machine, options: PlanOptions) -> tuple[Machine, int, list[Reason]]:
    """The GPUs that can be used together, and the number of ranks."""
    reasons = [note("machine", text) for text in machine.notes]
    if machine.system == "Windows":
        if options.nodes > 1:
            raise UsageError(
                f"{options.nodes} nodes were requested, but Windows has no NCCL; pass `--nodes 1`"
            )
        if len(machine.devices) > 1:
            reasons.append(
                note(
                    "windows",
                    f"one of {len(machine.devices)} GPUs is used: Windows has no NCCL, and gloo "
                    "is too slow between GPUs",
                )
            )
            machine = dataclasses.replace(machine, devices=machine.devices[:1])
        reasons.append(note("windows", "pinned memory and NVMe offload are not built on Windows"))
    if machine.devices:
        if options.nodes > 1 and any(device.mig for device in machine.devices):
            raise UsageError("NCCL cannot connect a MIG device to other nodes; pass `--nodes 1`")
        reasons += _unequal(machine)
        return machine, len(machine.devices) * options.nodes, reasons
    reasons.append(
        note(
            "machine",
            "there is no GPU here: ranks run on CPUs over gloo; `--gpu-memory GIB` plans for a "
            "machine that has one",
        )
    )
    return machine, options.cpu_ranks * options.nodes, reasons


def _unequal(machine: Machine) -> list[Reason]:
    """Notes about GPUs that differ."""
    reasons = []
    kinds = {(device.name, device.cc) for device in machine.devices}
    fullest = min(machine.devices, key=lambda device: device.free_bytes)
    most = max(device.free_bytes for device in machine.devices)
    if fullest.free_bytes < 0.9 * most:  # a tenth is not worth a note
        reasons.append(
            note(
                "machine",
                f"GPU {fullest.index} ({fullest.name}) has the least free memory, "
                f"{fullest.free_bytes / GIB:.1f} GiB, which limits all GPUs: every rank holds the "
                "same amount",
            )
        )
    if len(kinds) > 1:
        names = ", ".join(f"{name} ({major}.{minor})" for name, (major, minor) in sorted(kinds))
        reasons.append(
            note("machine", f"the GPUs differ: {names}; each step waits for the slowest")
        )
    return reasons


def _how_measured(measured: Measured) -> str:
    text = f"measured on the model itself, run on shapes without data ({measured.by})"
    if measured.stored:
        text += "; it supports only eager attention there, which stores all scores"
    if measured.guessed:
        text += "; what depends on data was assumed to be even (experts) or unmasked"
    if measured.no_loss:
        text += f"; `{measured.no_loss}` computes no loss, so that of the script is not counted"
    return text


def workers_of(machine: Machine, ranks: int) -> int:
    """Data loader workers of each rank: its share of the CPUs that the job may use, at most 4."""
    return max(1, min(4, (machine.cpus or 4) // ranks))


def recommend(
    machine: Machine,
    model: ModelShape,
    options: PlanOptions | None = None,
    measure: Measure | None = None,
) -> LaunchPlan:
    """The launch plan for a model on a machine.

    Args:
        machine: the hardware.
        model: the shape.
        options: the request.
        measure: measures the passes of a setting at micro-batches, with and without recomputation;
            None = they are computed.

    Raises:
        UsageError: the request contradicts itself or the hardware.
    """
    options = options or PlanOptions()
    machine, world, reasons = _world(machine, options)
    validate(options, world)
    precision, why = choose_precision(machine, options.precision)
    sequence, about = choose_sequence(model, options.sequence)
    attention, kernels = choose_attention(model, options.attention, sequence, options.transformers)
    if measure is not None and attention == "flash":
        kernels = None  # the note is about the formula
    images, seen = choose_images(model, sequence, options.image_tokens)
    reasons += [one for one in (why, about, kernels, seen) if one is not None]
    if model.stated_parameters is not None and model.vocab == ASSUMED_VOCAB:
        reasons.append(
            note(
                "model",
                f"only its size is known, and a vocabulary of {ASSUMED_VOCAB} is assumed, which "
                "determines the size of the logits; set `--vocab`, or pass its `config.json`",
            )
        )
    per_node = world // options.nodes
    workers = workers_of(machine, per_node)
    base = choice.base_setting(
        machine,
        model,
        options,
        precision=precision,
        sequence=sequence,
        world=world,
        attention=attention,
        image_tokens=images,
    )
    steps = choice.ladder(machine, options)
    avoided: dict[int, str] = {}
    if (wrong := choice.wrong_without_zero(options, precision)) is not None:
        if options.stage == 0:
            reasons.append(note("stage", wrong))
        else:
            avoided[0] = wrong
    measured = None
    if measure is not None:
        sizes = choice.micro_batches(options, world)
        model, measured = measure(model, base, sizes, choice.recomputation(options))
        base = dataclasses.replace(base, saved=measured.saved or base.saved)
        reasons.append(note("activations", _how_measured(measured)))
    limits = choice.limits_of(machine, options.objective, measured=measured is not None)
    rows = [
        choice.size_option(
            model,
            dataclasses.replace(base, stage=stage, offload=offload),
            options,
            limits,
            workers,
            measured,
        )
        for stage, offload in steps
    ]
    best = choice.choose(rows, options.objective, avoided)
    table = choice.verdicts(rows, best, options.objective, world, avoided)
    chosen = table[best]
    setting = dataclasses.replace(
        base,
        stage=chosen.stage,
        offload=chosen.offload,
        micro_batch=chosen.micro_batch,
        accumulation=chosen.accumulation,
        checkpointing=chosen.checkpointing,
    )
    global_batch = chosen.micro_batch * chosen.accumulation * world
    reasons += [Reason(subject=row.name, verdict=row.verdict, text=row.reason) for row in table]
    reasons += [
        note(
            "batch",
            f"{chosen.micro_batch} (micro-batch) × {chosen.accumulation} (accumulation) × {world} "
            f"(ranks) = {global_batch}",
        ),
        note(
            "workers",
            f"{workers} per rank for its data loader: the CPUs per rank, at most 4",
        ),
        *notes_on(chosen, setting, machine, options, model),
    ]
    if not chosen.fits:
        asked = way_out.Request(
            machine=machine,
            model=model,
            options=options,
            base=base,
            limits=choice.limits_of(machine, options.objective),
            workers=workers,
        )
        reasons += way_out.ways_out(asked, table)
    expandable = machine.system == "Linux" and choice.fragments_matter(model, setting, chosen)
    if expandable:
        reasons.append(_about_fragments(choice.largest_block(model, setting, chosen), chosen))
    launch = output.Launch(
        launcher=choose_launcher(machine, options.launcher),
        gpu_ids=tuple(device.index for device in machine.devices),
        mig_uuid=next((device.uuid for device in machine.devices if device.mig), None),
        ranks_per_node=per_node,
        nodes=options.nodes,
        hosts=options.hosts,
        master_port=options.master_port,
        threads=max(1, machine.cpus // per_node) if machine.cpus else 0,
        script=options.script,
        programs=dict(options.programs),
        expandable=expandable,
        **_script_words(options, setting),
    )
    reached = reach(model, setting, limits, workers, measured)
    notes = tuple(reasons)
    return _plan(model, machine, options, setting, launch, table, chosen, notes, limits, reached)


def _about_fragments(block: int, row: MemoryOption) -> Reason:
    left = (row.gpu_limit_bytes or 0) - row.gpu_bytes
    return note(
        "fragmentation",
        f"the largest block of a step takes {block / GIB:.1f} GiB, more than the "
        f"{left / GIB:.1f} GiB that stay free: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` "
        "keeps fragments of torch's cache from taking its place",
    )


def _script_words(options: PlanOptions, setting: Setting) -> dict[str, tuple[str, ...]]:
    """The arguments that pass the config to the script, and further arguments."""
    if options.framework != HF:
        return {}
    return {
        "config_words": ("--deepspeed", output.CONFIG_NAME),
        "arguments": trainer.arguments(setting, options.optimizer),
    }


def _plan(
    model: ModelShape,
    machine: Machine,
    options: PlanOptions,
    setting: Setting,
    launch: output.Launch,
    table: tuple[MemoryOption, ...],
    chosen: MemoryOption,
    reasons: tuple[Reason, ...],
    limits: choice.Limits,
    reached: tuple[Reach, ...],
) -> LaunchPlan:
    global_batch = setting.micro_batch * setting.accumulation * setting.world
    config = output.ds_config(
        setting,
        optimizer=options.optimizer,
        accumulation=setting.accumulation,
        global_batch=global_batch,
    )
    return LaunchPlan(
        argv=output.argv(launch),
        env=output.environment(launch),
        ds_config=trainer.config(config) if options.framework == HF else config,
        memory=PlanMemory(
            chosen=chosen.name if chosen.fits else None,
            headroom=limits.headroom,
            options=table,
            reach=reached,
        ),
        reasons=reasons,
        fits=chosen.fits,
        launcher=launch.launcher,
        model=PlanModel(
            name=model.name,
            parameters=model.parameters,
            trainable=trained_parameters(model, setting),
            layers=model.layers,
            hidden=model.hidden,
            heads=model.heads,
            kv_heads=model.kv_heads,
            head_dim=model.head_dim,
            intermediate=model.intermediate,
            vocab=model.vocab,
            gated=model.gated,
            tied=model.tied,
        ),
        precision=setting.precision,
        stage=chosen.stage,
        offload=chosen.offload,
        micro_batch=chosen.micro_batch,
        accumulation=chosen.accumulation,
        global_batch=global_batch,
        world=setting.world,
        sequence=setting.sequence,
        checkpointing=chosen.checkpointing,
        attention=setting.attention,
        finetune=options.finetune,
        optimizer=options.optimizer,
        workers=workers_of(machine, launch.ranks_per_node),
        nodes=options.nodes,
        gpus_per_node=launch.ranks_per_node,
        gpu_ids=launch.gpu_ids,
        gpu_names=tuple(device.name for device in machine.devices),
        gpu_uuids=tuple(device.uuid or "" for device in machine.devices)
        if all(device.uuid for device in machine.devices)
        else (),
        hosts=options.hosts,
        master_port=options.master_port,
        script=options.script,
        framework=options.framework,
        facts_as_of=FACTS_AS_OF,
    )
