"""One run of a hook, from request to exit status; imports little until a worker is started."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.hook import gatelog, outputs
from dsdoctor.hook.decide import PREFIX, Decision, unknown
from dsdoctor.hook.limits import given_up, limits
from dsdoctor.hook.request import (
    KINDS,
    Request,
    configured,
    has_job_environment,
    job_id,
    node_name,
    parse,
)
from dsdoctor.hook.rundir import RunFolder, RunFolderError, boot_id, default_path, write_json
from dsdoctor.hook.supervise import Supervisor, process_age
from dsdoctor.hook.trust import why_not_this
from dsdoctor.model.plain import one_line
from dsdoctor.model.units import whole
from dsdoctor.safe_path import is_root, trusted_accounts, why_untrusted

#: While this file exists, every hook lets every job pass.
KILL_SWITCH = Path("/etc/dsdoctor/disabled")
SYSTEM_CONFIG = Path("/etc/dsdoctor/config.toml")
#: Kinds that run as the user of the job, in its environment.
_IN_THE_JOB = ("slurm-task-prolog", "k8s")
_LOG_SECONDS = 0.2
#: The longest that a job waits for one call of scontrol.
_SCONTROL_SECONDS = 1.5
#: The largest uid; the job's owner may set any text.
_LARGEST_UID = 2**32 - 1
#: Not empty if syslog did not accept a line in time; it is not tried again in this run.
_syslog_blocks: list[bool] = []
_UNKNOWN_WORDS = {"nagios": "DSDOCTOR UNKNOWN - inconclusive ({0})\n"}
#: Exit statuses that express a decision of this process; click's own are not among them.
_decided: list[int] = []


def _stopped(number: int, _frame: object) -> None:
    """Handles a signal: `SystemExit` lets the supervisor end its worker and remove its files."""
    signal.signal(number, signal.SIG_IGN)  # the script may send it more than once
    sys.exit(128 + number)


def _handle_signals() -> None:
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        # not one that `nohup` or a shell has set to be ignored; on a thread this raises ValueError
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):
                signal.signal(number, _stopped)


def main(argv: list[str], by_click: Callable[[], int]) -> int:
    """Runs `dsdoctor hook`; no failure of dsdoctor itself ends with a status that is a verdict.

    Args:
        argv: the words after `hook`.
        by_click: runs click, for help and for messages about wrong options.
    """
    kind = argv[0] if argv else ""
    unknown_status = outputs.UNKNOWN_STATUS.get(kind, 2)
    try:
        status = fast(argv)
        if status is not None:
            return status
        status = by_click()
    except Exception as error:  # noqa: BLE001  # status 1 would be a verdict
        _log(f"hook={kind} decision=pass cause=crash {type(error).__name__}: {error}")
        _print(_UNKNOWN_WORDS.get(kind, "dsdoctor: inconclusive ({0})\n").format("crash"))
        return _crashed(argv)
    if status not in (0, unknown_status) and not _decided:
        _print(_UNKNOWN_WORDS.get(kind, "").format("usage"))
        return unknown_status
    return status


def _crashed(argv: list[str]) -> int:
    """The status after an internal error: the script of `hook install` decides, or jobs pass."""
    kind = argv[0] if argv else ""
    if kind in outputs.UNKNOWN_STATUS or kind not in KINDS or "--token" in argv:
        return outputs.UNKNOWN_STATUS.get(kind, 2)
    if "--fail-closed" not in argv:
        return 0
    return outputs.PBS_REQUEUE if kind == "pbs-prologue" else 1


def fast(argv: list[str]) -> int | None:
    """Runs a hook without click; None = click must report what is wrong, or print the help."""
    request = parse(argv)
    return None if request is None else run(request)


def run(request: Request, env: Mapping[str, str] | None = None) -> int:
    """Decides, reports the decision, and returns the exit status."""
    status = _run(request, env)
    _decided.append(status)
    return status


def _run(request: Request, env: Mapping[str, str] | None) -> int:
    begun = time.monotonic() - process_age()
    _handle_signals()
    env = os.environ if env is None else env
    if KILL_SWITCH.exists():
        _log(f"hook={request.kind} decision=pass cause=disabled `{KILL_SWITCH}` exists")
        return outputs.UNKNOWN_STATUS.get(request.kind, 0)
    decision, folder, request, known = _decide(request, env, begun)
    decision = outputs.settle(request, decision)
    _print_why_requeued(request, env, begun)
    seconds = time.monotonic() - begun
    node = node_name(env)
    job = job_id(env, request.kind)
    more = {
        "boot_id": boot_id(),
        "time": time.time(),
        "job": job,
        "node": node,
        "seconds": round(seconds, 3),
        **known,
    }
    problems = (*request.problems, *decision.problems)
    if problems:
        more["problems"] = problems
    record = outputs.record(request, decision, more)
    written = True
    if request.json is not None:
        written = write_json(Path(request.json), record)
    if folder is not None:
        if decision.cause is not None and not decision.block:
            folder.count(decision.cause)
        if not request.token:  # else the script of `hook install` writes it
            gatelog.write(folder.path, **outputs.note(request, decision, job, node, seconds))
        gatelog.rotate(folder.path)
        _note_job(request, decision, folder, node, job, record)
    _report(request, decision, folder, seconds, node)
    _log(outputs.log_line(request, decision, job, node, seconds))
    for found in decision.notes:
        _log(outputs.note_line(request, found, job, node))
    for problem in problems:
        _log(f"hook={request.kind} configuration: {one_line(problem)}")
    if request.kind == "slurm-health" and folder is not None:
        from dsdoctor.hook import health  # noqa: PLC0415  # other kinds start no Slurm command

        return health.act(request, decision, folder, node)
    if request.kind == "pbs-health":
        from dsdoctor.hook import pbs_node  # noqa: PLC0415  # only for this hook

        return pbs_node.act(request, decision, node)
    if request.kind in ("slurm-prolog", "slurm-epilog") and decision.block:
        _inform_slurm(request, decision, node, job, begun)
    if not written and decision.block:
        _log(f"hook={request.kind} decision=pass cause=verdict-unwritten `{request.json}`")
        return 0
    return outputs.exit_status(request, decision)


def _note_job(  # everything that a note contains
    request: Request,
    decision: Decision,
    folder: RunFolder,
    node: str,
    job: str,
    record: dict[str, Any],
) -> None:
    """Stores a note of a job for its task prolog and epilog, and of a drain for `slurm-health`."""
    if request.kind == "slurm-prolog":
        folder.keep_job(node, job, record)
    elif request.kind == "slurm-epilog":
        folder.forget_job(node, job)
    else:
        return
    if decision.block:
        folder.stamp(node, record)


def _inform_slurm(request: Request, decision: Decision, node: str, job: str, begun: float) -> None:
    """Calls scontrol for a blocked job; one that hangs must not turn the block into a pass."""
    if not (request.reason_from_prolog or request.job_comment):
        return
    from dsdoctor.hook import health  # noqa: PLC0415  # only if a job is blocked

    both = request.job_comment and bool(job) and request.kind == "slurm-prolog"
    if request.reason_from_prolog:
        seconds = _seconds_for_scontrol(request, begun, 2 if both else 1)
        health.drain_with_reason(node, decision.reason, seconds)
    if both:
        health.comment_on_job(job, node, decision, _seconds_for_scontrol(request, begun, 1))


def _seconds_for_scontrol(request: Request, begun: float, calls: int) -> float:
    """How long each of several calls may take while a job waits for them."""
    left = limits(request, begun, given_up()).end - time.monotonic()
    return max(0.1, min(_SCONTROL_SECONDS, left / calls))


def _print_why_requeued(request: Request, env: Mapping[str, str], begun: float) -> None:
    """Prints into the output of a restarted batch job, on its first node, why it was requeued."""
    if request.kind != "slurm-task-prolog" or env.get("SLURM_RESTART_COUNT", "0") == "0":
        return
    if env.get("SLURM_NODEID", "0") != "0" or not job_id(env):
        return
    from dsdoctor.hook import health  # noqa: PLC0415  # only for a requeued job

    why = health.comment_of_job(job_id(env), _seconds_for_scontrol(request, begun, 1))
    if why:
        _print(f"print {PREFIX} this job was requeued: {one_line(why)}\n")


def _decide(
    request: Request, env: Mapping[str, str], begun: float
) -> tuple[Decision, RunFolder | None, Request, dict[str, Any]]:
    """The decision, the run folder, the configured request, and further fields of the record.

    Whatever goes wrong in here is a failure of dsdoctor itself and lets the job pass.
    """
    folder: RunFolder | None = None
    try:
        if request.run_folder:
            path = Path(request.run_folder)
        else:
            path = default_path(believed=not has_job_environment(request))
        folder = RunFolder(path)
        distrust = why_not_this(request.trust_owner) if is_root() else ""
        if distrust:
            found = unknown(
                "untrusted-interpreter",
                f"root must not run {sys.executable}: {distrust}",
                fail_closed=request.fail_closed,
                dry_run=request.dry_run,
            )
            return found, folder, request, _notes_for_later(env, None)
        request = _configured(request)
        supervisor = Supervisor(request, folder, env, begun)
        return supervisor.run(), folder, request, _notes_for_later(env, supervisor)
    except RunFolderError as error:
        cause, detail = "run-folder", str(error)
    except UsageError as error:
        cause, detail = "usage", str(error)
    except Exception as error:  # noqa: BLE001  # a bug in dsdoctor must not drain a node
        cause, detail = "crash", f"{type(error).__name__}: {error}"
    found = unknown(cause, detail, fail_closed=request.fail_closed, dry_run=request.dry_run)
    return found, folder, request, _notes_for_later(env, None)


def _notes_for_later(env: Mapping[str, str], supervisor: Supervisor | None) -> dict[str, Any]:
    """What a prolog records for the epilog of its job, and an epilog for the health program."""
    uid = whole(env.get("SLURM_JOB_UID", ""))
    found: dict[str, Any] = {
        "gpus": {},
        "uid": uid if uid is not None and uid <= _LARGEST_UID else None,
    }
    if supervisor is not None:
        found |= {"gpus": supervisor.uuids, "ecc": supervisor.ecc, "left": supervisor.left}
    return found


def _configured(request: Request) -> Request:
    """The request with the configuration applied; mistakes in it are reported and ignored.

    The file of `DSDOCTOR_CONFIG` replaces the system's if only root can change it and the job
    cannot have set the variable: a job would set it to an empty file of root's. A file that other
    accounts can change is added to the system's, and only for a gate that does not enforce.
    """
    given = os.environ.get("DSDOCTOR_CONFIG")
    if not given:
        return _with_file(request, SYSTEM_CONFIG) if os.path.lexists(SYSTEM_CONFIG) else request
    path = Path(given)
    distrust = why_untrusted(path, trusted_accounts() - {os.geteuid()} | {0})
    if has_job_environment(request):
        distrust = "under this scheduler the environment is that of the job"
    if (distrust or request.kind in _IN_THE_JOB) and os.path.lexists(SYSTEM_CONFIG):
        request = _with_file(request, SYSTEM_CONFIG)
    if distrust and (is_root() or request.enforce or request.fail_closed):
        problem = f"`DSDOCTOR_CONFIG` is ignored: {distrust}"
        return dataclasses.replace(request, problems=(*request.problems, problem))
    return _with_file(request, path)


def _with_file(request: Request, path: Path) -> Request:
    distrust = why_untrusted(path) if is_root() else ""
    if distrust:
        problem = f"`{path}` is ignored: {distrust}"
        return dataclasses.replace(request, problems=(*request.problems, problem))
    from dsdoctor import settings  # noqa: PLC0415  # only if there is a configuration

    found, problems = settings.for_hook(path)
    return configured(
        dataclasses.replace(
            request,
            ignore=(*request.ignore, *found.ignore),
            limits={**request.limits, **found.limits},
            problems=(*request.problems, *problems),
        ),
        found.hook,
    )


def _report(
    request: Request, decision: Decision, folder: RunFolder | None, seconds: float, node: str
) -> None:
    _print(outputs.stdout(request, decision, seconds))
    if request.textfile is not None:
        counts = {} if folder is None else folder.counts()
        text = outputs.prometheus(request, decision, counts, seconds, time.time())
        if folder is not None:
            day = gatelog.summarize(gatelog.read(folder.path), node)
            text += "\n".join([*gatelog.metrics(day), ""])
        try:
            files.write(request.textfile, text, mode=0o644, strict=True)
        except OSError as error:
            _log(f"hook={request.kind} `--textfile {request.textfile}`: {error.strerror}")
    if request.kind == "k8s":
        place = Path(request.termination_log or "/dev/termination-log")
        if request.termination_log or place.exists():
            with contextlib.suppress(OSError):
                files.write(place, outputs.termination(decision))


def _print(text: str) -> None:
    """Writes to stdout; a closed stdout or a full disk must not change the exit status."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        sys.stdout = io.StringIO()  # the interpreter flushes stdout again at exit


def _log(line: str) -> None:
    """Writes to syslog, which journald reads too; does not wait for one that blocks."""

    def write() -> None:
        with contextlib.suppress(ImportError, OSError):
            import syslog  # noqa: PLC0415  # not on Windows

            syslog.openlog("dsdoctor", syslog.LOG_PID, syslog.LOG_DAEMON)
            syslog.syslog(syslog.LOG_NOTICE, line)

    if _syslog_blocks:
        return
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(_LOG_SECONDS)
    if thread.is_alive():
        _syslog_blocks.append(True)
