"""Entry point; answers --version before anything else is imported."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in; `signal` itself imports `enum`
import os
import sys


def _dies_of_ctrl_c() -> bool:
    """Makes Ctrl-C end this process as a signal does, until the command line can handle it.

    Otherwise Python would end a program that is still being imported with a traceback and status 1,
    which would look like a verdict. Nothing changes in a process that only imports this module, or
    that ignores Ctrl-C.

    Returns:
        Whether the disposition of SIGINT was changed.
    """
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119
    is_program = __name__ == "__main__" or name in ("dsdoctor", "dsdoctor-python")
    if not is_program or _signal.getsignal(_signal.SIGINT) is not _signal.default_int_handler:
        return False
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    return True


_DIES = _dies_of_ctrl_c()


def _leave_working_folder() -> None:
    """Takes the folder that `python -m` puts first off the path: it may hold another `re.py`."""
    try:
        here = os.getcwd()  # noqa: PTH109  # pathlib would be imported from there
    except OSError:
        here = ""
    holds_us = os.path.exists(f"{here}/dsdoctor/__main__.py")  # noqa: PTH110
    if __name__ == "__main__" and not holds_us and sys.path[:1] in ([here], [""]):
        del sys.path[0]


_leave_working_folder()


def _leave_untrusted_folders() -> None:
    """For root, takes folders that other accounts control off the path of this process.

    They are those of a kept `PYTHONPATH`, and the user site of a kept `HOME`. The one that
    dsdoctor is imported from stays: whoever starts it trusts that one.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or sys.flags.ignore_environment:
        return
    kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept.append(str(getattr(sys.modules.get("site"), "USER_SITE", None)))
    given = {_absolute(name) for name in kept}
    given.discard(os.path.dirname(os.path.dirname(_absolute(__file__))))  # noqa: PTH120
    before = sys.path[:]
    doubtful = [path for path in before if _absolute(path) in given]
    if not doubtful:
        return
    sys.path[:] = [path for path in before if path not in doubtful]
    from dsdoctor.safe_path import why_untrusted  # noqa: PLC0415  # not from these folders

    reasons = {path: why_untrusted(path or ".", entries=True, absent=True) for path in doubtful}
    sys.path[:] = [path for path in before if not reasons.get(path)]
    for path, reason in reasons.items():
        if reason and os.path.isdir(path or "."):  # noqa: PTH112
            sys.stderr.write(f"dsdoctor: root imports nothing from `{path}`: {reason}\n")


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)  # noqa: PTH100  # pathlib would be imported from there
    except OSError:  # the working folder was deleted
        return path


_leave_untrusted_folders()

import atexit  # not before the path is clean
import functools
import gc

from dsdoctor import guard
from dsdoctor.version import __version__

#: Allocations before the garbage collector runs; with Python's 700 it would run a hundred times
#: during startup.
OBJECTS = 50_000


@functools.cache
def _spare_the_collector() -> None:
    """Runs the garbage collector less often, and not at exit: it took a fifth of short commands."""
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def main() -> int:
    """Runs the command line and returns the exit status; nothing escapes as a traceback."""
    _spare_the_collector()
    try:
        guard.open_streams()
        status = _command()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  # status 1 would look like a verdict
        _end_children()
        status = guard.broken(error)
    if _DIES:  # while Python itself shuts down
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    return status


def _command() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        sys.stdout.write(f"dsdoctor {__version__}\n")
        return _flushed(0)
    if sys.argv[1:2] == ["hook"]:
        from dsdoctor.hook import entry  # noqa: PLC0415  # it runs before every job

        return entry.main(sys.argv[2:], _command_line)
    return _command_line()


def _command_line() -> int:
    reason = guard.unusable()
    if reason is not None:
        guard.say(reason)
        return guard.BROKEN
    from dsdoctor.cli.main import run  # noqa: PLC0415  # --version stays fast

    # not before: an exception in a callback of the import system is printed and forgotten
    if _DIES:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    return _flushed(run())


def _flushed(status: int) -> int:
    """The status, unless the report did not reach its reader."""
    reason = guard.flush()
    if reason is None:
        return status
    guard.say(reason)
    return guard.BROKEN


def _end_children() -> None:
    process = sys.modules.get("dsdoctor.process")
    if process is not None:
        process.kill_all()


if __name__ == "__main__":
    sys.exit(main())
