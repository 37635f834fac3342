"""What several commands share: options, the live host, the snapshot of this run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from dsdoctor import files, packs, reading, settings
from dsdoctor.collect import TOTAL_SECONDS
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_config, read_machine
from dsdoctor.host import LocalHost
from dsdoctor.judge import Policy
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.snapshot import Snapshot, from_json
from dsdoctor.registry import Registry, Unit

C = TypeVar("C", bound=Callable[..., Any])
GPU_SELECTOR = re.compile(r"\d{1,6}|GPU-[0-9a-fA-F-]+|MIG-[0-9A-Za-z/-]+")


def split(text: str | None) -> tuple[str, ...]:
    """Items of a comma-separated option."""
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def parse_gpus(text: str | None) -> tuple[str, ...]:
    """Checks the value of --gpus.

    Raises:
        UsageError: an item is neither an index nor a UUID, or stands twice.
    """
    items = split(text)
    if text is not None and not items:
        raise UsageError("`--gpus` is empty; expected indices or UUIDs such as `0,1` or `GPU-…`")
    for item in items:
        if not GPU_SELECTOR.fullmatch(item):
            raise UsageError(
                f"`--gpus {item[:40]}` names no GPU; "
                "expected indices or UUIDs such as `0,1` or `GPU-…`"
            )
        if items.count(item) > 1:
            raise UsageError(f"`--gpus` names `{item}` twice; name each GPU once")
    return items


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
    ]
    for option in reversed(options):
        function = option(function)
    return function


def run_needs(
    *,
    gpus: str | None,
    expect_gpus: int | None,
    config: str | None,
    hostfile: str | None,
    quick: bool,
    deep: bool,
    command: tuple[str, ...] = (),
) -> RunNeeds:
    """The request of a command line.

    Raises:
        UsageError: options contradict each other, or a file is not there.
    """
    if quick and deep:
        raise UsageError("`--quick` and `--deep` exclude each other; give one of them")
    host = LocalHost()
    env = host.env
    return RunNeeds(
        gpus=parse_gpus(gpus),
        expect_gpus=expect_gpus,
        config_path=config,
        config=read_config(config),
        quick=quick,
        deep=deep,
        cwd=str(host.query("cwd")),
        build_ops=tuple(
            sorted(
                name.removeprefix("DS_BUILD_")
                for name, value in env.items()
                if name.startswith("DS_BUILD_") and name != "DS_BUILD_STRING" and value == "1"
            )
        ),
        command=command,
        hostfile=hostfile,
    )


def live_snapshot(
    needs: RunNeeds,
    python: str | None,
    registry: Registry,
    units: Iterable[Unit] | None,
    timeout: float | None,
    *,
    show_progress: bool = True,
) -> Snapshot:
    """Examines this machine.

    Args:
        needs: what the run asks for.
        python: value of --python.
        registry: packs, for their probes.
        units: conditions to judge, which bound what is read; None = read everything.
        timeout: limit for everything.
        show_progress: say on a terminal what is being waited for.
    """
    from dsdoctor.cli.progress import Progress  # noqa: PLC0415  # rich only when needed

    with Progress(enabled=show_progress and sys.stderr.isatty()) as progress:
        request = Request(run=needs, python=python, timeout=timeout, progress=progress.tell)
        return read_machine(request, registry, units)


def load_snapshot(path: str) -> Snapshot:
    """Reads a snapshot file.

    Raises:
        UsageError: it cannot be read or is none.
    """
    try:
        data = reading.read(path)
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be read: {error.strerror}; expected a snapshot"
        ) from None
    except DecodeError as error:
        raise UsageError(f"`{path}` cannot be read: {error}; expected a snapshot") from None
    return from_json(data, path)


def load_registry(checks_dir: Iterable[str] = ()) -> Registry:
    """All packs; broken ones are told of on stderr.

    Raises:
        UsageError: the built-in pack itself is broken, or a --checks-dir is not a folder or holds
            a file that is broken: who names a folder wants its checks.
    """
    folders = [Path(folder) for folder in checks_dir]
    registry = packs.load(checks_dir)
    for problem in registry.problems:
        if Path(problem.pack).parent in folders:
            raise UsageError(
                f"`{problem.pack}` is no check: {problem.message}; "
                "mend it or take it out of the folder"
            )
        click.echo(f"dsdoctor: pack `{problem.pack}` is left out: {problem.message}", err=True)
    if not any(pack.name == "builtin" for pack in registry.packs):
        raise UsageError("the built-in pack of checks could not be loaded; reinstall dsdoctor")
    return registry


def load_settings(registry: Registry) -> settings.Settings:
    """The configuration; what it says about a pack that is gone is reported and ignored.

    Raises:
        UsageError: a file is not TOML, or has a key that is not known.
    """
    found, warnings = settings.without_leftovers(settings.load(), registry)
    for warning in warnings:
        click.echo(f"dsdoctor: {warning}", err=True)
    return found


def policy(found: settings.Settings, scopes: Iterable[str]) -> Policy:
    """How to judge."""
    return Policy(scopes=frozenset(Scope(scope) for scope in scopes), limits=found.limits)


def write(text: str, output: str | None) -> None:
    """Writes a report to a file or to stdout.

    Raises:
        UsageError: the file cannot be written.
    """
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        files.write(output, text)
    except OSError as error:
        raise UsageError(f"`-o {output}` cannot be written: {error.strerror}") from None
