"""InfiniBand is available, but the network adapters cannot access GPU memory.

## Why it matters
With GPUDirect RDMA, an adapter reads and writes GPU memory itself. It needs the module `nvidia_peermem`,
or DMA-BUF: the driver's open kernel modules, Linux 5.12 and CUDA 11.7. Without either, NCCL copies
everything through host memory, which halves the bandwidth between nodes or worse.

## What to do
Run `modprobe nvidia_peermem` as root. The driver includes it if it was installed after the RDMA stack.
Or use the open kernel modules. The GB10 of DGX Spark has no memory of its own and supports neither.

## References
- https://docs.nvidia.com/dgx/dgx-spark-porting-guide/porting/cuda.html (GPUDirect RDMA)
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html (GPU Direct RDMA)
- NCCL_DMABUF_ENABLE in the same guide's list of variables
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Missing,
    Network,
    NvidiaKernel,
    OsInfo,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import node_count, variable

from ._networks import own_ports

CONDITION = Condition("gpudirect-rdma-missing", id="DSD807", scope=Scope.NODE, since="0.1")

_PEER = ("nvidia_peermem", "nv_peer_mem")
_DMABUF_KERNEL = (5, 12)
#: First driver of CUDA 11.7 with open modules.
_DMABUF_DRIVER = 515
#: GPUs whose memory no adapter can reach: docs.nvidia.com/dgx/dgx-spark-porting-guide/porting/cuda.html,
#: read 2026-11-30.
_UNREACHABLE = frozenset({"NVIDIA GB10"})


@check(CONDITION)
def adapters_access_gpus(
    network: Network,
    kernel: NvidiaKernel,
    os: OsInfo,
    env: Environment | Missing,
    hostfile: Hostfile | Missing,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """Judges runs over several nodes, if an RDMA port is active and the driver is loaded.

    AWS's adapters (EFA) have a module of their own for this.
    """
    if not own_ports(network) or kernel.module_version is None:
        yield skip("there is no active RDMA port, or no NVIDIA driver")
        return
    if node_count(env, hostfile, command) == 1 or variable(env, "NCCL_IB_DISABLE") == "1":
        yield skip("nothing says that this run uses RDMA between nodes")
        return
    names = set() if isinstance(gpus, Missing) else {gpu.name for gpu in gpus.gpus}
    if names and names <= _UNREACHABLE:
        yield skip("this GPU shares the memory of the CPU, and supports no GPUDirect RDMA")
        return
    loaded = [name for name in _PEER if name in kernel.modules]
    release = tuple(int(part) for part in re.findall(r"\d+", os.release)[:2])
    driver = int(kernel.module_version.partition(".")[0])
    dmabuf = (
        bool(kernel.module_open)
        and release >= _DMABUF_KERNEL
        and driver >= _DMABUF_DRIVER
        and variable(env, "NCCL_DMABUF_ENABLE") != "0"
    )
    if loaded or dmabuf:
        yield ok(module=loaded[0] if loaded else None, dmabuf=dmabuf)
        return
    yield warn(
        f"`nvidia_peermem` is not loaded and DMA-BUF is not available (driver "
        f"{kernel.module_version}, {'open' if kernel.module_open else 'proprietary'} modules, kernel "
        f"{os.release}), but this run uses RDMA",
        effect="NCCL copies everything through host memory, at half the speed or less",
        hint="run `modprobe nvidia_peermem` as root",
        driver=kernel.module_version,
        module_open=kernel.module_open,
        kernel=os.release,
    )
