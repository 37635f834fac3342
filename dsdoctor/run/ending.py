"""The last lines of a run: why it died, or what it achieved.

The modules that read logs are imported only if the job failed.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dsdoctor import files
from dsdoctor.model.run_record import Figures, PassedSignal, RankEnd, RunRecord
from dsdoctor.model.units import GIB
from dsdoctor.report.durations import duration
from dsdoctor.run import flight, hang, store
from dsdoctor.run.keep import AFTER_STOP
from dsdoctor.run.notices import Notices
from dsdoctor.run.progress import Progress

if TYPE_CHECKING:
    from dsdoctor.model.diagnosis import Diagnosis
    from dsdoctor.packs.registry import Registry

KERNEL_LOG = "kernel.log"
#: All lines of the kernel about one kill.
_KILL = re.compile(r"Out of memory|out of memory|oom-kill|invoked oom|Killed process|Memory cgroup")
#: A crash, with the number of its process.
_CRASH = re.compile(r"\[(\d{1,10})\]:? (?:segfault at|general protection|trap )")
#: Files of a run that a diagnosis reads, in this order.
EVIDENCE = (
    "output-*.log.gz", KERNEL_LOG, "gpus.log", "control-group.log", "wait-status.log",
    "scheduler.log",
)  # fmt: skip
#: Signals by which schedulers and users end a job.
ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
#: Signals that were not sent on purpose: crashes in native code, and kills by the kernel.
CRASHES = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGKILL")
    if hasattr(signal, name)
)
#: Added to the signal's number in the status of a program that exits because of a signal.
_SHELLS = 128
#: Ranks that end closer together than this were seen in one sample: their order is not known.
LEAST_APART_SECONDS = 0.05


def figures_of(progress: Progress, notices: Notices) -> Figures:
    """The figures of a run."""
    last = progress.last
    return Figures(
        steps=last.step,
        step_seconds=None if progress.median_seconds is None else round(progress.median_seconds, 4),
        loss=last.loss,
        tokens_per_second=last.tokens_per_second,
        samples_per_second=last.samples_per_second,
        peak_gpu_bytes=dict(notices.peak_gpu),
        peak_host_bytes=notices.peak_host,
        peak_rank_bytes=dict(notices.peak_rank),
        peak_ranks_bytes=notices.peak_ranks,
        throttled_seconds={key: round(value, 1) for key, value in notices.throttled.items()},
    )


def note_evidence(folder: Path, notices: Notices, record: RunRecord) -> None:
    """Writes evidence for the diagnosis that no output contains.

    A counter of the control group that did not change is also evidence: the kernel did not kill
    a process of this host for lack of memory. What its log says about such kills is then about
    other jobs, unless it lists a process of this one, which may have a control group of its own. A
    crash that the log lists counts if it is a process of the job, or one too short-lived to be
    seen in a job that ended by a crash.

    Args:
        folder: of the run.
        notices: of the run.
        record: of the run, whose status is known.
    """
    status = record.status or 0
    meant = stopped(record) or bool(_sent(record))
    kills = notices.oom_kills
    first = first_failure(record.rank_ends) if status else None
    ends = {"wait status": status}
    if first is not None:
        ends[f"wait status of rank {first.rank} (pid {first.pid})"] = first.status or 0
    # without the counter, SIGKILL may have come from the kernel or from another process
    crashes = {
        what: -number
        for what, number in ends.items()
        if -number in CRASHES and not meant and (kills is not None or -number != signal.SIGKILL)
    }
    lines = {}
    if crashes:
        lines["wait-status.log"] = "\n".join(
            f"{what}: Signal {number} ({signal.Signals(number).name})"
            for what, number in crashes.items()
        )
    crashed = -status in CRASHES and not meant
    if kills is not None and (kills > 0 or crashed or (status != 0 and record.rank_ends)):
        lines["control-group.log"] = f"memory.events: oom_kill +{kills} in {notices.folder}"
    if kills == 0 and not notices.killed:
        _leave_out(folder, lambda line: _KILL.search(line) is not None)
    if notices.crashed is not None and not any(map(_is_fault, ends.values())):
        ours = notices.crashed
        _leave_out(folder, lambda line: bool(set(map(int, _CRASH.findall(line))) - ours))
    for name, line in lines.items():
        with contextlib.suppress(OSError):  # a full disk
            files.write(folder / name, line + "\n", mode=0o600)


def _is_fault(status: int) -> bool:
    """Whether a process crashed, by its own status or by that of a shell around it."""
    return bool({-status, status - _SHELLS} & (CRASHES - {signal.SIGKILL}))


def _leave_out(folder: Path, is_other: Callable[[str], bool]) -> None:
    """Takes lines of the kernel that are about other jobs out of the evidence.

    Its log is that of the whole machine: on a shared node, memory runs out and programs crash in
    other jobs too. The samples still have these lines.
    """
    path = folder / KERNEL_LOG
    with contextlib.suppress(OSError):  # a full disk; without a watcher there is no log
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not is_other(line)]
        if len(kept) < len(lines):
            files.write(path, "".join(kept), mode=0o600)


def first_failure(ends: Sequence[RankEnd]) -> RankEnd | None:
    """The first rank that failed, in the last start of the ranks.

    None if it is not certain: launchers end the other ranks when one has died.
    """
    last = sorted({end.rank: end for end in ends}.values(), key=lambda end: end.time)
    for place, end in enumerate(last):
        if end.status is None:
            return None
        if end.status != 0:
            near = [one for one in last[place + 1 :] if one.time - end.time < LEAST_APART_SECONDS]
            return end if all(one.status == end.status for one in near) else None
    return None


def sources_of(folder: Path) -> list[str]:
    """Logs of a run that exist and are not empty."""
    found: list[str] = []
    for pattern in EVIDENCE:
        found += [str(path) for path in sorted(folder.glob(pattern)) if path.stat().st_size]
    return found


def diagnose(folder: Path, registry: Registry) -> Diagnosis | None:
    """The cause, from all stored data; None if the job wrote nothing."""
    from dsdoctor import logs  # noqa: PLC0415  # only after a failure
    from dsdoctor.host import LocalHost  # noqa: PLC0415
    from dsdoctor.host_actions import for_machine  # noqa: PLC0415

    paths = sources_of(folder)
    if not paths:
        return None
    found = logs.diagnose_paths(paths, logs.signatures_of(registry), dumps=flight.dumps_of(folder))
    host = LocalHost()
    causes = [msgspec.structs.replace(c, hint=for_machine(c.hint, host)) for c in found.causes]
    return msgspec.structs.replace(found, causes=tuple(causes))


def status_words(status: int) -> str:
    """How a command ended.

    >>> status_words(1), status_words(-9)
    ('exited with status 1', 'was killed by SIGKILL')
    """
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def success_line(record: RunRecord) -> str:
    """One line about a run that ended well."""
    figures = record.figures
    parts = [duration(record.seconds)]
    if figures.steps is not None:
        parts.append(f"last step {figures.steps}")  # jobs count from 0, from 1 or from a checkpoint
    if figures.step_seconds is not None:
        parts.append(f"{figures.step_seconds:.3g} s per step")
    if figures.tokens_per_second is not None:
        parts.append(f"{figures.tokens_per_second:,.0f} tokens/s")
    if figures.loss is not None:
        parts.append(f"loss {figures.loss:.4g}")
    if figures.peak_gpu_bytes:
        parts.append(_peak(figures))
    if throttled := sum(figures.throttled_seconds.values()):
        parts.append(f"throttled for {duration(throttled)}")
    if record.notices:
        parts.append(f"{len(record.notices)} notice{'s' * (len(record.notices) != 1)}")
    return "; ".join(parts)


def _peak(figures: Figures) -> str:
    """The peak memory of the GPUs, with the prediction if there is one."""
    index, peak = max(figures.peak_gpu_bytes.items(), key=lambda row: row[1])
    least = f"{min(figures.peak_gpu_bytes.values()) / GIB:.1f}"
    text = f"peak GPU memory {peak / GIB:.1f} GiB"
    if least != f"{peak / GIB:.1f}":
        text = f"peak GPU memory {least} to {peak / GIB:.1f} GiB (highest: GPU {index})"
    if figures.predicted is None:
        return text
    given = f" with {figures.predicted.assumed}" if figures.predicted.assumed else ""
    return f"{text}, {figures.predicted.gpu_bytes / GIB:.1f} GiB predicted{given}"


def of_ended(diagnosis: Diagnosis | None, record: RunRecord) -> Diagnosis | None:
    """The diagnosis of a job that was ended by dsdoctor or by a signal from outside.

    Consequences of the signal are not the cause: launchers raise their own exceptions about it.
    """
    if diagnosis is None or diagnosis.causes:
        return diagnosis
    from dsdoctor.logs.echoes import names_echo  # noqa: PLC0415  # only after a failure
    from dsdoctor.model.diagnosis import Outcome  # noqa: PLC0415

    sent, error = _sent(record), diagnosis.first_error
    if stopped(record):
        summary = "the job hung, and dsdoctor ended it (`--on-hang stop`)"
    elif sent and error is not None and names_echo(error.type, error.message):
        summary = from_outside(record)
    else:
        return diagnosis
    return msgspec.structs.replace(
        diagnosis, outcome=Outcome.UNRECOGNISED, summary=summary, first_error=None
    )


def _sent(record: RunRecord) -> list[PassedSignal]:
    """Signals that were sent to end the job.

    A typed key may have another meaning for a job that continues; if it ended the job, the status
    shows that.
    """
    status = record.status or 0
    return [
        sent
        for sent in record.signals
        if sent.name in ENDING
        and (
            not sent.typed
            or status in (-signal.Signals[sent.name], _SHELLS + signal.Signals[sent.name])
        )
    ]


#: States of a job that is to start again: while its command was running, it was requeued.
REQUEUED_STATES = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")


def from_outside(record: RunRecord) -> str:
    """Who ended the job from outside; "" = not known."""
    sent = next(iter(_sent(record)), None)
    if sent is None:
        return ""
    if sent.typed:
        key = "Ctrl-C" if sent.name == "SIGINT" else "Ctrl-\\"
        return f"{key} was typed on the job's terminal"
    if record.slurm_state in REQUEUED_STATES:
        return f"Slurm requeued job {record.slurm_job}; its state is {record.slurm_state} now"
    return f"{sent.name} from outside; a scheduler, `timeout` or a user sends it"


def stopped(record: RunRecord) -> bool:
    """Whether dsdoctor ended the job because it hung."""
    return bool(record.hang) and any(notice.key == hang.STOP for notice in record.notices)


def _hang_lines(record: RunRecord, folder: Path) -> Iterator[str]:
    """Lines about a hung job that dsdoctor ended."""
    yield f"cause: the job hung: {record.hang}"
    yield (
        f"hint: the stack of each rank is in `{folder / hang.FOLDER}`"
        if (folder / hang.FOLDER).is_dir()
        else f"hint: each rank printed its stack at the end; see `{folder}/{AFTER_STOP}-*.log.gz`"
    )


def unknown(record: RunRecord, seen: str) -> str:
    """The cause line for a job that died for no recognized reason.

    >>> unknown(RunRecord(status=130), "the output shows no failure")
    'unknown; the output shows no failure, but status 130 usually means SIGINT'
    """
    text = f"unknown; {seen}"
    with contextlib.suppress(ValueError):
        name = signal.Signals((record.status or 0) - _SHELLS).name
        text += f", but status {record.status} usually means {name}"
    return text


def _cause_lines(diagnosis: Diagnosis | None, record: RunRecord) -> Iterator[str]:
    """The cause with its evidence and its fix."""
    outside = from_outside(record)
    if diagnosis is not None and diagnosis.causes:
        cause = diagnosis.causes[0]
        yield f"cause: {cause.condition}: {cause.message}"
        for line in cause.evidence[:2]:
            rank = "" if line.rank is None else f"rank {line.rank}: "
            yield f"  {rank}{line.text}"
        yield f"hint: {cause.hint}"
        for fix in cause.fixes[:1]:
            yield f"fix: `dsdoctor fix {fix}`"
    elif outside and (diagnosis is None or diagnosis.first_error is None):
        yield f"cause: {outside}"
    elif diagnosis is not None and diagnosis.outcome.value != "clean":
        yield f"cause: {diagnosis.summary}"
        if (error := diagnosis.first_error) is not None:
            rank = "" if error.rank is None else f"rank {error.rank}, "
            yield f"  {rank}{error.file}:{error.line}"
    elif diagnosis is None:
        yield f"cause: {unknown(record, 'the job printed nothing')}"
    else:
        yield f"cause: {unknown(record, 'the output shows no failure')}"


def _forced(record: RunRecord, diagnosis: Diagnosis | None, folder: Path) -> Iterator[str]:
    """What the preflight check had found, if `--force` started the job nevertheless."""
    if record.preflight != "failed":
        return
    names: list[str] = []
    with contextlib.suppress(KeyError, TypeError):
        rows = store.check_report(folder)["findings"]
        names = [row["condition"] for row in rows if row["status"] == "fail"]
    if names and not (diagnosis and any(one.condition in names for one in diagnosis.causes[:1])):
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""  # noqa: PLR2004
        yield f"the check before the start had reported {', '.join(names[:2])}{more}"


def death_lines(record: RunRecord, diagnosis: Diagnosis | None, folder: Path) -> Iterator[str]:
    """At most ten lines about a run that died: what happened, why, the evidence, the fix."""
    yield f"the job {status_words(record.status or 0)} after {duration(record.seconds)}"
    proof = diagnosis is not None and any(cause.evidence for cause in diagnosis.causes[:1])
    ours = stopped(record) and not proof
    if record.hang and not ours:
        yield f"it was considered hung: {record.hang}"
    ending = _sent(record)
    if ending and not ending[0].typed:
        before = max(0.0, record.seconds - ending[0].time)
        yield f"{ending[0].name} was sent to the job {before:.1f} s before its end"
    if record.elsewhere and record.slurm_job:
        state = f": {record.slurm_state}" if record.slurm_state else ""
        yield f"Slurm job {record.slurm_job}{state}"
    yield from (_hang_lines(record, folder) if ours else _cause_lines(diagnosis, record))
    yield from _forced(record, diagnosis, folder)
    if len(record.rank_ends) > 1 and not ending and not stopped(record):
        first, second = record.rank_ends[:2]
        if (apart := second.time - first.time) >= LEAST_APART_SECONDS:
            how = "" if not first.status else f" ({status_words(first.status)})"
            yield (
                f"rank {first.rank} (pid {first.pid}) ended first{how}, "
                f"{apart:.1f} s before rank {second.rank}"
            )
    if record.checkpoint:
        yield f"last checkpoint that the job reported: `{record.checkpoint}`"
    if record.changed:
        from dsdoctor.machines import known_good  # noqa: PLC0415  # only if something has changed

        yield known_good.sentence(record.changed)
    name = folder.name if folder.parent == store.base_folder() else shlex.quote(str(folder))
    yield f"saved in `{folder}`; for details, run `dsdoctor run show {name}`"


def document(diagnosis: Diagnosis) -> dict[str, object]:
    """The diagnosis as `diagnose --format json` prints it."""
    found: dict[str, object] = msgspec.to_builtins(diagnosis)
    return found
