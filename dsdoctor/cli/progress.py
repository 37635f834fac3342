"""Shows on a terminal what dsdoctor waits for, after the first second."""

from __future__ import annotations

import threading
from types import TracebackType

WORDS = {
    "torch_facts": "starting torch",
    "patient_facts": "reading the environment",
    "nvml": "asking the driver",
    "nvidia_smi": "asking nvidia-smi",
}
#: Most probes on the line; more would wrap at 60 columns.
MOST_NAMED = 2


class Progress:
    """A status line on stderr.

    Attributes:
        enabled: stderr is a terminal, and output was not turned off.
    """

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def update(self, name: str, ended: bool) -> None:
        """Notes that a probe began or ended."""
        with self._lock:
            (self._running.discard if ended else self._running.add)(name)

    def __enter__(self) -> Progress:
        if self.enabled:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _text(self) -> str:
        """What is waited for, on one line of a narrow terminal."""
        with self._lock:
            # slow probes, which have a description, come first
            names = sorted(self._running, key=lambda name: (name not in WORDS, name))
        if not names:
            return "judging"
        words = ", ".join(WORDS.get(name, name.replace("_", " ")) for name in names[:MOST_NAMED])
        more = len(names) - MOST_NAMED
        return f"{words} and {more} more" if more > 0 else words

    def _show(self) -> None:
        if self._done.wait(1.0):
            return
        from rich.console import Console  # noqa: PLC0415  # most runs end before it is needed

        console = Console(stderr=True)
        with console.status("") as status:
            while not self._done.wait(0.2):
                status.update(self._text() + " …")
