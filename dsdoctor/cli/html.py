"""What a command writes: `--format`, or what the name of `-o` ends in (`.html`, `.json`, …)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import click
from click.core import ParameterSource

#: Formats by the ending of a file; a command has some of them.
ENDINGS = {".html": "html", ".htm": "html", ".json": "json", ".xml": "junit", ".sarif": "sarif"}


def is_page(output: str | None) -> bool:
    """Whether a file name is that of a page.

    >>> is_page("report.HTML"), is_page("html"), is_page(None)
    (True, False, False)
    """
    return output is not None and output.lower().endswith((".html", ".htm"))


def form_of(form: str, output: str | None) -> str:
    """The format to write: the one passed, else the one that the file name ends in.

    A command whose `-o` names a folder has no other ending than that of a page. Called before
    anything is examined, so that a missing extra costs no time.

    Raises:
        UsageError: a page is requested and the extra `html` is not installed.
    """
    context = click.get_current_context()
    given = context.get_parameter_source("form") is not ParameterSource.DEFAULT
    if not given and output is not None:
        names = {option.name: option.type for option in context.command.params}
        known = getattr(names["form"], "choices", ())
        named = ENDINGS.get(PurePath(output).suffix.lower(), form)
        if named in known and (named == "html" or "output" in names):
            form = named
    if form == "html":
        from dsdoctor.report.html import page  # noqa: PLC0415  # only where one is asked for

        page.require()
    return form


def places(form: str, output: str | None) -> tuple[str | None, str | None]:
    """Folder and page of a command whose `-o` names a folder.

    The page is the file that `-o` names, else `report.html` in the folder; None = stdout.

    >>> places("html", "a.html"), places("html", "run"), places("text", "run")
    ((None, 'a.html'), ('run', 'run/report.html'), ('run', None))
    """
    if form != "html" or output is None:
        return output, None
    return (None, output) if is_page(output) else (output, f"{output.rstrip('/')}/report.html")


def write(make: Callable[[], str], output: str | None) -> None:
    """Writes a page to a file, and says so, or to stdout.

    Raises:
        UsageError: the file cannot be written.
    """
    from dsdoctor.cli import loading  # noqa: PLC0415  # a plan alone needs no packs

    loading.write(make(), output)
    if output is not None:
        click.echo(f"wrote {output}", err=True)
