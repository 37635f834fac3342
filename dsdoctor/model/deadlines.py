"""Deadlines that several layers share."""

from __future__ import annotations

#: Seconds that a whole examination may take; the limits of single probes scale with it.
TOTAL_SECONDS = 180.0
