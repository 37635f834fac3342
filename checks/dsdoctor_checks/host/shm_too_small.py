"""Shared memory (/dev/shm) is too small for a training job.

## Why it matters
DataLoader workers and NCCL pass data through /dev/shm. Containers get 64 MiB unless they are told
otherwise. When it is full a write ends in a bus error (signal 7), or NCCL says `failed to extend
/dev/shm/nccl-…`.

## What to do
Start the container with `--shm-size=16g` or `--ipc=host`; in Kubernetes mount an `emptyDir` with
`medium: Memory` at /dev/shm; on a host run `mount -o remount,size=50% /dev/shm`.

## References
- NCCL docs: troubleshooting.rst
- DeepSpeed env_report.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    Missing,
    OsInfo,
    Resources,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)

from ._util import MIB, ranks

CONDITION = Condition(
    "shm-too-small", id="DSD1001", scope=Scope.NODE, since="0.1", fixes=("remount-shm",)
)


class ShmLimits(Limits, frozen=True, kw_only=True):
    """Sizes of /dev/shm.

    Attributes:
        min_mib: below this a job may run out; DeepSpeed's own report warns there.
        fatal_mib: up to this a job of several GPUs does not work.
        per_rank_mib: what NCCL's segments and the data workers of one rank take.
    """

    min_mib: float = 512
    fatal_mib: float = 64
    per_rank_mib: float = 64


@check(CONDITION)
def shm_is_large(
    resources: Resources,
    os: OsInfo,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    limits: ShmLimits,
) -> Iterator[Finding]:
    """Judges the size of /dev/shm, more strictly where several ranks share it."""
    if resources.shm_total_bytes is None:
        yield skip("there is no /dev/shm here")
        return
    size = resources.shm_total_bytes // MIB
    free = None if resources.shm_free_bytes is None else resources.shm_free_bytes // MIB
    count = ranks(run, gpus, env)
    need = max(limits.min_mib, limits.per_rank_mib * count)
    if size >= need:
        yield ok(shm_mib=size, shm_free_mib=free)
        return
    hint = (
        "start the container with `--shm-size=16g` or `--ipc=host`"
        if os.container
        else "run `mount -o remount,size=50% /dev/shm` as root"
    )
    fatal = count > 1 and size <= limits.fatal_mib
    yield (fail if fatal else warn)(
        f"the shared memory at `/dev/shm` holds {size} MiB, but a job of {count} "
        f"{'rank' if count == 1 else 'ranks'} needs {need:g} MiB or more",
        effect="DataLoader workers end in a bus error, or NCCL cannot extend its segment",
        hint=hint,
        shm_mib=size,
        shm_free_mib=free,
        ranks=count,
        min_mib=need,
        container=os.container,
    )


HINT = (
    "enlarge it (`docker run --shm-size=16g` or `--ipc=host`, a memory-backed volume in Kubernetes)"
)

SIGNATURES = (
    Signature(
        anchor=("No space left on device",),
        pattern=r"No space left on device",
        examples=(
            "RuntimeError: unable to write to file </torch_1_2>: No space left on device",
            "OSError: [Errno 28] No space left on device",
        ),
        not_examples=("2.1G space left on /dev/shm",),
        weight=68,
        near=(
            "/dev/shm",
            "shm)",
            "multiprocessing/queues",
            "multiprocessing/synchronize",
            "multiprocessing/heap",
            "multiprocessing/context",
            "</torch_",
            "/torch_shm",
            "ctx.Lock",
            "_rlock",
            "SemLock",
            "shm_open",
            "joblib",
            "shared memory",
            "shm.h",
            "shmutils",
        ),
        masks=(
            "disk-full",
            "nccl-p2p-or-shm-failure",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        anchor=(
            "insufficient shared memory",
            "unable to allocate shared memory",
            "return code = -7",
            "SIGBUS",
            "unable to open shared memory",
            "unable to write to shared memory",
            "unable to write to file </torch",
            "unable to allocate file </torch",
            "unable to mmap shared memory",
            "unable to open file </torch",
            "unable to mmap file </torch",
            "nable to open shared memory",
            "unable to mmap ",
            "signal: Bus error",
            "exitcode",
        ),
        pattern=(
            r"insufficient shared memory|unable to (?:allocate|mmap|write to"
            r"|open) (?:shared memory|file </torch)|Unable to open shared memory"
            r"|unable to mmap \d{1,15} bytes from file <(?:filename not|/torch)|signal: Bus error|return code = -7\b"
            r"|exitcode\s*: -7\b|\(SIGBUS\)|signal SIGBUS|Signals\.SIGBUS"
        ),
        examples=(
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
            "RuntimeError: DataLoader worker (pid 8) is killed by signal: Bus error.",
        ),
        not_examples=("return code = -79",),
        weight=66,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("failed: No space", "posix_fallocate failed", "failed to extend /dev/shm"),
        pattern=r"posix_fallocate failed|failed to extend /dev/shm",
        examples=(
            "NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes",
            "NCCL WARN Call to posix_fallocate failed : No space left on device",
        ),
        not_examples=(
            "NCCL INFO Allocated shareable buffer /dev/shm/nccl-a",
            "rename of tabs failed: No space in this name",
        ),
        weight=72,
        masks=(
            "nccl-p2p-or-shm-failure",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        anchor="ncclSystemError",
        pattern=r"ncclSystemError: System call \(socket, malloc, munmap",
        examples=(
            "ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
            "    ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
        ),
        not_examples=(
            "ncclSystemError: x",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        ),
        weight=28,
    ),
    Signature(
        anchor=("Bus error", "(core dumped)"),
        pattern=r"^(?:.*\d+ |.*: )?Bus error(?: \(core dumped\)|\s{2,}|$)",
        examples=(
            "Bus error (core dumped)",
            "run.sh: line 3: 4411 Bus error               (core dumped) python train.py",
        ),
        not_examples=("caught a Bus error handler installed",),
        weight=54,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        anchor="unhandled system error",
        pattern=(
            r"(?:NCCL Error 2|NCCL failure \S+): '?unhandled system error"
            r"|NCCL failure \S+ 'unhandled system error"
        ),
        examples=(
            "RuntimeError: NCCL Error 2: unhandled system error",
            "node: Test NCCL failure common.cu:777 'unhandled system error'",
        ),
        not_examples=(
            "NCCL Error 1: unhandled cuda error",
            "the tracker met an unhandled system error and goes on",
        ),
        weight=24,
    ),
    Signature(
        anchor=("hared memory", "/dev/shm"),
        pattern=(
            r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): (?!.{0,200}(?:out of resource|Required:))"
            r".{0,200}(?:[Ss]hared memory|/dev/shm)\b"
        ),
        examples=(
            "RuntimeError: could not create a shared memory segment",
            "OSError: cannot allocate 2 GB in /dev/shm",
        ),
        not_examples=(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 9",
            "INFO: shared memory is used",
        ),
        weight=28,
        not_near=("A100", "head dim"),
    ),
    Signature(
        anchor=(
            "Bus error",
            "with signal 7",
            "exit code 135",
            "Signal 7",
            "shm_open",
            "'/psm_",
        ),
        pattern=(
            r"^(?:\[E\] |.{0,60}: )?Bus error\b|(?:exited|died) with signal 7\b"
            r"|Signal 7 \(SIGBUS\)|exit code 135\b|Cannot allocate memory: shm_open"
            r"|No such file or directory: '/psm_"
        ),
        examples=(
            "srun: error: node1: task 0: Bus error",
            "python exited with signal 7 (core dumped)",
            "FileNotFoundError: [Errno 2] No such file or directory: '/psm_1a2b'",
        ),
        not_examples=("Bus errors: 0", "exit code 1350"),
        weight=36,
        not_near=("Bus errors",),
    ),
    Signature(
        anchor=("bus error",),
        pattern=r"^(?:zsh: |\[\d{1,3}\][\s+-]{1,12}(?:\d{1,9} )?)bus error\b",
        examples=(
            "zsh: bus error  python3 train.py",
            "[1]    4711 bus error  python train.py",
        ),
        not_examples=("a bus error was handled",),
        weight=28,
    ),
)
