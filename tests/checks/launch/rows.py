"""What the tests of the launch family share."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.api import Environment, Finding, Gpu, Gpus, LaunchCommand, Missing, Why
from dsdoctor.probes.command_line import parse_command

ABSENT = Missing(why=Why.NOT_ASKED, detail="not asked")


def command(text: str) -> LaunchCommand:
    return parse_command(text.split())


def gpus(count: int) -> Gpus:
    return Gpus(gpus=tuple(Gpu(index=number) for number in range(count)))


def env(**variables: str) -> Environment:
    return Environment(variables=variables)


def statuses(findings: Iterable[Finding]) -> str:
    return " ".join(found.status.value for found in findings)
