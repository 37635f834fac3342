"""The cache of models, datasets or built ops is on a file system without file locks.

## Why it matters
datasets and older releases of huggingface_hub lock files with `flock`, and so does torch since 2.14 while it
builds an op. On a Lustre file system that is mounted without `flock`, that can fail with `Function not
implemented`, or wait forever.

## What to do
Set `HF_HOME` (for ops `TORCH_EXTENSIONS_DIR`) to a file system with locks, such as the home directory or a
local disk, or have Lustre mounted with `flock`.

## References
- mount.lustre(8): `flock`, `localflock`, `noflock`
- https://github.com/huggingface/huggingface_hub/issues/2399
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    Scope,
    Signature,
    Storage,
    TorchBuild,
    check,
    ok,
    warn,
)

from ._util import name

CONDITION = Condition("file-locks-missing", id="DSD1507", scope=Scope.USER_ENV, since="0.1")
#: What stops there, by the purpose of a place, and the variable that moves it.
_LOCKED = {
    "Hugging Face cache": ("loading a dataset or a model", "HF_HOME"),
    "built extensions": ("building an op", "TORCH_EXTENSIONS_DIR"),
}


@check(CONDITION)
def caches_can_be_locked(storage: Storage, torch: TorchBuild | Missing) -> Iterator[Finding]:
    """Judges the caches whose files are locked: kernels, and builds before torch 2.14, are not."""
    locks = {"Hugging Face cache"}
    if isinstance(torch, TorchBuild) and torch.version and not torch.waits_for_lock_files:
        locks.add("built extensions")
    for place in storage.places:
        if place.purpose not in locks or place.error is not None:
            continue
        what, variable = _LOCKED[place.purpose]
        if place.locks:
            yield ok(path=place.path)
            continue
        yield warn(
            f"{name(place)} is on `{place.mount}` ({place.file_system}), which is mounted without file"
            " locks (`noflock`)",
            effect=f"{what} can stop with `Function not implemented`, or hang",
            hint=f"set `{variable}` to a directory on a file system with locks",
            path=place.path,
            mount=place.mount,
            file_system=place.file_system,
        )


HINT = (
    "set `HF_HOME` to a directory on a file system with locks, or have Lustre mounted with `flock`"
)

SIGNATURES = (
    Signature(
        pattern="FileSystem does not appear to support flock",
        source="filelock 3.12-3.20 _unix.py",
        examples=(
            "NotImplementedError: FileSystem does not appear to support flock; use SoftFileLock instead",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        # only a request for a lock fails this way (fcntl(2), flock(2))
        pattern=r"\[Errno 37\] No locks available|error message = 'No locks available'",
        source="python 3.3-3.14 Modules/fcntlmodule.c, HDF5 1.10-1.14 H5FDsec2.c, with glibc's words for ENOLCK",
        examples=(
            "OSError: [Errno 37] No locks available",
            "OSError: [Errno 37] Unable to open file (unable to lock file, errno = 37, error message = 'No locks available')",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\[Errno 38\] Function not implemented",
        source="python 3.3-3.14 Modules/fcntlmodule.c, with glibc's words for ENOSYS",
        examples=("OSError: [Errno 38] Function not implemented",),
        level=Level.STRONG,
        near=("flock", "lockf", "FileLock", "filelock"),
    ),
)
