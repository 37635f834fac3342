"""What holds for the whole suite."""

from __future__ import annotations

import signal

# A shell that starts the suite in the background has Ctrl-C ignored, and programs inherit that:
# the tests that send one would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
