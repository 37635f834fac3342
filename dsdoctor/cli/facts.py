"""`dsdoctor facts`."""

from __future__ import annotations

import click
import msgspec

from dsdoctor.cli import loading, options
from dsdoctor.reference import fact_pages


@click.command("facts")
@click.argument("name", required=False, metavar="[FACT]")
@options.text_or_json
@click.option(
    "--checks-dir", multiple=True, metavar="DIR", help="Directory with additional checks."
)
def command(name: str | None, form: str, checks_dir: tuple[str, ...]) -> int:
    """Show what a fact contains, or list the facts that checks can use.

    FACT is the key or the class name of a fact. The output shows its fields with their types and
    units, and the probe that reads it.
    """
    pages = fact_pages.pages(loading.load_registry(checks_dir))
    shown = pages if name is None else (fact_pages.find(pages, name),)
    if form == "json":
        document = {"schema": "dsdoctor/facts", "version": 1, "facts": shown}
        loading.write(
            msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n", None
        )
    elif name is None:
        loading.write(fact_pages.listing(shown), None)
    else:
        loading.write(fact_pages.markdown(shown[0], escaped=False), None)
    return 0
