"""Options that several commands take."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from dsdoctor import locales
from dsdoctor.cli.numbers import Finite, Whole
from dsdoctor.model.deadlines import TOTAL_SECONDS

if TYPE_CHECKING:  # most commands need neither
    from dsdoctor.model.diagnosis import Cause
    from dsdoctor.model.smoke import SmokeCause

C = TypeVar("C", bound=Callable[..., Any])
S = TypeVar("S", "Cause", "SmokeCause")


def _as_user(_ctx: click.Context, _param: click.Parameter, name: str | None) -> None:
    if name is not None:
        from dsdoctor.host import account  # noqa: PLC0415  # only where it is asked for

        account.set_account(name)


def as_user(function: C) -> C:
    """The option that names the account to run as."""
    option = click.option(
        "--as-user",
        metavar="ACCOUNT",
        expose_value=False,
        callback=_as_user,
        help="As root: run the environment's interpreter as this account.",
        show_default="its owner",
    )
    return option(function)


def become_user(function: C) -> C:
    """The same option for a command that does everything as that account."""

    def become(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
        _as_user(ctx, param, name)
        if name is not None:
            from dsdoctor.host import account  # noqa: PLC0415  # only where it is asked for

            account.become_given()

    option = click.option(
        "--as-user", metavar="ACCOUNT", expose_value=False, callback=become, is_eager=True,
        help="As root: run the command, and dsdoctor with it, as this account.",
    )  # fmt: skip
    return option(function)


def fixed_in(causes: tuple[S, ...], python: str | None) -> tuple[S, ...]:
    """Causes whose fixes, as a reader types them, are applied to the interpreter of an option."""
    if python is None:
        return causes
    end = f" --python {shlex.quote(python)}"
    return tuple(
        msgspec.structs.replace(one, fixes=tuple(f"{name}{end}" for name in one.fixes))
        for one in causes
    )


def output_format(*kinds: str) -> Callable[[C], C]:
    """The option that chooses the form of what is printed; the first is the default."""
    return click.option(
        "--format", "form", type=click.Choice(kinds), default=kinds[0],
        show_default=True, help="Output format.",
    )  # fmt: skip


def report_format(function: C) -> C:
    """The option of a report that is text, JSON or a page."""
    return output_format("text", "json", "html")(function)


def text_or_json(function: C) -> C:
    """The option of a report that is text or JSON."""
    return output_format("text", "json")(function)


def selection(function: C) -> C:
    """The options that choose among the conditions."""
    select = click.option(
        "--select",
        multiple=True,
        metavar="WHAT",
        help="Check only these conditions (family, id or name).",
    )
    ignore = click.option(
        "--ignore",
        multiple=True,
        metavar="WHAT",
        help="Skip these conditions (family, id or name).",
    )
    return select(ignore(function))


def language_option(function: C) -> C:
    """The option that selects the language of a report for people."""
    option = click.option(
        "--lang", "lang", type=click.Choice(["en", "zh"]),
        help="Language of text and HTML.", show_default="$LANGUAGE, $LC_MESSAGES, $LANG",
    )  # fmt: skip
    return option(function)


def reader_language(lang: str | None) -> str | None:
    """The language that a report for people is translated into; None = English."""
    wanted = locales.of_reports(lang, os.environ)
    return wanted if wanted in locales.LANGUAGES else None


def environment_options(function: C) -> C:
    """Options that say what is examined."""
    options = [
        click.option(
            "--python",
            "python",
            metavar="PATH",
            help="Interpreter or virtual environment to examine.",
        ),
        click.option("--gpus", metavar="0,1", help="GPUs the job will use (index, UUID, MIG)."),
        click.option(
            "--expect-gpus",
            type=Whole(min=0),
            metavar="N",
            help="Fail unless there are this many GPUs.",
        ),
        click.option("--config", "config", metavar="FILE", help="DeepSpeed config of the job."),
        click.option("--hostfile", metavar="FILE", help="Hostfile of the job."),
        click.option("--quick", is_flag=True, help="Do not start torch or deepspeed."),
        click.option(
            "--deep", is_flag=True, help="Also try compiling, kernels, copies and collectives."
        ),
        click.option(
            "--timeout",
            type=Finite(min=1),
            metavar="SECONDS",
            help="Time limit for the whole command; the limits of its steps scale with it.",
            show_default=f"{TOTAL_SECONDS:g}",
        ),
        click.option(
            "--checks-dir", multiple=True, metavar="DIR", help="Directory with additional checks."
        ),
        as_user,
    ]
    for option in reversed(options):
        function = option(function)
    return function
