"""Notices while a job runs, once each: a pure function of samples and progress."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsdoctor.model.units import GIB
from dsdoctor.report.durations import duration
from dsdoctor.run.progress import Progress

#: Shares of memory from which a notice is printed (guides, row A7).
HOST_SHARE = 0.80
GPU_SHARE = 0.95
#: A disk is reported below this, or if it will be full before the job has run as long again.
LEAST_DISK_BYTES = 2 * GIB
DISK_SECONDS = 1800.0
#: How much slower than its own median a job must become to be reported.
SLOW_FACTOR = 1.5
SLOW_AFTER_STEPS = 20
#: Samples of a trend.
TREND_SAMPLES = 60
#: How far a trend of a disk is extrapolated, as a multiple of its observed duration. With the
#: usual two seconds between samples, a full trend reaches `DISK_SECONDS` ahead; a burst of a few
#: seconds, possibly from another job, does not.
TREND_REACH = 15.0
#: How long a GPU may be throttled before it is reported; a single sample is noise.
THROTTLED_SAMPLES = 3
LOSS_SCALE_FLOOR = 1
#: How long other ranks must continue after one has ended: ranks of a healthy job do not end at the
#: same time either.
OUTLIVED_SECONDS = 10.0
#: Xids caused by a fault of the program, on healthy hardware (NVIDIA's Xid catalog, 2025-10).
PROGRAM_XIDS = frozenset({13, 31, 32, 43, 44, 45})
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:]+)\S*\): (\d+)")
#: An NVML that is silent for this long counts as not responding.
SILENT_SECONDS = 30.0


@dataclasses.dataclass
class Trend:
    """The newest values of one figure, with their times in seconds."""

    rows: collections.deque[tuple[float, float]] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=TREND_SAMPLES)
    )

    def add(self, now: float, value: float) -> None:
        """Adds a value."""
        self.rows.append((now, value))

    def slope(self) -> float | None:
        """Change per second between the first and the second half; None until it is known."""
        if len(self.rows) < 6:  # noqa: PLR2004  # three values a half
            return None
        half = len(self.rows) // 2
        rows = list(self.rows)
        first, second = rows[:half], rows[half:]
        middle = [sum(row[0] for row in part) / len(part) for part in (first, second)]
        value = [sum(row[1] for row in part) / len(part) for part in (first, second)]
        seconds = middle[1] - middle[0]
        return (value[1] - value[0]) / seconds if seconds > 0 else None

    @property
    def seconds(self) -> float:
        """From the oldest value to the newest."""
        return self.rows[-1][0] - self.rows[0][0] if self.rows else 0.0


class Notices:
    """Turns samples into notices; each key is reported once.

    Attributes:
        throttled: GPU index to the seconds for which it was throttled.
        peak_gpu: GPU index to the highest use, bytes.
        peak_host: highest use of host memory, bytes.
        peak_rank: rank to its highest resident memory, bytes.
        peak_ranks: highest resident memory of all ranks together, bytes.
        oom_kills: kills by the kernel in the job's control group since the first sample; None = not
            known, as before the second sample.
        folder: that control group.
        killed: processes of the job that the kernel's log lists as killed for lack of memory.
        crashed: processes of the job that its log lists as crashed; None = not known.
    """

    def __init__(self) -> None:
        self.throttled: dict[str, float] = {}
        self.peak_gpu: dict[str, int] = {}
        self.peak_host: int | None = None
        self.peak_rank: dict[str, int] = {}
        self.peak_ranks: int | None = None
        self._has_ranks = False
        self.oom_kills: int | None = None
        self.killed: set[int] = set()
        self.crashed: set[int] | None = None
        self.folder = ""
        self._first_kills: int | None = None
        self._first_errors: int | None = None
        self._ecc: dict[str, int] = {}
        self._ended: dict[int, tuple[int, float]] = {}
        self._reported: set[str] = set()
        self._trends: dict[str, Trend] = {}
        self._streak: collections.Counter[str] = collections.Counter()
        self._before: float | None = None

    def feed(self, sample: Mapping[str, Any], progress: Progress) -> list[tuple[str, str]]:
        """The keys and notices that are new with this sample."""
        now = float(sample["t"])
        passed = 0.0 if self._before is None else max(0.0, now - self._before)
        self._before = now
        self._resident(sample)
        self.killed.update(sample.get("killed") or ())
        if sample.get("crashed") is not None:
            self.crashed = (self.crashed or set()).union(sample["crashed"])
        found = [
            *self._host(sample, now),
            *self._disks(sample.get("disks") or (), now),
            *self._gpus(sample, now, passed),
            *self._ranks(sample, now),
            *self._network(sample),
            *self._training(sample, progress),
        ]
        new = [(key, text) for key, text in found if key not in self._reported]
        self._reported.update(key for key, _ in new)
        return new

    def _trend(self, key: str, now: float, value: float) -> Trend:
        trend = self._trends.setdefault(key, Trend())
        trend.add(now, value)
        return trend

    def _resident(self, sample: Mapping[str, Any]) -> None:
        """Memory of the ranks; without a launcher, the first Python process is the only rank."""
        rows = {str(row["rank"]): int(row["rss"]) for row in sample.get("ranks") or ()}
        alone = (sample.get("job") or {}).get("rss")
        if rows and not self._has_ranks:  # the earlier process was their launcher
            self._has_ranks, self.peak_rank, self.peak_ranks = True, {}, None
        elif not self._has_ranks and alone is not None:
            rows = {"0": int(alone)}
        for rank, size in rows.items():
            self.peak_rank[rank] = max(size, self.peak_rank.get(rank, 0))
        if rows:
            self.peak_ranks = max(sum(rows.values()), self.peak_ranks or 0)

    def _host(self, sample: Mapping[str, Any], now: float) -> Iterator[tuple[str, str]]:
        host, group = sample.get("host") or {}, sample.get("cgroup") or {}
        used, total, what = host.get("used"), host.get("total"), "host memory"
        if group.get("limit") and group.get("used") is not None:
            used, total, what = group["used"], group["limit"], "memory of the job's control group"
        if used is not None and total:
            self.peak_host = max(self.peak_host or 0, int(used))
            slope = self._trend("host", now, used).slope()
            if used > HOST_SHARE * total:
                yield (
                    "host-memory",
                    f"{what} is {used / total:.0%} full ({used / GIB:.1f} of {total / GIB:.1f} GiB)"
                    + _full_in(total - used, slope),
                )
        if host.get("shm_total") and host["shm_used"] > 0.9 * host["shm_total"]:
            yield (
                "shm",
                (
                    f"`/dev/shm` is {host['shm_used'] / host['shm_total']:.0%} full; ranks and "
                    "data loaders die with a bus error when it is full"
                ),
            )
        kills = group.get("oom_kills")
        if kills is not None:
            self.folder = str(group.get("folder", ""))
            if self._first_kills is None:
                self._first_kills = int(kills)
            else:
                self.oom_kills = int(kills) - self._first_kills
            if self.oom_kills:
                yield "oom-kill", "the kernel killed a process of the job because memory ran out"

    def _disks(self, disks: Sequence[Mapping[str, Any]], now: float) -> Iterator[tuple[str, str]]:
        for disk in disks:
            path, free = str(disk["path"]), int(disk["free"])
            trend = self._trend(f"disk {path}", now, -free)
            slope = trend.slope()
            reach = min(DISK_SECONDS, TREND_REACH * trend.seconds)
            soon = slope is not None and slope > 0 and free / slope < reach
            if free < LEAST_DISK_BYTES or soon:
                yield (
                    f"disk {path}",
                    f"`{path}` has {free / GIB:.1f} GiB left{_full_in(free, slope, 'filling')}",
                )

    def _gpus(
        self, sample: Mapping[str, Any], now: float, passed: float
    ) -> Iterator[tuple[str, str]]:
        for gpu in sample.get("gpus") or ():
            index = str(gpu["index"])
            used, total = gpu.get("used"), gpu.get("total")
            if used is not None:
                self.peak_gpu[index] = max(self.peak_gpu.get(index, 0), int(used))
                slope = self._trend(f"gpu {index}", now, used).slope()
                if total and used > GPU_SHARE * total:
                    yield (
                        f"gpu-memory {index}",
                        (
                            f"GPU {index} memory is {used / total:.0%} full "
                            f"({used / GIB:.1f} of {total / GIB:.1f} GiB)"
                            + _full_in(total - used, slope)
                        ),
                    )
            yield from self._throttle(index, gpu.get("throttle") or (), passed)
            if gpu.get("lost"):
                yield f"gpu-lost {index}", f"GPU {index} is lost: the driver no longer reaches it"
            ecc = gpu.get("ecc")
            if ecc is not None and ecc > self._ecc.setdefault(index, int(ecc)):
                yield f"ecc {index}", f"GPU {index} reports new uncorrectable ECC errors"
        for xid in _xids(sample):
            yield f"xid {xid['bdf']} {xid['code']}", xid_words(xid)
        silent = sample.get("gpus_silent")
        if silent is not None and silent > SILENT_SECONDS:
            yield "nvml-silent", f"NVML has not answered for {silent:.0f} s; the driver may hang"

    def _throttle(
        self, index: str, reasons: Sequence[str], passed: float
    ) -> Iterator[tuple[str, str]]:
        # the power cap is normal for a busy GPU; the other reasons are heat and faults
        named = [reason for reason in reasons if reason != "power-cap"]
        if not named:
            self._streak[index] = 0
            return
        self.throttled[index] = self.throttled.get(index, 0.0) + passed
        self._streak[index] += 1
        if self._streak[index] >= THROTTLED_SAMPLES:
            yield f"throttle {index}", f"GPU {index} is throttled ({', '.join(named)})"

    def _ranks(self, sample: Mapping[str, Any], now: float) -> Iterator[tuple[str, str]]:
        alive = {row["rank"] for row in sample.get("ranks") or ()}
        for end in sample.get("ended") or ():
            self._ended[end["rank"]] = (end["pid"], float(end["t"]))
        for rank, (pid, when) in list(self._ended.items()):
            if rank in alive or not alive:  # it was started again, or all have ended
                del self._ended[rank]
            elif now - when >= OUTLIVED_SECONDS:
                still = "rank is" if len(alive) == 1 else "ranks are"
                yield (
                    f"rank-ended {rank}",
                    (
                        f"rank {rank} (pid {pid}) ended {duration(now - when)} ago while "
                        f"{len(alive)} other {still} still running"
                    ),
                )

    def _network(self, sample: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        errors = (sample.get("net") or {}).get("errors")
        if errors is None:
            return
        if self._first_errors is None:
            self._first_errors = int(errors)
        new = int(errors) - self._first_errors
        if new > 0:
            yield "network", f"the NCCL interface has counted {new} new errors"

    @staticmethod
    def _training(sample: Mapping[str, Any], progress: Progress) -> Iterator[tuple[str, str]]:
        if progress.loss_is_nan:
            yield "loss-nan", "the loss is NaN"
        scale = progress.last.loss_scale
        if scale is not None and scale <= LOSS_SCALE_FLOOR:
            yield "loss-scale", "the fp16 loss scale is at its floor; training is diverging"
        median, recent = progress.median_seconds, progress.recent_seconds()
        if median is None or recent is None or progress.counted <= SLOW_AFTER_STEPS:
            return
        if recent > SLOW_FACTOR * median:
            yield (
                "slow",
                (
                    f"a step now takes {recent:.2f} s, {recent / median:.1f} times its median of "
                    f"{median:.2f} s{_lagging_gpu(sample)}"
                ),
            )


def _lagging_gpu(sample: Mapping[str, Any]) -> str:
    """The GPU whose utilization is far below all others, if there is one."""
    rows = [(g["util"], g["index"]) for g in sample.get("gpus") or () if g.get("util") is not None]
    busy = [util for util, _ in rows]
    # ranks that wait in NCCL show full load: the rank with less load is the one they wait for
    if len(rows) > 1 and min(busy) < 0.7 * sorted(busy)[1]:
        return f"; GPU {min(rows)[1]} is at {min(busy)}% while the others are at {sorted(busy)[1]}%"
    return ""


def _xids(sample: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Xids that the driver reported, through NVML or in the kernel's log."""
    yield from sample.get("xids") or ()
    for line in sample.get("kernel") or ():
        if (found := _XID.search(line)) is not None:
            yield {"gpu": None, "bdf": found[1].lower(), "code": int(found[2])}


def xid_words(xid: Mapping[str, Any]) -> str:
    """An Xid in words."""
    gpu = "the GPU" if xid["gpu"] is None else f"GPU {xid['gpu']}"
    return f"{gpu} at PCI {xid['bdf']} reports Xid {xid['code']}"


def gpu_evidence(sample: Mapping[str, Any]) -> Iterator[str]:
    """Lines about GPUs for the diagnosis, as the kernel log and NVML write them."""
    for xid in sample.get("xids") or ():
        if xid["code"] not in PROGRAM_XIDS:
            yield f"NVRM: Xid (PCI:{xid['bdf']}): {xid['code']}, GPU {xid['gpu']}, seen by NVML"
    for gpu in sample.get("gpus") or ():
        if gpu.get("lost"):
            yield f"NVML: GPU {gpu['index']} (PCI:{gpu.get('bdf')}): GPU is lost"


def _full_in(room: float, slope: float | None, verb: str = "growing") -> str:
    """How long the space lasts at this rate."""
    if slope is None or slope <= 0 or room / slope > 24 * 3600:
        return ""
    return f", {verb} by {slope * 60 / GIB:.2f} GiB a minute: full in {duration(room / slope)}"
