"""How to add an optional package to the environment that dsdoctor runs in."""

from __future__ import annotations

import importlib.machinery
import os
import shlex
import sys
from pathlib import Path

#: The package of each extra that a command may lack (`pyproject.toml`).
PACKAGES = {"fleet": "ClusterShell", "html": "jinja2", "zstd": "zstandard"}


def command_for(
    extra: str, *, prefix: str | None = None, python: str | None = None, pip: bool | None = None
) -> str:
    """The command that adds the package of an extra.

    `pip install` in the user's shell reaches dsdoctor only if its environment is active, which it
    is not after `pipx install` and `uv tool install`.

    Args:
        extra: name of the extra.
        prefix: folder of the environment; None = the running one.
        python: its interpreter; None = the running one.
        pip: whether pip is installed there; None = in the running one.

    >>> command_for("html", prefix="/opt/venv", python="/opt/venv/bin/python", pip=True)
    '/opt/venv/bin/python -m pip install jinja2'
    >>> command_for("html", prefix="/opt/venv", python="/opt/venv/bin/python", pip=False)
    'uv pip install --python /opt/venv/bin/python jinja2'
    >>> command_for("html", prefix="/home/me/.cache/uv/archive-v0/x1", python="/x", pip=False)
    "uvx --from 'dsdoctor[html]' dsdoctor"
    """
    prefix = prefix or sys.prefix
    package = PACKAGES[extra]
    whole = shlex.quote(f"dsdoctor[{extra}]")
    if Path(prefix, "pipx_metadata.json").is_file():
        return f"pipx inject dsdoctor {package}"
    if Path(prefix, "uv-receipt.toml").is_file():
        return f"uv tool install --with {package} dsdoctor"
    if f"{os.sep}archive-v" in prefix:  # where `uvx` keeps environments
        return f"uvx --from {whole} dsdoctor"
    quoted = shlex.quote(python or sys.executable or "python")
    if pip is None:
        # not with the finders that setuptools adds, which warn
        pip = importlib.machinery.PathFinder.find_spec("pip") is not None
    way = f"{quoted} -m pip install" if pip else f"uv pip install --python {quoted}"
    return f"{way} {package}"
