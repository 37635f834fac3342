"""Formats a decision for each scheduler. Pure functions, standard library only."""

from __future__ import annotations

import dataclasses
from typing import Any

from dsdoctor.hook.decide import PREFIX, Decision, Fault
from dsdoctor.hook.request import Request
from dsdoctor.model.plain import one_line, shortened

#: Exit statuses of Kubernetes' init container, for `podFailurePolicy`.
K8S_NODE_FAULT = 1
K8S_JOB_FAULT = 4
#: PBS aborts a batch job whose prologue ends with 1, and requeues it for any other status but 0
#: (OpenPBS, src/resmom/start_exec.c of 2026-04-10, after `run_pelog`; TORQUE 4.1.3 administrator's
#: guide, G.5 "Prologue error processing"; both read 2026-11-22).
PBS_REQUEUE = 2
#: The status for an inconclusive verdict and for a fault of dsdoctor itself: for Nagios 2 means
#: CRITICAL and 1 WARNING, for node-problem-detector 1 means a faulty node.
UNKNOWN_STATUS = {"npd": 2, "nagios": 3}
#: node-problem-detector truncates messages to this (`max_output_length`).
NPD_LENGTH = 80
#: Kubernetes truncates a termination message to this.
TERMINATION_BYTES = 4096
_NAGIOS = {"healthy": 0, "faulty": 2, "unknown": UNKNOWN_STATUS["nagios"]}


def settle(request: Request, decision: Decision) -> Decision:
    """The decision, with `block` only if this kind of hook can block.

    Monitors block nothing. A task prolog ends a task only with --enforce, and never for its
    environment: the batch script that activates another one has not run yet.
    """
    if request.kind != "slurm-task-prolog" and request.kind not in UNKNOWN_STATUS:
        return decision
    enforced = request.kind == "slurm-task-prolog" and (request.enforce or request.fail_closed)
    blocking = any(fault.scope != "user-env" for fault in decision.faults)
    if enforced and (blocking or not decision.faults):
        return decision
    return dataclasses.replace(decision, block=False, would_block=False)


def exit_status(request: Request, decision: Decision) -> int:
    """The exit status of the hook."""
    if request.kind == "npd":
        return {"healthy": 0, "faulty": 1}.get(decision.verdict, UNKNOWN_STATUS["npd"])
    if request.kind == "nagios":
        code = _NAGIOS[decision.verdict]
        return 1 if code == 0 and decision.warnings else code
    if not decision.block:
        return 0
    if request.kind == "k8s" and decision.faults:
        node = any(fault.scope == "node" for fault in decision.faults)
        return K8S_NODE_FAULT if node else K8S_JOB_FAULT
    return PBS_REQUEUE if request.kind == "pbs-prologue" else 1


def stdout(request: Request, decision: Decision, seconds: float) -> str:
    """What the hook prints."""
    if request.kind == "slurm-task-prolog":
        return _task_prolog(decision)
    if request.kind == "npd":
        return shortened(one_line(_first_line(decision)), NPD_LENGTH) + "\n"
    if request.kind == "nagios":
        return _nagios(request, decision, seconds)
    if request.kind == "sge-prolog" and not decision.block:
        return ""  # it is written into the output of the job
    lines = [one_line(decision.reason)]
    if decision.would_block:
        lines[0] += " (dry run: the job passes)"
    for number, fault in enumerate(decision.faults):
        lines += [f"  {one_line(fault.line)}"] * bool(number)  # the reason contains the first one
        lines += [f"  hint: {one_line(fault.hint)}"] * bool(fault.hint)
    lines += _problems(request, decision)
    return "\n".join(lines) + "\n"


def _problems(request: Request, decision: Decision) -> list[str]:
    """Lines about mistakes in the configuration, so that the reader can correct them."""
    return [
        f"  configuration: {one_line(text)}" for text in (*request.problems, *decision.problems)
    ]


def _first_line(decision: Decision) -> str:
    if decision.faults:
        return f"{PREFIX} {decision.faults[0].line}"
    return decision.reason


def _task_prolog(decision: Decision) -> str:
    """Lines that slurmstepd reads: `print` for the task's output, `export` for its variables."""
    lines = []
    for fault in decision.faults:
        lines.append(f"print {PREFIX} {one_line(fault.line)}")
        if fault.hint:
            lines.append(f"print {PREFIX}   hint: {one_line(fault.hint)}")
    lines += [f"print {PREFIX} warning {one_line(fault.line)}" for fault in decision.warnings]
    if decision.cause == "usage":  # the job set an interpreter or a file that does not exist
        lines.append(f"print {PREFIX} not judged: {one_line(decision.detail)}")
    lines.append(f"export DSDOCTOR_VERDICT={decision.verdict}")
    return "\n".join(lines) + "\n"


def _nagios(request: Request, decision: Decision, seconds: float) -> str:
    code = exit_status(request, decision)
    word = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}[code]
    text = one_line(decision.reason if code != 1 else f"{PREFIX} {decision.warnings[0].line}")
    text = text.replace("|", "/")  # begins the performance data
    counts = decision.counts
    perf = [
        f"failed={len(decision.faults)};;0",
        f"warnings={len(decision.warnings)};0",
        f"ok={counts.get('ok', 0)}",
        f"time={seconds:.3f}s;;{request.budget:g};0",
    ]
    first = f"DSDOCTOR {word} - {text} | {' '.join(perf)}"
    return "\n".join([first, *_problems(request, decision)]).replace("\n  ", "\n") + "\n"


def termination(decision: Decision) -> str:
    """The termination message of a container: each problem completely or not at all, with its hint.

    `kubectl get` and dashboards show only the first line, so it is about the decisive problem.
    """
    parts = []
    for number, fault in enumerate(decision.faults):
        hint = f"\n  hint: {one_line(fault.hint)}" if fault.hint else ""
        parts.append((one_line(decision.reason if number == 0 else fault.line), hint))
    text = ""
    for line, hint in parts or [(one_line(decision.reason), "")]:
        for more in (f"{line}{hint}", line):
            longer = f"{text}\n{more}" if text else more
            if len(longer.encode()) <= TERMINATION_BYTES:
                text = longer
                break
    if not text:  # a single line that exceeds the limit
        text = one_line(decision.reason).encode()[:TERMINATION_BYTES].decode("utf-8", "ignore")
    return text


def log_line(request: Request, decision: Decision, job: str, node: str, seconds: float) -> str:
    """The line for syslog and journald."""
    word = "block" if decision.block else "pass"
    parts = [f"hook={request.kind}", f"decision={word}", f"verdict={decision.verdict}"]
    if decision.cause:
        parts.append(f"cause={decision.cause}")
    if decision.would_block:
        parts.append("dry-run=would-block")
    if job:
        parts.append(f"job={one_line(job)}")
    if node:
        parts.append(f"node={one_line(node)}")
    parts.append(f"seconds={seconds:.2f}")
    if decision.reused:
        parts.append("reused=yes")
    return f"{' '.join(parts)} {shortened(one_line(decision.reason), 300)}"


def note_line(request: Request, found: Fault, job: str, node: str) -> str:
    """The line for syslog about what a job left."""
    words = f"hook={request.kind} note={found.condition} job={one_line(job)} node={one_line(node)}"
    return f"{words} {shortened(one_line(found.message), 300)}"


def noted(decision: Decision) -> str:
    """Conditions about what a job left, joined by `+`: one word in the log of the gate.

    >>> noted(Decision(notes=(Fault("", "b", ""), Fault("", "a", ""), Fault("", "b", ""))))
    'a+b'
    """
    return "+".join(sorted({found.condition for found in decision.notes}))


def would(decision: Decision) -> str:
    """Why a hook would block without --dry-run: a condition or a cause; empty if it would not.

    >>> would(Decision(would_block=True, cause="timeout")), would(Decision(cause="timeout"))
    ('timeout', '')
    """
    if not decision.would_block:
        return ""
    return decision.faults[0].condition if decision.faults else decision.cause or ""


def note(
    request: Request, decision: Decision, job: str, node: str, seconds: float
) -> dict[str, object]:
    """The line for the log of the gate."""
    return {
        "event": "end",
        "hook": request.kind,
        "node": one_line(node),
        "job": one_line(job),
        "decision": "block" if decision.block else "pass",
        "verdict": decision.verdict,
        "cause": decision.cause,
        "condition": decision.faults[0].condition if decision.block and decision.faults else "",
        "would": would(decision),
        "seconds": f"{seconds:.2f}",
        "noted": noted(decision),
    }


def record(request: Request, decision: Decision, more: dict[str, Any]) -> dict[str, Any]:
    """The verdict file (`--json`)."""
    return {
        "schema": "dsdoctor/hook",
        "version": 1,
        "kind": request.kind,
        "decision": "block" if decision.block else "pass",
        "verdict": decision.verdict,
        "cause": decision.cause,
        "detail": decision.detail,
        "reason": decision.reason,
        "dry_run": request.dry_run,
        "would_block": decision.would_block,
        "would": would(decision),
        "reused": decision.reused,
        "counts": decision.counts,
        "noted": noted(decision),
        "token": request.token,
        "findings": [
            {
                "id": fault.id,
                "condition": fault.condition,
                "status": status,
                "message": fault.message,
                "hint": fault.hint,
                "scope": fault.scope,
            }
            for status, faults in (("fail", decision.faults), ("warn", decision.warnings))
            for fault in faults
        ],
        **more,
    }


def prometheus(
    request: Request, decision: Decision, counts: dict[str, int], seconds: float, now: float
) -> str:
    """The text format of Prometheus, for the textfile collector of node_exporter."""
    kind = f'hook="{request.kind}"'
    lines = [
        "# HELP dsdoctor_hook_healthy 1 healthy, 0 faulty, -1 inconclusive",
        "# TYPE dsdoctor_hook_healthy gauge",
        f"dsdoctor_hook_healthy{{{kind}}} "
        + {"healthy": "1", "faulty": "0"}.get(decision.verdict, "-1"),
        "# HELP dsdoctor_hook_blocked whether the last decision blocked",
        "# TYPE dsdoctor_hook_blocked gauge",
        f"dsdoctor_hook_blocked{{{kind}}} {int(decision.block)}",
        "# HELP dsdoctor_hook_seconds wall time of the last decision",
        "# TYPE dsdoctor_hook_seconds gauge",
        f"dsdoctor_hook_seconds{{{kind}}} {seconds:.3f}",
        "# HELP dsdoctor_hook_timestamp_seconds when that was",
        "# TYPE dsdoctor_hook_timestamp_seconds gauge",
        f"dsdoctor_hook_timestamp_seconds{{{kind}}} {now:.0f}",
        "# HELP dsdoctor_condition_failed confirmed failures of the last decision",
        "# TYPE dsdoctor_condition_failed gauge",
    ]
    lines += [
        f'dsdoctor_condition_failed{{condition="{fault.condition}",id="{fault.id}"}} 1'
        for fault in {f.condition: f for f in decision.faults}.values()
    ]
    lines += [
        "# HELP dsdoctor_hook_fail_open_total jobs let pass though the check was inconclusive",
        "# TYPE dsdoctor_hook_fail_open_total counter",
    ]
    lines += [
        f'dsdoctor_hook_fail_open_total{{cause="{cause}"}} {count}'
        for cause, count in sorted(counts.items())
    ]
    return "\n".join(lines) + "\n"
