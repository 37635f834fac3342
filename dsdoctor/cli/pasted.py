"""Output of environment tools in text that people paste: read, judged, added to a diagnosis."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import msgspec

from dsdoctor import logs, reading, report_head
from dsdoctor.cli import common
from dsdoctor.cli.log_heads import beginning
from dsdoctor.errors import UsageError
from dsdoctor.judge import judge
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.diagnosis import Cause, Diagnosis, Outcome
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs.registry import Registry, Unit
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.lines import MOST_LINES, Line, lines_of, with_bare_title
from dsdoctor.paste.readers import TOOLS

#: A cause below this confidence is a hint.
SURE = 0.7
_SHOWN = ("collect_env", "ds_report", "nvidia-smi", "pip list", "lspci")
EXPECTED = (
    f"expected output of {', '.join(f'`{name}`' for name in _SHOWN)} or one of"
    f" {len(set(TOOLS) - set(_SHOWN))} other tools"
)


class Paste(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A text that somebody pasted; its readers and the diagnosis run once each.

    Attributes:
        path: its file, for messages.
        text: its text.
        registry: packs, whose signatures recognize why a run failed.
    """

    path: str
    text: str
    registry: Registry

    @functools.cached_property
    def environment(self) -> Snapshot | None:
        """The partial snapshot that it states; None if no reader recognizes anything."""
        return environment_of(self.text)

    @functools.cached_property
    def cause(self) -> Cause | None:
        """The first cause that its log lines show, unless it is a guess."""
        known = logs.signatures_of(self.registry)
        causes = diagnosed("", lines_of(self.text), known).causes
        sure = causes and causes[0].confidence >= SURE and self.registry.find(causes[0].condition)
        return causes[0] if sure else None

    def stated(self) -> Snapshot:
        """The partial snapshot of the text; one without facts if it only shows why a run failed.

        Raises:
            UsageError: it says neither.
        """
        if self.environment is not None:
            return self.environment
        if self.cause is not None:
            return Snapshot(pasted=True, origin="a paste of a log")
        raise UsageError(
            f"`{self.path}` says nothing about a machine; {EXPECTED}; for a log, run "
            f"`dsdoctor triage {self.path}`"
        )


def read(path: str, registry: Registry) -> Paste:
    """The text of a file, or of standard input for `-`.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        data = reading.read(path)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}; {EXPECTED}") from None
    except DecodeError as error:
        raise UsageError(f"`{path}` cannot be read: {error}; {EXPECTED}") from None
    text, whole = beginning(path, data)
    if last := last_read(text, whole=whole):
        common.warn(f"`{path}` is read down to line {last}; pass what is below it as another file")
    return Paste(path=path, text=text, registry=registry)


def last_read(text: str, *, whole: bool) -> int:
    """The last line that is searched for the output of environment tools; 0 if all are.

    Args:
        text: the beginning of a text.
        whole: whether that is all of it.
    """
    lines = text.count("\n")
    return 0 if whole and lines <= MOST_LINES else min(lines, MOST_LINES)


def diagnosed(name: str, lines: list[Line], known: logs.Knowledge) -> Diagnosis:
    """The diagnosis of the text; if it shows no cause, of its title."""
    body = "\n".join(line.text for line in lines)
    found = logs.diagnose([logs.Source(name=name, data=body.encode())], known)
    if found.outcome in {Outcome.CAUSE, Outcome.USER_CODE}:
        return found
    if found.outcome is Outcome.CLEAN:
        alone = _without_environment(name, lines, known)
        if (
            alone is not None
            and alone.outcome is Outcome.CAUSE
            and alone.causes[0].confidence >= SURE
        ):
            return alone
    number, texts = with_bare_title(lines)
    if not number:
        return found
    by_title = logs.diagnose([logs.Source(name=name, data="\n".join(texts).encode())], known)
    shown = by_title.causes[0].evidence if by_title.causes else ()
    return by_title if any(line.line == number for line in shown) else found


def of_a_log(name: str, data: bytes, last: int, known: logs.Knowledge) -> Diagnosis:
    """The diagnosis of a log that is longer than any issue: all of it, in which nothing is quoted.

    Args:
        name: its file, for messages.
        data: its content.
        last: the last line that is searched for the output of environment tools.
        known: signatures.
    """
    found = logs.diagnose([logs.Source(name=name, data=data)], known)
    unread = f"the output of environment tools below line {last}"
    return msgspec.structs.replace(found, left_out=(*(found.left_out or ()), unread))


def _without_environment(name: str, lines: list[Line], known: logs.Knowledge) -> Diagnosis | None:
    """The diagnosis of the text without the output of environment tools; None if it has none.

    A report about the machine below an error does not mean that the run continued.
    """
    kept, start, dropped = [line.text for line in lines], 0, False
    for place in [at for at, line in enumerate(lines) if line.fence]:
        block = "\n".join(kept[start:place])
        if environment_of(block) is not None:
            shown = logs.diagnose([logs.Source(name=name, data=block.encode())], known)
            if not shown.causes:
                kept[start:place] = [""] * (place - start)  # lines keep their numbers
                dropped = True
        start = place + 1
    if not dropped:
        return None
    return logs.diagnose([logs.Source(name=name, data="\n".join(kept).encode())], known)


def with_cause(report: Report, paste: Paste, stated: Snapshot, units: Iterable[Unit]) -> None:
    """Adds the cause that log lines of a paste show, if no check has found it.

    A cause that follows from a failed condition, or has the same evidence, is left out. So are
    further causes of the diagnosis, and one with low confidence: a failure must not be a guess. A
    cause that is narrower than a failed condition replaces it.
    """
    cause, registry = paste.cause, paste.registry
    known = {unit.condition.name: unit for unit in units}
    if cause is None or cause.condition not in known:
        return
    bad = [one for one in report.findings if one.status in (Status.FAIL, Status.WARN)]
    said = {one.condition for one in bad}
    wider = set()
    for one in bad:
        unit = registry.find(one.condition)
        said.update(unit.condition.leads_to if unit else ())
        if unit and cause.condition in unit.condition.narrower:
            wider.add(one.condition)
    condition = known[cause.condition].condition
    used = {row["line"] for one in bad for row in one.evidence.get("stated_at", ())}
    places = {line.line for line in cause.evidence}
    if cause.condition in said or said.intersection(condition.narrower):
        return
    if places <= used and not wider:
        return
    rows = [{"line": at.line, "reader": "log", "text": at.text} for at in cause.evidence]
    found = Finding(
        status=Status.FAIL,
        message=cause.message,
        hint=cause.hint,
        evidence={"confidence": cause.confidence, "stated_at": rows},
        condition=condition.name,
        id=condition.id,
        fixes=condition.fixes,
        scope=condition.scope,
        formerly=condition.formerly or msgspec.UNSET,
    )
    left = {condition.name, *wider}
    rest = [one for one in report.findings if one.condition not in left]
    report.findings = [found, *rest]
    report.counts = {
        status.value: sum(one.status is status for one in report.findings) for status in Status
    }
    report.judged = len({one.condition for one in report.findings if one.status is not Status.SKIP})
    report.verdict = report_head.verdict_of(report, stated)


def judged(stated: Snapshot, registry: Registry) -> Report:
    """The report on an environment that a text states."""
    settings = common.load_settings(registry)
    units = registry.select((), list(settings.ignore))
    report = judge(stated, units, registry, common.policy(settings, ()))
    report.findings = [one for one in report.findings if one.status is not Status.SKIP]
    return report


def with_environment(
    diagnosis: Diagnosis, stated: Snapshot | None, registry: Registry
) -> Diagnosis:
    """The diagnosis, with the findings about an environment that its text states."""
    if stated is None:
        return diagnosis
    report = judged(stated, registry)
    bad = any(one.status in (Status.FAIL, Status.WARN) for one in report.findings)
    if not (bad or _is_of_a_machine(report)):
        return diagnosis  # such as the config that DeepSpeed prints: nothing is wrong with it
    causes = diagnosis.causes
    above = _above(causes[0].condition, report, registry) if causes else ""
    if above:
        causes = (msgspec.structs.replace(causes[0], follows_from=above), *causes[1:])
    return msgspec.structs.replace(diagnosis, environment=report, causes=causes)


def _is_of_a_machine(report: Report) -> bool:
    """Whether a text states anything about a machine or its packages."""
    who = report.patient
    return bool(report.gpus or report.driver or who.python or who.torch or who.deepspeed)


def _above(name: str, report: Report, registry: Registry) -> str:
    """The failed condition of an environment from which a cause in the log follows; "" = none."""
    own = registry.find(name)
    for finding in report.findings:
        unit = registry.find(finding.condition)
        if finding.status is not Status.FAIL or unit is None or finding.condition == name:
            continue
        narrower = own.condition.narrower if own else ()
        if name in unit.condition.leads_to or finding.condition in narrower:
            return finding.condition
    return ""
