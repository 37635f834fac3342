"""Why it is not known what a command starts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from dsdoctor.probes.command_line import is_filled_in, parse_command, started
from dsdoctor.probes.command_tables import CARRIERS, RUNNERS, STARTERS, TRAINERS, UNFOLLOWED
from dsdoctor.probes.command_wrappers import unwrap
from dsdoctor.probes.shell_programs import starts_nothing

_PYTHON = re.compile(r"python[\d.]*")
#: Programs other than make whose files say what they run.
_BY_RECIPE = frozenset(
    {"just", "task", "snakemake", "nextflow", "dvc", "tox", "nox", "invoke", "npm"}
)
#: Programs whose `compose up` starts services.
_COMPOSES = frozenset({"docker", "nerdctl", "podman"})


def unknown(words: Sequence[str]) -> str:
    """Why it is not known what a command starts; "" if it is.

    >>> unknown(["A=1", "just", "train"]), unknown(["tune", "run", "lora"])
    ('`just` runs what its file says', '`tune` is no launcher that is known here')
    >>> unknown(["torchrun", "t.py"]), unknown(["docker", "run", "image"])
    ('', '')
    >>> unknown(["srun", "-N", "2", "./solve"])
    '`solve` is no launcher that is known here'
    >>> unknown(["torchrun", "$ARGS", "t.py"])
    '`$ARGS` is a variable that only a shell fills in'
    """
    rest, _ = unwrap(list(words))
    name = posixpath.basename(rest[0]) if rest else ""
    if name in _BY_RECIPE:
        return f"`{name}` runs what its file says"
    if _starts_services(name, rest):
        return f"`{name}` starts what its Compose file describes, which `dsdoctor lint` checks"
    known = {*TRAINERS, *CARRIERS, *RUNNERS, *(program for program, *_ in UNFOLLOWED)}
    if not name or name in known or starts_nothing(name):
        return ""
    command = parse_command(words)
    if is_filled_in(command.script or name):
        return f"`{command.script or name}` is a variable that only a shell fills in"
    if command.launcher in STARTERS and command.inner is None and command.script is None:
        name = _started_by(words)
        return "" if not name or name in known or starts_nothing(name) else _not_known(name)
    return "" if command.launcher != "other" else _not_known(name)


def _not_known(name: str) -> str:
    return f"`{name}` is no launcher that is known here"


def _started_by(words: Sequence[str]) -> str:
    """The name of the program that `srun` or its like starts; "" if it is Python."""
    own = started(words)
    name = posixpath.basename(own[0]) if own else ""
    return "" if _PYTHON.fullmatch(name) else name


def _starts_services(name: str, words: Sequence[str]) -> bool:
    """Whether a command starts the services of a Compose file, all or some."""
    verbs = words[words.index("compose") + 1 :] if "compose" in words[1:3] else words[1:]
    composes = name.endswith("-compose") or (name in _COMPOSES and "compose" in words[1:3])
    return composes and "up" in verbs
