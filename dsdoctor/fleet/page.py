"""`fleet check --format html`: one page for any number of nodes."""

from __future__ import annotations

import bisect
import dataclasses
import re

from dsdoctor.errors import UsageError
from dsdoctor.fleet import names
from dsdoctor.fleet.merge import FleetFinding, FleetReport, Group
from dsdoctor.fleet.traits import not_reported
from dsdoctor.model.plain import shortened
from dsdoctor.report.html.page import render
from dsdoctor.report.html.svg import Drawing, Shape, rect, text

#: Maximum rows of the heat map, cards and table rows. If there are more, the page shows how many
#: are left out, and `--format json` lists all.
MOST_ROWS, MOST_CARDS, MOST_LINES = 24, 60, 1000
#: Names of a finding's nodes are cut after this many characters.
LONGEST = 400
DRIFT = "fleet-drift"
CELL = 20.0
LETTERS = {"fail": "F", "crash": "C", "unknown": "?", "warn": "W"}
VERDICTS = {"faulty": "fail", "silent": "fail", "unknown": "unknown", "healthy": "ok"}
WORST = ("fail", "crash", "unknown", "warn", "ok")
_NUMBERS = re.compile(r"(\d+)")


def _natural_key(name: str) -> list[tuple[int, int, str]]:
    parts = _NUMBERS.split(name)
    return [(0, int(p[:18]), "") if p.isdecimal() else (1, 0, p) for p in parts]


def expanded(folded: str) -> list[str]:
    """Names of nodes; a name that cannot be expanded is returned unchanged."""
    try:
        return names.expand(folded)
    except UsageError:
        return [folded]


@dataclasses.dataclass(frozen=True)
class Size:
    """Dimensions of a heat map.

    Attributes:
        columns: as many nodes have a column of their own, with a letter.
        most_columns: with more nodes, neighbors by name share one of these.
        width: of the drawing.
        left: space for the names of the conditions.
        longest: characters of a name that fit there.
    """

    columns: int
    most_columns: int
    width: float
    left: float
    longest: int


WIDE, NARROW = Size(48, 106, 720.0, 190.0, 24), Size(20, 40, 360.0, 150.0, 17)
#: Shares of a column's nodes up to which its color is paler, the palest first.
SHARES = (0.05, 0.25, 0.5)


@dataclasses.dataclass(frozen=True)
class Heat:
    """The heat map.

    Attributes:
        drawing: conditions as rows, nodes as columns.
        per_column: most nodes that share a column.
        hidden: conditions that are left out.
    """

    drawing: Drawing
    per_column: int
    hidden: int


def heat(report: FleetReport, size: Size = WIDE) -> Heat | None:
    """The heat map; None without nodes."""
    verdict_of = {name: g.verdict for g in report.groups for name in expanded(g.nodes)}
    nodes = sorted(verdict_of, key=_natural_key)
    if not nodes:
        return None
    columns = len(nodes) if len(nodes) <= size.columns else min(size.most_columns, len(nodes))
    column = {name: place * columns // len(nodes) for place, name in enumerate(nodes)}
    members: list[list[str]] = [[] for _ in range(columns)]
    for name in nodes:
        members[column[name]].append(name)
    labels = [names.fold(inside) for inside in members]
    wide = min(26.0, (size.width - size.left) / columns)
    rows: dict[str, dict[str, str]] = {}
    for finding in report.findings:  # worst first: the first status of a node stays
        cells = rows.setdefault(finding.condition, {})
        for name in expanded(finding.nodes):
            if name in column:
                cells.setdefault(name, finding.status)
    shapes: list[Shape] = [text(size.left - 8, 15, "verdict", "", "end")]
    letters = columns <= size.columns
    by_verdict = {name: VERDICTS.get(word, "unknown") for name, word in verdict_of.items()}
    shapes += _cells(by_verdict, members, labels, (size.left, 2), wide, letters=letters)
    for place, (condition, cells) in enumerate(list(rows.items())[:MOST_ROWS], start=1):
        name = f"{shortened(condition, size.longest)} {len(cells):,}"
        shapes.append(text(size.left - 8, 15 + CELL * place, name, "", "end"))
        at = (size.left, 2 + CELL * place)
        shapes += _cells(cells, members, labels, at, wide, letters=letters)
    height = 6 + CELL * (1 + min(len(rows), MOST_ROWS))
    label = f"{len(nodes)} nodes by {len(rows)} conditions"
    return Heat(
        drawing=Drawing(size.width, height, label, tuple(shapes)),
        per_column=max(map(len, members)),
        hidden=max(0, len(rows) - MOST_ROWS),
    )


def _cells(
    statuses: dict[str, str],
    members: list[list[str]],
    labels: list[str],
    at: tuple[float, float],
    wide: float,
    *,
    letters: bool,
) -> list[Shape]:
    """One row: the worst status of each column, with its nodes in the title.

    A column of one node has the letter of its status. The color of one that many share is the
    paler, the fewer of them have that status.
    """
    shapes: list[Shape] = []
    for place, inside in enumerate(members):
        found = [statuses[name] for name in inside if name in statuses]
        worst = next((status for status in WORST if status in found), None)
        x, y = at[0] + wide * place, at[1]
        css = "f-panel" if worst is None else f"f-{worst}"
        count = sum(status == worst for status in found)
        words = f"{shortened(labels[place], 80)}: "
        words += "nothing" if worst is None else f"{worst} on {count} of {len(inside)}"
        if worst is not None and not letters:
            css += f" share{bisect.bisect_left(SHARES, count / len(inside))}"
        gap = 1.0 if letters else 0.4
        shapes.append(rect(x, y, wide - gap, CELL - 2, css, title=words))
        if letters and worst in LETTERS:
            shapes.append(text(x + (wide - 1) / 2, y + 13, LETTERS[worst], "on cell", "middle"))
    return shapes


def differences(group: Group, usual: Group | None) -> str:
    """How a group differs from the usual nodes."""
    if group.error is not None:
        return f"no report: {group.error}"
    if usual is None or group is usual:
        return "the usual nodes"
    differs = [
        f"{name}: {group.traits.get(name) or 'missing'}"
        for name in dict.fromkeys([*usual.traits, *group.traits])
        if group.traits.get(name) != usual.traits.get(name)
    ]
    differs += [name for name in group.conditions if name not in usual.conditions]
    return ", ".join(differs) or "fewer findings"


def page(report: FleetReport) -> str:
    """The page.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    drift = [found for found in report.findings if found.condition == DRIFT]
    others = [found for found in report.findings if found.condition != DRIFT]
    usual = next((group for group in report.groups if group.error is None), None)
    return render(
        "fleet.html.j2",
        title=f"{report.verdict} · dsdoctor fleet check",
        script="tables.js",
        report=report,
        total=sum(report.counts.values()),
        statuses=VERDICTS,
        shares=SHARES,
        heats=[("wide", heat(report)), ("narrow", heat(report, NARROW))],
        findings=others[:MOST_CARDS],
        hidden=len(others) - len(others[:MOST_CARDS]),
        drift=[_drifted(found) for found in drift[:MOST_LINES]],
        drift_hidden=len(drift) - len(drift[:MOST_LINES]),
        groups=[
            (group, shortened(group.nodes, LONGEST), shortened(differences(group, usual), LONGEST))
            for group in report.groups[:MOST_LINES]
        ],
        groups_hidden=len(report.groups) - len(report.groups[:MOST_LINES]),
        usual=usual,
        short=lambda words: shortened(words, LONGEST),
    )


def _drifted(found: FleetFinding) -> tuple[str, str, str, str, str, int]:
    """Status, trait, value, expected value, nodes and their number."""
    seen = found.evidence
    trait = seen.get("trait", "")
    return (
        found.status,
        trait,
        shortened(seen.get("value", "") or not_reported(trait), LONGEST),
        shortened(seen.get("expected", "") or not_reported(trait), LONGEST),
        shortened(found.nodes, LONGEST),
        found.count,
    )
