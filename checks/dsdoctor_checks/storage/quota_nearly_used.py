"""The user's disk quota is used up, or nearly.

## Why it matters
A checkpoint that passes the quota is cut off (`Disk quota exceeded`), however empty the disk is.
Home folders on clusters have small quotas, and caches lie there unless they are told otherwise.

## What to do
Remove what is no longer needed, ask for more, or move `HF_HOME`, `TORCH_EXTENSIONS_DIR` and the
output to a project or scratch file system.

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
    """What must be left of a quota.

    Attributes:
        min_mib: space.
        min_files: files.
    """

    min_mib: float = 500
    min_files: float = 500


@check(CONDITION)
def quota_has_room(storage: Storage, limits: QuotaLimits) -> Iterator[Finding]:
    """What is left below the nearest limit of each quota."""
    if not storage.quotas:
        yield skip("no quota is told here")
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
                "taken",
                effect="writing ends with `Disk quota exceeded`",
                hint="remove what is no longer needed, or move output and caches elsewhere",
                device=quota.device,
                used=round(used),
                limit=round(limit / scale),
                unit=unit,
            )
    if clean:
        yield ok(quotas=len(storage.quotas))
