"""One call of `dsdoctor run`: check, start, watch, and report the result."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from dsdoctor import files, process
from dsdoctor.errors import UsageError
from dsdoctor.model.masking import mask_words
from dsdoctor.model.run_record import RunRecord
from dsdoctor.run import elsewhere, flight, hang, restarts, scheduler, store
from dsdoctor.run.dump_variables import announced
from dsdoctor.run.line_printer import LinePrinter, PrintLine
from dsdoctor.run.options import REFUSED, RunOptions
from dsdoctor.run.preflight_seconds import SECONDS
from dsdoctor.run.supervise import Supervisor
from dsdoctor.version import __version__

#: How much longer than its own limit the check may take before it is abandoned.
GRACE_SECONDS = 10.0
#: Lines about a death; the last one contains the folder with the rest.
MOST_LINES = 10
#: Of a command that succeeded but whose output could not be written, as `tee` does it.
OUTPUT_LOST = 1


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


def execute(options: RunOptions, say: PrintLine) -> int:
    """Runs the command and returns dsdoctor's exit status.

    Args:
        options: of `dsdoctor run`.
        say: prints one line.

    Raises:
        UsageError: the command cannot be started, or nothing can be stored.
    """
    speak = LinePrinter(say)
    here = str(Path.cwd())
    folder = store.create(options.base, mask_words(options.command))
    record = RunRecord(
        dsdoctor=__version__,
        id=folder.name,
        host=platform.node(),
        command=tuple(mask_words(options.command)),
        pid=os.getpid(),
        cwd=here,
        started=_now(),
        slurm_job=os.environ.get("SLURM_JOB_ID", ""),
        elsewhere=elsewhere.starter(options.command, os.environ),
    )
    store.begin(folder, record)
    try:
        may_start = _may_start(options, folder, record, speak)
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            files.remove(folder, tree=True)
        raise
    if not may_start:
        record.ended, record.status = _now(), REFUSED
        store.save(folder, record)
        return REFUSED
    env = dict(os.environ)
    if options.announce:
        try:
            files.make_folder(folder / flight.FOLDER, mode=0o700)
        except OSError as error:
            raise store.unusable(options.base, error) from None
        flight.sweep()
        pipes = "" if record.elsewhere else flight.pipe_prefix(options.command)
        added = announced(folder, env, _torch(folder), pipes)
        env |= added
        record.env_set = added
    # a second Ctrl-C often comes when the job has just ended; its status and record still count
    interrupted: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    try:
        status = _attempts(options, folder, record, env, speak, interrupted)
        record.ended, record.status = _now(), status
        signal.signal(signal.SIGINT, handler)
        _finish(options, folder, record, speak)
    except UsageError:
        if record.attempts == 1:  # nothing was started: there is nothing to store
            with contextlib.suppress(OSError):
                files.remove(folder, tree=True)
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
        flight.forget(record.env_set.get(flight.PIPES, ""))
    if status == 0 and _unwritten(speak) is not None:
        return OUTPUT_LOST
    return status if status >= 0 else 128 - status


def _unwritten(speak: LinePrinter) -> OSError | None:
    """Why output of the job that ran last is missing where the caller wanted it."""
    return None if speak.relay is None else speak.relay.unwritten


def _save(folder: Path, record: RunRecord, speak: PrintLine) -> None:
    """Writes the record; messages are printed even if its disk is full."""
    try:
        store.save(folder, record)
    except OSError as error:
        speak(f"the record of this run is incomplete: {error.strerror or error}")


def _finish(options: RunOptions, folder: Path, record: RunRecord, speak: PrintLine) -> None:
    """Records the end; the status is returned even if this fails or is interrupted."""
    try:
        _end(folder, record, speak, options)
        store.prune(options.base)
        if options.requeue and elsewhere.died(record):
            restarts.requeue_job(options, folder, record, speak)
    except OSError as error:
        speak(f"the record of this run is incomplete: {error.strerror or error}")
    except KeyboardInterrupt:
        store.save(folder, record)
        speak("interrupted: the end of this run was not diagnosed")


def _may_start(options: RunOptions, folder: Path, record: RunRecord, speak: PrintLine) -> bool:
    """Runs the preflight check; an inconclusive one does not prevent the start."""
    if options.preflight == "off":
        return True
    argv = [*process.own_module("dsdoctor.run.preflight"), str(folder), options.preflight]
    result = process.run(
        [*argv, *options.command], timeout=SECONDS[options.preflight] + GRACE_SECONDS
    )
    if result.returncode == 0:
        record.preflight = "passed"
        return True
    report = store.check_report(folder) if result.returncode == 1 else {}
    if not report:
        record.preflight = "inconclusive"
        if result.returncode not in (0, 3):
            speak(f"the preflight check did not finish: {result.error_text or 'no output'}")
        return True
    record.preflight = "failed"
    failures = [row for row in report["findings"] if row["status"] == "fail"]
    for row in failures:
        speak(f"FAIL {row['condition']} ({row['id']}): {row['message']}")
        if row.get("hint"):
            speak(f"  hint: {row['hint']}")
    if options.force:
        speak("starting anyway (`--force`)")
        return True
    speak(
        f"the command was not started (exit status {REFUSED}); fix this, or pass `--force` to "
        "start it anyway"
    )
    return False


def _torch(folder: Path) -> str | None:
    """Version of torch, as the preflight check found it."""
    with contextlib.suppress(KeyError, TypeError):
        return str(store.check_report(folder)["patient"]["torch"])
    return None


def _attempts(
    options: RunOptions,
    folder: Path,
    record: RunRecord,
    env: dict[str, str],
    speak: LinePrinter,
    interrupted: Sequence[int],
) -> int:
    """Starts the command, and restarts it after a transient cause if that is allowed.

    Args:
        options: of `dsdoctor run`.
        folder: of the run.
        record: of the run.
        env: the job's environment.
        speak: prints a line.
        interrupted: signals that came while no command was running.
    """
    before: str | None = None
    while True:
        try:
            supervisor = Supervisor(options, folder, record, speak)
        except OSError as error:
            raise store.unusable(options.base, error) from None
        begun = time.time()
        status = record.status = supervisor.run(env)
        if (lost := _unwritten(speak)) is not None:
            speak(
                f"output of the command could not be written: {lost.strerror}; it is in `{folder}`"
            )
        if record.elsewhere in elsewhere.SLURM:
            started = scheduler.find_job(folder, supervisor.session, begun, time.time())
            record.slurm_job = env.get("SLURM_JOB_ID", "") or started
        from dsdoctor.run import ending  # noqa: PLC0415  # reads logs: not needed while it runs

        record.figures = ending.figures_of(supervisor.progress, supervisor.notices)
        record.checkpoint = supervisor.progress.checkpoint or record.checkpoint
        ending.note_evidence(folder, supervisor.notices, record)
        if status != 0 or record.elsewhere:
            # before the decision to restart: only Slurm knows about a preemption
            record.slurm_state = scheduler.ask(folder, record.slurm_job)
        left = options.restarts + 1 - record.attempts
        if (
            not elsewhere.died(record)
            or left <= 0
            or options.requeue
            or restarts.was_ended(record, status)
        ):
            return status
        cause = restarts.passing_cause(folder)
        if cause is None or cause[0] == before or interrupted:
            return status
        before, why = cause
        speak(f"{before}: {why}; starting again, {left} restart{'s' * (left != 1)} left")
        if record.checkpoint:
            speak(f"last checkpoint that the job reported: `{record.checkpoint}`")
        record.attempts, record.status = record.attempts + 1, None
        record.hang, record.rank_ends = "", []
        _set_aside(folder, record.attempts - 1)


def _set_aside(folder: Path, attempt: int) -> None:
    """Moves the output of an attempt into its own folder."""
    place = folder / f"attempt-{attempt}"
    files.make_folder(place, mode=0o700)
    for pattern in ("*.log.gz", "steps.jsonl", "samples.jsonl*", "*.log"):
        for path in folder.glob(pattern):
            path.rename(place / path.name)
    for name in (hang.FOLDER, flight.FOLDER):
        if (folder / name).is_dir():
            (folder / name).rename(place / name)
    if (place / flight.FOLDER).is_dir():
        files.make_folder(folder / flight.FOLDER, mode=0o700)  # the variables point to it


def _end(folder: Path, record: RunRecord, speak: PrintLine, options: RunOptions) -> None:
    from dsdoctor.run import ending  # noqa: PLC0415  # not while the job runs

    snapshot = None
    if (folder / "snapshot.json").is_file():
        from dsdoctor.machines import known_good  # noqa: PLC0415  # not while the job runs
        from dsdoctor.model.snapshot import from_json  # noqa: PLC0415

        with contextlib.suppress(UsageError):
            snapshot = from_json((folder / "snapshot.json").read_bytes(), "snapshot.json")
    if snapshot is not None and record.figures.peak_gpu_bytes:
        from dsdoctor.run.prediction import predict  # noqa: PLC0415  # not while the job runs

        record.figures.predicted = predict(snapshot)
    if not elsewhere.died(record):
        if snapshot is not None:
            known_good.remember(snapshot)
        _save(folder, record, speak)
        if not options.quiet:
            speak(f"done in {ending.success_line(record)}")
        return
    from dsdoctor import packs  # noqa: PLC0415  # not while the job runs

    diagnosis = ending.of_ended(ending.diagnose(folder, packs.load()), record)
    if diagnosis is not None:
        record.diagnosis = ending.document(diagnosis)
    if snapshot is not None and (before := known_good.last(snapshot)) is not None:
        record.changed = known_good.changes(before, snapshot)
    _save(folder, record, speak)
    if diagnosis is not None and options.language:
        from dsdoctor import language  # noqa: PLC0415  # English needs no catalogue

        diagnosis = language.of_diagnosis(diagnosis, options.language)
    *lines, last = ending.death_lines(record, diagnosis, folder)
    for line in [*lines[: MOST_LINES - 1], last]:
        speak(line)
