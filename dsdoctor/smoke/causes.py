"""From the observations of a failed run to the condition that explains it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dsdoctor import logs
from dsdoctor.lazy_regex import lazy
from dsdoctor.model.diagnosis import Cause, Diagnosis, Outcome
from dsdoctor.model.observation import Observation
from dsdoctor.model.smoke import SmokeCause
from dsdoctor.packs.registry import Registry
from dsdoctor.smoke.attempt import Attempt, culprit
from dsdoctor.smoke.track import Progress

_SIGKILL_WORDS = ("-9", "SIGKILL", "ignal 9", "137", "Killed")
#: Who sent it. The word "memory" alone may be part of a path that the launcher prints.
_MEMORY_RAN_OUT = lazy(
    r"(?i)out of memory|memory cgroup|memory pressure|low on memory|\boom[-_ ]?kill"
)
#: If a log shows nothing but these, the hang itself is the better answer.
_SYMPTOMS = (Observation.NO_COLLECTIVE, Observation.KILLED_FOR_MEMORY, Observation.NO_RENDEZVOUS)

#: What ranks that make no progress wait for, by phase. In other phases they wait for no other rank.
_WAITING = {
    "spawn": Observation.NO_RENDEZVOUS,
    "rendezvous": Observation.NO_RENDEZVOUS,
    **dict.fromkeys(
        ("collectives", "engine-init", "steps", "checkpoint", "teardown"),
        Observation.NO_COLLECTIVE,
    ),
}
#: A run without any event for this long hangs.
ALIVE_SECONDS = 5.0


def cause_for(
    registry: Registry, seen: Observation, message: str, evidence: Iterable[str] = ()
) -> SmokeCause:
    """The cause for an observation: the condition of a pack, with its title and fix."""
    unit = registry.for_observation(seen)
    condition = unit.condition.name if unit else seen.value
    return SmokeCause(
        condition=condition,
        title=unit.title if unit else condition,
        message=message,
        hint=unit.hint if unit else "",
        fixes=unit.condition.fixes if unit else (),
        evidence=tuple(evidence),
    )


def read_logs(made: Attempt, registry: Registry) -> Diagnosis:
    """The causes in the logs of launcher and ranks alone."""
    files = sorted(made.folder.glob("rank-*.log"))
    sources = [*files, made.folder / "launcher.log"]
    return logs.diagnose_paths(
        [str(path) for path in sources if path.exists()], logs.signatures_of(registry)
    )


def _of_log(cause: Cause) -> SmokeCause:
    return SmokeCause(
        condition=cause.condition,
        title=cause.title,
        message=cause.message,
        hint=cause.hint,
        fixes=cause.fixes,
        evidence=tuple(line.text for line in cause.evidence),
    )


def _is_condition_of(condition: str, seen: Observation, registry: Registry) -> bool:
    unit = registry.for_observation(seen)
    return unit is not None and unit.condition.name == condition


def _only_a_signal(cause: Cause, registry: Registry) -> bool:
    """Whether signal 9 is a log's only evidence for memory as the cause."""
    return _is_condition_of(cause.condition, Observation.KILLED_FOR_MEMORY, registry) and all(
        any(word in line.text for word in _SIGKILL_WORDS) and not _MEMORY_RAN_OUT.search(line.text)
        for line in cause.evidence
    )


def _died(made: Attempt) -> list[Progress]:
    """The ranks that died without a message, the first one first.

    On a busy machine, several ranks may be found dead at once. Those that received SIGTERM come
    last: the launcher sends it after another rank has died.
    """
    dead = [p for p in made.tracker.ranks if p.died is not None and p.failure is None]
    return sorted(dead, key=lambda progress: (progress.terminated, progress.died or 0.0))


def _hang(made: Attempt, registry: Registry) -> SmokeCause | None:
    """What a run without progress waits for; None if that would be a guess."""
    ranks = made.tracker.ranks
    stuck = [p for p in ranks if not p.done]
    if not stuck:
        text = "all ranks have finished, but the launcher does not exit"
        return cause_for(registry, Observation.NO_COLLECTIVE, text, made.launcher_tail[-3:])
    missing = culprit(ranks, made.stacks)
    phase = missing.phase if missing else stuck[0].phase
    waits = _WAITING.get(phase)
    if phase == "build-ops":
        stack = "\n".join(line for rows in made.stacks.values() for line in rows)
        waits = Observation.BUILD_WAITS if "file_baton" in stack else None
    if waits is None or (missing is None and made.reason == "timeout" and _made_progress(made)):
        return None
    proof = [line for p in stuck for line in made.stacks.get(p.rank, ())[:4]]
    return cause_for(registry, waits, _who_waits(made, missing, stuck), proof)


def _who_waits(made: Attempt, missing: Progress | None, stuck: Sequence[Progress]) -> str:
    silent = [str(p.rank) for p in stuck if not p.events]
    if silent:
        return f"no event came from rank {', '.join(silent)}"
    others = [p for p in stuck if p is not missing]
    if missing is None or not others:
        return f"the run hangs: {', '.join(f'rank {p.rank} in {p.place()}' for p in stuck)}"
    return (
        f"rank {missing.rank} did not arrive: it is in {missing.place()}{_frame(made, missing)}, "
        f"while {', '.join(f'rank {p.rank}' for p in others)} "
        f"{'wait' if len(others) > 1 else 'waits'} in {others[0].place()}"
    )


def _made_progress(made: Attempt) -> bool:
    """Whether there was an event shortly before the end: a slow run is not hung."""
    last = max((p.events[-1].time for p in made.tracker.ranks if p.events), default=0.0)
    return made.started + made.seconds - last < ALIVE_SECONDS


def late(made: Attempt) -> str:
    """Which ranks did not finish in time, as text."""
    slow = [p for p in made.tracker.ranks if p.rank in made.overdue]
    where = ", ".join(f"rank {p.rank} in {p.place()}" for p in slow)
    if made.reason == "timeout":
        return (
            f"the run took longer than its limit of {made.timeout:g} s (`--timeout`), with {where}"
        )
    limit = made.tracker.limit(slow[0].phase) if slow else 0.0
    return f"one phase took longer than its limit of {limit:g} s: {where}"


def _frame(made: Attempt, progress: Progress) -> str:
    for line in made.stacks.get(progress.rank, ()):
        text = line.strip()
        if text.startswith("File ") or ".py" in text:
            return f" at {text}"
    return ""


def _memory(made: Attempt, registry: Registry) -> list[SmokeCause]:
    dead = _died(made)
    if not made.kernel or not dead:
        return []
    text = f"rank {dead[0].rank} was killed in {dead[0].place()} because host memory ran out"
    return [cause_for(registry, Observation.KILLED_FOR_MEMORY, text, made.kernel)]


def find(made: Attempt, registry: Registry) -> tuple[SmokeCause, ...]:
    """Why a run failed, most likely first; empty if nothing is recognized.

    Errors of a GPU that the driver reported come before errors of ranks, which are consequences.
    """
    of_ranks = _of_ranks(made, registry)
    driver: dict[str, SmokeCause] = {}
    for cause in _of_driver(made, registry):
        driver.setdefault(cause.condition, cause)
    in_both = [cause for cause in of_ranks if cause.condition in driver]
    known = {cause.condition for cause in in_both}
    return (
        *(cause for name, cause in driver.items() if name not in known),
        *in_both,
        *(cause for cause in of_ranks if cause.condition not in known),
    )


def _of_driver(made: Attempt, registry: Registry) -> Iterator[SmokeCause]:
    known = logs.signatures_of(registry)
    for error in made.gpu_errors:
        source = logs.Source("gpus.log", data=f"{error.line}\n".encode())
        for cause in logs.diagnose([source], known).causes:
            yield msgspec.structs.replace(_of_log(cause), message=error.words)


def _of_ranks(made: Attempt, registry: Registry) -> tuple[SmokeCause, ...]:
    wrong = next(
        (
            progress.failure
            for progress in made.tracker.ranks
            if progress.failure is not None and "seen" in progress.failure.data
        ),
        None,
    )
    if wrong is not None:
        return (
            cause_for(registry, Observation(wrong.data["seen"]), str(wrong.data.get("error", ""))),
        )
    if found := _memory(made, registry):
        return tuple(found)
    diagnosis = read_logs(made, registry)
    of_ranks = list(diagnosis.causes) if diagnosis.outcome is Outcome.CAUSE else []
    if made.reason == "launcher-gone":
        return (_launcher_gone(made, registry),)
    dead = _died(made)
    if dead:
        of_ranks = [
            cause
            for cause in of_ranks
            if not _only_a_signal(cause, registry)
            # what other ranks report about a rank that was killed
            and not _is_condition_of(cause.condition, Observation.PEER_GONE, registry)
        ]
        if not of_ranks:
            return (_killed(made, registry, dead),)
    if made.reason in ("hang", "timeout"):
        better = [
            _of_log(cause)
            for cause in of_ranks
            if not any(_is_condition_of(cause.condition, seen, registry) for seen in _SYMPTOMS)
        ]
        seen = _hang(made, registry)
        return (*better, seen) if seen is not None else tuple(better)
    return tuple(_of_log(cause) for cause in of_ranks)


def _launcher_gone(made: Attempt, registry: Registry) -> SmokeCause:
    code = made.returncode
    how = f"exit status {code}" if code is None or code >= 0 else f"signal {-code}"
    ranks = ", ".join(map(str, made.orphans))
    return cause_for(
        registry,
        Observation.LAUNCHER_GONE,
        f"the launcher ended ({how}) while rank {ranks} still ran",
        made.launcher_tail[-3:],
    )


def _killed(made: Attempt, registry: Registry, dead: Sequence[Progress]) -> SmokeCause:
    first = dead[0]
    how = "ended by SIGTERM" if first.terminated else "killed"
    said = "has not ended" if made.returncode is None else f"says exit status {made.returncode}"
    text = (
        f"rank {first.rank} was {how} in {first.place()} with no output; the kernel reports no "
        f"out-of-memory kill, the launcher {said}"
    )
    lines = [line for line in made.launcher_tail if "return code" in line or "ignal" in line]
    return cause_for(registry, Observation.KILLED, text, lines[-3:])
