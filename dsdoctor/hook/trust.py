"""Whether root may run an interpreter: only root may control it, its packages and their folders.

An account that can write to what root's prolog starts can become root on every node. The script of
`hook install` makes the same test before it starts the interpreter. Standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from dsdoctor.safe_path import trusted_accounts, why_untrusted

_PATTERNS = (
    "lib*/python3*/site-packages",
    "lib*/python3*/lib-dynload",
    "lib*/python3/dist-packages",
)


def why_not(python: str, owners: tuple[int, ...] = (), *, as_root: bool = False) -> str:
    """Why root must not run an interpreter; empty if it may. Nothing is run.

    Args:
        python: its path.
        owners: accounts that an administrator trusts besides root (`--trust-owner`).
        as_root: judge for root, whichever account this process has.
    """
    if not os.path.lexists(python):
        return f"`{python}` does not exist"
    folders = [
        folder
        for start in (python, os.path.realpath(python))
        for pattern in _PATTERNS
        for folder in Path(start).parent.parent.glob(pattern)
    ]
    inside = [entry.path for folder in folders for entry in os.scandir(folder)]
    return _first((python, *folders, *inside), owners, as_root=as_root)


def why_not_this(owners: tuple[int, ...] = ()) -> str:
    """The same for the running interpreter, judged by the folders from which it imports."""
    existing = (path for path in sys.path if path and os.path.lexists(path))
    package = Path(__file__).parent.parent
    return _first((sys.executable, *existing, package), owners)


def _first(paths: Iterable[str | Path], owners: tuple[int, ...], *, as_root: bool = False) -> str:
    trusted = trusted_accounts(owners)
    if as_root:
        trusted -= {os.geteuid()} - {0, *owners}
    return next((why for path in paths if (why := why_untrusted(path, trusted))), "")
