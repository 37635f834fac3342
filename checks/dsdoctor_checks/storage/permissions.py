"""A cache or output folder cannot be written.

## Why it matters
Builds, caches and checkpoints are written while the job runs; a folder of another user stops it.

## What to do
Give the user the folder, or point `TORCH_EXTENSIONS_DIR`, `HF_HOME`, `XDG_CACHE_HOME` at one of
theirs.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("permissions", id="DSD1553", scope=Scope.JOB, since="0.1")

HINT = "give the user the folder, or point `TORCH_EXTENSIONS_DIR`, `HF_HOME`, `XDG_CACHE_HOME` at one of theirs"

SIGNATURES = (
    Signature(
        anchor=(
            "[Errno 13]",
            "Read-only file system",
            "Operation not permitted",
            "failed to map segment",
            "[Errno 30]",
        ),
        pattern=(
            r"\[Errno 13\] Permission denied(?!.{0,20}(?:nvcc|ninja))|\[Errno 30\]"
            r"|Read-only file system|failed to map segment from shared object"
        ),
        examples=(
            "PermissionError: [Errno 13] Permission denied: '/.cache'",
            "OSError: [Errno 30] Read-only file system: 'x'",
        ),
        not_examples=("Permission denied (publickey)",),
        weight=58,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor="Parent directory",
        pattern=r"Parent directory .{1,200} does not exist",
        examples=(
            "RuntimeError: Parent directory c/step3 does not exist.",
            "RuntimeError: Parent directory /mnt/out/global_step10 does not exist.",
        ),
        not_examples=("Parent directory ok",),
        weight=30,
    ),
    Signature(
        anchor=(
            "PermissionError at ",
            "Permission denied",
            "problem when trying to write in your cache",
        ),
        pattern=(
            r"OSError: PermissionError at |(?:mkdir|touch|cp"
            r"|mv|tee|bash|sh|cannot create \S+|cannot open \S+"
            r"|cannot create directory .{1,80})?: (?:cannot .{1,120}: )?Permission denied$"
            r"|problem when trying to write in your cache folder"
        ),
        examples=(
            "OSError: PermissionError at /.cache/huggingface/hub when downloading gpt2. Check cache directory permissions.",
            "mkdir: cannot create directory '/models': Permission denied",
            "bash: ./run.sh: Permission denied",
        ),
        not_examples=("node-b: Permission denied (publickey).",),
        weight=48,
        not_near=("publickey", "nvcc", "ninja", "rcmd: socket", "ssh"),
    ),
    Signature(
        anchor="WinError 5]",
        pattern=r"\[WinError 5\] Access is denied",
        examples=(
            "PermissionError: [WinError 5] Access is denied: 'C:\\\\cache'",
            "OSError: [WinError 5] Access is denied",
        ),
        not_examples=("[WinError 2] The system cannot find the file specified",),
        weight=58,
    ),
)
