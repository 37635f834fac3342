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
from dsdoctor_checks._util import GIB, Capability, capabilities, code_for, dotted, numbers, pair
from dsdoctor_checks.driver._tables import FLOOR
from dsdoctor_checks.fixes._pip import refusal
from dsdoctor_checks.torch._tables import INDEX, VARIANTS, Release, archs, index_of

NAME = "install-torch-build"
CONDITIONS = (
    "driver-too-old",
    "cpu-only-torch",
    "gpu-arch-unsupported",
    "torch-missing",
    "torch-import-broken",
)
#: Where the search begins when there is no torch: the newest release of the table.
NEWEST = max(VARIANTS)


def choose(
    release: Release, driver: str | None, gpus: set[Capability], machine: str
) -> tuple[Release, str] | None:
    """Release and CUDA of the nearest build that a driver and GPUs serve: same, older, newer.

    >>> choose((2, 11), "535.104.05", {(8, 0)}, "x86_64"), choose((2, 11), None, {(7, 0)}, "x86_64")
    (((2, 11), '12.8'), ((2, 11), '12.6'))
    """
    older = sorted((known for known in VARIANTS if known < release), reverse=True)
    newer = sorted(known for known in VARIANTS if known > release)
    for known in [*([release] if release in VARIANTS else []), *older, *newer]:
        for cuda in VARIANTS[known]:
            floor = FLOOR.get((pair(cuda) or (0, 0))[0], "0")
            code = archs(known, cuda, machine) or ()
            if driver is not None and numbers(driver) < numbers(floor):
                continue
            if code and all(code_for(code, capability) for capability in gpus):
                return known, cuda
    return None


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
    driver = None
    if isinstance(kernel, NvidiaKernel):
        driver = kernel.module_version
    if driver is None and isinstance(nvml, Nvml):
        driver = nvml.driver_version
    if isinstance(lib, LibCuda) and lib.compat and lib.version:
        driver = lib.version
    wanted = set(capabilities(gpus, live, run, env).values())
    release = pair(torch.version) or NEWEST
    if driver is None and not wanted:
        found: tuple[Release, str] | None = (release, "cpu")
    else:
        found = choose(release, driver, wanted, system.machine)
    told = f"driver {driver}" if driver else "no driver that can be read"
    told += f" and GPUs of capability {', '.join(map(dotted, sorted(wanted)))}" if wanted else ""
    if found is None:
        return Impossible(why=f"no published torch serves {told}; upgrade the driver, or build torch "
                          "from source")  # fmt: skip
    known, cuda = found
    same = known == pair(torch.version)
    spec = (
        f"torch=={str(torch.version).split('+')[0]}" if same else f"torch=={known[0]}.{known[1]}.*"
    )
    if same and cuda == torch.cuda and {f.condition for f in bad} <= {"cuda-toolkit-mismatch"}:
        return None
    argv = [patient.executable, "-m", "pip", "install", "--no-input", "--force-reinstall", spec]
    index = f"{INDEX}/cpu" if cuda == "cpu" else index_of(cuda)
    build = "the CPU" if cuda == "cpu" else f"CUDA {cuda}"
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
