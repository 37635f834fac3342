"""Exceptions that a program logs and goes on after, as a line below them says."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.hits import Scan

#: ComfyUI (2023-2025 nodes.py load_custom_node): a plugin that cannot be imported is left out.
LEFT_OUT = lazy(r"\bCannot import \S.{0,400} module for custom nodes: ")


def take_out_caught(scan: Scan) -> None:
    """Drops the exceptions below which the program says that it goes on without, and their hits."""
    caught = [one for one in scan.errors if one.traced and LEFT_OUT.search(one.more)]
    if not caught:
        return
    scan.errors = [one for one in scan.errors if one not in caught]
    scan.hits = [
        hit
        for hit in scan.hits
        if LEFT_OUT.search(hit.text) is None
        and not any(one.begun <= hit.line <= one.line for one in caught)
    ]
