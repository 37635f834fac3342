"""`dsdoctor hook`: the gate before a job."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from dsdoctor.cli.groups import Group
from dsdoctor.cli.numbers import Finite
from dsdoctor.cli.options import output_format
from dsdoctor.errors import UsageError
from dsdoctor.hook import entry, gatelog, in_use, install, installed, owner, schedulers, site
from dsdoctor.hook.request import BUDGET, KINDS, MAX_AGE, Request, node_name
from dsdoctor.hook.rundir import default_path
from dsdoctor.host.account import own_tool
from dsdoctor.safe_path import UnsafePathError


@click.group("hook", cls=Group)
def command() -> None:
    """Decide whether a job may start, in a scheduler's own protocol.

    Only a confirmed fault blocks a job. After an inconclusive check, or any failure of dsdoctor
    itself, the job passes and a line goes to syslog, unless --fail-closed is set.
    """


_trust_option = click.option(
    "--trust-owner",
    multiple=True,
    metavar="ACCOUNT",
    callback=lambda _ctx, _param, names: tuple(owner.account_number(name) for name in names),
    help="Let root run an interpreter that belongs to this account.",
)


def _budget(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--budget`, which the hooks and `install` share."""
    return click.option(
        "--budget",
        type=Finite(min=1),
        default=f"{BUDGET:g}",
        show_default=True,
        metavar="SECONDS",
        help=what,
    )


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        _budget("Time limit for everything, even if something hangs."),
        click.option("--gpus", metavar="0,1", help="GPUs of the job, `all` or `none`."),
        click.option("--json", metavar="FILE", help="Write the verdict to FILE."),
        click.option("--fail-closed", is_flag=True, help="Block on an inconclusive check as well."),
        click.option("--dry-run", is_flag=True, help="Report only; block nothing."),
        click.option("--enforce", is_flag=True, help="End the task on a fault."),
        click.option("--live", is_flag=True, help="Start torch too; needs a larger budget."),
        click.option(
            "--reason-from-prolog",
            is_flag=True,
            help="Call scontrol at once (Slurm's manual advises against it).",
        ),
        click.option(
            "--job-comment",
            is_flag=True,
            help="Record the reason in a blocked job's AdminComment.",
        ),
        click.option("--python", metavar="PATH", help="Interpreter of the job."),
        click.option("--config", metavar="FILE", help="DeepSpeed config of the job."),
        click.option("--ignore", multiple=True, metavar="WHAT", help="Skip these conditions."),
        click.option(
            "--textfile",
            metavar="FILE",
            help="Write metrics for Prometheus' node_exporter to FILE.",
        ),
        click.option("--termination-log", metavar="FILE", help="File for the reason."),
        click.option(
            "--run-folder",
            metavar="DIR",
            help="Folder for verdicts and counters.",
            show_default="/run/dsdoctor",
        ),
        click.option(
            "--max-age",
            type=Finite(min=0),
            default=f"{MAX_AGE:g}",
            show_default=True,
            metavar="SECONDS",
            help="How long other hooks may reuse a verdict on the node.",
        ),
        _trust_option,
        click.option("--token", default="", hidden=True),
    ]
    for option in reversed(options):
        function = option(function)
    return function


#: Shown next to each kind in the list of commands, which is cut at 80 columns.
_SHORT = {
    "slurm-prolog": "Slurm's Prolog: may this job start here?",
    "slurm-task-prolog": "Slurm's TaskProlog: show the user what is wrong.",
    "slurm-epilog": "Slurm's Epilog: what did the job leave behind?",
    "slurm-health": "Slurm's HealthCheckProgram: drain and resume.",
    "pbs-prologue": "PBS's prologue: may this job start here?",
    "pbs-health": "PBS's periodic check: set nodes offline and online.",
    "lsf-pre-exec": "LSF's pre-execution command: may this job start?",
    "sge-prolog": "Grid Engine's prolog: may this job start here?",
    "k8s": "An init container for Kubernetes.",
    "npd": "A plugin for node-problem-detector.",
    "nagios": "A plugin for Nagios and compatible monitors.",
}


#: Options that only some kinds have; the others accept them and do nothing, as scripts of older
#: releases pass them.
_KINDS_OF = {
    "enforce": ("slurm-task-prolog",),
    "live": ("k8s",),
    "reason_from_prolog": ("slurm-prolog", "slurm-epilog"),
    "job_comment": ("slurm-prolog",),
    "termination_log": ("k8s",),
}


def _kind(name: str, text: str) -> None:
    @command.command(name, help=text, short_help=_SHORT[name])
    @_options
    def run(*, ignore: tuple[str, ...], **given: Any) -> int:
        items = tuple(part.strip() for word in ignore for part in word.split(",") if part.strip())
        return entry.run(Request(kind=name, ignore=items, **given))

    for option in run.params:
        if isinstance(option, click.Option) and name not in _KINDS_OF.get(
            option.name or "", (name,)
        ):
            option.hidden = True


for _name, (_text, _scopes) in KINDS.items():
    _kind(_name, f"Act as {_text.rstrip('?')}{'?' if _text.endswith('?') else '.'}")


@command.command("status", short_help="Show what the gate of this node did in the last day.")
@click.option(
    "--run-folder",
    multiple=True,
    metavar="DIR",
    help="Folder with its log.",
    show_default="/run/dsdoctor",
)
@click.option(
    "--hours",
    type=Finite(min=0, min_open=True),
    default=24,
    show_default=True,
    help="Count the runs of the last X hours.",
)
@output_format("text", "json", "prometheus")
def status_command(*, run_folder: tuple[str, ...], hours: float, form: str) -> None:
    """Show what the gate of this node did: runs, jobs passed unchecked and why, blocks, seconds."""
    folders = [Path(name) for name in run_folder] or [default_path(root=True)]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(
                f"`{folder}` does not exist: no gate has run on this node since it booted, or it "
                "keeps its log elsewhere (`--run-folder`)"
            )
    try:
        rows = [row for folder in folders for row in gatelog.read(folder)]
    except UnsafePathError as error:
        raise UsageError(f"the log of the gate cannot be read: {error}") from None
    found = gatelog.summarize(rows, node_name(os.environ), day=hours * 3600)
    off = entry.KILL_SWITCH.exists()
    if form == "json":
        nodes = [one.as_json() for one in found]
        click.echo(json.dumps({"schema": "dsdoctor/gate", "version": 1, "off": off, "runs": nodes}))
    elif form == "prometheus":
        click.echo("\n".join(gatelog.metrics(found)))
    else:
        if off:
            click.echo(f"switched off: `{entry.KILL_SWITCH}` exists, and what passes is not logged")
        where = ", ".join(str(folder) for folder in folders)
        click.echo(
            gatelog.text(found, hours) or f"no hook has run in the last {hours:g} h ({where})\n",
            nl=False,
        )


#: Options of `hook install` that change nothing for other targets.
_ONLY_FOR = {
    "--enforce": ("slurm",),
    "--reason-from-prolog": ("slurm", "epilog"),
    "--no-job-comment": ("slurm",),
    "--offline": ("pbs",),
    "--image": ("kubernetes",),
}


def _refuse_for_others(target: str, given: Mapping[str, bool]) -> None:
    """Rejects options that would change nothing for a target.

    Raises:
        UsageError: one of them was passed.
    """
    for option, targets in _ONLY_FOR.items():
        if given[option] and target not in targets:
            names = " and ".join(f"`{name}`" for name in targets)
            raise UsageError(f"`{option}` is for {names}, not for `{target}`; omit it")


@command.command("install", short_help="Write scripts or manifests; print what to configure.")
@click.argument("target", type=click.Choice(sorted(install.TARGETS)))
@click.option("--into", metavar="DIR", help="Folder for the files.")
@click.option(
    "--python",
    metavar="PATH",
    help="Interpreter that has dsdoctor installed.",
    show_default="this one",
)
@_budget("Time limit for a script, even if something hangs.")
@click.option("--fail-closed", is_flag=True, help="Block on an inconclusive check as well.")
@click.option(
    "--run-folder",
    default="/run/dsdoctor",
    show_default=True,
    metavar="DIR",
    help="Folder where hooks keep their state.",
)
@click.option(
    "--gpus", type=click.Choice(["all"]), help="Check all GPUs of the node for every job."
)
@click.option("--enforce", is_flag=True, help="The task prolog ends tasks on a confirmed fault.")
@click.option(
    "--reason-from-prolog",
    is_flag=True,
    help="Call scontrol in the Prolog (Slurm's manual advises against it).",
)
@click.option(
    "--no-job-comment",
    is_flag=True,
    help="Do not record the reason in a blocked job's AdminComment.",
)
@click.option(
    "--offline",
    is_flag=True,
    help="PBS: set a faulty node offline (`pbsnodes -o`), and back online once it is healthy.",
)
@click.option(
    "--image",
    metavar="IMAGE",
    help="Kubernetes: the training image, with dsdoctor installed.",
    show_default="registry.example/train:1",
)
@_trust_option
@click.option("--dry-run", is_flag=True, help="Show the files and write nothing.")
def install_command(
    *,
    target: str,
    into: str | None,
    python: str | None,
    budget: float,
    fail_closed: bool,
    run_folder: str,
    gpus: str | None,
    enforce: bool,
    reason_from_prolog: bool,
    no_job_comment: bool,
    offline: bool,
    image: str | None,
    trust_owner: tuple[int, ...],
    dry_run: bool,
) -> None:
    """Write scripts or manifests, and print what to configure."""
    if python is not None and target != "kubernetes" and not Path(python).is_absolute():
        raise UsageError(
            f"`--python {python}` is not an absolute path; a hook runs without PATH, expected "
            "one such as `/opt/dsdoctor/bin/python`"
        )
    if not Path(run_folder).is_absolute():
        raise UsageError(f"`--run-folder {run_folder}` is not an absolute path")
    _refuse_for_others(
        target,
        {
            "--enforce": enforce,
            "--reason-from-prolog": reason_from_prolog,
            "--no-job-comment": no_job_comment,
            "--offline": offline,
            "--image": image is not None,
        },
    )
    folder = Path(into) if into else install.TARGETS[target]
    wanted = install.plan(
        target,
        install.InstallOptions(
            into=folder if target == "kubernetes" else folder.absolute(),
            python=python or ("python3" if target == "kubernetes" else sys.executable),
            budget=budget,
            fail_closed=fail_closed,
            run_folder=run_folder,
            gpus=gpus,
            enforce=enforce,
            reason_from_prolog=reason_from_prolog,
            job_comment=not no_job_comment,
            scontrol=own_tool("scontrol") or "/usr/bin/scontrol",
            slurm_conf=os.environ.get("SLURM_CONF"),
            offline=offline,
            pbsnodes=own_tool("pbsnodes") or "/opt/pbs/bin/pbsnodes",
            image=image or install.IMAGE,
            trust=trust_owner,
        ),
    )
    if target != "kubernetes":
        site.require_process_groups()
        for warning in (
            owner.judge(python or sys.executable, trust_owner),
            owner.judge_run_folder(run_folder, trust_owner),
        ):
            if warning:
                click.echo(f"dsdoctor: {warning}", err=True)
    notes: list[str] = []
    if target in schedulers.FILES:
        notes = site.places(folder, python or sys.executable, run_folder)
    if target in ("slurm", "epilog"):
        scontrol = own_tool("scontrol") or "/usr/bin/scontrol"
        notes = site.places(folder, python or sys.executable, run_folder)
        config = site.slurm_config(scontrol)
        if target == "slurm":
            notes += filter(None, [site.usable_by_users(python or sys.executable)])
        notes += site.slurm_notes(config, budget, folder) if target == "slurm" else []
        notes += site.epilog_notes(config, budget, folder) if target == "epilog" else []
    if dry_run:
        for path, (text, mode) in wanted.files.items():
            click.echo(f"# would write {path} (mode {mode:o})\n{text}")
    else:
        for line in installed.apply(wanted):
            click.echo(line)
        click.echo("")
    click.echo(wanted.advice, nl=False)
    for note in notes:
        click.echo(f"dsdoctor: {note}", err=True)


@command.command("uninstall", short_help="Remove what `hook install` wrote.")
@click.argument("target", type=click.Choice(sorted(install.TARGETS)))
@click.option("--into", metavar="DIR", help="Folder of the files.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove them even if the scheduler's configuration refers to them.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
def uninstall_command(*, target: str, into: str | None, force: bool, dry_run: bool) -> None:
    """Remove what `hook install` wrote, and what its hooks left in their run folder.

    Refuses while the scheduler's configuration still refers to the scripts: Slurm drains a node
    whose Prolog is missing.
    """
    folder = Path(into) if into else install.TARGETS[target]
    if target in ("slurm", "epilog") and not force:
        scripts = folder if target == "slurm" else folder / "epilog.sh"
        site.refuse_if_used(own_tool("scontrol") or "/usr/bin/scontrol", scripts)
    if target in schedulers.FILES and not force:
        in_use.refuse_if_used(target, folder)
    for line in installed.remove(target, folder, dry=dry_run):
        click.echo(line)
    if target == "slurm":
        click.echo("Also remove the lines that refer to this folder from slurm.conf.")
