"""The Slurm job that a command submits."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.probes.command_line import after_sbatch, batch_options


class Submitted(NamedTuple):
    """What a command submits.

    Attributes:
        options: what the job asks for, as in `RunNeeds.batch`; empty = it submits none.
        refused: why sbatch refuses the script, as in `RunNeeds.batch_refused`.
        folder: folder of the job's output that does not exist; "" = it does, or is not known.
    """

    options: dict[str, str]
    refused: str = ""
    folder: str = ""


def batch_of(words: Sequence[str], host: Host, cwd: str) -> Submitted:
    """What the Slurm job asks for that a command submits, and whether it can be started."""
    if len(words) == 1 and " " in words[0]:
        try:
            words = shlex.split(words[0])
        except ValueError:
            return Submitted({})
    place = next((n for n, word in enumerate(words[:12]) if _is_sbatch(word)), None)
    if place is None:
        return Submitted({})
    wrapped, script = after_sbatch(words[place + 1 :])
    text = None
    if script and not wrapped:
        try:
            text = read_text(host, posixpath.normpath(posixpath.join(cwd, script[0])))
        except (HostError, UnicodeDecodeError):
            text = None
    options = batch_options(text or "", words[place + 1 :])
    refused = "" if text is None or place else _refused(text)
    return Submitted(options, refused, "" if place else _folder(options, host, cwd))


def _refused(text: str) -> str:
    """Why sbatch refuses a script (Slurm 22.05 src/sbatch/sbatch.c, `get_script_buffer`)."""
    if text and not text.startswith("#!"):
        return "no interpreter"
    return "line breaks" if "\r\n" in text else ""


def _folder(options: Mapping[str, str], host: Host, cwd: str) -> str:
    """The folder in which Slurm should write the output and cannot: it makes none."""
    start = posixpath.join(cwd, options.get("chdir", ""))
    for name in ("output", "error"):
        folder = posixpath.dirname(options.get(name, ""))
        if not folder or set(folder) & set("%$`\\"):
            continue
        try:
            host.stat(posixpath.normpath(posixpath.join(start, folder)))
        except HostError as error:
            if error.missing.why is Why.ABSENT:
                return folder
    return ""


def _is_sbatch(word: str) -> bool:
    return posixpath.basename(word) == "sbatch"
