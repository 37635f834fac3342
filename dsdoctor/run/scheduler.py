"""What Slurm reports about a job: its number, and how it ended.

Sources: squeue(1), scontrol(1) and sacct(1) of Slurm 22.05 and 25.05; the output of srun and salloc
in `src/srun/libsrun/allocate.c` and `src/salloc/salloc.c`; read 2026-11, and tried with 22.05.8.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dsdoctor import files, process
from dsdoctor.host.account import own_tool
from dsdoctor.model.units import whole

#: How long one answer may take.
ASK_SECONDS = 5.0
#: Slurm's times are whole seconds, and clocks that NTP synchronizes hardly differ.
_SKEW_SECONDS = 2.0
_ANNOUNCED = re.compile(
    rb"(?m)^(?:srun|salloc): (?:error: )?"
    rb"(?:job|Granted job allocation|Pending job allocation|Force Terminated job) (\d{1,10})\b"
)
#: How much is read of the output's first and last part: srun prints before the job and after it.
_READ_BYTES = 1 << 20
#: How long Slurm may take to settle the state of a job whose processes it is ending.
SETTLING_SECONDS = 3.0


def _answer(name: str, *words: str, env: Mapping[str, str] | None = None) -> str:
    """The output of a Slurm tool; "" = it is missing or fails."""
    tool = own_tool(name)
    if tool is None:
        return ""
    try:
        done = process.run([tool, *words], timeout=ASK_SECONDS, env=env)
    except OSError:
        return ""
    return done.text if done.ok else ""


def announced_job(parts: Sequence[bytes]) -> str:
    r"""The job number that srun or salloc printed; "" = none, or more than one.

    >>> announced_job([b"srun: job 17 queued and waiting for resources\\n"])
    '17'
    """
    found = {match[1].decode() for part in parts for match in _ANNOUNCED.finditer(part)}
    return found.pop() if len(found) == 1 else ""


def job_of_session(text: str, session: int, begun: float, ended: float) -> str:
    """The job that a session submitted in a span of time; "" = none, or more than one.

    Args:
        text: rows of `squeue`: job, session, time of submission.
        session: of the command.
        begun: seconds since the epoch.
        ended: the same.
    """
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == str(session):  # noqa: PLR2004
            with contextlib.suppress(ValueError, OverflowError):
                at = time.mktime(time.strptime(words[2], "%Y-%m-%dT%H:%M:%S"))
                if begun - _SKEW_SECONDS <= at <= ended + _SKEW_SECONDS:
                    found.append(words[0])
    return found[0] if len(found) == 1 else ""


def find_job(folder: Path, session: int, begun: float, ended: float) -> str:
    """The Slurm job of a command that ran on other hosts; "" = not known.

    srun prints its job only if it has to wait; otherwise the controller knows which session
    submitted it.

    Args:
        folder: of the run.
        session: of the command.
        begun: when it was started, seconds since the epoch.
        ended: when it ended.
    """
    if job := announced_job(_ends_of_output(folder)):
        return job
    env = {**os.environ, "SLURM_TIME_FORMAT": "standard"}
    for name in ("SQUEUE_FORMAT", "SQUEUE_FORMAT2"):
        env.pop(name, None)
    rows = _answer(
        "squeue", "--noheader", "--all", "--states=all", f"--user={os.getuid()}",
        "--Format=JobID:24,AllocSID:24,SubmitTime:24", env=env,
    )  # fmt: skip
    return job_of_session(rows, session, begun, ended)


def _ends_of_output(folder: Path) -> list[bytes]:
    """The first and the last part of the stored output."""
    import gzip  # noqa: PLC0415  # only if a job died
    import zlib  # noqa: PLC0415

    paths = sorted(folder.glob("output-*.log.gz"))
    parts = []
    for path in dict.fromkeys((*paths[:1], *paths[-2:])):
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
            data = file.read()
            parts += [data[:_READ_BYTES], data[-_READ_BYTES:]]
    return parts


def ask(folder: Path, job: str) -> str:
    """Stores Slurm's report on a job: its output never shows a time limit or a requeue.

    Args:
        folder: of the run.
        job: its number; "" = none.

    Returns:
        How the job ended, such as `TIMEOUT`; "" if Slurm does not report it.
    """
    if whole(job) is None:
        return ""
    text = _from_controller(job) or _from_accounting(job)
    if not text:
        return ""
    from dsdoctor.model.redact import mask  # noqa: PLC0415  # only if Slurm has answered

    with contextlib.suppress(OSError):
        lines = "\n".join(mask(line) for line in text.splitlines())
        files.write(folder / "scheduler.log", lines, mode=0o600)
    state = re.search(r"\bJobState=([A-Z_]+)", text) or re.match(rf"{job}\s+([A-Z_]+)\b", text)
    return state[1] if state else ""


def _from_controller(job: str) -> str:
    """`scontrol show job`, which knows a job for some minutes after it ends (`MinJobAge`)."""
    until = time.monotonic() + SETTLING_SECONDS
    text = _answer("scontrol", "show", "job", job)
    # this state hides the one that shows how the job ended
    while "JobState=COMPLETING" in text and time.monotonic() < until:
        time.sleep(0.25)
        text = _answer("scontrol", "show", "job", job)
    return text


def _from_accounting(job: str) -> str:
    """The same from `sacct`, for a job that the controller no longer knows."""
    columns = "--format=JobID,State%20,ExitCode,NodeList%64"
    return _answer("sacct", "--noheader", "--allocations", f"--jobs={job}", columns)
