"""Who has the terminal: the shell, dsdoctor or the job; Ctrl-Z, `fg`, `bg` and `&`.

A shell stops process groups and moves them to the foreground or background. The job is in its own
group (with a pseudo-terminal in its own session), so dsdoctor repeats for the job what the shell
does to dsdoctor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from dsdoctor import process
from dsdoctor.run.relay import Relay
from dsdoctor.run.terminal import Terminal, is_foreground


def take_foreground(group: int) -> None:
    """Makes us the terminal's foreground group again if the given group is in the foreground.

    No other group is replaced: after `&` the shell is in the foreground, and it ends if it is not.
    """
    with contextlib.suppress(OSError):
        if os.isatty(0) and os.tcgetpgrp(0) == group:
            os.tcsetpgrp(0, os.getpgrp())


class JobControl:
    """Stops and continues together with the job.

    Attributes:
        resumed: when the job last continued after a stop, seconds since the epoch; 0 = never.
    """

    def __init__(
        self,
        job: process.Attached,
        terminal: Terminal | None,
        relay: Relay,
        interrupted: Callable[[int], None],
    ) -> None:
        self.resumed = 0.0
        self._interrupted = interrupted
        self._job, self._terminal, self._relay = job, terminal, relay
        self._asked = False

    def begin(self) -> None:
        """Called after the start of the job."""
        if self._terminal is not None:
            self._terminal.begin()
            self._relay.add(self._terminal.outer, 1)
        self._hand_over_terminal()

    def _typed(self, keys: bytes) -> None:
        if self._terminal is None:
            return
        if self._terminal.suspends(keys, self._job.pid):
            self._asked = True
        for number in self._terminal.interrupts(keys):
            self._interrupted(number)

    def look(self) -> None:
        """Stops if the job was stopped from the terminal; returns when the job continues."""
        number = self._job.stopped_by()
        if self._asked:
            self._asked = False
            self._job.signal_group(signal.SIGSTOP)
            self._suspend(signal.SIGTSTP)
        elif number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU) and self._terminal is None:
            self._suspend(number)
        else:
            self._hand_over_terminal()  # a shell moves us to the foreground without a signal

    def _suspend(self, number: int) -> None:
        if self._terminal is not None:
            self._terminal.release()
            self._relay.forget(0)
        take_foreground(self._job.pid)
        on_continue = signal.signal(signal.SIGCONT, lambda *_: None)
        before = signal.signal(number, signal.SIG_DFL)
        # our group, as the terminal would have done: the rest of the pipeline stops too. If no
        # shell could continue it, the kernel stops nothing, and everything continues at once.
        os.kill(0, number)
        signal.signal(number, before)
        signal.signal(signal.SIGCONT, on_continue)
        self._hand_over_terminal()
        self._job.signal_group(signal.SIGCONT)
        self.resumed = time.time()

    def _hand_over_terminal(self) -> None:
        """In the foreground, keys go to the job; in the background, they go to the shell."""
        in_front = is_foreground()
        if self._terminal is None:
            if in_front:
                with contextlib.suppress(OSError):
                    os.tcsetpgrp(0, self._job.pid)
        elif in_front and not self._terminal.held and self._terminal.hold():
            self._terminal.resize()
            self._relay.add_input(0, self._terminal.outer, self._typed)
