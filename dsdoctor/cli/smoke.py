"""`dsdoctor smoke`: a short real training run through the user's own launcher."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from dsdoctor import files, interpreter
from dsdoctor.cli import common, html, loading, options, output
from dsdoctor.cli.numbers import Finite, Whole
from dsdoctor.cli.phases import shown
from dsdoctor.errors import UsageError
from dsdoctor.host import LocalHost, account
from dsdoctor.host_actions import for_machine
from dsdoctor.job.request import run_needs
from dsdoctor.machines import known_good, this_machine
from dsdoctor.model import smoke as model
from dsdoctor.model.smoke import SmokeReport
from dsdoctor.packs.registry import Registry
from dsdoctor.report import smoke as text_report
from dsdoctor.smoke import keep, request
from dsdoctor.smoke.job import STEPS, SmokePlan
from dsdoctor.smoke.run import ProofOptions, interruptible, prove

_FAULT = re.compile(r"(kill|sleep|slow|corrupt|nan|memory|launcher|runner)@(\d+)(?::([a-z-]+))?")


def _fault(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    match = _FAULT.fullmatch(text)
    if match is None:
        raise UsageError(f"`--fault {text}` is not known; expected one such as `corrupt@1`")
    phase = match[3] or ("collectives" if match[1] == "corrupt" else "steps")
    return {"kind": match[1], "rank": int(match[2]), "phase": phase}


@click.command("smoke", short_help="Prove launch settings with a short real run.")
@click.option("--gpus", metavar="0,1", help="GPUs to run on (index or UUID); all by default.")
@click.option("--cpu", type=Whole(1, 1024), metavar="N", help="Run N ranks on CPUs over gloo.")
@click.option("--config", metavar="FILE", help="DeepSpeed config to try.")
@click.option(
    "--model", "model_name", metavar="MODEL", help="Model, as for `recommend`, or `tiny`."
)
@click.option("--plan", "plan_file", metavar="FILE", help="Launch plan written by `recommend`.")
@click.option(
    "--full-size", is_flag=True, help="Build the planned model at full size instead of a small one."
)
@click.option(
    "--steps",
    type=Whole(request.FEWEST_STEPS, 1_000_000),
    default=STEPS,
    show_default=True,
    help="Training steps.",
)
@click.option(
    "--precision",
    type=click.Choice(["bf16", "fp16", "fp32"]),
    help="Training precision.",
    show_default="from the config or plan, else by hardware",
)
@click.option(
    "--launcher",
    type=click.Choice(["deepspeed", "torchrun"]),
    help="Launcher to use.",
    show_default="from the plan, else deepspeed",
)
@click.option("--hostfile", metavar="FILE", help="Hostfile of the run, as for `deepspeed`.")
@click.option(
    "--master-port", type=Whole(1, 65535), help="Rendezvous port.", show_default="a free one"
)
@click.option("--python", metavar="PATH", help="Interpreter or virtual environment to run in.")
@click.option(
    "--timeout", type=Finite(min=1), default=300, show_default=True, metavar="SECONDS",
    help="Time limit for one run, not counting the compilation of ops.",
)  # fmt: skip
@click.option(
    "--bisect/--no-bisect",
    default=None,
    help="After a failure, search for a single setting that fixes it.",
)
@click.option(
    "--bisect-budget", type=Finite(min=1), default=600, show_default=True,
    metavar="SECONDS", help="Time limit for that search.",
)  # fmt: skip
@options.report_format
@click.option("-o", "--output", "folder", metavar="DIR", help="Write the proven settings to DIR.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Also show the last lines of the launcher's output."
)
@options.language_option
@options.as_user
@click.option("--fault", hidden=True, help="Break a rank on purpose: `corrupt@1`.")
def command(
    *,
    gpus: str | None,
    cpu: int | None,
    config: str | None,
    model_name: str | None,
    plan_file: str | None,
    full_size: bool,
    steps: int,
    precision: str | None,
    launcher: str | None,
    hostfile: str | None,
    master_port: int | None,
    python: str | None,
    timeout: float,
    bisect: bool | None,
    bisect_budget: float,
    form: str,
    folder: str | None,
    verbose: bool,
    lang: str | None,
    fault: str | None,
) -> int:
    """Prove launch settings with a short real run through your own launcher.

    Without GPUs, or with `--cpu N`, the ranks run on CPUs. Exit status 0: passed, 1: failed,
    3: inconclusive.

    \b
    Examples:
      dsdoctor smoke
      dsdoctor smoke --gpus 0,1 --config ds_config.json
      dsdoctor smoke --model llama-3-8b --full-size -o proven
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    form = html.form_of(form, folder)
    folder, page = html.places(form, folder)
    registry = loading.load_registry()
    chosen = interpreter.choose(LocalHost(), python).executable
    account.become_owner(chosen)
    plan = request.plan(
        request.SmokeOptions(
            gpus=gpus, cpu=cpu, config=config, model=model_name, plan=plan_file,
            full_size=full_size, steps=steps, precision=precision, launcher=launcher,
            hostfile=hostfile, master_port=master_port, fault=_fault(fault),
        ),
        lambda: this_machine.read(loading.items(gpus), loading.load_registry()),
    )  # fmt: skip
    if plan.launch.nodes > 1:
        account.refuse_foreign_folder()
    if folder is not None:
        keep.check_folder(folder)
    return execute(
        plan, chosen, registry,
        ProofOptions(
            timeout=timeout, budget=bisect_budget,
            bisect=sys.stderr.isatty() if bisect is None else bisect,
        ),
        lambda report: show(
            report if form == "json" else msgspec.structs.replace(
                report, causes=options.fixed_in(report.causes, python)
            ),
            form, verbose=verbose, page=page, lang=lang,
        ),
        folder=folder,
    )  # fmt: skip


def execute(
    plan: SmokePlan,
    python: str,
    registry: Registry,
    how: ProofOptions,
    show_report: Callable[[SmokeReport], None],
    *,
    folder: str | None,
) -> int:
    """Runs a plan, reports it, saves the proven settings; returns the exit status.

    Raises:
        UsageError: the plan cannot be run here, or the folder cannot be written.
    """
    ended = 0
    bars = shown(terminal=sys.stderr.isatty())
    try:
        with interruptible() as signals:
            report = prove(plan, python, registry, how, on_progress=bars.update)
    finally:
        bars.close()
    if report.partial:
        ended = 128 + (signals.number or signal.SIGINT)
    report = msgspec.structs.replace(
        report,
        causes=tuple(
            msgspec.structs.replace(
                cause,
                formerly=registry.former_names(cause.condition),
                hint=for_machine(cause.hint, LocalHost()),
            )
            for cause in report.causes
        ),
    )
    show_report(report)
    if report.verdict == "pass":
        if folder is not None:
            for path in keep.write(report, plan, folder):
                click.echo(f"wrote {path}", err=True)
        save_known_good(report, python, registry)
    elif folder is not None:
        path = Path(folder) / "report.json"
        files.write(path, model.encode(report))
        click.echo(f"wrote {path}", err=True)
    return ended or model.EXIT[report.verdict]


def save_known_good(report: SmokeReport, python: str, registry: Registry) -> None:
    """Saves a snapshot of this machine as the last known-good one."""
    needs = run_needs()
    snapshot = common.live_snapshot(needs, python, registry, None, None)
    known_good.remember(snapshot)
    with contextlib.suppress(OSError):
        keep.known_good(snapshot.to_json(), report)


def show(
    report: SmokeReport,
    form: str,
    *,
    verbose: bool,
    page: str | None = None,
    lang: str | None = None,
) -> None:
    """Prints a report, or writes its page; translates it for people."""
    wanted = None if form == "json" else options.reader_language(lang)
    if wanted is not None:
        from dsdoctor import language  # noqa: PLC0415  # English needs no catalogue

        report = language.of_smoke(report, wanted)
    if form == "html":
        from dsdoctor.report.html import smoke as pages  # noqa: PLC0415  # an extra

        html.write(lambda: pages.page(report), page)
        return
    if form == "json":
        click.echo(loading.harmless(model.encode(report)), nl=False)
        return
    if output.wants_colour():
        output.show(lambda width: text_report.lines(report, width, verbose=verbose))
        return
    width = shutil.get_terminal_size().columns
    click.echo(text_report.render(report, width, verbose=verbose), nl=False)
