"""`dsdoctor fleet`: many nodes at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from dsdoctor import files, hostfile, interpreter, process
from dsdoctor.cli import common, fleet_diff, fleet_pods, groups, html, loading, options
from dsdoctor.cli.numbers import Finite, Whole
from dsdoctor.errors import UsageError
from dsdoctor.fleet import (
    bundle,
    cross,
    fanout,
    merge,
    names,
    nodes,
    pairing,
    replay,
    report,
    smoke,
)
from dsdoctor.fleet import folder as stored
from dsdoctor.host import LocalHost, own_environment

MASTER_PORT = 29500


@click.group("fleet", cls=groups.Group)
def command() -> None:
    """Check many nodes at once: what is wrong, and what differs."""
    own_environment.use_own_path()


_job_python = click.option(
    "--python", metavar="PATH", show_default="the one examined here",
    help="The job's interpreter on the nodes.",
)  # fmt: skip


def _timeout(seconds: int, what: str) -> Callable[[options.C], options.C]:
    return click.option(
        "--timeout", type=Finite(min=1), default=seconds, show_default=True, metavar="SECONDS",
        help=what,
    )  # fmt: skip


def _places(function: Any) -> Any:
    choices = [
        click.option("--nodes", "node_list", metavar="gpu[001-512]", help="Nodes by name."),
        click.option("--hostfile", metavar="FILE", help="Nodes and slots of a hostfile."),
        click.option("--slurm", is_flag=True, help="Nodes of this Slurm allocation, through srun."),
        click.option("--kubernetes", is_flag=True, help="Pods on the nodes, through kubectl exec."),
        click.option(
            "--selector",
            metavar="LABELS",
            help="With --kubernetes: pods to check; with --pod-image: nodes.",
            show_default="the agent's pods, in namespace `dsdoctor`",
        ),
        click.option(
            "--pod-image",
            metavar="IMAGE",
            help="With --kubernetes: start a pod of this image on each node, then delete it.",
        ),
        click.option(
            "--runtime-class",
            metavar="NAME",
            help="Runtime class of these pods, or `none`.",
            show_default="nvidia",
        ),
        click.option(
            "--namespace", metavar="NAME", help="Pod namespace.", show_default="kubectl's default"
        ),
        click.option(
            "--container",
            metavar="NAME",
            help="Container in the pods.",
            show_default="the pod's default",
        ),
        click.option("--ray", metavar="ADDRESS", help="Nodes of a Ray cluster, through a Ray job."),
        click.option("--from", "from_dir", metavar="DIR", help="Read saved reports (`--save`)."),
        click.option(
            "--engine",
            type=click.Choice(["clustershell", "srun", "pdsh"]),
            help="How to reach the nodes.",
            show_default="clustershell; srun with --slurm",
        ),
        click.option(
            "--ssh-options", default="", metavar="OPTIONS", help="Additional options for ssh."
        ),
        click.option("--topology", metavar="FILE", help="ClusterShell topology.conf (tree mode)."),
        click.option(
            "--remote-python",
            default="python3",
            show_default=True,
            metavar="PATH",
            help="Python 3.8 or newer on the nodes, to run the collector.",
        ),
        _job_python,
        click.option("--live", is_flag=True, help="Start torch on the nodes."),
        _timeout(60, "Time limit for each node; a node that exceeds it is reported."),
        click.option("--save", metavar="DIR", help="Save the nodes' reports in this folder."),
    ]
    for option in reversed(choices):
        function = option(function)
    return function


@command.command("check", short_help="Find which nodes have which problems, and what differs.")
@_places
@click.option("--golden", metavar="FILE", help="Snapshot that all nodes should match.")
@click.option(
    "--master-port",
    type=Whole(1, 65535),
    default=MASTER_PORT,
    show_default=True,
    help="Rendezvous port to test between the nodes.",
)
@options.selection
@click.option(
    "--fail-on", type=click.Choice(["warn", "unknown", "fail"]), show_default="fail",
    help="Exit with 1 at this level or above.",
)  # fmt: skip
@options.report_format
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@click.option("-v", "--verbose", is_flag=True, help="Show every finding and every group.")
def check(
    *,
    golden: str | None,
    master_port: int,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    form: str,
    output: str | None,
    verbose: bool,
    **places: Any,
) -> int:
    """Check many nodes: what is wrong on which, and what differs between them.

    \b
    Examples:
      dsdoctor fleet check --hostfile hostfile
      dsdoctor fleet check --nodes gpu[001-512] --save reports/
      dsdoctor fleet check --kubernetes --namespace train --selector app=train
      dsdoctor fleet check --ray http://head:8265
      dsdoctor fleet check --from reports/ --golden golden.json
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    begun = time.monotonic()
    form = html.form_of(form, output)
    registry = loading.load_registry()
    found = common.load_settings(registry)
    units = registry.select(
        [item for word in select for item in loading.split(word)],
        [*found.ignore, *(item for word in ignore for item in loading.split(word))],
    )
    judge = nodes.Judge(registry, units, common.policy(found, ()))
    slots = hostfile.read(places["hostfile"]) if places["hostfile"] else {}
    if places["from_dir"] is not None:
        reports, master = _from_folder(places, judge), None
    else:
        reports, master = _from_nodes(places, slots, judge, master_port)
    wanted = None
    if golden is not None:
        wanted = judge.report(golden, msgspec.json.encode(common.load_snapshot(golden))).traits
    merged = merge.merge(
        reports,
        cross.between(
            reports,
            slots=slots,
            master=master,
            socket_ifname=os.environ.get("NCCL_SOCKET_IFNAME"),
        ),
        wanted,
    )
    merged.seconds = round(time.monotonic() - begun, 2)
    if form == "json":
        loading.write(report.json(merged), output)
    elif form == "html":
        from dsdoctor.fleet import page  # noqa: PLC0415  # an extra

        loading.write(page.page(merged), output)
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        loading.write(report.text(merged, width=max(60, width), verbose=verbose), output)
    return merge.exit_code(merged, fail_on)


def _nodes_and_engine(places: dict[str, Any], slots: dict[str, int]) -> tuple[list[str], str]:
    """Nodes and engine; no nodes if the engine itself finds them."""
    kinds = ("node_list", "hostfile", "slurm", "kubernetes", "ray")
    given = [name for name in kinds if places[name]]
    if len(given) != 1:
        raise UsageError(
            "pass exactly one of `--nodes`, `--hostfile`, `--slurm`, `--kubernetes`, `--ray` and "
            "`--from`"
        )
    _refuse_strays(places, given[0])
    if given[0] in ("kubernetes", "ray"):
        return [], given[0]
    if places["slurm"]:
        text = os.environ.get("SLURM_JOB_NODELIST")
        if not text:
            raise UsageError("`--slurm` needs an allocation; run it under `salloc` or in a job")
        return names.expand(text), places["engine"] or "srun"
    listed = list(slots) if slots else names.expand(places["node_list"])
    return listed, places["engine"] or "clustershell"


def _refuse_strays(places: dict[str, Any], given: str) -> None:
    """Rejects options that have no effect on the chosen way to reach the nodes."""
    if given != "kubernetes":
        for name in ("selector", "namespace", "container", "pod_image", "runtime_class"):
            if places[name] is not None:
                option = name.replace("_", "-")
                raise UsageError(f"`--{option}` requires `--kubernetes`; pass both")
    if places["runtime_class"] is not None and places["pod_image"] is None:
        raise UsageError("`--runtime-class` requires `--pod-image`; pass both")
    if places["container"] is not None and places["pod_image"] is not None:
        raise UsageError("`--container` and `--pod-image` are mutually exclusive; pass one of them")
    if given in ("kubernetes", "ray"):
        for name in ("engine", "ssh_options", "topology"):
            if places[name]:
                option = name.replace("_", "-")
                raise UsageError(f"`--{option}` has no effect with `--{given}`; leave it out")


def _order(
    places: dict[str, Any], slots: dict[str, int], master_port: int, stack: contextlib.ExitStack
) -> tuple[fanout.Order, str | None]:
    """What to run where, and the rendezvous if the nodes are known beforehand."""
    wanted, engine = _nodes_and_engine(places, slots)
    target, address, master = None, None, None
    arguments: list[str] = ["--python", places["python"]] if places["python"] else []
    if engine == "kubernetes":
        target = fleet_pods.target(places, stack)
        wanted = list(target.pods)
    elif engine == "ray":
        from dsdoctor.fleet import ray  # noqa: PLC0415  # few ask for it

        address = ray.address(places["ray"])
    else:
        master = f"{wanted[0]}:{master_port}"
        python = places["python"] or interpreter.choose(LocalHost()).executable
        arguments = ["--python", python, "--connect", master]
        # all pairs would be n²; the first node hosts the rendezvous, and a few peers suffice
        arguments += ["--resolve", ",".join(wanted[:16])]
    arguments += ["--seconds", f"{max(5.0, places['timeout'] - 5):g}"]
    if places["live"]:
        arguments.append("--live")
    order = fanout.Order(
        nodes=wanted,
        collector=bundle.collector(),
        arguments=arguments,
        python=places["remote_python"],
        timeout=places["timeout"],
        ssh_options=places["ssh_options"],
        topology=places["topology"],
        engine=engine,
        target=target,
        address=address,
    )
    return order, master


def _answers(order: fanout.Order) -> dict[str, fanout.Answer]:
    wanted = len(order.nodes) or "?"
    done = 0

    def count(_node: str) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            click.echo(f"\r{done}/{wanted} nodes", nl=done == wanted, err=True)

    return fanout.collect(order, count)


def _from_nodes(
    places: dict[str, Any], slots: dict[str, int], judge: nodes.Judge, master_port: int
) -> tuple[list[nodes.NodeReport], str | None]:
    with contextlib.ExitStack() as stack:
        order, master = _order(places, slots, master_port, stack)
        answers = _answers(order)
    reports = []
    for name, (recording, reason, received) in answers.items():
        if recording is None:
            reports.append(nodes.silent(name, reason or "no report"))
            continue
        try:
            snapshot = replay.snapshot_of(recording, received)
        except UsageError as error:
            reports.append(nodes.silent(name, str(error)))
            continue
        fleet_pods.leave_node(snapshot, order, places)
        data = msgspec.json.encode(snapshot)  # it is masked already
        if places["save"]:
            _save(Path(places["save"]), name, data)
        reports.append(judge.report(name, data))
    return reports, master


def _save(folder: Path, name: str, data: bytes) -> None:
    try:
        files.make_folder(folder)
        files.write(folder / f"{name}.json", data)
    except OSError as error:
        raise UsageError(
            f"`--save {folder}` cannot be written: {error.strerror}; pass another folder"
        ) from None


def _from_folder(places: dict[str, Any], judge: nodes.Judge) -> list[nodes.NodeReport]:
    folder = Path(places["from_dir"])
    if any(places[name] for name in ("node_list", "slurm", "kubernetes", "ray")):
        raise UsageError(
            "`--from` reads saved reports and contacts no nodes; "
            "do not pass `--nodes`, `--slurm`, `--kubernetes` or `--ray` with it"
        )
    found = stored.judge_files(stored.files_of(folder, common.warn), judge)
    if all(node.error is not None for node in found):
        raise UsageError(f"`{folder}` contains no readable report: {found[0].error}")
    return found


@command.command("bundle", short_help="Write the collector: one file, no installation.")
@click.option("-o", "--output", metavar="FILE", help="Write it to FILE.")
def bundle_command(*, output: str | None) -> None:
    """Write the collector: one file that needs only Python 3.8 or newer, no packages.

    \b
    ssh NODE python3 - --python /opt/train/bin/python < collector.py > NODE.txt
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    loading.write(bundle.collector(), output)


@command.command("smoke", short_help="Train on pairs of nodes, and find the bad node.")
@click.option("--hostfile", "hosts_in", required=True, metavar="FILE", help="Nodes and slots.")
@click.option("--cpu", type=Whole(1, 1024), metavar="N", help="Run N CPU ranks per node.")
@click.option("--config", metavar="FILE", help="DeepSpeed config to prove.")
@click.option("--model", metavar="MODEL", help="Model, as for `smoke`.")
@_job_python
@click.option("--as-user", metavar="ACCOUNT", help="As root, run as this account.")
@_timeout(300, "Time limit for each run.")
@options.text_or_json
def smoke_command(*, hosts_in: str, timeout: float, form: str, **given: Any) -> int:
    """Train on pairs of nodes with the real launcher, and find the bad node."""
    slots = hostfile.read(hosts_in)
    if given["cpu"]:
        slots = dict.fromkeys(slots, given["cpu"])
    # the same interpreter on every node, whatever comes first on PATH there
    given["python"] = given["python"] or interpreter.choose(LocalHost()).executable
    words: list[str] = []
    for name, value in given.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]

    def report_end(pair: pairing.Pair, passed: bool | None, cause: str) -> None:
        word = {True: "passed", False: "failed", None: "no verdict"}[passed]
        click.echo(f"{'+'.join(pair)}: {word}" + (f" ({cause})" if cause else ""), err=True)

    runs = smoke.Runs(
        slots=slots,
        command=[*process.own_module("dsdoctor"), "smoke"],
        options=words,
        timeout=timeout,
        on_end=report_end,
    )
    found = pairing.examine(list(slots), runs.run)
    if form == "json":
        document = {"schema": "dsdoctor/fleet-smoke", "version": 1, **msgspec.to_builtins(found)}
        loading.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n", None)
    else:
        loading.write(_pairing_text(found), None)
    if found.bad or found.links:
        return 1
    return 3 if found.undecided else 0


def _pairing_text(found: pairing.PairingVerdict) -> str:
    lines = [f"FAIL    {names.fold(found.bad)}: fails with good partners"] * bool(found.bad)
    lines += [f"FAIL    {' and '.join(pair)}: good apart, but not together" for pair in found.links]
    if found.undecided:
        lines.append(f"UNKNOWN {names.fold(found.undecided)}: no verdict")
    lines.append(f"{len(found.good)} good: {names.fold(found.good) or 'none'}")
    return "\n".join(lines) + "\n"


command.add_command(fleet_diff.command)
