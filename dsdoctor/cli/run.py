"""`dsdoctor run`: start and watch a job; list, show, compare and export saved runs."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from dsdoctor.cli.groups import Group
from dsdoctor.cli.numbers import Whole
from dsdoctor.cli.options import (
    become_user,
    language_option,
    reader_language,
    report_format,
    text_or_json,
)
from dsdoctor.errors import UsageError
from dsdoctor.model.plain import printable
from dsdoctor.run import store
from dsdoctor.run.options import RunOptions, seconds_of


class RunGroup(Group):
    """A group whose own options end at `--`, which the user's command follows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: D102
        command: list[str] = []
        if "--" in args:
            place = args.index("--")
            args, command = args[:place], args[place + 1 :]
            if not command:
                raise UsageError("no command after `--`; expected `dsdoctor run -- CMD ARGS…`")
        ctx.obj = tuple(command)
        if command and not args:  # no misuse: the command itself is the argument
            return click.Group.parse_args(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(  # noqa: D102
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and ctx.obj:
            raise UsageError(f"`{args[0]}` before `--`: only options come before `--`")
        if args and args[0] not in self.commands:
            raise UsageError(
                f"`{args[0]}` is not a subcommand of `dsdoctor run`; put `--` before the command"
            )
        return super().resolve_command(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102
        formatter.write_usage(ctx.command_path, "[OPTIONS] -- CMD ARGS…")


@click.group("run", cls=RunGroup, invoke_without_command=True)
@click.option(
    "--preflight",
    type=click.Choice(["quick", "full", "off"]),
    default="quick",
    show_default=True,
    help="Check what the command needs before it starts.",
)
@click.option("--force", is_flag=True, help="Start even if the preflight check fails.")
@click.option(
    "--env",
    "announce",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Set variables that enable stack dumps on timeouts; none changes results.",
)
@click.option("--every", default="2s", show_default=True, metavar="TIME", help="Sample this often.")
@click.option(
    "--hang-after",
    default="15m",
    show_default=True,
    metavar="TIME",
    help="Report a hang after this long without output or work; 0 turns it off.",
)
@click.option(
    "--on-hang",
    type=click.Choice(["report", "stop"]),
    default="report",
    show_default=True,
    help="What to do if the job hangs.",
)
@click.option(
    "--restarts",
    type=Whole(0, 100),
    default=0,
    show_default=True,
    help="Restart up to this many times if the cause may be temporary.",
)
@click.option(
    "--requeue",
    is_flag=True,
    help=(
        "In Slurm, restart by requeuing the job (once, or --restarts times), excluding a bad node."
    ),
)
@click.option(
    "--metrics", metavar="FILE", help="Write Prometheus metrics to FILE with each sample."
)
@click.option(
    "--runs-dir",
    metavar="DIR",
    help="Folder where runs are saved.",
    show_default="$DSDOCTOR_RUNS, else in ~/.local/state",
)
@click.option("-q", "--quiet", is_flag=True, help="Report only why the job died.")
@language_option
@become_user
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Run a job, watch it, and report the cause if it dies.

    The command runs as typed, with the same output, signals and exit status. Everything that a
    post-mortem needs is saved in a folder for this run.

    Exit status: that of the command; 79 if the preflight check failed and the command was not
    started; 1 if the command succeeded but its output could not be written, such as to a full
    disk.

    \b
    Examples:
      dsdoctor run -- deepspeed --num_gpus 4 train.py --deepspeed ds_config.json
      dsdoctor run --hang-after 5m --on-hang stop -- torchrun train.py
      dsdoctor run list
      dsdoctor run show last
      dsdoctor run diff 20261122-0610 20261122-0755
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    base = store.base_folder(given["runs_dir"])
    if ctx.invoked_subcommand is not None:
        ctx.obj = base
        return 0
    return _start(ctx.obj, base, given)


def _start(words: tuple[str, ...], base: Path, given: dict[str, Any]) -> int:
    if not words:
        raise UsageError("no command was passed; expected `dsdoctor run -- CMD ARGS…`")
    if sys.platform == "win32":
        raise UsageError("`dsdoctor run` needs Linux or macOS; on Windows, run it inside WSL")
    from dsdoctor.run.detached import refusal  # noqa: PLC0415  # `run list` and others start nothing
    from dsdoctor.run.restarts import is_first  # noqa: PLC0415
    from dsdoctor.run.start import execute  # noqa: PLC0415

    if why := refusal(words, terminal=sys.stdout.isatty()):
        raise UsageError(why)
    every = seconds_of(given["every"], "--every")
    if every < 0.1:  # noqa: PLR2004
        raise UsageError(f"`--every {given['every']}` is too short; expected 0.1s or longer")
    if given["requeue"] and not os.environ.get("SLURM_JOB_ID"):
        raise UsageError("`--requeue` needs a Slurm job; elsewhere, pass `--restarts N`")
    metrics = None if given["metrics"] is None else Path(given["metrics"]).absolute()
    if metrics and not (metrics.parent.is_dir() and os.access(metrics.parent, os.W_OK)):
        raise UsageError(
            f"`--metrics {given['metrics']}`: `{metrics.parent}` is not a folder that you may write"
        )
    first = is_first(os.environ)
    options = RunOptions(
        command=words,
        preflight=given["preflight"],
        force=given["force"],
        announce=given["announce"] == "on",
        every=every,
        hang_after=seconds_of(given["hang_after"], "--hang-after"),
        on_hang=given["on_hang"],
        restarts=given["restarts"] or int(given["requeue"]),
        requeue=given["requeue"],
        base=base,
        metrics=metrics,
        quiet=given["quiet"] or not first,
        language=reader_language(given["lang"]),
    )
    status = execute(options, _print_notice)
    sys.exit(status)  # statuses of commands are not dsdoctor's own


def _columns() -> int | None:
    """Width of the terminal that a table goes to; None = it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _write(text: str, output: str | None) -> None:
    from dsdoctor.cli import loading  # noqa: PLC0415  # a job must not wait for what it imports

    loading.write(text, output)


def _print_notice(text: str) -> None:
    """One line on stderr; a terminal gets it in lines of its width.

    A terminal in raw mode needs the carriage return.
    """
    line, end = f"dsdoctor: {printable(text)}", "\n"  # it may contain words of the job
    if sys.stderr.isatty():
        from dsdoctor.report.wrap import wrap  # noqa: PLC0415  # a job must not wait for it

        end = "\r\n"
        # a terminal that does not know its width says 0
        columns = max(os.get_terminal_size(sys.stderr.fileno()).columns or 100, _NARROWEST)
        line = end.join(wrap(line, columns, "", " " * len("dsdoctor: "), break_long=False))
    sys.stderr.write(line + end)
    sys.stderr.flush()


def _json(value: object) -> str:
    """JSON without control characters: those beyond ASCII are escaped too."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    return re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _at_runs_dir(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
    if given is not None:
        ctx.obj = store.base_folder(given)


#: Columns below which lines are not broken at words any more.
_NARROWEST = 40
#: `--runs-dir` after the word of a subcommand, for those who saved a run with it.
_runs_dir = click.option(
    "--runs-dir",
    metavar="DIR",
    expose_value=False,
    callback=_at_runs_dir,
    help="Folder where runs are saved.",
    show_default="$DSDOCTOR_RUNS, else in ~/.local/state",
)


@command.command("list")
@text_or_json
@_runs_dir
@click.pass_obj
def list_command(base: Path, form: str) -> int:
    """List saved runs, newest last."""
    from dsdoctor.run import report  # noqa: PLC0415  # a job needs no report

    runs = store.all_runs(base)
    if form == "json":
        _write(_json([record for _, record in runs]), None)
    else:
        _write(report.table(runs, base, _columns()), None)
    return 0


@command.command("show")
@click.argument("run", required=False)
@report_format
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@click.option(
    "--bundle", metavar="FILE", help="Write a redacted archive (.tar.gz) that you can send."
)
@_runs_dir
@click.pass_obj
def show_command(
    base: Path, run: str | None, form: str, output: str | None, bundle: str | None
) -> int:
    """Show one run: RUN is its id, a prefix of the id, or `last`."""
    from dsdoctor.cli import html  # noqa: PLC0415  # a job needs no page
    from dsdoctor.run import report  # noqa: PLC0415

    form = html.form_of(form, output)
    folder, record = store.find(base, run)
    if bundle is not None:
        store.bundle(folder, Path(bundle), store.texts_of(folder))
        _write(f"{bundle}\n", None)
        return 0
    if form == "json":
        text = _json(record)
    elif form == "html":
        from dsdoctor.report.html import run as pages  # noqa: PLC0415  # an extra
        from dsdoctor.run import metrics  # noqa: PLC0415

        steps = metrics.step_rows(folder)
        samples = metrics.flat_samples(folder, report.started(record))
        text = pages.page(record, steps, samples, report.ending(record))
    else:
        text = report.show(folder, record)
    _write(text, output)
    return 0


@command.command("diff")
@click.argument("before")
@click.argument("after")
@report_format
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@_runs_dir
@click.pass_obj
def diff_command(base: Path, before: str, after: str, form: str, output: str | None) -> int:
    """Compare two runs: step time, memory, loss, and what differed."""
    from dsdoctor.cli import html  # noqa: PLC0415  # a job needs no page
    from dsdoctor.run import report  # noqa: PLC0415

    form = html.form_of(form, output)
    left, right = store.find(base, before), store.find(base, after)
    if form == "html":
        from dsdoctor.report.html import run_diff as pages  # noqa: PLC0415  # an extra
        from dsdoctor.run import metrics  # noqa: PLC0415

        kept = [
            pages.SavedRun(
                name=folder.name,
                record=record,
                steps=metrics.step_rows(folder),
                samples=metrics.flat_samples(folder, report.started(record)),
            )
            for folder, record in (left, right)
        ]
        changes = report.fact_changes(left[0], right[0])
        rows = report.figure_rows(left[1], right[1])
        _write(pages.page(kept[0], kept[1], rows, changes), output)
    elif form == "json":
        _write(_json(report.document(left, right)), output)
    else:
        _write(report.compare(left, right, None if output else _columns()), output)
    return 0


@command.command("export")
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "tensorboard"]),
    default="csv",
    show_default=True,
    help="csv and json: samples of the machine, or with --steps of the training.",
)
@click.option("--steps", is_flag=True, help="Export steps, loss and throughput.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to this file, or folder for tensorboard."
)
@_runs_dir
@click.pass_obj
def export_command(base: Path, run: str | None, form: str, steps: bool, output: str | None) -> int:
    """Export what was sampled."""
    from dsdoctor.run import metrics, report  # noqa: PLC0415  # a job needs no report

    folder, record = store.find(base, run)
    samples = metrics.flat_samples(folder, report.started(record))
    trained = metrics.step_rows(folder)
    if form == "tensorboard":
        if output is None:
            raise UsageError("`--format tensorboard` writes a folder; pass it with `-o DIR`")
        metrics.to_tensorboard(Path(output), trained, samples, report.started(record))
        return 0
    rows = trained if steps else samples
    if not rows:
        from dsdoctor.report.text import clean  # noqa: PLC0415  # only for an empty table

        what = "reported no step" if steps else "has no samples: it ended too soon"
        click.echo(f"dsdoctor: run {clean(folder.name)} {what}", err=True)
        text = "" if form == "csv" else "[]\n"
        _write(text, output)
        return 0
    text = metrics.to_csv(rows) if form == "csv" else msgspec.json.encode(rows).decode() + "\n"
    _write(text, output)
    return 0
