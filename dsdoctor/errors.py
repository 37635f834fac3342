"""Errors that a user can cause."""

from __future__ import annotations

#: For every command, which would otherwise say only "No such file or directory".
FOLDER_GONE = "the working folder has been removed; change to one that exists"
#: Exit status after a `UsageError`.
MISUSE = 2


class UsageError(Exception):
    """One clear line: what is, what was expected, what to do. Exit status 2, no traceback."""


class NotMeasuredError(UsageError):
    """A model could not be run on shapes; the text says why."""
