"""`dsdoctor fleet diff`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from dsdoctor import settings
from dsdoctor.cli import common, html, loading, options
from dsdoctor.errors import UsageError
from dsdoctor.fleet import compare, nodes
from dsdoctor.fleet import folder as stored
from dsdoctor.report import changes as changed

Rows = list[dict[str, str]]


@click.command("diff", short_help="Compare the reports of two nodes, or two folders.")
@click.argument("one")
@click.argument("other")
@options.report_format
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@click.option("-v", "--verbose", is_flag=True, help="Show every difference.")
def command(*, one: str, other: str, form: str, output: str | None, verbose: bool) -> int:
    """Compare the reports of two nodes, or two folders of reports. Exit status 1 if they differ.

    Verdicts come first, then versions and settings; nodes with the same change share a line.
    """
    form = html.form_of(form, output)
    registry = loading.load_registry()
    judge = nodes.Judge(registry, registry.select(), common.policy(settings.Settings(), ()))
    before, after = _reports(one, judge), _reports(other, judge)
    changes = compare.verdicts(before, after)
    rows = compare.compare(
        {name: node.traits for name, node in before.items()},
        {name: node.traits for name, node in after.items()},
    )
    if form == "json":
        text = _json(rows, changes)
    elif form == "html":
        from dsdoctor.fleet import diff_page  # noqa: PLC0415  # an extra

        text = diff_page.page((one, other), (len(before), len(after)), changes, rows)
    else:
        text = _text(rows, changes, verbose=verbose)
    loading.write(text, output)
    return 1 if rows or changes else 0


def _json(rows: Rows, changes: Rows) -> str:
    document = {"schema": "dsdoctor/fleet-diff", "version": 1, "rows": rows, "verdicts": changes}
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"


def _text(rows: Rows, changes: Rows, *, verbose: bool) -> str:
    verdicts, traits = (
        [
            changed.line(
                f"{row['nodes']}: {row[key]}", row["before"], row["after"], verbose=verbose
            )
            for row in part
        ]
        for part, key in ((changes, "condition"), (rows, "trait"))
    )
    return changed.text(verdicts, traits, (), verbose=verbose)


def _reports(path: str, judge: nodes.Judge) -> dict[str, nodes.NodeReport]:
    place = Path(path)
    if place.is_dir():
        files = stored.files_of(place, common.warn)
        return {node.name: node for node in stored.judge_files(files, judge)}
    if not place.is_file():
        raise UsageError(f"`{path}` does not exist; expected a report or a folder of reports")
    return {"": judge.report(path, stored.snapshot_bytes(place))}
