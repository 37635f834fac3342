"""When restarting a job that died can help, in place (`--restarts`) or through Slurm's queue.

For the requests to Slurm, see `requeue`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dsdoctor.model.run_record import RunRecord
from dsdoctor.model.units import whole
from dsdoctor.run import store
from dsdoctor.run.line_printer import PrintLine
from dsdoctor.run.options import RunOptions

#: Variables that number the tasks of a job step: the first task acts.
TASK_VARIABLES = ("SLURM_PROCID", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK")


def is_first(env: Mapping[str, str]) -> bool:
    """Whether this is the first task of a job step, or the only one."""
    for name in TASK_VARIABLES:
        number = whole(env.get(name, ""))
        if number is not None:
            return number == 0
    return True


def was_ended(record: RunRecord, status: int) -> bool:
    """Whether a person ended the job on purpose, or a scheduler preempted it."""
    if any(one.name in ("SIGINT", "SIGTERM", "SIGQUIT") for one in record.signals):
        return True
    from dsdoctor.run import ending  # noqa: PLC0415  # only if a job died

    return status in (-signal.SIGINT, -signal.SIGTERM) and not ending.stopped(record)


def passing_cause(folder: Path) -> tuple[str, str] | None:
    """The condition that ended the run, and why a restart can help, if it can."""
    from dsdoctor import packs  # noqa: PLC0415  # only if a job died
    from dsdoctor.run import ending  # noqa: PLC0415

    registry = packs.load()
    found = ending.diagnose(folder, registry)
    if found is None or not found.causes:
        return None
    unit = registry.find(found.causes[0].condition)
    if unit is None or not unit.condition.transient:
        return None
    return unit.condition.name, unit.condition.transient


def requeue_job(options: RunOptions, folder: Path, record: RunRecord, speak: PrintLine) -> None:
    """Requeues the Slurm job if that can help."""
    from dsdoctor import packs  # noqa: PLC0415  # only to requeue
    from dsdoctor.model.diagnosis import Diagnosis  # noqa: PLC0415
    from dsdoctor.run import requeue  # noqa: PLC0415

    job = requeue.job_of(os.environ)
    if job is None or record.diagnosis is None or was_ended(record, record.status or 0):
        return
    causes = msgspec.convert(record.diagnosis, Diagnosis).causes
    registry = packs.load()
    why = requeue.reason(causes[0], registry) if causes else ""
    here = bool(causes) and requeue.is_at_fault(causes[0], job, registry)
    # of several nodes, the one at fault acts, otherwise the first
    if not why or not (here or is_first(os.environ)):
        return
    name = causes[0].condition
    if job.restarts >= options.restarts:
        speak(f"job {job.id} is not requeued: it has been started again {job.restarts} times")
        return
    if job.restarts and name == _requeued_for(options.base, job.id, folder):
        speak(f"job {job.id} is not requeued: it died of the same cause as before, {name}")
        return
    record.requeued_for = name
    store.save(folder, record)
    without = f" without node {job.node}" if here else ""
    speak(f"{name}: {why}; job {job.id} goes back into the queue{without}")
    if problem := requeue.requeue(job, without_node=here):
        speak(problem)


def _requeued_for(base: Path, job: str, folder: Path) -> str:
    """The cause for which this Slurm job was requeued last."""
    runs = [record for place, record in store.all_runs(base) if place != folder]
    before = [one.requeued_for for one in runs if one.slurm_job == job and one.requeued_for]
    return before[-1] if before else ""
