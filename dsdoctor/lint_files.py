"""Finds the files that `lint` judges."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path

from dsdoctor.errors import UsageError

#: Folders without the configuration of a job.
SKIPPED = frozenset(
    {".git", ".hg", "node_modules", "__pycache__", ".venv", "venv", "site-packages", "wandb"}
)


def find_files(paths: Sequence[str]) -> list[tuple[Path, str, bool]]:
    """Files to lint: path, name to show, and whether the user passed that path.

    Raises:
        UsageError: a path is empty.
    """
    found: list[tuple[Path, str, bool]] = []
    for text in paths:
        if not text:
            raise UsageError("a path is empty; expected a file or a directory to lint")
        path = Path(text)
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.is_file())
            found += [
                (one, posixpath.join(text, one.relative_to(path).as_posix()), False)
                for one in inside
                if not SKIPPED.intersection(one.relative_to(path).parts[:-1])
            ]
        else:
            found.append((path, text, True))
    return found
