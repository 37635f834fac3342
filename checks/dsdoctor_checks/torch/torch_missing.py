"""torch is not installed, or its installation is damaged.

## Why it matters
DeepSpeed is built on torch: without it, nothing starts.

## What to do
Install torch into this interpreter, in a build that the driver supports. If the job uses another
interpreter, pass it with `--python`.

## References
- https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Level,
    LibCuda,
    Missing,
    NvidiaKernel,
    Nvml,
    OsInfo,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    check,
    fail,
    without_fix,
)
from dsdoctor_checks._amd import ROCM_BUILD, amd_gpus
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import (
    capabilities,
    hint_to_install,
    holds_no_job,
    is_version,
    pair,
)
from dsdoctor_checks.torch._builds import (
    NEWEST,
    choose,
    driver_of,
    machine_of,
    none_fits,
    python_of,
)

CONDITION = Condition(
    "torch-missing",
    id="DSD301",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-torch-build",),
    narrower=("env-not-activated",),
)


def interrupted(packages: Packages | Missing) -> str | None:
    """The torch that pip was replacing when it was killed; None = nothing shows that."""
    left = None if isinstance(packages, Missing) else packages.remnants.get("torch")
    return left if left and is_version(left) else None


@check(CONDITION)
def torch_is_installed(
    torch: TorchBuild,
    patient: Patient | Missing,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    lib: LibCuda | Missing,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    os: OsInfo | Missing,
    env: Environment | Missing,
    run: RunNeeds,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """Torch must be installed, and its version must be readable."""
    if torch.version is not None:
        return
    if isinstance(patient, Missing):
        where, python = "the interpreter that was examined", "python"
        evidence = {}
    else:
        kind = {"venv": "the venv", "conda": "the conda environment"}.get(patient.kind)
        where = f"{kind} `{patient.prefix}`" if kind else f"`{patient.executable}`"
        python = patient.executable
        evidence = {"prefix": patient.prefix, "chosen_by": patient.chosen_by}
    left = interrupted(packages)
    driver = driver_of(kernel, nvml, lib)
    wanted = set(capabilities(gpus, live, run, env).values())
    build = None
    if driver or wanted:
        build = choose(pair(left) or NEWEST, driver, wanted, machine_of(os), python_of(patient))
    force = "--force-reinstall " if torch.error is not None else ""
    release = f"=={left.partition('+')[0]}" if left else ""
    install = pip(patient, packages, f"install {force}torch{release}")
    if build:
        install = build.command(None, patient, packages, damaged=torch.error is not None)
    if torch.error is not None:
        yield fail(
            f"torch in {where} is damaged: {torch.error}",
            effect="`import torch` fails, and so does DeepSpeed",
            hint=f"run `{install}`",
            path=torch.path,
            error=torch.error,
            python=python,
            **evidence,
        )
        return
    amd = amd_gpus(os, kernel)
    hint = hint_to_install(patient, install)
    replaced = None if isinstance(patient, Missing) else patient.left_by_python
    none_fit = build is None and bool(driver or wanted)
    if none_fit and install in hint:
        hint = none_fits(driver, wanted, machine_of(os), python_of(patient))
    if amd:
        evidence["amd_gpus"] = str(amd)
        hint = f"install {ROCM_BUILD}, into the environment that the job uses"
    missing = fail(
        f"torch is not installed in {where}: pip was interrupted while it replaced torch {left}"
        if left
        else f"torch is not installed in {where} for this Python, but for Python {replaced}"
        if replaced
        else f"torch is not installed in {where}",
        effect="DeepSpeed cannot be imported",
        hint=hint,
        python=python,
        interrupted=left,
        **evidence,
    )
    by_hand = amd or none_fit or replaced or holds_no_job(patient)
    yield without_fix(missing) if by_hand else missing


HINT = (
    "activate the environment that has torch, or install it there; `dsdoctor fix install-torch-build`"
    " picks the build that the driver and the GPUs support"
)

SIGNATURES = (
    # pip builds in an empty environment: that is another condition, with another fix
    Signature(
        pattern=r"No module named (?:'torch'|torch)(?:$|[\s;,)])",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'torch'",
            "ImportError: No module named torch",
            "/usr/bin/python3: Error while finding module specification (ModuleNotFoundError: No module named 'torch')",
        ),
        not_examples=("ModuleNotFoundError: No module named 'torch'_x",),
        level=Level.STRONG,
        not_near=(
            "Getting requirements to build wheel",
            "pip subprocess",
            "get_requires_for_build_wheel",
        ),
    ),
    Signature(
        # Python 2 names the package in front of `launch` or `run`, though torch itself is missing
        pattern=r"^\S{0,300}python[\w.]{0,12}: No module named torch\.distributed\s*$",
        source="CPython 2.7 Lib/runpy.py, Lib/pkgutil.py and Python/import.c",
        message="the interpreter that starts the launcher has no torch, and is Python 2",
        hint="activate the environment that contains torch, or start the launcher with its interpreter",
        examples=("/usr/bin/python: No module named torch.distributed",),
        not_examples=(
            "/usr/bin/python3: No module named torch.distributed.run",
            "/usr/bin/python3: No module named torch.distributed; 'torch' is not a package",
        ),
        level=Level.STRONG,
    ),
)
