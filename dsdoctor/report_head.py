"""The parts of a report besides its findings: what was examined, and the verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dsdoctor.fact_source import has_gpu
from dsdoctor.model import partial
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus, GpuTopology, Nvml
from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo
from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.facts.pci import PciTree
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    Patient,
    PatientChoice,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.script import TrainingJob
from dsdoctor.model.finding import Status
from dsdoctor.model.matrix_of import build as build_matrix
from dsdoctor.model.report import IN_CONTAINER, PatientLine, Report, Verdict
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.model.units import gib
from dsdoctor.model.vital import VITAL
from dsdoctor.paste.notes import paste_notes


def describe(report: Report, snapshot: Snapshot) -> None:
    """Fills in what was examined: host, GPUs, driver, environment, and notes on the run."""
    with contextlib.suppress(partial.NotStated):
        _describe_gpus(report, snapshot)
    _describe_driver(report, snapshot)
    report.host = _stated(snapshot.get(OsInfo), "hostname") or ""
    choice, run = snapshot.get(PatientChoice), snapshot.get(RunNeeds)
    inside = not isinstance(run, Missing) and run.container is not None
    report.patient = PatientLine(
        python=_stated(choice, "executable"),
        chosen_by=IN_CONTAINER
        if inside and isinstance(choice, Missing)
        else _stated(choice, "chosen_by"),
        torch=_stated(snapshot.get(TorchBuild), "version"),
        deepspeed=_stated(snapshot.get(DeepSpeedInstall), "version"),
    )
    _note_run(report, snapshot)
    if snapshot.partial:
        report.notes.append("interrupted: this report is partial")
    report.notes += [f"assumed: {assumption}" for assumption in snapshot.assumed]
    if snapshot.origin:
        report.origin = snapshot.origin
    if snapshot.pasted:
        judged = {f.condition for f in report.findings if f.status is not Status.SKIP}
        report.judged = len(judged)
        report.notes += paste_notes(report, snapshot)
        disputed = {each.field.partition(".")[0] for each in snapshot.contradictions}
        missing = [
            name
            for fact, name, known in _vital_parts(report, snapshot)
            if not known and fact not in disputed
        ]
        if missing:
            report.notes.append(f"the paste does not report {' or '.join(_grouped(missing))}")


def _vital_parts(report: Report, snapshot: Snapshot) -> Iterator[tuple[str, str, bool]]:
    """What most conditions need: key of the fact, name, and whether a pasted text states it."""
    torch = snapshot.get(TorchBuild)
    yield "gpus", "the GPUs", bool(report.gpus) or _states(snapshot.get(Gpus), "gpus")
    yield "nvml", "the driver", report.driver is not None
    yield "patient", "Python", _stated(snapshot.get(Patient), "version") is not None
    yield "torch_build", "torch", report.patient.torch is not None or _states(torch, "version")
    yield (
        "torch_build",
        "the CUDA version of torch",
        report.patient.torch is None or _states(torch, "cuda"),
    )
    yield (
        "deep_speed_install",
        "DeepSpeed",
        report.patient.deepspeed is not None or _states(snapshot.get(DeepSpeedInstall), "version"),
    )


def _grouped(names: list[str]) -> list[str]:
    """Names to join with " or ": all but the last are joined with commas.

    >>> _grouped(["a", "b", "c"]), _grouped(["a"])
    (['a, b', 'c'], ['a'])
    """
    return [", ".join(names[:-1]), names[-1]] if len(names) > 1 else names


def _states(fact: Fact | Missing, name: str) -> bool:
    """Whether a fact states a field, None included."""
    if isinstance(fact, Missing):
        return False
    try:
        getattr(fact, name)
    except partial.NotStated:
        return False
    return True


def _stated(fact: Fact | Missing, name: str) -> str | None:
    """A field of a fact; None if the fact is missing or does not state it."""
    if isinstance(fact, Missing):
        return None
    try:
        value = getattr(fact, name)
    except partial.NotStated:
        return None
    return None if value is None else str(value)


def _amd_gpus(snapshot: Snapshot) -> list[str]:
    """The GPUs of a machine with AMD's, as torch calls them if it uses them."""
    system, live = snapshot.get(OsInfo), snapshot.get(TorchLive)
    if isinstance(system, Missing) or not system.amd_gpus:
        return []
    names = [device.name for device in live.devices] if isinstance(live, TorchLive) else []
    if len(names) != system.amd_gpus:
        return [f"{system.amd_gpus} × AMD GPU"]
    return [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]


def _describe_gpus(report: Report, snapshot: Snapshot) -> None:
    gpus = snapshot.get(Gpus)
    if not isinstance(gpus, Missing):
        names: dict[str, int] = {}
        for gpu in gpus.gpus:
            truncated = snapshot.pasted and gpu.error is None  # as old versions of nvidia-smi print
            name = gpu.name or ("GPU" if truncated else "unreadable GPU")
            names[name] = names.get(name, 0) + 1
        count = _stated(gpus, "count") if snapshot.pasted else None
        unnamed = int(count) - sum(names.values()) if count is not None else 0
        if names and unnamed > 0:  # some tools print one GPU and the number of all
            names["GPU"] = names.get("GPU", 0) + unnamed
        report.gpus = [f"{count} × {name}" for name, count in names.items()]
    report.gpus = report.gpus or _amd_gpus(snapshot)
    matrix = build_matrix(gpus, snapshot.get(GpuTopology), snapshot.get(PciTree))
    if matrix is not None:
        report.topology = matrix
    demand = snapshot.get(MemoryDemand)
    if not isinstance(demand, Missing) and demand.source != "plan":
        report.memory = demand


def _describe_driver(report: Report, snapshot: Snapshot) -> None:
    report.driver = _stated(snapshot.get(Nvml), "driver_version") or _stated(
        snapshot.get(NvidiaKernel), "module_version"
    )


def _note_run(report: Report, snapshot: Snapshot) -> None:
    run = snapshot.run
    report.config = run.config_path
    if run.command:
        report.command = list(run.command)
    if run.config_named_by:
        report.notes.append(
            f"config `{run.config_path}` is checked because {run.config_named_by} uses it"
        )
    job, demand = snapshot.get(TrainingJob), snapshot.get(MemoryDemand)
    if (
        isinstance(job, TrainingJob)
        and isinstance(demand, MemoryDemand)
        and demand.source == "command"
    ):
        much = f": about {gib(demand.gpu_bytes)} GiB on each GPU"
        told = much if job.method and demand.on_gpu else ""
        report.notes.append(f"memory was estimated because {job.named_by} names the model{told}")
    if run.followed:
        report.notes.append(f"the command that was checked is {run.followed}")
    if run.not_followed:
        report.notes.append(f"the command was not checked: {run.not_followed}")
    if run.quick:
        report.notes.append("torch not started (--quick)")


def unread_of(snapshot: Snapshot) -> dict[str, str]:
    """Vital facts that could not be read, each with the reason."""
    found: dict[str, str] = {}
    for kind in VITAL:
        value = snapshot.get(kind)
        asked = snapshot.run.wants_gpu or has_gpu(snapshot)
        if isinstance(value, Missing) and (value.is_unknown or (value.why is Why.DENIED and asked)):
            found[kind.key()] = value.detail
    return found


def verdict_of(report: Report, snapshot: Snapshot) -> Verdict:
    """The verdict that follows from the findings and the vital facts.

    A report of pasted text is never healthy.
    """
    statuses = {finding.status for finding in report.findings}
    if Status.FAIL in statuses:
        return Verdict.FAULTY
    if snapshot.pasted:
        return Verdict.UNKNOWN  # the fault may be in what the text leaves out
    nothing = all(isinstance(snapshot.get(kind), Missing) for kind in VITAL)
    unsure = statuses & {Status.UNKNOWN, Status.CRASH}
    if unsure or report.unread or nothing or report.partial:
        return Verdict.UNKNOWN
    return Verdict.HEALTHY
