"""How a rank reports its progress to the parent: as JSON lines in its own file.

Runs in the patient, Python 3.8 and later, before torch is imported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any, Dict, Optional

import dsdsmoke_locks as locks

#: Exit status of a rank whose parent has ended.
ORPHANED = 86


class CheckError(Exception):
    """A result is wrong; `seen` is an `Observation` of dsdoctor."""

    def __init__(self, seen: Any, message: Any, **data: Any) -> None:
        super().__init__(message)
        self.seen = seen
        self.data = data


def plain(value: Any) -> Any:
    """A value for strict JSON, with NaN and infinity as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Reporter:
    """Writes events; every line is flushed at once, because a rank may die at any time."""

    def __init__(self, folder: Any, rank: Any) -> None:
        self.rank = rank
        self.folder = folder
        self.phase = "spawn"
        self._begun = time.monotonic()
        self._stream = open(os.path.join(folder, "rank-%d.jsonl" % rank), "a", encoding="utf-8")

    def write(self, state: Any, data: Any = None, seconds: Any = 0.0) -> Any:
        line = {
            "rank": self.rank, "phase": self.phase, "state": state, "time": time.time(),
            "pid": os.getpid(), "seconds": round(seconds, 4), "data": plain(data or {}),
        }  # fmt: skip
        self._stream.write(json.dumps(line, default=str) + "\n")
        self._stream.flush()

    def note(self, **data: Any) -> Any:
        self.write("note", data)

    @contextlib.contextmanager
    def during(self, phase: Any) -> Any:
        """Reports the start and end of a phase; yields a dict for measurements."""
        self.phase = phase
        self._begun = time.monotonic()
        self.write("begin")
        found: Dict[str, Any] = {}
        try:
            yield found
        except BaseException as error:
            traceback.print_exc()
            sys.stderr.flush()
            data = dict(found)
            text = "".join(traceback.format_exception_only(type(error), error)).strip()
            data["error"] = text[-2000:]
            if isinstance(error, CheckError):
                data.update(error.data)
                data["seen"] = error.seen
                data["error"] = str(error)
            self.write("fail", data, time.monotonic() - self._begun)
            raise
        self.write("ok", found, time.monotonic() - self._begun)


def take_output(folder: Any, rank: Any) -> Any:
    """Redirects everything that this process prints, including C++ code, to its own file.

    Returns the streams for stacks on signals, which the caller must keep open.
    """
    log = os.open(
        os.path.join(folder, "rank-%d.log" % rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
    )
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    faulthandler.enable()
    if hasattr(faulthandler, "register"):
        stacks = open(os.path.join(folder, "rank-%d.stack" % rank), "w", encoding="utf-8")
        faulthandler.register(signal.SIGUSR2, file=stacks, all_threads=True)
        # A launcher ends the other ranks by SIGTERM when one has died. The stack written here
        # distinguishes them from that one; `chain` lets the signal end the process as usual.
        asked = open(os.path.join(folder, "rank-%d.sigterm" % rank), "w", encoding="utf-8")
        faulthandler.register(signal.SIGTERM, file=asked, all_threads=False, chain=True)
        return stacks, asked
    return ()


def follow_parent(folder: Any, patience: Any) -> Any:
    """Ends this process if the parent no longer touches its file, or its guard has removed it."""

    def watch() -> Any:
        path = os.path.join(folder, "alive")
        seen: Optional[float] = None
        since = time.monotonic()
        while True:
            time.sleep(1.0)
            now = seen
            removed = False
            try:
                now = os.stat(path).st_mtime
            except FileNotFoundError:
                removed = seen is not None
            except OSError:
                pass
            if now != seen:
                seen, since = now, time.monotonic()
            elif removed or time.monotonic() - since > patience:
                locks.release_own()
                os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()
