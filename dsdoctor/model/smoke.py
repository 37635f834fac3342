"""What `smoke` says: the JSON contract of `smoke --format json` (docs/stability.md)."""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA = "dsdoctor/smoke"
VERSION = 1

#: What every rank goes through, in this order.
PHASES = (
    "spawn",
    "import",
    "device",
    "rendezvous",
    "collectives",
    "numerics",
    "build-ops",
    "engine-init",
    "steps",
    "checkpoint",
    "teardown",
)

EXIT = {"pass": 0, "fail": 1, "unknown": 3}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One line that a rank wrote into its own file.

    Attributes:
        rank: who wrote it.
        phase: one of PHASES.
        state: `begin`, `ok`, `fail`, `note` (a figure or a place within the phase) or `done`.
        time: seconds since the epoch, by the clock of the rank's host.
        pid: process of the rank.
        seconds: how long the phase took (`ok` and `fail`).
        data: what was measured.
    """

    rank: int
    phase: str
    state: str
    time: float = 0.0
    pid: int = 0
    seconds: float = 0.0
    data: dict[str, Any] = {}


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase, all ranks together.

    Attributes:
        name: one of PHASES.
        status: `ok`, `fail`, `stopped` (by an interrupt) or `not-reached`.
        seconds: time of the slowest rank; of a phase that was not completed, until the end.
        detail: what was measured, or what went wrong.
    """

    name: str
    status: str
    seconds: float = 0.0
    detail: str = ""


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rank.

    Attributes:
        rank, local_rank: its numbers.
        host: name of its host.
        pid: its process.
        outcome: `done`, `failed`, `died`, `hung`, `stopped` (ended by us) or `never-started`.
        last_phase: where it was last.
        device: what it computed on.
        device_uuid: UUID of that GPU, empty on a CPU.
        step_ms: median time of its steps, without waiting for others where that can be separated.
        peak_host_bytes: most memory that the process held (VmHWM).
        peak_device_bytes: most GPU memory that torch allocated; None without a GPU.
        model_state_bytes: the engine's own tensors before a step; None if not measured.
        error: the line of its exception that says what happened.
        log_tail: its last lines of output.
        stack: where it hung.
    """

    rank: int
    local_rank: int | None = None
    host: str = ""
    pid: int | None = None
    outcome: str = "never-started"
    last_phase: str = ""
    device: str = ""
    device_uuid: str = ""
    step_ms: float | None = None
    peak_host_bytes: int | None = None
    peak_device_bytes: int | None = None
    model_state_bytes: int | None = None
    error: str = ""
    log_tail: tuple[str, ...] = ()
    stack: tuple[str, ...] = ()


class Bandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """All-reduce of one size.

    Attributes:
        bytes: size of the buffer.
        gb_per_s: bus bandwidth, 2·(n-1)/n times size over time.
    """

    bytes: int
    gb_per_s: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction next to its measurement.

    Attributes:
        what: what was predicted.
        predicted_bytes, measured_bytes: both.
        ratio: measured over predicted.
    """

    what: str
    predicted_bytes: int
    measured_bytes: int
    ratio: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What the run measured.

    Attributes:
        step_ms: median time of a step, of the slowest rank; the first step is left out.
        step_ms_low, step_ms_high: fastest and slowest step.
        tokens_per_s: all ranks together.
        bandwidth: bus bandwidth of all-reduce by size.
        reference_gb_per_s: what the product should reach at the largest size; None = no reference.
        reference: that figure in words, with its source and whether it was verified.
        slowest_rank: rank with the longest own time in a step.
        slowest_ratio: its time over the median of all.
        build_seconds: compile time of JIT ops.
        memory: predictions against measurements.
        first_loss, last_loss: mean loss over all ranks.
        reference_loss: last loss of the single-process run with the same seed.
        losses: mean loss over all ranks after each step.
        step_times_ms: time of each step, of the rank that took longest; the first step warms up.
    """

    step_ms: float | None = None
    step_ms_low: float | None = None
    step_ms_high: float | None = None
    tokens_per_s: float | None = None
    bandwidth: tuple[Bandwidth, ...] = ()
    reference_gb_per_s: float | None = None
    reference: str = ""
    slowest_rank: int | None = None
    slowest_ratio: float | None = None
    build_seconds: float | None = None
    memory: tuple[Comparison, ...] = ()
    first_loss: float | None = None
    last_loss: float | None = None
    reference_loss: float | None = None
    losses: tuple[float, ...] = ()
    step_times_ms: tuple[float, ...] = ()


class SmokeCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why the run failed.

    Attributes:
        condition: name of the condition.
        title: what it is, in one line.
        message: the title, sharpened by what was seen.
        hint: what to do.
        fixes: names of fixes that may solve it.
        evidence: what proves it.
        formerly: earlier names of the condition; left out of JSON without any.
    """

    condition: str
    title: str
    message: str
    hint: str = ""
    fixes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    formerly: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """One try of the bisection.

    Attributes:
        knob: variable or setting that was changed.
        value: to what.
        verdict: `pass`, `fail` or `unknown`.
        seconds: how long the try took.
        cost: what the setting costs in speed.
    """

    knob: str
    value: str
    verdict: str
    seconds: float
    cost: str = ""


class LaunchUsed(msgspec.Struct, frozen=True, kw_only=True):
    """What was run.

    Attributes:
        argv: the real command.
        env: variables that were set for it.
        ds_config: the configuration that the ranks used.
        changed: what of the user's configuration was changed for this run, and why.
    """

    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    ds_config: dict[str, Any] = {}
    changed: tuple[str, ...] = ()


class SmokeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer.

    Attributes:
        schema: `dsdoctor/smoke`.
        version: moves when a key is removed.
        verdict: `pass`, `fail` or `unknown`.
        summary: one sentence.
        proved: what the run has shown.
        not_proved: what it did not prove, and how that could be proved.
        phases: in order.
        ranks: in order.
        figures: what was measured.
        launch: what was run.
        causes: most likely first.
        bisect: tries, in order.
        works_with: the one change with which the run passed; None = none was found.
        warnings: what is slower or other than expected.
        partial: the run was interrupted.
        leftovers: what could not be cleaned up.
        seconds: wall time.
        patient: the interpreter, and the versions that the ranks reported.
        log_tail: last lines of the launcher.
    """

    schema: str = SCHEMA
    version: int = VERSION
    verdict: str
    summary: str
    proved: tuple[str, ...] = ()
    not_proved: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    ranks: tuple[Rank, ...] = ()
    figures: Figures = Figures()
    launch: LaunchUsed = LaunchUsed()
    causes: tuple[SmokeCause, ...] = ()
    bisect: tuple[Knob, ...] = ()
    works_with: dict[str, str] | None = None
    warnings: tuple[str, ...] = ()
    partial: bool = False
    leftovers: tuple[str, ...] = ()
    seconds: float = 0.0
    patient: dict[str, str] = {}
    log_tail: tuple[str, ...] = ()


def encode(report: SmokeReport) -> str:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
