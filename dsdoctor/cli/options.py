"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dsdoctor.model.deadlines import TOTAL_SECONDS

C = TypeVar("C", bound=Callable[..., Any])


def _as_user(_ctx: click.Context, _param: click.Parameter, name: str | None) -> None:
    if name is not None:
        from dsdoctor.host import account  # noqa: PLC0415  # only where it is asked for

        account.set_account(name)


def environment_options(function: C) -> C:
    """Options that say what is examined."""
    options = [
        click.option("--python", "python", metavar="PATH", help="Interpreter or venv to examine."),
        click.option(
            "--gpus", metavar="0,1", help="GPUs that the job will use (index, UUID, MIG)."
        ),
        click.option(
            "--expect-gpus",
            type=click.IntRange(min=0),
            metavar="N",
            help="How many GPUs there must be.",
        ),
        click.option("--config", "config", metavar="FILE", help="DeepSpeed config of the job."),
        click.option("--hostfile", metavar="FILE", help="Hostfile of the job."),
        click.option("--quick", is_flag=True, help="Start neither torch nor deepspeed."),
        click.option("--deep", is_flag=True, help="Try out: compile, kernels, copies, ranks."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=1),
            metavar="SECONDS",
            help=f"Limit for everything; the single limits scale with it [{TOTAL_SECONDS:g}].",
        ),
        click.option(
            "--checks-dir", multiple=True, metavar="DIR", help="Folder of further checks."
        ),
        click.option(
            "--as-user",
            metavar="ACCOUNT",
            expose_value=False,
            callback=_as_user,
            help="As root: run the environment as this account [the one that owns it].",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function
