"""The job ran into its time limit.

## Why it matters
The scheduler ends every process of a job that exceeds its time limit, first with SIGTERM and some
seconds later with SIGKILL. Errors that the ranks print after that are a consequence.

## What to do
Ask for more time (`#SBATCH --time`, `activeDeadlineSeconds`), save checkpoints before the limit
(`#SBATCH --signal=USR1@300`), and resume from the last one.

## References
- https://slurm.schedmd.com/sbatch.html (`--time`, `--signal`)
- https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("job-time-limit", id="DSD1651", scope=Scope.JOB, since="0.1")

HINT = "ask for more time, or save a checkpoint before the limit (`#SBATCH --signal=USR1@300`) and resume from it"

SIGNATURES = (
    Signature(
        pattern=r"CANCELLED AT \S+ DUE TO TIME LIMIT",
        source="slurm 20.02-25.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=(
            "slurmstepd: error: *** JOB 412 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***",
        ),
        not_examples=("AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bJobState=TIMEOUT\b|\bReason=TimeLimit\b",
        source="slurm 20.02-25.05 scontrol show job",
        examples=(
            "   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)",
            "   JobState=RUNNING Reason=TimeLimit",
        ),
        not_examples=("JobState=TIMEOUTS",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^\d[\w.+-]*[\s|].*[\s|]TIMEOUT[\s|]",
        source="slurm 20.02-25.05 sacct",
        examples=(
            "4711            train    gpu      lab         64    TIMEOUT      0:0",
            "4711|train|TIMEOUT|0:0|1-00:00:21|1-00:00:00",
        ),
        not_examples=("512 NCCL TIMEOUTs were counted on  TIMEOUT=30 ",),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bDeadlineExceeded\b.{0,80}active longer than specified deadline|Job was active longer than specified deadline|Pod was active on the node longer than the specified deadline",
        source="kubernetes 1.20-1.34 pkg/kubelet, pkg/scheduler: events and pod status",
        examples=(
            "Warning  DeadlineExceeded  2m  job-controller  Job was active longer than specified deadline",
            "Pod was active on the node longer than the specified deadline",
            "DeadlineExceeded: it was active longer than specified deadline",
        ),
        not_examples=("was active longer than specified deadline",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"TERM_(?:RUNLIMIT|CPULIMIT|DEADLINE|WINDOW): [Jj]ob (?:was )?killed after |PBS: job killed: (?:walltime|cput) \d+ exceeded limit",
        source="LSF 9-10.1 mail and output of a job, bjobs, bhist: termination reasons; OpenPBS 20-23 src/resmom",
        examples=(
            "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
            "TERM_CPULIMIT: job killed after reaching LSF CPU usage limit.",
            "TERM_DEADLINE: job killed after deadline expires.",
            "TERM_WINDOW: job killed after queue run window closed.",
            "=>> PBS: job killed: walltime 3617 exceeded limit 3600",
            "=>> PBS: job killed: cput 14420 exceeded limit 14400",
        ),
        not_examples=(
            "PBS: job killed: walltime limit",
            "PBS: job killed: cput limit",
        ),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Job \d+ has exceeded its time limit and its allocation has been revoked",
        source="slurm 2-25.05 src/salloc/salloc.c",
        examples=(
            "salloc: Job 412 has exceeded its time limit and its allocation has been revoked.",
        ),
        not_examples=("a job has exceeded its time limit and its allocation has been revoked",),
        level=Level.CERTAIN,
        masks=(
            "host-oom-killed",
            "rank-killed",
            "launcher-killed",
            "job-cancelled",
            "nccl-timeout-watchdog",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern=r"has not produced any output \(state: TIMEOUT",
        source="submitit 1.0-1.5 core/core.py: the state that sacct reports",
        examples=(
            "submitit.core.utils.UncompletedJobError: Job 123 (task: 0) with path /x/123_0_result.pkl has not produced any output (state: TIMEOUT)",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^(?:.{0,60}:\d\d )?(?:MaxRuntimeExceeded|MaxWaitTimeExceeded) - \S",
        source="sagemaker 1.18-2.250 src/sagemaker/utils.py secondary_training_status_message",
        hint="raise `max_run` (and `max_wait` of a spot job), or save a checkpoint often and resume from it",
        examples=(
            "2026-04-03 10:04:10 MaxRuntimeExceeded - Training job runtime exceeded its maximum",
            "2026-04-03 10:04:10 MaxWaitTimeExceeded - Training job waited longer than allowed",
        ),
        not_examples=("see MaxRuntimeExceeded - a status", "see MaxWaitTimeExceeded - a status"),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bjob \d+\.\d+ exceeded hard wallclock time\b",
        source="Sun/Univa Grid Engine 6.1-8.6 source/daemons/execd/execd_ck_to_do.c",
        examples=("W|job 8811.1 exceeded hard wallclock time - initiate terminate method",),
        not_examples=("no job exceeded hard wallclock time today",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\btype=timeout severity=0 resource allocation expired",
        source="flux-core 0.17-0.70 src/modules/job-exec, src/cmd",
        examples=("0.9s: job.exception type=timeout severity=0 resource allocation expired",),
        not_examples=("xtype=timeout severity=0 resource allocation expired",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bThe job exceeded allowed (?:execute|job) duration of \d",
        source="HTCondor 9.4-24 src/condor_utils/user_job_policy.cpp: the reason of a hold",
        examples=(
            "HoldReason: The job exceeded allowed execute duration of 20:00:00",
            "HoldReason: The job exceeded allowed job duration of 1+00:00:00",
        ),
        not_examples=("The job exceeded allowed execute duration of the pool",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"CellTimeoutError: A cell timed out while it was being executed, after \d",
        source="nbclient 0.1-0.10 exceptions.py",
        message="A cell of the notebook ran longer than the program that executes the notebook allows",
        hint="raise the limit for one cell (`--ExecutePreprocessor.timeout` of nbconvert, `--execution-timeout` of papermill), or save checkpoints and resume",
        examples=(
            "nbclient.exceptions.CellTimeoutError: A cell timed out while it was being executed, after 43200 seconds.",
        ),
        not_examples=(
            "CellTimeoutError: A cell timed out while it was being executed, after the limit",
        ),
        level=Level.CERTAIN,
    ),
)
