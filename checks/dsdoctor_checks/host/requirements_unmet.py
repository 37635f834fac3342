"""The machine or the environment does not meet the requirements profile.

## Why it matters
A profile lists the minimum that a training run needs: GPUs and their memory, CPU cores, host memory,
disk space and versions. With less the run may start and fail hours later.

## What to do
Use a machine that meets the profile, upgrade what is too old, or correct the profile if it requires
too much. `check --profile NAME` uses a bundled profile, `check --profile FILE.toml` your own.

## References
- The profile's own source. Memory sizes are nominal: 7% less is accepted, because firmware, ECC and
  drivers reserve a part of the advertised size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Environment,
    Finding,
    Floors,
    Gpus,
    Limits,
    Missing,
    Nvml,
    Packages,
    Patient,
    Resources,
    RunNeeds,
    Scope,
    Storage,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import GIB, at_least, chosen, dotted, gib, pair
from dsdoctor_checks._where import recommend

CONDITION = Condition("requirements-unmet", id="DSD1010", scope=Scope.NODE, since="0.1")


class FloorLimits(Limits, frozen=True, kw_only=True):
    """How far below its nominal size something may be.

    Attributes:
        tolerance: share by which memory may be smaller than required.
    """

    tolerance: float = 0.07


@check(CONDITION)
def floors_are_met(
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    nvml: Nvml | Missing,
    resources: Resources | Missing,
    storage: Storage | Missing,
    patient: Patient | Missing,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
    limits: FloorLimits,
) -> Iterator[Finding]:
    """Compares each requirement with what was read."""
    floors = run.floors
    if floors is None:
        yield skip("no requirements profile was passed (`--profile`)")
        return
    share = 1 - limits.tolerance
    yield from _gpu_floors(floors, gpus, run, env, share)
    yield from _host_floors(floors, resources, storage, share)
    yield from _version_floors(floors, nvml, patient, torch, deepspeed, packages)


#: As a sentence calls it, where that differs from the row.
_TO_UPGRADE = {"driver": "the driver", "CUDA of torch": "torch to a build for a newer CUDA"}


def _unmet(floors: Floors, what: str, have: str, want: str, hint: str, **evidence: Any) -> Finding:
    return fail(
        f"{what}: {have}, but the profile `{floors.name}` requires {want}",
        effect="the run that the profile describes does not start or does not finish",
        hint=hint,
        profile=floors.name,
        **evidence,
    )


def _unread(what: str, missing: Missing) -> Finding:
    return skip(f"{what} could not be compared with the profile: {missing.detail}")


def _gpu_floors(
    floors: Floors,
    gpus: Gpus | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    share: float,
) -> Iterator[Finding]:
    wants = (floors.gpus, floors.gpu_memory_gib, floors.compute_capability)
    if wants == (None, None, None):
        return
    if isinstance(gpus, Missing) and gpus.is_unknown:
        yield _unread("GPUs", gpus)
        return
    used = chosen(gpus, run, env)
    if floors.gpus is not None:
        if len(used) < floors.gpus:
            yield _unmet(
                floors,
                "GPUs",
                f"{len(used)} {'is' if len(used) == 1 else 'are'} available to the run",
                f"{floors.gpus}",
                "give the run more GPUs, or use another machine",
                gpus=len(used),
                wanted=floors.gpus,
            )
        else:
            yield ok(gpus=len(used))
    for gpu in used:
        name = f"GPU {gpu.index} ({gpu.name or 'unnamed'})"
        if floors.gpu_memory_gib is not None and gpu.memory_total_bytes is not None:
            have = gpu.memory_total_bytes / GIB
            if have < floors.gpu_memory_gib * share:
                yield _unmet(
                    floors,
                    name,
                    f"{have:.1f} GiB",
                    f"{floors.gpu_memory_gib:g} GiB",
                    f"choose GPUs with more memory, or see what `{recommend(run.model_given)}` suggests",
                    gpu=gpu.index,
                    memory_gib=round(have, 1),
                    wanted_gib=floors.gpu_memory_gib,
                )
        wanted = pair(floors.compute_capability)
        if wanted is not None and gpu.cc is not None and gpu.cc < wanted:
            yield _unmet(
                floors,
                name,
                f"compute capability {dotted(gpu.cc)}",
                dotted(wanted),
                f"use GPUs of capability {dotted(wanted)} or higher",
                gpu=gpu.index,
                capability=dotted(gpu.cc),
                wanted=dotted(wanted),
            )


def _host_floors(
    floors: Floors, resources: Resources | Missing, storage: Storage | Missing, share: float
) -> Iterator[Finding]:
    if floors.cpu_cores is not None or floors.ram_gib is not None:
        if isinstance(resources, Missing):
            yield _unread("CPUs and memory", resources)
        else:
            cpus, ram = resources.cpus_usable, resources.memory_usable_bytes
            if floors.cpu_cores is not None and cpus < floors.cpu_cores:
                yield _unmet(
                    floors,
                    "CPUs",
                    f"the job can use {cpus} of {resources.cpus_logical}",
                    f"{floors.cpu_cores}",
                    "request more (`--cpus-per-task`, `resources.limits.cpu`)",
                    cpus=cpus,
                    wanted=floors.cpu_cores,
                )
            if floors.ram_gib is not None and ram < floors.ram_gib * GIB * share:
                yield _unmet(
                    floors,
                    "host memory",
                    f"the job can use {gib(ram)} GiB",
                    f"{floors.ram_gib:g} GiB",
                    "request more (`--mem`, `resources.limits.memory`) or use another machine",
                    ram_gib=gib(ram),
                    wanted_gib=floors.ram_gib,
                )
    if floors.disk_gib is None:
        return
    if isinstance(storage, Missing):
        yield _unread("disk space", storage)
        return
    for place in storage.places:
        if place.purpose != "disk of the profile":
            continue
        if place.free_bytes is None:
            yield skip(f"disk space could not be compared with the profile: {place.error}")
        elif place.free_bytes < floors.disk_gib * GIB:
            yield _unmet(
                floors,
                "disk",
                f"{gib(place.free_bytes)} GiB are free at `{place.path}`",
                f"{floors.disk_gib:g} GiB",
                "free up space, or set `disk_path` in the profile to another file system",
                free_gib=gib(place.free_bytes),
                wanted_gib=floors.disk_gib,
                path=place.path,
            )


def _version_floors(
    floors: Floors,
    nvml: Nvml | Missing,
    patient: Patient | Missing,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    rows: list[tuple[str, str | None, str | Missing | None]] = [
        ("Python", floors.python, patient if isinstance(patient, Missing) else patient.version),
        ("torch", floors.torch, torch if isinstance(torch, Missing) else torch.version),
        (
            "deepspeed",
            floors.deepspeed,
            deepspeed if isinstance(deepspeed, Missing) else deepspeed.version,
        ),
        ("CUDA of torch", floors.cuda, torch if isinstance(torch, Missing) else torch.cuda),
        ("driver", floors.driver, nvml if isinstance(nvml, Missing) else nvml.driver_version),
    ]
    rows += [(name, floor, _package(packages, name)) for name, floor in floors.packages.items()]
    for what, wanted, have in rows:
        if wanted is None:
            continue
        if isinstance(have, Missing):
            yield _unread(what, have)
        elif have is None:
            yield _unmet(
                floors,
                what,
                "not installed",
                f"{wanted} or newer",
                f"install {what} {wanted} or newer",
            )
        elif not at_least(have, wanted):
            yield _unmet(
                floors,
                what,
                have,
                f"{wanted} or newer",
                f"upgrade {_TO_UPGRADE.get(what, what)}",
                version=have,
                wanted=wanted,
            )


def _package(packages: Packages | Missing, name: str) -> str | Missing | None:
    if isinstance(packages, Missing):
        return packages
    for package in packages.packages.values():
        if package.name.lower().replace("_", "-") == name:
            return package.version
    return None
