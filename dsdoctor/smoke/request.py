"""From the command line and the machine to the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from dsdoctor import hostfile, reading
from dsdoctor.errors import UsageError
from dsdoctor.host import free_port
from dsdoctor.machines.this_machine import MachineFacts
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.probes.config import parse_config
from dsdoctor.recommend import files, models, output
from dsdoctor.recommend.models import ModelShape
from dsdoctor.recommend.planning import Machine, PlanOptions, recommend
from dsdoctor.smoke import job as planning
from dsdoctor.smoke.job import DEFAULT_CONFIG, TINY, SmokePlan

DEFAULT_CPU_RANKS = 2
#: With fewer steps, the loss shows no trend.
FEWEST_STEPS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmokeOptions:
    """Options of the command line; see its help."""

    gpus: str | None = None
    cpu: int | None = None
    config: str | None = None
    model: str | None = None
    plan: str | None = None
    full_size: bool = False
    steps: int = planning.STEPS
    precision: str | None = None
    launcher: str | None = None
    hostfile: str | None = None
    master_port: int | None = None
    fault: dict[str, Any] | None = None


def _read_config(path: str) -> dict[str, Any]:
    try:
        text = reading.read_text(path)
    except (OSError, DecodeError) as error:
        raise UsageError(
            f"`--config {path}` cannot be read: {reading.why(error)}; expected a DeepSpeed config"
        ) from None
    parsed = parse_config(text, path).parsed
    if not isinstance(parsed, dict):
        raise UsageError(f"`--config {path}` is not a JSON object; expected a DeepSpeed config")
    return parsed


def shape_of(saved: LaunchPlan) -> ModelShape:
    """The model of a saved plan; its preset, if it has one, completes the shape."""
    stated = {
        key: value
        for key, value in msgspec.structs.asdict(saved.model).items()
        if key not in ("parameters", "trainable", "name")
    }
    known: ModelShape | None
    try:
        known = models.resolve(saved.model.name)
    except UsageError:
        known = None
    if known is not None and all(getattr(known, key) == value for key, value in stated.items()):
        return known
    return ModelShape(name=saved.model.name, max_length=saved.sequence, **stated)


def _validate(asked: SmokeOptions) -> None:
    if asked.cpu is not None and asked.gpus is not None:
        raise UsageError("`--cpu` and `--gpus` are mutually exclusive; pass one of them")
    if asked.plan is not None:
        for option in ("config", "model", "launcher", "precision"):
            if getattr(asked, option) is not None:
                raise UsageError(
                    f"`--plan` and `--{option}` are mutually exclusive; pass one of them"
                )
    if asked.full_size and asked.plan is None and asked.model in (None, "tiny"):
        raise UsageError("`--full-size` needs a model to build; pass it with `--model` or `--plan`")


def _machine(asked: SmokeOptions, look: Callable[[], MachineFacts]) -> tuple[Machine, Gpus | None]:
    """The machine to plan for, and its GPUs; without devices and GPUs for `--cpu`."""
    seen = look()
    if asked.cpu is not None:
        known = None if isinstance(seen.resources, Missing) else seen.resources
        return (
            Machine(
                host_bytes=known.memory_available_bytes if known else None,
                cpus=known.cpus_usable if known else None,
            ),
            None,
        )
    machine = seen.machine()
    if not machine.devices and seen.nvidia_devices:
        raise UsageError(
            f"{seen.nvidia_devices} NVIDIA GPUs are installed, but none can be used; run "
            "`dsdoctor check`, or run on CPUs with `--cpu 2`"
        )
    return machine, None if isinstance(seen.gpus, Missing) else seen.gpus


def plan(asked: SmokeOptions, look: Callable[[], MachineFacts]) -> SmokePlan:
    """The run for a command line.

    Args:
        asked: the options.
        look: reads the machine.

    Raises:
        UsageError: options contradict each other or the machine, or a file cannot be used.
    """
    _validate(asked)
    if asked.plan is not None:
        return _from_saved(asked, look)
    shape = TINY if asked.model in (None, "tiny") else models.resolve(str(asked.model))
    config = _read_config(asked.config) if asked.config is not None else None
    machine, gpus = _machine(asked, look)
    hosts = hostfile.read(asked.hostfile) if asked.hostfile is not None else {}
    slots = set(hosts.values())
    if len(slots) > 1:
        raise UsageError("the hosts of the hostfile have different slots; expected the same on all")
    ranks = asked.cpu or (next(iter(slots)) if slots else DEFAULT_CPU_RANKS)
    if asked.model in (None, "tiny") and config is None:
        config = dict(DEFAULT_CONFIG)
        if machine.devices:
            capable = min(device.cc for device in machine.devices)
            config["bf16" if capable >= (8, 0) else "fp16"] = {"enabled": True}
    if config is not None and asked.precision is not None:
        config = planning.with_precision(config, asked.precision)
    launch = recommend(
        machine,
        shape,
        PlanOptions(
            nodes=max(1, len(hosts)),
            hosts=tuple(hosts) if len(hosts) > 1 else (),
            precision=asked.precision if config is None else None,
            launcher=asked.launcher or "deepspeed",
            cpu_ranks=ranks,
            master_port=asked.master_port or free_port(),
            sequence=planning.SMALL_SEQUENCE if shape is TINY else None,
        ),
    )
    if config is not None:
        launch = _with_config(launch, config)
    return planning.make(
        launch, shape, steps=asked.steps, full_size=asked.full_size, hostfile=asked.hostfile,
        uuids=planning.planned_uuids(launch, gpus), fault=asked.fault,
    )  # fmt: skip


def _with_config(launch: LaunchPlan, config: dict[str, Any]) -> LaunchPlan:
    """The plan with the user's own config."""
    stage, offload = planning.offload_of(config)
    changed: LaunchPlan = msgspec.structs.replace(
        launch,
        ds_config=config,
        stage=stage,
        offload=offload,
        precision=planning.precision_of(config),
    )
    return changed


def _from_saved(asked: SmokeOptions, look: Callable[[], MachineFacts]) -> SmokePlan:
    saved = files.read(str(asked.plan))
    if asked.cpu is not None:
        raise UsageError("`--plan` says where to run; do not pass `--cpu` with it")
    gpus = None
    if saved.gpu_ids:
        seen = look()
        gpus = None if isinstance(seen.gpus, Missing) else seen.gpus
        here = {gpu.index for gpu in gpus.gpus} if gpus else set()
        absent = [str(index) for index in saved.gpu_ids if index not in here]
        if absent and saved.nodes == 1:
            raise UsageError(
                f"the plan uses GPU {', '.join(absent)}, which this machine does not have; "
                "make a plan here with `dsdoctor recommend`"
            )
    if asked.master_port is not None:
        words = list(saved.argv)
        for option in ("--master_port", "--master-port"):
            if option in words:
                words[words.index(option) + 1] = str(asked.master_port)
        saved = msgspec.structs.replace(saved, argv=tuple(words))
    return planning.make(
        saved, shape_of(saved), steps=asked.steps, full_size=asked.full_size,
        hostfile=asked.hostfile or output.HOSTFILE_NAME if saved.nodes > 1 else asked.hostfile,
        uuids=planning.planned_uuids(saved, gpus), fault=asked.fault,
    )  # fmt: skip
