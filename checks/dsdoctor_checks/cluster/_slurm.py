"""What Slurm sets in a job's environment.

Source: sbatch(1) and srun(1) of Slurm 22.05 to 24.05, output environment variables.
"""

from __future__ import annotations

import re

from dsdoctor.api import Environment, whole


def in_job(env: Environment) -> bool:
    """Whether this runs inside a Slurm job."""
    return bool(env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID"))


def number(env: Environment, *names: str) -> int | None:
    """The value of the first variable that is a plain number."""
    for name in names:
        value = whole(env.get(name) or "")
        if value is not None:
            return value
    return None


def counted(text: str) -> int:
    """Number of devices in a list as Slurm writes it.

    >>> counted("0,1,4-7"), counted("GPU-1,GPU-2"), counted("")
    (6, 2, 0)
    """
    total = 0
    for part in text.split(","):
        span = re.fullmatch(r"(\d{1,9})-(\d{1,9})", part.strip())
        if span:
            total += int(span[2]) - int(span[1]) + 1
        elif part.strip():
            total += 1
    return total


def gpus_of_node(env: Environment) -> tuple[int, str] | None:
    """GPUs that the job has on this node, and the variable that says so."""
    plain = number(env, "SLURM_GPUS_ON_NODE")
    if plain is not None:
        return plain, "SLURM_GPUS_ON_NODE"
    for name in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS"):
        value = env.get(name)
        if value:
            return counted(value), name
    return None


def cpus_of_node(env: Environment) -> int | None:
    """CPUs that the job has on this node."""
    return number(env, "SLURM_CPUS_ON_NODE")


def memory_of_node_mib(env: Environment) -> int | None:
    """Memory that the job requested on this node, in MiB; None if it requested none or all.

    >>> memory_of_node_mib(Environment(variables={"SLURM_MEM_PER_NODE": "65536"}))
    65536
    """
    whole = number(env, "SLURM_MEM_PER_NODE")
    if whole is not None:
        return whole or None
    each, cpus = number(env, "SLURM_MEM_PER_CPU"), cpus_of_node(env)
    if each and cpus:
        return each * cpus
    each, found = number(env, "SLURM_MEM_PER_GPU"), gpus_of_node(env)
    return each * found[0] if each and found else None


def tasks_of_node(env: Environment) -> int | None:
    """Processes that `srun` starts on this node, None when that is not said."""
    plain = number(env, "SLURM_NTASKS_PER_NODE")
    if plain is not None:
        return plain
    found = re.match(r"(\d{1,9})(?!\d)", env.get("SLURM_TASKS_PER_NODE") or "")
    return int(found[1]) if found else None
