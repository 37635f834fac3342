"""Reads and judges the machine for a hook, in a process that may be left behind.

    python -I -m dsdoctor.hook.worker '{"mode": "node", …}'

Modes: `node` reads the node, judges it and leaves snapshot and verdict for every hook of the next
minute; `judge` judges that snapshot for some GPUs; `full` reads and judges for one job; `ended`
reads and judges the node after one. Stdout says which probe has begun (`+nvml`) and which has ended
(`-nvml`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor import files, interpreter, packs, process, settings
from dsdoctor.api import Probe
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, all_probes, examine, read_config, read_machine
from dsdoctor.hook import job_end
from dsdoctor.hook.rundir import NODE_FILE, SNAPSHOT_FILE, RunFolder, boot_id
from dsdoctor.host import LocalHost
from dsdoctor.judge import Policy, judge
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus, GpuTopology, Nvml
from dsdoctor.model.facts.job_end import EccCounts, JobEnd, JobRemains
from dsdoctor.model.facts.kernel_log import KernelLog
from dsdoctor.model.facts.machine import Environment, NvidiaKernel, OsInfo, Resources
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot, from_json
from dsdoctor.registry import Registry, Unit, gives, needs
from dsdoctor.version import __version__

#: A driver that starts anew with eight GPUs takes longer than a tool may take elsewhere.
SCALE = 3.0
#: After this a worker gives up, so that its lock is free again.
TOTAL_SECONDS = 60.0
#: What may be read before every job: no environment, no compiler, nothing that imports torch. Nor
#: the kernel log: a fatal Xid stays in it after the reset that cured the GPU, drivers before 570 do
#: not report that reset, and the gate would block jobs for a day.
NODE_FACTS: frozenset[type[Fact]] = frozenset(
    {Environment, Gpus, GpuTopology, NvidiaKernel, Nvml, OsInfo, Resources}
)
#: Besides, after a job: what it left. The log is read only for the Xids of its time.
ENDED_FACTS: frozenset[type[Fact]] = frozenset({*NODE_FACTS, JobRemains, KernelLog})
#: What says which GPUs a *job* sees; a verdict on the node must not depend on it.
JOB_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "NVIDIA_VISIBLE_DEVICES")
#: Status of a worker whose task names what does not exist; its last line says why.
MISUSE = 2
_UNSURE = (Status.UNKNOWN, Status.CRASH)


def node_env(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without the job in whose prolog this happens to run.

    >>> node_env({"SLURM_JOB_ID": "1", "CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin"})
    {'PATH': '/bin'}
    """
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(("SLURM_", "PBS_", "LSB_", "SGE_")) and name not in JOB_VARIABLES
    }


def node_units(registry: Registry, ignore: Iterable[str]) -> tuple[Unit, ...]:
    """Conditions of the scope `node`; a gate does not judge the compilers of a build."""
    units = registry.select((), tuple(ignore))
    return tuple(u for u in units if u.condition.scope is Scope.NODE and u.family != "ops")


def ended_units(registry: Registry, ignore: Iterable[str]) -> tuple[Unit, ...]:
    """The same, but for conditions that rest on the kernel log without asking about the job."""
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


def summary(report: Report, snapshot: Snapshot, registry: Registry, key: str) -> dict[str, Any]:
    """What a hook needs of a report, ready for JSON."""
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
        "time": time.time(),
        "key": key,
        "seconds": snapshot.seconds.get("total", 0.0),
        "verdict": report.verdict.value,
        "counts": report.counts,
        "uuids": {str(gpu.index): gpu.uuid for gpu in listed if gpu.uuid},
        "ecc": {gpu.uuid: msgspec.to_builtins(ecc_counts(gpu)) for gpu in listed if gpu.uuid},
        "left": []
        if isinstance(remains, Missing)
        else [[one.pid, one.started] for one in remains.processes if one.certain],
        "mig": [device.uuid for gpu in listed for device in gpu.mig_devices or () if device.uuid],
        "unsure": [*unsure, *late, *(f"{k}: {v}" for k, v in _unread(snapshot).items())],
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
    """The memory errors of a GPU, for the epilog to compare with."""
    health = gpu.health
    return EccCounts(
        corrected=health.ecc_volatile_corrected, uncorrected=health.ecc_volatile_uncorrected
    )


def _is_late(finding: Finding) -> bool:
    return finding.status is Status.FAIL and not is_confirmed(finding)


def _unread(snapshot: Snapshot) -> dict[str, str]:
    """The driver and the GPUs are vital to a hook."""
    found = {}
    for kind in (NvidiaKernel, Nvml, Gpus):
        value = snapshot.get(kind)
        if isinstance(value, Missing) and value.is_unknown:
            found[kind.key()] = value.detail
    return found


def _tell(name: str, ended: bool) -> None:
    # straight to the file: where its disk is full, a probe must not end with this line
    with contextlib.suppress(OSError):
        os.write(1, f"{'-' if ended else '+'}{name}\n".encode())


def _ended(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    process.kill_all()
    os._exit(128 + number)


def main(task: Mapping[str, Any]) -> int:
    """Does one task; its result is a file in the run folder."""
    signal.signal(signal.SIGTERM, _ended)
    if task.get("lock") is not None:
        os.set_inheritable(int(task["lock"]), False)  # the lock ends with this process
    folder = RunFolder(Path(task["folder"]))
    registry = packs.load(only_root_owned=True)
    limits, ignore, problems = _settings(task, registry)
    task = {**task, "ignore": ignore}
    act = {"node": _node, "judge": _selection, "full": _full, "ended": _ended_job}[task["mode"]]
    snapshot, report = act(task, registry, limits)
    name = NODE_FILE if task["mode"] == "node" else str(task["result"])
    found = summary(report, snapshot, registry, str(task["key"])) | {"problems": problems}
    if not folder.write(name, found):
        sys.stdout.write(f"the run folder `{folder.path}` cannot be written\n")
        return 1
    return 0


def _settings(
    task: Mapping[str, Any], registry: Registry
) -> tuple[dict[str, dict[str, float]], list[str], list[str]]:
    """Limits and deselected checks that exist, and a line for each that does not."""
    given = settings.Settings(ignore=list(task["ignore"]), limits=dict(task.get("limits", {})))
    kept, problems = settings.without_leftovers(given, registry)
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


def _needs(gpus: tuple[str, ...]) -> RunNeeds:
    """What a job asks of the node; the highest index says how many GPUs there must be."""
    indices = [int(item) for item in gpus if item.isdecimal()]
    return RunNeeds(quick=True, gpus=gpus, expect_gpus=max(indices) + 1 if indices else None)


def _of_node(facts: frozenset[type[Fact]], *given: Fact) -> Request:
    """What is read of a node whatever the job's environment says."""
    return Request(
        run=RunNeeds(quick=True),
        host=LocalHost(node_env(os.environ), scale=SCALE),
        timeout=TOTAL_SECONDS,
        facts=facts,
        given=given,
        progress=_tell,
    )


def _node(
    task: Mapping[str, Any], registry: Registry, limits: Mapping[str, Mapping[str, float]]
) -> tuple[Snapshot, Report]:
    """Reads the node, and keeps what was read for `_selection`."""
    snapshot = read_machine(_of_node(NODE_FACTS), registry)
    path = Path(task["folder"]) / SNAPSHOT_FILE
    files.write(path, snapshot.to_json(), mode=0o600, strict=True)
    return snapshot, _judged(snapshot, task, registry, limits)


def _selection(
    task: Mapping[str, Any], registry: Registry, limits: Mapping[str, Mapping[str, float]]
) -> tuple[Snapshot, Report]:
    """Judges what `_node` has read for some of its GPUs."""
    path = Path(task["folder"]) / SNAPSHOT_FILE
    snapshot = from_json(path.read_bytes(), SNAPSHOT_FILE)
    snapshot.put(_needs(tuple(task["gpus"])))
    return snapshot, _judged(snapshot, task, registry, limits)


def _judged(
    snapshot: Snapshot,
    task: Mapping[str, Any],
    registry: Registry,
    limits: Mapping[str, Mapping[str, float]],
) -> Report:
    return judge(snapshot, node_units(registry, task["ignore"]), registry, Policy(limits=limits))


def _full(
    task: Mapping[str, Any], registry: Registry, limits: Mapping[str, Mapping[str, float]]
) -> tuple[Snapshot, Report]:
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
        progress=_tell,
    )
    return examine(request, registry, units, Policy(scopes=scopes, limits=limits))


def _ended_job(
    task: Mapping[str, Any], registry: Registry, limits: Mapping[str, Mapping[str, float]]
) -> tuple[Snapshot, Report]:
    """The node after a job, when the job's processes have ended or the time to wait is over."""
    ended = msgspec.convert(task["ended"], JobEnd)
    snapshot = read_machine(_of_node(ENDED_FACTS, ended), registry)
    remains = snapshot.get(JobRemains)
    if not isinstance(remains, Missing) and remains.processes:
        left = job_end.wait([(one.pid, one.started) for one in remains.processes], task["until"])
        kept = tuple(one for one in remains.processes if (one.pid, one.started) in left)
        snapshot.put(msgspec.structs.replace(remains, processes=kept))
    snapshot.put(_needs(tuple(task["gpus"])))
    units = ended_units(registry, task["ignore"])
    return snapshot, judge(snapshot, units, registry, Policy(limits=limits))


def without(
    absent: Collection[type[Fact]], units: Iterable[Unit], probes: Iterable[Probe]
) -> tuple[tuple[Unit, ...], frozenset[type[Fact]]]:
    """Conditions that rest on none of some facts, and the facts that they need.

    A task prolog runs before the job activates its environment. Where the job names none, any
    interpreter that could be found is the wrong one, and nothing that rests on it is judged; nor
    are GPUs for a task that has none.
    """
    makers = {kind: probe for probe in probes for kind in gives(probe.function)}
    kept: list[Unit] = []
    facts: set[type[Fact]] = {Environment, Gpus, Nvml, OsInfo}
    for unit in units:
        found: set[type[Fact]] = set()
        pending = [need.kind for need in needs(unit.check.function)] if unit.check else []
        while pending:
            kind = pending.pop()
            if kind not in found and issubclass(kind, Fact):
                found.add(kind)
                probe = makers.get(kind)
                pending += [need.kind for need in needs(probe.function)] if probe else []
        if not found.intersection(absent):
            kept.append(unit)
            facts |= found
    return tuple(kept), frozenset(facts)


def _main() -> int:
    try:
        return main(json.loads(sys.argv[1]))
    except UsageError as error:
        sys.stdout.write(f"{' '.join(str(error).split())}\n")
        return MISUSE


if __name__ == "__main__":
    sys.exit(_main())
