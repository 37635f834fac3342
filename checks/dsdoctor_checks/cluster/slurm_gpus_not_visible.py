"""The visible GPUs differ from those that Slurm assigned to the job.

## Why it matters
Slurm assigns GPUs to a job, and `CUDA_VISIBLE_DEVICES` and the device cgroup should show only those.
If fewer are visible, ranks fail with `invalid device ordinal`. If a script overwrites the variable,
the job uses the GPUs of other jobs. A job without `--gres` or `--gpus` sees no GPU, or all of them.
A task that `srun` binds to its own GPUs (`--gpu-bind`, `--gpus-per-task`) sees those alone, as it should:
`SLURM_STEP_GPUS` lists them, while `SLURM_GPUS_ON_NODE` counts the GPUs of all tasks.
The shell of `salloc` often runs on the login node; only what `srun` starts there has the GPUs of the job.

## What to do
Request GPUs (`--gpus-per-node=N` or `--gres=gpu:N`), and remove `export CUDA_VISIBLE_DEVICES=…` from
the job script.

## References
- https://slurm.schedmd.com/gres.html (GPU management), sbatch(1): SLURM_GPUS_ON_NODE, SLURM_JOB_GPUS
- Slurm 26.05 src/interfaces/gres.c (`gres_g_task_set_env`): a bound task keeps the SLURM_GPUS_ON_NODE of its step
- CUDA programming guide, CUDA_VISIBLE_DEVICES: UUIDs of GPUs and MIG slices are accepted too
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Missing,
    Nvml,
    Packages,
    RunNeeds,
    Scope,
    TorchBuild,
    TorchLive,
    Why,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import amount, cuda_works, other_accelerator, visible, visible_tokens

from ._slurm import (
    beside_the_job,
    gpus_of_node,
    in_job,
    in_step,
    share_of_task,
    takes_its_turn,
)

CONDITION = Condition(
    "slurm-gpus-not-visible",
    id="DSD1601",
    scope=Scope.JOB,
    since="0.1",
    narrower=("docker-gpu-runtime-missing",),
)


def _devices(gpu: Gpu) -> int:
    """Number of CUDA devices: a MIG GPU has one per slice."""
    return len(gpu.mig_devices or ()) or 1 if gpu.mig_mode else 1


def _none_assigned(
    seen: int, run: RunNeeds, nvml: Nvml | Missing, live: TorchLive | Missing, what: str
) -> Iterator[Finding]:
    """A job or a step without GPUs: a problem if it needs one, or cannot use those of the node."""
    needed = run.wants_gpu or (isinstance(live, TorchLive) and live.cuda_ok is False)
    on_node = isinstance(nvml, Nvml) and nvml.error is None
    if not run.wants_gpu and (seen or not on_node):
        yield skip(f"Slurm assigned no GPU to this {what}")
        return
    why = "but the run needs one" if run.wants_gpu else "so it cannot use the GPUs of this node"
    command = "sbatch" if what == "job" else "srun"
    yield (fail if needed else warn)(
        f"Slurm assigned no GPU to this {what}, {why}",
        effect="CUDA finds no device, or uses the GPUs of other jobs",
        hint=f"request GPUs: `{command} --gpus-per-node=N` or `{command} --gres=gpu:N`",
        visible=seen,
    )


def _fewer(
    env: Environment,
    count: int,
    name: str,
    seen: int,
    selector: str,
    tokens: tuple[str, ...] | None,
) -> Iterator[Finding]:
    """Fewer GPUs than the job has on this node: all of a task's, or too few."""
    evidence: dict[str, Any] = {
        "given": count,
        "visible": seen,
        "variable": name,
        "tokens": list(tokens or ()),
    }
    share = share_of_task(env, count)
    if share is not None and share.gpus <= seen:
        yield ok("srun binds each task to some of the step's GPUs", per_task=share.gpus, **evidence)
        return
    own = share is None and tokens is not None and len(tokens) == seen
    turn = takes_its_turn(env, count, tokens) if own and tokens else None
    if turn:
        yield ok("each task of the step selects its own of the step's GPUs", **evidence)
        return
    if turn is False:
        yield skip(
            f"this task of several selects {amount(seen, 'GPU')} of the step's {count} itself"
            f" (`{selector}`); whether another task selects the same is not known",
            **evidence,
        )
        return
    whose, sees = "of this node to the job", "the job"
    if share is not None and share.gpus < count:
        count, name = share
        whose, sees = "to this task", "it"
    yield fail(
        f"Slurm assigned {amount(count, 'GPU')} {whose} (`{name}`), but {sees} sees {seen}",
        effect=f"ranks from {seen} on fail with `invalid device ordinal`",
        hint=f"remove `{selector}` from the job script, and compare with "
        "`scontrol show job -d $SLURM_JOB_ID`",
        **{**evidence, "given": count, "variable": name},
    )


def _of_amd(live: TorchLive | Missing, env: Environment) -> tuple[int, str, tuple[str, ...] | None]:
    """GPUs that torch sees through ROCm, and the variable that selects them.

    HIP selects among the GPUs that ROCR leaves, so the first variable that is set has selected.
    """
    names = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    name = next((name for name in names if env.get(name) is not None), names[0])
    value = env.get(name)
    tokens = None if value is None else tuple(part.strip() for part in value.split(","))
    return len(live.devices) if isinstance(live, TorchLive) else 0, name, tokens


@check(CONDITION)
def allocation_is_visible(
    env: Environment,
    gpus: Gpus | Missing,
    run: RunNeeds,
    nvml: Nvml | Missing,
    live: TorchLive | Missing,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedLive | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """Compares the number that Slurm assigned with the devices that CUDA would see."""
    if not in_job(env):
        yield skip("not in a Slurm job")
        return
    other = other_accelerator(torch, deepspeed, packages, env)
    if other is not None and not (isinstance(gpus, Gpus) and gpus.gpus):
        given = gpus_of_node(env)
        if other == "AMD ROCm" and cuda_works(live) and given is not None:
            seen, selector, tokens = _of_amd(live, env)
            if seen < given[0]:
                yield from _fewer(env, *given, seen, selector, tokens)
            else:  # more, where a card is partitioned
                yield ok(given=given[0], visible=seen)
            return
        yield skip(f"the job uses {other}, whose devices NVML does not count")
        return
    if isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED:
        yield skip(gpus.detail)
        return
    given = gpus_of_node(env)
    tokens = visible_tokens(env)
    if isinstance(gpus, Missing) or not gpus.gpus:
        seen = 0
    elif tokens is None:
        seen = sum(_devices(gpu) for gpu in gpus.gpus)
    else:
        slices = [token for token in tokens if token.upper().startswith("MIG-")]
        seen = len(slices) or len(visible(gpus, env))
    if given is None and beside_the_job(env):
        yield skip(
            "this is the shell of `salloc`, outside the job's steps: check them with"
            " `srun dsdoctor check`"
        )
        return
    if given is None or given[0] == 0:
        yield from _none_assigned(seen, run, nvml, live, "step" if in_step(env) else "job")
        return
    count, name = given
    if seen < count:
        yield from _fewer(env, count, name, seen, "CUDA_VISIBLE_DEVICES", tokens)
        return
    evidence: dict[str, Any] = {
        "given": count,
        "visible": seen,
        "variable": name,
        "tokens": list(tokens or ()),
    }
    if seen > count:
        yield warn(
            f"Slurm assigned {amount(count, 'GPU')} of this node to the job (`{name}`), but the job sees {seen}",
            effect="the job may use the GPUs of other jobs",
            hint="restrict `CUDA_VISIBLE_DEVICES` to the GPUs in `SLURM_JOB_GPUS`, and ask the"
            " administrator for `ConstrainDevices=yes` in cgroup.conf",
            **evidence,
        )
    else:
        yield ok(**evidence)
