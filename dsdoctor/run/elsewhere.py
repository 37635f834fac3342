"""Commands that start the job on other hosts and wait for it; of srun, Slurm knows how it ended.

A task or batch script has `SLURMD_NODENAME`; a shell on a log-in node does not, not even inside
`salloc`. Sources: srun(1), salloc(1), squeue(1) and sacct(1) of Slurm 22.05 and 25.05; what they
print is from `src/srun/libsrun/allocate.c` and `src/salloc/salloc.c`; read 2026-11, and seen with
22.05.8.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dsdoctor import process
from dsdoctor.host.account import own_tool
from dsdoctor.model.run_record import RunRecord
from dsdoctor.probes.command_line import parse_command

#: Commands of Slurm that start a job on other hosts and wait for it.
SLURM = frozenset({"srun", "salloc"})
#: Others, by their words up to the one that says so.
_OTHERS = (("sbatch",), ("ssh",), ("pdsh",), ("clush",), ("kubectl", "exec"), ("kubectl", "run"),
           ("kubectl", "attach"), ("ray", "job", "submit"))  # fmt: skip
#: How Slurm says that a job has failed. srun's own status may be 0 even so, as it is where a node
#: has failed (22.05.8).
FAILED_STATES = frozenset(
    {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
     "REVOKED", "TIMEOUT"}
)  # fmt: skip
ASK_SECONDS = 5.0
#: Times of Slurm are whole seconds, and two clocks that NTP keeps hardly differ.
_SKEW_SECONDS = 2.0
_ANNOUNCED = re.compile(
    rb"(?m)^(?:srun|salloc): (?:error: )?"
    rb"(?:job|Granted job allocation|Pending job allocation|Force Terminated job) (\d{1,10})\b"
)
#: What is read of the output's first and last part: srun speaks before the job and after it.
_READ_BYTES = 1 << 20


def starter(command: Sequence[str], env: Mapping[str, str]) -> str:
    """The command that runs this one on other hosts; "" = it runs on this one.

    >>> starter(["srun", "-N2", "python", "train.py"], {})
    'srun'
    >>> starter(["srun", "-N2", "python", "train.py"], {"SLURMD_NODENAME": "n1"})
    ''
    >>> starter(["ssh", "-t", "gpu1", "torchrun", "train.py"], {})
    'ssh'
    >>> starter(["kubectl", "-n", "ml", "exec", "trainer-0", "--", "torchrun", "train.py"], {})
    'kubectl exec'
    """
    program = parse_command(tuple(command)).program
    name = posixpath.basename(program)
    if name in SLURM:
        return "" if env.get("SLURMD_NODENAME") else name
    place = command.index(program) if program in command else 0
    words = [word for word in command[place + 1 :] if not word.startswith("-")]
    for first, *rest in _OTHERS:
        if first == name and rest == [word for word in words if word in rest][: len(rest)]:
            return " ".join((first, *rest))
    return ""


def died(record: RunRecord) -> bool:
    """Whether a run that has ended died: by its status, or by what Slurm says of its job."""
    if record.status in (0, None):
        return record.elsewhere in SLURM and record.slurm_state in FAILED_STATES
    return True


def announced_job(parts: Sequence[bytes]) -> str:
    r"""The job that srun or salloc has named in the output; "" = none, or more than one.

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
    """The Slurm job of a command that ran elsewhere; "" = it is not known.

    srun names its job only where it has to wait; else the controller knows which session has
    submitted it.

    Args:
        folder: of the run.
        session: of the command.
        begun: when it was started, seconds since the epoch.
        ended: when it ended.
    """
    if job := announced_job(_ends_of_output(folder)):
        return job
    tool = own_tool("squeue")
    if tool is None:
        return ""
    form = "JobID:24,AllocSID:24,SubmitTime:24"
    argv = [
        tool,
        "--noheader",
        "--all",
        "--states=all",
        f"--user={os.getuid()}",
        f"--Format={form}",
    ]
    env = {**os.environ, "SLURM_TIME_FORMAT": "standard"}
    for name in ("SQUEUE_FORMAT", "SQUEUE_FORMAT2"):
        env.pop(name, None)
    try:
        answer = process.run(argv, timeout=ASK_SECONDS, env=env)
    except OSError:
        return ""
    return job_of_session(answer.text, session, begun, ended) if answer.ok else ""


def _ends_of_output(folder: Path) -> list[bytes]:
    """The first and the last part of what was kept of the output."""
    import gzip  # noqa: PLC0415  # only where a job died
    import zlib  # noqa: PLC0415

    paths = sorted(folder.glob("output-*.log.gz"))
    parts = []
    for path in dict.fromkeys((*paths[:1], *paths[-2:])):
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
            data = file.read()
            parts += [data[:_READ_BYTES], data[-_READ_BYTES:]]
    return parts
