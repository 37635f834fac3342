"""Several starts of a script in one log, as its tracebacks show them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.products import package_of, passes_on

#: A command of an installed package: torchrun, accelerate, deepspeed.
COMMAND = lazy(r"/bin/[\w-]+$")
#: What Python prints if it does not find the script (CPython 3.3-3.14 Modules/main.c).
NOT_FOUND = lazy(r"python[\w.]{0,12}: can't open file '?(?P<script>[^']{1,300}?)'?: \[Errno 2\]")
#: What ends a script before it has done anything: an option that it does not accept, or a file of
#: its own that Python cannot compile.
NOT_COMPILED = ("SyntaxError", "IndentationError", "TabError")
NEVER_RAN = ("SystemExit", *NOT_COMPILED)


def refused_start(error: Error, errors: Sequence[Error]) -> bool:
    """Whether a start failed before the script ran, and another followed.

    All ranks fail alike, so a script that came further afterwards was started again.
    """
    return error.type.endswith(NEVER_RAN) and any(
        later.source == error.source
        and later.line > error.line
        and later.traced
        and bool(later.frames)
        and not _of_a_package(later)
        and not _imports(later)
        and not later.type.endswith(NEVER_RAN)
        and (error.type == "SystemExit" or later.chain != error.chain)
        for later in errors
    )


def _of_a_package(error: Error) -> bool:
    """Whether an installed package was started, not a script; `runpy` starts both.

    pip installs the commands of a package as scripts without a suffix in `bin`.
    """
    begin = next((frame for frame in error.frames if not passes_on(frame)), error.frames[0])
    return bool(package_of(begin.file)) or COMMAND.search(begin.file) is not None


def of_other_scripts(one: Error, other: Error) -> bool:
    """Whether two exceptions come from different scripts, so neither handled the other."""
    entries = [error.frames[0] for error in (one, other) if error.frames]
    return (
        len(entries) == 2  # noqa: PLR2004  # of both
        and all(entry.function == "<module>" for entry in entries)
        and not any(package_of(entry.file) for entry in entries)
        and entries[0].file != entries[1].file
    )


def imported_anew(errors: Sequence[Error]) -> int:
    """The line at which a script was started again, 0 if it was not.

    An exception during the script's imports, after one that it raised when it had finished them,
    belongs to another start. Of several ranks, one may still be importing.
    """
    if line := _never_compiled(errors):
        return line
    if any(error.rank is not None for error in errors):
        return 0
    if line := _under_another_name(errors):
        return line
    if line := _above_the_steps(errors):
        return line
    begun = [error for error in errors if _imports(error)]
    if not begun:
        return 0
    last = begun[-1]
    ran = [e for e in errors if e.line < last.begun and _is_same_script_later(e, last)]
    return last.begun if ran and ran[-1].chain != last.chain else 0


def _under_another_name(errors: Sequence[Error]) -> int:
    """The line below which a script ran after Python had not found it under another name, else 0.

    Python ends there, and all ranks are started with the same name.
    """
    found = 0
    for earlier, later in itertools.pairwise(errors):
        if not earlier.traced and _is_statement(later) and not _of_a_package(later):
            missing = NOT_FOUND.search(earlier.text)
            if missing and _base(missing["script"]) != _base(later.frames[0].file):
                found = earlier.line + 1
    return found


def _base(path: str) -> str:
    """The name of a file without its folder."""
    return re.split(r"[\\/]", path)[-1]


def _above_the_steps(errors: Sequence[Error]) -> int:
    """The line at which a script failed at a statement above the one that had trained, else 0.

    A script runs its own statements from the top, and ranks train in step: no rank is that far
    behind. What directly follows another traceback may still be a rank in the same loop.
    """
    own = [error for error in errors if not is_echo(error) and _is_statement(error)]
    begun = 0
    for earlier, later in itertools.pairwise(own):
        if (
            earlier.steps
            and later.chain != earlier.chain
            and later.begun > earlier.line + 1
            and later.frames[0].file == earlier.frames[0].file
            and later.frames[0].line < earlier.frames[0].line
        ):
            begun = later.begun
    return begun


def _is_statement(error: Error) -> bool:
    """Whether an exception passed through a statement of a script itself."""
    return bool(error.frames) and (
        error.frames[0].function == "<module>" and not package_of(error.frames[0].file)
    )


def _never_compiled(errors: Sequence[Error]) -> int:
    """The line of the first start, of the last ones, at which Python could not compile the script.

    Python prints no traceback above it, and nothing of the script has run. Two ranks may have
    written its name into each other.
    """
    refused = 0
    for error in reversed(errors):
        if is_echo(error):
            continue
        if error.traced or not error.type.endswith(NOT_COMPILED):
            break
        refused = error.line
    return refused


def _is_same_script_later(error: Error, other: Error) -> bool:
    """Whether an exception was raised by the same script after its imports."""
    return not _imports(error) and not is_echo(error) and error.file == other.file != ""


def _imports(error: Error) -> bool:
    """Whether an exception was raised while a script imported an installed package."""
    frames = [frame for frame in error.frames if not passes_on(frame)]
    return (
        len(frames) > 1
        and all(frame.function == "<module>" for frame in frames)
        and not package_of(frames[0].file)
        and all(package_of(frame.file) for frame in frames[1:])
    )
