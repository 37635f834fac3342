"""Helpers shared by the storage checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsdoctor.api import Place, RunNeeds

MIB = 1 << 20
#: Bytes per parameter in a checkpoint: 16-bit weights, fp32 master weights and Adam's two moments (DeepSpeed 0.19.8, mixed precision; gradients are not saved).
CHECKPOINT_BYTES = 14
#: Bytes per parameter that NVMe offload writes: optimizer states, and 16-bit weights.
NVME_BYTES = {"offload_optimizer": 12, "offload_param": 2}


def parameters(run: RunNeeds) -> int | None:
    """Parameters of the model passed with --model, None when none was passed."""
    count = (run.model or {}).get("parameters")
    return count if isinstance(count, int) else None


def nvme_bytes(run: RunNeeds, path: str) -> int | None:
    """Bytes that optimizer states and weights need in the NVMe directory, None without --model."""
    count = parameters(run)
    zero = (run.config or {}).get("zero_optimization")
    if count is None or not isinstance(zero, Mapping):
        return None
    total = 0
    for part, each in NVME_BYTES.items():
        section = zero.get(part)
        if isinstance(section, Mapping) and section.get("nvme_path") == path:
            total += each * count
    return total


def by_mount(places: Iterable[Place]) -> list[list[Place]]:
    """Places grouped by file system, in order."""
    groups: dict[tuple[object, ...], list[Place]] = {}
    for place in places:
        key = (place.mount, place.total_bytes, place.free_bytes)
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def name(place: Place) -> str:
    """A place as messages call it.

    >>> name(Place(purpose="Triton cache", path="/c", variable="TRITON_CACHE_DIR"))
    'the Triton cache `/c` (`TRITON_CACHE_DIR`)'
    >>> name(Place(purpose="--path", path="/data"))
    '`/data` (`--path`)'
    """
    if place.purpose.startswith("--"):
        return f"`{place.path}` (`{place.purpose}`)"
    what = f"directory of {place.purpose}" if place.purpose.endswith("s") else place.purpose
    if place.variable:
        return f"the {what} `{place.path}` (`{place.variable}`)"
    return f"the {what} `{place.path}`"
