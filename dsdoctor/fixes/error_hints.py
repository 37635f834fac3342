"""What a package manager's error means: one line with what to do."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

from dsdoctor.process import Result
from dsdoctor.safe_path import UnsafePathError

#: Text in the output of a program, and its meaning; the first that is found counts.
MEANINGS: tuple[tuple[str, str], ...] = (
    (
        r"No space left on device|ENOSPC|not enough (?:free )?space|Not enough disk space",
        "the disk is full; free some space, then run this fix again",
    ),
    (
        r"Disk quota exceeded",
        "the disk quota is used up; free some space, then run this fix again",
    ),
    (
        r"(?i)a password is required|sudo: .*not allowed|not in the sudoers",
        "`sudo` needs a password here; run this fix as root",
    ),
    (
        (
            r"(?i)permission denied|EnvironmentNotWritableError|are you root|requires? superuser"
            r"|NotWritable|must be root"
        ),
        "this user may not write there; choose an environment of your own, or ask its owner",
    ),
    (
        r"(?i)could not get lock|is another process using it|waiting for cache lock",
        "another package manager is running; wait until it has finished",
    ),
    (
        (
            r"(?i)UnsatisfiableError|LibMambaUnsatisfiable|ResolutionImpossible|nothing provides"
            r"|Could not solve|Cannot solve|package conflicts|unmet dependencies|failed to solve"
        ),
        "the solver found no compatible set of packages; nothing was installed",
    ),
    (
        (
            r"(?i)PackagesNotFoundError|No matching distribution|Unable to locate package"
            r"|No match for argument|No candidates were found|were not found"
        ),
        "the channel or index does not have this package in this version",
    ),
    (
        (
            r"(?i)CondaHTTPError|Connection(?:Error| refused| reset| broken)|Temporary failure|"
            r"Could not resolve|Max retries|Name or service not known|Network is unreachable|"
            r"timed out"
        ),
        "the channel or index does not answer; check the network and the proxy variables",
    ),
    (
        r"(?i)externally-managed-environment",
        "this Python is managed by the system; use a virtual environment",
    ),
)


def meaning(text: str) -> str:
    """What an output means, "" if not known.

    >>> meaning("E: Unable to locate package cuda-toolkit-99-9")
    'the channel or index does not have this package in this version'
    """
    for pattern, words in MEANINGS:
        if re.search(pattern, text):
            return words
    return ""


def _error_text(result: Result) -> str:
    """The most informative line of an output."""
    text = (result.stderr + b"\n" + result.stdout).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"(?i)\berror\b|fatal|cannot find|Exception:|No space left", line):
            return line[:300]
    return lines[-1][:300] if lines else ""


def of_result(result: Result, timeout: float) -> str:
    """Why a program failed, and what to do."""
    name = os.path.basename(result.argv[0])  # noqa: PTH119
    if result.timed_out:
        return f"`{name}` did not finish within {timeout:g} s and was stopped; see the log"
    text = (result.stdout + result.stderr).decode("utf-8", "replace")
    known = meaning(text)
    if result.returncode is not None and result.returncode < 0:
        return f"`{name}` was ended by signal {-result.returncode}"
    words = f"`{name}` ended with status {result.returncode}"
    said = _error_text(result)
    return words + (f": {known}" if known else "") + (f" (it said: {said})" if said else "")


def of_fetch(url: str, result: Result, timeout: float) -> str:
    """Why an archive could not be fetched."""
    if result.timed_out:
        return (
            f"`{url}` could not be fetched within {timeout:g} s; check the network, then "
            "run this again"
        )
    return result.error_text or f"`{url}` could not be fetched (status {result.returncode})"


def of_os_error(error: OSError) -> str:
    """Why a file could not be written."""
    where = f"`{error.filename}`" if error.filename else "a file"
    if error.errno == errno.ENOSPC:
        return f"the disk is full at {where}; free some space, then run this fix again"
    if isinstance(error, UnsafePathError):
        return (
            f"{error.strerror}, and root does not write there; pass `--as-user ACCOUNT` to carry "
            "out the fix as that account"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{where} may not be written by this user ({error.strerror}); ask its owner"
    return f"{where}: {error.strerror or error}"


def no_room(folder: str, needed: int) -> str:
    """The error if a file system has less space than a step needs; "" if it has enough."""
    place = Path(folder)
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    if free >= needed:
        return ""
    return (
        f"`{place}` has {free / 2**30:.1f} GiB free, but this needs {needed / 2**30:.1f} GiB; "
        "free some space, then run this fix again"
    )
