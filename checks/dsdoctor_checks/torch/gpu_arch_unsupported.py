"""The torch build has no code for a GPU of this run.

## Why it matters
A wheel contains machine code for some architectures. Code for X.Y runs on X.Z with Z at least Y, and
PTX is compiled at startup for anything newer. If neither fits, the first kernel fails with "no kernel
image is available for execution on the device".

## What to do
Install the torch build named in the hint. With recent releases, Volta needs a build for CUDA 12.6 and
Blackwell one for CUDA 12.8 or newer.

## References
- torch/cuda/__init__.py: `_CompatInterval`, `_check_capability`
- driver_types.h: `cudaErrorNoKernelImageForDevice` (209)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    LibCuda,
    Missing,
    NotStated,
    NvidiaKernel,
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
    warn,
)
from dsdoctor_checks._util import (
    Capability,
    capabilities,
    code_for,
    dotted,
    parse_arch,
    stated_for_cpu,
)
from dsdoctor_checks._util import pair as two
from dsdoctor_checks.torch import _gpu_arch_unsupported_signatures, _tables
from dsdoctor_checks.torch._builds import (
    NEWEST,
    choose,
    driver_of,
    machine_of,
    none_fits,
    offered,
    python_of,
)

CONDITION = Condition(
    "gpu-arch-unsupported",
    id="DSD304",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-torch-build",),
    leads_to=("nccl-unhandled-cuda-error",),
)


def _arch_list(
    torch: TorchBuild, live: TorchLive | Missing, machine: str
) -> tuple[tuple[str, ...], str]:
    """What torch was compiled for, and the source of that; an empty list means unknown."""
    if isinstance(live, TorchLive) and any(map(parse_arch, live.arch_list or ())):
        return live.arch_list or (), live.arch_source or "torch"
    release = two(torch.version)
    known = _tables.archs(release, torch.cuda or "", machine) if release else None
    return known or (), "table"


def _on_amd_gpus(live: TorchLive | Missing, run: RunNeeds) -> list[Finding]:
    """What a build for ROCm lacks: its code runs on the named architectures, and on no other.

    A generic target (`gfx11-generic`) serves a family, which is judged by nobody here.
    """
    try:
        devices = live.devices if isinstance(live, TorchLive) else ()
        archs = (live.arch_list or ()) if isinstance(live, TorchLive) else ()
    except NotStated:
        return []
    named = {arch.split(":")[0] for arch in archs if arch.startswith("gfx")}
    if not named or any("generic" in arch for arch in named):
        return []
    known = [device for device in devices if device.arch is not None]
    bad = [device for device in known if device.arch not in named]
    say = warn if len(bad) < len(known) and not run.gpus else fail
    return [
        say(
            f"GPU {device.index} ({device.name}) is {device.arch}, but this torch has code for "
            f"{', '.join(sorted(named))}",
            effect="the first kernel fails with `HIP error: invalid device function`",
            hint=f"install a build of torch for {device.arch}; images for servers leave out older GPUs"
            " that the wheels of download.pytorch.org have",
            gpu=device.name,
            arch=device.arch,
            arch_list=sorted(named),
        )
        for device in bad
    ]


@check(CONDITION)
def torch_has_code_for_gpus(
    torch: TorchBuild,
    live: TorchLive | Missing,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
    env: Environment | Missing,
    run: RunNeeds,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    lib: LibCuda | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Each GPU needs machine code of its major version, or PTX; an AMD GPU, its own."""
    if stated_for_cpu(run, env, command):
        yield skip("the job is set to use the CPU")
        return
    amd = _on_amd_gpus(live, run)
    if amd:
        yield from amd
        return
    machine = machine_of(os)
    try:
        built_for = torch.cuda
    except NotStated:  # a paste often has `torch 2.5.1` and no more
        devices = capabilities(gpus, live, run, env)
        driver = driver_of(kernel, nvml, lib)
        near = two(torch.version) or NEWEST
        build = choose(near, driver, set(devices.values()), machine, python_of(patient))
        hint = "run on another GPU, or build torch from source for this one"
        if build:
            hint = f"run `{build.command(torch.version, patient, packages)}`"
        yield from _no_build_has_code(torch.version, devices, machine, hint, run)
        raise
    if built_for is None:
        yield skip("torch is not a CUDA build" if torch.installed else "torch is not installed")
        return
    devices = capabilities(gpus, live, run, env)
    if not devices:
        yield skip("no GPU whose compute capability is known")
        return
    arch_list, source = _arch_list(torch, live, machine)
    too_new = _too_new(built_for, devices)
    if not arch_list and not too_new:
        yield skip(f"what torch {torch.version} was compiled for is not known", source=source)
        return
    served = {name: code_for(arch_list, cc) for name, cc in devices.items()}
    bad = {
        name: cc
        for name, cc in devices.items()
        if served[name] is None and (arch_list or name in too_new)
    }
    # If another GPU works and the run names none, it can exclude the one without code.
    say = warn if len(bad) < len(devices) and not run.gpus else fail
    release = two(torch.version)
    driver = driver_of(kernel, nvml, lib)
    build = None
    if release:
        build = choose(release, driver, set(devices.values()), machine, python_of(patient))
    hint = (
        f"run `{build.command(torch.version, patient, packages)}`"
        if build
        else none_fits(driver, set(devices.values()), machine, python_of(patient))
    )
    evidence: dict[str, Any] = {
        "torch": torch.version,
        "torch_cuda": torch.cuda,
        "arch_list": list(arch_list),
        "source": source,
        "wheel": f"torch {build.release[0]}.{build.release[1]} from {build.index}"
        if build
        else None,
    }
    choice = f"{hint}, or exclude that GPU with `CUDA_VISIBLE_DEVICES`" if say is warn else hint
    for name, cc in bad.items():
        first = ".".join(map(str, too_new.get(name, ())))
        finding = say(
            f"{name} has capability {dotted(cc)}, but torch {torch.version} has code for "
            f"{', '.join(arch_list)}"
            if arch_list
            else f"{name} has capability {dotted(cc)}, but torch {torch.version} was built for CUDA "
            f"{torch.cuda}, and CUDA {first} is the first with code for it",
            effect="the first kernel fails with `no kernel image is available` (error 209)",
            hint=choice,
            gpu=name,
            capability=dotted(cc),
            needs_cuda=first or None,
            error=209,
            **evidence,
        )
        yield offered(finding, build)
    for name in too_new.keys() - bad.keys():
        finding = warn(
            f"{name} has capability {dotted(devices[name])}, but torch {torch.version} was built for "
            f"CUDA {torch.cuda}, which has no code for it; torch compiles {served[name]} at startup",
            effect="torch reports that the GPU is not compatible; cuBLAS and cuDNN of that CUDA have "
            "no code for it either",
            hint=hint,
            gpu=name,
            capability=dotted(devices[name]),
            needs_cuda=".".join(map(str, too_new[name])),
            **evidence,
        )
        yield offered(finding, build)
    if not bad and not too_new:
        yield ok(served_by=served, arch_list=list(arch_list), source=source)


def _no_build_has_code(
    version: str | None,
    devices: dict[str, Capability],
    machine: str,
    hint: str,
    run: RunNeeds,
) -> Iterator[Finding]:
    """GPUs that no published build of a release has code for, whichever is installed."""
    release = two(version) or (0, 0)
    published = _tables.VARIANTS.get(release, ())
    lists = [known for cuda in published if (known := _tables.archs(release, cuda, machine))]
    if not lists:
        return
    bad = {
        name: capability
        for name, capability in devices.items()
        if not any(code_for(known, capability) for known in lists)
    }
    say = warn if len(bad) < len(devices) and not run.gpus else fail
    for name, capability in bad.items():
        yield say(
            f"{name} has capability {dotted(capability)}, but no published build of torch "
            f"{dotted(release)} has code for it",
            effect="the first kernel fails with `no kernel image is available` (error 209)",
            hint=hint,
            gpu=name,
            capability=dotted(capability),
            torch=version,
            builds=list(published),
            error=209,
        )


def _too_new(cuda: str, devices: dict[str, Capability]) -> dict[str, tuple[int, int]]:
    """GPUs that a CUDA version has no code for, and the first version that has."""
    built = two(cuda)
    firsts = {name: _tables.FIRST_CUDA.get(cc[0]) for name, cc in devices.items()}
    return {name: first for name, first in firsts.items() if first and built and built < first}


HINT = (
    "install a torch build with code for this GPU; `dsdoctor fix install-torch-build` picks it"
    " (sm_120 needs CUDA 12.8 or newer)"
)

SIGNATURES = _gpu_arch_unsupported_signatures.SIGNATURES
