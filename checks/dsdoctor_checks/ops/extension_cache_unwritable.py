"""The folder where ops are built is not writable.

## Why it matters
torch builds ops in `$TORCH_EXTENSIONS_DIR`, by default `~/.cache/torch_extensions`. If that folder is
read-only, missing or owned by another user (often root, after `sudo` or a docker run), the first use of
every op fails.

## What to do
Point `TORCH_EXTENSIONS_DIR` to a folder on a local disk, or change the folder's owner to the job's
user.

## References
- torch/utils/cpp_extension.py: `_get_build_directory`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Level,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    TracebackRule,
    check,
    ok,
)

from ._util import jit_ops, tool_unusable

CONDITION = Condition("extension-cache-unwritable", id="DSD408", scope=Scope.USER_ENV, since="0.1")
MIB = 1 << 20

HINT = "run `export TORCH_EXTENSIONS_DIR=DIR` with a writable folder on a local disk"


class CacheLimits(Limits, frozen=True, kw_only=True):
    """Disk space for builds.

    Attributes:
        min_free_mib: free space in MiB below which a build is likely to fail.
    """

    min_free_mib: float = 100


@check(CONDITION)
def cache_is_writable(
    cache: ExtensionCache,
    own: DeepSpeedLive | Missing,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    limits: CacheLimits,
) -> Iterator[Finding]:
    """Judges write access and free space."""
    ops = jit_ops(run, deepspeed, cache, own)
    free = None if cache.free_bytes is None else cache.free_bytes // MIB
    full = free is not None and free < limits.min_free_mib
    if ops == () or (cache.writable and not full):
        yield ok(root=cache.root, free_mib=free)
        return
    source = "`TORCH_EXTENSIONS_DIR`" if cache.from_env else "torch's default"
    what = (
        f"has {free} MiB free, but a build needs {limits.min_free_mib:g} MiB"
        if cache.writable
        else "is not writable, but ops are built there"
    )
    yield tool_unusable(
        ops,
        f"`{cache.root}` ({source}) {what}",
        effect="the first use of an op fails with `PermissionError` or `No space left on device`",
        hint=HINT,
        root=cache.root,
        free_mib=free,
        min_free_mib=limits.min_free_mib,
    )


TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function="_get_build_directory",
        kinds=("FileNotFoundError", "PermissionError", "NotADirectoryError", "OSError"),
        source="torch 1.10-2.13 utils/cpp_extension.py: it makes the folder of an op",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in _get_build_directory\nFileNotFoundError: x',
    ),
)
