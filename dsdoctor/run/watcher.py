"""The child that samples the host while a job runs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dsdoctor import process
from dsdoctor.host.account import isolated
from dsdoctor.run.gpus import GpuChoice
from dsdoctor.run.options import RunOptions
from dsdoctor.run.script_options import output_folders

WATCHER = Path(__file__).parent.parent / "probes" / "children" / "watch_host.py"
_GPU_WATCHER = WATCHER.with_name("watch_gpus.py")
#: How long the watcher may take for its last sample.
LAST_SECONDS = 1.5


class Watcher:
    """The sampling child; the job does not notice when it dies."""

    def __init__(self, pid: int, options: RunOptions, folder: Path, seen: GpuChoice) -> None:
        self._arguments = [sys.executable, "-I", "-S", str(WATCHER), "--pid", str(pid)]
        self._arguments += ["--every", str(options.every), "--file", str(folder / "samples.jsonl")]
        self._arguments += ["--gpus", seen.selector] + ["--pci-order"] * seen.by_pci
        for option in isolated([sys.executable, str(_GPU_WATCHER)])[1:-1]:
            self._arguments.append(f"--gpu-python-option={option}")
        for disk in _disks(folder, options.command):
            self._arguments += ["--disk", disk]
        if interface := os.environ.get("NCCL_SOCKET_IFNAME", "").lstrip("^="):
            self._arguments += ["--interface", interface.split(",")[0]]
        self.starts = 0
        self.out = -1
        self._held = -1
        self._buffer = b""
        self._child: process.Attached | None = None

    def start(self) -> None:
        """Starts it (again)."""
        self.close()
        self.starts += 1
        inner_in, self._held = os.pipe()
        self.out, inner_out = os.pipe()
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            self._child = process.start_attached(
                self._arguments, stdin=inner_in, stdout=inner_out, stderr=null, env=os.environ
            )
        finally:
            for number in (inner_in, inner_out, null):
                os.close(number)
        os.set_blocking(self.out, False)

    def samples(self) -> list[dict[str, Any]] | None:
        """New samples; None = it has ended."""
        try:
            data = os.read(self.out, 1 << 20)
        except BlockingIOError:
            return []
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        found: list[dict[str, Any]] = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def last_samples(self) -> list[dict[str, Any]]:
        """Asks it to end; returns its last samples, which contain the counters after a death."""
        found: list[dict[str, Any]] = []
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        deadline = time.monotonic() + LAST_SECONDS
        while self.out >= 0 and (left := deadline - time.monotonic()) > 0:
            if select.select([self.out], [], [], left)[0]:
                samples = self.samples()
                if samples is None:
                    break
                found += samples
        return found

    def close(self) -> None:
        """Ends it: its standard input closes."""
        for number in (self._held, self.out):
            if number >= 0:
                with contextlib.suppress(OSError):
                    os.close(number)
        self._held = self.out = -1
        if self._child is not None and self._child.wait(1.0) is None:
            self._child.signal_group(signal.SIGKILL)
            self._child.wait(1.0)
        self._child = None


def _disks(folder: Path, command: Sequence[str]) -> list[str]:
    """Where a job writes: its folder, output, caches and temporary files, and our own records."""
    named = [os.environ.get(name, "") for name in ("HF_HOME", "TRITON_CACHE_DIR", "TMPDIR")]
    candidates = [str(Path.cwd()), str(Path.home()), "/tmp", str(folder), *named]  # noqa: S108
    candidates[1:1] = map(str, output_folders(command))
    seen: dict[int, str] = {}
    for path in candidates:
        with contextlib.suppress(OSError):
            if path:
                seen.setdefault(os.stat(path).st_dev, path)  # noqa: PTH116
    return list(seen.values())
