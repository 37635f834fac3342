"""accelerate stops with several RTX 40 GPUs unless peer access and InfiniBand are disabled.

## Why it matters
RTX 40 GPUs have no peer access, and older drivers reported it all the same, so that NCCL hung. In each
rank, accelerate 0.25 and newer looks for several of these GPUs, and stops with `NotImplementedError`
unless `NCCL_P2P_DISABLE` and `NCCL_IB_DISABLE` are set. Since 0.29 it accepts driver 550.40.07 and
newer, but looks in a process without a launcher too. It counts the GPUs that `nvidia-smi` lists, whatever
`CUDA_VISIBLE_DEVICES` says. `accelerate launch` sets both variables for several ranks or DeepSpeed, but not for a
single process; `deepspeed`, `torchrun` and plain Python never do.

## What to do
Set both variables to 1, or start several ranks with `accelerate launch`.

## References
- accelerate 0.25.0 to 1.15.0: utils/environment.py (`check_cuda_p2p_ib_support`), state.py,
  commands/launch.py (`multi_gpu_launcher`, `deepspeed_launcher`, `simple_launcher`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Missing,
    Nvml,
    Packages,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import (
    at_least,
    job_environment,
    listed,
    may_be_set,
    stated_for_cpu,
    visible_tokens,
)

CONDITION = Condition("accelerate-refuses-gpus", id="DSD808", scope=Scope.JOB, since="0.1")
#: First release that asks; first that looks at the driver, and asks in single processes too; and the
#: driver (wheels 0.24.1, 0.25.0, 0.28.0, 0.29.0, 0.29.3, 0.30.1, 0.34.2, 1.0.1, 1.4.0, 1.7.0, 1.10.1
#: and 1.15.0, read 2026-12-01).
ASKS, KNOWS_DRIVERS, ACCEPTED = "0.25.0", "0.29.0", "550.40.07"
#: Options of `accelerate launch` with which a launcher that sets the variables starts one rank too.
_RANKED = frozenset({"multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "tpu"})
NAMES = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")


@check(CONDITION)
def accelerate_accepts_the_gpus(
    packages: Packages,
    gpus: Gpus,
    command: LaunchCommand,
    run: RunNeeds,
    env: Environment | Missing,
    nvml: Nvml | Missing,
) -> Iterator[Finding]:
    """Asks as accelerate does: all GPUs that the driver lists, whatever the job sees of them."""
    version = packages.version("accelerate")
    kind = command.inner or command.launcher
    known = run.framework in ("hf", "accelerate")
    if version is None or run.without_accelerate or run.framework in ("native", "lightning"):
        yield skip("the job does not use accelerate")
        return
    alone = known and at_least(version, KNOWS_DRIVERS) and _is_alone(command)
    if kind not in ("deepspeed", "torchrun") and not alone:
        yield skip("no launcher starts accelerate in its ranks")
        return
    job = job_environment(env, command)
    if stated_for_cpu(run, env, command) or visible_tokens(job) == ():
        yield skip("the job sees no GPU")
        return
    driver = nvml.driver_version if isinstance(nvml, Nvml) else None
    names = [gpu.name or "" for gpu in gpus.gpus]
    accepted = at_least(version, KNOWS_DRIVERS) and (driver is None or at_least(driver, ACCEPTED))
    unset = [name for name in NAMES if name not in command.env and not may_be_set(env, name)]
    concerned = [name for name in names if "RTX 40" in name]
    if len(names) < 2 or not concerned or accepted or not unset or not at_least(version, ASKS):  # noqa: PLR2004
        yield ok(accelerate=version, driver=driver)
        return
    words = " ".join(f"{name}=1" for name in unset)
    yield (fail if known else warn)(
        f"accelerate {version} does not run on {len(names)} GPUs of which one is an {concerned[0]}"
        + (f" (driver {driver})" if at_least(version, KNOWS_DRIVERS) else "")
        + f", unless {listed(f'`{name}`' for name in NAMES)} are set",
        effect=f"{'the process' if alone else 'each rank'} that uses accelerate or transformers'"
        " Trainer stops with"
        " `Using RTX 4000 series doesn't support faster communication broadband via P2P or IB`",
        hint=f"run `export {words}`"
        + (
            "; `CUDA_VISIBLE_DEVICES` does not change what accelerate counts"
            if alone
            else ", or start the job with `accelerate launch`"
        ),
        accelerate=version,
        gpus=len(names),
        driver=driver,
        unset=unset,
    )


def _is_alone(command: LaunchCommand) -> bool:
    """Whether the command starts a single process, for which nothing sets the variables."""
    return command.by_python_alone or (
        command.launcher == "accelerate"
        and command.num_gpus == 1
        and command.num_nodes in (None, 1)
        and not _RANKED & command.options.keys()
        and command.options.get("distributed_type", "NO").upper() == "NO"
    )
