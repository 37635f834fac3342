"""Options of `check` on what the job brings: data, output, checkpoint, model, plan, profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dsdoctor.cli.numbers import Whole
from dsdoctor.framework import FRAMEWORKS

C = TypeVar("C", bound=Callable[..., Any])

framework_option = click.option(
    "--framework",
    type=click.Choice(FRAMEWORKS),
    help="What passes the config to DeepSpeed.",
    show_default="read from the script",
)


def job_options(function: C) -> C:
    """Adds the options; the command takes them as keywords for `with_job`."""
    options = [
        click.option(
            "--path",
            "paths",
            multiple=True,
            metavar="PATH",
            help="Path of data that must exist and be readable.",
        ),
        click.option(
            "--writable",
            multiple=True,
            metavar="DIR",
            help="Output directory; a trial file is written there.",
        ),
        click.option("--checkpoint", metavar="DIR", help="Checkpoint directory to resume from."),
        click.option("--plan", metavar="FILE", help="Launch plan written by `recommend`."),
        click.option("--model", metavar="MODEL", help="Model: preset, size (`7B`) or config.json."),
        click.option(
            "--seq-len",
            "sequence",
            type=Whole(1, 1_000_000_000),
            metavar="N",
            help="Sequence length for --model.",
        ),
        click.option(
            "--finetune",
            type=click.Choice(["full", "lora"]),
            help="How --model is trained: all parameters, or adapters.",
        ),
        click.option(
            "--lora-rank",
            type=Whole(1, 100_000),
            metavar="N",
            help="With --finetune lora: rank of the adapters.",
            show_default="16",
        ),
        click.option(
            "--modules-to-save",
            metavar="A,B",
            help="With --finetune lora: modules trained in full (embed_tokens, lm_head, vision, "
            "or NAME=COUNT).",
        ),
        framework_option,
        click.option(
            "--profile", metavar="NAME|FILE", help="Requirements profile: name or TOML file."
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def any_given(options: dict[str, Any]) -> bool:
    """Whether any of them was passed."""
    return any(options.values())
