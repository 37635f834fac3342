"""Several starts of a script in one log, as its tracebacks show them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import Error
from dsdoctor.logs.frames import Frame
from dsdoctor.logs.hits import Scan
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.products import package_of, passes_on

#: A command of an installed package: torchrun, accelerate, deepspeed.
COMMAND = lazy(r"/bin/[\w-]+$")
#: What Python prints if it does not find the script (CPython 3.3-3.14 Modules/main.c).
NOT_FOUND = lazy(r"python[\w.]{0,12}: can't open file '?(?P<script>[^']{1,300}?)'?: \[Errno 2\]")
#: The module that Python did not find (CPython 3.3-3.14 Lib/importlib/_bootstrap.py).
MISSING = lazy(r"^No module named '?(?P<module>\w{1,80})'?$")
#: A cell of a notebook, as `frames.CELL` reads it.
OF_A_CELL = lazy(r"(?:Cell|Input) In ?\[|<ipython-input-")
RUNPY = lazy(r"(?:^|[\\/])runpy\.py$|^<frozen runpy>$")
#: What ends a script before it has done anything: an option that it does not accept, or a file of
#: its own that Python cannot compile.
NOT_COMPILED = ("SyntaxError", "IndentationError", "TabError")
#: What is in the log of a launcher that starts several ranks.
OF_A_LAUNCHER = ("world", "spawned", "world-size")
#: The marks of a Slurm step, and what srun (2.2-25.11 src/srun/libsrun/launch.c) reports of one
#: whose first task is its only one, or of none.
OF_A_STEP = {"slurm", "exit-code"}
ONE_TASK = lazy(r"srun: error: (?!.{0,200}\btasks? )|srun: error: \S{1,100}: task 0: ")
#: Lines between the exceptions of two starts: those of ranks that die together follow each other.
APART = 14
#: Characters by which the messages of two exceptions are compared; numbers follow them.
ALIKE = 24
#: Fewest characters of the lines below an exception by which a start is recognized, and fewest
#: lines of the last start: what a process still prints when it ends is shorter.
HEAD, BEGUN = 20, 20
#: What W&B prints when a process ends, whatever ended it.
SUMMARY = "wandb:"
NEVER_RAN = ("SystemExit", *NOT_COMPILED)


def refused_start(error: Error, errors: Sequence[Error]) -> bool:
    """Whether a start failed before the script ran, and another followed.

    All ranks fail alike, so a script that came further afterwards was started again.
    """
    return _never_ran(error) and any(
        later.source == error.source
        and later.line > error.line
        and later.traced
        and bool(later.frames)
        and not _of_a_package(later)
        and not _imports(later)
        and not later.type.endswith(NEVER_RAN)
        and (error.type == "SystemExit" or later.chain != error.chain)
        and not _runs_missing(later, error)
        for later in errors
    )


def _runs_missing(later: Error, error: Error) -> bool:
    """Whether another process ran a script that one did not find: other nodes may have it."""
    missing = NOT_FOUND.search(error.text)
    name = _base(missing["script"]) if missing else ""
    return any(_base(frame.file) == name for frame in later.frames)


def _never_ran(error: Error) -> bool:
    """Whether nothing of a script ran, or Python did not even find it."""
    missing = not error.traced and NOT_FOUND.search(error.text) is not None
    return missing or error.type.endswith(NEVER_RAN)


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


def died_before(scan: Scan, errors: Sequence[Error]) -> int:
    """The line below which a script was started again after an exception had ended it, else 0.

    A process ends with the exception that leaves the script's own statements, so another one that
    does, lines further down, is from another start. The ranks of a job are several processes, but
    then a line names a rank, or a launcher reports a death.
    """
    several = {*FATAL_MARKS, *OF_A_LAUNCHER} - (OF_A_STEP if _has_one_task(scan) else set())
    if scan.failures or scan.marks.keys() & several:
        return 0
    if any(error.rank is not None for error in errors):
        return 0
    ended = [error for error in errors if _ends_a_process(error)]
    begun = _children_of_another(errors)
    for earlier, later in itertools.pairwise(ended):
        if earlier.type == "KeyboardInterrupt":
            anew = not later.traced
        elif _of_a_cell(earlier) and _of_a_cell(later):
            anew = later.chain != earlier.chain  # people run the next cell once one has failed
        else:
            apart = later.chain != earlier.chain and later.begun > earlier.line + APART
            anew = apart and later.traced and _is_same_script(earlier, later)
        if anew:
            begun = earlier.line + 1
    return max(begun, _installed_since(errors))


def _children_of_another(errors: Sequence[Error]) -> int:
    """The line below which child processes of another start died, else 0.

    The children of one process have different names.
    """
    begun = 0
    died = [error for error in errors if error.process]
    for earlier, later in itertools.pairwise(died):
        apart = later.chain != earlier.chain and later.begun > earlier.line + APART
        if apart and later.process == earlier.process:
            begun = earlier.line + 1
    return begun


def began_again(scans: Sequence[Scan]) -> bool:
    """Whether a script was started once more below the last exception that ended it.

    Nothing but the lines with which its other starts began below their predecessors' exceptions
    shows that.
    """
    return len(scans) == 1 and _began_again(scans[0])


def _began_again(scan: Scan) -> bool:
    if scan.failures or scan.marks.keys() & {*FATAL_MARKS, *OF_A_LAUNCHER}:
        return False
    errors = scan.errors
    if not errors or any(error.rank is not None for error in errors):
        return False
    last = errors[-1]
    head = _head(last)
    if (
        len(head) < HEAD
        or head.startswith(SUMMARY)
        or scan.lines - last.line < BEGUN
        or any(hit.line > last.line + APART for hit in scan.hits)
        or not _ends_a_process(last)
    ):
        return False
    return any(
        _ends_a_process(earlier)
        and _head(earlier) == head
        # the same exception may have a text of several lines
        and _is_same_script(earlier, last)
        and later.chain != earlier.chain
        and later.begun > earlier.line + APART
        and _is_statement(later)
        and _entry(later).file == _entry(earlier).file
        for earlier, later in itertools.pairwise(errors)
    )


def _head(error: Error) -> str:
    """The lines below an exception without their numbers."""
    return re.sub(r"\d+", "0", error.more)


def _installed_since(errors: Sequence[Error]) -> int:
    """The line below which a script ran through a package that it had not found, else 0."""
    begun = 0
    for earlier, later in itertools.pairwise(errors):
        missing = MISSING.search(earlier.message)
        if not missing or later.chain == earlier.chain or not _ends_a_process(earlier):
            continue
        if any(package_of(frame.file) == missing["module"] for frame in later.frames):
            begun = earlier.line + 1
    return begun


def _has_one_task(scan: Scan) -> bool:
    """Whether Slurm reports the death of a step's only task, as far as its first report shows."""
    return "slurm" in scan.marks and ONE_TASK.search(scan.marks["slurm"][1]) is not None


def _ends_a_process(error: Error) -> bool:
    """Whether an exception left the statements of a script, or its options were refused."""
    if error.type == "KeyboardInterrupt":
        return error.traced
    if is_echo(error):
        return False
    if not error.traced:
        return error.type == "SystemExit"
    if not error.frames:
        return False
    entry = _entry(error)
    return _of_a_cell(error) or (entry.function == "<module>" and not package_of(entry.file))


def _of_a_cell(error: Error) -> bool:
    """Whether an exception left a cell of a notebook."""
    return bool(error.frames) and OF_A_CELL.match(error.frames[0].file) is not None


def _entry(error: Error) -> Frame:
    """The frame at which a traceback begins; `python -m` runs a module by functions of `runpy`."""
    by_name = error.frames[0].function == "_run_module_as_main"
    frames = [frame for frame in error.frames if not RUNPY.search(frame.file)] if by_name else []
    return frames[0] if frames else error.frames[0]


def _is_same_script(one: Error, other: Error) -> bool:
    """Whether two exceptions that say different things left the statements of the same script."""
    return (
        bool(one.frames and other.frames)
        and _entry(one).file == _entry(other).file
        and (one.type, one.message[:ALIKE]) != (other.type, other.message[:ALIKE])
    )


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
