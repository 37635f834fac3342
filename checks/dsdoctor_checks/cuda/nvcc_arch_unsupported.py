"""nvcc cannot compile for the GPUs of this run.

## Why it matters
DeepSpeed compiles its ops for the compute capability of the visible GPUs, or for those in
`TORCH_CUDA_ARCH_LIST`. An nvcc that is too old (or, for old GPUs, too new) fails with "Unsupported gpu
architecture". A list without the GPU produces ops that cannot run on it.

## What to do
Install a toolkit that supports the GPU (11.8 for Ada and Hopper, 12.8 for Blackwell, below 13 for Volta
and older), or correct `TORCH_CUDA_ARCH_LIST`.

## References
- `ptxas --help` of each toolkit, 11.7 to 13.5
- DeepSpeed op_builder/builder.py: `compute_capability_args`, `get_default_compute_capabilities`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    Missing,
    NvidiaKernel,
    OsInfo,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    TracebackRule,
    check,
    fail,
    fixed_by,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import (
    Capability,
    capabilities,
    code_for,
    dotted,
    fixable,
    job_environment,
    listed,
    pair,
    variable,
)
from dsdoctor_checks.cuda import _ops, _tables
from dsdoctor_checks.torch._builds import NEWEST, choose, machine_of, python_of

CONDITION = Condition(
    "nvcc-arch-unsupported",
    id="DSD207",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-cuda-toolkit", "unset-variables"),
    leads_to=("gpu-arch-unsupported",),
)
_ENTRY = re.compile(r"^(\d+)\.(\d)[af]?(\+PTX)?$", re.IGNORECASE)


def _listed_archs(value: str) -> tuple[dict[Capability, bool], bool]:
    """Capabilities of a TORCH_CUDA_ARCH_LIST to `with PTX`, and whether all could be parsed."""
    entries = [entry for entry in re.split(r"[;\s]+", value.strip()) if entry]
    found = [_ENTRY.match(entry) for entry in entries]
    archs = {(int(m[1]), int(m[2])): bool(m[3]) for m in found if m}
    return archs, all(found)


def _as_arch_list(archs: dict[Capability, bool]) -> list[str]:
    names = [f"sm_{major}{minor}" for major, minor in archs]
    return names + [f"compute_{major}{minor}" for (major, minor), ptx in archs.items() if ptx]


def _toolkit(
    torch: TorchBuild,
    wanted: Iterable[Capability],
    os: OsInfo | Missing,
    patient: Patient | Missing,
) -> str:
    """Which toolkit to install: that of torch if it supports the GPUs, else one with another torch."""
    own = _tables.nvcc_archs(torch.cuda or "") or ()
    if all(cc in own for cc in wanted):
        return f"install the CUDA {torch.cuda} toolkit and point `CUDA_HOME` to it"
    release = pair(torch.version) or NEWEST
    build = choose(release, None, set(wanted), machine_of(os), python_of(patient))
    if build is None or build.cuda is None:
        return "choose GPUs that one build of torch supports"
    return f"install a torch build for CUDA {build.cuda}, and the CUDA {build.cuda} toolkit"


@check(CONDITION)
def nvcc_supports_gpus(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    os: OsInfo | Missing,
    patient: Patient | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Compares what would be compiled for with what this nvcc supports."""
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    if need.use is _ops.Use.NONE:
        yield skip(need.reason)
        return
    toolkit = toolkits.toolkit
    known = _tables.nvcc_archs(toolkit.version or "") if toolkit else None
    if toolkit is None or known is None:
        yield skip(
            "the capabilities that this nvcc supports are not known"
            if toolkit
            else "there is no nvcc"
        )
        return
    say = fail if need.certain else warn
    devices = capabilities(gpus, live, run, env)
    value = variable(job_environment(env, command), "TORCH_CUDA_ARCH_LIST") or ""
    archs, readable = _listed_archs(value)
    evidence: dict[str, Any] = {"nvcc": toolkit.nvcc, "nvcc_cuda": toolkit.version}
    evidence["arch_list"] = value or None
    evidence["capabilities"] = {name: dotted(cc) for name, cc in devices.items()}
    evidence["nvcc_knows"] = [dotted(cc) for cc in known]
    if value:
        wanted, source = list(archs), f"`TORCH_CUDA_ARCH_LIST={value}`"
    elif need.use is _ops.Use.PREBUILD and (toolkit.version or "").startswith("13."):
        wanted, source = list(_tables.PREBUILD_DEFAULT), "DeepSpeed's default for pre-building"
    else:
        wanted, source = list(dict.fromkeys(devices.values())), "the GPUs of this run"
    unknown = [dotted(cc) for cc in wanted if cc not in known]
    if unknown:
        finding = say(
            f"nvcc {toolkit.version} does not support capability {listed(unknown)},"
            f" but {source} {'need' if source.endswith('run') else 'requests'} it",
            effect=f"the build of {need.words} fails with `Unsupported gpu architecture`",
            hint="set `TORCH_CUDA_ARCH_LIST` to the capability of the GPUs"
            if not source.endswith("run")
            else _toolkit(torch, wanted, os, patient),
            unknown=unknown,
            **evidence,
        )
        finding = fixed_by(finding, "unset-variables") if value else finding
        yield fixable(finding, command, "TORCH_CUDA_ARCH_LIST")
        return
    for name, cc in devices.items():
        if archs and readable and code_for(_as_arch_list(archs), cc) is None:
            finding = say(
                f"{source} does not cover {name}, which has capability {dotted(cc)}",
                effect="the ops that are built cannot run on it (`no kernel image is available`)",
                hint=f"add {dotted(cc)} to `TORCH_CUDA_ARCH_LIST`, or unset it",
                gpu=name,
                capability=dotted(cc),
                **evidence,
            )
            finding = fixed_by(finding, "unset-variables")
            yield fixable(finding, command, "TORCH_CUDA_ARCH_LIST")
            return
    yield ok(**evidence)


HINT = "install the toolkit for torch's CUDA version, or set `TORCH_CUDA_ARCH_LIST` to capabilities that nvcc supports (`nvcc --list-gpu-arch`)"

SIGNATURES = (
    Signature(
        pattern=r"[Uu]nsupported gpu arch\w+|not defined for option 'gpu-(?:arch|name)",
        source="torch 1.0-2.13 utils/cpp_extension.py",
        examples=(
            "nvcc fatal   : Unsupported gpu architecture 'compute_89'",
            "nvcc fatal   : Value 'sm_120' is not defined for option 'gpu-architecture'",
            "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
        ),
        not_examples=("Unsupported gpu arch list is empty",),
        level=Level.CERTAIN,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="Unknown CUDA arch",
        source="torch 1.0-2.13 utils/cpp_extension.py",
        examples=("ValueError: Unknown CUDA arch (Foo) or GPU not supported",),
        message="`TORCH_CUDA_ARCH_LIST` contains a value that torch does not know",
        hint="write capabilities such as `8.0;9.0+PTX` in `TORCH_CUDA_ARCH_LIST`, or unset it",
        fixes=("unset-variables",),
        level=Level.CERTAIN,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function="_get_cuda_arch_flags",
        kinds=("ValueError",),
        source="torch 1.10-2.13 utils/cpp_extension.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in _get_cuda_arch_flags\nValueError: x',
    ),
)
