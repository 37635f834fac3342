"""Files that a script itself uses wrongly."""

from __future__ import annotations

from dsdoctor.logs.errors import Error
from dsdoctor.logs.products import package_of


def closed_itself(error: Error) -> bool:
    """Whether the script itself read or wrote a file that is not open, as `input()` does.

    The kernel returns EBADF for nothing else; a job without a terminal may have no stdin.
    """
    closed = error.type == "OSError" and error.message.startswith("[Errno 9] ")
    return closed and bool(error.frames) and not package_of(error.frames[-1].file)
