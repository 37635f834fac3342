"""Ops are built on a file system mounted with `noexec`.

## Why it matters
A built op is a shared library. On a file system mounted with `noexec`, it compiles for a minute and
then cannot be loaded: `failed to map segment from shared object`.

## What to do
Point `TORCH_EXTENSIONS_DIR` and `TRITON_CACHE_DIR` to another file system, or remount this one with
`exec`.

## References
- mount(8): `noexec`; dlopen(3)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Missing,
    RunNeeds,
    Scope,
    Storage,
    check,
    ok,
)

from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "build-folder-noexec",
    id="DSD441",
    scope=Scope.USER_ENV,
    since="0.1",
    leads_to=("path-not-writable",),
)
_VARIABLES = {"built extensions": "TORCH_EXTENSIONS_DIR", "Triton cache": "TRITON_CACHE_DIR"}


@check(CONDITION)
def built_code_can_be_loaded(
    storage: Storage,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges the mount options of the folders for built code."""
    bad = [place for place in storage.places if place.noexec and place.purpose in _VARIABLES]
    ops = jit_ops(run, deepspeed, cache, own)
    for place in bad:
        certain = ops if place.purpose == "built extensions" else None
        yield tool_unusable(
            certain,
            f"`{place.path}` ({place.purpose}) is on `{place.mount}`, which is mounted with `noexec`",
            effect="ops built there cannot be loaded: `failed to map segment from shared object`",
            hint=f"set `{_VARIABLES[place.purpose]}` to a folder on another file system",
            path=place.path,
            mount=place.mount,
            file_system=place.file_system,
        )
    if not bad:
        yield ok()
