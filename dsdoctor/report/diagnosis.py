"""A diagnosis as plain text; also the model that the terminal styles."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dsdoctor.model.diagnosis import Cause, Diagnosis, Outcome, RaisedBy
from dsdoctor.model.diagnosis import Line as LogLine
from dsdoctor.model.finding import Status
from dsdoctor.model.report import Report
from dsdoctor.report import text as text_report
from dsdoctor.report.text import Line, clean
from dsdoctor.report.wrap import terminal_columns, wrap

WORDS = {
    Outcome.CAUSE: "CAUSE",
    Outcome.USER_CODE: "USER CODE",
    Outcome.UNRECOGNISED: "UNRECOGNIZED",
    Outcome.CLEAN: "CLEAN",
}
#: What an issue of prose shows: nothing is known, so nothing is clean.
NOTHING = "NOTHING FOUND  the text contains no error, and no output of a tool that dsdoctor reads"
#: Heading of an error that matches no condition but is in the error index, by kind of label.
EXPLAINED = {"refusal": "REFUSED", "internal": "INTERNAL ERROR"}
#: The worst finding in the environment of a text: its word, a description, its style.
_ENVIRONMENT = {
    Status.FAIL: ("FAULTY", "failures", "fail"),
    Status.WARN: ("WARN", "warnings", "warn"),
}
STYLES = {
    Outcome.CAUSE: "fail",
    Outcome.USER_CODE: "warn",
    Outcome.UNRECOGNISED: "unknown",
    Outcome.CLEAN: "ok",
}
NOW_STYLES = {"confirmed": "fail", "refuted": "ok", "unknown": "note"}
NARROWEST, WIDEST = 24, 110
INDENT = "      "
#: Most starts of one log that are listed: the last ones.
MOST_ATTEMPTS = 12


def _wrap(text: str, columns: int, indent: str, style: str, hang: str | None = None) -> list[Line]:
    """Lines of at most `columns`; a longer word is broken, as it would not fit the terminal."""
    rows = wrap(clean(text), columns, indent, indent if hang is None else hang, break_long=True)
    return [Line(row, style) for row in rows]


def _advise(text: str, columns: int, style: str = "hint") -> list[Line]:
    """Lines in which no command in backticks and no URL is broken: they are there to be copied."""
    rows = wrap(clean(text), columns, INDENT, INDENT, break_long=False)
    return [Line(row, style) for row in rows]


def _place(line: LogLine) -> str:
    rank = "" if line.rank is None else f", rank {line.rank}"
    return f"{line.file}:{line.line}{rank}"


def _quote(line: LogLine, columns: int) -> Iterator[Line]:
    yield from _wrap(_place(line), columns, INDENT, "note")
    yield from _wrap(line.text, columns, INDENT + "  ", "body")


def _cause(cause: Cause, place: int, columns: int) -> Iterator[Line]:
    word = "CAUSE" if place == 0 else "or"
    style = "fail" if place == 0 else "warn"
    yield from _wrap(
        f"{word:<6}{cause.condition} ({cause.confidence:.0%} sure)", columns, "", style, INDENT
    )
    yield from _wrap(cause.message, columns, INDENT, "head")
    for line in cause.evidence:
        yield from _quote(line, columns)
    if cause.masks:
        yield from _wrap(f"also explains: {', '.join(cause.masks)}", columns, INDENT, "body")
    if cause.now is not None:
        text = f"{cause.now.status}: {cause.now.message}"
        yield from _wrap(text, columns, INDENT, NOW_STYLES[cause.now.status])
    if cause.follows_from:  # whose hint is the right one
        text = f"follows from {cause.follows_from}, which the environment below shows"
        yield from _wrap(text, columns, INDENT, "body")
    elif cause.hint:
        yield from _advise(f"hint: {cause.hint}", columns)
    for fix in () if cause.follows_from else cause.fixes:
        yield from _advise(f"fix: `dsdoctor fix {fix}`", columns)
    yield from _advise(f"for details, run `dsdoctor explain {cause.condition}`", columns, "note")
    yield Line("")


def _raised_by(raised: RaisedBy, columns: int) -> Iterator[Line]:
    release = f" {raised.version}" if raised.version else ""
    where = f"`{raised.file}:{raised.line} {raised.function}`"
    text = f"raised by {raised.product}{release}, {where}, not by your script"
    yield from _wrap(text, columns, "", "body", INDENT)
    if raised.called_from:
        yield from _wrap(f"called from {raised.called_from}", columns, INDENT, "body")
    if raised.url:
        yield from _advise(f"see {raised.url}", columns, "note")


def _without_cause(diagnosis: Diagnosis, columns: int, *, of_issue: bool) -> Iterator[Line]:
    """Lines for an outcome without a cause; an issue with an environment may contain no log."""
    outcome, told = diagnosis.outcome, diagnosis.explained
    below = _below(diagnosis)
    no_error = of_issue and outcome is Outcome.CLEAN
    summary = "the text contains no error" if no_error else diagnosis.summary
    if below is not None:
        word, found, style = _ENVIRONMENT[below]
        text = f"{word}  {summary}; the environment below has {found}"
    elif no_error:
        text, style = f"NOTHING FOUND  {summary}; its environment is judged below", "warn"
    else:
        of_product = told if outcome is Outcome.UNRECOGNISED else None
        word = WORDS[outcome] if of_product is None else EXPLAINED[of_product.kind]
        text, style = f"{word}  {diagnosis.summary}", STYLES[outcome]
    yield from _wrap(text, columns, "", style, INDENT)
    if told is not None:
        yield from _advise(f"{told.product}: {told.text}", columns)
        if told.url:
            yield from _advise(f"report it at {told.url}", columns, "note")


def _below(diagnosis: Diagnosis) -> Status | None:
    """The worst status in the environment of a text whose log shows no failure; None if not bad."""
    found = diagnosis.environment
    if diagnosis.outcome is not Outcome.CLEAN or not isinstance(found, Report):
        return None
    statuses = {finding.status for finding in found.findings}
    return next((status for status in _ENVIRONMENT if status in statuses), None)


def _attempts(diagnosis: Diagnosis, columns: int) -> Iterator[Line]:
    """What ended each start of the workers; starts about which nothing is known share one line."""
    silent: list[int] = []
    last = diagnosis.attempts[-1] if diagnosis.attempts else None
    shown = diagnosis.attempts
    if len(shown) > MOST_ATTEMPTS:
        shown = shown[-MOST_ATTEMPTS:]
        left_out = f"attempts 1 to {shown[0].number - 1}: `--format json` lists them"
        yield from _wrap(left_out, columns, "", "body", INDENT)
    for attempt in shown:
        text = attempt.ended_by
        if not text and diagnosis.outcome is Outcome.CLEAN and attempt is last:
            text = "no failure"
        if not text:
            silent.append(attempt.number)
            continue
        yield from _unexplained_starts(silent, columns)
        silent = []
        where = f" ({_place(attempt.line)})" if attempt.line else ""
        yield from _wrap(f"attempt {attempt.number}: {text}{where}", columns, "", "body", INDENT)
    yield from _unexplained_starts(silent, columns)


def _unexplained_starts(numbers: list[int], columns: int) -> Iterator[Line]:
    """A line on consecutive starts whose end the log does not show."""
    if numbers:
        many = len(numbers) > 1
        which = f"attempts {numbers[0]} to {numbers[-1]}" if many else f"attempt {numbers[0]}"
        what = "ended them" if many else "ended it"
        yield from _wrap(f"{which}: the log does not show what {what}", columns, "", "body", INDENT)


def beyond_the_cause(diagnosis: Diagnosis) -> Report | None:
    """The report on the environment; a failure with the same evidence as the cause is shortened.

    None if the logs contain nothing about an environment.
    """
    report = diagnosis.environment
    if not isinstance(report, Report):
        return None
    if diagnosis.files != 1 or not diagnosis.causes:
        return report
    cause = diagnosis.causes[0]
    known = {line.line for line in cause.evidence}
    findings = []
    for finding in report.findings:
        rows = finding.evidence.get("stated_at")
        places = {row["line"] for row in rows} if isinstance(rows, list) else set()
        if finding.status is Status.FAIL and places and places <= known:
            message = f"rests on the same lines as `{cause.condition}` above"
            finding = msgspec.structs.replace(  # noqa: PLW2901  # the same, shortened
                finding, message=message, effect="", hint="", evidence={}
            )
        findings.append(finding)
    return msgspec.structs.replace(report, findings=findings)


def lines(
    diagnosis: Diagnosis, *, width: int | None = None, of_issue: bool = False
) -> Iterator[Line]:
    """The report, line by line.

    Args:
        diagnosis: what to show.
        width: columns; None = the terminal's, at most WIDEST.
        of_issue: it is that of an issue, whose text may contain no log at all.
    """
    columns = width or terminal_columns(WIDEST)
    columns = max(NARROWEST, min(columns, WIDEST))
    for place, cause in enumerate(diagnosis.causes):
        yield from _cause(cause, place, columns)
    outcome = diagnosis.outcome
    if outcome is not Outcome.CAUSE:
        nothing = of_issue and outcome is Outcome.CLEAN and not diagnosis.environment
        yield from (
            _wrap(NOTHING, columns, "", "warn", INDENT)
            if nothing
            else _without_cause(diagnosis, columns, of_issue=of_issue)
        )
    if diagnosis.decided_by:
        yield from _wrap(f"decided by: {diagnosis.decided_by}", columns, "", "body", INDENT)
    if diagnosis.raised_by is not None:
        yield from _raised_by(diagnosis.raised_by, columns)
    error = diagnosis.first_error
    if error is not None and outcome is not Outcome.CLEAN:
        rank = "" if error.rank is None else f" on rank {error.rank}"
        what = f"{error.type}: {error.message}" if error.message else error.type
        text = f"first error{rank}: {what}"
        yield from _wrap(text, columns, "", "body", INDENT)
        told = (error.file, error.line) != (error.log.file, error.log.line)
        frame = f"{error.file}:{error.line}"
        if told and not (diagnosis.raised_by and diagnosis.raised_by.called_from == frame):
            how = "raised in a call from" if error.is_caller else "raised at"
            yield from _wrap(f"{how} {frame}", columns, INDENT, "body")
        if outcome is not Outcome.CAUSE or not told:
            yield from _wrap(f"reported at {_place(error.log)}", columns, INDENT, "note")
    yield from _attempts(diagnosis, columns)
    if diagnosis.considered:
        yield Line("lines considered:")
        for line in diagnosis.considered:
            yield from _quote(line, columns)
    for answer in diagnosis.expectations:
        style = {"proved": "ok", "refuted": "fail"}.get(answer.state, "unknown")
        text = f"expect {answer.name}: {answer.state}, {answer.message}"
        yield from _wrap(text, columns, "", style, INDENT)
        if answer.evidence is not None:
            yield from _quote(answer.evidence, columns)
    plural = "" if diagnosis.files == 1 else "s"
    cut = "; the log is empty or ends before the run did" if diagnosis.truncated else ""
    lines = "1 line" if diagnosis.lines == 1 else f"{diagnosis.lines} lines"
    text = f"{diagnosis.files} log{plural}, {lines} read{cut}"
    yield from _wrap(text, columns, "", "sum")
    if diagnosis.left_out:
        yield from _wrap(f"not read: {'; '.join(diagnosis.left_out)}", columns, "", "warn", INDENT)
    environment = beyond_the_cause(diagnosis)
    if environment is not None:
        yield Line("")
        yield from text_report.lines(environment, width=columns)


def render(diagnosis: Diagnosis, *, width: int | None = None, of_issue: bool = False) -> str:
    """The text that `diagnose` prints, or for an issue `triage`."""
    rows = lines(diagnosis, width=width, of_issue=of_issue)
    return "\n".join(line.text for line in rows) + "\n"
