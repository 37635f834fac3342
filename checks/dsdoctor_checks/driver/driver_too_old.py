"""torch was built for a newer CUDA version than the NVIDIA driver supports.

## Why it matters
Each CUDA major version needs a minimum driver: 525.60.13 for CUDA 12, 580.65.06 for CUDA 13. With an
older driver, CUDA initialization fails with error 35. The `libcuda.so.1` that a job loads decides: a
`cuda-compat` package provides a newer one, but only on data-center GPUs. On a GeForce it fails with
error 804.

Triton, with which `torch.compile`, vLLM and others compile kernels, brings a `ptxas` of its own. What that of
CUDA 12 compiles, a driver before 525.60.13 does not load, even under torch for CUDA 11.8.

## What to do
Install a torch build for an older CUDA version, or upgrade the driver. On data-center GPUs you can
also install the `cuda-compat` package for torch's CUDA version. On a GeForce, remove the compat
folder from `LD_LIBRARY_PATH`. For Triton alone, `TRITON_PTXAS_PATH` can name the `ptxas` of a toolkit that
the driver supports.

## References
- https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
- https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
- driver_types.h: errors 35, 803 and 804
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    LaunchCommand,
    LibCuda,
    Missing,
    NotStated,
    NvidiaKernel,
    NvidiaSmi,
    Nvml,
    OsInfo,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    TorchBuild,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    without_fix,
)
from dsdoctor_checks._util import capabilities, chosen, cuda_works, numbers, pair
from dsdoctor_checks.driver import _driver_too_old_signatures, _tables
from dsdoctor_checks.driver._told_by_torch import without_driver
from dsdoctor_checks.driver._triton import kernels_load
from dsdoctor_checks.torch._builds import NEWEST, choose, least_cuda, machine_of, offered, python_of

CONDITION = Condition(
    "driver-too-old",
    id="DSD102",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-torch-build",),
    leads_to=("cuda-init-driver-state",),
)


def _kernel_driver(
    kernel: NvidiaKernel | Missing, nvml: Nvml | Missing, smi: NvidiaSmi | Missing
) -> str | None:
    if isinstance(kernel, NvidiaKernel) and kernel.module_version:
        return kernel.module_version
    if isinstance(nvml, Nvml) and nvml.driver_version:
        return nvml.driver_version
    return smi.driver_version if isinstance(smi, NvidiaSmi) else None


def _consumer(gpu: Gpu) -> bool:
    text = f"{gpu.brand or ''} {gpu.name or ''}".lower()
    return "geforce" in text or "titan" in text


@check(CONDITION)
def driver_supports_torch(
    torch: TorchBuild,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    smi: NvidiaSmi | Missing,
    lib: LibCuda | Missing,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    os: OsInfo | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Compares the libcuda that a job loads with the minimum for torch's CUDA major version."""
    driver = _kernel_driver(kernel, nvml, smi)
    compat = lib.version if isinstance(lib, LibCuda) and lib.compat else None
    try:
        version = torch.version
    except NotStated:  # a paste may name the CUDA that was installed, and no more
        version = None
    try:
        devices = set(capabilities(gpus, live, run, env).values())
    except NotStated:
        devices = set()
    build = choose(
        pair(version) or NEWEST,
        compat or driver,
        devices,
        machine_of(os),
        python_of(patient),
    )
    install = build.command(version, patient, packages) if build else None
    try:
        built = pair(torch.cuda)
    except NotStated:  # a paste often has `torch 2.5.1` and no more
        yield from _no_build_runs(version, driver, install, lib, live)
        raise
    if built is None:
        yield skip("torch is not a CUDA build" if torch.installed else "torch is not installed")
        return
    if driver is None:
        yield without_driver(torch, built, nvml, live, os)
        return
    named = f"torch {version}" if version else "torch"
    code = live.cuda_error_code if isinstance(live, TorchLive) else None
    loaded = compat or driver
    evidence = {"driver": driver, "libcuda": loaded, "compat": bool(compat), "torch": version}
    evidence |= {"torch_cuda": torch.cuda, "cuda_error_code": code}
    if cuda_works(live):
        yield ok(f"driver {driver} initialized CUDA {torch.cuda}", **evidence)
        yield from kernels_load(loaded, devices, packages, run, env, command)
        return
    own = lib.version if isinstance(lib, LibCuda) and not lib.stub else None
    if (
        code == _tables.COMPAT_UNSUPPORTED
        and own
        and not compat
        and numbers(own) != numbers(driver)
    ):
        # CUDA takes a libcuda that is newer than the module for one of cuda-compat
        yield skip(f"libcuda is {own}, not {driver}", **evidence)  # driver-library-mismatch
        return
    consumer = next((gpu for gpu in chosen(gpus, run) if _consumer(gpu)), None)
    wrong_gpu = compat and consumer and numbers(compat) != numbers(driver)
    if code == _tables.COMPAT_UNSUPPORTED or wrong_gpu:
        name = consumer.name if consumer else "this GPU"
        which = f"`cuda-compat` libcuda {compat}" if compat else "a `cuda-compat` libcuda"
        why = f"{name} is not a data-center GPU" if consumer else "CUDA rejects it on this GPU"
        finding = fail(
            f"{which} would be loaded on driver {driver}, but {why}",
            effect="CUDA initialization fails with error 804; every rank exits at startup",
            hint="remove the compat folder from `LD_LIBRARY_PATH`; if torch then reports a driver that"
            f" is too old, upgrade it to {_tables.floor(built) or torch.cuda} or newer",
            gpu=name,
            path=lib.path if isinstance(lib, LibCuda) else None,
            error=_tables.COMPAT_UNSUPPORTED,
            floor=_tables.floor(built),
            **evidence,
        )
        yield without_fix(finding)  # any build of torch would load that library
        return
    floor = _tables.floor(built)
    if floor is None and code != _tables.TOO_OLD:
        yield skip(f"the minimum driver for CUDA {torch.cuda} is not known", **evidence)
        return
    if code != _tables.TOO_OLD and numbers(loaded) >= numbers(floor):
        yield ok(f"driver {loaded} is {floor} or newer", floor=floor, **evidence)
        yield from kernels_load(loaded, devices, packages, run, env, command)
        return
    if floor is not None and numbers(loaded) >= numbers(floor):
        yield from _other_library(loaded, floor, lib, evidence)
        return
    supported = _tables.supported(loaded)
    options = f"upgrade the driver to {floor} or newer" if floor else "upgrade the driver"
    if install:
        options = f"run `{install}`, or {options}"
    if not consumer and not compat:
        options = f"{options}, or on data-center GPUs install `cuda-compat-{built[0]}-{built[1]}`"
    finding = fail(
        f"{_newest(loaded, compat)}, but {named} was built for CUDA {torch.cuda}",
        effect="CUDA initialization fails with error 35; every rank exits at startup",
        hint=options,
        serves=supported,
        floor=floor,
        error=_tables.TOO_OLD,
        **evidence,
    )
    yield offered(finding, build)


def _other_library(
    driver: str, floor: str, lib: LibCuda | Missing, evidence: dict[str, Any]
) -> Iterator[Finding]:
    """CUDA reports a driver that is too old, and the driver is not: another libcuda is loaded."""
    own = lib.version if isinstance(lib, LibCuda) else None
    if own is not None and numbers(own) != numbers(driver):
        yield skip(f"libcuda is {own}, not {driver}", **evidence)  # driver-library-mismatch
        return
    finding = fail(
        f"CUDA reports a driver that is too old (error {_tables.TOO_OLD}), but driver {driver} is"
        f" new enough ({floor} or newer is needed): the job loads another libcuda",
        effect="CUDA initialization fails with error 35; every rank exits at startup",
        hint="find the other copy with `ldconfig -p | grep libcuda` and in `LD_LIBRARY_PATH`, and"
        " remove it",
        floor=floor,
        error=_tables.TOO_OLD,
        **evidence,
    )
    yield without_fix(finding)  # another build of torch would load the same libcuda


def _newest(version: str, compat: str | None = None) -> str:
    """The newest CUDA version that a driver or its libcuda supports, for a message."""
    supported = _tables.supported(version)
    if not supported:
        which = "`cuda-compat` libcuda" if compat else "driver"
        return f"{which} {version} is older than CUDA 9"
    if compat:
        return f"`cuda-compat` libcuda {version} supports up to CUDA {supported}"
    return f"driver {version} supports up to CUDA {supported}"


def _no_build_runs(
    version: str | None,
    driver: str | None,
    install: str | None,
    lib: LibCuda | Missing,
    live: TorchLive | Missing,
) -> Iterator[Finding]:
    """A driver that is too old for every published build of a release, whichever is installed."""
    least = least_cuda(version)
    floor = _tables.floor(pair(least) or (0, 0))
    compat = isinstance(lib, LibCuda) and lib.compat
    if driver is None or floor is None or compat or cuda_works(live):
        return
    if numbers(driver) < numbers(floor):
        supported = _tables.supported(driver)
        yield fail(
            f"{_newest(driver)}, but every published build of torch {version} is for CUDA "
            f"{least} or newer",
            effect="CUDA initialization fails with error 35; every rank exits at startup",
            hint=f"run `{install}`, or upgrade the driver to {floor} or newer"
            if install
            else f"upgrade the driver to {floor} or newer",
            driver=driver,
            serves=supported,
            torch=version,
            torch_cuda=least,
            floor=floor,
            error=_tables.TOO_OLD,
        )


HINT = (
    "upgrade the driver, or install a torch build that it supports; `dsdoctor fix install-torch-build`"
    " picks it"
)

SIGNATURES = _driver_too_old_signatures.SIGNATURES
