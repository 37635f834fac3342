"""`dsdoctor diff`."""

from __future__ import annotations

import click
import msgspec

from dsdoctor.cli import common, html, loading
from dsdoctor.fleet import compare
from dsdoctor.fleet.traits import traits_of
from dsdoctor.judge import judge
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import Packages
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot, differences
from dsdoctor.report import changes as changed


@click.command("diff")
@click.argument("before")
@click.argument("after")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text")
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
    changes = verdict_changes(old, new)
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

        loading.write(pages.page((before, after), (old, new), facts, changes), output)
    else:
        verdicts = [changed.line(*row, verbose=verbose) for row in changed.worst_first(changes)]
        if old.verdict is not new.verdict:
            verdicts.insert(0, f"verdict: {old.verdict.value} -> {new.verdict.value}")
        traits = [
            changed.line(row["trait"], row["before"], row["after"], verbose=verbose)
            for row in compare.compare({"": traits_of(left)}, {"": traits_of(right)})
        ]
        traits += [changed.line(*row, verbose=verbose) for row in package_changes(left, right)]
        loading.write(changed.text(verdicts, traits, facts, verbose=verbose), output)
    return 1 if facts or changes else 0


def _is_volatile(name: str) -> bool:
    """Whether a value differs between two runs on one and the same machine."""
    return name.endswith(
        ("available_bytes", "free_bytes", "used_bytes", "seconds", "_usage_mw", "temperature_c")
    )


def package_changes(left: Snapshot, right: Snapshot) -> list[tuple[str, str, str]]:
    """Packages whose versions differ, first those that deep learning is known for.

    Without those that are compared as traits of a machine.
    """
    before, after = left.get(Packages), right.get(Packages)
    if isinstance(before, Missing) or isinstance(after, Missing):
        return []
    traits = {name.lower() for name in (*traits_of(left), *traits_of(right))}
    rows = [
        (name, before.version(name) or "not installed", after.version(name) or "not installed")
        for name in before.packages.keys() | after.packages.keys()
        if name.lower() not in traits and before.version(name) != after.version(name)
    ]
    known = before.requires.keys() | after.requires.keys()
    return sorted(rows, key=lambda row: (row[0] not in known, row[0]))


def verdict_changes(old: Report, new: Report) -> list[tuple[str, str, str]]:
    """Conditions whose worst status changed."""
    before, after = _worst_statuses(old.findings), _worst_statuses(new.findings)
    return [
        (name, before.get(name, "-"), after.get(name, "-"))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _worst_statuses(findings: list[Finding]) -> dict[str, str]:
    order = list(Status)
    worst: dict[str, Status] = {}
    for finding in findings:
        known = worst.get(finding.condition, Status.OK)
        worst[finding.condition] = max(known, finding.status, key=order.index)
    return {name: status.value for name, status in worst.items()}
