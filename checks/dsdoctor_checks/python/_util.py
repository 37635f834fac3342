"""What the checks of Python packages share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsdoctor.api import DeepSpeedLive, Missing, Patient, TorchLive

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
    """A distribution's name as Packages has it."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415  # as above

    return canonicalize_name(name)
