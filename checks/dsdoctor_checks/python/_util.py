"""Helpers shared by the checks of Python packages."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

from packaging.version import Version

from dsdoctor.api import DeepSpeedLive, Missing, Packages, Patient, TorchLive

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: Modules that matter to a job, by the name that is imported, to their distribution.
KEY_MODULES = {
    "torch": "torch",
    "deepspeed": "deepspeed",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "triton": "triton",
    "numpy": "numpy",
    "pydantic": "pydantic",
}


def imports(
    torch: TorchLive | Missing | None, deepspeed: DeepSpeedLive | Missing | None
) -> bool | None:
    """Whether all imports that were tried succeeded; None when none was tried."""
    tried = [live.imported.ok for live in (torch, deepspeed) if isinstance(live, TorchLive)]
    tried += [live.imported.ok for live in (torch, deepspeed) if isinstance(live, DeepSpeedLive)]
    return all(tried) if tried else None


#: A requirement as nearly all are written (PEP 508), up to its marker; no URL.
_PLAIN = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[\w\s,.-]*\])?\s*\(?([^;@()]*)\)?\s*(?:;.*)?")
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)\s*")
#: A release, with the local part that torch builds have (`2.11.0+cu130`).
_RELEASE = re.compile(r"(\d+(?:\.\d+)*)(?:\+[\w.]+)?")
_COMPARE = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


def plainly_met(text: str, packages: Packages) -> bool:
    """Whether a requirement is met, as far as plain releases say it: False = it has to be parsed.

    For a release, every operator but `~=` and `===` compares only versions without their local
    part; pre-, post- and development releases have rules of their own. A requirement that is met is
    met whatever its marker says. Most are, so the parser, which takes 20 ms to import, is seldom
    needed.
    """
    found = _PLAIN.fullmatch(text)
    have = packages.version(normalized(found[1])) if found else None
    release = _RELEASE.fullmatch(have or "")
    if found is None or release is None:
        return False
    clauses = [_CLAUSE.fullmatch(part) for part in found[2].split(",")] if found[2].strip() else []
    version = Version(release[1])
    return all(one and _COMPARE[one[1]](version, Version(one[2])) for one in clauses)


def parse_requirement(text: str, patient: Patient) -> Requirement | None:
    """A requirement that applies in this environment; None if it does not or is malformed.

    Requirements of extras never apply, because it is not recorded which extras were requested.
    """
    if "extra ==" in text and " or " not in text:
        return None  # most requirements are those of extras: not parsed, since that takes 20 ms
    from packaging.requirements import (  # noqa: PLC0415  # its grammar costs 20 ms to compile
        InvalidRequirement,
        Requirement,
    )

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    if requirement.marker is None:
        return requirement
    environment = {
        "extra": "",
        "python_version": ".".join(patient.version.split(".")[:2]),
        "python_full_version": patient.version,
        "platform_python_implementation": patient.implementation,
        "implementation_name": patient.implementation.lower(),
    }
    return requirement if requirement.marker.evaluate(environment) else None


def normalized(name: str) -> str:
    """A distribution's name as Packages has it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
