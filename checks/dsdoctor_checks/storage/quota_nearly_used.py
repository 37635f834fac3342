"""The user's disk quota is used up or almost used up.

## Why it matters
A checkpoint that exceeds the quota is truncated (`Disk quota exceeded`), even if the disk has free
space. Home directories on clusters have small quotas, and caches are there by default.

## What to do
Remove what you no longer need, request a larger quota, or move `HF_HOME`, `TORCH_EXTENSIONS_DIR` and
the output to a project or scratch file system.

## References
- quota(1)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Limits, Scope, Storage, check, fail, ok, skip, warn

CONDITION = Condition(
    "quota-nearly-used", id="DSD1505", scope=Scope.JOB, since="0.1", leads_to=("disk-full",)
)
_MIB = 1 << 20


class QuotaLimits(Limits, frozen=True, kw_only=True):
    """What must be free of a quota.

    Attributes:
        min_mib: space.
        min_files: files.
    """

    min_mib: float = 500
    min_files: float = 500


@check(CONDITION)
def quota_has_room(storage: Storage, limits: QuotaLimits) -> Iterator[Finding]:
    """Judges what is free below the lowest limit of each quota."""
    if not storage.quotas:
        yield skip("`quota` reports no quota for this user")
        return
    clean = True
    for quota in storage.quotas:
        rows = (
            ("MiB", quota.used_bytes / _MIB, quota.soft_bytes, quota.hard_bytes, limits.min_mib),
            ("files", quota.used_files, quota.soft_files, quota.hard_files, limits.min_files),
        )
        for unit, used, soft, hard, least in rows:
            scale = _MIB if unit == "MiB" else 1
            limit = min((value for value in (soft, hard) if value), default=None)
            if limit is None or limit / scale - used >= least:
                continue
            clean = False
            over = hard is not None and used >= hard / scale
            yield (fail if over else warn)(
                f"{used:.0f} of {limit / scale:.0f} {unit} of the quota on `{quota.device}` are "
                "used",
                effect="writing fails with `Disk quota exceeded`",
                hint="remove what you no longer need, or move output and caches to another file"
                " system",
                device=quota.device,
                used=round(used),
                limit=round(limit / scale),
                unit=unit,
            )
    if clean:
        yield ok(quotas=len(storage.quotas))
