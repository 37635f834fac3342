"""Evidence of a run that has died: stacks, log tails, kernel messages, leftovers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from dsdoctor import proc_stat, process
from dsdoctor.host.account import own_tool
from dsdoctor.probes.children import guard

SHM = Path("/dev/shm")  # noqa: S108  # the folder of POSIX shared memory
_MAPPED = re.compile(r"(?m) /dev/shm/([^/\n]+?)(?: \(deleted\))?$")
TAIL_LINES = 25
STACK_LINES = 40
_TAIL_BYTES = 65536


def is_alive(pid: int) -> bool:
    """Whether a process is running; a zombie is not."""
    try:
        state = proc_stat.parse(Path(f"/proc/{pid}/stat").read_bytes()).state
    except OSError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state not in ("Z", "X")


def tail(path: Path, lines: int = TAIL_LINES) -> tuple[str, ...]:
    """The last lines of a log."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            data = stream.read()
    except OSError:
        return ()
    return tuple(data.decode("utf-8", "replace").splitlines()[-lines:])


def stacks(folder: Path, pids: dict[int, int], python: str) -> dict[int, tuple[str, ...]]:
    """Stacks of ranks that hang: from py-spy if it is installed, otherwise from faulthandler.

    Args:
        folder: where the ranks write.
        pids: rank to process, of this host.
        python: the patient's interpreter; py-spy may be next to it.
    """
    spy = own_tool("py-spy", path=str(Path(python).parent)) or own_tool("py-spy")
    found: dict[int, tuple[str, ...]] = {}
    for rank, pid in pids.items():
        if spy is not None:
            with contextlib.suppress(OSError):
                result = process.run([spy, "dump", "--pid", str(pid)], timeout=10.0)
                if result.ok and result.stdout:
                    found[rank] = tuple(result.text.splitlines()[:STACK_LINES])
    asked = {rank: pid for rank, pid in pids.items() if rank not in found}
    for rank, pid in asked.items():
        if hasattr(signal, "SIGUSR2"):
            process.signal_one(pid, signal.SIGUSR2, partial(process.is_rank, rank))
    if asked:
        time.sleep(0.5)
    for rank in asked:
        text = tail(folder / f"rank-{rank}.stack", 200)
        if text:
            found[rank] = main_thread_first(text)
    return found


def _watches(block: Sequence[str]) -> bool:
    return any("dsdsmoke_report.py" in row and row.endswith("in watch") for row in block[:2])


def main_thread_first(lines: Iterable[str]) -> tuple[str, ...]:
    """The dump of faulthandler, main thread first, without the thread of smoke itself.

    >>> watching = ["Thread 0x1:", '  File "/t/dsdsmoke_report.py", line 1 in watch', ""]
    >>> main_thread_first([*watching, "Current thread 0x2:", '  File "train.py", line 2 in main'])
    ('Current thread 0x2:', '  File "train.py", line 2 in main')
    """
    blocks: list[list[str]] = []
    for line in lines:
        if line.startswith(("Thread ", "Current thread ")) or not blocks:
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    kept = [block for block in blocks if not _watches(block)]
    kept.sort(key=lambda block: not block[0].startswith("Current") if block else True)
    return tuple(row for block in kept for row in block)[:STACK_LINES]


class Kernel:
    """The kernel's messages about processes that it killed for lack of memory."""

    def __init__(self) -> None:
        self._kmsg: int | None = None
        if sys.platform.startswith("linux"):
            with contextlib.suppress(OSError):
                self._kmsg = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
                os.lseek(self._kmsg, 0, os.SEEK_END)
        self._before = self._counter()

    @staticmethod
    def _counter() -> int | None:
        """How often memory ran out in the control group of this process; None = not reported."""
        total: int | None = None
        folders = [Path("/sys/fs/cgroup")]
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/cgroup").read_text().splitlines():
                number, kinds, place = line.split(":", 2)
                base = Path("/sys/fs/cgroup", "memory" if "memory" in kinds.split(",") else "")
                if number == "0" or "memory" in kinds.split(","):
                    folders.append(base / place.lstrip("/"))
        for folder in folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    found = re.search(r"^oom_kill (\d+)", (folder / name).read_text(), re.MULTILINE)
                    if found:
                        total = max(total or 0, int(found[1]))
        return total

    def killed(self, pids: Iterable[int]) -> tuple[str, ...]:
        """Lines that prove that memory ran out since this object was created."""
        lines: list[str] = []
        numbers = {str(pid) for pid in pids}
        if self._kmsg is not None:
            with contextlib.suppress(OSError):
                while True:
                    text = os.read(self._kmsg, 8192).decode("utf-8", "replace")
                    message = text.partition(";")[2].partition("\n")[0]
                    found = re.search(r"Killed process (\d+)", message)
                    if found and found[1] in numbers:
                        lines.append(message)
        after = self._counter()
        if after is not None and self._before is not None and after > self._before:
            lines.append(f"the control group counts {after - self._before} more `oom_kill`")
        return tuple(lines)

    def close(self) -> None:
        """Closes the kernel log."""
        if self._kmsg is not None:
            os.close(self._kmsg)
            self._kmsg = None


def shared_memory() -> frozenset[str]:
    """Names of the existing POSIX shared memory segments."""
    try:
        return frozenset(entry.name for entry in SHM.iterdir())
    except OSError:
        return frozenset()


def segments_of(pids: Iterable[int]) -> set[str]:
    """Names of the shared memory segments that processes have mapped."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
            found.update(_MAPPED.findall(text))
    return found


def sweep_shared_memory(made: Iterable[str], before: frozenset[str], port: int) -> tuple[str, ...]:
    """Removes segments that this run has left; returns those that could not be removed.

    Segments of the run are those that its ranks had mapped and that did not exist before, and
    DeepSpeed's all-reduce buffers of its port, which stay even after a healthy run on CPUs. Another
    job that shares the folder, even from a container, may create segments at the same time. A new
    segment is therefore not necessarily of this run.
    """
    ours = {name for name in made if name.startswith(("nccl-", "torch_"))}
    ours |= {name for name in shared_memory() if guard.is_buffer(name, port)}
    return _remove_segments(ours - before)


def sweep_stale_buffers(port: int) -> None:
    """Removes DeepSpeed's buffers that a killed run of this user has left."""
    _remove_segments(name for name in shared_memory() if guard.is_buffer(name, port))


def _remove_segments(names: Iterable[str]) -> tuple[str, ...]:
    """Removes segments of this user that no process has mapped."""
    left = []
    for name in names:
        path = SHM / name
        try:
            if is_mine(path.lstat(), stat.S_IFREG) and not guard.is_mapped(str(path)):
                path.unlink()
        except FileNotFoundError:
            continue
        except OSError:
            left.append(str(path))
    return tuple(left)


def is_mine(info: os.stat_result, kind: int) -> bool:
    """Whether a `stat` result is of this kind (`stat.S_IFDIR`, …) and belongs to this user."""
    mine = not hasattr(os, "getuid") or info.st_uid == os.getuid()
    return mine and stat.S_IFMT(info.st_mode) == kind
