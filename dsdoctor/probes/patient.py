"""Reads the examined environment without importing anything of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    Package,
    Packages,
    Patient,
    PatientChoice,
    TorchBuild,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.child_records import Records, fact_from, values_of, why_silent
from dsdoctor.process import Result

StaticFacts = tuple[
    Patient | Missing, Packages | Missing, TorchBuild | Missing, DeepSpeedInstall | Missing
]

#: What `parse_static` returns, in its order.
STATIC_FACTS: tuple[type[Fact], ...] = (Patient, Packages, TorchBuild, DeepSpeedInstall)

#: Oldest Python of the examined environment: the children do not compile in an older one.
OLDEST_PYTHON = (3, 8)
#: Reading names in site-packages takes 0.1 s; on a cold network disk it may take this.
STATIC_SECONDS = 60.0

_CUDA_WHEEL = re.compile(
    r"nvidia-(cublas|cuda-|cudnn|cufft|cufile|curand|cusolver|cusparse|nccl|nvjitlink|nvshmem|nvtx)"
    r"|cuda-toolkit$",
)
_UNKNOWN_VERSION = "0.0"


@probe
def patient_facts(
    host: Host, choice: PatientChoice, run: RunNeeds
) -> tuple[Patient | Missing, Packages | Missing, TorchBuild | Missing, DeepSpeedInstall | Missing]:
    """Reads the environment in a child that imports nothing of it."""
    try:
        records, result = run_child(
            host, choice.executable, "static", timeout=STATIC_SECONDS, cwd=run.cwd
        )
        if not records and "SyntaxError" in result.error_text:
            _refuse_too_old(host, choice.executable)
    except HostError as error:
        return (error.missing,) * 4
    return parse_static(records, choice, result)


def _refuse_too_old(host: Host, python: str) -> None:
    """Raises HostError if the interpreter is too old for the children."""
    asked = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
    said = host.run([python, "-c", asked]).text.strip()
    found = re.fullmatch(r"(\d)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise HostError(
            Why.BROKEN, f"`{python}` is Python {said}; dsdoctor can examine {oldest} and newer"
        )


def parse_static(records: Records, choice: PatientChoice, result: Result) -> StaticFacts:
    """Turns the records of `children/static.py` into facts.

    Args:
        records: the child's output, possibly incomplete.
        choice: the interpreter that it ran in.
        result: how it ended.
    """
    values = values_of(records)

    def missing(part: str) -> Missing:
        return why_silent(records, result, part)

    patient: Patient | Missing = missing("patient")
    if "patient" in values:
        named = {"executable": choice.executable, "chosen_by": choice.chosen_by}
        patient = fact_from(Patient, {**values["patient"], **named})
    packages: Packages | Missing = missing("packages")
    if "packages" in values:
        packages = fact_from(Packages, {**values.get("modules", {}), **values["packages"]})
    known = packages.packages if isinstance(packages, Packages) else {}
    torch: TorchBuild | Missing = missing("torch")
    if "torch" in values:
        torch = _torch_build(values["torch"], known)
    deepspeed: DeepSpeedInstall | Missing = missing("deepspeed")
    if "deepspeed" in values:
        deepspeed = _deepspeed_install(values["deepspeed"], known)
    return patient, packages, torch, deepspeed


def _torch_build(value: Mapping[str, Any], packages: Mapping[str, Package]) -> TorchBuild | Missing:
    listed = packages.get("torch")
    if not value:
        if listed is None:
            return TorchBuild()
        return TorchBuild(
            error=f"`torch` {listed.version} is listed in `{listed.location}`, "
            "but its folder is missing",
        )
    wheels = {
        name: package.version for name, package in packages.items() if _CUDA_WHEEL.match(name)
    }
    major = str(value.get("cuda") or "").split(".")[0]
    return fact_from(
        TorchBuild,
        {
            **value,
            "cuda_wheels": wheels,
            "nccl": _wheel(wheels, "nvidia-nccl", major),
            "cudnn": _wheel(wheels, "nvidia-cudnn", major),
        },
    )


def _wheel(wheels: Mapping[str, str], name: str, cuda_major: str) -> str | None:
    """Version of a wheel that exists for each major version of CUDA.

    >>> _wheel({"nvidia-nccl-cu12": "2.27.5", "nvidia-nccl-cu13": "2.28.9"}, "nvidia-nccl", "12")
    '2.27.5'
    """
    fitting = wheels.get(f"{name}-cu{cuda_major}") or wheels.get(name)
    if fitting or not cuda_major:
        return fitting
    others = [version for wheel, version in wheels.items() if wheel.startswith(f"{name}-cu")]
    return others[0] if len(others) == 1 else None


def _known_version(value: Any) -> str | None:
    """A version; None if DeepSpeed wrote its placeholder."""
    text = str(value or "")
    return None if text in ("", _UNKNOWN_VERSION, "None") else text


def _deepspeed_install(
    value: Mapping[str, Any], packages: Mapping[str, Package]
) -> DeepSpeedInstall | Missing:
    listed = packages.get("deepspeed")
    if not value:
        if listed is None:
            return DeepSpeedInstall()
        return DeepSpeedInstall(
            version=listed.version,
            error=f"`deepspeed` {listed.version} is listed in `{listed.location}`, "
            "but its folder is missing",
        )
    version = value.get("version") or (listed.version if listed else None)
    error = value.get("error")
    if version is None and error is None:
        error = f"`{value.get('path')}` has no version"
    given_ops = value.get("installed_ops")
    ops = {
        str(name): bool(built)
        for name, built in (given_ops.items() if isinstance(given_ops, dict) else ())
    }
    given = value.get("torch_info")
    info = given if any(ops.values()) and isinstance(given, dict) else {}
    accelerator = value.get("accelerator_name") if any(ops.values()) else None
    return fact_from(
        DeepSpeedInstall,
        {
            "version": version,
            "path": value.get("path"),
            "installed_ops": ops,
            "built_for_torch": _known_version(info.get("version")),
            "built_for_cuda": _known_version(info.get("cuda_version")),
            "built_for_accelerator": accelerator if isinstance(accelerator, str) else None,
            "error": error,
        },
    )
