"""How a rank tells the parent what it does: JSON lines in a file of its own.

Runs in the patient, on Python 3.8 and newer, before torch is imported.
"""

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback

#: Status of a rank whose parent has gone.
ORPHANED = 86


class CheckFailed(Exception):
    """A result is wrong; `condition` names the illness."""

    def __init__(self, condition, message, **data):
        super().__init__(message)
        self.condition = condition
        self.data = data


class Reporter:
    """Writes events; every line is flushed at once, for a rank may die at any time."""

    def __init__(self, folder, rank):
        self.rank = rank
        self.folder = folder
        self.phase = "spawn"
        self._begun = time.monotonic()
        self._stream = open(os.path.join(folder, "rank-%d.jsonl" % rank), "a", encoding="utf-8")

    def write(self, state, data=None, seconds=0.0):
        line = {
            "rank": self.rank, "phase": self.phase, "state": state, "time": time.time(),
            "pid": os.getpid(), "seconds": round(seconds, 4), "data": data or {},
        }  # fmt: skip
        self._stream.write(json.dumps(line, default=str) + "\n")
        self._stream.flush()

    def note(self, **data):
        self.write("note", data)

    @contextlib.contextmanager
    def during(self, phase):
        """Begin and end of a phase; yields a dict for what is measured."""
        self.phase = phase
        self._begun = time.monotonic()
        self.write("begin")
        found = {}
        try:
            yield found
        except BaseException as error:
            traceback.print_exc()
            sys.stderr.flush()
            data = dict(found)
            text = "".join(traceback.format_exception_only(type(error), error)).strip()
            data["error"] = text[-2000:]
            if isinstance(error, CheckFailed):
                data.update(error.data)
                data["condition"] = error.condition
                data["error"] = str(error)
            self.write("fail", data, time.monotonic() - self._begun)
            raise
        self.write("ok", found, time.monotonic() - self._begun)


def take_output(folder, rank):
    """Sends everything that this process prints, C++ code included, into a file of its own."""
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
        return stacks
    return None


def follow_parent(folder, patience):
    """Ends this process when the parent no longer touches its file: nobody would end it else."""

    def watch():
        path = os.path.join(folder, "alive")
        seen, since = None, time.monotonic()
        while True:
            time.sleep(1.0)
            try:
                now = os.stat(path).st_mtime
            except OSError:
                now = seen
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()
