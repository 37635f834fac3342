"""Commands of hints: where they have to run, and what is known of their arguments."""

from __future__ import annotations

import shlex

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


def recommend(given: str) -> str:
    """The command that looks for settings which fit, with the model of this run if it is known.

    >>> recommend("my models/llama"), recommend("")
    ("dsdoctor recommend --model 'my models/llama'", 'dsdoctor recommend --model MODEL')
    """
    shown = given if given.isprintable() and "`" not in given else ""
    return f"dsdoctor recommend --model {shlex.quote(shown) if shown else 'MODEL'}"


def this_container(kind: str | None) -> str:
    """The container that is examined, in words.

    >>> this_container("docker"), this_container("container")
    ('this Docker container', 'this container')
    """
    return (
        "this container"
        if kind in (None, "container")
        else f"this {(kind or '').title()} container"
    )
