"""Reads the options of a launcher, as its own parser does, and finds the command after them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.probes.command_tables import (
    APRUN_SWITCHES,
    FLUX_SHORT,
    FLUX_SWITCHES,
    HOROVOD_SWITCHES,
    JSRUN_SHORT,
    JSRUN_SWITCHES,
    LONG,
    MPI_SWITCHES,
    MPI_TWO,
    SBATCH_SHORT,
    SBATCH_SWITCHES,
    SHORT,
    SRUN_SHORT,
    SRUN_SWITCHES,
    STARTED_BY,
    SWITCHES,
)

#: Short options that take a value, and long ones that take none: of programs in whose options a
#: single `-` begins letters ...
_BY_LETTER = {
    "srun": (SRUN_SHORT, SRUN_SWITCHES),
    "sbatch": (SBATCH_SHORT, SBATCH_SWITCHES),
    "flux": (FLUX_SHORT, FLUX_SWITCHES),
    "jsrun": (JSRUN_SHORT, JSRUN_SWITCHES),
}
#: ... and of those in whose options it may begin a whole name.
_BY_NAME = {
    "mpirun": MPI_SWITCHES,
    "aprun": APRUN_SWITCHES,
    "horovodrun": HOROVOD_SWITCHES,
}
#: Options that set variables for what is started: mpirun(1) of Open MPI, Hydra and PALS, srun(1),
#: flux-run(1), jsrun(1), aprun(1).
_SETTING = {
    "mpirun": frozenset({"x", "genv", "env"}),
    "srun": frozenset({"export"}),
    "flux": frozenset({"env"}),
    "jsrun": frozenset({"E", "env"}),
    "aprun": frozenset({"e"}),
}
#: Of those, the ones whose name and value may be two words (MPICH's Hydra 1.2 to 4.3, mpiexec
#: arguments in args.c).
_NAME_AND_VALUE = frozenset({"genv", "env"})
#: A short option with its number, as in `-n4`.
_COUNTED = re.compile(r"-([A-Za-z])([0-9]+)")
#: What speaks for Composer's launcher, not PHP's package manager of the same name.
_OF_COMPOSER = frozenset({"-n", "--nproc", "-m", "--module_mode", "-c", "--command_mode"})


def _full_name(launcher: str, name: str) -> str:
    name = name.replace("-", "_")
    known = LONG.get(launcher, [])
    if name in known:
        return name
    begun = [long for long in known if long.startswith(name)]
    return begun[0] if len(begun) == 1 else name


def launcher_options(launcher: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The launcher's options, and the words after them."""
    found: dict[str, str] = {}
    switches = SWITCHES[launcher]
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = _full_name(launcher, name)
        else:
            name, equals, value = word[1:2], word[2:3], word[2:].removeprefix("=")
            name = SHORT[launcher].get(name, name)
        if not equals and name not in switches:
            value = words.pop(0) if words else ""
        found[name] = value
    return found, words


def among_arguments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options of `colossalai run`, and the other words: click looks for them everywhere.

    >>> among_arguments(["t.py", "--lr", "1", "--nproc_per_node=4"])
    ({'nproc_per_node': '4'}, ['t.py', '--lr', '1'])
    >>> among_arguments(["-m", "jobs.sft", "--lr", "1"])
    ({'m': 'jobs.sft'}, ['--lr', '1'])
    """
    found: dict[str, str] = {}
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        long = word.startswith("--") or name == "host"  # `-host` is one of its spellings
        name = name if long else SHORT["colossalai"].get(name, name)
        if word == "--":
            kept += rest
            break
        if not word.startswith("-") or not (
            name in LONG["colossalai"] if long else name in ("m", "host")
        ):
            kept.append(word)
            continue
        found[name] = value if equals or not rest else rest.pop(0)
    return found, kept


def after_starter(
    launcher: str, words: list[str], env: dict[str, str] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Options of srun, sbatch, mpirun and their like, and the program that they start.

    Args:
        launcher: the program before the words.
        words: the words.
        env: gets the variables that the options set for the program.

    >>> variables = {}
    >>> words = ["-x", "A=1", "-x", "PATH", "-genv", "B", "2", "-np", "4", "t"]
    >>> after_starter("mpirun", words, variables)[1], variables
    (['t'], {'A': '1', 'B': '2'})
    """
    found: dict[str, str] = {}
    setting = _SETTING.get(launcher, frozenset())
    by_letter = _BY_LETTER.get(launcher)
    short, switches = by_letter or (frozenset(), _BY_NAME.get(launcher, MPI_SWITCHES))
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":  # of getopt and argparse; mpirun takes it, too
            break
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if by_letter and not word.startswith("--"):
            name, value = word[1:2], word[2:]
            takes = name in short and not value
        elif counted := _COUNTED.fullmatch(word):
            name, value, takes = counted[1], counted[2], False
        else:
            takes = not equals and name not in switches
        if takes and words:
            value = words.pop(0)
            # Hydra takes `-genv A=1` as well as `-genv A 1`
            two = name in MPI_TWO or (name in _NAME_AND_VALUE and "=" not in value)
            if two and words and not word.startswith("--env"):
                value += f"{'=' if name in _NAME_AND_VALUE else ' '}{words.pop(0)}"
        found[name] = value
        if env is not None and name in setting:
            for one in value.split(",") if name == "export" else [value]:
                key, equals, text = one.partition("=")
                env |= {key: text} if equals else {}
    return found, words


def launches_at(name: str, rest: Sequence[str]) -> int | None:
    """Where the options of a launcher begin after its name; None if it launches nothing.

    >>> launches_at("accelerate", ["launch", "t.py"]), launches_at("accelerate", ["config"])
    (1, None)
    >>> launches_at("composer", ["install"]), launches_at("composer", ["-n", "8", "t.py"])
    (None, 0)
    """
    if name == "composer":
        own = any(word in _OF_COMPOSER or word.endswith(".py") for word in rest)
        return 0 if own else None
    begun = STARTED_BY.get(name, ((),))
    return next((len(one) for one in begun if tuple(rest[: len(one)]) == one), None)
