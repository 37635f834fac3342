"""What `dsdoctor run` saves: the contract of `run.json`, and of `run show --format json`."""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA = "dsdoctor/run"
VERSION = 1


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was reported while the job ran.

    Attributes:
        time: seconds since the start of the job.
        key: what it is about; each key is reported once.
        text: the sentence.
    """

    time: float
    key: str
    text: str


class RankEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one rank's process, in the order in which they were seen.

    Attributes:
        rank: global rank.
        pid: its process.
        time: seconds since the start of the job.
        status: its exit status, negative = signal; None = not known.
    """

    rank: int
    pid: int
    time: float
    status: int | None = None


class PassedSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that was sent to `dsdoctor run` and passed on to the job.

    Attributes:
        name: such as `SIGTERM`.
        time: seconds since the start of the job.
        typed: a key (Ctrl-C), from which the job's terminal made the signal.
    """

    name: str
    time: float
    typed: bool = False


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory model of `recommend` predicts for the command.

    Attributes:
        gpu_bytes: peak on each GPU.
        assumed: what it takes for granted and the command does not say; "" = nothing.
        host_bytes: peak of all ranks of this host together.
        ranks: of this host; 0 = not known.
    """

    gpu_bytes: int
    assumed: str = ""
    host_bytes: int | None = None
    ranks: int = 0


class Figures(msgspec.Struct, kw_only=True):
    """What the run achieved. None = no line or sample reported it.

    Attributes:
        steps: last step number that was reported.
        step_seconds: median wall time of a step, s.
        loss: last loss.
        tokens_per_second: last throughput that the job reported.
        samples_per_second: the same in samples.
        peak_gpu_bytes: GPU index to the highest memory use that was sampled, bytes.
        peak_host_bytes: highest use of host memory by all programs, or of the control group's
            memory where that is limited.
        peak_rank_bytes: rank to its highest resident host memory, bytes; of a job without ranks,
            that of its first Python process as rank 0. Pages that ranks share count for each.
        peak_ranks_bytes: the same of all ranks of this host at one moment.
        predicted: what `recommend` predicts; None if the command does not say enough.
        throttled_seconds: GPU index to seconds in which it was throttled.
    """

    steps: int | None = None
    step_seconds: float | None = None
    loss: float | None = None
    tokens_per_second: float | None = None
    samples_per_second: float | None = None
    peak_gpu_bytes: dict[str, int] = {}
    peak_host_bytes: int | None = None
    peak_rank_bytes: dict[str, int] = {}
    peak_ranks_bytes: int | None = None
    predicted: Prediction | None = None
    throttled_seconds: dict[str, float] = {}


class RunRecord(msgspec.Struct, kw_only=True):
    """One run.

    Attributes:
        schema: SCHEMA.
        version: of this format.
        dsdoctor: version of the tool that wrote it.
        id: name of its folder.
        host: host name.
        command: the command as typed, secrets masked.
        pid: process of the dsdoctor that watches it.
        cwd: the folder it was started in.
        env_set: variables that dsdoctor added.
        started: ISO 8601, UTC.
        ended: the same; None while it runs, or when dsdoctor itself was killed.
        seconds: how long the job ran.
        status: exit status of the command; negative = signal; None while it runs.
        preflight: `passed`, `failed`, `inconclusive` or `off`.
        gpus: indices of the GPUs that were sampled, as `nvidia-smi -L` prints them.
        gpus_chosen_by: what limits the command to them; "" = nothing, it can see all GPUs.
        figures: what it achieved.
        notices: what was reported on the way.
        rank_ends: ranks in the order in which they ended.
        signals: signals that were passed on to the job.
        output_bytes: what the job wrote.
        output_dropped: how much of that was dropped.
        hang: why the job counted as hung; "" = it did not.
        diagnosis: document of `diagnose --format json`; None after success.
        changed: facts that changed since the environment last worked, one sentence each.
        attempts: how often the command was started (`--restarts`).
        checkpoint: the last checkpoint that the job reported to save; "" = it reported none.
        slurm_job: id of the Slurm job around it, or that it started; "" = there is none.
        slurm_state: how Slurm says that job ended, such as `TIMEOUT`; "" = Slurm was not queried.
        elsewhere: the command (`srun`, `ssh`, `kubectl exec`…) that ran the job on other hosts;
            then nothing of this host was sampled for it. "" = the job ran on this host.
        requeued_for: condition for which that job was put back into the queue; "" = it was not.
    """

    schema: str = SCHEMA
    version: int = VERSION
    dsdoctor: str = ""
    id: str = ""
    host: str = ""
    command: tuple[str, ...] = ()
    pid: int = 0
    cwd: str = ""
    env_set: dict[str, str] = {}
    started: str = ""
    ended: str | None = None
    seconds: float = 0.0
    status: int | None = None
    preflight: str = "off"
    gpus: list[int] = []
    gpus_chosen_by: str = ""
    figures: Figures = msgspec.field(default_factory=Figures)
    notices: list[Notice] = []
    rank_ends: list[RankEnd] = []
    signals: list[PassedSignal] = []
    output_bytes: int = 0
    output_dropped: int = 0
    hang: str = ""
    diagnosis: dict[str, Any] | None = None
    changed: list[str] = []
    attempts: int = 1
    checkpoint: str = ""
    slurm_job: str = ""
    slurm_state: str = ""
    elsewhere: str = ""
    requeued_for: str = ""
