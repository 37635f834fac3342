"""Where a command of a hint has to run."""

from __future__ import annotations

from dsdoctor.api import Missing, NotStated, OsInfo


def on_host(os: OsInfo | Missing) -> str:
    """Words for a command that a container cannot run; "" outside of one.

    >>> on_host(OsInfo(system="", release="", machine="", hostname="", container="docker"))
    ' on the host'
    """
    try:
        return " on the host" if isinstance(os, OsInfo) and os.container else ""
    except NotStated:  # a paste may not say so
        return ""
