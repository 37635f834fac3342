"""`nvidia-smi` cannot use libcuda, the driver's CUDA library.

## Why it matters
`nvidia-smi` needs the kernel module and NVML, CUDA needs libcuda as well. In its header,
`CUDA Version: N/A` means that it finds no libcuda, and `CUDA Version: ERR!` that libcuda does not
answer. CUDA programs then find no GPU although `nvidia-smi` lists it.

## What to do
In a container, request the `compute` capability (`NVIDIA_DRIVER_CAPABILITIES=compute,utility`). In
WSL, update the driver in Windows and run `wsl --shutdown` there. After a driver upgrade, generate
the CDI specification of Podman again. Elsewhere, remove a `stubs` folder of a toolkit from
`LD_LIBRARY_PATH`, or reinstall the driver.

## References
- https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
  (driver capabilities)
- https://github.com/microsoft/WSL/issues/11589
- https://github.com/containerd/nerdctl/issues/1023
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Missing,
    NvidiaSmi,
    OsInfo,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import cuda_works

CONDITION = Condition(
    "libcuda-unusable",
    id="DSD114",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "driver-library-mismatch",
        "docker-gpu-runtime-missing",
        "wsl-driver-unavailable",
    ),
)
_NO_ANSWER = "ERR!"
_WSL = "update the NVIDIA driver in Windows, then run `wsl --shutdown` there"
_ABSENT = (
    "in a container, start it with `NVIDIA_DRIVER_CAPABILITIES=compute,utility`; elsewhere install"
    " the driver's package with libcuda"
)
_BROKEN = (
    "remove a toolkit's `stubs` folder from `LD_LIBRARY_PATH`; in a container, start it again after"
    " a driver upgrade; in WSL, update the driver in Windows and run `wsl --shutdown` there"
)


@check(CONDITION)
def libcuda_answers(
    smi: NvidiaSmi, os: OsInfo | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """Judges the header of `nvidia-smi`; a torch that uses CUDA proves that libcuda works."""
    if smi.cuda_missing is None or cuda_works(live):
        yield ok(cuda_missing=smi.cuda_missing)
        return
    seen = isinstance(live, TorchLive) and live.cuda_ok is False
    silent = smi.cuda_missing == _NO_ANSWER
    hint = _BROKEN if silent else _ABSENT
    if silent and isinstance(os, OsInfo) and os.wsl:
        hint = _WSL
    yield (fail if seen else warn)(
        f"`nvidia-smi` {'gets no answer from' if silent else 'finds no'} libcuda: its header says"
        f" `CUDA Version: {smi.cuda_missing}`",
        effect="CUDA programs find no GPU, although `nvidia-smi` lists it",
        hint=hint,
        cuda_missing=smi.cuda_missing,
    )
