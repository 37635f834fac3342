"""The report as plain text: no color, no rich; also the model that the terminal report styles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.facts.run import Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.matrix import Matrix
from dsdoctor.model.plain import printable
from dsdoctor.model.report import BY_COMMAND, NEARBY, Report, Verdict
from dsdoctor.report.alike import one_for_all, stated_lines
from dsdoctor.report.wrap import terminal_columns, wrap

WORDS = {
    Status.OK: "ok",
    Status.SKIP: "skip",
    Status.WARN: "WARN",
    Status.UNKNOWN: "UNKNOWN",
    Status.CRASH: "CRASH",
    Status.FAIL: "FAIL",
}
COUNTED = (
    (Status.OK, "ok", "ok"),
    (Status.WARN, "warning", "warnings"),
    (Status.FAIL, "failure", "failures"),
    (Status.SKIP, "skipped", "skipped"),
    (Status.UNKNOWN, "unknown", "unknown"),
    (Status.CRASH, "crashed", "crashed"),
)
INDENT = "      "


class Line(msgspec.Struct, frozen=True):
    """One line of the report.

    Attributes:
        text: its text, without control characters.
        style: its role: `head`, `fail`, `warn`, `unknown`, `crash`, `ok`, `skip`, `body`,
            `effect`, `hint`, `table`, `sum` or `note`.
    """

    text: str
    style: str = "body"


def clean(text: str) -> str:
    """Text without control characters: nothing read from a machine may steer the terminal."""
    return printable(text.replace("\t", " ").replace("\n", " "))


def shown(report: Report, verbosity: int) -> Iterator[Finding]:
    """The findings that a verbosity shows: -1 failures only, 0 problems, 1 all.

    Equal results for several GPUs are shown once.
    """
    told: set[tuple[str, Status, str]] = set()
    for finding in report.findings:
        if finding.status in (Status.OK, Status.SKIP):
            key = (finding.condition, finding.status, finding.message)
            if key in told:
                continue
            told.add(key)
        if (
            verbosity >= 1
            or (verbosity == 0 and finding.status not in (Status.OK, Status.SKIP))
            or (verbosity == -1 and finding.status is Status.FAIL)
        ):
            yield finding


def folded(findings: Iterable[Finding], verbosity: int) -> Iterator[tuple[Finding, int]]:
    """Findings, each with the number of others that are unknown for the same reason (see `-v`)."""
    rows = list(findings) if verbosity >= 1 else one_for_all(findings)
    alike = Counter(row.message for row in rows if row.status is Status.UNKNOWN)
    told: set[str] = set()
    for row in rows:
        if verbosity >= 1 or row.status is not Status.UNKNOWN:
            yield row, 0
        elif row.message not in told:
            told.add(row.message)
            yield row, alike[row.message] - 1


def columns_of(width: int | None) -> int:
    """Columns to fill: those requested, else the terminal's, at most 110."""
    if width is None:
        width = terminal_columns(100)
    return max(24, min(width, 110))


def lines(report: Report, *, verbosity: int = 0, width: int | None = None) -> Iterator[Line]:
    """The report, line by line.

    Args:
        report: what to show.
        verbosity: -2 only the summary, -1 failures, 0 problems, 1 everything.
        width: columns; None = the terminal's, at most 110.
    """
    for line in _lines(report, verbosity, columns_of(width)):
        yield Line(clean(line.text), line.style)


def _lines(report: Report, verbosity: int, columns: int) -> Iterator[Line]:
    if verbosity > -2:  # noqa: PLR2004  # -qq
        from dsdoctor.report import heading  # noqa: PLC0415  # facts, which `diagnose` shows none of

        # no line break within an item
        items = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in heading.items(report)]
        for line in _wrap(" · ".join(items), columns, "", "head"):
            yield Line(line.text.replace("\N{NO-BREAK SPACE}", " "), line.style)
        yield Line("")
    for finding, more in folded(shown(report, verbosity), verbosity):
        yield from _finding(report, finding, columns, more)
    if verbosity >= 1 and isinstance(report.topology, Matrix):
        from dsdoctor.report import topology  # noqa: PLC0415  # `diagnose` has neither

        yield Line("")
        for row in topology.lines(report.topology, columns):
            yield Line(clean(row), "table")
        yield from _wrap(topology.LEGEND, columns, "", "note")
        yield Line("")
    # what the command alone describes is worth a table only to those who ask for everything
    asked = isinstance(report.memory, MemoryDemand) and report.memory.source == "model"
    if isinstance(report.memory, MemoryDemand) and verbosity >= (0 if asked else 1):
        from dsdoctor.report import demand  # noqa: PLC0415  # only with a model

        for row in demand.lines(report.memory):
            yield Line(clean(row), "table")
        yield Line("")
    yield from _wrap(_summary(report), columns, "", "sum")
    for name, detail in report.unread.items():
        yield from _wrap(f"`{name}` could not be read: {clean(detail)}", columns, "", "note")
    for note in report.notes:
        yield from _wrap(note, columns, "", "note")
    worst = next(shown(report, min(verbosity, 0)), None)
    if worst is not None and worst.id:
        yield from _wrap(f"for details, run `dsdoctor explain {worst.id}`", columns, "", "note")
    dated = worst is not None or isinstance(report.judged, int) or verbosity >= 1
    if isinstance(report.facts_as_of, str) and dated and verbosity > -2:  # noqa: PLR2004
        yield from _wrap(f"built-in tables as of {clean(report.facts_as_of)}", columns, "", "note")


def _finding(report: Report, finding: Finding, columns: int, more: int = 0) -> Iterator[Line]:
    word = WORDS[finding.status]
    name = f"{finding.condition} ({finding.id})" if finding.id else finding.condition
    style = finding.status.value
    if finding.status in (Status.OK, Status.SKIP):
        text = f"{word:<6}{name}" + (f": {clean(finding.message)}" if finding.message else "")
        yield from _wrap(text, columns, INDENT, style, first="")
        return
    yield Line(f"{word:<6}{name}" if len(word) < len(INDENT) else f"{word}  {name}", style)
    yield from _wrap(clean(finding.message), columns, INDENT, "body")
    if more:
        many = "1 more condition is" if more == 1 else f"{more} more conditions are"
        yield from _wrap(
            f"{many} unknown for the same reason; list with `-v`", columns, INDENT, "note"
        )
    if finding.effect:
        yield from _wrap(f"effect: {clean(finding.effect)}", columns, INDENT, "effect")
    if finding.hint:
        yield from _wrap(f"hint: {clean(finding.hint)}", columns, INDENT, "hint")
    for row in stated_lines(finding):
        yield from _wrap(row, columns, INDENT, "note")
    if finding.fixes:
        yield from _wrap(f"fix: `{fix_command(report, finding)}`", columns, INDENT, "hint")
    yield Line("")


#: Ways to choose an environment that a command without `--python` may not repeat.
_NOT_BY_SHELL = ("--python", BY_COMMAND, NEARBY)


def fix_command(report: Report, finding: Finding, name: str | None = None) -> str:
    """The command that applies a fix, for the same environment, config and job.

    Args:
        report: the report of the finding.
        finding: the finding to fix.
        name: the fix; None = the first that the finding lists.
    """
    import shlex  # noqa: PLC0415  # few reports name a command

    words = ["dsdoctor", "fix", name or finding.fixes[0]]
    if report.patient.chosen_by in _NOT_BY_SHELL and report.patient.python is not None:
        words += ["--python", report.patient.python]
    path = finding.evidence.get("config_path")
    if isinstance(path, str):
        words += ["--config", path]
    if finding.scope is Scope.JOB and isinstance(report.command, list):
        words += ["--", *report.command]
    return clean(shlex.join(words))


def _wrap(
    text: str, columns: int, indent: str, style: str, *, first: str | None = None
) -> Iterator[Line]:
    begin = indent if first is None else first
    for line in wrap(text, columns, begin, indent, break_long=False):
        yield Line(line, style)


def _summary(report: Report) -> str:
    parts = []
    for status, one, many in COUNTED:
        count = report.counts.get(status.value, 0)
        if isinstance(report.judged, int) and status is Status.SKIP:
            continue  # the number of judged conditions shows it
        if count or status in (Status.OK, Status.FAIL):
            parts.append(f"{count} {one if count == 1 else many}")
    verdict = {
        Verdict.HEALTHY: "healthy",
        Verdict.FAULTY: "faulty",
        Verdict.UNKNOWN: "inconclusive",
    }[report.verdict]
    if isinstance(report.judged, int):
        parts.insert(0, f"judged {report.judged} of {report.conditions} conditions")
    return f"{verdict}: {', '.join(parts)} ({report.seconds:.1f} s)"


def render(report: Report, *, verbosity: int = 0, width: int | None = None) -> str:
    """The report as one text."""
    return "\n".join(line.text for line in lines(report, verbosity=verbosity, width=width)) + "\n"
