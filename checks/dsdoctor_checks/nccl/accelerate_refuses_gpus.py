"""accelerate stops with several RTX 40 GPUs unless peer access and InfiniBand are disabled.

## Why it matters
RTX 40 GPUs have no peer access, and older drivers reported it all the same, so that NCCL hung. In each
rank, accelerate 0.25 and newer looks for several of these GPUs, and stops with `NotImplementedError`
unless `NCCL_P2P_DISABLE` and `NCCL_IB_DISABLE` are set. Since 0.30 it accepts driver 550.40.07 and
newer. `accelerate launch` sets both variables itself; `deepspeed`, `torchrun` and plain Python do not.

## What to do
Set both variables to 1, or start the job with `accelerate launch`.

## References
- accelerate 0.25.0 to 1.15.0: utils/environment.py (`check_cuda_p2p_ib_support`), state.py
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
from dsdoctor_checks._util import at_least, listed, may_be_set

CONDITION = Condition("accelerate-refuses-gpus", id="DSD808", scope=Scope.JOB, since="0.1")
#: First release that asks, first that looks at the driver, and the driver (wheels 0.24.1, 0.25.0,
#: 0.28.0, 0.30.1 and 1.7.0, read 2026-11-28).
ASKS, KNOWS_DRIVERS, ACCEPTED = "0.25.0", "0.30.0", "550.40.07"
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
    if (
        version is None
        or kind not in ("deepspeed", "torchrun")
        or run.framework in ("native", "lightning")
    ):
        yield skip("no launcher starts accelerate in its ranks")
        return
    driver = nvml.driver_version if isinstance(nvml, Nvml) else None
    names = [gpu.name or "" for gpu in gpus.gpus]
    accepted = at_least(version, KNOWS_DRIVERS) and (driver is None or at_least(driver, ACCEPTED))
    unset = [name for name in NAMES if name not in command.env and not may_be_set(env, name)]
    concerned = [name for name in names if "RTX 40" in name]
    if len(names) < 2 or not concerned or accepted or not unset or not at_least(version, ASKS):  # noqa: PLR2004
        yield ok(accelerate=version, driver=driver)
        return
    known = run.framework in ("hf", "accelerate")
    words = " ".join(f"{name}=1" for name in unset)
    yield (fail if known else warn)(
        f"accelerate {version} does not run on {len(names)} GPUs of which one is an {concerned[0]}"
        + (f" (driver {driver})" if at_least(version, KNOWS_DRIVERS) else "")
        + f", unless {listed(f'`{name}`' for name in NAMES)} are set",
        effect="each rank that uses accelerate or transformers' Trainer stops with"
        " `Using RTX 4000 series doesn't support faster communication broadband via P2P or IB`",
        hint=f"run `export {words}`, or start the job with `accelerate launch`",
        accelerate=version,
        gpus=len(names),
        driver=driver,
        unset=unset,
    )
