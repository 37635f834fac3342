"""A disk or a network file system returned an I/O error.

## Why it matters
Errors 5, 107, 116 and 121 come from below the file system: a failing disk, a server that became
unreachable, or a mount that was replaced while it was in use. A run that reads data or saves a
checkpoint there stops.

## What to do
Look at `dmesg` and at the server of the mount, and remount it. Copy what is still readable, and put data
and checkpoints on another disk until this one is repaired.

## References
- Linux include/uapi/asm-generic/errno.h
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("storage-io-error", id="DSD1556", scope=Scope.NODE, since="0.1")

HINT = (
    "look at `dmesg` and the server of the mount, and use another disk until this one is repaired"
)

SIGNATURES = (
    Signature(
        pattern=r"buffer nbytes != file bytes \d+ != \d+",
        source="deepspeed 0.3.16-0.19 csrc/aio/py_lib/deepspeed_py_aio_handle.cpp, deepspeed_py_io_handle.cpp",
        message="A file on the NVMe disk differs in size from the tensor that was written to it",
        hint="check the free space and the quota of `nvme_path`, use a local disk for it, and remove the files that an earlier run left there; releases before 0.4 wrote sizes wrongly that are not a multiple of `aio.block_size`",
        examples=(
            "/nvme/zero_stage_3/optimizer/rank1/x.tensor.swp: buffer nbytes != file bytes 100 != 50",
        ),
        not_examples=("buffer nbytes != file bytes of it",),
        level=Level.LIKELY,
        masks=("native-crash",),
    ),
    Signature(
        pattern="`n_completes >= min_completes'",
        source="deepspeed 0.4-0.19 ops/csrc/aio/common/deepspeed_aio_common.cpp",
        message="The kernel completed fewer asynchronous reads or writes than DeepSpeed waited for",
        hint="look at `dmesg` for errors of the disk of `nvme_path`, and use a local disk that supports direct I/O",
        examples=(
            "python: deepspeed_aio_common.cpp:76: Assertion `n_completes >= min_completes' failed.",
        ),
        level=Level.WEAK,
        masks=("native-crash",),
    ),
    Signature(
        pattern=r"\[Errno 5\] Input/output error|\[Errno 116\] Stale file handle(?!.{0,200}/lock\b)",
        source="Linux 4-6 errno; CPython OSError",
        examples=(
            "OSError: [Errno 5] Input/output error: '/mnt/data/x'",
            "OSError: [Errno 116] Stale file handle: '/mnt/data/x'",
        ),
        not_examples=("OSError: [Errno 116] Stale file handle: '/nfs/cpu_adam/lock'",),
        level=Level.LIKELY,
    ),
    Signature(
        pattern=r": write error: (?P<why>Stale file handle|Input/output error|Transport endpoint is not connected)$",
        source="bash 3.2-5.3 builtins/common.c, coreutils 8-9 lib/closeout.c, with glibc's words for ESTALE, EIO and ENOTCONN",
        message="A file system failed while a shell wrote to it: {why}",
        examples=(
            "slurm_script: line 13: echo: write error: Stale file handle",
            "tee: log.txt: write error: Input/output error",
            "cat: write error: Transport endpoint is not connected",
        ),
        not_examples=("echo: write error: Stale file handle or so",),
        level=Level.LIKELY,
    ),
    Signature(
        # the file system took the script away while the shell was still reading it
        pattern=r": error reading input file: (?P<why>Stale file handle|Input/output error|Transport endpoint is not connected)\s*$",
        source="bash 5.2 input.c, with glibc's words for ESTALE, EIO and ENOTCONN",
        examples=(
            "run/train.sh: error reading input file: Stale file handle",
            "bash: error reading input file: Input/output error",
            "t.sh: error reading input file: Transport endpoint is not connected",
        ),
        not_examples=("error: t.sh: error reading input file: Stale file handle of n1",),
        message="The shell could not read on in the job's script: {why}",
        hint="do not replace or remove the script while a job runs it (copy it to the job's folder"
        " first), and check the file system of that folder",
        level=Level.LIKELY,
    ),
    Signature(
        pattern=r"\[Errno (?:70\] Communication error on send|107\] Transport endpoint is not connected|108\] Cannot send after transport endpoint shutdown|121\] Remote I/O error)",
        source="Linux 4-6 errno; CPython OSError",
        examples=(
            "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/data/x'",
            "OSError: [Errno 121] Remote I/O error: '/mnt/x'",
            "OSError: [Errno 70] Communication error on send: '/lustre/x'",
            "OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/x'",
        ),
        not_examples=(),
        level=Level.STRONG,
    ),
    Signature(
        # the messages of the C library: on Windows, the numbers mean others
        pattern=r"(?:Input/output|Remote I/O) error \(os error (?:5|121)\)|Stale file handle \(os error 116\)|Os \{ code: (?:5|116|121), kind: \w+, message: \x22(?:Input/output error|Stale|Remote I/O)",
        source=(
            "rust 1.0-1.90 library/std/src/io/error.rs, with the system's words for EIO, ESTALE "
            "and EREMOTEIO"
        ),
        examples=(
            'safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 5, kind: Uncategorized, message: "Input/output error" })',
            'Os { code: 116, kind: StaleNetworkFileHandle, message: "Stale file handle" }',
            'Os { code: 121, kind: Uncategorized, message: "Remote I/O error" }',
            "Exception: Input/output error (os error 5)",
            "Exception: Stale file handle (os error 116)",
            "Exception: Remote I/O error (os error 121)",
        ),
        not_examples=('Os { code: 5, kind: PermissionDenied, message: "Access is denied." }',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"blk_update_request: (?:critical medium|I/O) error|Buffer I/O error on dev|I/O error, dev \w+, sector",
        source="Linux 4-6 block/",
        examples=(
            "blk_update_request: I/O error, dev sda, sector 7",
            "blk_update_request: critical medium error",
            "Buffer I/O error on dev sda1, logical block 7",
            "I/O error, dev nvme0n1, sector 7 op 0x0",
        ),
        not_examples=("I/O error, dev x",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"EXT4-fs error|XFS \(\w+\): (?:metadata I/O error|log I/O error)|nfs: server \S+ not responding",
        source="Linux 4-6 fs/ext4, fs/xfs, net/sunrpc",
        examples=(
            "EXT4-fs error (device sda1): ext4_find_entry",
            "XFS (sda1): metadata I/O error in x",
            "XFS (sda1): log I/O error -5",
            "nfs: server store-1 not responding, still trying",
        ),
        not_examples=("nfs: server store-1 ok, not responding again",),
        level=Level.STRONG,
    ),
)
