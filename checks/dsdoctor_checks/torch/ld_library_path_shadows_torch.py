"""A library on LD_LIBRARY_PATH is loaded instead of torch's own.

## Why it matters
torch's wheels find their CUDA, cuDNN and NCCL libraries through a path that is searched after
`LD_LIBRARY_PATH`. Another copy there causes undefined symbols at import, "cuDNN version mismatch", or
collectives that torch was not tested with.

## What to do
Remove the folder from `LD_LIBRARY_PATH` for the job. A CUDA toolkit is found through `CUDA_HOME` and
does not need `LD_LIBRARY_PATH`.

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
#: Libraries that fail only later; the others are fine once CUDA works.
_LATE = ("libcudnn", "libnccl", "libtorch", "libc10")


def _judged_elsewhere(shadow: LibraryShadow) -> bool:
    """Whether `nccl-version-mismatch`, which compares the versions, judges it."""
    return shadow.name.startswith("libnccl.") and shadow.version is not None


@check(CONDITION)
def torch_loads_its_own(library_path: LibraryPath, live: TorchLive | Missing) -> Iterator[Finding]:
    """Other copies are a failure if the import failed, and mostly ignored if CUDA works."""
    works = cuda_works(live)
    shadows = [
        shadow
        for shadow in library_path.shadows
        if (not works or posixpath.basename(shadow.path).startswith(_LATE))
        and not _judged_elsewhere(shadow)
    ]
    if not shadows:
        yield ok(forgiven=[shadow.path for shadow in library_path.shadows])
        return
    broken = isinstance(live, TorchLive) and not live.imported.ok
    first = shadows[0]
    more = f" and {len(shadows) - 1} more" if len(shadows) > 1 else ""
    say = fail if broken else warn
    yield say(
        f"`{first.path}`{more} on `LD_LIBRARY_PATH` {'are' if more else 'is'} loaded instead of the `{first.name}` of"
        f" {first.owner}, which torch was built with",
        effect="`import torch` fails"
        if broken
        else "undefined symbols, version mismatches or different results are possible",
        hint=f"remove `{posixpath.dirname(first.path)}` from `LD_LIBRARY_PATH`",
        shadows=[[shadow.name, shadow.path, shadow.owner] for shadow in shadows],
        others=len(shadows) - 1,
        entries=list(library_path.entries),
    )
