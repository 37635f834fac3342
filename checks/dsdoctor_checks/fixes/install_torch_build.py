"""Installs a torch build that the driver and the GPUs support, from its package index.

## What it does
Keeps the release of torch if it has a suitable build, otherwise installs the closest release that
has one. The driver supports the CUDA version of the build, and the build contains code for every GPU
of the run. pip installs it into the environment, which changes the environment. torchvision and torchaudio
are replaced with it where they are installed.

## Undo
pip restores the previous packages, from the index of the previous build.
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
    Packages,
    Patient,
    Plan,
    Reach,
    Run,
    RunNeeds,
    TorchBuild,
    TorchLive,
    fix,
)
from dsdoctor_checks._amd import ROCM_BUILD, amd_gpus
from dsdoctor_checks._util import (
    GIB,
    capabilities,
    dotted,
    gpu_expected,
    own_environment,
    pair,
)
from dsdoctor_checks.fixes._pip import refusal
from dsdoctor_checks.torch._builds import (
    Build,
    choose,
    companions,
    driver_of,
    newest_for,
    none_fits,
    python_of,
)
from dsdoctor_checks.torch.torch_missing import interrupted

NAME = "install-torch-build"
CONDITIONS = (
    "driver-too-old",
    "cpu-only-torch",
    "gpu-arch-unsupported",
    "torch-missing",
    "torch-import-broken",
)


@fix(NAME, in_environment=True)
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
    packages: Packages | Missing,
    findings: Findings,
) -> Plan | Impossible | None:
    """Chooses the build and its index."""
    bad = findings.bad(*CONDITIONS, "cuda-toolkit-mismatch")
    if not bad:
        return None
    if torch.version is None and own_environment(patient):
        return Impossible(why=f"`{patient.executable}` is dsdoctor's own; activate the environment that "
                          "the job uses, or pass its interpreter with `--python`")  # fmt: skip
    if no := refusal(patient, managers, "torch"):
        return no
    if amd := amd_gpus(system, kernel):
        return Impossible(why=f"this machine has {amd} AMD GPUs; install {ROCM_BUILD}")
    driver = driver_of(kernel, nvml, lib)
    wanted = set(capabilities(gpus, live, run, env).values())
    python = python_of(patient)
    before = torch.version or interrupted(packages)
    release = pair(before) or newest_for(python)
    if driver is None and not wanted:
        if gpu_expected(run, kernel, gpus, env):
            return Impossible(why="neither a driver nor a GPU was read, so no CUDA build can be chosen; "
                              "run this where the job will run")  # fmt: skip
        found: Build | None = Build(release, None)
    else:
        found = choose(release, driver, wanted, system.machine, python)
    machine = f"driver {driver}" if driver else "an unknown driver"
    machine += f" and GPUs of capability {', '.join(map(dotted, sorted(wanted)))}" if wanted else ""
    if found is None:
        return Impossible(why=f"no published torch build supports {machine}; "
                          + none_fits(driver, wanted, system.machine, python))  # fmt: skip
    known, cuda = found.release, found.cuda
    spec, index = found.requirement(before), found.index
    if (
        known == pair(torch.version)
        and cuda == torch.cuda
        and {f.condition for f in bad} <= {"cuda-toolkit-mismatch"}
    ):
        return None
    argv = [patient.executable, "-m", "pip", "install", "--no-input", "--force-reinstall", spec]
    argv += companions(packages)
    build = f"CUDA {cuda}" if cuda else "the CPU"
    step = Run(
        argv=(*argv, "--index-url", index),
        why=f"the torch build for {build} supports {machine}" if wanted else f"torch for {build}",
        inventory="pip",
        needs_bytes=12 * GIB,
        timeout=7200.0,
    )
    closest = f"the build for {build} is the closest one that supports {machine}"
    return Plan(
        name=NAME,
        title=f"install torch {known[0]}.{known[1]} for {build} from `{index}`",
        steps=(step,),
        proves=tuple(dict.fromkeys(f.condition for f in bad)),
        undo="`dsdoctor fix --undo` restores the previous packages with pip",
        reach=Reach.ENV,
        reasons=(
            bad[0].message,
            closest if driver or wanted else "this machine has no GPU",
        ),
    )
