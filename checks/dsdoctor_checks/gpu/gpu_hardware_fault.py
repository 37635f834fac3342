"""A GPU reports a hardware fault.

## Why it matters
A restart on the same GPU does not fix an Xid, a GPU off the bus or an uncorrectable ECC error. The
driver writes each Xid to the kernel log; NVML does not report past ones. Xids that programs cause
(13, 31, 43) are only noted. So are old ones, because a reset leaves no trace in the log.

## What to do
Drain the node, read `dmesg | grep -i xid` and run `dcgmi diag -r 3`. The finding includes NVIDIA's
advice for the Xid.

## References
- https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (version of 2025-10-29)
- The check is skipped if this user cannot read the kernel log (`kernel.dmesg_restrict`).
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    KernelLog,
    Limits,
    Missing,
    NotStated,
    OsInfo,
    RecoveryAction,
    RunNeeds,
    Scope,
    XidEvent,
    check,
    fail,
    ok,
    warn,
)

from . import _gpu_hardware_fault_signatures
from ._util import judged, named
from ._xids import FATAL, INFO, WARN, Xid, lookup

CONDITION = Condition("gpu-hardware-fault", id="DSD650", scope=Scope.NODE, since="0.1")

HOUR = 3600.0
#: "GPU has fallen off the bus" (NVIDIA's Xid catalog of 2025-10-29).
FELL_OFF = 79


class XidLimits(Limits, frozen=True, kw_only=True):
    """How old an Xid may be to count.

    Attributes:
        window_hours: older ones are only noted. NVIDIA's and cloud providers' own checks look
            back 2 hours to 3 days.
    """

    window_hours: float = 24


#: The Xid by which the driver says what a GPU needs.
_RECOVERY = 154


def _asks_for_recovery(gpu: Gpu) -> bool:
    """Whether the driver still says so when it is asked."""
    try:
        return gpu.health.recovery_action not in (None, RecoveryAction.NONE)
    except NotStated:
        return False


@check(CONDITION)
def kernel_log_is_clean(
    log: KernelLog,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    limits: XidLimits,
) -> Iterator[Finding]:
    """Judges the newest Xid of each number on each GPU of this run, and NVSwitch SXids."""
    newest: dict[tuple[str, int, bool], XidEvent] = {}
    counts: dict[tuple[str, int, bool], int] = {}
    for event in log.xids:
        key = (event.bdf, event.code, event.switch)
        newest[key] = event
        counts[key] = counts.get(key, 0) + 1
    noted: dict[str, int] = {}
    for key, event in newest.items():
        gpu, ours = _owner(event, gpus, run, env, os)
        if not ours:
            continue
        rule = lookup(event.code, event.text, switch=event.switch)
        # the log begins at the last boot, so a GPU that fell off the bus and is not there is lost
        gone = event.code == FELL_OFF and not event.switch and isinstance(gpus, Gpus) and not gpu
        level = FATAL if gone else _level(rule, event, gpu, limits)
        word = "SXid" if event.switch else "Xid"
        if event.code == _RECOVERY and gpu is not None and _asks_for_recovery(gpu):
            level = INFO  # gpu-reset-required says so
        if level == INFO:
            noted[f"{event.bdf} {word} {event.code}"] = counts[key]
            continue
        where = named(gpu) if gpu else f"the NVIDIA device at {event.bdf}"
        age = _ago(event.age_s)
        yield (fail if level == FATAL else warn)(
            f"the kernel log reports {word} {event.code} ({rule.meaning}) for {where}{age}, but a "
            "healthy GPU has none",
            effect="runs on this GPU fail with a CUDA error or hang, even after a restart"
            if level == FATAL
            else "a run on this GPU has failed, or will be slower",
            hint=rule.action,
            code=event.code,
            bdf=event.bdf,
            gpu=gpu.index if gpu else None,
            count=counts[key],
            age_s=event.age_s,
            text=event.text,
            window_hours=limits.window_hours,
        )
    yield ok(noted=noted, source=log.source, begins_s=log.begins_s)


def _level(rule: Xid, event: XidEvent, gpu: Gpu | None, limits: XidLimits) -> str:
    """How severe an Xid is now, given its age and what the driver says that the GPU needs."""
    if event.age_s is not None and event.age_s > limits.window_hours * HOUR:
        return INFO
    if gpu is None or rule.level != FATAL:
        settled = gpu is not None and gpu.health.remapped_rows_pending is False
        return INFO if rule.level == WARN and rule.settles and settled else rule.level
    if rule.nvlink and not gpu.active_links:
        return WARN
    if gpu.error is None and gpu.health.recovery_action == RecoveryAction.NONE:
        # the driver requests no recovery action, so the GPU has been reset since
        return WARN
    return FATAL


def _owner(
    event: XidEvent,
    gpus: Gpus | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    os: OsInfo | Missing,
) -> tuple[Gpu | None, bool]:
    """The GPU that an Xid is about, and whether it concerns this run.

    A container sees the log of the whole host. An address that matches no GPU therefore concerns
    this run only outside a container and if the run uses every GPU: then a GPU has vanished.
    """
    inside = not isinstance(os, Missing) and os.container is not None
    if isinstance(gpus, Missing):
        return None, not inside
    used = judged(gpus, run, env)
    for gpu in gpus.gpus:
        if gpu.pci_bdf is not None and gpu.pci_bdf.rpartition(".")[0] == event.bdf:
            return gpu, gpu in used
    return None, not inside and len(used) == len(gpus.gpus)


def _ago(age: float | None) -> str:
    """An age, for a message.

    >>> _ago(90), _ago(7200), _ago(None)
    (', 2 min ago', ', 2.0 h ago', '')
    """
    if age is None:
        return ""
    return f", {age / 60:.0f} min ago" if age < HOUR else f", {age / HOUR:.1f} h ago"


HINT = "drain the node, read `dmesg | grep -i xid` and run `dcgmi diag -r 3`"

SIGNATURES = _gpu_hardware_fault_signatures.SIGNATURES
