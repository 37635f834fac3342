"""From one attempt to the report: verdict, causes, what was proven and what was not."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from dsdoctor.model.smoke import (
    PHASES,
    Figures,
    LaunchUsed,
    Phase,
    Rank,
    SmokeCause,
    SmokeReport,
)
from dsdoctor.packs.registry import Registry
from dsdoctor.smoke import causes as why
from dsdoctor.smoke import judge
from dsdoctor.smoke.attempt import Attempt
from dsdoctor.smoke.job import SmokePlan, offload_of
from dsdoctor.smoke.track import Progress


def report(made: Attempt, registry: Registry) -> SmokeReport:
    """The report of one attempt."""
    ranks = made.tracker.ranks
    complete = made.reason == "ended" and made.tracker.all_done and made.returncode == 0
    found: tuple[SmokeCause, ...] = ()
    if made.reason == "interrupted":
        verdict = "unknown"
    elif complete:
        found = tuple(judge.wrong(made, registry))
        verdict = "fail" if found else "pass"
    else:
        found = why.find(made, registry)
        verdict = "fail"
    figures = judge.figures(made)
    phases = tuple(_phase(made, name) for name in PHASES)
    return SmokeReport(
        verdict=verdict,
        summary=_summary(made, found, verdict),
        proved=tuple(_what_is_proved(made, figures)) if verdict == "pass" else tuple(_partly(made)),
        not_proved=tuple(_not_proved(made, verdict)),
        phases=phases,
        ranks=tuple(_rank(made, progress) for progress in ranks),
        figures=figures,
        launch=LaunchUsed(
            argv=made.argv, env=made.env, ds_config=made.plan.job["ds_config"],
            changed=made.plan.changed,
        ),
        causes=found,
        warnings=(*(e.words for e in made.gpu_errors), *judge.slow_words(made, figures)),
        partial=made.reason == "interrupted",
        seconds=round(made.seconds, 2),
        patient=_versions(made),
        log_tail=made.launcher_tail if verdict != "pass" else (),
    )  # fmt: skip


def _versions(made: Attempt) -> dict[str, str]:
    for progress in made.tracker.ranks:
        seen = judge.data_of(progress, "import")
        if seen:
            return {key: str(value) for key, value in seen.items() if value}
    return {}


def _summary(made: Attempt, found: tuple[SmokeCause, ...], verdict: str) -> str:
    plan = made.plan
    if verdict == "pass":
        ranks = "rank" if plan.world == 1 else "ranks"
        return f"{plan.world} {ranks} trained {plan.job['steps']} steps through `{_name(plan)}`"
    if verdict == "unknown":
        return f"interrupted in {_earliest_open_phase(made)}"
    if found:
        return found[0].message
    failed = [progress for progress in made.tracker.ranks if progress.failure is not None]
    if failed and failed[0].failure is not None:
        error = error_line(str(failed[0].failure.data.get("error", "")))
        return f"rank {failed[0].rank} failed in {failed[0].phase}: {error}"
    if made.error:
        return made.error
    if made.reason in ("timeout", "hang") and made.overdue:
        return why.late(made)
    if made.tracker.all_done:
        return f"all ranks have finished, but the launcher ended with status {made.returncode}"
    return f"the launcher ended with status {made.returncode} in {_earliest_open_phase(made)}"


def error_line(error: str) -> str:
    r"""The line of an exception with the error itself.

    torch adds advice below a CUDA error, and below an NCCL error the heading of a last error, which
    may be empty.

    >>> error_line("torch.AcceleratorError: CUDA error: misaligned address\nCompile with `X`")
    'torch.AcceleratorError: CUDA error: misaligned address'
    >>> error_line("NCCL error in: x.cpp:1\nncclInternalError: Internal check failed.\nLast error:")
    'ncclInternalError: Internal check failed.'
    """
    lines = [line for line in error.splitlines() if line.strip() not in ("", "Last error:")]
    own = [line for line in lines if "CUDA error: " in line]
    return (own or lines[-1:] or [""])[0]


def _name(plan: SmokePlan) -> str:
    return plan.launch.argv[0]


def _earliest_open_phase(made: Attempt) -> str:
    return min(
        (progress.phase for progress in made.tracker.ranks if not progress.done),
        key=PHASES.index,
        default="teardown",
    )


def _phase(made: Attempt, name: str) -> Phase:
    ranks = made.tracker.ranks
    ends = [progress.ended(name) for progress in ranks]
    seconds = round(max((event.seconds for event in ends if event), default=0.0), 3)
    if name == "spawn":
        first = [progress.events[0].time for progress in ranks if progress.events]
        seconds = round(max(0.0, max(first, default=made.started) - made.started), 3)
    failed = next((event for event in ends if event is not None and event.state == "fail"), None)
    if failed is not None:
        error = error_line(str(failed.data.get("error", "")))
        return Phase(name=name, status="fail", seconds=seconds, detail=error)
    if all(event is not None for event in ends):
        return Phase(name=name, status="ok", seconds=seconds, detail=_detail(made, name))
    begun = [event.time for p in ranks for event in p.events if event.phase == name]
    if not begun and name == "spawn":
        begun = [made.started]
    if not begun:
        return Phase(name=name, status="not-reached")
    missing = [p for p, event in zip(ranks, ends, strict=True) if event is None]
    spent = made.started + made.seconds - min(begun)
    # the clock of another host may be ahead
    spent = round(min(max(seconds, spent), made.seconds), 3)
    if made.reason == "interrupted":
        detail = f"rank {missing[0].rank} was in {missing[0].place()}"
        return Phase(name=name, status="stopped", seconds=spent, detail=detail)
    numbers = ", ".join(str(progress.rank) for progress in missing)
    detail = f"not completed by rank {numbers}"
    return Phase(name=name, status="fail", seconds=spent, detail=detail)


def _detail(made: Attempt, name: str) -> str:
    seen = judge.data_of(made.tracker.ranks[0], name)
    if name == "import":
        return f"torch {seen.get('torch')}, deepspeed {seen.get('deepspeed')}"
    if name == "device":
        return str(seen.get("device", ""))
    if name == "rendezvous":
        world = seen.get("world")
        return f"{seen.get('backend')}, {world} rank{'' if world == 1 else 's'}"
    if name == "collectives":
        return ", ".join(seen.get("checked", ()))
    if name == "numerics":
        return f"{made.plan.job['precision']}, relative error {seen.get('relative_error', 0):.1e}"
    if name == "build-ops":
        return ", ".join(f"{op} {took:.1f} s" for op, took in _built(made).items())
    if name == "engine-init":
        return f"ZeRO-{seen.get('stage')}, {seen.get('parameters', 0):,} parameters"
    if name == "steps":
        rows = seen.get("steps", ())
        return f"loss {rows[0]['loss']:.4f} to {rows[-1]['loss']:.4f}" if rows else ""
    if name == "checkpoint" and seen.get("left_out"):
        return "left out at full size"
    return ""


def _built(made: Attempt) -> dict[str, float]:
    """Op to its longest time on any rank: one rank compiles an op, the others only load it."""
    longest: dict[str, float] = {}
    for progress in made.tracker.ranks:
        for op, took in judge.data_of(progress, "build-ops").get("seconds", {}).items():
            longest[op] = max(took, longest.get(op, 0.0))
    return longest


def _outcome(made: Attempt, progress: Progress) -> str:
    if progress.done:
        return "done"
    if progress.failure is not None:
        return "failed"
    if not progress.events:
        return "never-started"
    if progress.died is not None:
        return "died"
    return "hung" if progress.rank in made.overdue else "stopped"


def _rank(made: Attempt, progress: Progress) -> Rank:
    device = judge.data_of(progress, "device")
    steps = judge.data_of(progress, "steps")
    rows = steps.get("steps", ())[1:]
    uuid = str(device.get("uuid", ""))
    states = sum(steps.get("model_state", {}).get("bytes", {}).values())
    error = ""
    if progress.failure is not None:
        error = error_line(str(progress.failure.data.get("error", "")))
    return Rank(
        rank=progress.rank,
        local_rank=device.get("local_rank"),
        host=str(device.get("host", "")),
        pid=progress.pid,
        outcome=_outcome(made, progress),
        last_phase=progress.place() if progress.events else "",
        device=str(device.get("device", "")),
        device_uuid=f"GPU-{uuid.removeprefix('GPU-')}" if uuid else "",
        step_ms=round(statistics.median(row["ms"] for row in rows), 3) if rows else None,
        peak_host_bytes=steps.get("peak_host_bytes"),
        peak_device_bytes=steps.get("peak_device_bytes"),
        model_state_bytes=states or None,
        error=error,
        log_tail=() if progress.done else made.tails.get(progress.rank, ()),
        stack=made.stacks.get(progress.rank, ()),
    )


def zero_words(plan: SmokePlan) -> str:
    """`ZeRO-2 with the optimizer on the host`."""
    stage, offload = offload_of(plan.job["ds_config"])
    where = {"none": "", "optimizer": " with the optimizer on the host"}
    return f"ZeRO-{stage}" + where.get(offload, " with optimizer and parameters on the host")


def _partly(made: Attempt) -> Iterator[str]:
    """What a failed run has still proven."""
    good = []
    for name in PHASES:
        ends = [progress.ended(name) for progress in made.tracker.ranks]
        if all(event is not None and event.state == "ok" for event in ends):
            good.append(name)
    if good:
        ranks = f"all {made.plan.world} ranks" if made.plan.world > 1 else "the rank"
        yield f"on {ranks}: {', '.join(good)}"


def _what_is_proved(made: Attempt, figures: Figures) -> Iterator[str]:
    plan, ranks = made.plan, made.tracker.ranks
    where = "CPUs" if plan.device == "cpu" else "GPUs " + ",".join(map(str, plan.launch.gpu_ids))
    yield (
        f"`{_name(plan)}` starts {plan.world} ranks on {where}, and all of them finish "
        "without an error"
    )
    if plan.uuids and all(judge.data_of(p, "device").get("uuid") for p in ranks):
        yield "every rank computes on the GPU that was planned (UUIDs compared)"
    seen = judge.data_of(ranks[0], "collectives")
    backend = judge.data_of(ranks[0], "rendezvous").get("backend")
    if plan.world > 1:
        yield f"{', '.join(seen.get('checked', ()))} compute correct sums over {backend}"
    ops = judge.data_of(ranks[0], "build-ops").get("seconds", {})
    if ops:
        yield f"DeepSpeed's ops build and load: {', '.join(ops)}"
    steps = plan.job["steps"]
    same = "the same on every rank" if plan.world > 1 else "finite"
    yield (
        f"{zero_words(plan)} in {plan.job['precision']} trains {steps} steps; the loss is {same}"
        + ("" if plan.full_size else " and falls")
    )
    if figures.reference_loss is not None and not judge.data_of(ranks[0], "steps").get("skipped"):
        yield "the losses equal those of a single process without DeepSpeed, with the same seed"
    if "after" in judge.data_of(ranks[0], "checkpoint"):
        yield "a checkpoint is saved and loaded again"
    if plan.full_size:
        yield f"{_size(plan)} fits at full size"


def _size(plan: SmokePlan) -> str:
    launch = plan.launch
    return f"{plan.model_name} at micro-batch {launch.micro_batch} and {launch.sequence} tokens"


def _not_proved(made: Attempt, verdict: str) -> Iterator[str]:
    plan = made.plan
    if verdict != "pass":
        yield "that a job starts here"
    if plan.device == "cpu":
        yield "that GPUs, NCCL and CUDA ops work: the ranks ran on CPUs"
    elif plan.world == 1:
        yield "that GPUs reach each other: there was one rank"
    if not plan.full_size:
        if plan.model_name == "tiny":
            yield "that your model fits: pass it with `--model`, and run `--full-size`"
        else:
            yield f"that {_size(plan)} fits: run `--full-size`"
    if plan.launch.finetune == "lora":
        yield "LoRA: the small model trained all of its parameters"
    if verdict != "pass":
        return
    if plan.device == "cuda" and not plan.uuids:
        yield "that the ranks use the planned GPUs: their UUIDs are not known"
    first = made.tracker.ranks[0]
    if "reference" not in judge.data_of(first, "teardown"):
        if plan.full_size:
            yield "that the losses equal a single process: left out at full size"
        else:
            yield "that the losses equal a single process: known for Adam and AdamW only"
    elif judge.data_of(first, "steps").get("skipped"):
        yield "that the losses equal a single process: steps were skipped by the loss scale"
    if plan.full_size:
        yield "that checkpoints work: left out at full size"
    unsupported = judge.data_of(first, "collectives").get("unsupported", ())
    if unsupported:
        yield f"{', '.join(unsupported)}: the backend has none"
