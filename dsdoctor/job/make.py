"""Follows `make TARGET` to the recipes of its Makefile."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.probes.command_wrappers import unwrap
from dsdoctor.probes.makefiles import NAMES, arguments, shell_text

_MAKE = frozenset({"make", "gmake"})


def make_at(words: Sequence[str]) -> int | None:
    """Position of `make` in a command; None if the command does not start it."""
    rest, _ = unwrap(list(words))
    place = len(words) - len(rest)
    found = rest and posixpath.basename(rest[0]) in _MAKE and [*words[place:]] == rest
    return place if found else None


def recipes(words: Sequence[str], host: Host, cwd: str) -> tuple[str, str, str, str]:
    """What make runs as the text of a script, its name, why it is not known, and the folder."""
    call = arguments(words)
    folder = posixpath.normpath(posixpath.join(cwd, call.folder))
    names = (call.file,) if call.file else NAMES
    paths = {name: posixpath.normpath(posixpath.join(folder, name)) for name in names}
    name = next((name for name, path in paths.items() if exists(host, path)), "")
    if not name:
        return "", "", f"`make` finds no file `{names[-1]}` in `{folder}`", folder
    try:
        text = read_text(host, paths[name])
    except HostError as error:
        return "", "", error.missing.detail, folder

    def is_there(path: str) -> bool:
        return exists(host, posixpath.normpath(posixpath.join(folder, path)))

    script, reason = shell_text(text, call, host.env, is_there)
    reason = reason and f"`{name}` is not followed, because {reason}"
    return script, f"`{name}`", reason, folder
