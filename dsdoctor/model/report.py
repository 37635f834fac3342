"""The report: findings, what was examined, and the verdict."""

from __future__ import annotations

import enum

import msgspec

from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.matrix import Matrix

SCHEMA = "dsdoctor/report"
VERSION = 1


class Verdict(enum.Enum):
    """What the whole report says."""

    HEALTHY = "healthy"
    FAULTY = "faulty"
    UNKNOWN = "unknown"


#: Values of `PatientLine.chosen_by`: the job's command selected it; the working folder has it; it
#: is in a container that the command starts, and was not examined.
BY_COMMAND = "the command"
NEARBY = ".venv here"
IN_CONTAINER = "container"


class PatientLine(msgspec.Struct, kw_only=True):
    """Which interpreter was examined, and why that one.

    Attributes:
        python: its path, None when there is none.
        chosen_by: what chose it.
        torch: version, None when not installed or not read.
        deepspeed: the same.
    """

    python: str | None = None
    chosen_by: str | None = None
    torch: str | None = None
    deepspeed: str | None = None


class Report(msgspec.Struct, kw_only=True):
    """What `check --format json` prints (docs/stability.md).

    Attributes:
        schema: SCHEMA.
        version: moves when a key is removed.
        verdict: healthy, faulty or unknown.
        host: name of the machine.
        gpus: products, as `8 × NVIDIA H200`.
        driver: version of the driver.
        patient: the interpreter.
        config: the DeepSpeed config that was judged; None = none.
        findings: worst first.
        counts: status to number of findings.
        seconds: how long it took.
        partial: it was interrupted.
        notes: sentences on what was not done (`torch not started (--quick)`), and after a failure
            on what has changed since a job last worked here.
        unread: vital facts that could not be read, and why.
        command: the command line that was judged with the machine; left out without one.
        origin: what was judged, where it is not one machine that was read: the formats of a paste,
            or whose facts were composed; "" = one machine.
        judged: conditions that could be judged, of `conditions`; only for such a report.
        conditions: how many there are.
        facts_as_of: the oldest day on which a pack's tables were compared with their sources
            (`2026-11-21`); left out if no pack reports it.
        memory: what the model of `--model` takes with the config, and what fits; left out without.
        topology: how GPUs and network adapters reach each other; left out where there are not two.
    """

    schema: str = SCHEMA
    version: int = VERSION
    verdict: Verdict = Verdict.UNKNOWN
    host: str = ""
    gpus: list[str] = []
    driver: str | None = None
    patient: PatientLine = msgspec.field(default_factory=PatientLine)
    config: str | None = None
    findings: list[Finding] = []
    counts: dict[str, int] = {}
    seconds: float = 0.0
    partial: bool = False
    notes: list[str] = []
    unread: dict[str, str] = {}
    command: list[str] | msgspec.UnsetType = msgspec.UNSET
    origin: str | msgspec.UnsetType = msgspec.UNSET
    judged: int | msgspec.UnsetType = msgspec.UNSET
    conditions: int | msgspec.UnsetType = msgspec.UNSET
    facts_as_of: str | msgspec.UnsetType = msgspec.UNSET
    memory: MemoryDemand | msgspec.UnsetType = msgspec.UNSET
    topology: Matrix | msgspec.UnsetType = msgspec.UNSET

    def worst(self) -> Status:
        """The worst status there is; OK for an empty report."""
        order = list(Status)
        return max((f.status for f in self.findings), key=order.index, default=Status.OK)


FAIL_ON = {
    "warn": (Status.WARN, Status.UNKNOWN, Status.CRASH, Status.FAIL),
    "unknown": (Status.UNKNOWN, Status.CRASH, Status.FAIL),
    "fail": (Status.FAIL,),
}


def exit_code(report: Report, fail_on: str | None = None) -> int:
    """The status that `check` exits with (docs/architecture.md)."""
    statuses = {finding.status for finding in report.findings}
    if report.partial:
        return 130
    if Status.FAIL in statuses:
        return 1
    unsure = report.verdict is Verdict.UNKNOWN or statuses & {Status.UNKNOWN, Status.CRASH}
    if fail_on is not None and (
        statuses & set(FAIL_ON[fail_on]) or (unsure and fail_on in ("warn", "unknown"))
    ):
        return 1
    return 3 if unsure else 0
