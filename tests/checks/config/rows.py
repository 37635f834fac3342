"""What the tests of the config family share."""

from __future__ import annotations

from typing import Any

from dsdoctor.api import (
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Missing,
    Package,
    Packages,
    Status,
    Why,
)
from dsdoctor.probes.config import parse_config

ABSENT = Missing(why=Why.NOT_ASKED, detail="not asked")
NOW = DeepSpeedInstall(version="0.19.8")
OLD = DeepSpeedInstall(version="0.16.2")
HF = Packages(packages={"transformers": Package(name="transformers", version="5.23.0")})
BARE = Packages()


def config(text: str) -> DsConfig:
    return parse_config(text, "ds.json")


def bad(findings: Any) -> list[Finding]:
    return [found for found in findings if found.status in {Status.FAIL, Status.WARN}]


def statuses(findings: Any) -> str:
    return " ".join(found.status.value for found in findings)


ZERO = '{"zero_optimization": {"stage": %s, %s}}'
