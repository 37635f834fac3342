"""`dsdoctor packs` and `dsdoctor packs new`."""

from __future__ import annotations

from pathlib import Path

import click

from dsdoctor import packs
from dsdoctor.errors import UsageError
from dsdoctor.packs import containment
from dsdoctor.report.wrap import terminal_columns, wrap

_checks_dir = click.option(
    "--checks-dir", multiple=True, metavar="DIR", help="Directory with additional checks."
)


@click.group("packs", invoke_without_command=True)
@_checks_dir
@click.pass_context
def command(context: click.Context, checks_dir: tuple[str, ...]) -> int:
    """List the packs of checks. Exit status: 0, or 1 if a pack is broken."""
    return 0 if context.invoked_subcommand is not None else _print(checks_dir)


@command.command("list")
@_checks_dir
@click.pass_context
def list_(context: click.Context, checks_dir: tuple[str, ...]) -> int:
    """List the packs of checks, as `packs` alone does."""
    before = context.parent.params["checks_dir"] if context.parent else ()
    return _print((*before, *checks_dir))


def _print(checks_dir: tuple[str, ...]) -> int:
    """Prints a line for each pack and each problem. Returns the exit status."""
    registry = packs.load(checks_dir)
    for pack in registry.packs:
        counts = {
            "condition": len(pack.units),
            "check": sum(unit.check is not None for unit in pack.units),
            "signature": sum(len(unit.signatures) for unit in pack.units),
            "probe": len(pack.probes),
            "fix": len(pack.fixes),
        }
        items = ", ".join(_counted(count, word) for word, count in counts.items() if count)
        dated = f"; facts as of {pack.facts_as_of}" if pack.facts_as_of else ""
        line = f"{pack.name} ({pack.origin}): {items or 'empty'}{dated}"
        click.echo("\n".join(wrap(line, terminal_columns(200), "", "  ", break_long=False)))
    for problem in registry.problems:
        click.echo(f"{containment.one_line(problem.pack)}: left out: {problem.message}")
    return 1 if registry.problems else 0


def _counted(count: int, word: str) -> str:
    if count == 1:
        return f"1 {word}"
    return f"{count} {word}{'es' if word.endswith('x') else 's'}"


@command.command("new", short_help="Write a pack that passes its own tests.")
@click.argument("name")
@click.option(
    "--into",
    metavar="DIR",
    help="Folder to write to.",
    show_default="NAME-dsdoctor in the working directory",
)
def new(name: str, into: str | None) -> int:
    """Write a pack that passes its own tests: a check, a probe, a signature and a fix.

    NAME is the prefix of everything that the pack defines. It consists of lowercase letters, with
    digits between letters and hyphens between words.
    """
    from dsdoctor import files as writer  # noqa: PLC0415  # `packs` alone writes nothing
    from dsdoctor.packs import naming, template  # noqa: PLC0415  # `packs` alone needs neither

    wrong = naming.prefix_problem(name)
    if wrong:
        raise UsageError(wrong)
    folder = Path(into or f"{name}-dsdoctor")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"`{folder}` is not an empty folder; expected one, or a path to create")
    made = template.files(name)
    for path, text in made.items():
        writer.make_folder((folder / path).parent)
        writer.write(folder / path, text, mode=0o644)
    click.echo(f"wrote {len(made)} files to {folder}")
    click.echo(f"next: cd {folder} && pip install -e '.[dev]' && pytest")
    return 0
