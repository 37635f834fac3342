"""Shared memory (/dev/shm) is too small for a training job.

## Why it matters
DataLoader workers and NCCL exchange data through /dev/shm. The default size in a container is 64
MiB. When it is full, a write causes a bus error (signal 7), or NCCL reports `failed to extend
/dev/shm/nccl-…`.

## What to do
Start the container with `--shm-size=16g` or `--ipc=host`. In Kubernetes mount an `emptyDir` with
`medium: Memory` at /dev/shm. On a host run `mount -o remount,size=50% /dev/shm` as root.

## References
- NCCL docs: troubleshooting.rst
- DeepSpeed env_report.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    ContainerRuntimes,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Limits,
    Missing,
    OsInfo,
    Resources,
    RunNeeds,
    Scope,
    Why,
    check,
    fail,
    of_job,
    ok,
    skip,
    warn,
)

from . import _shm_too_small_signatures
from ._container_shm import OWN_SHM, in_container, in_manifest, is_stated
from ._util import MIB, ranks

CONDITION = Condition(
    "shm-too-small", id="DSD1001", scope=Scope.NODE, since="0.1", fixes=("remount-shm",)
)


class ShmLimits(Limits, frozen=True, kw_only=True):
    """Sizes of /dev/shm.

    Attributes:
        min_mib: below this a job may run out; DeepSpeed's own report warns there.
        fatal_mib: up to this a job on several GPUs fails.
        per_rank_mib: what the NCCL segments and DataLoader workers of one rank need.
    """

    min_mib: float = 512
    fatal_mib: float = 64
    per_rank_mib: float = 64


@check(CONDITION)
def shm_is_large(
    resources: Resources | Missing,
    os: OsInfo | Missing,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    runtimes: ContainerRuntimes | Missing,
    command: LaunchCommand | Missing,
    limits: ShmLimits,
) -> Iterator[Finding]:
    """Judges the size of /dev/shm, more strictly if several ranks share it."""
    if run.manifest is not None and isinstance(command, LaunchCommand):
        yield from in_manifest(run.manifest, run.container_ranks or 0)
        return
    start = run.container
    pasted = isinstance(runtimes, Missing) and runtimes.why is Why.NOT_ASKED
    own = start is not None and start.program.split()[0] in OWN_SHM
    if start is not None and own and not (pasted and is_stated(resources)):
        # that of the host is not the job's
        yield from in_container(start, run, gpus, env, runtimes)
        return
    if isinstance(resources, Missing):
        yield skip(resources.detail)
        return
    if resources.shm_total_bytes is None:
        yield skip("this system has no /dev/shm")
        return
    size = resources.shm_total_bytes // MIB
    count = ranks(run, gpus, env)
    need = max(limits.min_mib, limits.per_rank_mib * count)
    if size >= need:
        free = resources.shm_free_bytes
        yield ok(shm_mib=size, shm_free_mib=None if free is None else free // MIB)
        return
    container = None if isinstance(os, Missing) else os.container
    hint = (
        "mount an `emptyDir` with `medium: Memory` at /dev/shm"
        if container == "kubernetes"
        else "start the container with `--shm-size=16g` or `--ipc=host`"
        if container
        else "start the container with `--shm-size=16g` (in Kubernetes, mount a larger `emptyDir` with"
        " `medium: Memory` there), or run `mount -o remount,size=50% /dev/shm`"
        if isinstance(os, Missing)
        else "run `mount -o remount,size=50% /dev/shm` as root"
    )
    fatal = count > 1 and size <= limits.fatal_mib
    wanted = "1 rank" if count == 1 else f"{count} ranks"
    finding = (fail if fatal else warn)(
        f"`/dev/shm` is {size} MiB in size, but a job of {wanted} needs {need:g} MiB or more",
        effect="DataLoader workers stop with a bus error, or NCCL cannot extend its segment",
        hint=hint,
        shm_mib=size,
        ranks=count,
        min_mib=need,
        container=container,
    )
    yield of_job(finding) if container else finding


HINT = (
    "enlarge it (`docker run --shm-size=16g` or `--ipc=host`, a memory-backed volume in Kubernetes)"
)

SIGNATURES = _shm_too_small_signatures.SIGNATURES
