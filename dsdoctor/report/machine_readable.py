"""Reports for programs: JSON, JUnit XML, GitHub annotations."""

from __future__ import annotations

import re

import msgspec

from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report


def json(report: Report) -> str:
    """What `check --format json` prints (docs/stability.md)."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 forbids."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _body(finding: Finding) -> str:
    parts = [finding.message]
    if finding.effect:
        parts.append(f"effect: {finding.effect}")
    if finding.hint:
        parts.append(f"hint: {finding.hint}")
    return _xml("\n".join(parts))


def junit(report: Report) -> str:
    """JUnit XML: fail = failure, unknown and crash = error, skip = skipped, warn = system-out."""
    import xml.etree.ElementTree as ET  # noqa: PLC0415  # written, never read, and seldom

    counts = report.counts
    errors = counts.get("unknown", 0) + counts.get("crash", 0)
    suite = ET.Element(
        "testsuite",
        name="dsdoctor",
        hostname=_xml(report.host),
        tests=str(len(report.findings)),
        failures=str(counts.get("fail", 0)),
        errors=str(errors),
        skipped=str(counts.get("skip", 0)),
        time=f"{report.seconds:.3f}",
    )
    for finding in report.findings:
        name = f"{finding.condition} ({finding.id})"
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"dsdoctor.{finding.scope.value}",
            name=_xml(name),
            time="0",
        )
        message = _xml(finding.message)
        if finding.status is Status.FAIL:
            ET.SubElement(case, "failure", message=message, type="fail").text = _body(finding)
        elif finding.status in (Status.UNKNOWN, Status.CRASH):
            kind = finding.status.value
            ET.SubElement(case, "error", message=message, type=kind).text = _body(finding)
        elif finding.status is Status.SKIP:
            ET.SubElement(case, "skipped", message=message)
        elif finding.status is Status.WARN:
            ET.SubElement(case, "system-out").text = f"warning: {_body(finding)}"
    whole = ("name", "tests", "failures", "errors", "time")  # the only attributes allowed there
    root = ET.Element("testsuites", {key: suite.attrib[key] for key in whole})
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def github(report: Report) -> str:
    """Workflow commands of GitHub Actions: an annotation for each problem."""
    words = {
        Status.FAIL: "error",
        Status.CRASH: "error",
        Status.WARN: "warning",
        Status.UNKNOWN: "warning",
    }
    rows = []
    for finding in report.findings:
        word = words.get(finding.status)
        if word is None:
            continue
        title = _property(f"{finding.condition} ({finding.id})")
        place = ""
        path, line = finding.evidence.get("config_path"), finding.evidence.get("line")
        if isinstance(path, str):
            place = f"file={_property(path)},"
            if isinstance(line, int):
                place += f"line={line},"
        rows.append(f"::{word} {place}title={title}::{_data(_body(finding))}\n")
    rows.append(f"::notice title=dsdoctor::{report.verdict.value}\n")
    return "".join(rows)
