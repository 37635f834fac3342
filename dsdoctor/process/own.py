"""Runs modules of dsdoctor as children, without the working folder on their path."""

from __future__ import annotations

import sys
from pathlib import Path

#: `python -m` and `python -c` search the working folder first, which may contain a `re.py` of a
#: project or another account; `-I` would hide the user's own packages too. `sys` is built in.
_START = (
    "import sys; sys.path[:1] == [''] and sys.path.pop(0); sys.path.append(sys.argv.pop(1)); "
    "from runpy import run_module; run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_HOME = Path(__file__).absolute().parent.parent.parent


def own_module(name: str) -> list[str]:
    """The beginning of a command that runs a module of dsdoctor; append its arguments.

    >>> own_module("dsdoctor")[-1]
    'dsdoctor'
    """
    return [sys.executable, "-c", _START, str(_HOME), name]
