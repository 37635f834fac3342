r"""Sample the host beneath a running job, one JSON line each time.

    python watch_host.py --pid PID --every SECONDS --file FILE [--disk PATH]… [--interface NAME]
                         [--gpus SELECTOR] [--pci-order] [--gpu-python-option=OPTION]…

Each line goes to FILE (rotated once at 64 MiB) and to standard output. Ends when standard input is
closed, as its parent has then ended. Nothing is changed on the machine. Linux; elsewhere the lines
contain only what can be read there. Standard library only, Python 3.8 and later.

    {"t": epoch, "host": {"used", "total", "swap", "shm_used", "shm_total"},
     "cgroup": {"used", "limit", "oom_kills"}, "disks": [{"path", "free", "total"}],
     "net": {"errors", "dropped"},
     "ranks": [{"pid", "rank", "rss", "cpu"}],          cpu: seconds since the process started
     "ended": [{"pid", "rank", "t", "status"}],         since the last line, in order; status:
                                                        negative = signal, null = not known
     "job": {"cpu", "python", "rss"},                   cpu: of all processes, also those that have
                                                        ended; python: the first that is one; rss:
                                                        of that one
     "kernel": [lines], "killed", "crashed": pids of the job that the kernel says it has killed
                                            for lack of memory, or that crashed; null = not known
     "gpus": [...], "xids": [{"gpu", "bdf", "code"}], "gpus_silent": seconds,
     "gpus_others": PCI addresses of GPUs that are not the job's,
     "gpus_unsure": their numbers do not say which are}

Lines of the kernel about Xids of other GPUs are left out.

Over 400 lines because it is one script: an isolated interpreter runs it and finds no other file.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import re
import select
import stat
import subprocess
import sys
import time
from typing import Any

ROTATE = 64 << 20
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
#: Lines of the kernel that explain deaths.
KERNEL = re.compile(
    r"Out of memory|Killed process|oom-kill|Xid|SXid|segfault at|traps:|I/O error|No space left"
    r"|EXT4-fs error|XFS .*error|nvidia|NVRM|mlx5|Memory cgroup|hung_task|blocked for more than",
    re.IGNORECASE,
)
#: `NVRM: Xid (PCI:0000:3b:00): 79, …`; the SXid of an NVSwitch is every GPU's.
XID_PLACE = re.compile(r"\bXid \(PCI:([0-9a-f:]{7,})", re.IGNORECASE)
KERNEL_LINES = 50
#: `Memory cgroup out of memory: Killed process 7184 (python) …`
KILLED = re.compile(r"\bKilled process (\d{1,10}) ")
#: `python[7184]: segfault at …`, `traps: python[7184] general protection fault …`
CRASHED = re.compile(r"\[(\d{1,10})\]:? (?:segfault at|general protection|trap )")
#: The kernel's log has the numbers of the first namespace; in another one they mean nothing.
FIRST_NAMESPACE = "pid:[4026531836]"
#: A job that starts more processes is not followed any further.
MOST_PIDS = 1 << 16
#: Fields of /proc/PID/stat after the name, up to the resident pages.
STAT_FIELDS = 22
#: How often a process without RANK is read again.
FIRST_LOOKS = 5


def read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def number(path: str) -> int | None:
    text = read(path).strip()
    return int(text) if text.isdigit() else None


def is_python(pid: int) -> bool:
    try:
        program = os.readlink("/proc/%d/exe" % pid)
    except OSError:
        return False
    return os.path.basename(program).startswith(("python", "pypy"))


def in_first_namespace() -> bool:
    try:
        return os.readlink("/proc/self/ns/pid") == FIRST_NAMESPACE
    except OSError:
        return False


class Ranks:
    """Processes of ranks below the job's first process: the topmost one with each RANK.

    Attributes:
        cpu: seconds of all processes of the job, and of those that they have waited for.
        python: the first process that is a Python; None = there is none.
        rss: resident bytes of that one.
        pids: all processes of the job that were seen; None = their numbers mean nothing.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self.pids: set[int] | None = set() if in_first_namespace() else None
        self.known: dict[int, int] = {}
        self.seen: dict[int, tuple[str, int | None]] = {}
        self.looks: dict[int, int] = {}
        self.handles: dict[int, tuple[int, int]] = {}
        self.cpu = 0.0
        self.python: int | None = None
        self.rss: int | None = None

    def children(self, pid: int) -> list[int]:
        found: list[int] = []
        try:
            threads = os.listdir("/proc/%d/task" % pid)
        except OSError:
            return found
        for thread in threads:
            text = read("/proc/%d/task/%s/children" % (pid, thread))
            found += [int(word) for word in text.split()]
        return found

    def rank_of(self, pid: int) -> int | None:
        started = self.stat(pid)[2]
        if started is not None and pid in self.seen and self.seen[pid][0] == started:
            return self.seen[pid][1]
        found = re.search(r"(?:^|\0)RANK=(\d{1,7})\0", read("/proc/%d/environ" % pid))
        rank = int(found.group(1)) if found else None
        # between fork and exec a process shows its parent's variables: a None is not final
        self.looks[pid] = self.looks.get(pid, 0) + 1
        if started is not None and (rank is not None or self.looks[pid] >= FIRST_LOOKS):
            self.seen[pid] = (started, rank)
        return rank

    def fields(self, pid: int) -> list[str]:
        """The fields of a process in /proc/PID/stat, from its state on; empty = it has ended."""
        fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
        return [] if len(fields) < STAT_FIELDS or fields[0] in ("Z", "X") else fields

    def stat(self, pid: int) -> tuple[int, float, str] | tuple[None, None, None]:
        """Resident bytes, CPU seconds, start time; None for each if the process has ended."""
        fields = self.fields(pid)
        if not fields:
            return None, None, None
        return int(fields[21]) * PAGE, (int(fields[11]) + int(fields[12])) / TICKS, fields[19]

    def named(self, pattern: re.Pattern[str], lines: list[str]) -> list[int] | None:
        """Processes of the job that kernel lines mention; None = their numbers mean nothing."""
        if self.pids is None or len(self.pids) >= MOST_PIDS:
            return None
        found = {int(pid) for line in lines for pid in pattern.findall(line)}
        return sorted(found.intersection(self.pids))

    def look(self) -> dict[int, int]:
        pending: list[tuple[int, int | None]] = [(self.root, None)]
        alive: dict[int, int] = {}
        ticks, python = 0, None
        while pending:
            pid, inherited = pending.pop()
            if self.pids is not None and len(self.pids) < MOST_PIDS:
                self.pids.add(pid)
            ticks += sum(map(int, self.fields(pid)[11:15]))
            python = python or (pid if is_python(pid) else None)
            rank = self.rank_of(pid)
            if rank is not None and rank != inherited and rank not in alive:
                alive[rank] = pid
            pending += [(child, rank) for child in self.children(pid)]
        self.cpu, self.python = ticks / TICKS, python
        self.rss = None if python is None else self.stat(python)[0]
        for rank, pid in alive.items():
            if self.known.get(rank) != pid:
                self.known[rank] = pid
                if hasattr(os, "pidfd_open"):
                    with contextlib.suppress(OSError):
                        self.handles[os.pidfd_open(pid)] = (rank, pid)
        return alive

    def status(self, handle: int) -> int | None:
        """How a rank ended, if its parent has not waited for it yet; afterwards only it knows."""
        pid = self.handles[handle][1]
        fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
        if len(fields) <= STAT_FIELDS or fields[0] != "Z":
            return None
        code = int(fields[-1])  # as wait(2) returns it
        return -(code & 0x7F) if code & 0x7F else code >> 8

    def ended(self, moments: list[tuple[int, float, int | None]]) -> list[dict[str, Any]]:
        gone = []
        for handle, when, status in moments:
            rank, pid = self.handles.pop(handle)
            os.close(handle)
            if self.known.get(rank) == pid:
                del self.known[rank]
            gone.append({"pid": pid, "rank": rank, "t": when, "status": status})
        return gone


def host_memory() -> dict[str, int] | None:
    values = {}
    for line in read("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if rest.strip().split(" ")[0].isdigit():
            values[name] = int(rest.split()[0]) * 1024
    if "MemTotal" not in values:
        return None
    found = {
        "total": values["MemTotal"],
        "used": values["MemTotal"] - values.get("MemAvailable", values.get("MemFree", 0)),
        "swap": values.get("SwapTotal", 0) - values.get("SwapFree", 0),
    }
    try:
        shm = os.statvfs("/dev/shm")
        found["shm_total"] = shm.f_blocks * shm.f_frsize
        found["shm_used"] = (shm.f_blocks - shm.f_bfree) * shm.f_frsize
    except OSError:
        pass
    return found


def cgroup_folder(pid: int) -> str | None:
    for line in read("/proc/%d/cgroup" % pid).splitlines():
        hierarchy, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if hierarchy == "0":
            for folder in ("/sys/fs/cgroup" + place, "/sys/fs/cgroup"):
                if os.path.exists(folder + "/memory.current"):
                    return folder
        if "memory" in kinds.split(","):
            for folder in ("/sys/fs/cgroup/memory" + place, "/sys/fs/cgroup/memory"):
                if os.path.exists(folder + "/memory.usage_in_bytes"):
                    return folder
    return None


def cgroup(folder: str | None) -> dict[str, Any] | None:
    if folder is None:
        return None
    used = number(folder + "/memory.current") or number(folder + "/memory.usage_in_bytes")
    limit = number(folder + "/memory.max") or number(folder + "/memory.limit_in_bytes")
    events = read(folder + "/memory.events") + read(folder + "/memory.oom_control")
    kills = re.search(r"^oom_kill (\d+)", events, re.MULTILINE)
    return {
        "folder": folder,
        "used": used,
        "limit": None if limit is None or limit >= 1 << 60 else limit,
        "oom_kills": int(kills.group(1)) if kills else None,
    }


def disks(paths: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in paths:
        try:
            volume = os.statvfs(path)
        except OSError:
            continue
        found.append(
            {
                "path": path,
                "free": volume.f_bavail * volume.f_frsize,
                "total": volume.f_blocks * volume.f_frsize,
            }
        )
    return found


def network(interface: str) -> dict[str, int]:
    base = "/sys/class/net/%s/statistics/" % interface
    errors = [number(base + name) for name in ("rx_errors", "tx_errors")]
    dropped = [number(base + name) for name in ("rx_dropped", "tx_dropped")]
    return {"errors": sum(filter(None, errors)), "dropped": sum(filter(None, dropped))}


class Kernel:
    """The lines of the kernel's log from now on, if this user may read it."""

    def __init__(self) -> None:
        self.handle: int | None = None
        with contextlib.suppress(OSError):
            self.handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.handle, 0, os.SEEK_END)

    def lines(self) -> list[str]:
        found: list[str] = []
        while self.handle is not None and len(found) < KERNEL_LINES:
            try:
                row = os.read(self.handle, 8192).decode("utf-8", "replace")
            except OSError:
                break
            head, _, text = row.partition(";")
            text = text.partition("\n")[0]
            if KERNEL.search(text):
                stamp = [*head.split(","), "0", "0", "0"][2]
                found.append("[%12.6f] %s" % (int(stamp) / 1e6, text[:400]))
        return found


class Gpus:
    """The newest line of `watch_gpus.py`."""

    def __init__(self, every: float, selector: str, by_pci: bool, options: list[str]) -> None:
        self.buffer = b""
        self.latest: dict[str, Any] | None = None
        self.xids: list[dict[str, Any]] = []
        self.heard: float | None = None
        self.child: subprocess.Popen[bytes] | None = None
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch_gpus.py")
        try:
            self.child = subprocess.Popen(
                [sys.executable, *options, beside, str(every), selector] + ["pci"] * by_pci,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if self.child.stdout is not None:
                os.set_blocking(self.child.stdout.fileno(), False)
        except OSError:
            self.child = None

    def look(self) -> None:
        if self.child is None or self.child.stdout is None:
            return
        with contextlib.suppress(OSError):
            self.buffer += os.read(self.child.stdout.fileno(), 1 << 20)
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                self.latest = json.loads(line)
                self.xids += self.latest.get("xids") or ()
                self.heard = time.monotonic()

    def is_other(self, line: str) -> bool:
        """Whether a line of the kernel is about a GPU that is not the job's."""
        found = XID_PLACE.search(line)
        if found is None or self.latest is None:
            return False
        place = found.group(1).lower()
        return place in {str(one)[-len(place) :] for one in self.latest.get("others") or ()}

    def new_xids(self) -> list[dict[str, Any]]:
        """Those that were not yet reported."""
        found, self.xids = self.xids, []
        return found

    def close(self) -> None:
        if self.child is not None and self.child.stdout is not None:
            self.child.kill()
            self.child.stdout.close()
            self.child.wait()


class Output:
    """The file and standard output.

    The run's folder is held open, and no link is followed: it may be in a folder of another
    account, which could replace it at any moment.
    """

    def __init__(self, path: str) -> None:
        folder, self.name = os.path.split(os.path.abspath(path))
        self.file: Any = None
        try:
            self.folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            self.file = self.opened()
        except OSError as error:
            sys.stderr.write("%s: %s\n" % (path, error.strerror))

    def opened(self) -> Any:
        """The file, open for as long as this process lives."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(self.name, flags, 0o600, dir_fd=self.folder)
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            os.close(handle)
            raise OSError(errno.EPERM, "not a regular file with one name")
        return os.fdopen(handle, "ab", 0)

    def write(self, sample: dict[str, Any]) -> bool:
        line = json.dumps(sample, separators=(",", ":")).encode() + b"\n"
        try:
            if self.file is not None and self.file.tell() + len(line) > ROTATE:
                self.file.close()
                self.file, here = None, self.folder
                os.replace(self.name, self.name + ".1", src_dir_fd=here, dst_dir_fd=here)
                self.file = self.opened()
            if self.file is not None:
                self.file.write(line)
        except OSError:
            pass
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except OSError:
            return False
        return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--file", required=True)
    parser.add_argument("--disk", action="append", default=[])
    parser.add_argument("--interface")
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--pci-order", action="store_true")
    parser.add_argument("--gpu-python-option", action="append", default=[])
    given = parser.parse_args()
    ranks, kernel = Ranks(given.pid), Kernel()
    gpus = Gpus(given.every, given.gpus, given.pci_order, given.gpu_python_option)
    output = Output(given.file)
    folder = cgroup_folder(given.pid)
    try:
        watch(given, ranks, kernel, gpus, output, folder)
    finally:
        gpus.close()


def watch(
    given: argparse.Namespace,
    ranks: Ranks,
    kernel: Kernel,
    gpus: Gpus,
    output: Output,
    folder: str | None,
) -> None:
    moments: list[tuple[int, float, int | None]] = []
    due, over = 0.0, False
    while True:
        now = time.monotonic()
        if now >= due or over:
            gpus.look()
            alive = ranks.look()
            rows = []
            for rank, pid in sorted(alive.items()):
                rss, cpu, _ = ranks.stat(pid)
                if rss is not None:
                    rows.append({"pid": pid, "rank": rank, "rss": rss, "cpu": cpu})
            lines = [line for line in kernel.lines() if not gpus.is_other(line)]
            sample = {
                "t": round(time.time(), 3),
                "host": host_memory(),
                "cgroup": cgroup(folder),
                "disks": disks(given.disk),
                "net": network(given.interface) if given.interface else None,
                "ranks": rows,
                "ended": ranks.ended(moments),
                "job": {"cpu": ranks.cpu, "python": ranks.python, "rss": ranks.rss},
                "kernel": lines,
                "killed": ranks.named(KILLED, lines),
                "crashed": ranks.named(CRASHED, lines),
                "gpus": gpus.latest["gpus"] if gpus.latest else [],
                "xids": gpus.new_xids(),
            }
            if gpus.latest is not None:
                sample["gpus_others"] = gpus.latest.get("others") or []
                sample["gpus_unsure"] = bool(gpus.latest.get("unsure"))
            if gpus.heard is not None:
                sample["gpus_silent"] = round(time.monotonic() - gpus.heard, 1)
            moments = []
            if not output.write(sample) or over:
                return
            due = now + given.every
        waiting = [sys.stdin.fileno(), *ranks.handles.keys()]
        waiting = [handle for handle in waiting if handle not in {row[0] for row in moments}]
        poller = select.poll()
        for handle in waiting:
            poller.register(handle, select.POLLIN)
        for handle, _ in poller.poll(max(0.0, due - time.monotonic()) * 1000):
            if handle == sys.stdin.fileno():
                over = not os.read(handle, 4096)  # the parent has finished: a last sample
            else:
                moments.append((handle, time.time(), ranks.status(handle)))
                due = min(due, time.monotonic() + 0.2)  # report a death soon


if __name__ == "__main__":
    main()
