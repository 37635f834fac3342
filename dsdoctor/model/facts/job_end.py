"""Facts about a job that has ended on this node: what it left, and what its GPUs reported."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.kernel_log import XidEvent


class EccCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Memory errors of a GPU since the driver was loaded.

    Attributes:
        corrected: errors that ECC corrected.
        uncorrected: errors that it could not correct.
    """

    corrected: int | None = None
    uncorrected: int | None = None


class JobEnd(Fact, frozen=True, kw_only=True):
    """The job whose epilog runs, as the scheduler and the job's prolog describe it.

    Attributes:
        job: its number.
        user: name of its owner; empty if the scheduler does not pass it.
        uid: number of its owner; None if the scheduler does not pass it.
        begun: when its prolog ran, in seconds since the epoch; None if that left no note.
        ecc: UUID of each of its GPUs to the errors that its prolog noted.
        others: jobs of the same owner whose prologs ran on this node and whose epilogs did not.
    """

    job: str
    user: str = ""
    uid: int | None = None
    begun: float | None = None
    ecc: dict[str, EccCounts] = msgspec.field(default_factory=dict)
    others: tuple[str, ...] = ()


class LeftProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that still uses a GPU after its job has ended.

    Attributes:
        pid: process id.
        started: start time, in clock ticks since boot; with the pid it names one process.
        name: name of the program.
        gpus: indices of the GPUs that it uses.
        used_bytes: GPU memory in use, on all of them together; None if it is not reported.
        certain: its cgroup or environment names the job. Otherwise it belongs to the job's owner,
            who has no other job on this node.
    """

    pid: int
    started: int
    name: str
    gpus: tuple[int, ...]
    used_bytes: int | None = None
    certain: bool = True


class JobRemains(Fact, frozen=True, kw_only=True):
    """What a job has left on this node, and the errors that its GPUs reported while it ran.

    Attributes:
        job: its number.
        user: name of its owner.
        begun: when its prolog ran, in seconds since the epoch; None if that left no note.
        ecc: UUID of each of its GPUs to the errors that its prolog noted.
        processes: its processes that still use a GPU.
        shm: files of its owner in /dev/shm that changed while it ran, and their sizes in bytes;
            empty if another job of the same owner runs here, whose files they may be.
        others: jobs of the same owner on this node.
        xids: Xids that the kernel log reports for the time of the job; None if the log was not read
            or the start of the job is not known.
    """

    job: str
    user: str = ""
    begun: float | None = None
    ecc: dict[str, EccCounts] = msgspec.field(default_factory=dict)
    processes: tuple[LeftProcess, ...] = ()
    shm: dict[str, int] = msgspec.field(default_factory=dict)
    others: tuple[str, ...] = ()
    xids: tuple[XidEvent, ...] | None = None
