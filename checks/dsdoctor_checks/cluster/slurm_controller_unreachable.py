"""Slurm's controller does not answer, or does not accept this machine.

## Why it matters
`sbatch`, `srun` and `squeue` ask `slurmctld`. If it is down, overloaded or behind a firewall, or if the
authentication (MUNGE) of this machine does not work, nothing can be submitted, and a step of a running job
cannot start.

## What to do
Run `scontrol ping`: it shows which controllers answer. If none does, wait and tell whoever runs the cluster. If
`sinfo` works on a login node and not here, this machine or container has no Slurm configuration
(`/etc/slurm/slurm.conf`, `SLURM_CONF`) or no access to the socket of `munged`, or its clock is wrong.

## References
- Slurm src/common/slurm_errno.c, src/common/read_config.c, src/plugins/auth/munge/auth_munge.c
- https://slurm.schedmd.com/troubleshoot.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "slurm-controller-unreachable",
    id="DSD1658",
    scope=Scope.NODE,
    since="0.1",
    transient="the controller may answer again",
)

HINT = "run `scontrol ping`; if no controller answers, wait and tell whoever runs the cluster"

SIGNATURES = (
    Signature(
        pattern=r"Unable to contact slurm controller \((?P<step>connect|send|receive|shutdown) failure\)",
        source="slurm 1.0-25.11 src/common/slurm_errno.c",
        message="Slurm's controller does not answer ({step} failure)",
        examples=(
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "slurm_load_jobs error: Unable to contact slurm controller (send failure)",
            "srun: error: Unable to create step for job 412: Unable to contact slurm controller (receive failure)",
            "slurmd: error: Unable to register: Unable to contact slurm controller (shutdown failure)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"error: (?:Batch job submission failed|Unable to allocate resources|Job submit/allocate failed|Unable to create step for job \d+)?(?:: )?(?P<why>Socket timed out on send/recv operation|Zero Bytes were transmitted or received|Slurm temporarily unable to accept job, sleeping and retrying)",
        source="slurm 1.0-25.11 src/common/slurm_errno.c",
        message="Slurm's controller does not answer in time: {why}",
        examples=(
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            "salloc: error: Job submit/allocate failed: Zero Bytes were transmitted or received",
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        ),
        not_examples=("the test waits for: Socket timed out on send/recv operation",),
    ),
    Signature(
        pattern=r"(?:fatal|error): Could not establish a configuration source",
        source="slurm 20.02-25.11 src/common/read_config.c",
        message="This machine has no Slurm configuration: there is no `slurm.conf`, and DNS has no record of a controller",
        hint="run it on a login node or inside a job, mount `/etc/slurm` into the container, or set `SLURM_CONF` or `SLURM_CONF_SERVER` as a login shell does",
        examples=(
            "sbatch: fatal: Could not establish a configuration source",
            "srun: error: Could not establish a configuration source",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"error: (?:\w{1,40}: )?(?:auth/munge: )?Munge (?:encode|decode) failed: (?P<why>.{1,200})",
        source="slurm 1.0-25.11 src/plugins/auth/munge/auth_munge.c",
        message="Slurm's MUNGE authentication fails: {why}",
        hint="check on this machine that `munged` runs and its socket can be reached (`munge -n | unmunge`), that the clock is right, and that it has the key of the cluster",
        examples=(
            'srun: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory',
            "slurmstepd: error: auth_p_verify: Munge decode failed: Expired credential",
            "slurmd: error: Munge decode failed: Invalid credential",
        ),
        not_examples=("error: Munge decode failed: ",),
        level=Level.STRONG,
    ),
)
