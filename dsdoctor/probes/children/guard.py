"""Ends the processes of a run if dsdoctor itself was killed: after SIGKILL it cannot do so.

    guard.py RUN_ID FOLDER

Standard input is a pipe whose other end dsdoctor keeps open. When it closes, processes with the
run's marker get a moment to end on their own (a rank that compiles an op removes its lock). Then
they are killed, and FOLDER is removed, with the shared memory that DeepSpeed's CPU ranks have left
for the port that is recorded in FOLDER. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import sys
import time

#: The file that dsdoctor touches; ranks check it every second, clean up and end if it is missing.
ALIVE = "alive"
GRACE_SECONDS = 8.0
#: The file in which dsdoctor records the port of the rendezvous.
PORT = "port"
SHM = "/dev/shm"  # noqa: S108  # the place of POSIX shared memory, not a temporary file
#: How long killing is repeated, as processes may start others meanwhile.
SECONDS = 5.0


def marked(needle: bytes) -> list[int]:
    """Processes that carry the marker, except this one."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if needle in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue
    return found


def kill(pid: int, needle: bytes) -> None:
    """Kills a process that carries the marker, never another one that has reused its PID."""
    handle = None
    try:
        if hasattr(os, "pidfd_open"):  # Linux 5.3
            handle = os.pidfd_open(pid)
        with open(f"/proc/{pid}/environ", "rb") as file:
            if needle not in file.read().split(b"\0"):
                return
        if handle is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return
    finally:
        if handle is not None:
            os.close(handle)


def is_mapped(path: str) -> bool:
    """Whether a process has mapped a file."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/maps", "rb") as file:
                if os.fsencode(path) in file.read():
                    return True
    return False


def is_buffer(name: str, port: int) -> bool:
    """Whether shared memory is this user's all-reduce buffer of a rendezvous port.

    DeepSpeed's CPU ranks leave it even after a healthy run; its name has user and port
    (csrc/cpu/comm/shm.cpp of DeepSpeed 0.19.8).
    """
    uid = os.getuid() if hasattr(os, "getuid") else 0
    return name.startswith(f"deepspeed_allreduce_buffer_{uid}_") and f"_{port}_" in name


def remove_buffers(folder: str) -> None:
    """Removes the buffers of the port that is recorded in a run's folder."""
    with contextlib.suppress(OSError, ValueError):
        with open(os.path.join(folder, PORT), encoding="ascii") as file:
            port = int(file.read(16))
        for name in os.listdir(SHM):
            path = os.path.join(SHM, name)
            if is_buffer(name, port) and not is_mapped(path):
                info = os.lstat(path)
                if stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid():
                    os.unlink(path)


def main() -> None:
    """Waits for the end of dsdoctor, then cleans up."""
    run_id, folder = sys.argv[1:3]
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    needle = b"DSDOCTOR_RUN=" + run_id.encode()
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, ALIVE))
    end = time.monotonic() + GRACE_SECONDS
    left = marked(needle)
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = marked(needle)
    end = time.monotonic() + SECONDS
    while left and time.monotonic() < end:
        for pid in left:
            kill(pid, needle)
        time.sleep(0.05)
        left = marked(needle)
    remove_buffers(folder)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
