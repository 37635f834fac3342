"""What every command needs, at little cost: the packs, and a place to write to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.lazy_regex import lazy

if TYPE_CHECKING:
    from dsdoctor.packs.registry import Registry


def split(text: str | None) -> tuple[str, ...]:
    """Items of a comma-separated option."""
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def items(text: str | None) -> tuple[str, ...] | None:
    """Items of a comma-separated option, None if it was not passed."""
    return None if text is None else split(text)


def load_registry(checks_dir: Iterable[str] = ()) -> Registry:
    """All packs; broken ones are reported on stderr.

    Raises:
        UsageError: the built-in pack itself is broken, or a --checks-dir is not a folder or
            contains a broken file.
    """
    from dsdoctor import packs  # noqa: PLC0415  # a short log is read without them
    from dsdoctor.packs import containment  # noqa: PLC0415  # a short log is read without them

    folders = [Path(folder) for folder in checks_dir]
    registry = packs.load(checks_dir)
    for problem in registry.problems:
        if Path(problem.pack).parent in folders:
            raise UsageError(
                f"`{containment.one_line(problem.pack)}` is not a usable check: {problem.message}; "
                "fix it or remove it from the directory"
            )
        name = containment.one_line(problem.pack)
        click.echo(f"dsdoctor: pack `{name}` is ignored: {problem.message}", err=True)
    if not any(pack.name == "builtin" for pack in registry.packs):
        raise UsageError("the built-in pack of checks could not be loaded; reinstall dsdoctor")
    return registry


#: Terminal controls that are neither escaped in JSON nor forbidden in XML: DEL, C1 controls such as
#: CSI, and text directions.
_STEERS = lazy("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    r"""A report without terminal controls; the content of JSON does not change.

    >>> harmless('{"name": "a\u202eb"}'), harmless("<name>a\u202eb</name>")
    ('{"name": "a\\u202eb"}', '<name>a\ufffdb</name>')
    """
    if text[:1] in ("{", "["):
        return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _STEERS.sub("\N{REPLACEMENT CHARACTER}", text)


def write(text: str, output: str | None) -> None:
    """Writes a report to a file or to stdout.

    Raises:
        UsageError: the file cannot be written.
    """
    if output is None:
        click.echo(harmless(text), nl=False)
        return
    try:
        files.write(output, text)
    except OSError as error:
        raise UsageError(
            f"`-o {output}` cannot be written: {error.strerror}; pass another file"
        ) from None
