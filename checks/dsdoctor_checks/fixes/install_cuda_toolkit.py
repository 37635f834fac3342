"""Selects or installs a CUDA toolkit that matches torch, so that DeepSpeed's CUDA ops compile.

## What it does
Uses the first of these that works:

- a toolkit of the right version that is installed (under `/usr/local`, in another conda environment,
  in environment modules)
- conda, mamba, micromamba or pixi, into a separate prefix
- for CUDA 13, pip: wheels outside the environment, linked with the parts that torch installs
- for CUDA 11 and 12, NVIDIA's redistributable archives with checksums
- with `--reach system`, apt or dnf with NVIDIA's repository

The packages of the environment do not change unless you pass `--in-place`. If nvcc would reject the
host compiler, an older gcc is selected too.

The proof compiles and links against torch's headers, builds DeepSpeed's fused_adam, and runs the
checks again.

## Undo
Removes the directory and the snippet. With `--in-place` the package manager restores the previous
packages.
"""

from __future__ import annotations

from dsdoctor.api import (
    Compilers,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Findings,
    FixRequest,
    Gpus,
    Impossible,
    Missing,
    OsInfo,
    OtherToolkits,
    PackageManagers,
    Patient,
    Plan,
    Proof,
    RunNeeds,
    Toolkit,
    ToolkitArchives,
    ToolkitWheels,
    TorchBuild,
    fix,
    reach_of,
)
from dsdoctor_checks._util import at_least, chosen, dotted, is_version, listed, pair
from dsdoctor_checks.cuda._tables import accepts
from dsdoctor_checks.fixes import _host_compiler, _routes
from dsdoctor_checks.fixes._activation import activation, base_of
from dsdoctor_checks.ops._tables import NEWEST_GCC
from dsdoctor_checks.torch._tables import VARIANTS, index_of

NAME = "install-cuda-toolkit"
CONDITIONS = (
    "cuda-toolkit-missing",
    "cuda-toolkit-mismatch",
    "cuda-toolkit-incomplete",
    "cuda-home-invalid",
    "nvcc-unusable",
)


def _is_complete(toolkit: Toolkit | None) -> bool:
    return toolkit is not None and toolkit.is_complete and toolkit.trial_ok is not False


def _matching_torch_builds(toolkits: CudaToolkits, others: OtherToolkits, torch: TorchBuild) -> str:
    """Torch builds that match the installed toolkits, in words; "" if there are none."""
    release = pair(torch.version) if is_version(torch.version) else None
    have = {t.version for t in (*toolkits.found, *others.found) if _is_complete(t) and t.version}
    fitting = [cuda for cuda in VARIANTS.get(release or (0, 0), ()) if cuda in have]
    return "; ".join(
        f"the installed CUDA {cuda} toolkit matches "
        f"`pip install torch=={str(torch.version).split('+')[0]} --index-url {index_of(cuda)}`"
        for cuda in fitting
    )


def _archs(gpus: Gpus | Missing, run: RunNeeds, env: Environment | Missing, given: str) -> str:
    """Compute capabilities for the proof: TORCH_CUDA_ARCH_LIST, else those of the GPUs, else 8.0."""
    words = given.replace(";", " ").split()
    found = {gpu.cc for gpu in chosen(gpus, run, env) if gpu.cc is not None}
    return ";".join(words or map(dotted, sorted(found))) or "8.0"


def _bounds(torch: TorchBuild, want: str) -> tuple[int, int]:
    """The oldest and the newest gcc that torch's headers and nvcc of this CUDA accept."""
    newest = NEWEST_GCC.get(pair(want) or (0, 0), _host_compiler.UNBOUNDED)
    return _host_compiler.oldest_for(torch), newest


def _compiler_refusal(compilers: Compilers | Missing, torch: TorchBuild, want: str) -> str | None:
    """Why nothing can be built with nvcc of this CUDA and the present host compiler, in words."""
    if isinstance(compilers, Missing):
        return None
    oldest, newest = _bounds(torch, want)
    for now in (compilers.cxx, compilers.cc):
        if now.path is None:
            return f"nvcc needs a host compiler, but `{now.command}` is not on PATH"
        if now.kind != "gcc" or now.major is None:
            continue
        if now.major > newest:
            return (
                f"nvcc {want} accepts gcc up to {newest}, but `{now.command}` is gcc {now.version}"
            )
        if now.major < oldest:
            return (
                f"the headers of torch {torch.version} need gcc {oldest} or newer, but "
                f"`{now.command}` is gcc {now.version}"
            )
    return None


@fix(NAME)
def install_cuda_toolkit(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    patient: Patient,
    others: OtherToolkits,
    managers: PackageManagers,
    wheels: ToolkitWheels | Missing,
    archives: ToolkitArchives | Missing,
    compilers: Compilers | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    system: OsInfo,
    run: RunNeeds,
    request: FixRequest,
    findings: Findings,
) -> Plan | Impossible | None:
    """Chooses the first way that works."""
    want = torch.cuda
    base, reach = base_of(patient, request)
    if want is None:
        first = "run `dsdoctor fix install-torch-build` first"
        if torch.version is None:
            what = "torch is not installed, and the toolkit must match its CUDA version"
            return Impossible(why=f"{what}; {first}")
        what = f"torch {torch.version} is not a CUDA build, so it needs no toolkit"
        return Impossible(why=f"{what}; for GPUs, {first}")
    if not is_version(want):
        return Impossible(
            why=f"torch reports `{want}` as its CUDA version, which is not a version; reinstall torch"
        )
    if old := findings.bad("driver-too-old"):
        return Impossible(
            why=f"{old[0].message}: compiled ops could not run; "
            "run `dsdoctor fix install-torch-build` first"
        )
    version = None if isinstance(deepspeed, Missing) else deepspeed.version
    now = toolkits.toolkit
    fits = now is not None and accepts(now.version or "", want, version)
    if _is_complete(now) and fits and not findings.bad(*CONDITIONS, "jit-build-gcc-too-new"):
        return None
    if not request.allows(reach):
        return Impossible(
            why=f"`{patient.executable}` is not in a virtual environment, so its toolkit would go to `{base}`;"
            f" pass `--reach {reach.value}`, or use a virtual environment"
        )
    prefix = f"{base}/cuda-{want}"
    route = _routes.on_disk((*toolkits.found, *others.found), want) or _routes.first(
        (
            _routes.conda(managers, patient, request, want, prefix),
            _routes.pip(wheels, patient, request, want, prefix),
            _routes.archives(archives, prefix) if not request.in_place else "",
            _routes.system(managers, want, system.is_root),
        ),
        request,
    )
    if isinstance(route, str):
        served = _matching_torch_builds(toolkits, others, torch)
        return Impossible(
            why=f"the CUDA {want} toolkit cannot be installed: {route}"
            + (f"; but {served}" if served else "")
        )
    refused = _compiler_refusal(compilers, torch, want)
    gcc: _host_compiler.HostCompiler | None = None
    if refused:
        why = f"a host compiler that nvcc {want} accepts"
        chose = _host_compiler.choose(
            others, managers, patient, system, request, _bounds(torch, want), why
        )
        if isinstance(chose, str):
            return Impossible(why=f"{refused}; {chose}")
        gcc = chose
    variables = {
        "CUDA_HOME": route.home,
        "PATH": f"{route.home}/bin:$PATH",
        **route.variables,
        **(gcc.variables if gcc else {}),
    }
    tail, line = activation(NAME, variables, patient, request)
    steps = (*(gcc.steps if gcc else ()), *route.steps, *tail)
    creates = (*(gcc.creates if gcc else ()), *route.creates)
    gone = listed([*(f"`{folder}`" for folder in creates), "the snippet"])
    return Plan(
        name=NAME,
        title=f"use the CUDA {want} toolkit in `{route.home}` for torch {torch.version}",
        steps=steps,
        proves=CONDITIONS + (_host_compiler.CONDITIONS if gcc else ()),
        proof=_proofs(torch, patient, version, route.home, variables, _archs(gpus, run, env,
                      request.arch_list)),
        undo=(f"{route.undo}; " if route.undo else "") + f"`dsdoctor fix --undo` removes {gone}",
        reach=reach_of(steps),
        reasons=(route.reason, *([f"{refused}: `{gcc.cxx}` is used instead"] if gcc else [])),
        activate=line,
        creates=creates,
        otherwise=route.otherwise,
    )  # fmt: skip


def _proofs(
    torch: TorchBuild,
    patient: Patient,
    deepspeed: str | None,
    home: str,
    variables: dict[str, str],
    archs: str,
) -> tuple[Proof, ...]:
    # torch 2.12 and later need C++20
    standard = "c++20" if at_least(torch.version, "2.12") else "c++17"
    argv = ["{doctor}", "-I", "{children}/prove_toolkit.py", f"{home}/bin/nvcc", home]
    argv += [
        torch.path or "-",
        standard,
        archs,
        *([variables["CXX"]] if "CXX" in variables else []),
    ]
    proofs = [Proof(argv=tuple(argv), why="nvcc compiles and links CUDA code against torch")]
    if deepspeed is not None:
        proofs.append(
            Proof(
                argv=(patient.executable, "{children}/build_op.py", "FusedAdamBuilder"),
                env={"TORCH_CUDA_ARCH_LIST": archs, "DS_SKIP_CUDA_CHECK": ""},
                why=f"DeepSpeed {deepspeed} builds fused_adam for capability "
                + listed(archs.split(";")),
                timeout=1800.0,
            )
        )
    return tuple(proofs)
