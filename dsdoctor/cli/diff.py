"""`dsdoctor diff`."""

from __future__ import annotations

import click
import msgspec

from dsdoctor import snapshot_changes
from dsdoctor.cli import common, html, loading, options
from dsdoctor.judge import judge
from dsdoctor.model.snapshot import differences
from dsdoctor.report import changes as changed


@click.command("diff")
@click.argument("before")
@click.argument("after")
@options.report_format
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show every value that differs, including those that differ on every run.",
)
def command(before: str, after: str, form: str, output: str | None, verbose: bool) -> int:
    """Compare two snapshots: verdicts, then versions and settings, then a count of the rest.

    Exit status: 0 no differences, 1 differences.
    """
    form = html.form_of(form, output)
    registry = loading.load_registry()
    left, right = common.load_snapshot(before), common.load_snapshot(after)
    facts = [row for row in differences(left, right) if verbose or not _is_volatile(row[0])]
    units = registry.select()
    old, new = judge(left, units, registry), judge(right, units, registry)
    changes = snapshot_changes.verdict_changes(old, new)
    in_words = snapshot_changes.in_words(facts, left, right)
    if form == "json":
        document = {
            "schema": "dsdoctor/diff",
            "version": 1,
            "facts": [{"fact": name, "before": a, "after": b} for name, a, b in facts],
            "verdicts": [{"condition": name, "before": a, "after": b} for name, a, b in changes],
            "verdict": {"before": old.verdict.value, "after": new.verdict.value},
        }
        loading.write(
            msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n", output
        )
    elif form == "html":
        from dsdoctor.report.html import diff as pages  # noqa: PLC0415  # an extra

        loading.write(pages.page((before, after), (old, new), in_words, changes), output)
    else:
        verdicts = [changed.line(*row, verbose=verbose) for row in changed.worst_first(changes)]
        if old.verdict is not new.verdict:
            verdicts.insert(0, f"verdict: {old.verdict.value} -> {new.verdict.value}")
        traits = [
            changed.line(*row, verbose=verbose)
            for row in snapshot_changes.setting_changes(left, right)
        ]
        loading.write(changed.text(verdicts, traits, in_words, verbose=verbose), output)
    return 1 if facts or changes else 0


def _is_volatile(name: str) -> bool:
    """Whether a value may differ between two runs on the same machine."""
    return name.endswith(
        ("available_bytes", "free_bytes", "used_bytes", "seconds", "_usage_mw", "temperature_c")
    )
