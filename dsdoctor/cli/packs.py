"""`dsdoctor packs`."""

from __future__ import annotations

import click

from dsdoctor import packs


@click.command("packs")
@click.option("--checks-dir", multiple=True, metavar="DIR", help="Folder of further checks.")
def command(checks_dir: tuple[str, ...]) -> int:
    """List the packs of checks. Exit status 1 when one is broken."""
    registry = packs.load(checks_dir)
    for pack in registry.packs:
        checks = sum(unit.check is not None for unit in pack.units)
        click.echo(
            f"{pack.name} ({pack.origin}): {len(pack.units)} conditions, {checks} checks, "
            f"{sum(len(unit.signatures) for unit in pack.units)} signatures, "
            f"{len(pack.probes)} probes"
        )
    for problem in registry.problems:
        click.echo(f"{problem.pack}: left out: {problem.message}")
    return 1 if registry.problems else 0
