"""Slurm could not start the job's tasks.

## Why it matters
The job has its nodes, but `slurmd` or `slurmstepd` on one of them could not start the step: the node did not
answer, a credential was not accepted, or a plugin, a prolog or the setup of cgroups failed. No part of the
program has run there.

## What to do
Look at the first message that names a node, and at the log of `slurmd` on that node; whoever runs the cluster
can read it. Submit again with `--exclude=NODE`. If every node fails, the fault is in the configuration of
Slurm or in an option of `srun`, such as `--mpi` or `--container-image`.

## References
- Slurm src/api/step_launch.c, src/srun/launch.c, src/slurmd/slurmstepd/mgr.c, src/slurmd/slurmstepd/task.c
- https://slurm.schedmd.com/troubleshoot.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "slurm-step-not-started",
    id="DSD1657",
    scope=Scope.NODE,
    since="0.1",
    transient="other nodes may start it",
)

HINT = "find the first message that names a node, submit again with `--exclude=NODE`, and send that message to whoever runs the cluster"

#: What the rest of the step reports of it.
_VICTIMS = ("job-cancelled", "host-oom-killed", "rank-killed", "rendezvous-timeout")

SIGNATURES = (
    Signature(
        pattern=r"error: Task launch for (?:StepId=)?\S{1,60} failed on node (?P<node>[\w.-]{1,253}): (?P<why>\S.{0,200})",
        source="slurm 2.2-25.11 src/api/step_launch.c",
        message="Slurm could not start the tasks on node {node}: {why}",
        hint="submit again with `--exclude={node}`; if other nodes fail as well, look at the messages of `slurmstepd` above, or ask whoever runs the cluster",
        examples=(
            "srun: error: Task launch for StepId=412.0 failed on node gpu-3: Communication connection failure",
            "srun: error: Task launch for 412.0 failed on node gpu-3: Invalid job credential",
        ),
        not_examples=("error: Task launch for StepId=412.0 failed on node gpu-3",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"srun: error: Application launch failed: (?P<why>\S.{0,200})",
        source="slurm 2.2-25.11 src/srun/launch.c, plugins/launch/slurm",
        message="Slurm could not start the step: {why}",
        examples=("srun: error: Application launch failed: Invalid job credential",),
        not_examples=("srun: error: Application launch failed: ",),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"error: (?:_exec_task\S*: )?Failed to invoke task plugins: (?:task_p_pre_launch error|one of task_p_pre_\w{1,20} functions returned error)",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c, mgr.c",
        message="A plugin of Slurm that binds tasks to CPUs or to a cgroup failed on the node",
        hint="if the step binds CPUs (`--cpu-bind`, `--cpus-per-task`), ask for no more than the job has; otherwise submit with `--exclude` of that node and report it",
        examples=(
            "slurmstepd: error: Failed to invoke task plugins: task_p_pre_launch error",
            "slurmstepd: error: Failed to invoke task plugins: one of task_p_pre_setuid functions returned error",
        ),
        not_examples=("error: Failed to invoke task plugins: one of them",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern="error: TaskProlog failed status=",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c",
        message="The task prolog of the site failed on the node",
        hint="look at what the prolog printed above; a site's prolog is corrected by whoever runs the cluster, your own (`srun --task-prolog`) by you",
        examples=("slurmstepd: error: TaskProlog failed status=1",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"error: (?:\w{1,40}: )?(?P<why>Plugin stack initialization failed|Failed to invoke spank plugin stack|Unable to configure MPI plugin: .{1,200}|Failed mpi_g_slurmstepd_prefork)",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c, mgr.c",
        message="A plugin of Slurm failed on the node: {why}",
        examples=(
            "slurmstepd: error: _fork_all_tasks: Plugin stack initialization failed.",
            "slurmstepd: error: Failed to invoke spank plugin stack",
            "slurmstepd: error: Unable to configure MPI plugin: No such file or directory",
            "slurmstepd: error: Failed mpi_g_slurmstepd_prefork",
        ),
        not_examples=("what Failed to invoke spank plugin stack means",),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"error: (?:\w{1,60}: )?unable to create cgroup '(?P<cgroup>[^']{1,300})' ?: (?P<why>.{1,100})",
        source="slurm 2.6-25.11 src/plugins/cgroup/common/cgroup_common.c, src/slurmd/common/xcgroup.c",
        message="Slurm could not create the cgroup `{cgroup}` on the node: {why}",
        hint="submit again with `--exclude` of that node, and report it: `No space left on device` is the kernel's limit of cgroups there, not a full disk",
        examples=(
            "slurmstepd: error: common_cgroup_instantiate: unable to create cgroup '/sys/fs/cgroup/memory/slurm/uid_7' : No space left on device",
            "slurmstepd: error: unable to create cgroup '/cgroup/slurm' : Permission denied",
        ),
        not_examples=("error: unable to create cgroup '/cgroup/slurm' ",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"error: (?:\w{1,40}: )?IO setup failed: ",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/mgr.c",
        message="Slurm could not open the output files of the job",
        hint="create the directory of `--output` and `--error` on a file system that the node mounts, then submit again",
        examples=("slurmstepd: error: IO setup failed: No such file or directory",),
        not_examples=("the IO setup failed: x",),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"error: spank: required plugin (?P<plugin>[\w./-]{1,200}): ",
        source="slurm 2.2-25.11 src/common/spank.c",
        message="The SPANK plugin `{plugin}`, which the site requires, failed",
        examples=("slurmstepd: error: spank: required plugin spank_pyxis.so: init() failed",),
        not_examples=("error: spank: required plugin not there",),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
)
