"""What Slurm sets in a job's environment.

Source: sbatch(1) and srun(1) of Slurm 22.05 to 24.05, output environment variables; what the shell of
salloc, a batch script and the tasks of steps got from a Slurm 22.05 with four GPUs (2026-12-01).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dsdoctor.api import Environment, whole


def in_job(env: Environment) -> bool:
    """Whether this runs inside a Slurm job."""
    return bool(env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID"))


def in_step(env: Environment) -> bool:
    """Whether this is a task of a step.

    A batch script has no step, and is number 0 of its job; sbatch unsets the step that it was called in.
    """
    return bool(env.get("SLURM_STEP_ID") or env.get("SLURM_STEPID") or number(env, "SLURM_PROCID"))


def beside_the_job(env: Environment) -> bool:
    """Whether this is the shell of salloc, which Slurm may start on the node where salloc runs.

    It has the job's number, and no variable of a node: neither a rank, as batch scripts and tasks
    have, nor the context of a prolog. With `LaunchParameters=use_interactive_step` it is a task.
    """
    return not any(env.get(name) for name in ("SLURM_PROCID", "SLURM_SCRIPT_CONTEXT"))


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
    listed = env.get("SLURM_STEP_GPUS")
    if listed:
        return counted(listed), "SLURM_STEP_GPUS"
    listed = env.get("SLURM_JOB_GPUS")
    if not listed:
        return None
    if in_step(env) and env.get("CUDA_VISIBLE_DEVICES") is None:
        return 0, "SLURM_STEP_GPUS"  # `srun --gres=none`; the job's variable is inherited
    return counted(listed), "SLURM_JOB_GPUS"


#: How srun binds tasks to GPUs; with `--gpus-per-task`, it does so unless told otherwise (Slurm 18.08 to
#: 26.05, src/common/tres_bind.c and slurm_opt.c; `gpu:` was `gres/gpu:` from 23.11 on).
_BINDING = re.compile(
    r"(?:^|[+;])(?:gres/)?gpu:(?:verbose,)?"
    r"(?:(?:closest|map|mask|single)|per_task:(?P<each>\d{1,9}))",
    re.IGNORECASE,
)


def gpus_of_task(env: Environment) -> int | None:
    """The fewest GPUs that a task sees if srun binds its tasks to them; None if it does not.

    slurmstepd sets the variable in tasks only, not in the batch script (its task.c), and binds by
    `CUDA_VISIBLE_DEVICES`. Only `per_task` says how many a task gets.

    >>> gpus_of_task(Environment(variables={"SLURMD_TRES_BIND": "gres/gpu:per_task:2"}))
    2
    >>> gpus_of_task(Environment(variables={"SLURMD_TRES_BIND": "gpu:closest"}))
    1
    >>> gpus_of_task(Environment(variables={"SLURMD_TRES_BIND": "gres/gpu:none"}))
    """
    found = _BINDING.search(env.get("SLURMD_TRES_BIND") or "")
    return int(found["each"] or 1) if found else None


class Share(NamedTuple):
    """GPUs of one task.

    Attributes:
        gpus: how many it has at least.
        name: the variable that says so.
    """

    gpus: int
    name: str


def share_of_task(env: Environment, count: int) -> Share | None:
    """The GPUs of this task, if Slurm divides the `count` GPUs of the step among its tasks.

    SLURM_STEP_GPUS and CUDA_VISIBLE_DEVICES list the same GPUs of the task, SLURM_GPUS_ON_NODE counts
    those of the step (gres_common.c, Slurm 19.05 to 26.05). A job that was submitted from within a
    step inherits that step's SLURM_STEP_GPUS, so it counts only in a task.

    >>> def share(**variables): return share_of_task(Environment(variables=variables), 4)
    >>> share(SLURM_STEP_ID="0", SLURM_STEP_GPUS="2,3")
    Share(gpus=2, name='SLURM_STEP_GPUS')
    >>> share(SLURM_STEP_GPUS="2,3"), share(SLURM_STEP_ID="0", SLURM_STEP_GPUS="0-3")
    (None, None)
    """
    bound = gpus_of_task(env)
    each = number(env, "SLURM_GPUS_PER_TASK")
    own = counted(env.get("SLURM_STEP_GPUS") or "")
    if 0 < own < count and (in_step(env) or bound is not None or own == each):
        return Share(own, "SLURM_STEP_GPUS")
    if bound is not None:
        return Share(min(bound, count), "SLURMD_TRES_BIND")
    if each and in_step(env):  # it binds the tasks, unless --gpu-bind says otherwise
        return Share(min(each, count), "SLURM_GPUS_PER_TASK")
    return None


def tasks_here(env: Environment) -> int | None:
    """Tasks of this step on this node; None in no step, or where that is not said.

    >>> def tasks(**variables):
    ...     return tasks_here(Environment(variables={"SLURM_STEP_ID": "0", **variables}))
    >>> tasks(SLURM_STEP_TASKS_PER_NODE="4(x2),1", SLURM_NODEID="2")
    1
    >>> tasks(SLURM_STEP_TASKS_PER_NODE="4(x2)"), tasks(SLURM_STEP_TASKS_PER_NODE="3,1"), tasks()
    (4, None, None)
    >>> tasks(SLURM_STEP_TASKS_PER_NODE="1(x4000000)")
    1
    """
    if not in_step(env):
        return None
    names = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE")
    listed = next(filter(None, map(env.get, names)), "")
    spans: list[tuple[int, int]] = []
    for part in listed.split(",") if listed else ():
        found = re.fullmatch(r"(\d{1,9})(?:\(x(\d{1,9})\))?", part.strip())
        if found is None:
            return None
        spans.append((int(found[1]), int(found[2] or 1)))
    node = number(env, "SLURM_NODEID")
    if len({count for count, _ in spans}) == 1:
        return spans[0][0]
    if node is None:
        return None
    for count, nodes in spans:
        if node < nodes:
            return count
        node -= nodes
    return None


def takes_its_turn(env: Environment, count: int, tokens: tuple[str, ...]) -> bool | None:
    """Whether a wrapper under srun has chosen this task's GPUs among the `count` of all tasks.

    Scripts that start each task set CUDA_VISIBLE_DEVICES from SLURM_LOCALID, in ascending or
    descending order. srun sets the variable itself, so what a batch script exports does not last.

    Returns:
        True if they are the ones of its number; False if they are as many, but others: then the
        other tasks decide whether two of them share a GPU; None if they are no such choice.
    """
    tasks, place = tasks_here(env), number(env, "SLURM_LOCALID")
    if not tasks or place is None or not count:
        return None
    size = max(1, count // tasks)
    if len(tokens) != size or not all(token.isdecimal() for token in tokens):
        return None
    groups = max(1, count // size)
    chosen = {int(token[:9]) for token in tokens}
    starts = (place % groups * size, (groups - 1 - place % groups) * size)
    return any(chosen == set(range(start, start + size)) for start in starts)


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


def nodes_of(options: Mapping[str, str]) -> int | None:
    """Number of nodes that options ask for; None for a range, or without a number.

    >>> nodes_of({"nodes": "2"}), nodes_of({"N": "2-4"}), nodes_of({})
    (2, None, None)
    """
    return whole(options.get("nodes", options.get("N", "")))


def tasks_of_step(step: Mapping[str, str], batch: Mapping[str, str]) -> int | None:
    """Tasks on a node of a step of srun in a batch job; None where the options do not say.

    The options of srun take precedence (srun(1): `--ntasks` makes `--ntasks-per-node` the most).

    >>> tasks_of_step({}, {"ntasks_per_node": "8", "nodes": "2"})
    8
    >>> tasks_of_step({"n": "2"}, {"ntasks_per_node": "8", "nodes": "2"})
    1
    >>> tasks_of_step({}, {"ntasks": "16", "nodes": "2"}), tasks_of_step({}, {"nodes": "2"})
    (8, None)
    """
    nodes = nodes_of(step) or nodes_of(batch)
    for options in (step, batch):
        tasks = whole(options.get("ntasks", options.get("n", "")))
        if tasks is not None and options is step:
            return 1 if tasks == 1 else None if nodes is None else -(-tasks // nodes)
        each = whole(options.get("ntasks_per_node", ""))
        if each is not None:
            return each
        if tasks is not None:
            return None if nodes is None else -(-tasks // nodes)
    return None


def gpus_asked(options: Mapping[str, str]) -> tuple[int, str] | None:
    """GPUs on each node that options ask for, and the option; None where they do not say.

    >>> gpus_asked({"gres": "gpu:h100:8"}), gpus_asked({"gpus_per_node": "4"})
    ((8, '--gres=gpu:h100:8'), (4, '--gpus-per-node=4'))
    >>> gpus_asked({"gpus": "16", "nodes": "2"}), gpus_asked({"gres": "gpu"}), gpus_asked({"gpus": "3"})
    ((8, '--gpus=16'), (1, '--gres=gpu'), None)
    """
    for name in ("gpus_per_node", "gres"):
        value = options.get(name, "")
        parts = [part.split("(")[0] for part in value.split(",") if part]
        if name == "gres":
            parts = [part for part in parts if part.partition(":")[0] in ("gpu", "gres/gpu")]
        counts = [_count(part) for part in parts]
        if counts:
            total = sum(count for count in counts if count is not None)
            shown = f"--{name.replace('_', '-')}={value}"
            return None if None in counts else (total, shown)
    whole_job, nodes = _count(options.get("gpus", "")), nodes_of(options)
    if options.get("gpus") and whole_job is not None and nodes and whole_job % nodes == 0:
        return whole_job // nodes, f"--gpus={options['gpus']}"
    return None


def _count(part: str) -> int | None:
    """The number in `gpu:h100:8`, `h100:8` or `8`; 1 where there is a name alone."""
    last = part.rpartition(":")[2]
    number = whole(last)
    if number is None and re.fullmatch(r"[a-z][\w.-]*", last, re.IGNORECASE):
        return 1
    return number
