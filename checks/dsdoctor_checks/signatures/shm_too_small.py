"""How `shm-too-small` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "shm-too-small"
TITLE = "/dev/shm is too small"
HINT = (
    "enlarge it (`docker run --shm-size=16g` or `--ipc=host`, a memory-backed volume in Kubernetes)"
)
FIXES: tuple[str, ...] = ("remount-shm",)

SIGNATURES = (
    Signature(
        anchor=("No space left on device",),
        pattern=r"No space left on device",
        examples=("RuntimeError: unable to write to file </torch_1_2>: No space left on device",),
        not_examples=("space left",),
        weight=68,
        near=(
            "/dev/shm",
            "shm)",
            "multiprocessing/",
            "torch_",
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
            "killed by signal: Bus error",
            "return code = -7",
            "exitcode: -7",
            "SIGBUS",
            "unable to open shared memory",
            "Bus error",
        ),
        pattern=(
            r"insufficient shared memory|unable to (?:allocate|mmap|write to"
            r"|open) (?:shared memory|file </torch)|signal: Bus error|return code = -7\b"
            r"|exitcode\s*: -7\b|SIGBUS|Bus error"
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
        examples=("NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes",),
        not_examples=("fallocate ok",),
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
        examples=("ncclSystemError: System call (socket, malloc, munmap, etc) failed.",),
        not_examples=("ncclSystemError: x",),
        weight=28,
    ),
)
