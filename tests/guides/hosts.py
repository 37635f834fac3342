"""Whole machines for the rows of the guides, judged by the whole catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dsdoctor import packs
from dsdoctor.api import Fact, Finding, Missing, RunNeeds, Status
from dsdoctor.judge import judge
from dsdoctor.model.snapshot import of
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.config import parse_config
from tests.golden.test_golden import workstation

REGISTRY = packs.load(builtin_only=True)
LOUD = (Status.WARN, Status.FAIL, Status.UNKNOWN, Status.CRASH)


def host(
    facts: Iterable[Fact] | None = None,
    *changes: Fact,
    config: str | None = None,
    command: str | None = None,
    without: tuple[type[Fact], ...] = (),
    **run: Any,
) -> list[Fact]:
    """A machine with some facts changed, and what the run asks of it.

    config: text of a DeepSpeed config; command: what stands behind `check --`.
    """
    found = {type(fact): fact for fact in (workstation() if facts is None else facts)}
    found.update({type(fact): fact for fact in changes})
    needs = RunNeeds(**run)
    if config is not None:
        parsed = parse_config(config, "ds_config.json")
        found[type(parsed)] = parsed
        needs = msgspec.structs.replace(needs, config=parsed.parsed, config_path="ds_config.json")
    if command is not None:
        line = parse_command(command.split())
        found[type(line)] = line
        needs = msgspec.structs.replace(needs, command=tuple(command.split()))
    found[RunNeeds] = needs
    return [fact for kind, fact in found.items() if kind not in without]


def findings(facts: Iterable[Fact], missing: dict[Any, Missing] | None = None) -> list[Finding]:
    """Everything that the whole check has to say against a machine."""
    report = judge(of(facts, missing), list(REGISTRY), REGISTRY)
    return [finding for finding in report.findings if finding.status in LOUD]


def loud(facts: Iterable[Fact], missing: dict[Any, Missing] | None = None) -> dict[str, str]:
    """Condition to status, for everything that is not fine."""
    return {f.condition: f.status.value for f in findings(facts, missing)}


def told(facts: Iterable[Fact], condition: str) -> Finding:
    """The one finding of a condition."""
    (found,) = [finding for finding in findings(facts) if finding.condition == condition]
    return found
