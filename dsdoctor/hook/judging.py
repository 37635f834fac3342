"""Judges what a worker has read on the node or for a job, and writes the verdict for the hook.

Imported while the driver is being read, because the checks are two hundred modules.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor import files, interpreter, packs, settings
from dsdoctor.api import Probe
from dsdoctor.examine import Request, all_probes, examine, read_config
from dsdoctor.hook import job_end
from dsdoctor.hook.node_reading import TOTAL_SECONDS, NodeReading, report_step
from dsdoctor.hook.rundir import NODE_FILE, SNAPSHOT_FILE, RunFolder, boot_id
from dsdoctor.host import LocalHost
from dsdoctor.judge import Policy, judge
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus, Nvml
from dsdoctor.model.facts.job_end import EccCounts, JobRemains
from dsdoctor.model.facts.kernel_log import KernelLog
from dsdoctor.model.facts.machine import Environment, NvidiaKernel, OsInfo
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot, from_json
from dsdoctor.packs import places
from dsdoctor.packs.registry import Registry, Unit, gives, needs
from dsdoctor.version import __version__

_UNSURE = (Status.UNKNOWN, Status.CRASH)


def node_units(registry: Registry, ignore: Iterable[str]) -> tuple[Unit, ...]:
    """Conditions of the scope `node`; a gate does not judge the compilers of a build."""
    units = registry.select((), tuple(ignore))
    return tuple(u for u in units if u.condition.scope is Scope.NODE and u.family != "ops")


def ended_units(registry: Registry, ignore: Iterable[str]) -> tuple[Unit, ...]:
    """The same without conditions that read the kernel log but do not ask about the job."""
    return tuple(
        unit
        for unit in node_units(registry, ignore)
        if is_of_job(unit) or KernelLog not in _facts(unit)
    )


def is_of_job(unit: Unit) -> bool:
    """Whether a condition is about what a job left."""
    return JobRemains in _facts(unit)


def _facts(unit: Unit) -> set[type]:
    return {need.kind for need in needs(unit.check.function)} if unit.check else set()


def is_confirmed(finding: Finding) -> bool:
    """Whether a failure was measured, and does not rest on an answer that was late or broken."""
    evidence = finding.evidence
    return evidence.get("why") not in ("timeout", "broken") and not evidence.get("stopped_at")


def summary(
    report: Report,
    snapshot: Snapshot,
    registry: Registry,
    key: str,
    begun: float,
    *,
    in_job: bool = False,
) -> dict[str, Any]:
    """What a hook needs from a report, as JSON values.

    Args:
        report: the judgement.
        snapshot: what was judged.
        registry: the conditions that were loaded.
        key: hash of the settings, see `Supervisor.key`.
        begun: when reading began (epoch).
        in_job: the hook runs in the cgroup of a job.
    """
    families = {unit.condition.name: unit.family for unit in registry}
    of_job = {unit.condition.name for unit in registry if is_of_job(unit)}
    remains = snapshot.get(JobRemains)
    gpus = snapshot.get(Gpus)
    listed = () if isinstance(gpus, Missing) else gpus.gpus
    unsure = {f"{f.condition}: {f.message}": f for f in report.findings if f.status in _UNSURE}
    late = {f"{f.condition}: {f.message}": f for f in report.findings if _is_late(f)}
    crashed = any(f.status is Status.CRASH for f in unsure.values())
    return {
        "schema": "dsdoctor/hook-node",
        "version": 1,
        "dsdoctor": __version__,
        "boot_id": boot_id(),
        "time": begun,
        "key": key,
        "seconds": snapshot.seconds.get("total", 0.0),
        "verdict": report.verdict.value,
        "counts": report.counts,
        "uuids": {
            number: gpu.uuid for number, gpu in _numbered(listed, in_job).items() if gpu.uuid
        },
        "ecc": {gpu.uuid: msgspec.to_builtins(ecc_counts(gpu)) for gpu in listed if gpu.uuid},
        "left": []
        if isinstance(remains, Missing)
        else [[one.pid, one.started] for one in remains.processes if one.certain],
        "mig": [device.uuid for gpu in listed for device in gpu.mig_devices or () if device.uuid],
        "unsure": [*unsure, *late, *(f"{k}: {v}" for k, v in _unread_vitals(snapshot).items())],
        "unsure_cause": "check-crash" if crashed else "unread",
        "findings": [
            {
                "id": finding.id,
                "condition": finding.condition,
                "status": finding.status.value,
                "message": finding.message,
                "hint": finding.hint,
                "scope": finding.scope.value if finding.scope else "node",
                "family": families.get(finding.condition, ""),
                "confirmed": is_confirmed(finding),
                "of_job": finding.condition in of_job,
            }
            for finding in report.findings
            if finding.status in (Status.FAIL, Status.WARN)
        ],
    }


def ecc_counts(gpu: Gpu) -> EccCounts:
    """The memory errors of a GPU, with which the epilog compares."""
    health = gpu.health
    return EccCounts(
        corrected=health.ecc_volatile_corrected, uncorrected=health.ecc_volatile_uncorrected
    )


def _is_late(finding: Finding) -> bool:
    return finding.status is Status.FAIL and not is_confirmed(finding)


def _unread_vitals(snapshot: Snapshot) -> dict[str, str]:
    """Vital facts that could not be read; for a hook these are the driver and the GPUs."""
    found = {}
    for kind in (NvidiaKernel, Nvml, Gpus):
        value = snapshot.get(kind)
        if isinstance(value, Missing) and value.is_unknown:
            found[kind.key()] = value.detail
    return found


def perform(task: Mapping[str, Any], reading: NodeReading | None) -> int:
    """Performs one task; its result is a file in the run folder.

    Args:
        task: what the hook asks for.
        reading: of the node, already begun, for the modes `node` and `ended`.

    Returns:
        0, or 1 if the result could not be written.
    """
    # a verdict is as old as its reading, in the middle of which a driver may have hung for long
    begun = time.time()
    folder = RunFolder(Path(task["folder"]))
    few = _node_conditions_suffice(task)
    registry = packs.load_scope(Scope.NODE) if few else packs.load(only_root_owned=True)
    if not len(registry):  # nothing would be judged, and each machine would be healthy
        raise RuntimeError("; ".join(problem.message for problem in registry.problems))
    limits, ignore, problems = _settings(task, registry)
    task = {**task, "ignore": ignore, "limits": limits}
    if task["mode"] == "full":
        snapshot, report = _examine_and_judge(task, registry)
    else:
        snapshot = _node(task, reading)
        report = _judge_node(snapshot, task, registry)
        if few and any(finding.status is Status.FAIL for finding in report.findings):
            # a failure may belong to a narrower condition, which was not loaded
            registry = packs.load(only_root_owned=True)
            report = _judge_node(snapshot, task, registry)
    name = NODE_FILE if task["mode"] == "node" else str(task["result"])
    found = summary(
        report, snapshot, registry, str(task["key"]), begun, in_job=bool(task.get("in_job"))
    )
    found["problems"] = problems
    if not folder.write(name, found):
        sys.stdout.write(f"the run folder `{folder.path}` cannot be written\n")
        return 1
    return 0


def _node_conditions_suffice(task: Mapping[str, Any]) -> bool:
    """Whether the built-in conditions of a node are enough; settings may refer to any condition."""
    needs_all = task["mode"] == "full" or task["ignore"] or task["limits"]
    return not needs_all and places.only_builtin()


def _settings(
    task: Mapping[str, Any], registry: Registry
) -> tuple[dict[str, dict[str, float]], list[str], list[str]]:
    """Limits and deselected checks that exist, and a line for each that does not."""
    given = settings.Settings(ignore=list(task["ignore"]), limits=dict(task.get("limits", {})))
    kept, problems = settings.without_leftovers(
        given, registry, "`{}` (`--ignore`, or `ignore` of the configuration)"
    )
    limits: dict[str, dict[str, float]] = {}
    wrong = list(problems)
    for name, values in kept.limits.items():
        known = registry.limit_names(name)
        limits[name] = {key: value for key, value in values.items() if key in known}
        wrong += [
            f"`{key}` in `[limits.{name}]` is not known{settings.nearest(key, known)}"
            for key in values
            if key not in known
        ]
    return limits, kept.ignore, wrong


def _numbered(gpus: Iterable[Gpu], in_job: bool) -> dict[str, Gpu]:
    """GPUs by the numbers that Slurm gives them.

    Slurm sorts GPUs as NVML does, by PCI address (gres.conf(5)). In the cgroup of a job NVML lists
    that job's GPUs alone, from 0; then the numbers of the device files remain.
    """
    return {
        str(gpu.minor_number if in_job and gpu.minor_number is not None else gpu.index): gpu
        for gpu in gpus
    }


def _needs(gpus: tuple[str, ...], snapshot: Snapshot, *, expects: bool, in_job: bool) -> RunNeeds:
    """What a job needs of the node; the highest index implies how many GPUs must exist.

    In a job's cgroup, those exist that are listed, and those of the job that are not.
    """
    fact = snapshot.get(Gpus)
    listed = {} if isinstance(fact, Missing) or not in_job else _numbered(fact.gpus, in_job)
    gpus = tuple(listed[item].uuid or item if item in listed else item for item in gpus)
    numbers = [int(item) for item in gpus if item.isdecimal() and expects]
    most = len(listed) + len(numbers) if in_job else max(numbers, default=0) + 1
    return RunNeeds(quick=True, gpus=gpus, expect_gpus=most if numbers else None)


def _node(task: Mapping[str, Any], reading: NodeReading | None) -> Snapshot:
    """The snapshot of the node: read now, or by the worker that judged the whole node before."""
    path = Path(task["folder"]) / SNAPSHOT_FILE
    if reading is None:
        snapshot = from_json(path.read_bytes(), SNAPSHOT_FILE)
    else:
        snapshot = reading.snapshot()
    if task["mode"] == "node":
        files.write(path, snapshot.to_json(), mode=0o600, strict=True)
        return snapshot
    remains = snapshot.get(JobRemains)
    if task["mode"] == "ended" and not isinstance(remains, Missing) and remains.processes:
        # until the job's processes have ended, or the time for waiting is over
        left = job_end.wait([(one.pid, one.started) for one in remains.processes], task["until"])
        kept = tuple(one for one in remains.processes if (one.pid, one.started) in left)
        snapshot.put(msgspec.structs.replace(remains, processes=kept))
    expects, in_job = bool(task.get("expects_gpus", True)), bool(task.get("in_job"))
    snapshot.put(_needs(tuple(task["gpus"]), snapshot, expects=expects, in_job=in_job))
    return snapshot


def _judge_node(snapshot: Snapshot, task: Mapping[str, Any], registry: Registry) -> Report:
    """The report on the node, without what a job or the hook's own container asked for."""
    units = ended_units if task["mode"] == "ended" else node_units
    policy = Policy(limits=task["limits"])
    report = judge(snapshot, units(registry, task["ignore"]), registry, policy)
    of_node = [finding for finding in report.findings if finding.scope is Scope.NODE]
    return msgspec.structs.replace(report, findings=of_node)


def _examine_and_judge(task: Mapping[str, Any], registry: Registry) -> tuple[Snapshot, Report]:
    scopes = frozenset(Scope(scope) for scope in task["scopes"])
    units = tuple(u for u in registry.select((), task["ignore"]) if u.condition.scope in scopes)
    host = LocalHost(os.environ)
    python: str | None = task.get("python")
    facts: frozenset[type[Fact]] | None = None
    if task.get("only_named"):
        named = interpreter.named(host, python)
        if named is None:
            absent: set[type[Fact]] = {PatientChoice, Patient}
            absent |= set() if task["wants_gpu"] else {Gpus}
            units, facts = without(absent, units, all_probes(registry))
        else:
            python = named.executable
    config = task.get("config")
    run = RunNeeds(
        gpus=tuple(task["gpus"]),
        quick=not task.get("live"),
        config_path=config,
        config=read_config(config),
        cwd=os.environ.get("PWD", "."),
    )
    request = Request(
        run=run,
        python=python,
        host=host,
        timeout=TOTAL_SECONDS,
        facts=facts,
        progress=report_step,
    )
    return examine(request, registry, units, Policy(scopes=scopes, limits=task["limits"]))


def without(
    absent: Collection[type[Fact]], units: Iterable[Unit], probes: Iterable[Probe]
) -> tuple[tuple[Unit, ...], frozenset[type[Fact]]]:
    """Conditions that need none of the facts in `absent`, and the facts that they need.

    A task prolog runs before the job activates its environment. If the job does not set one, any
    interpreter that could be found is the wrong one, and conditions that need it are not judged;
    nor are those that need GPUs, for a task without GPUs.
    """
    probe_of = {kind: probe for probe in probes for kind in gives(probe.function)}
    kept: list[Unit] = []
    facts: set[type[Fact]] = {Environment, Gpus, Nvml, OsInfo}
    for unit in units:
        found: set[type[Fact]] = set()
        pending = [need.kind for need in needs(unit.check.function)] if unit.check else []
        while pending:
            kind = pending.pop()
            if kind not in found and issubclass(kind, Fact):
                found.add(kind)
                probe = probe_of.get(kind)
                pending += [need.kind for need in needs(probe.function)] if probe else []
        if not found.intersection(absent):
            kept.append(unit)
            facts |= found
    return tuple(kept), frozenset(facts)
