"""A virtual GPU is of a type without CUDA.

## Why it matters
The last letter of a virtual GPU's name is its series. Only Q (workstation) and C (compute) offer CUDA.
With A (applications) and B (desktops), `nvidia-smi` lists the GPU, but no CUDA program finds it.

## What to do
Ask the administrator for a type that ends with Q or C, such as `T4-16C` or `A10-24Q`, and for its license.

## References
- https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide/ ("CUDA Toolkit and OpenCL Support")
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
)
from dsdoctor_checks._util import chosen
from dsdoctor_checks.gpu._util import named

CONDITION = Condition(
    "vgpu-without-cuda",
    id="DSD116",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("no-gpu-visible", "torch-cuda-init-failed"),
)
#: Board, memory in GB and series: `GRID T4-2B`, `NVIDIA A40-4A`, `GRID P40-1B4`.
_SERIES = re.compile(r"(?:GRID|NVIDIA) \w+-\d{1,3}(?P<series>[AB])\d?")


@check(CONDITION)
def types_have_cuda(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges the names of the run's GPUs; only virtual ones are named in this way."""
    for gpu in chosen(gpus, run, env):
        found = _SERIES.fullmatch(gpu.name or "")
        if found is None:
            yield ok(gpu=gpu.index, name=gpu.name)
            continue
        yield fail(
            f"{named(gpu)} is a virtual GPU of the {found['series']}-series, but only"
            " the Q- and C-series have CUDA",
            effect="CUDA finds no device, and the job exits at startup or runs on the CPU",
            hint="ask the administrator for a vGPU type whose name ends with `Q` or `C`",
            gpu=gpu.index,
            name=gpu.name,
        )
