"""The setting of torch's memory allocator is contradictory, misspelled or ignored.

## Why it matters
`PYTORCH_CUDA_ALLOC_CONF` and its newer name `PYTORCH_ALLOC_CONF` contain `option:value` pairs. torch
before 2.10 ignores the newer name on CUDA without a message. If both are set and differ, which one
takes effect depends on the release. An unknown option aborts the job at its first allocation.

## What to do
Set one of the two, for example `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. Use the newer name
only with torch 2.10 or newer.

## References
- https://pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf
- https://github.com/pytorch/pytorch/issues/183387 (2.9.1 ignores `PYTORCH_ALLOC_CONF` on CUDA)
- c10/core/AllocatorConfig.h, c10/cuda/CUDAAllocatorConfig.h of torch 2.13
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    warn,
    without_fix,
)
from dsdoctor_checks._util import at_least, fixable, job_environment, variable

CONDITION = Condition(
    "alloc-conf-unknown",
    id="DSD307",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)
HINT = "write `PYTORCH_CUDA_ALLOC_CONF` as `option:value` pairs, separated by commas, with options that this torch has; or unset it"

SIGNATURES = (
    Signature(
        pattern=r"Unrecognized (?:CachingAllocator option: \w|key '\w+' in (?:CUDA|Accelerator) allocator config)",
        source="torch 1.11-2.8 c10/cuda/CUDACachingAllocator.cpp, CUDAAllocatorConfig.cpp; torch 2.14.1 libc10.so, libc10_cuda.so",
        message="torch does not have an option that `PYTORCH_CUDA_ALLOC_CONF` sets",
        examples=(
            "RuntimeError: Unrecognized CachingAllocator option: expandable_segment",
            "RuntimeError: Unrecognized key 'expandable_segment' in CUDA allocator config.",
            "ValueError: Unrecognized key 'max_split_size' in Accelerator allocator config.",
        ),
        not_examples=(
            "Unrecognized CachingAllocator option: ",
            "Unrecognized key 'x-y' in CUDA allocator config",
        ),
    ),
    Signature(
        pattern=r"CachingAllocator option \w+ (?:too small|must be)\b",
        source="torch 2.14.1 libc10.so",
        message="A value in `PYTORCH_CUDA_ALLOC_CONF` is out of range",
        examples=(
            "RuntimeError: CachingAllocator option max_split_size_mb too small, must be >= 20",
            "RuntimeError: CachingAllocator option large_segment_size_mb must be > 0",
        ),
        not_examples=("CachingAllocator option max_split_size_mb is 20",),
    ),
    Signature(
        pattern=r"\bin ConfigTokenizer\b",
        source="torch 2.14.1 libc10.so",
        message="`PYTORCH_CUDA_ALLOC_CONF` cannot be parsed",
        examples=("Expected 'True' or 'False' at index 3 in ConfigTokenizer but got 'yes'",),
        not_examples=("in ConfigTokenizers",),
    ),
    Signature(
        pattern="Allocator backend parsed at runtime != allocator backend parsed at load time",
        source="torch 2.14.1 libc10_cuda.so",
        message="The allocator's back end was changed after torch had been loaded",
        hint="set `PYTORCH_CUDA_ALLOC_CONF` before Python starts, not in the script",
        examples=(
            "RuntimeError: Allocator backend parsed at runtime != allocator backend parsed at load time, cudaMallocAsync != native",
        ),
    ),
    Signature(
        pattern=r"(?:Tensors allocated with|for CUDA tensors when) expandable_segments:True|Cannot share an expandable_segments allocation",
        source="torch 2.14.1 libc10_cuda.so",
        message="Tensors in expandable segments cannot be shared with another process here",
        hint="remove `expandable_segments:True` from `PYTORCH_CUDA_ALLOC_CONF`",
        examples=(
            "RuntimeError: Tensors allocated with expandable_segments:True cannot be shared between processes. Consider",
            "RuntimeError: The kernel on this machine does not support the pidfd_open syscall needed to use IPC for CUDA tensors when expandable_segments:True is set.",
            "RuntimeError: Cannot share an expandable_segments allocation: IPC handles are disabled.",
        ),
        level=Level.STRONG,
    ),
)
_NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
#: First release whose CUDA allocator reads the newer name (pytorch issue 183387: 2.9.1 ignores it,
#: 2.11.0 reads it; vLLM pull request 41158 uses it with 2.10). Read 2026-11-22.
_READS_NEW_NAME = "2.10"
#: Known options (c10 headers of torch 2.13 and older releases). An option that is not here may be
#: new, so only near-misses are judged.
_OPTIONS = (
    "backend",
    "expandable_segments",
    "garbage_collection_threshold",
    "graph_capture_record_stream_reuse",
    "large_segment_size_mb",
    "max_non_split_rounding_mb",
    "max_split_size_mb",
    "per_process_memory_fraction",
    "pinned_max_cached_size_mb",
    "pinned_max_round_threshold_mb",
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
    """An entry that no torch reads, and the closest one that it does."""
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
        import difflib  # noqa: PLC0415  # only where the variable is set

        meant = difflib.get_close_matches(key, _OPTIONS, n=1, cutoff=0.88)
        if key and key not in _OPTIONS and meant:
            return key, meant[0]
    return None


@check(CONDITION)
def allocator_setting_is_read(
    env: Environment, torch: TorchBuild | Missing, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """Judges two names that differ, a name that this torch does not read, and unknown entries."""
    of_job = job_environment(env, command)
    values = {name: value for name in _NAMES if (value := variable(of_job, name))}
    if len(set(values.values())) > 1:
        old, new = values[_NAMES[0]], values[_NAMES[1]]
        yield without_fix(  # only the reader knows which one is meant
            warn(
                f"`{_NAMES[0]}={old}`, but `{_NAMES[1]}={new}`",
                effect="which one takes effect depends on the torch release",
                hint=f"unset `{_NAMES[0]}`, or set both to the same value",
                values=values,
            )
        )
    version = torch.version if isinstance(torch, TorchBuild) and torch.cuda else None
    if list(values) == [_NAMES[1]] and not at_least(version, _READS_NEW_NAME):
        finding = warn(
            f"`{_NAMES[1]}={values[_NAMES[1]]}` is set, but torch {version} reads only `{_NAMES[0]}`"
            " on CUDA",
            effect="the setting has no effect",
            hint=f"run `export {_NAMES[0]}={values[_NAMES[1]]}`",
            values=values,
            variable=_NAMES[0],
            set_to=values[_NAMES[1]],
            torch=version,
        )
        yield fixable(finding, command, _NAMES[1])
    for name, value in values.items():
        miss = _near_miss(value)
        if miss is None:
            continue
        finding = fail(
            f"`{name}={value}` contains `{miss[0]}`, but torch expects `{miss[1]}`",
            effect="the job exits at its first allocation",
            hint=f"write `{miss[1]}` in `{name}`",
            variable=name,
            value=value,
            entry=miss[0],
            meant=miss[1],
        )
        yield fixable(finding, command, name)
