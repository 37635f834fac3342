"""The allocator setting of torch is contradictory or mistyped.

## Why it matters
`PYTORCH_CUDA_ALLOC_CONF` and its newer name `PYTORCH_ALLOC_CONF` hold `option:value` pairs. If
both are set and differ, which one counts depends on the release; an option that torch does not
know ends the job at its first allocation.

## What to do
Set one of the two, as in `expandable_segments:True,max_split_size_mb:512`.

## References
- https://pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from dsdoctor.api import Condition, Environment, Finding, Scope, check, fail, warn

CONDITION = Condition(
    "alloc-conf-unknown",
    id="DSD307",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)
_NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
#: Known options; not yet compared with the source of each release. One that is not here may be new:
#: only near-misses are judged.
_OPTIONS = (
    "backend",
    "expandable_segments",
    "garbage_collection_threshold",
    "graph_capture_record_stream_reuse",
    "max_non_split_rounding_mb",
    "max_split_size_mb",
    "per_process_memory_fraction",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",
    "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc",
    "roundup_power2_divisions",
    "throw_on_cudamalloc_oom",
)


def _near_miss(value: str) -> tuple[str, str] | None:
    """An entry that no torch reads, and what was probably meant."""
    depth, entries = 0, [""]
    for character in value:
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            entries.append("")
        else:
            entries[-1] += character
    for entry in entries:
        key, separator, _ = entry.strip().partition(":")
        option, equals, setting = key.partition("=")
        if not separator and equals and option.strip() in _OPTIONS:
            return entry.strip(), f"{option.strip()}:{setting.strip()}"
        meant = difflib.get_close_matches(key, _OPTIONS, n=1, cutoff=0.88)
        if key and key not in _OPTIONS and meant:
            return key, meant[0]
    return None


@check(CONDITION)
def allocator_setting_is_read(env: Environment) -> Iterator[Finding]:
    """Both names set and different, or an entry that torch cannot read."""
    values = {name: value for name in _NAMES if (value := env.get(name))}
    if len(set(values.values())) > 1:
        old, new = values[_NAMES[0]], values[_NAMES[1]]
        yield warn(
            f"`{_NAMES[0]}={old}`, but `{_NAMES[1]}={new}`",
            effect="which of them counts depends on the torch release",
            hint=f"unset `{_NAMES[0]}`, or give both the same value",
            values=values,
        )
    for name, value in values.items():
        miss = _near_miss(value)
        if miss is None:
            continue
        yield fail(
            f"`{name}={value}` holds `{miss[0]}`, but torch knows `{miss[1]}`",
            effect="the job dies at its first allocation",
            hint=f"write `{miss[1]}` in `{name}`",
            variable=name,
            value=value,
            entry=miss[0],
            meant=miss[1],
        )
