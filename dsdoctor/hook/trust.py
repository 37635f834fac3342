"""Whether root may run an interpreter: only root may control it, its packages and their folders.

An account that can write to what root's prolog starts can become root on every node. The script of
`hook install` makes the same test before it starts the interpreter. Standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsdoctor.safe_path import trusted_accounts, why_untrusted

#: Folders with modules, below the prefix of an interpreter.
_MODULES = (
    "lib*/python3*/site-packages",
    "lib*/python3*/lib-dynload",
    "lib*/python3/dist-packages",
    "lib*/python3*",
)
#: Where the interpreter looks for `lib/python3x.zip`, and for a `pyvenv.cfg` that says where its
#: library is.
_LOOKED_INTO = ("lib*", "")
_CONFIG = "pyvenv.cfg"


def why_not(python: str, owners: tuple[int, ...] = (), *, as_root: bool = False) -> str:
    """Why root must not run an interpreter; empty if it may. Nothing is run.

    Args:
        python: its path.
        owners: accounts that an administrator trusts besides root (`--trust-owner`).
        as_root: judge for root, whichever account this process has.
    """
    if not os.path.lexists(python):
        return f"`{python}` does not exist"
    trusted = _trusted(owners, as_root=as_root)
    bins = [Path(start).parent for start in (python, os.path.realpath(python))]
    modules = list(_folders(bins, _MODULES))
    modules += _added(modules)
    folders = [*modules, *bins, *_folders(bins, _LOOKED_INTO)]
    files = [entry.path for folder in modules for entry in os.scandir(folder)]
    files += [path for folder in folders if os.path.lexists(path := f"{folder}/{_CONFIG}")]
    return _first((python, *files), trusted) or _first(folders, trusted, entries=True)


def _folders(bins: Iterable[Path], patterns: Iterable[str]) -> Iterator[Path]:
    for folder in bins:
        for pattern in patterns:
            found = folder.parent.glob(pattern) if pattern else [folder.parent]
            yield from (path for path in found if path.is_dir())


def _added(modules: Iterable[Path]) -> Iterator[Path]:
    """The folders that lines of `.pth` files add to the path of the interpreter."""
    for file in (path for folder in modules for path in folder.glob("*.pth") if path.is_file()):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            folder = file.parent / line.strip()
            if line.strip() and folder.is_dir():
                yield folder


def why_not_this(owners: tuple[int, ...] = ()) -> str:
    """The same for the running interpreter, judged by the folders from which it imports."""
    existing = [path for path in sys.path if path and os.path.lexists(path)]
    trusted = _trusted(owners)
    return _first((sys.executable, Path(__file__).parent.parent), trusted) or _first(
        existing, trusted, entries=True
    )


def _trusted(owners: tuple[int, ...], *, as_root: bool = False) -> frozenset[int]:
    trusted = trusted_accounts(owners)
    return trusted - ({os.geteuid()} - {0, *owners}) if as_root else trusted


def _first(paths: Iterable[str | Path], trusted: frozenset[int], *, entries: bool = False) -> str:
    return next(
        (why for path in paths if (why := why_untrusted(path, trusted, entries=entries))), ""
    )
