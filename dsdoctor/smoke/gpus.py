"""GPU errors that the driver reports while the ranks run: Xids and lost GPUs, through NVML."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from dsdoctor import files, process
from dsdoctor.host.account import isolated
from dsdoctor.interpreter import CHILDREN
from dsdoctor.run.notices import gpu_evidence, xid_words
from dsdoctor.smoke.attempt import GpuError

WATCHER = CHILDREN / "watch_gpus.py"
#: Seconds between two samples; an Xid is written immediately.
EVERY = 2.0
#: A run of 10 minutes on 16 GPUs writes 2 MB.
_MOST_BYTES = 64 << 20


class GpuWatch:
    """The sampling child of a run; the run does not notice when it dies or hangs.

    Args:
        folder: of the run.
        env: the environment in which the ranks see the GPUs.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._path = folder / "gpus.jsonl"
        self._child: process.Detached | None = None
        with contextlib.suppress(OSError):
            self._child = process.start_detached(
                isolated([sys.executable, str(WATCHER), str(EVERY)]), output=self._path, env=env
            )

    def end(self, uuids: Collection[str]) -> tuple[GpuError, ...]:
        """Ends the child; returns the errors of the GPUs with these UUIDs (none = all)."""
        if self._child is not None:
            self._child.kill()
        return seen(_rows(self._path), uuids)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        for line in files.read(path, limit=_MOST_BYTES).splitlines():
            with contextlib.suppress(ValueError):  # the last line may be incomplete
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row


def seen(samples: Iterator[dict[str, Any]], uuids: Collection[str]) -> tuple[GpuError, ...]:
    """The errors in samples of the GPUs with these UUIDs, each once.

    GPUs of other jobs are ignored.
    """
    found: dict[GpuError, None] = {}
    planned = {uuid.lower() for uuid in uuids}
    for sample in samples:
        gpus = sample.get("gpus") or ()
        mine = [gpu for gpu in gpus if not planned or str(gpu.get("uuid") or "").lower() in planned]
        ours = {gpu["index"] for gpu in mine}
        for xid in sample.get("xids") or ():
            if xid["gpu"] in ours:
                line = "".join(gpu_evidence({"xids": [xid]}))
                found[GpuError(words=xid_words(xid), line=line)] = None
        for gpu in mine:
            if gpu.get("lost"):
                words = f"GPU {gpu['index']} is lost: the driver no longer reaches it"
                found[GpuError(words=words, line="".join(gpu_evidence({"gpus": [gpu]})))] = None
    return tuple(found)
