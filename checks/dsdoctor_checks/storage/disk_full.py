"""A file system is full or over quota.

## Why it matters
A checkpoint that does not fit is truncated, and `torch.save` does not always report that the disk is
full.

## What to do
Free up space, or set the output directory and the caches (`TMPDIR`, `HF_HOME`,
`TORCH_EXTENSIONS_DIR`) to a larger file system. If `df -h` and `df -i` show enough, a quota may be used up
(`quota -s`), or the file exceeds a limit of the process (`ulimit -f`).

## References
- DeepSpeed 0.19.8 runtime/engine.py `save_checkpoint`: weights, fp32 master copy, two moments
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Limits,
    Missing,
    Place,
    RunNeeds,
    Scope,
    Storage,
    TrainingJob,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import gib

from . import _disk_full_signatures
from ._util import CHECKPOINT_BYTES, MIB, by_mount, name, nvme_bytes, parameters

#: Mount points of file systems on which homes, and so torch's default cache of built ops, usually are.
_HOME = re.compile(r"/|/root|/home(?:/[^/]+)?")

CONDITION = Condition("disk-full", id="DSD1551", scope=Scope.JOB, since="0.1")


class DiskLimits(Limits, frozen=True, kw_only=True):
    """Free space in MiB below which a place is too full.

    Attributes:
        output_mib: in a `--writable` directory, if no `--model` gives the size of a checkpoint.
        extensions_mib: where ops are built.
        cache_mib: other caches, and where a trainer saves.
        temporary_mib: where compilers write.
        nvme_mib: where states are offloaded to, if no `--model` gives their size.
    """

    output_mib: float = 1024
    extensions_mib: float = 300
    cache_mib: float = 100
    temporary_mib: float = 100
    nvme_mib: float = 1024


def _saved_bytes(job: TrainingJob | Missing, command: LaunchCommand | Missing) -> int | None:
    """Bytes of a checkpoint of what the command trains on this host alone; None = not known."""
    if isinstance(job, Missing) or isinstance(command, Missing):
        return None
    count = (job.shape or {}).get("parameters")
    alone = command.num_nodes in (None, 1) and not (command.hostfile or "nnodes" in command.options)
    if alone and job.method == "full" and job.saves_states and isinstance(count, int):
        return CHECKPOINT_BYTES * count
    return None


def _required_bytes(
    place: Place, run: RunNeeds, limits: DiskLimits, saved: int | None
) -> tuple[float, str, bool]:
    """Bytes that a place needs, what for, and whether the run certainly fails without them."""
    count = parameters(run)
    if place.purpose == "--writable":
        if count is not None:
            return CHECKPOINT_BYTES * count, "one checkpoint of this model needs {size}", True
        return limits.output_mib * MIB, "checkpoints need {size} at least", False
    if place.purpose == "--output_dir":
        whole = saved if run.config is not None else None
        least = limits.cache_mib * MIB  # adapters may be small
        of = "checkpoints need {size} at least"
        return whole or least, "one checkpoint of this model needs {size}" if whole else of, False
    if place.purpose == "NVMe offload":
        states = nvme_bytes(run, place.path)
        if states is not None:
            return states, "the offloaded states of this model need {size}", True
        return limits.nvme_mib * MIB, "offloaded states need {size} at least", False
    if place.purpose == "built extensions":
        return limits.extensions_mib * MIB, "a build needs {size} at least", False
    if place.purpose == "temporary files":
        return limits.temporary_mib * MIB, "a build needs {size} at least", False
    if place.purpose == "mounted file system":  # of `df` in a paste, which may be any
        least = limits.extensions_mib if _HOME.fullmatch(place.path) else 0
        least = limits.temporary_mib if place.path == "/tmp" else least
        words = "a build needs {size} at least" if least else "a job writes there"
        return (least or 1) * MIB, words, False
    if place.purpose in ("--path", "disk of the profile"):
        return 0, "", False
    return limits.cache_mib * MIB, "a cache needs {size} at least", False


@check(CONDITION)
def places_have_room(
    storage: Storage,
    run: RunNeeds,
    limits: DiskLimits,
    job: TrainingJob | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Compares the free space of each file system with the most that a place on it needs."""
    saved = _saved_bytes(job, command)
    seen = False
    for places in by_mount(p for p in storage.places if p.free_bytes is not None and p.total_bytes):
        seen = True
        needs = [(*_required_bytes(place, run, limits, saved), place) for place in places]
        bytes_needed, what, certain, place = max(needs, key=lambda row: row[0])
        free = place.free_bytes or 0
        if free >= bytes_needed:
            continue
        needed = what.replace("{size}", _size(int(bytes_needed)))
        yield (fail if certain else warn)(
            f"{name(place)} has {_size(free)} free, but {needed}",
            effect="files are truncated, and the run stops",
            hint=f"free up space on `{place.mount or place.path}`, or use another file system",
            path=place.path,
            purpose=place.purpose,
            mount=place.mount,
            free_bytes=free,
            needed_bytes=int(bytes_needed),
            parameters=parameters(run),
        )
    if seen:
        yield ok(
            free_gib={p.path: gib(p.free_bytes) for p in storage.places if p.free_bytes is not None}
        )


def _size(size: int) -> str:
    """MiB below one GiB, else GiB.

    >>> _size(5 << 20), _size(3 << 30)
    ('5 MiB', '3.0 GiB')
    """
    return f"{size // MIB} MiB" if size < 1024 * MIB else f"{gib(size)} GiB"


HINT = "free up space, or set the output directory and the caches (`TMPDIR`, `HF_HOME`, `TORCH_EXTENSIONS_DIR`) to a larger file system"

SIGNATURES = _disk_full_signatures.SIGNATURES
