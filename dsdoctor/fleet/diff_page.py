"""`fleet diff --format html`: what changed, and on which nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsdoctor.fleet.page import LONGEST, MOST_LINES
from dsdoctor.model.plain import shortened
from dsdoctor.report.html.page import render

Row = Mapping[str, str]
#: Statuses of a condition; other words are shown without a color.
STATUSES = ("fail", "crash", "unknown", "warn")


def page(
    names: tuple[str, str],
    counts: tuple[int, int],
    verdicts: Sequence[Row],
    traits: Sequence[Row],
) -> str:
    """The page.

    Args:
        names: of the two reports, or folders of reports.
        counts: nodes in each.
        verdicts: conditions that changed: nodes, condition, before, after.
        traits: versions and settings that changed: nodes, trait, before, after.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    parts = (
        ("verdicts", "condition", "Conditions that changed", verdicts),
        ("traits", "trait", "Versions and settings that changed", traits),
    )
    return render(
        "fleet_diff.html.j2",
        title="dsdoctor fleet diff",
        script="tables.js",
        names=names,
        counts=counts,
        differs=bool(verdicts or traits),
        statuses=STATUSES,
        tables=[
            (
                key,
                name,
                head,
                [
                    {key: shortened(text, LONGEST) for key, text in row.items()}
                    for row in rows[:MOST_LINES]
                ],
                len(rows[MOST_LINES:]),
            )
            for key, name, head, rows in parts
        ],
    )
