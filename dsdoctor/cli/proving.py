"""`recommend --prove`: the settings that were just computed, run by `smoke`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from dsdoctor.errors import UsageError
from dsdoctor.model import launch_plan as launch_model
from dsdoctor.model import smoke as smoke_model
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.model.smoke import SmokeReport
from dsdoctor.recommend.models import ModelShape

REPORT_NAME = "report.json"


def refuse(
    *, elsewhere: str | None, launcher: str | None, nodes: int | None, hostfile: str | None
) -> None:
    """Rejects settings that cannot be run from here, before anything is computed.

    Args:
        elsewhere: the option that selects another machine, if any.
        launcher: value of --launcher.
        nodes: value of --nodes.
        hostfile: value of --hostfile.

    Raises:
        UsageError: the settings are for another machine, launcher or number of hosts.
    """
    if elsewhere is not None:
        raise UsageError(
            f"`--prove` runs on this machine, but `{elsewhere}` selects another; pass one of them"
        )
    if launcher == "accelerate":
        raise UsageError(
            "`--prove` runs through `deepspeed` or `torchrun`, but `--launcher accelerate` was "
            "requested; pass one of them"
        )
    if nodes is not None and nodes > 1 and hostfile is None:
        raise UsageError(f"`--prove` with `--nodes {nodes}` needs the hosts; pass `--hostfile`")


def run(
    plan: LaunchPlan,
    shape: ModelShape,
    python: str | None,
    *,
    form: str,
    folder: str | None,
    hostfile: str | None,
    verbose: bool,
) -> int:
    """Runs a plan that fits; the exit status is that of `smoke`.

    Args:
        plan: the recommended plan.
        shape: the model that it was made for.
        python: value of --python.
        form: `text`, or `json`: one document with the plan, and the report as its `proof`.
        folder: folder with the plan; the report is written there too.
        hostfile: value of --hostfile, for several hosts.
        verbose: also show the launcher's last lines.

    Raises:
        UsageError: the plan cannot be run here.
    """
    # a plan alone needs neither the engine nor the runner
    from dsdoctor import files, interpreter  # noqa: PLC0415  # see above
    from dsdoctor.cli import loading, smoke  # noqa: PLC0415
    from dsdoctor.host import LocalHost  # noqa: PLC0415
    from dsdoctor.smoke import job as planning  # noqa: PLC0415
    from dsdoctor.smoke.run import ProofOptions  # noqa: PLC0415

    def print_report(report: SmokeReport) -> None:
        text = smoke_model.encode(report)
        if form == "json":
            document = json.loads(launch_model.encode(plan))
            click.echo(json.dumps({**document, "proof": json.loads(text)}, indent=2))
        else:
            click.echo()
            smoke.show(report, form, verbose=verbose)
        if folder is not None:
            path = Path(folder) / REPORT_NAME
            files.write(path, text)
            click.echo(f"wrote {path}", err=True)

    run_plan = planning.make(
        plan, shape, steps=planning.STEPS, full_size=False, uuids=plan.gpu_uuids, hostfile=hostfile
    )
    return smoke.execute(
        run_plan,
        interpreter.choose(LocalHost(), python).executable,
        loading.load_registry(),
        ProofOptions(bisect=sys.stderr.isatty()),
        print_report,
        folder=None,
    )
