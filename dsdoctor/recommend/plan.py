"""The choice: the fastest setting that fits this machine with head-room."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.launch import LaunchPlan, MemoryOption, PlanMemory, PlanModel, Reason
from dsdoctor.recommend import memory, output
from dsdoctor.recommend.memory import GIB, Setting
from dsdoctor.recommend.models import ModelShape

#: (stage, offload), the fastest first: each step down the list moves more bytes for each pass.
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
#: Bytes of optimizer state for each trained parameter, beside the fp32 master weight.
OPTIMIZERS = {"adamw": 8, "adam": 8, "lamb": 8, "lion": 4, "adagrad": 4, "muon": 4, "sgd": 0}
#: Optimizers that DeepSpeed can run on the host.
HOST_OPTIMIZERS = frozenset({"adamw", "adam", "lion", "adagrad"})
#: Share of each limit that stays free: allocator fragmentation, the driver, other processes.
HEADROOM = {"speed": 0.08, "memory": 0.08, "balanced": 0.20}
MICRO_BATCHES = (64, 32, 16, 8, 4, 2, 1)
BF16_MAJOR = 8
FP16_MAJOR = 7


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """A GPU to plan for.

    Attributes:
        index: its number in PCI order.
        free_bytes: memory free now.
        total_bytes: memory of the card.
        cc: compute capability.
        name: product.
    """

    index: int
    free_bytes: int
    total_bytes: int
    cc: tuple[int, int]
    name: str = "GPU"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """Hardware of one host; with several nodes all are alike.

    Attributes:
        devices: the chosen GPUs; empty = train on CPUs.
        host_bytes: host memory that a job can have now (cgroup respected), None = not known.
        cpus: CPUs that the job may use (affinity and cgroup quota), None = not known.
        system: `Linux`, `Darwin` or `Windows`.
        notes: what the reader must know of how this was read.
    """

    devices: tuple[Device, ...] = ()
    host_bytes: int | None = None
    cpus: int | None = None
    system: str = "Linux"
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asks for; None = to be chosen.

    Attributes:
        nodes: number of hosts.
        sequence: tokens in a sequence.
        micro_batch: sequences for each GPU at once.
        global_batch: sequences for each step of the optimizer.
        precision: `bf16`, `fp16` or `fp32`.
        finetune: `full` or `lora`.
        lora_rank: rank of the adapters.
        optimizer: a key of OPTIMIZERS.
        attention: `flash` or `eager`.
        checkpointing: recompute activations.
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        objective: `speed`, `memory` or `balanced`.
        cpu_ranks: ranks when there is no GPU.
        master_port: port of the rendezvous.
        hosts: names of the nodes, for a launch across several.
        script: the user's training script.
    """

    nodes: int = 1
    sequence: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    precision: str | None = None
    finetune: str = "full"
    lora_rank: int = 16
    optimizer: str = "adamw"
    attention: str = "flash"
    checkpointing: bool | None = None
    launcher: str = "deepspeed"
    objective: str = "speed"
    cpu_ranks: int = 1
    master_port: int = 29500
    hosts: tuple[str, ...] = ()
    script: str = "train.py"


def _pick(gpus: Sequence[Gpu], selector: str) -> Gpu:
    for gpu in gpus:
        if selector == str(gpu.index) or (gpu.uuid and gpu.uuid == selector):
            return gpu
    if selector.startswith("MIG-"):
        raise UsageError(
            f"`{selector}` is a MIG device, expected whole GPUs; give its memory with "
            "`--gpu-memory` and `--gpu-count 1` instead"
        )
    raise UsageError(
        f"GPU `{selector}` is not there, expected one of "
        f"{', '.join(str(gpu.index) for gpu in gpus) or 'none'}"
    )


def machine_from(
    gpus: Gpus | Missing, resources: Resources | Missing, run: RunNeeds, os: OsInfo | Missing
) -> Machine:
    """The machine as the facts tell it; --gpus chooses among its GPUs.

    Raises:
        UsageError: a GPU that was asked for is not there or cannot be read.
    """
    notes: list[str] = []
    found: tuple[Gpu, ...] = ()
    if isinstance(gpus, Missing):
        if run.wants_gpu:
            raise UsageError(f"the GPUs asked for could not be read: {gpus.detail}")
        notes.append(f"no GPU was read: {gpus.detail}")
    else:
        found = gpus.gpus
    chosen = [_pick(found, selector) for selector in run.gpus] if run.gpus else list(found)
    devices: list[Device] = []
    for gpu in chosen:
        total = gpu.memory_total_bytes
        if gpu.error is not None or total is None or gpu.cc_major is None:
            if run.gpus:
                raise UsageError(f"memory or compute capability of GPU {gpu.index} is not readable")
            notes.append(f"GPU {gpu.index} is left out: it could not be read")
            continue
        free = gpu.memory_free_bytes
        devices.append(
            Device(
                index=gpu.index,
                free_bytes=total if free is None else free,
                total_bytes=total,
                cc=(gpu.cc_major, gpu.cc_minor or 0),
                name=gpu.name or "GPU",
            )
        )
    known = None if isinstance(resources, Missing) else resources
    return Machine(
        devices=tuple(devices),
        host_bytes=known.memory_available_bytes if known else None,
        cpus=known.cpus_usable if known else None,
        system="Linux" if isinstance(os, Missing) else os.system,
        notes=tuple(notes),
    )


def machine_of(
    *,
    gpu_gib: float,
    count: int = 1,
    cc: tuple[int, int] = (8, 0),
    host_gib: float | None = None,
    cpus: int | None = None,
    system: str = "Linux",
) -> Machine:
    """A machine of which only the figures are known; its GPUs are taken to be free."""
    size = int(gpu_gib * GIB)
    return Machine(
        devices=tuple(
            Device(index=index, free_bytes=size, total_bytes=size, cc=cc) for index in range(count)
        ),
        host_bytes=None if host_gib is None else int(host_gib * GIB),
        cpus=cpus,
        system=system,
    )


def choose_precision(machine: Machine, asked: str | None) -> tuple[str, Reason]:
    """What the hardware can do, not what torch emulates (bf16 on a V100 is emulated).

    Raises:
        UsageError: DeepSpeed would refuse the precision asked for on this hardware.
    """
    if not machine.devices:
        if asked == "fp16":
            raise UsageError("fp16 was asked for on a CPU, expected bf16 or fp32")
        return asked or "bf16", _note("precision", "CPUs train in bf16 or fp32")
    lowest = min(device.cc for device in machine.devices)
    text = f"{lowest[0]}.{lowest[1]}"
    if asked == "fp16" and lowest[0] < FP16_MAJOR:
        raise UsageError(f"fp16 was asked for on compute capability {text}, DeepSpeed needs 7.0")
    if asked:
        if asked == "bf16" and lowest[0] < BF16_MAJOR:
            return asked, _note(
                "precision",
                f"bf16 was asked for, but compute capability {text} only emulates it: expect a "
                "slow run, fp16 is what this hardware does",
            )
        return asked, _note("precision", f"{asked} was asked for")
    if lowest[0] >= BF16_MAJOR:
        return "bf16", _note("precision", f"bf16: compute capability {text} is 8.0 or newer")
    if lowest[0] >= FP16_MAJOR:
        return "fp16", _note("precision", f"fp16: compute capability {text} has no bf16 units")
    return "fp32", _note("precision", f"fp32: compute capability {text} is below 7.0")


def _note(subject: str, text: str) -> Reason:
    return Reason(subject=subject, verdict="note", text=text)


def _validate(options: Options, world: int) -> None:
    for name in ("nodes", "sequence", "micro_batch", "global_batch", "lora_rank", "cpu_ranks"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"{name.replace('_', '-')} is {value}, expected at least 1")
    allowed = {
        "precision": (None, "bf16", "fp16", "fp32"),
        "finetune": ("full", "lora"),
        "optimizer": tuple(OPTIMIZERS),
        "attention": ("flash", "eager"),
        "launcher": ("deepspeed", "torchrun", "accelerate"),
        "objective": tuple(HEADROOM),
    }
    for name, values in allowed.items():
        if getattr(options, name) not in values:
            words = ", ".join(str(value) for value in values if value)
            raise UsageError(f"{name} is `{getattr(options, name)}`, expected one of {words}")
    if options.hosts and len(options.hosts) != options.nodes:
        raise UsageError(f"{len(options.hosts)} hosts are named, expected {options.nodes}")
    each = world * (options.micro_batch or 1)
    if options.global_batch and options.global_batch % each:
        raise UsageError(
            f"global batch {options.global_batch} is not a multiple of {each} "
            f"(micro-batch {options.micro_batch or 1} on {world} ranks); "
            f"expected {max(1, round(options.global_batch / each)) * each}"
        )


def _micro_batches(options: Options, world: int) -> tuple[int, ...]:
    if options.micro_batch:
        return (options.micro_batch,)
    if not options.global_batch:
        return MICRO_BATCHES
    each = options.global_batch // world
    return tuple(size for size in range(min(each, 64), 0, -1) if each % size == 0)


def base_setting(
    machine: Machine, model: ModelShape, options: Options, precision: str, world: int
) -> Setting:
    """What all options have in common."""
    free = min((device.free_bytes for device in machine.devices), default=64 * GIB)
    small, tiny = free < 16 * GIB, free < 4 * GIB
    bucket = 5_000_000 if tiny else 50_000_000 if small else 200_000_000
    rank = options.lora_rank if options.finetune == "lora" else 0
    trained = model.lora_parameters(rank) if rank else model.parameters
    bucket = min(bucket, max(1_000_000, trained + trained % 2))
    live = 50_000_000 if tiny else 200_000_000 if small else memory.MAX_LIVE
    return Setting(
        sequence=options.sequence or min(model.max_length, 2048),
        world=world,
        nodes=options.nodes,
        precision=precision,
        attention=options.attention,
        lora_rank=rank,
        state_bytes=OPTIMIZERS[options.optimizer],
        bucket=bucket,
        max_live=live,
        overlap=world > 1,
        pin_memory=machine.system == "Linux",
        on_gpu=bool(machine.devices),
    )


@dataclasses.dataclass(frozen=True)
class _Limits:
    """What may be used, and what share of it stays free."""

    gpu: int | None
    host: int | None
    headroom: float

    def fits(self, need: memory.Memory) -> bool:
        room = 1 - self.headroom
        gpu_ok = self.gpu is None or need.gpu_bytes <= self.gpu * room
        return gpu_ok and (self.host is None or need.host_bytes <= self.host * room)

    def why_not(self, need: memory.Memory) -> str:
        parts = []
        for place, have, wanted in (
            ("GPU", self.gpu, need.gpu_bytes),
            ("host", self.host, need.host_bytes),
        ):
            if have is not None and wanted > have * (1 - self.headroom):
                parts.append(
                    f"needs {wanted / GIB:.1f} GiB on each {place}, but {have / GIB:.1f} GiB are "
                    f"free and {self.headroom:.0%} of them are head-room"
                )
        return "; ".join(parts)


def _size_option(
    model: ModelShape, base: Setting, options: Options, limits: _Limits, workers: int
) -> MemoryOption:
    """The option at the biggest micro-batch that fits, without recomputation if it can be."""
    sizes = _micro_batches(options, base.world)
    if options.objective == "memory":
        sizes = sizes[-1:]
    modes: tuple[bool, ...] = (False, True)
    if options.checkpointing is not None:
        modes = (options.checkpointing,)
    elif options.objective == "memory":
        modes = (True,)
    chosen: tuple[Setting, memory.Memory] | None = None
    fits = False
    for checkpointing in modes:
        for size in sizes:
            accumulation = (options.global_batch or size * base.world) // (size * base.world)
            setting = dataclasses.replace(
                base, micro_batch=size, checkpointing=checkpointing, accumulation=accumulation
            )
            need = memory.estimate(model, setting, workers=workers)
            chosen = (setting, need)
            fits = limits.fits(need)
            if fits:
                break
        if fits:
            break
    if chosen is None:
        raise UsageError("no micro-batch is possible, expected a global batch of one per rank")
    setting, need = chosen
    name = f"zero-{base.stage}" + ("" if base.offload == "none" else f"+{base.offload}")
    return MemoryOption(
        name=name,
        stage=base.stage,
        offload=base.offload,
        micro_batch=setting.micro_batch,
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


def _choose(rows: Sequence[MemoryOption], objective: str) -> int:
    """Index of the option to take; of none that fits, the one that overshoots least."""

    def excess(index: int) -> float:
        row = rows[index]
        gpu = row.gpu_bytes / row.gpu_limit_bytes if row.gpu_limit_bytes else 0.0
        host = row.host_bytes / row.host_limit_bytes if row.host_limit_bytes else 0.0
        return max(gpu, host)

    fitting = [index for index, row in enumerate(rows) if row.fits]
    if not fitting:
        return min(range(len(rows)), key=excess)
    if objective == "memory":
        return min(fitting, key=lambda index: (rows[index].gpu_bytes, rows[index].host_bytes))

    def cost(index: int) -> tuple[bool, bool, int]:
        row = rows[index]
        return (row.offload != "none", row.checkpointing, index)

    return min(fitting, key=cost)


def _verdicts(rows: Sequence[MemoryOption], best: int, objective: str) -> tuple[MemoryOption, ...]:
    won = rows[best]
    done = []
    for index, row in enumerate(rows):
        verdict, reason = "rejected", row.reason
        if index == best and row.fits:
            what = "least memory" if objective == "memory" else "fastest"
            verdict, reason = "chosen", f"the {what} of the options that fit"
        elif row.fits and objective == "memory":
            reason = f"fits, but takes more memory on each GPU than {won.name}"
        elif row.fits and row.offload != "none" and won.offload == "none":
            reason = f"fits, but copies to the host at every step; {won.name} does not"
        elif row.fits and row.checkpointing and not won.checkpointing:
            reason = f"fits, but only by recomputing activations; {won.name} need not"
        elif row.fits:
            reason = f"fits, but communicates no less than {won.name}, which fits too"
        done.append(_with(row, verdict, reason))
    return tuple(done)


def _with(row: MemoryOption, verdict: str, reason: str) -> MemoryOption:
    changed: MemoryOption = msgspec.structs.replace(row, verdict=verdict, reason=reason)
    return changed


def _ladder(machine: Machine, options: Options) -> list[tuple[int, str]]:
    steps = list(LADDER)
    if options.optimizer not in HOST_OPTIMIZERS:
        steps = [step for step in steps if step[1] == "none"]
    if not machine.devices:
        steps = [step for step in steps if step[1] == "none"]
    return steps


def _world(machine: Machine, options: Options) -> tuple[Machine, int, list[Reason]]:
    """The GPUs that can be used together, and the number of ranks."""
    reasons = [_note("machine", note) for note in machine.notes]
    if machine.system == "Windows":
        if options.nodes > 1:
            raise UsageError(f"{options.nodes} nodes were asked for, but Windows has no NCCL")
        if len(machine.devices) > 1:
            reasons.append(
                _note(
                    "windows",
                    f"one of {len(machine.devices)} GPUs is used: Windows has no NCCL, and gloo "
                    "is too slow between GPUs",
                )
            )
            machine = dataclasses.replace(machine, devices=machine.devices[:1])
        reasons.append(_note("windows", "pinned memory and NVMe offload are not built on Windows"))
    if machine.devices:
        return machine, len(machine.devices) * options.nodes, reasons
    reasons.append(_note("machine", "there is no GPU: ranks run on CPUs over gloo"))
    return machine, options.cpu_ranks * options.nodes, reasons


def recommend(machine: Machine, model: ModelShape, options: Options | None = None) -> LaunchPlan:
    """The launch plan for a model on a machine.

    Raises:
        UsageError: the request contradicts itself or the hardware.
    """
    options = options or Options()
    machine, world, reasons = _world(machine, options)
    _validate(options, world)
    precision, why = choose_precision(machine, options.precision)
    reasons.append(why)
    per_node = world // options.nodes
    workers = max(1, min(4, (machine.cpus or 4) // per_node))
    base = base_setting(machine, model, options, precision, world)
    limits = _Limits(
        min((device.free_bytes for device in machine.devices), default=None),
        machine.host_bytes,
        HEADROOM[options.objective],
    )
    rows = [
        _size_option(
            model, dataclasses.replace(base, stage=stage, offload=offload), options, limits, workers
        )
        for stage, offload in _ladder(machine, options)
    ]
    best = _choose(rows, options.objective)
    table = _verdicts(rows, best, options.objective)
    chosen = table[best]
    setting = dataclasses.replace(
        base,
        stage=chosen.stage,
        offload=chosen.offload,
        micro_batch=chosen.micro_batch,
        checkpointing=chosen.checkpointing,
    )
    global_batch = options.global_batch or chosen.micro_batch * world
    accumulation = global_batch // (chosen.micro_batch * world)
    reasons += [Reason(subject=row.name, verdict=row.verdict, text=row.reason) for row in table]
    reasons.append(
        _note(
            "batch",
            f"{chosen.micro_batch} (micro-batch) × {accumulation} (accumulation) × {world} (ranks) "
            f"= {global_batch}",
        )
    )
    reasons.append(
        _note("workers", f"{workers} data loader workers for each rank: min(4, CPUs / ranks)")
    )
    if options.nodes > 1 and options.launcher == "deepspeed" and not options.hosts:
        reasons.append(
            _note(
                "hostfile",
                f"write `{output.HOSTFILE_NAME}` with {options.nodes} lines `NAME slots={per_node}`"
                " (or name the hosts): without it the launcher only warns and runs on one node",
            )
        )
    if chosen.checkpointing:
        reasons.append(
            _note(
                "checkpointing",
                "the script must turn it on (`model.gradient_checkpointing_enable()`); the "
                "DeepSpeed config cannot",
            )
        )
    if not chosen.fits:
        reasons.append(
            _note(
                "fit",
                f"nothing fits; {chosen.name} comes nearest: shorten the sequence (now "
                f"{setting.sequence}), train with LoRA, or use more GPUs",
            )
        )
    trained = model.lora_parameters(base.lora_rank) if base.lora_rank else model.parameters
    gpu_ids = tuple(device.index for device in machine.devices)
    launch = output.Launch(
        launcher=options.launcher,
        gpu_ids=gpu_ids,
        ranks_per_node=per_node,
        nodes=options.nodes,
        hosts=options.hosts,
        master_port=options.master_port,
        threads=max(1, machine.cpus // per_node) if machine.cpus else 0,
        script=options.script,
    )
    return LaunchPlan(
        argv=output.argv(launch),
        env=output.environment(launch),
        ds_config=output.ds_config(
            setting,
            optimizer=options.optimizer,
            accumulation=accumulation,
            global_batch=global_batch,
        ),
        memory=PlanMemory(
            chosen=chosen.name if chosen.fits else None, headroom=limits.headroom, options=table
        ),
        reasons=tuple(reasons),
        fits=chosen.fits,
        launcher=options.launcher,
        model=PlanModel(
            name=model.name,
            parameters=model.parameters,
            trainable=trained,
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
        precision=precision,
        stage=chosen.stage,
        offload=chosen.offload,
        micro_batch=chosen.micro_batch,
        accumulation=accumulation,
        global_batch=global_batch,
        world=world,
        sequence=setting.sequence,
        checkpointing=chosen.checkpointing,
        attention=options.attention,
        finetune=options.finetune,
        optimizer=options.optimizer,
        workers=workers,
        nodes=options.nodes,
        gpus_per_node=per_node,
        gpu_ids=gpu_ids,
    )
