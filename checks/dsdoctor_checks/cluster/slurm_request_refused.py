"""Slurm refuses the job or the step.

## Why it matters
Nothing was started. Slurm compares the request with its partitions, nodes, accounts and limits when the
job is submitted, and `srun` compares a step with its job. A site's own filter can refuse a job as
well; its reason is in the line above.

## What to do
Correct what the message names. `sinfo -o "%P %D %c %m %G %l"` lists the partitions with the CPUs,
the memory and the GPUs of their nodes and the longest time; `sacctmgr show assoc user=$USER` lists your
accounts and limits. Inside a job, `srun` may ask for no more than the job has:
`scontrol show job $SLURM_JOB_ID` lists it, and a job that was submitted from within another inherits
its `SLURM_*` variables (`unset` them, or submit from a login node).

## References
- https://slurm.schedmd.com/sbatch.html
- Slurm src/common/slurm_errno.c: the reasons; src/sbatch/sbatch.c: what a script must be
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition("slurm-request-refused", id="DSD1656", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def the_script_is_taken(run: RunNeeds) -> Iterator[Finding]:
    """Judges the script as sbatch does before it sends the job."""
    if run.batch_refused == "no interpreter":
        yield fail(
            "the first line of the batch script does not begin with `#!`",
            effect="sbatch stops with `This does not look like a batch script`",
            hint="make `#!/bin/bash` the first line, without anything before it",
        )
    elif run.batch_refused == "line breaks":
        yield fail(
            "the lines of the batch script end as on Windows, with a carriage return",
            effect="sbatch stops with `Batch script contains DOS line breaks`",
            hint="run `dos2unix` or `sed -i 's/\\r$//'` on the script",
        )
    elif run.batch:
        yield ok()
    else:
        yield skip("the command submits no Slurm job")


HINT = 'correct what Slurm names; `sinfo -o "%P %D %c %m %G %l"` lists what each partition offers, and `sacctmgr show assoc user=$USER` your accounts and limits'

#: How `sbatch`, `salloc` and `srun` begin the line of a job that was refused.
_JOB = r"error: (?:Batch job submission failed|Unable to allocate resources|Job submit/allocate failed): "

SIGNATURES = (
    Signature(
        pattern=_JOB + r"Requested node configuration is not available",
        source="slurm 2.2-25.05 src/sbatch/sbatch.c, src/salloc/salloc.c, src/srun/libsrun/allocate.c, src/common/slurm_errno.c",
        message="Slurm refuses the job: no node of the partition has what it asks for",
        hint='ask for no more GPUs, CPUs and memory per node than `sinfo -o "%P %D %c %m %G"` lists for the partition; some sites reserve CPUs for the system',
        examples=(
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            "srun: error: Unable to allocate resources: Requested node configuration is not available",
            "salloc: error: Job submit/allocate failed: Requested node configuration is not available",
        ),
        not_examples=(),
        level=Level.CERTAIN,
    ),
    Signature(
        # a controller that does not answer, and a wait that was ended, are no refusals
        pattern=_JOB
        + r"(?P<why>(?!Requested node configuration|Unspecified error|Unable to contact|Zero Bytes|Socket timed out|Connection |Interrupted|Job/step already|Job (?:has been )?(?:cancel|revoked)|Invalid job id|Slurm temporarily)\w.{0,200})",
        source="slurm 2.2-25.05 src/sbatch/sbatch.c, src/salloc/salloc.c, src/srun/libsrun/allocate.c, src/common/slurm_errno.c",
        message="Slurm refuses the job: {why}",
        examples=(
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            "srun: error: Unable to allocate resources: Invalid partition name specified",
            "salloc: error: Job submit/allocate failed: Invalid generic resource (gres) specification",
        ),
        not_examples=(
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "srun: error: Unable to allocate resources: Socket timed out on send/recv operation",
            "salloc: error: Job submit/allocate failed: Connection refused",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=_JOB + r"Unspecified error",
        source="slurm 2.2-25.05 src/common/slurm_errno.c: SLURM_ERROR, which a site's plugin job_submit returns",
        message="A filter of the site refuses the job; the line above says why",
        hint="correct what the line above names; the documentation of the cluster says what its filter expects",
        examples=(
            "sbatch: error: Batch job submission failed: Unspecified error",
            "srun: error: Unable to allocate resources: Unspecified error",
            "salloc: error: Job submit/allocate failed: Unspecified error",
        ),
        not_examples=(),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?:srun|sbatch|salloc): error: (?P<why>Invalid generic resource \(gres\) specification|invalid partition specified: .{1,100})",
        source="slurm 2.2-25.05 src/srun/libsrun/allocate.c, src/common/slurm_errno.c; slurm 20.02-25.05 src/common/slurm_opt.c",
        message="Slurm refuses the request: {why}",
        examples=(
            "srun: error: Invalid generic resource (gres) specification",
            "sbatch: error: invalid partition specified: gpus",
            "salloc: error: invalid partition specified: gpus",
        ),
        not_examples=("srun: error: invalid partition specified: ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"srun: error: Unable to create step for job \d+: (?P<why>(?!Job/step already|Unable to contact|Zero Bytes|Socket timed out|Connection |Interrupted|Job has|Requested nodes are busy)\w.{0,200})",
        source="slurm 2.2-25.05 src/srun/libsrun/create_job.c, src/common/slurm_errno.c",
        message="Slurm refuses the step: {why}",
        hint="`srun` may ask for no more than its job has: compare its options with `scontrol show job JOBID`; in a job that was submitted from within another, unset the `SLURM_*` variables that it inherited",
        examples=(
            "srun: error: Unable to create step for job 412: Invalid generic resource (gres) specification",
            "srun: error: Unable to create step for job 412: More processors requested than permitted",
        ),
        not_examples=(
            "srun: error: Unable to create step for job 412: Job/step already completing or completed",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?:srun|sbatch|salloc): fatal: (?P<why>SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive|--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive)",
        source="slurm 19.05-25.05 src/common/slurm_opt.c",
        message="Slurm refuses the request: {why}",
        hint="set one of them only; a job that was submitted from within another inherits its `SLURM_MEM_*`: unset them before `srun`",
        examples=(
            "srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.",
            "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
            "salloc: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
        ),
        not_examples=(),
        level=Level.STRONG,
    ),
    Signature(
        # what submitit and others quote of `sbatch` where its last line is not shown
        pattern=r"^\S*(?:Error|Exception): sbatch: error: (?P<why>(?!Batch job submission failed).{1,200})",
        source="submitit 1.0-1.5 core/utils.py, which raises what sbatch printed; plugins job_submit of sites word it",
        message="Slurm refuses the job: {why}",
        examples=(
            "submitit.core.utils.FailedJobError: sbatch: error: Parameter --gres=gpu:1 no longer acceptable, please switch to --gpus=1",
            "SchedulerException: sbatch: error: You must always specify a type when requesting gpu GRES",
        ),
        not_examples=("OSError: sbatch: error: Batch job submission failed: x",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"srun: error: (?:[Ii]nvalid MPI type '(?P<type>[^']{1,60})'|.{0,80}(?:specified plugin name for|cannot find mpi plugin for|cannot find plugin for) (?P<plugin>mpi/\w{1,40}))",
        source="slurm 2.2-25.11 src/srun/srun_job.c, src/common/plugin.c, src/interfaces/mpi.c",
        message="This Slurm does not have the MPI plugin that `--mpi` asks for",
        hint="choose one of those that `srun --mpi=list` prints (`pmi2`, `pmix`), or start without `--mpi`",
        examples=(
            "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types",
            "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files",
            "srun: error: cannot find mpi plugin for mpi/pmix",
            "srun: error: cannot find plugin for mpi/pmix_v3",
        ),
        not_examples=(
            "srun: error: Invalid MPI type '', x",
            "srun: error: cannot find plugin for x",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Expired or invalid job (?P<job>\d+)",
        source="slurm 17.11-25.11 src/srun/launch.c (in src/srun/libsrun before 21.08); 2.2-25.11 src/srun/allocate.c",
        message="`srun` tried to start a step in job {job}, which has ended",
        hint="unset the `SLURM_*` variables of the ended job, or leave its shell, and submit again",
        examples=("srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 412",),
        not_examples=("Expired or invalid job id",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"sbatch: error: (?P<why>Unable to open file .{1,200}|This does not look like a batch script\.|Batch script contains DOS line breaks)",
        source="slurm 2.2-25.11 src/sbatch/sbatch.c",
        message="`sbatch` does not accept the script: {why}",
        hint="pass a file that exists and whose first line is `#!/bin/bash`; remove Windows line endings with `dos2unix`",
        examples=(
            "sbatch: error: Unable to open file train.slurm",
            "sbatch: error: This does not look like a batch script.  The first",
            "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
        ),
        not_examples=("sbatch: error: Unable to open file ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bs(?:run|batch|alloc): error: (?P<why>Invalid numeric value \x22[^\x22]{1,80}\x22 for --[\w-]{2,40})",
        source="slurm 2.2-25.11 src/common/proc_args.c",
        message="Slurm does not accept an option: {why}",
        hint="correct the number that the message names",
        examples=(
            'srun: error: Invalid numeric value "abc" for --gpus.',
            'sbatch: error: Invalid numeric value "abc" for --gpus.',
            'salloc: error: Invalid numeric value "abc" for --gpus.',
        ),
        not_examples=('srun: error: Invalid numeric value "abc"',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Unable to create step for job (?P<job>\d+): Job/step already completing or completed|Unable to confirm allocation for job (?P<old>\d+): (?:Invalid job id specified|Job/step already completing or completed)",
        source="slurm 17.11-25.11 src/srun/launch.c (in src/srun/libsrun before 21.08); 2.2-25.11 src/srun/allocate.c",
        message="`srun` tried to start a step in a job that has ended",
        hint="unset the `SLURM_*` variables of the ended job, or leave its shell, and submit again",
        examples=(
            "srun: error: Unable to create step for job 811: Job/step already completing or completed",
            "srun: error: Unable to confirm allocation for job 811: Invalid job id specified",
            "srun: error: Unable to confirm allocation for job 811: Job/step already completing or completed",
        ),
        not_examples=(
            "Unable to create step for job x: Job/step already completing or completed",
            "Unable to confirm allocation for job 811: x",
        ),
        level=Level.STRONG,
    ),
)
