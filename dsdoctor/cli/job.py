"""Options of `check` on what the job brings: data, output, checkpoint, model, plan, profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.model.facts.run import Floors, PlanNeeds, RunNeeds

C = TypeVar("C", bound=Callable[..., Any])


def job_options(function: C) -> C:
    """Adds the options; the command takes them as keywords and hands them to `with_job`."""
    options = [
        click.option(
            "--path",
            "paths",
            multiple=True,
            metavar="P",
            help="Data that must exist and be readable.",
        ),
        click.option(
            "--writable",
            multiple=True,
            metavar="DIR",
            help="Output directory; a trial write is made there.",
        ),
        click.option("--checkpoint", metavar="DIR", help="Checkpoint directory to resume from."),
        click.option("--plan", metavar="FILE", help="Launch plan written by `recommend`."),
        click.option("--model", metavar="M", help="Model: preset, size (`7B`) or config.json."),
        click.option(
            "--seq-len",
            "sequence",
            type=click.IntRange(min=1),
            metavar="N",
            help="Sequence length for --model.",
        ),
        click.option(
            "--finetune",
            type=click.Choice(["full", "lora"]),
            help="How --model is trained: all parameters, or adapters.",
        ),
        click.option(
            "--lora-rank", type=click.IntRange(min=1), metavar="N", help="Of --finetune lora [16]."
        ),
        click.option("--profile", metavar="P", help="Requirements: name or TOML file."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def given(options: dict[str, Any]) -> bool:
    """Whether any of them was given."""
    return any(options.values())


def with_job(
    needs: RunNeeds,
    *,
    paths: tuple[str, ...],
    writable: tuple[str, ...],
    checkpoint: str | None,
    plan: str | None,
    model: str | None,
    sequence: int | None,
    finetune: str | None,
    lora_rank: int | None,
    profile: str | None,
) -> RunNeeds:
    """The request with what these options add to it.

    Raises:
        UsageError: a value is empty or names nothing that can be read.
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
        raise UsageError("`--plan` already names a model; leave out `--model`")
    for option, value in (("--seq-len", sequence), ("--finetune", finetune)):
        if value is not None and model is None:
            raise UsageError(f"`{option}` requires `--model`; pass both")
    if lora_rank is not None and finetune != "lora":
        raise UsageError("`--lora-rank` requires `--finetune lora`; pass both")
    changed: RunNeeds = msgspec.structs.replace(
        needs,
        paths=paths,
        writable=writable,
        checkpoint=checkpoint,
        sequence=sequence,
        finetune=finetune,
        lora_rank=lora_rank or 16,
        model=None if model is None else shape(model),
        plan=None if plan is None else read_plan(plan),
        floors=None if profile is None else read_profile(profile),
    )
    return changed


def shape(text: str) -> dict[str, object]:
    """The model's shape as a JSON object, with the number of its parameters.

    Raises:
        UsageError: it names no model.
    """
    from dsdoctor.recommend.models import resolve  # noqa: PLC0415  # only with --model

    found = resolve(text)
    return {**dataclasses.asdict(found), "parameters": found.parameters}


def read_plan(path: str) -> PlanNeeds:
    """What a launch plan will take.

    Raises:
        UsageError: the file cannot be read or is no launch plan.
    """
    from dsdoctor import reading  # noqa: PLC0415
    from dsdoctor.model.decode import DecodeError  # noqa: PLC0415
    from dsdoctor.model.launch_plan import decode  # noqa: PLC0415  # only with --plan
    from dsdoctor.probes.demand import certain_bytes  # noqa: PLC0415
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
        UsageError: it names neither, or the file is wrong.
    """
    from dsdoctor.profiles import load  # noqa: PLC0415  # only with --profile

    return load(text)
