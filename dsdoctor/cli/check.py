"""`dsdoctor check`."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from dsdoctor.cli import common, html, job, loading, options
from dsdoctor.cli.elsewhere import Given
from dsdoctor.cli.output import show, wants_colour
from dsdoctor.examine import judge_by
from dsdoctor.job import request as job_request
from dsdoctor.judge import judge, require_checks
from dsdoctor.model.facts.run import Scope
from dsdoctor.model.finding import Status
from dsdoctor.model.report import FAIL_ON, Report, exit_code
from dsdoctor.packs.registry import Registry
from dsdoctor.report import machine_readable, text


@click.command("check")
@options.environment_options
@job.job_options
@click.option(
    "--from", "from_file", metavar="FILE", help="Check a saved snapshot instead of this machine."
)
@click.option(
    "--from-report",
    metavar="FILE|-",
    help="Check pasted output of `collect_env`, `ds_report`, `nvidia-smi`, `accelerate env`, …",
)
@click.option(
    "--node", metavar="FILE", help="Check this environment on the machine of that snapshot."
)
@click.option(
    "--like", metavar="8xH100-SXM", help="Check this environment on a machine of this type."
)
@click.option(
    "--driver", metavar="VERSION", help="With --like: the driver version of that machine."
)
@options.output_format("text", "json", "junit", "github", "html")
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@options.selection
@click.option(
    "--scope",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="Check only conditions that are fixed on the node, in the environment or in the job.",
)
@click.option(
    "--fail-on",
    type=click.Choice(list(FAIL_ON)),
    show_default="fail",
    help="Exit with 1 at this level or above.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also show what passed and what was skipped.")
@click.option("-q", "--quiet", count=True, help="Show failures only; -qq shows only the last line.")
@options.language_option
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED)
def command(
    *,
    python: str | None,
    gpus: str | None,
    expect_gpus: int | None,
    config: str | None,
    hostfile: str | None,
    quick: bool,
    deep: bool,
    timeout: float | None,
    checks_dir: tuple[str, ...],
    from_file: str | None,
    from_report: str | None,
    node: str | None,
    like: str | None,
    driver: str | None,
    form: str,
    output: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    scope: tuple[str, ...],
    fail_on: str | None,
    verbose: bool,
    quiet: int,
    lang: str | None,
    command_line: tuple[str, ...],
    **job_given: Any,
) -> int:
    """Check whether a job will start on this machine.

    With `-- CMD ARGS…`, also checks that command line and the config that it passes, without
    running it.

    \b
    Examples:
      dsdoctor check
      dsdoctor check --gpus 0,1 --config ds_config.json
      dsdoctor check -- deepspeed --num_gpus 2 train.py
      dsdoctor check --from gpu-node.json --config ds_config.json
      dsdoctor check --like 8xH100-SXM --driver 550.54.15 --model 7B
      dsdoctor check --model 7B --config ds_config.json --writable out
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    begun = time.monotonic()
    form = html.form_of(form, output)
    registry = loading.load_registry(checks_dir)
    found = common.load_settings(registry)
    wanted = [item for word in select for item in loading.split(word)]
    unwanted = [item for word in ignore for item in loading.split(word)]
    units = registry.select(wanted, [*found.ignore, *unwanted])
    policy = common.policy(found, scope)
    require_checks(units, policy)
    given = Given(from_file=from_file, from_report=from_report, node=node, like=like, driver=driver)
    given.agree(python=python, quick=quick, deep=deep)
    job_wanted = any((gpus, expect_gpus, config, command_line, hostfile, job.any_given(job_given)))
    needs = job_request.run_needs(
        gpus=loading.items(gpus),
        expect_gpus=expect_gpus,
        config=config,
        hostfile=hostfile,
        quick=quick,
        deep=deep,
        command=command_line,
    )
    needs = job_request.with_job(needs, **job_given)
    paste = given.paste(registry)
    if given.elsewhere:
        snapshot = given.snapshot(needs if job_wanted else None, registry, paste)
    else:
        snapshot = common.live_snapshot(
            needs,
            python,
            registry,
            units,
            timeout,
            show_progress=not quiet and form == "text",
            keeps_partial=True,
        )
        snapshot = given.composed(snapshot, needs, registry)
    report = judge(snapshot, units, registry, policy, deadline=judge_by(begun, timeout))
    if paste is not None:
        from dsdoctor.cli import pasted  # noqa: PLC0415  # readers only where they are needed

        chosen = [u for u in units if not policy.scopes or u.condition.scope in policy.scopes]
        pasted.with_cause(report, paste, snapshot, chosen)
    if not given.elsewhere and report.worst() is Status.FAIL:
        from dsdoctor.machines import known_good  # noqa: PLC0415  # only where something failed

        report.notes += filter(None, [known_good.since_last(snapshot)])
    # the files of a job that was pasted are on that machine too
    pasted_job = paste is not None and not job_wanted
    if given.elsewhere and any(
        f.fixes and (pasted_job or f.scope is not Scope.JOB) for f in report.findings
    ):
        report.notes.append("run `dsdoctor fix` on the machine that was read, not here")
    if command_line and not given.names_machine:
        from dsdoctor.run import elsewhere  # noqa: PLC0415  # only where a command is judged

        if starter := elsewhere.starter(command_line, os.environ):
            there = f"{starter} -N1 dsdoctor check"
            report.notes.append(
                f"`{starter}` runs the job on other hosts, and this report covers this one; to "
                f"check one of them, run "
                + (f"`{there}`" if starter in elsewhere.SLURM else "`dsdoctor check` there")
            )
        elif inside := elsewhere.container(command_line):
            report.notes.append(
                f"`{inside}` runs the job in a container, and this report covers the host; to check"
                " the container's environment, run `dsdoctor check` in it"
            )
    # programs read English only
    shown = translated(report, registry, lang) if form in ("text", "html") else report
    if form == "html":
        from dsdoctor.report.html import check as pages  # noqa: PLC0415  # an extra

        loading.write(pages.page(shown, snapshot), output)
    else:
        _print(shown, form, output, 1 if verbose else -quiet)
    return exit_code(report, fail_on)


def translated(report: Report, registry: Registry, lang: str | None) -> Report:
    """The report in the reader's language."""
    wanted = options.reader_language(lang)
    if wanted is None:
        return report
    from dsdoctor import language  # noqa: PLC0415  # English needs no catalogue

    titles = {unit.condition.name: unit.title for unit in registry}
    return language.of_report(report, titles, wanted)


def _print(report: Report, form: str, output: str | None, verbosity: int) -> None:
    if form == "json":
        loading.write(machine_readable.json(report), output)
    elif form == "junit":
        loading.write(machine_readable.junit(report), output)
    elif form == "github":
        loading.write(machine_readable.github(report), output)
    elif output is None and wants_colour():
        show(lambda width: text.lines(report, verbosity=verbosity, width=width))
    else:
        loading.write(text.render(report, verbosity=verbosity), output)
