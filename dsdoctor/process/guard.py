"""Ends the children of this process if SIGKILL ends it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from dsdoctor.process.marker import RUN_ID
from dsdoctor.process.sweep import KILL_SECONDS


class Guard:
    """A helper process that notices the end of this one by a closed pipe, and ends its children.

    Otherwise a launcher and its ranks would keep running with nothing to read their output.
    """

    def __init__(self, folder: Path) -> None:
        """Starts the helper, if the system has `/proc`.

        Args:
            folder: a folder that the helper removes as well.
        """
        self._child: subprocess.Popen[bytes] | None = None
        if not sys.platform.startswith("linux"):
            return
        script = Path(__file__).parent.parent / "probes" / "children" / "guard.py"
        with contextlib.suppress(OSError):  # the run continues without the helper
            self._child = subprocess.Popen(
                [sys.executable, "-I", str(script), RUN_ID, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

    def end(self) -> None:
        """Ends the helper before its pipe closes: it would end processes that are started later."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(KILL_SECONDS)
            if self._child.stdin is not None:
                self._child.stdin.close()
