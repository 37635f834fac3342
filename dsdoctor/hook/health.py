"""What the hooks change in Slurm, with `scontrol`.

The health program drains a faulty node, sets the reason of dsdoctor's drains and undoes only those:
`plan` decides, and is pure; `act` carries it out. A prolog that blocks a job can set the reason
itself (`drain_with_reason`) and writes it into the job's comment (`comment_on_job`), from which the
task prolog of the next start prints it (`comment_of_job`).
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from dsdoctor.hook.decide import PREFIX, Decision
from dsdoctor.hook.job_end import left_behind
from dsdoctor.hook.request import Request
from dsdoctor.hook.rundir import NODE_FILE, RunFolder
from dsdoctor.model.plain import one_line, shortened

#: The reasons that slurmctld sets when a prolog or an epilog fails.
SLURM_REASONS = ("Prolog error", "Epilog error")
#: For one call; a health program makes at most two, within a budget of 10 s.
SCONTROL_SECONDS = 4.0
#: A drain belongs to a stamp if it happened within so many seconds of it.
_NEAR_SECONDS = 120.0
_REASON_LENGTH = 200


def parse_node(line: str) -> tuple[frozenset[str], str, str]:
    """State flags, reason and time of the reason in a line of `scontrol show node -o`.

    >>> line = "NodeName=n1 State=IDLE+DRAIN Reason=Prolog error [root@2026-01-01T01:02:03]"
    >>> flags, reason, since = parse_node(line)
    >>> sorted(flags), reason, since
    (['DRAIN', 'IDLE'], 'Prolog error', '2026-01-01T01:02:03')
    """
    state = re.search(r"\bState=(\S+)", line)
    reason = re.search(r"\bReason=(.*?)(?: \[[^\[\]@]*@([^\[\]]+)\])?\s*(?:Comment=.*)?$", line)
    flags = frozenset(state[1].rstrip("*~#!%$@^-").split("+")) if state else frozenset()
    if reason is None:
        return flags, "", ""
    return flags, reason[1].strip(), reason[2] or ""


def plan(
    state: frozenset[str],
    reason: str,
    since: str,
    decision: Decision,
    stamp: dict[str, Any] | None,
    *,
    held: bool = False,
) -> list[tuple[str, str]]:
    """What to change in Slurm: (`drain`, reason), (`reason`, reason) or (`resume`, "").

    Args:
        state: flags of the node, as `parse_node` returns them.
        reason: of its drain.
        since: time of the reason.
        decision: on the node, as it is now.
        stamp: the note of the prolog or epilog that drained it.
        held: the fault persists, though the node alone does not show it; nothing is resumed.

    >>> faulty = Decision(block=True, verdict="faulty", cause="x")
    >>> plan(frozenset({"IDLE"}), "", "", faulty, None)[0][0]
    'drain'
    >>> healthy = Decision(verdict="healthy")
    >>> plan(frozenset({"IDLE", "DRAIN"}), "dsdoctor: DSD601 …", "", healthy, None)
    [('resume', '')]
    >>> plan(frozenset({"IDLE", "DRAIN"}), "disk swap", "", healthy, None)
    []
    """
    drained = "DRAIN" in state
    ours = reason.startswith(PREFIX)
    stamped = reason in SLURM_REASONS and stamp is not None and _belongs(stamp, since)
    if decision.block or decision.would_block:
        if not drained:
            return [("drain", decision.reason)]
        return [("reason", decision.reason)] if stamped else []
    if decision.verdict != "healthy" or not drained:
        return []
    if stamped and stamp is not None:
        # the reason must show that it is dsdoctor's before anything is undone; the next run resumes
        return [("reason", str(stamp.get("reason") or f"{PREFIX} blocked a job"))]
    return [("resume", "")] if ours and not held else []


def lacks_gpus(stamp: dict[str, Any] | None, folder: RunFolder) -> bool:
    """Whether the driver still does not list a GPU that was assigned to the blocked job.

    Only the job shows how many GPUs are expected: on its own, a node that lost one looks healthy.
    """
    given = (stamp or {}).get("gpus") or {}
    listed = (folder.read(NODE_FILE) or {}).get("uuids") or {}
    return any(number.isdecimal() and number not in listed for number in given)


def _belongs(stamp: dict[str, Any], since: str) -> bool:
    """Whether the drain at this time is the one for which a prolog left its stamp."""
    try:
        drained = dt.datetime.fromisoformat(since).timestamp()
    except ValueError:
        return False
    return abs(drained - float(stamp.get("time", 0.0))) <= _NEAR_SECONDS


def act(request: Request, decision: Decision, folder: RunFolder, node: str) -> int:
    """Changes the node's state as `plan` decides; returns 0 unless the node is faulty."""
    status = 1 if decision.block else 0
    line = _scontrol("show", "node", node, "--oneliner")
    if line is None:
        return status
    state, reason, since = parse_node(line.strip())
    stamp = folder.stamped(node)
    held = bool(left_behind(stamp)) or lacks_gpus(stamp, folder)
    for what, text in plan(state, reason, since, decision, stamp, held=held):
        if request.dry_run:
            sys.stdout.write(f"dry run: would {what} {node} {text}\n")
            continue
        if what == "resume":
            folder.unstamp(node)
            _scontrol("update", f"nodename={node}", "state=resume")
        elif what == "drain":
            _drain(node, text)
        else:
            _scontrol("update", f"nodename={node}", f"reason={_reason(text)}")
        sys.stdout.write(f"{what} {node} {text}\n")
    return status


def drain_with_reason(node: str, reason: str, seconds: float) -> None:
    """Drains a node from within the prolog, with its reason (`--reason-from-prolog`).

    Args:
        node: to drain.
        reason: begins with `PREFIX`.
        seconds: limit for scontrol.
    """
    _scontrol(
        "update", f"nodename={node}", "state=drain", f"reason={_reason(reason)}", timeout=seconds
    )


def comment_on_job(job: str, node: str, decision: Decision, seconds: float) -> None:
    """Writes into a job's AdminComment why it did not start on a node (`--job-comment`).

    `scontrol show job` shows it to the user, and the task prolog of the requeued job prints it. It
    is the administrator's field: the user's own comment does not change.
    """
    why = shortened(decision.reason.removeprefix(PREFIX).strip(), _REASON_LENGTH)
    text = (
        f"{PREFIX} {node}: {why}; the node is drained, a batch job is requeued, "
        "srun and salloc must be started again"
    )
    _scontrol("update", f"jobid={job}", f"admincomment={one_line(text)}", timeout=seconds)


def comment_of_job(job: str, seconds: float) -> str:
    """What `comment_on_job` wrote, without `PREFIX`; empty if it wrote nothing."""
    shown = _scontrol("show", "job", job, timeout=seconds) or ""
    found = re.search(rf"(?m)^\s*AdminComment={re.escape(PREFIX)} *(.*?)\s*$", shown)
    return found[1].partition("; the node is drained")[0] if found else ""


def _drain(node: str, reason: str) -> None:
    _scontrol("update", f"nodename={node}", "state=drain", f"reason={_reason(reason)}")


def _reason(text: str) -> str:
    return shortened(one_line(text), _REASON_LENGTH)


def _scontrol(*words: str, timeout: float = SCONTROL_SECONDS) -> str | None:
    return call("DSDOCTOR_SCONTROL", "scontrol", words, timeout=timeout)


def call(
    variable: str, usual: str, words: Sequence[str], *, timeout: float = SCONTROL_SECONDS
) -> str | None:
    """The output of a scheduler's command; None if it failed, which is printed.

    Args:
        variable: environment variable with the program.
        usual: the program if the variable is not set.
        words: its arguments.
        timeout: seconds.
    """
    from dsdoctor import process  # noqa: PLC0415  # no other hook needs it here
    from dsdoctor.host import account  # noqa: PLC0415

    path = os.environ.get("PATH") or "/usr/sbin:/usr/bin:/sbin:/bin"
    name = os.environ.get(variable) or usual
    program = account.own_tool(name, path=path)
    if program is None:
        sys.stdout.write(f"dsdoctor: `{name}` does not exist, or root must not run it\n")
        return None
    try:
        done = process.run([program, *words], timeout=timeout, env={**os.environ, "PATH": path})
    except OSError as error:
        sys.stdout.write(f"dsdoctor: `{program}` cannot be run ({error.strerror})\n")
        return None
    if not done.ok:
        sys.stdout.write(f"dsdoctor: `{program} {' '.join(words)}`: {done.error_text}\n")
        return None
    return done.text
