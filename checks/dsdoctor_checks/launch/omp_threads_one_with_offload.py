"""The optimizer is offloaded to the CPU but uses one thread.

## Why it matters
With offload the Adam step runs on the CPU with OpenMP threads. If `OMP_NUM_THREADS` is not set,
torchrun sets it to 1 when it starts several ranks. The step then uses one core of each rank.

## What to do
Set `OMP_NUM_THREADS` to the number of cores for each rank.

## References
torch/distributed/run.py (`OMP_NUM_THREADS`), deepspeed/csrc/adam/cpu_adam_impl.cpp
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DsConfig,
    Environment,
    Finding,
    LaunchCommand,
    Missing,
    Resources,
    Scope,
    check,
    is_partial,
    ok,
    warn,
)

CONDITION = Condition("omp-threads-one-with-offload", id="DSD1208", scope=Scope.JOB, since="0.1")

_FEW_CORES = 4


@check(CONDITION)
def offload_has_threads(
    config: DsConfig,
    environment: Environment,
    resources: Resources,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Warns if one thread is set, or if torchrun will set it."""
    device = config.get("zero_optimization.offload_optimizer.device")
    if device not in {"cpu", "nvme"} or config.get("zero_optimization.stage") in {0, None}:
        return
    value = environment.get("OMP_NUM_THREADS")
    ranks = 1
    torchrun = False
    if isinstance(command, LaunchCommand):
        value = command.env.get("OMP_NUM_THREADS", value)
        ranks = command.num_gpus or 1
        kind = command.inner or command.launcher
        threads = "num_cpu_threads_per_process" in command.options
        torchrun = kind == "torchrun" and not threads
    cores = resources.cpus_usable // max(1, ranks)
    if cores < _FEW_CORES:
        return  # more threads would gain little
    if value == "1":
        said = "`OMP_NUM_THREADS` is 1"
    elif value is None and torchrun and ranks > 1 and not is_partial(environment.variables):
        said = "`OMP_NUM_THREADS` is not set, and `torchrun` sets it to 1"
    else:
        yield ok(omp_num_threads=value, cores_per_rank=cores)
        return
    yield warn(
        f"{said}, but the optimizer is offloaded to the CPU and each rank has {cores} cores",
        effect="the optimizer step runs on one core",
        hint=f"set `OMP_NUM_THREADS={cores}`",
        omp_num_threads=1,
        cores_per_rank=cores,
        ranks=ranks,
    )
