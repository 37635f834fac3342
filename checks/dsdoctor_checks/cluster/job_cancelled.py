"""The job was cancelled by its owner or an administrator.

## Why it matters
`scancel`, `scontrol requeue`, `kubectl delete` or `bkill` ends every process of the job. Nothing is wrong with the
training itself, unless it was cancelled because it hung.

## What to do
Ask who cancelled it (`sacct -j JOB -o State,User,AdminComment`). If it was cancelled because it hung,
look at what the ranks did last.

## References
- https://slurm.schedmd.com/scancel.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("job-cancelled", id="DSD1654", scope=Scope.JOB, since="0.1")

HINT = "ask who cancelled it (`sacct -j JOB -o State%30`), and resume from the last checkpoint"

SIGNATURES = (
    Signature(
        pattern=r"\*\*\* JOB \S+ ON \S+ CANCELLED AT \S+ (?:DUE to SIGNAL \w[\w ]{0,30} )?\*\*\*",
        # 26.05 names the signal of `scancel`
        source="slurm 20.02-26.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=(
            "slurmstepd: error: *** JOB 412 ON n3 CANCELLED AT 2024-05-06T07:08:09 ***",
            "error: *** JOB 412 ON n3 CANCELLED AT 2026-05-06T07:08:09 DUE to SIGNAL Terminated ***",
        ),
        not_examples=("*** JOB 412 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***",),
        echo=True,
    ),
    Signature(
        # a step ends like that as well when one of its tasks calls MPI_Abort, and when srun ends
        # it because a task failed (`--kill-on-bad-exit`, `--wait`) or because the script ended srun
        # itself, which srun says first; a job that is cancelled has a line of its own
        pattern=r"\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ (?:DUE to SIGNAL \w[\w ]{0,30} )?\*\*\*",
        source="slurm 20.02-25.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=(
            "slurmstepd: error: *** STEP 412.0 ON n3 CANCELLED AT 2024-05-06T07:08:09 ***",
            "[2026-05-06T07:08:09.398] error: *** STEP 412.1 ON n3 CANCELLED AT 2026-05-06T07:08:09 DUE to SIGNAL Killed ***",
        ),
        not_examples=("*** STEP 412.0 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO NODE FAILURE",),
        unless=("MPI_ERRORS_ARE_FATAL", "MPI_ABORT was invoked"),
        not_after=(
            "srun: Terminating StepId=",
            "srun: Terminating job step",
            "_step_signal: Terminating StepId=",
            "srun: forcing job termination",
        ),
        echo=True,
    ),
    Signature(
        # a job that makes room for another in a partition with PreemptMode=REQUEUE is said to be
        # preempted (22.05.8 and 26.05.5, tried)
        pattern=r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ DUE TO JOB REQUEUE",
        source="slurm 20.02-26.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=(
            "slurmstepd: error: *** STEP 608.0 ON n3 CANCELLED AT 2022-08-12T02:06:12 DUE TO JOB REQUEUE ***",
            "[2026-05-06T07:08:09.992] error: *** JOB 8 ON n1 CANCELLED AT 2026-05-06T07:08:09 DUE TO JOB REQUEUE ***",
        ),
        not_examples=("the step was CANCELLED AT 2024-05-06T07:08:09 DUE TO JOB REQUEUE",),
        level=Level.CERTAIN,
        message="The job was put back into the queue with `scontrol requeue`, by its owner, an administrator or a program of the cluster",
        hint="it starts again on its own: let the script resume from its last checkpoint. If you did not request this, ask the administrators",
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bJobState=CANCELLED\b|^\d[\w.+-]*[\s|].*[\s|]CANCELLED(?: by \d+|\+)",
        source="slurm 20.02-25.05 scontrol show job, sacct",
        examples=(
            "   JobState=CANCELLED Reason=None",
            "4711   train  gpu   lab  64  CANCELLED by 1000   0:15",
            "4711   train  gpu   lab  64  CANCELLED+   0:15",
            "4711|train|CANCELLED by 1000|0:15",
        ),
        not_examples=("it was CANCELLED by 7",),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed"),
    ),
    Signature(
        pattern=r"TERM_(?:FORCE_|REQUEUE_)?(?:OWNER|ADMIN): [Jj]ob killed (?:and requeued )?by |TERM_BUCKET_KILL: [Jj]ob killed",
        source="LSF 9-10.1 mail and output of a job, bjobs, bhist: termination reasons",
        examples=(
            "TERM_OWNER: job killed by owner.",
            "TERM_ADMIN: job killed by root or LSF administrator.",
            "TERM_ADMIN: job killed by root or an administrator.",
            "TERM_FORCE_OWNER: job killed by owner without time for cleanup.",
            "TERM_REQUEUE_OWNER: job killed and requeued by owner.",
            "TERM_BUCKET_KILL: job killed with bkill -b.",
        ),
        not_examples=("OWNER: job killed by hand", "BUCKET_KILL: job killed"),
        level=Level.STRONG,
        hint="ask who ended it (`bhist -l JOB`), and resume from the last checkpoint",
        masks=("host-oom-killed", "rank-killed"),
    ),
    Signature(
        pattern=r"has not produced any output \(state: CANCELLED",
        source="submitit 1.0-1.5 core/core.py: the state that sacct reports",
        examples=(
            "submitit.core.utils.UncompletedJobError: Job 123 (task: 0) with path /x/123_0_result.pkl has not produced any output (state: CANCELLED)",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^Status: +Terminating \(lasts ",
        source="kubernetes 1.10-1.34 kubectl/pkg/describe/describe.go",
        message="the pod is being deleted",
        hint="find out what deletes it: `kubectl get events`, the controller that owns the pod, a drain of the node, or a user",
        examples=(
            "Status:                    Terminating (lasts 3s)",
            "Status:                    Terminating (lasts <invalid>)",
        ),
        not_examples=("its Status: Terminating (lasts 3s)",),
        level=Level.STRONG,
    ),
)
