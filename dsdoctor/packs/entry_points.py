"""Entry points of installed packages, read from their files.

Importing `importlib.metadata` takes 25 ms (it imports the e-mail parser), for every command. It is
used only if packages may be elsewhere than in folders.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from typing import NamedTuple


class EntryPoint(NamedTuple):
    """An entry point of a distribution.

    Attributes:
        name: its name.
        value: the module that it refers to.
        origin: name and version of the distribution.
    """

    name: str
    value: str
    origin: str


def entry_points(group: str) -> list[EntryPoint]:
    """Entry points of a group, in the order of `sys.path`; a distribution counts once."""
    if _has_other_finders():
        return _from_importlib(group)
    found: list[EntryPoint] = []
    seen: set[str] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208  # every command lists every folder
        except OSError:
            continue
        for name in sorted(name for name in names if name.endswith((".dist-info", ".egg-info"))):
            project = re.sub(r"[-_.]+", "-", name.split("-")[0]).lower()
            if project in seen:
                continue
            seen.add(project)
            path = os.path.join(folder or ".", name)  # noqa: PTH118
            text = _read(f"{path}/entry_points.txt")
            if f"[{group}]" in text:
                origin = _origin(path)
                found += [EntryPoint(*pair, origin) for pair in rows(text, group)]
    return found


def rows(text: str, group: str) -> list[tuple[str, str]]:
    r"""Names and values of one section.

    >>> rows("[console_scripts]\na = b:c\n[dsdoctor.packs]\nmine = my_checks\n", "dsdoctor.packs")
    [('mine', 'my_checks')]
    """
    found = []
    here = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            here = line.strip("[] ")
        elif here == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            found.append((name.strip(), value.partition("[")[0].strip()))
    return found


def _has_other_finders() -> bool:
    """Whether a third party's finder, or an archive on the path, may provide packages."""
    finders = [f for f in sys.meta_path if hasattr(f, "find_distributions")]
    return any(f is not PathFinder for f in finders) or any(
        os.path.isfile(place)  # noqa: PTH113
        for place in sys.path
    )


def _from_importlib(group: str) -> list[EntryPoint]:
    import importlib.metadata  # noqa: PLC0415  # see the docstring of this module

    return [
        EntryPoint(
            point.name,
            point.value,
            f"{point.dist.name} {point.dist.version}" if point.dist else "dsdoctor",
        )
        for point in importlib.metadata.entry_points(group=group)
    ]


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _origin(path: str) -> str:
    text = _read(f"{path}/METADATA") or _read(f"{path}/PKG-INFO")
    head = dict(line.split(": ", 1) for line in text.split("\n\n")[0].splitlines() if ": " in line)
    return f"{head.get('Name', 'unknown')} {head.get('Version', '')}".strip()
