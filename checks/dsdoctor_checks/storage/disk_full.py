"""A file system is full or over quota.

## Why it matters
A checkpoint that does not fit is cut off. torch.save does not always say that the disk is full.

## What to do
Free space or point the output and the caches (`TMPDIR`, `HF_HOME`, `TORCH_EXTENSIONS_DIR`) at a
larger file system.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("disk-full", id="DSD1551", scope=Scope.JOB, since="0.1")

HINT = "free space or point the output and the caches (`TMPDIR`, `HF_HOME`, `TORCH_EXTENSIONS_DIR`) at a larger file system"

SIGNATURES = (
    Signature(
        anchor=("No space left on device", "StorageFull", "Disk quota exceeded"),
        pattern=r"No space left on device|StorageFull|Disk quota exceeded",
        examples=(
            "OSError: [Errno 28] No space left on device: 'out/x.pt'",
            "OSError: [Errno 122] Disk quota exceeded",
        ),
        not_examples=("2 GB left on device",),
        weight=56,
        not_near=(
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
            "NCCL WARN",
            "shm_open",
            "joblib",
            "shared memory",
        ),
    ),
    Signature(
        anchor="Disk quota exceeded",
        pattern=r"Disk quota exceeded",
        examples=(
            "OSError: [Errno 122] Disk quota exceeded",
            "cp: error writing 'out/x.pt': Disk quota exceeded",
        ),
        not_examples=("quota: 80% used",),
        weight=66,
    ),
    Signature(
        anchor=("StorageFull",),
        pattern=r"StorageFull",
        examples=(
            "IoError(Os { code: 28, kind: StorageFull })",
            "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull })",
        ),
        not_examples=("IoError(Os { code: 2, kind: NotFound })",),
        weight=66,
    ),
    Signature(
        anchor="No space left on device",
        pattern=(
            r"(?:Cannot|cannot|can't|fatal error|error writing|write|Error closing"
            r"|assembler).{0,200}No space left on device"
        ),
        examples=(
            "/tmp/x.s: fatal error: error writing to /tmp/x.s: No space left on device",
            "tar: x/y.bin: Cannot write: No space left on device",
        ),
        not_examples=("No space left on device (28) in shm",),
        weight=60,
        not_near=("/dev/shm", "shm)", "NCCL WARN"),
    ),
    Signature(
        anchor=("unexpected pos", "iostream error", "PytorchStreamWriter failed"),
        pattern=(
            r"inline_container\.cc:\d+\][ .]*unexpected pos|basic_ios::clear: iostream error"
            r"|PytorchStreamWriter failed writing file"
        ),
        examples=(
            "RuntimeError: [enforce fail at inline_container.cc:659] . unexpected pos 704 vs 598",
            "RuntimeError: PytorchStreamWriter failed writing file data/418: file write failed",
            "RuntimeError: basic_ios::clear: iostream error",
        ),
        not_examples=("unexpected position",),
        weight=54,
    ),
    Signature(
        anchor=("File too large", "EFBIG"),
        pattern=r"\[Errno 27\] File too large",
        examples=(
            "OSError: [Errno 27] File too large",
            "RuntimeError: [Errno 27] File too large: 'out/model.pt'",
        ),
        not_examples=("File too large for the viewer",),
        weight=48,
    ),
    Signature(
        anchor=("low on resource: ephemeral-storage", "or disk is full", "free disk space"),
        pattern="low on resource: ephemeral-storage|database or disk is full|Not enough free disk space to download",
        examples=(
            "The node was low on resource: ephemeral-storage.",
            "sqlite3.OperationalError: database or disk is full",
        ),
        not_examples=("low on resource: memory",),
        weight=60,
    ),
)
