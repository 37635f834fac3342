"""A library on LD_LIBRARY_PATH would be loaded in place of the one that torch brings.

## Why it matters
torch's wheels find their CUDA, cuDNN and NCCL by a path that comes after `LD_LIBRARY_PATH`. A
foreign copy there gives undefined symbols at import, "cuDNN version mismatch", or other
collectives than the ones torch was tested with.

## What to do
Take the folder off `LD_LIBRARY_PATH` for the job. A toolkit is found by `CUDA_HOME`, and needs no
`LD_LIBRARY_PATH`.

## References
- ld.so(8), DT_RUNPATH
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LibraryPath,
    LibraryShadow,
    Missing,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import cuda_works

CONDITION = Condition(
    "ld-library-path-shadows-torch",
    id="DSD305",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("unset-variables",),
    leads_to=("cudnn-mismatch", "nccl-version-mismatch", "cuda-runtime-lib-mismatch"),
)
#: Libraries that misbehave later than at start; others have proved themselves once CUDA works.
_LATE = ("libcudnn", "libnccl", "libtorch", "libc10")


def _told_elsewhere(shadow: LibraryShadow) -> bool:
    """Whether `nccl-version-mismatch` judges it, which compares the releases."""
    return shadow.name.startswith("libnccl.") and shadow.version is not None


@check(CONDITION)
def torch_loads_its_own(library_path: LibraryPath, live: TorchLive | Missing) -> Iterator[Finding]:
    """Foreign copies are a failure where the import broke, and forgiven where CUDA works."""
    works = cuda_works(live)
    shadows = [
        shadow
        for shadow in library_path.shadows
        if (not works or posixpath.basename(shadow.path).startswith(_LATE))
        and not _told_elsewhere(shadow)
    ]
    if not shadows:
        yield ok(forgiven=[shadow.path for shadow in library_path.shadows])
        return
    broken = isinstance(live, TorchLive) and not live.imported.ok
    first = shadows[0]
    more = f" and {len(shadows) - 1} more" if len(shadows) > 1 else ""
    say = fail if broken else warn
    yield say(
        f"`{first.path}`{more} on `LD_LIBRARY_PATH` is loaded before the `{first.name}` of"
        f" {first.owner}, which torch was built with",
        effect="`import torch` does not work"
        if broken
        else "undefined symbols, version mismatches or other results than with torch's own",
        hint=f"take `{posixpath.dirname(first.path)}` off `LD_LIBRARY_PATH`",
        shadows=[[shadow.name, shadow.path, shadow.owner] for shadow in shadows],
        others=len(shadows) - 1,
        entries=list(library_path.entries),
    )
