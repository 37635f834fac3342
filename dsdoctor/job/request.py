"""The request: what options set for the job, validated and in one record.

Every command and `dsdoctor.check` build their `RunNeeds` here, so that a script and a command line
with the same settings are judged in the same way.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.examine import read_config
from dsdoctor.framework import FRAMEWORKS
from dsdoctor.host import LocalHost
from dsdoctor.job.resolve import from_trainer, parsed_config
from dsdoctor.model.facts.run import Floors, PlanNeeds, RunNeeds

#: A machine type, which `--like` takes: `8xH100-SXM`, `A100`.
MACHINE_TYPE = re.compile(r"(?:\d{1,4}x)?(?!GPU-|MIG-)[A-Za-z]{1,4}\d{2,4}[A-Za-z]{0,3}(?:-\w+)*")
#: An index, or a UUID of a GPU or of a MIG device.
GPU_SELECTOR = re.compile(r"\d{1,6}|GPU-[0-9a-fA-F-]+|MIG-[0-9A-Za-z/-]+")


def parse_gpus(items: Sequence[str] | None) -> tuple[str, ...]:
    """Validates the selectors of `--gpus`; None = the option was not passed.

    Raises:
        UsageError: there are none, one is neither an index nor a UUID, or one is repeated.
    """
    if items is None:
        return ()
    if not items:
        raise UsageError("`--gpus` is empty; expected indices or UUIDs such as `0,1` or `GPU-…`")
    for item in items:
        if not GPU_SELECTOR.fullmatch(item):
            other = "; `check` and `recommend` take a machine type as `--like`"
            raise UsageError(
                f"`--gpus {item[:40]}` is not a GPU; "
                "expected indices or UUIDs such as `0,1` or `GPU-…`"
                f"{other if MACHINE_TYPE.fullmatch(item) else ''}"
            )
        if items.count(item) > 1:
            raise UsageError(f"`--gpus` contains `{item}` twice; pass each GPU once")
    return tuple(items)


def run_needs(
    *,
    gpus: Sequence[str] | None = None,
    expect_gpus: int | None = None,
    config: str | None = None,
    hostfile: str | None = None,
    quick: bool = False,
    deep: bool = False,
    command: tuple[str, ...] = (),
) -> RunNeeds:
    """The request that these options describe.

    Raises:
        UsageError: options contradict each other, or a file does not exist.
    """
    if quick and deep:
        raise UsageError("`--quick` and `--deep` are mutually exclusive; pass one of them")
    host = LocalHost()
    env = host.env
    cwd = str(host.query("cwd"))
    parsed = read_config(config)
    named, framework = from_trainer(config, host, cwd) if config is not None else (None, "")
    if named is not None:
        parsed = parsed_config(named, host, cwd)
    return RunNeeds(
        gpus=parse_gpus(gpus),
        expect_gpus=expect_gpus,
        config_path=named or config,
        config=parsed,
        config_named_by=f"`{config}`" if named is not None else "",
        framework=framework,
        quick=quick,
        deep=deep,
        cwd=cwd,
        build_ops=tuple(
            sorted(
                name.removeprefix("DS_BUILD_")
                for name, value in env.items()
                if name.startswith("DS_BUILD_") and name != "DS_BUILD_STRING" and value == "1"
            )
        ),
        command=command,
        hostfile=hostfile,
    )


def with_job(
    needs: RunNeeds,
    *,
    paths: tuple[str, ...] = (),
    writable: tuple[str, ...] = (),
    checkpoint: str | None = None,
    plan: str | None = None,
    model: str | None = None,
    sequence: int | None = None,
    finetune: str | None = None,
    lora_rank: int | None = None,
    modules_to_save: str | None = None,
    profile: str | None = None,
    framework: str | None = None,
) -> RunNeeds:
    """The request with further options.

    Raises:
        UsageError: a value is empty, contradicts another, or is a file that cannot be read.
    """
    for option, values in (("--path", paths), ("--writable", writable)):
        if any(not value.strip() for value in values):
            raise UsageError(f"`{option}` is empty; expected a path")
    if checkpoint is not None and not Path(checkpoint).is_dir():
        what = "is a file" if Path(checkpoint).exists() else "does not exist"
        raise UsageError(
            f"`--checkpoint {checkpoint}` {what}; expected the folder passed to `save_checkpoint`"
        )
    if model is not None and plan is not None:
        raise UsageError("`--plan` already sets the model; leave out `--model`")
    for option, value in (("--seq-len", sequence), ("--finetune", finetune)):
        if value is not None and model is None:
            raise UsageError(f"`{option}` requires `--model`; pass both")
    if lora_rank is not None and finetune != "lora":
        raise UsageError("`--lora-rank` requires `--finetune lora`; pass both")
    if modules_to_save is not None and finetune != "lora":
        raise UsageError("`--modules-to-save` requires `--finetune lora`; pass both")
    if framework is not None and framework not in FRAMEWORKS:
        raise UsageError(
            f"`--framework {framework[:40]}` is not a framework; expected one of"
            f" {', '.join(FRAMEWORKS)}"
        )
    described = None if model is None else shape(model)
    saved = tuple(filter(None, (modules_to_save or "").split(",")))
    if saved and described is not None:
        from dsdoctor.recommend.demand import shape_of  # noqa: PLC0415  # only with a model
        from dsdoctor.recommend.saved import saved_of  # noqa: PLC0415

        saved_of(saved, shape_of(described))
    changed: RunNeeds = msgspec.structs.replace(
        needs,
        paths=paths,
        writable=writable,
        checkpoint=checkpoint,
        sequence=sequence,
        finetune=finetune,
        lora_rank=lora_rank or 16,
        modules_to_save=saved,
        model=described,
        model_given=model or "",
        plan=None if plan is None else read_plan(plan),
        framework=framework or needs.framework,
        floors=None if profile is None else read_profile(profile),
    )
    return changed


def shape(text: str) -> dict[str, object]:
    """The model's shape as a JSON object, with the number of its parameters.

    Raises:
        UsageError: there is no such model.
    """
    from dsdoctor.recommend.models import resolve  # noqa: PLC0415  # only with --model

    found = resolve(text)
    return {**dataclasses.asdict(found), "parameters": found.parameters}


def read_plan(path: str) -> PlanNeeds:
    """What a launch plan needs of the machine.

    Raises:
        UsageError: the file cannot be read or is not a launch plan.
    """
    from dsdoctor import reading  # noqa: PLC0415  # only with a plan
    from dsdoctor.model.decode import DecodeError  # noqa: PLC0415
    from dsdoctor.model.launch_plan import decode  # noqa: PLC0415  # only with --plan
    from dsdoctor.recommend.demand import certain_bytes  # noqa: PLC0415
    from dsdoctor.recommend.memory import at_peak  # noqa: PLC0415

    expected = "expected what `dsdoctor recommend --format json` prints"
    try:
        plan = decode(reading.read(path))
    except OSError as error:
        raise UsageError(f"`--plan {path}` cannot be read: {error.strerror}; {expected}") from None
    except (msgspec.DecodeError, DecodeError) as error:
        raise UsageError(f"`--plan {path}` is not a launch plan: {error}; {expected}") from None
    options = {option.name: option for option in plan.memory.options}
    name = f"zero-{plan.stage}" + ("" if plan.offload == "none" else f"+{plan.offload}")
    option = options.get(plan.memory.chosen or name)
    if option is None:
        raise UsageError(f"`--plan {path}` does not contain option `{plan.memory.chosen or name}`")
    on_gpu = bool(option.gpu)
    return PlanNeeds(
        path=path,
        option=option.name,
        gpus_per_node=plan.gpus_per_node if on_gpu else 0,
        gpu_ids=plan.gpu_ids,
        gpu_bytes=option.gpu_bytes,
        host_bytes=option.host_bytes,
        gpu_state_bytes=certain_bytes(option.gpu),
        host_state_bytes=certain_bytes(option.host),
        gpu_items={item.name: item.bytes for item in at_peak(option.gpu)},
        host_items={item.name: item.bytes for item in option.host},
    )


def read_profile(text: str) -> Floors:
    """The floors of a bundled profile or of a file.

    Raises:
        UsageError: it is neither, or the file is not a valid profile.
    """
    from dsdoctor.profiles import load  # noqa: PLC0415  # only with --profile

    return load(text)
