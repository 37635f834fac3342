"""Conditions that an exception states without a message of a product: by its kind and its words.

They are looked up once an exception was chosen as the first failure and no condition covers it, so
they never compete with what a product says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.candidates import Candidate, Choice, when
from dsdoctor.logs.echoes import ASSERTED, LOADER_TERMINATED, signal_of
from dsdoctor.logs.echoes import TERMINATED as PADDLES
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.plain_errors import DEVICE_ASSERT
from dsdoctor.logs.products import INSTALLED, package_of
from dsdoctor.model.condition import Level, Signature
from dsdoctor.model.diagnosis import Outcome
from dsdoctor.model.observation import Observation

#: CPython (3.3-3.14) of ENOENT, and h5py (2.8-3.14 _hl/files.py), which quotes the file otherwise.
NO_PATH = lazy(
    r"^\[Errno 2\] (?:No such file or directory: |Unable to (?:synchronously )?open file "
    r"\(unable to open file: name = )(?P<quote>['\"])(?P<path>.{1,400}?)(?P=quote)"
    r"(?P<rest>.{0,300})$"
)
#: Sockets and files of other processes vanish when those end; a kernel's files are no data.
NOT_DATA = lazy(r"^/(?:dev|proc|sys|run)/|/(?:pymp-|torch_|ray/session|\.triton/|wandb-)|\.lock$")
#: Python (3.3-3.14): the missing file is the program that it should start, another process's
#: socket, or one that is removed or renamed: another rank was faster.
OTHERWISE = lazy(
    r"/subprocess\.py |/multiprocessing/|/shutil\.py _?rmtree"
    r"|/pathlib(?:/\w+)?\.py (?:unlink|rmdir|rename|replace)$"
)
#: A name without a folder and a suffix may be a program that was looked for on PATH.
PROGRAM = lazy(r"^[\w-]{1,40}$")
#: CPython of the script that it was called with (3.6-3.14 Modules/main.c), read as an exception.
CANNOT_OPEN = lazy(r"can't open file '(?P<path>[^']{1,400})': \[Errno 2\]")
#: Hydra (1.0-1.3 _internal/config_loader_impl.py): the file of the configuration.
NO_CONFIG = lazy(r"^Cannot find primary config '(?P<path>[^']{1,400})'")
#: CPython (3.6-3.14 Lib/importlib/_bootstrap.py) of a module that is in no package.
RELATIVE = lazy(r"^attempted relative import with no known parent package")
#: CPython (3.6-3.14) of a part of a package. Parts whose names begin with an underscore are
#: compiled, and were not built.
OWN_PART = lazy(r"^No module named '(?P<module>(?P<package>\w{1,60})(?:\.(?!_)\w{1,60}){1,8})'")
#: argparse (CPython 2.7-3.14), click (7-8), Fire (0.3-0.7) and Hydra (1.0-1.3), all read as
#: exceptions of PARSERS.
REFUSED = lazy(
    r"^(?:unrecognized arguments:|the following arguments are required: |argument \S"
    r"|No such option|Missing (?:option|argument)|Invalid value for|Got unexpected extra argument"
    r"|Could not consume arg: |Could not override '|Error parsing override ')"
)
PARSERS = frozenset({"SystemExit", "ConfigCompositionException"})
#: transformers (4.0-5.3 hf_argparser.py).
UNUSED = "Some specified arguments are not used by the HfArgumentParser: "


#: How a script says that it stops because of its loss, and what it raises for that.
STOPS = frozenset(
    {
        "ArithmeticError", "AssertionError", "Exception", "FloatingPointError", "RuntimeError",
        "ValueError",
    },
)  # fmt: skip
LOST = lazy(
    r"(?i)\b(?:nan|inf|infinite|non-?finite|not finite)\b.{0,40}\bloss(?:es)?\b"
    r"|\bloss(?:es)?\b.{0,40}\b(?:nan|inf|infinit[ey]|non-?finite|not finite)\b"
)


class Said(NamedTuple):
    """What an exception states: an observation, and how it is told."""

    observed: Observation
    level: Level
    message: str
    groups: dict[str, str]
    hint: str = ""


def own_condition(error: Error, outcome: Outcome) -> Said | None:
    """What an exception that no message covers states of a known condition; None if nothing.

    Args:
        error: the exception.
        outcome: what it is without: the script's own, or not recognized.
    """
    if error.type == "FileNotFoundError":
        return _of_a_path(error, outcome)
    if signal_of(error) == "SIGTERM" and not _of_a_child(error):
        return Said(
            Observation.LAUNCHER_GONE, Level.LIKELY,
            "SIGTERM from outside ended the launcher; the log does not show who sent it", {},
        )  # fmt: skip
    if error.type == "ModuleNotFoundError":
        return _of_a_package(error)
    if error.type == "ImportError" and RELATIVE.match(error.message):
        own = not error.frames or not package_of(error.frames[-1].file)
        return Said(
            Observation.RELATIVE_IMPORT, Level.STRONG,
            "A file that was started as a script, or a cell of a notebook, imports relatively", {},
        ) if own else None  # fmt: skip
    if error.type in PARSERS or error.message.startswith(UNUSED):
        if found := NO_CONFIG.search(error.message):
            return _missing(found)
        if REFUSED.search(error.message) or error.message.startswith(UNUSED):
            return Said(
                Observation.OPTION_REFUSED, Level.STRONG,
                "The script's parser rejects the command: {words}", {"words": error.message},
            )  # fmt: skip
    if outcome is Outcome.USER_CODE and error.type in STOPS and LOST.search(error.message):
        return Said(
            Observation.NOT_FINITE, Level.LIKELY, "The script stopped: {words}",
            {"words": error.message},
        )  # fmt: skip
    if outcome is Outcome.USER_CODE and _is_asserted(error):
        return Said(
            Observation.KERNEL_ASSERTED, Level.LIKELY,
            "An assertion in a CUDA kernel failed, mostly about an index that is out of range", {},
            "run the step on the CPU to see the line, and look for a token ID beyond the embedding"
            " or a label beyond the classes",
        )  # fmt: skip
    return None


def cause_of(
    error: Error,
    outcome: Outcome,
    observed: Mapping[Observation, Known],
    hint: str,
    later: Sequence[Error] = (),
) -> Choice | None:
    """The condition of an exception, as the only candidate; None if it states none.

    Args:
        error: the exception.
        outcome: what it is without.
        observed: the condition for each observation.
        hint: what else is known to help, "" for nothing.
        later: the exceptions that were raised while it was handled.
    """
    said = own_condition(error, outcome)
    if said is None and later and later[-1].type == "FileNotFoundError":
        # one reader after the other does not find the file, and only the last one says so
        error = later[-1]
        said = own_condition(error, outcome)
    known = observed.get(said.observed) if said is not None else None
    if said is None or known is None:
        return None
    signature = Signature(
        pattern="", examples=(), level=said.level, message=said.message, hint=hint or said.hint
    )
    hit = Hit(
        known._replace(signature=signature), error.source, error.line, error.text, error.rank,
        said.groups, error.when, undated=error.undated,
    )  # fmt: skip
    only = Candidate(
        hit.known, [hit], error, said.level, when(error, many=False), echo=False, masks=set()
    )
    return Choice([only], {})


def _of_a_path(error: Error, outcome: Outcome) -> Said | None:
    if found := CANNOT_OPEN.search(error.text):
        return Said(
            Observation.NO_SCRIPT, Level.STRONG, "The script `{path}` does not exist",
            {"path": found["path"]},
            "correct its path, or start it from the folder that contains it",
        )  # fmt: skip
    found = NO_PATH.search(error.message)
    if found is None:
        own = outcome is Outcome.USER_CODE and error.message
        return Said(
            Observation.NO_PATH, Level.STRONG, "A file that the script needs is missing: {words}",
            {"words": error.message},
        ) if own else None  # fmt: skip
    if " -> " in found["rest"] or NOT_DATA.search(found["path"]) or package_of(found["path"]):
        return None  # renamed by another rank, or not the user's
    if PROGRAM.match(found["path"]) or any(
        OTHERWISE.search(f"{frame.file} {frame.function}") for frame in error.frames[-3:]
    ):
        return None
    asked = outcome is Outcome.USER_CODE or any(not package_of(f.file) for f in error.frames)
    return _missing(found) if asked else None


def _of_a_package(error: Error) -> Said | None:
    """An installed package that does not find a module of its own; torch has its own conditions."""
    found = OWN_PART.search(error.message)
    importer = error.frames[-1].file if error.frames else ""
    installed = INSTALLED.search(importer)
    if found is None or installed is None or installed["package"] != found["package"]:
        return None
    if found["package"] in {"torch", "deepspeed"}:
        return None
    return Said(
        Observation.PACKAGE_INCOMPLETE, Level.LIKELY,
        "The installed package `{package}` lacks its own module `{module}`", found.groupdict(),
        "install it again with `--force-reinstall --no-deps`; if the module is still missing, that"
        " release was published without it: install another release",
    )  # fmt: skip


def _missing(found: re.Match[str]) -> Said:
    return Said(
        Observation.NO_PATH, Level.STRONG, "`{path}` does not exist", {"path": found["path"]}
    )


def _of_a_child(error: Error) -> bool:
    """Whether the signal ended another process than the launcher."""
    return LOADER_TERMINATED in error.message or PADDLES in error.message


def _is_asserted(error: Error) -> bool:
    """Whether a kernel stopped; what a CPU says of the same index names its line."""
    return error.type == DEVICE_ASSERT or ASSERTED in error.message
