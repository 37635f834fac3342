"""What ends our children when SIGKILL ends us."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from dsdoctor.process.marker import RUN_ID
from dsdoctor.process.sweep import KILL_SECONDS


class Guard:
    """Ends what this process has started if SIGKILL ends it: a helper that sees a pipe close.

    A launcher would otherwise go on without anybody to read its output, and its ranks with it.
    """

    def __init__(self, folder: Path) -> None:
        """Starts the helper, where there is `/proc`.

        Args:
            folder: is removed as well.
        """
        self._child: subprocess.Popen[bytes] | None = None
        if not sys.platform.startswith("linux"):
            return
        script = Path(__file__).parent.parent / "probes" / "children" / "guard.py"
        with contextlib.suppress(OSError):  # what it guards is more important than it is
            self._child = subprocess.Popen(
                [sys.executable, "-I", str(script), RUN_ID, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

    def end(self) -> None:
        """Ends the helper first: if it saw the pipe close, it would kill what is started next."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(KILL_SECONDS)
            if self._child.stdin is not None:
                self._child.stdin.close()
