"""Time limits of the preflight check, separate from the check, whose import is large."""

#: Mode to seconds; the timeouts of single reads scale with it.
SECONDS = {"quick": 20.0, "full": 180.0}
