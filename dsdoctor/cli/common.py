"""What several commands share: the snapshot of this run, the settings, the policy."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from dsdoctor import reading, settings
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_machine
from dsdoctor.judge import Policy
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.plain import printable
from dsdoctor.model.snapshot import Snapshot, from_json
from dsdoctor.packs.registry import Registry, Unit


def live_snapshot(
    needs: RunNeeds,
    python: str | None,
    registry: Registry,
    units: Iterable[Unit] | None,
    timeout: float | None,
    *,
    show_progress: bool = True,
    keeps_partial: bool = False,
) -> Snapshot:
    """Examines this machine.

    Args:
        needs: what the run needs.
        python: value of --python.
        registry: packs, for their probes.
        units: conditions to judge, which bound what is read; None = read everything.
        timeout: limit for everything.
        show_progress: show on a terminal what it waits for.
        keeps_partial: see `examine.Request`.
    """
    from dsdoctor.cli.progress import Progress  # noqa: PLC0415  # rich only when needed

    with Progress(enabled=show_progress and sys.stderr.isatty()) as progress:
        request = Request(
            run=needs,
            python=python,
            timeout=timeout,
            progress=progress.update,
            keeps_partial=keeps_partial,
        )
        return read_machine(request, registry, units)


def load_snapshot(path: str) -> Snapshot:
    """Reads a snapshot file.

    Raises:
        UsageError: it cannot be read or is not one.
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
    """The configuration; settings of a pack that is not installed are reported and ignored.

    Raises:
        UsageError: a file is not TOML, or has a key that is not known.
    """
    found, warnings = settings.without_leftovers(settings.load(), registry)
    for warning in warnings:
        warn(warning)
    return found


def warn(text: str) -> None:
    """Prints a line to standard error, without terminal controls."""
    click.echo(f"dsdoctor: {printable(text)}", err=True)


def policy(found: settings.Settings, scopes: Iterable[str]) -> Policy:
    """How to judge."""
    return Policy(scopes=frozenset(Scope(scope) for scope in scopes), limits=found.limits)
