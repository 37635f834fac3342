"""What the check before the start may take; apart from the check, whose import is large."""

#: Mode to seconds; the time-outs of single reads scale with it.
SECONDS = {"quick": 20.0, "full": 180.0}
