"""What a command hands to the queue of PBS, Grid Engine, LSF or OAR; Slurm's is in `batch`.

Sources: qsub(1B) of PBS Professional 13 to 2025.2, OpenPBS 23.06 and Torque 6.1, qsub(1) of Grid
Engine 8.1 and 2025.1, bsub(1) of LSF 9.1 to 10.1, oarsub(1) of OAR 2.5; read 2026-11-30.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from dsdoctor.probes.command_wrappers import unwrap

#: Options that take no value; those of qsub are PBS's and Grid Engine's.
_SWITCHES = {
    "qsub": frozenset(
        {"-f", "-h", "-I", "-V", "-X", "-z", "-x", "-cwd", "-clear", "-hard", "-soft", "-notify",
         "-nostdin", "-terse", "-verify"}
    ),
    "bsub": frozenset(
        {"-B", "-H", "-I", "-Ip", "-Is", "-IS", "-ISp", "-ISs", "-IX", "-K", "-N", "-Ne", "-r",
         "-rn", "-ul", "-x", "-XF"}
    ),
    "oarsub": frozenset({"-I", "-V", "-v", "-X", "-S", "--interactive", "--scanscript", "-k"}),
}  # fmt: skip
#: Options of Grid Engine whose names are words; after one letter, the rest of a word is its value.
_NAMES = frozenset(
    {"-ac", "-ar", "-binding", "-ckpt", "-dc", "-dl", "-hold_jid", "-hold_jid_ad", "-jc", "-js",
     "-jsv", "-masterl", "-masterq", "-mods", "-now", "-ot", "-par", "-pe", "-pty", "-rsv", "-sc",
     "-shell", "-sync", "-tc", "-umask", "-wd"}
)  # fmt: skip
#: Options of Grid Engine with two values: the name of a parallel environment, and its slots.
_TWO = frozenset({"-pe"})
#: `bsub < job.lsf`, as a shell is to run it.
_READ_FROM = re.compile(r"\s*(?:\S*/)?(?:bsub|qsub)\b[^|;&<>]*<\s*(?P<file>[\w./~+-]+)\s*")


def submitted(words: Sequence[str]) -> tuple[str, ...]:
    """The command that a queue will run; the words as they are if they submit none.

    >>> submitted(["qsub", "-l", "select=2:ngpus=4", "job.pbs"])
    ('sh', 'job.pbs')
    >>> submitted(["qsub", "-l", "ngpus=4", "--", "/opt/bin/torchrun", "t.py"])
    ('/opt/bin/torchrun', 't.py')
    >>> submitted(["bsub", "-n", "8", "-gpu", "num=4", "torchrun t.py > log"])
    ('sh', '-c', 'torchrun t.py > log')
    >>> submitted(["sh", "-c", "bsub -n 8 < job.lsf"]), submitted(["bsub", "-n", "8"])
    (('sh', 'job.lsf'), ('bsub', '-n', '8'))
    """
    given = tuple(words)
    if given[:2] == ("sh", "-c") and len(given) == 3:  # noqa: PLR2004
        read = _READ_FROM.fullmatch(given[2])
        return ("sh", read["file"]) if read else given
    rest, _ = unwrap(list(given))
    name = posixpath.basename(rest[0]) if rest else ""
    if name not in _SWITCHES:
        return given
    options, command = _split(rest[1:], name)
    if not command:
        return given
    as_command = "--" in options or options.get("-b", "").startswith("y")
    if (name == "qsub" and not as_command) or ("-S" in options and name == "oarsub"):
        return ("sh", *command)
    return ("sh", "-c", command[0]) if len(command) == 1 and " " in command[0] else command


def _split(words: Sequence[str], program: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Options, and the words after them; a `--` is an option, too."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        options[word] = ""
        if word == "--":
            break
        joined = len(word) > 2 and word[1] != "-"  # noqa: PLR2004
        joined = joined and (word not in _NAMES if program == "qsub" else word[-1].isdecimal())
        if word in _SWITCHES[program] or joined or "=" in word:  # `-koe`, `-n4`
            continue
        options[word] = rest.pop(0) if rest else ""
        if word in _TWO and rest:
            rest.pop(0)
    return options, tuple(rest)
