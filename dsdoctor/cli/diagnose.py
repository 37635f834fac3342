"""`dsdoctor diagnose`: from a dead run's log to its cause."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec

from dsdoctor import logs
from dsdoctor.cli import common
from dsdoctor.logs.diagnose import GPUS, known_expectations
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.report import diagnosis as text_report

EXIT = {Outcome.CAUSE: 1, Outcome.USER_CODE: 0, Outcome.CLEAN: 0, Outcome.UNRECOGNISED: 3}


def exit_code(diagnosis: Diagnosis) -> int:
    """Design §2: 1 cause named, 3 unrecognised, empty or cut off, 0 otherwise."""
    return 3 if diagnosis.truncated else EXIT[diagnosis.outcome]


def _expected(text: str | None) -> list[str]:
    names = [name.strip().lower() for name in re.split(r"[,\s]+", text or "") if name.strip()]
    for name in names:
        if name not in known_expectations() and not GPUS.fullmatch(name):
            choice = ", ".join((*known_expectations(), "4gpus"))
            raise click.UsageError(f"`--expect` does not know `{name}`; it takes {choice}")
    return names


@click.command("diagnose", short_help="Name the cause from the log of a dead run.")
@click.argument("paths", metavar="LOG…", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--expect", metavar="NAMES", help="What must have been active: zero3,offload,4gpus.")
@click.option("-o", "output", metavar="FILE", help="Write the report there.")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    form: str,
    expect: str | None,
    output: str | None,
) -> None:
    """Reads LOG… (files, folders of rank logs, `-`) and names the cause."""
    expected = _expected(expect)
    try:
        diagnosis = logs.diagnose_paths(
            paths, logs.signatures_of(common.load_registry()), expect=expected
        )
    except logs.ReadError as error:
        click.echo(f"dsdoctor: {error}", err=True)
        context.exit(2)
    if form == "json":
        document = msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"
    else:
        document = text_report.render(diagnosis)
    if output is None:
        click.echo(document, nl=False)
    else:
        try:
            Path(output).write_text(document, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            click.echo(f"dsdoctor: `{output}` cannot be written: {reason}", err=True)
            context.exit(2)
    context.exit(exit_code(diagnosis))
