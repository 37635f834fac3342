"""The job was preempted: its nodes went to another job or customer.

## Why it matters
A job in a preemptible partition or on a spot machine can be ended at any time to make room, with a
short warning at most. Nothing is wrong with the training.

## What to do
Submit with `--requeue`, save checkpoints often, resume from the last one, or use a partition or a
machine that is not preempted.

## References
- https://slurm.schedmd.com/preempt.html
- https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
- https://cloud.google.com/compute/docs/instances/spot
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "job-preempted",
    id="DSD1652",
    scope=Scope.JOB,
    since="0.1",
    transient="the job can start again once nodes are free",
)

HINT = (
    "resume from the last checkpoint; submit with `--requeue`, or use nodes that are not preempted"
)

SIGNATURES = (
    Signature(
        pattern=r"CANCELLED AT \S+ DUE TO PREEMPTION",
        source="slurm 20.02-26.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=(
            "slurmstepd: error: *** JOB 412 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO PREEMPTION ***",
            "[2026-05-06T07:08:09.006] error: *** STEP 608.0 ON n3 CANCELLED AT 2026-05-06T07:08:09 DUE TO PREEMPTION ***",
        ),
        not_examples=("AT 2024-05-06T07:08:09 DUE TO PREEMPTION ***",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bJobState=PREEMPTED\b|^\d[\w.+-]*[\s|].*[\s|]PREEMPTED[\s|]",
        source="slurm 20.02-25.05 scontrol show job, sacct",
        examples=(
            "   JobState=PREEMPTED Reason=None",
            "4711   train  spot   lab  64  PREEMPTED   0:0",
            "4711|train|PREEMPTED|0:0",
        ),
        not_examples=("jobs that end PREEMPTED count",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bPreempted\b.{0,60}by (?:a pod|pod [0-9a-f-]{8,36}|default/|\S+/\S+) |Preemption(?:ByScheduler|ByKubeScheduler)",
        source="kubernetes 1.20-1.34 pkg/scheduler: events; the reasons PreemptionByKubeScheduler of 1.25-1.26, PreemptionByScheduler since",
        examples=(
            "Warning  Preempted  3m  default-scheduler  Preempted by a pod on node gpu-3",
            "Normal  Preempted  3m  default-scheduler  Preempted by pod 0c9d1e52-33aa-41bb-8f11-1a2b3c4d5e6f on node gpu-3",
            "reason: PreemptionByScheduler",
            "reason: PreemptionByKubeScheduler",
            "Normal Preempted by default/big on node gpu-3",
            "Preempted  by lab/big on node gpu-3",
        ),
        not_examples=("Preempted by nobody",),
        level=Level.CERTAIN,
        masks=(
            "host-oom-killed",
            "job-cancelled",
            "rank-killed",
            "nccl-timeout-watchdog",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern=r"TERM_PREEMPT: [Jj]ob (?:was )?killed after preemption",
        source="LSF 9-10.1 mail and output of a job, bjobs, bhist: termination reasons",
        examples=("TERM_PREEMPT: job killed after preemption.",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Spot [Ii]nstance [Ii]nterruption|[Ss]pot interruption (?:notice|warning)|Instance was preempted|compute\.instances\.preempted",
        source="AWS EC2 spot/instance-action, GCE operations: compute.instances.preempted",
        examples=(
            "EC2 Spot Instance Interruption Warning for i-0abc",
            "Spot Instance interruption notice: terminate at 08:20:00Z",
            "spot interruption notice received, terminating in 120 s",
            "spot interruption warning",
            "Instance was preempted.",
            "operation: compute.instances.preempted",
        ),
        not_examples=(),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Caught signal SIG\w+ on \S+: this job is preempted\.",
        source="submitit 1.0-1.5 core/job_environment.py",
        examples=(
            "submitit WARNING (2022-07-12 04:18:45,881) - Caught signal SIGUSR2 on node-3: this job is preempted.",
        ),
        not_examples=("the state: this job is preempted.",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"has not produced any output \(state: PREEMPTED",
        source="submitit 1.0-1.5 core/core.py: the state that sacct reports",
        examples=(
            "submitit.core.utils.UncompletedJobError: Job 123 (task: 0) with path /x/123_0_result.pkl has not produced any output (state: PREEMPTED)",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
)
