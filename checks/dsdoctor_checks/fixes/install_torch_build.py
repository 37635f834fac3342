"""Installs a torch build that the driver and the GPUs serve, from the index that has it.

## What it does
Keeps torch's release where a build of it serves; else takes the nearest one that does. The CUDA of
the build is one that the driver serves and that holds code for every GPU of the run. pip installs
it into the environment, which is therefore changed.

## Undo
pip puts its former list back, from the index of the former build.
"""

from __future__ import annotations

from dsdoctor.api import (
    Environment,
    Findings,
    Gpus,
    Impossible,
    LibCuda,
    Missing,
    NvidiaKernel,
    Nvml,
    OsInfo,
    PackageManagers,
    Patient,
    Plan,
    Reach,
    Run,
    RunNeeds,
    TorchBuild,
    TorchLive,
    fix,
)
from dsdoctor_checks._util import GIB, capabilities, dotted, pair
from dsdoctor_checks.fixes._pip import refusal
from dsdoctor_checks.torch._builds import NEWEST, Build, choose, driver_of

NAME = "install-torch-build"
CONDITIONS = (
    "driver-too-old",
    "cpu-only-torch",
    "gpu-arch-unsupported",
    "torch-missing",
    "torch-import-broken",
)


@fix(NAME)
def install_torch_build(
    torch: TorchBuild,
    patient: Patient,
    managers: PackageManagers,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    lib: LibCuda | Missing,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    env: Environment | Missing,
    system: OsInfo,
    run: RunNeeds,
    findings: Findings,
) -> Plan | Impossible | None:
    """The build, with its index named."""
    bad = findings.bad(*CONDITIONS, "cuda-toolkit-mismatch")
    if not bad:
        return None
    if no := refusal(patient, managers, "torch"):
        return no
    driver = driver_of(kernel, nvml, lib)
    wanted = set(capabilities(gpus, live, run, env).values())
    release = pair(torch.version) or NEWEST
    if driver is None and not wanted:
        found: Build | None = Build(release, None)
    else:
        found = choose(release, driver, wanted, system.machine)
    told = f"driver {driver}" if driver else "no driver that can be read"
    told += f" and GPUs of capability {', '.join(map(dotted, sorted(wanted)))}" if wanted else ""
    if found is None:
        return Impossible(why=f"no published torch serves {told}; upgrade the driver, or build torch "
                          "from source")  # fmt: skip
    known, cuda = found.release, found.cuda
    spec, index = found.requirement(torch.version), found.index
    if (
        known == pair(torch.version)
        and cuda == torch.cuda
        and {f.condition for f in bad} <= {"cuda-toolkit-mismatch"}
    ):
        return None
    argv = [patient.executable, "-m", "pip", "install", "--no-input", "--force-reinstall", spec]
    build = f"CUDA {cuda}" if cuda else "the CPU"
    step = Run(
        argv=(*argv, "--index-url", index),
        why=f"torch for {build}, which {told} serve" if wanted else f"torch for {build}",
        inventory="pip",
        needs_bytes=12 * GIB,
        timeout=7200.0,
    )
    return Plan(
        name=NAME,
        title=f"torch {known[0]}.{known[1]} for {build} from `{index}`",
        steps=(step,),
        proves=tuple(dict.fromkeys(f.condition for f in bad)),
        undo="`dsdoctor fix --undo` has pip put its former list of packages back",
        reach=Reach.ENV,
        reasons=(bad[0].message, f"the build for {build} is the nearest for {told}"),
    )
