"""The visible GPUs differ from those that Slurm assigned to the job.

## Why it matters
Slurm assigns GPUs to a job, and `CUDA_VISIBLE_DEVICES` and the device cgroup should show only those.
If fewer are visible, ranks fail with `invalid device ordinal`. If a script overwrites the variable,
the job uses the GPUs of other jobs. A job without `--gres` or `--gpus` sees no GPU, or all of them.
A task that `srun` binds to its own GPUs (`--gpu-bind`, `--gpus-per-task`) sees those alone, as it should.

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
from dsdoctor_checks._util import amount, other_accelerator, visible, visible_tokens

from ._slurm import gpus_of_node, gpus_of_task, in_job

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
    seen: int, run: RunNeeds, nvml: Nvml | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """A job without GPUs: a problem if it needs one, or if the node has some that it cannot use."""
    needed = run.wants_gpu or (isinstance(live, TorchLive) and live.cuda_ok is False)
    on_node = isinstance(nvml, Nvml) and nvml.error is None
    if not run.wants_gpu and (seen or not on_node):
        yield skip("Slurm assigned no GPU to this job")
        return
    what = "but the run needs one" if run.wants_gpu else "so it cannot use the GPUs of this node"
    yield (fail if needed else warn)(
        f"Slurm assigned no GPU to this job, {what}",
        effect="CUDA finds no device, or uses the GPUs of other jobs",
        hint="submit with `--gpus-per-node=N` or `--gres=gpu:N`",
        visible=seen,
    )


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
    if given is None or given[0] == 0:
        yield from _none_assigned(seen, run, nvml, live)
        return
    count, name = given
    evidence: dict[str, Any] = {
        "given": count,
        "visible": seen,
        "variable": name,
        "tokens": list(tokens or ()),
    }
    bound = gpus_of_task(env)
    if bound is not None and min(bound, count) <= seen < count:
        yield ok("srun binds each task to some of the step's GPUs", per_task=bound, **evidence)
    elif seen < count:
        yield fail(
            f"Slurm assigned {amount(count, 'GPU')} of this node to the job (`{name}`), but the job sees {seen}",
            effect=f"ranks from {seen} on fail with `invalid device ordinal`",
            hint="remove `CUDA_VISIBLE_DEVICES` from the job script, and compare with "
            "`scontrol show job -d $SLURM_JOB_ID`",
            **evidence,
        )
    elif seen > count:
        yield warn(
            f"Slurm assigned {amount(count, 'GPU')} of this node to the job (`{name}`), but the job sees {seen}",
            effect="the job may use the GPUs of other jobs",
            hint="restrict `CUDA_VISIBLE_DEVICES` to the GPUs in `SLURM_JOB_GPUS`, and ask the"
            " administrator for `ConstrainDevices=yes` in cgroup.conf",
            **evidence,
        )
    else:
        yield ok(**evidence)
