"""What several commands share: the request of a command line, the snapshot of this run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import click

from dsdoctor import reading, settings
from dsdoctor.cli import loading
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_config, read_machine
from dsdoctor.host import LocalHost
from dsdoctor.judge import Policy
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.snapshot import Snapshot, from_json
from dsdoctor.registry import Registry, Unit

GPU_SELECTOR = re.compile(r"\d{1,6}|GPU-[0-9a-fA-F-]+|MIG-[0-9A-Za-z/-]+")


def parse_gpus(text: str | None) -> tuple[str, ...]:
    """Checks the value of --gpus.

    Raises:
        UsageError: an item is neither an index nor a UUID, or stands twice.
    """
    items = loading.split(text)
    if text is not None and not items:
        raise UsageError("`--gpus` is empty; expected indices or UUIDs such as `0,1` or `GPU-…`")
    for item in items:
        if not GPU_SELECTOR.fullmatch(item):
            raise UsageError(
                f"`--gpus {item[:40]}` is not a GPU; "
                "expected indices or UUIDs such as `0,1` or `GPU-…`"
            )
        if items.count(item) > 1:
            raise UsageError(f"`--gpus` names `{item}` twice; name each GPU once")
    return items


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
        raise UsageError("`--quick` and `--deep` are mutually exclusive; pass one of them")
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
