"""JUnit and GitHub reports by the rules of those who read them.

JUnit: the elements, their order and attributes that Jenkins' schema (xunit-plugin, junit-10.xsd)
allows. GitHub: commands as its runner takes them apart (actions/runner, ActionCommand.cs).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from dsdoctor.api import Finding, Scope, Status
from dsdoctor.model.report import Report, Verdict
from dsdoctor.model.snapshot import of
from dsdoctor.report import machine_readable
from tests.golden.test_golden import MACHINES, report_on
from tests.guides.hosts import host

EVIL = "a<b>&\"'`\n::error::x\r\n50% of 3,4: ]]> \x00\x1b[31m\ud800 é 日本"


def evil_report() -> Report:
    findings = [
        Finding(
            status=status,
            condition="some-thing",
            id="DSD999",
            message=f"{status.value} {EVIL}",
            effect=EVIL,
            hint=EVIL,
            scope=Scope.JOB,
            evidence={"config_path": "a,b:c%.json", "line": 7},
        )
        for status in Status
    ]
    counts = {status.value: 1 for status in Status}
    return Report(verdict=Verdict.FAULTY, host=EVIL, findings=findings, counts=counts, seconds=1.5)


REPORTS = {name: report_on(of(facts)) for name, facts in MACHINES.items()}
REPORTS["evil"] = evil_report()
REPORTS["empty"] = Report()

COUNTS = {"tests", "failures", "errors", "skipped"}
#: Element: attributes that must be there, those that may, children in order. Where others than
#: Jenkins ask for more (a class name, an order of children), theirs stands.
SCHEMA: dict[str, tuple[set[str], set[str], list[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "hostname", "timestamp", "id", "package", "skipped"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "testcase": (
        {"name", "classname"},
        {"time"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "failure": (set(), {"message", "type"}, []),
    "error": (set(), {"message", "type"}, []),
    "skipped": (set(), {"message", "type"}, []),
    "system-out": (set(), set(), []),
}


def violations(element: ET.Element) -> list[str]:
    must, may, order = SCHEMA[element.tag]
    have = set(element.attrib)
    found = [f"{element.tag} lacks {name}" for name in must - have]
    found += [f"{element.tag} has {name}" for name in have - must - may]
    places = [order.index(child.tag) if child.tag in order else -1 for child in element]
    if -1 in places or places != sorted(places):
        found.append(f"{element.tag} holds {[child.tag for child in element]}")
    for name in COUNTS & have:
        if not element.attrib[name].isdecimal():
            found.append(f"{name} is no number")
    if "time" in have and not re.fullmatch(r"\d+(\.\d+)?", element.attrib["time"]):
        found.append("time is no number of seconds")
    return found + [words for child in element for words in violations(child)]


@pytest.mark.parametrize("name", REPORTS)
def test_junit_is_what_its_readers_accept(name: str) -> None:
    text = machine_readable.junit(REPORTS[name])
    root = ET.fromstring(text.encode("utf-8"))
    assert violations(root) == []
    (suite,) = root
    cases = list(suite)
    assert int(suite.attrib["tests"]) == len(cases)
    for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert sum(case.find(tag) is not None for case in cases) == int(suite.attrib[count])
        assert root.attrib.get(count, suite.attrib[count]) == suite.attrib[count]


def test_the_rules_notice_what_is_wrong() -> None:
    case = "<testcase name='n'><system-out/><failure/></testcase>"
    wrong = (
        f"<testsuites><testsuite name='x' tests='a' colour='red'>{case}</testsuite></testsuites>"
    )
    assert len(violations(ET.fromstring(wrong))) == 6


def parse_command(line: str) -> tuple[str, dict[str, str], str]:
    """As the runner does: `::name key=value,key=value::data`, then unescape."""
    found = re.fullmatch(r"::([a-z-]+)(?: (.*?))?::(.*)", line)
    assert found, line
    properties: dict[str, str] = {}
    for pair in (found[2] or "").split(","):
        key, equals, value = pair.partition("=")
        assert equals, pair
        for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ",")):
            value = value.replace(code, character)
        properties[key] = value.replace("%25", "%")
    data = found[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
    return found[1], properties, data


@pytest.mark.parametrize("name", REPORTS)
def test_github_commands_are_taken_apart_as_they_were_meant(name: str) -> None:
    report = REPORTS[name]
    lines = machine_readable.github(report).splitlines()
    commands = [parse_command(line) for line in lines]
    assert {word for word, _, _ in commands} <= {"error", "warning", "notice"}
    for _, properties, _ in commands:
        assert set(properties) <= {"title", "file", "line"}
        assert properties["title"]
        assert int(properties.get("line", "1")) >= 1
    loud = [f for f in report.findings if f.status not in (Status.OK, Status.SKIP)]
    assert len(commands) == len(loud) + 1
    ranks = [word for word, _, _ in commands]
    assert ranks == sorted(ranks, key=["error", "warning", "notice"].index) or name == "evil"


def test_a_fault_of_the_config_is_put_at_its_line() -> None:
    typo = '{\n  "train_micro_batch_size_per_gpu": 1,\n  "gradient_cliping": 1.0\n}'
    report = report_on(of(host(config=typo)))
    commands = [parse_command(line) for line in machine_readable.github(report).splitlines()]
    word, properties, _ = commands[0]
    assert word in ("error", "warning")
    assert (properties["file"], properties["line"]) == ("ds_config.json", "3")


def test_github_says_file_line_and_whole_text() -> None:
    told: dict[str, Any] = {}
    for line in machine_readable.github(evil_report()).splitlines():
        word, properties, data = parse_command(line)
        told.setdefault(word, (properties, data))
    properties, data = told["error"]
    assert properties["file"] == "a,b:c%.json"
    assert properties["line"] == "7"
    assert "::error::x" in data, "a command inside a message stays a part of the message"
    assert "50% of 3,4:" in data
    assert "\x1b" not in data
