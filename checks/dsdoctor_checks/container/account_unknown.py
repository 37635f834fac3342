"""The job's account has no name on this system.

## Why it matters
A container started with `--user 1234`, or by OpenShift, runs under a number that its passwd file
does not list. torch names its compilation cache after the account, and stops in `getpass.getuser()`
with `getpwuid(): uid not found`. Before 2.13, this happens as soon as TorchInductor is imported,
which transformers and DeepSpeed can cause.

## What to do
Set `USER` to any name, and `HOME` and `TORCHINDUCTOR_CACHE_DIR` to directories that the job may write.

## References
- torch 2.5-2.12 torch/_inductor/runtime/cache_dir_utils.py
- https://github.com/pytorch/pytorch/issues/140765
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("account-unknown", id="DSD1104", scope=Scope.JOB, since="0.1")

HINT = "run `export USER=job`, and set `HOME` and `TORCHINDUCTOR_CACHE_DIR` to directories that the job may write"

SIGNATURES = (
    Signature(
        pattern=r"getpwuid\(\): uid not found: ?(?P<uid>\d{1,12})?",
        source="python 3.3-3.14 Modules/pwdmodule.c",
        message="user id {uid} has no entry in the passwd file",
        examples=("KeyError: 'getpwuid(): uid not found: 1000910000'",),
        level=Level.STRONG,
    ),
)
