"""A cache or output directory is not writable.

## Why it matters
The job writes builds, caches and checkpoints while it runs. It stops at a directory that belongs to
another user or is mounted read-only.

## What to do
Make the directory writable for the job's user, or set `TORCH_EXTENSIONS_DIR`, `HF_HOME` or
`XDG_CACHE_HOME` to another one.

## References
- triton knobs.py: `TRITON_CACHE_DIR`; DeepSpeed docs: `nvme_path`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Place,
    Scope,
    Signature,
    Storage,
    check,
    fail,
    ok,
    warn,
)

from ._util import name

CONDITION = Condition(
    "path-not-writable", id="DSD1553", scope=Scope.JOB, since="0.1", formerly=("permissions",)
)

#: Places that a run must be able to write to; the others have a fallback, or are only read.
_NEEDED = ("--writable", "--output_dir", "NVMe offload")
_JUDGED = (*_NEEDED, "Triton cache", "temporary files")


def _stated(place: Place, elsewhere: str) -> tuple[str, str] | None:
    """What is wrong with a place and what to do, as whole sentences; None if nothing is."""
    if place.error is not None:
        return None
    what = name(place)
    if place.kind not in (None, "dir"):
        return (
            f"{what} is a {place.kind}, not a directory",
            f"remove that {place.kind}, or {elsewhere}",
        )
    if place.trial_error is not None:
        said = f"{what} is not writable: `{place.trial_error}`"
    elif place.read_only:
        return (
            f"{what} is on a file system that is mounted read-only (`{place.mount}`)",
            f"mount it read-write, or {elsewhere}",
        )
    elif place.writable:
        return None
    elif place.parent:
        said = f"{what} is not writable: its parent `{place.parent}` belongs to another user"
    else:
        said = f"{what} is not writable: it belongs to another user"
    return said, f"make it writable for this user, or {elsewhere}"


@check(CONDITION)
def places_can_be_written(storage: Storage) -> Iterator[Finding]:
    """Judges permissions and mounts, and for `--writable` the result of a trial write."""
    judged = [place for place in storage.places if place.purpose in _JUDGED]
    clean = True
    for place in judged:
        variable = place.variable or {"Triton cache": "TRITON_CACHE_DIR"}.get(place.purpose)
        stated = _stated(
            place,
            f"set `{variable}` to another directory" if variable else "use another directory",
        )
        if stated is None:
            continue
        clean = False
        message, hint = stated
        needed = place.purpose in _NEEDED
        yield (fail if needed else warn)(
            message,
            effect="the run stops when it first writes there"
            if needed
            else "each process compiles its kernels again, or the run stops when it writes there",
            hint=hint,
            path=place.path,
            purpose=place.purpose,
            parent=place.parent,
            mount=place.mount,
            error=place.trial_error,
        )
    if clean and judged:
        yield ok(places=[place.path for place in judged])


HINT = "make the directory writable for the job's user, or set `TORCH_EXTENSIONS_DIR`, `HF_HOME` or `XDG_CACHE_HOME` to another one"

SIGNATURES = (
    Signature(
        # with `exist_ok`, a folder would do
        pattern=r"^FileExistsError: \[Errno 17\] File exists: '(?P<path>[^']{1,300})'",
        source="python 3.3-3.14 Lib/os.py (`makedirs`), Lib/pathlib.py (`mkdir`), with glibc's words for EEXIST",
        level=Level.STRONG,
        near=("exist_ok=True",),
        message="`{path}` is a file, or a link to nothing, where a folder should be",
        hint="rename it, or pass another folder",
        examples=("FileExistsError: [Errno 17] File exists: 'out'",),
        not_examples=("FileExistsError: [Errno 17] File exists: ''",),
    ),
    Signature(
        pattern=r"\[Errno 13\] Permission denied(?!.{0,20}(?:nvcc|ninja)|: '/dev/(?!shm/))|\[Errno 30\]|Read-only file system",
        source=("python 3.3-3.14 Objects/exceptions.c, with glibc's words for EACCES and EROFS"),
        examples=(
            "PermissionError: [Errno 13] Permission denied: '/.cache'",
            "OSError: [Errno 30] Read-only file system: 'x'",
        ),
        not_examples=("PermissionError: [Errno 13] Permission denied: '/dev/nvidia0'",),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="failed to map segment from shared object",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: /c/cpu_adam/cpu_adam.so: failed to map segment from shared object",
        ),
        message="A library cannot be loaded from where it is, usually a file system mounted with `noexec`",
        hint="set `TORCH_EXTENSIONS_DIR` (or `TMPDIR`, for unpacked libraries) to a directory on a file system without `noexec`; `findmnt -T DIR` shows it",
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        # a number after `sh:` is the line with a program that dash may not execute
        pattern=r"OSError: PermissionError at |^(?!.{0,60}\bsh: \d{1,6}: (?!cannot )).*(?<!\.sh)(?<!\.py)(?<!\.slurm)(?<!\.bash): Permission denied$|problem when trying to write in your cache folder",
        source=(
            "transformers 4.20-5.23 utils/hub.py; coreutils 8-9, bash 3.2-5.2 and dash 0.5 with "
            "glibc's words for EACCES"
        ),
        examples=(
            "OSError: PermissionError at /.cache/huggingface/hub when downloading gpt2. Check cache directory permissions.",
            "mkdir: cannot create directory '/models': Permission denied",
            "bash: out.log: Permission denied",
            "problem when trying to write in your cache folder",
        ),
        not_examples=(
            "node-b: Permission denied (publickey).",
            "/bin/sh: 1: /usr/lib/gcc: Permission denied",
            "run.sh: line 4: ./hosts.sh: Permission denied",
            "run.sh: line 4: ./hosts.bash: Permission denied",
        ),
        not_near=(
            "publickey",
            "nvcc",
            "ninja",
            "rcmd: socket",
            "ssh",
            "execve()",
            "/dev/kfd",
            "/dev/dri",
        ),
    ),
    Signature(
        pattern=r"\[WinError 5\] Access is denied",
        source=(
            "Windows 10-11 ERROR_ACCESS_DENIED (5), printed by python 3.3-3.14 Objects/exceptions.c"
        ),
        examples=(
            "PermissionError: [WinError 5] Access is denied: 'C:\\\\cache'",
            "OSError: [WinError 5] Access is denied",
        ),
    ),
    Signature(
        pattern=r"^RuntimeError: File \S.{0,300} cannot be opened\.",
        source="torch 1.6-2.13 csrc/serialization.cpp, caffe2/serialize/inline_container.cc",
        examples=(
            "RuntimeError: File out/model_3.pt cannot be opened.",
            "RuntimeError: File /data/run 1/last.ckpt cannot be opened.",
        ),
        not_examples=("RuntimeError: File out/model_3.pt cannot be",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"PermissionError: \[Errno 1\] Operation not permitted",
        source="Linux EPERM; CPython 3.8-3.14 PermissionError",
        examples=("PermissionError: [Errno 1] Operation not permitted: '/data/x'",),
        level=Level.WEAK,
        not_near=("Dump cache file failed",),  # jieba continues without its cache
    ),
    Signature(
        pattern="kind: PermissionDenied",
        source=(
            "rust 1.0-1.90 library/std/src/io/error.rs, as tokenizers, safetensors and hf-xet "
            "print it"
        ),
        examples=(
            'IoError(Os { code: 13, kind: PermissionDenied, message: "Permission denied" })',
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Permission denied \(os error 13\)",
        source="rust 1.0-1.90 library/std/src/io/error.rs, with the system's words for EACCES",
        examples=("Permission denied (os error 13)",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="attempt to write a readonly database",
        source="sqlite 3 src/main.c",
        examples=("sqlite3.OperationalError: attempt to write a readonly database",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"PermissionError: \[WinError (?:32|5)\]",
        source=(
            "Windows 10-11 ERROR_SHARING_VIOLATION (32), ERROR_ACCESS_DENIED (5), printed by "
            "python 3.3-3.14 Objects/exceptions.c"
        ),
        examples=(
            "PermissionError: [WinError 32]",
            "PermissionError: [WinError 5] Access is denied: 'C:\\\\Users\\\\me\\\\.cache\\\\huggingface'",
        ),
        level=Level.WEAK,
        hint="close programs that have the file open (another run, a virus scanner), "
        "and make the directory writable for this account",
    ),
    Signature(
        pattern=r"\b(?:[Ee]rror:|ERROR) Permission denied",
        source="any program that prints glibc's words for EACCES",
        examples=(
            "Error: Permission denied",
            "ERROR Permission denied",
        ),
        level=Level.WEAK,
    ),
)
