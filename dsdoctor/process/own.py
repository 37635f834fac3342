"""Runs modules of dsdoctor as children, which import from the same folders as this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: `python -m` and `python -c` search the working folder first, which may contain a `re.py` of a
#: project or another account; `-I` would hide the user's own packages too. `sys` is built in.
_START = (
    "import sys; left = sys.argv.pop(1).split('\\n'); "
    "sys.path[:] = [path for path in sys.path if path not in left]; "
    "sys.path.append(sys.argv.pop(1)); "
    "from runpy import run_module; run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_HOME = Path(__file__).absolute().parent.parent.parent


def own_module(name: str) -> list[str]:
    """The beginning of a command that runs a module of dsdoctor; append its arguments.

    >>> own_module("dsdoctor")[-1]
    'dsdoctor'
    """
    return [sys.executable, "-c", _START, "\n".join(_left()), str(_HOME), name]


def _left() -> list[str]:
    """Folders that a child would search, and this process does not.

    They are the working folder, and for root those of other accounts (`dsdoctor.__main__`).
    """
    site = sys.modules.get("site")
    given = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), getattr(site, "USER_SITE", None)]
    paths = [path for name in given if name for path in (name, _absolute(name))]
    return ["", *(path for path in paths if path not in sys.path)]


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)  # noqa: PTH100  # as Python does with its path
    except OSError:  # the working folder was deleted
        return path
