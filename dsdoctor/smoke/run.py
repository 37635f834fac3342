"""One smoke run from end to end: attempt, report, bisection."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping

import msgspec

from dsdoctor.host.own_environment import own_environment
from dsdoctor.model.redact import mask_tree
from dsdoctor.model.smoke import Knob, SmokeReport
from dsdoctor.packs.registry import Registry
from dsdoctor.smoke import verdict
from dsdoctor.smoke.attempt import OnProgress
from dsdoctor.smoke.bisection import knobs
from dsdoctor.smoke.job import SmokePlan
from dsdoctor.smoke.launcher import attempt, remove_stale


@dataclasses.dataclass
class Signals:
    """The signal that ended the run; 0 = none."""

    number: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """How to run.

    Attributes:
        timeout: seconds for one attempt, without compiling ops.
        bisect: look for a change with which the run passes.
        budget: seconds for all attempts of the bisection.
    """

    timeout: float = 300.0
    bisect: bool = False
    budget: float = 600.0


@contextlib.contextmanager
def interruptible() -> Iterator[Signals]:
    """SIGTERM and SIGHUP end a run like Ctrl-C; a second one does not interrupt the cleanup."""
    seen = Signals()

    def end(number: int, _frame: object) -> None:
        if not seen.number:
            seen.number = number
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    # not if `nohup` ignores it
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def once(
    plan: SmokePlan,
    python: str,
    registry: Registry,
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> SmokeReport:
    """One attempt and its report; nothing of the attempt is left when it returns."""
    base = own_environment(os.environ if env is None else env)
    with attempt(plan, python, timeout=timeout, base_env=base, on_progress=on_progress) as made:
        found = verdict.report(made, registry)
    changed: SmokeReport = msgspec.structs.replace(found, leftovers=made.leftovers)
    return masked(changed)


def masked(report: SmokeReport) -> SmokeReport:
    """A report without secrets: it quotes commands, variables, a config, stacks and logs."""
    return msgspec.convert(mask_tree(msgspec.to_builtins(report)), SmokeReport)


def prove(
    plan: SmokePlan,
    python: str,
    registry: Registry,
    options: ProofOptions,
    *,
    env: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> SmokeReport:
    """Runs a plan; if it fails, looks for the single change with which it passes.

    Args:
        plan: what to run.
        python: the patient's interpreter.
        registry: the conditions of causes.
        options: time limits.
        env: the user's variables.
        on_progress: called with phases and attempts as they begin.

    Raises:
        UsageError: the plan has no command that can be run here.
    """
    remove_stale()
    begun = time.monotonic()
    found = once(plan, python, registry, timeout=options.timeout, env=env, on_progress=on_progress)
    if found.verdict != "fail" or not options.bisect:
        return found
    changed: SmokeReport = msgspec.structs.replace(
        _bisected(plan, found, python, registry, options, env=env, on_progress=on_progress),
        seconds=round(time.monotonic() - begun, 2),
    )
    return changed


def _bisected(
    plan: SmokePlan,
    failed: SmokeReport,
    python: str,
    registry: Registry,
    options: ProofOptions,
    *,
    env: Mapping[str, str] | None,
    on_progress: OnProgress | None,
) -> SmokeReport:
    """The report of a failed run, with the single change that makes it pass, if there is one."""
    rows: list[Knob] = []
    works: dict[str, str] | None = None
    deadline = time.monotonic() + options.budget
    partial = False
    for knob in knobs(plan, failed, registry):
        left = deadline - time.monotonic()
        if left <= 1.0:
            break
        if on_progress is not None:
            on_progress(f"trying {knob.knob}={knob.value}", "", None)
        limit = min(left, options.timeout)
        tried = once(knob.change(plan), python, registry, timeout=limit, env=env)
        cost = knob.cost
        if tried.figures.bandwidth:
            last = tried.figures.bandwidth[-1]
            cost += f"; all-reduce reached {last.gb_per_s:.2f} GB/s with it"
        rows.append(
            Knob(
                knob=knob.knob, value=knob.value, verdict=tried.verdict, seconds=tried.seconds,
                cost=cost,
            )
        )  # fmt: skip
        if tried.verdict == "pass":
            works = {knob.knob: knob.value}
            break
        if tried.partial:
            partial = True
            break
    changed: SmokeReport = msgspec.structs.replace(
        failed, bisect=tuple(rows), works_with=works, partial=partial
    )
    return changed
