"""Runs modules of dsdoctor as children, which import from the same folders as this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

#: `python -m` and `python -c` search the working folder first, which may contain a `re.py` of a
#: project or another account. `sys` is built in.
_START = (
    "import sys; left, first, last = (sys.argv.pop(1).split('\\n') for _ in range(3)); "
    "sys.path[:] = [*filter(None, first), *(p for p in sys.path if p not in left), *last]; "
    "from runpy import run_module; run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_HOME = Path(__file__).absolute().parent.parent.parent


def own_module(name: str) -> list[str]:
    """The beginning of a command that runs a module of dsdoctor; append its arguments.

    Root's children start isolated (`-I`): they would import `sitecustomize` from a kept
    `PYTHONPATH`, and run `.pth` files of a kept `HOME`, before their path could be cleaned.

    >>> own_module("dsdoctor")[-1]
    'dsdoctor'
    """
    site = sys.modules.get("site")
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    user = getattr(site, "USER_SITE", None)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        first = [path for path in _spellings(given) if path in sys.path]
        last = [path for path in _spellings([user]) if path in sys.path]
        return _argv("-I", left=[""], first=first, last=[*last, str(_HOME)], name=name)
    left = [path for path in _spellings([*given, user]) if path not in sys.path]
    return _argv(left=["", *left], first=[], last=[str(_HOME)], name=name)


def _argv(
    *options: str, left: list[str], first: list[str], last: list[str], name: str
) -> list[str]:
    paths = ("\n".join(each) for each in (left, first, last))
    return [sys.executable, *options, "-c", _START, *paths, name]


def _spellings(names: Iterable[str | None]) -> list[str]:
    """Each folder as it was given, and as Python writes it into its path."""
    return list(dict.fromkeys(p for name in names if name for p in (name, _absolute(name))))


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)  # noqa: PTH100  # as Python does with its path
    except OSError:  # the working folder was deleted
        return path
