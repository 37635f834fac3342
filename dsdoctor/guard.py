"""Keeps a command from ending with a traceback, or with a status that looks like a verdict.

Python ends with status 1 after an uncaught exception, and 1 means "a failure was found". `broken`
turns whatever reaches the entry point into one line and status 2. The module imports only the core
of the standard library, because it has to work when little else does.
"""

from __future__ import annotations

import os
import sys

#: The variable that, set to 1, shows the traceback of an internal error.
DEBUG = "DSDOCTOR_DEBUG"
BROKEN = 2
INTERRUPTED = 130
#: Status of a command whose reader closed the pipe before the report was written: 128 + SIGPIPE.
UNREAD = 141
#: Descriptors that a command needs at once: pipes of its children, logs, modules being imported.
#: Measured: 40 are enough for `check --quick`.
LEAST_FILES = 64
_LONGEST = 400


def open_streams() -> None:
    """Gives closed standard streams a descriptor.

    Otherwise the first file that is opened gets number 0, 1 or 2, and receives what was meant for
    the terminal. A closed stdout is an error later on, in `unusable`.
    """
    for number, name, mode in ((0, "stdin", os.O_RDONLY), (1, "stdout", 1), (2, "stderr", 1)):
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, mode) != number:
                continue
        if getattr(sys, name) is None and number != 1:
            setattr(sys, name, os.fdopen(number, "w" if mode else "r", closefd=False))


def unusable() -> str | None:
    """Why dsdoctor cannot work in this process; None if it can."""
    if sys.flags.optimize > 1:
        return (
            "Python runs with -OO (or PYTHONOPTIMIZE=2), which removes the texts of all "
            "conditions; run it without"
        )
    if sys.stdout is None:
        return "standard output is closed; redirect it to a file or to /dev/null"
    try:
        import resource  # noqa: PLC0415  # POSIX only
    except ImportError:
        return None
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= allowed < LEAST_FILES:
        return (
            f"too few open files for dsdoctor: {allowed} are allowed, {LEAST_FILES} are needed; "
            f"raise the limit with `ulimit -n {LEAST_FILES * 16}`"
        )
    return None


def say(text: str) -> None:
    """Prints one line on stderr, whatever the text contains and whatever state the stream is in."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.split())
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1] + "…"
    whole = f"dsdoctor: {line}\n".encode("utf-8", "replace").decode()
    try:
        sys.stderr.write(whole)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # none, closed, or of a narrow encoding
        _write_bytes(whole.encode())


def _write_bytes(data: bytes) -> None:
    try:
        os.write(2, data)
    except OSError:
        return


def broken(error: BaseException) -> int:
    """Prints what went wrong in one line and returns the exit status."""
    if isinstance(error, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    if os.environ.get(DEBUG) == "1":
        import traceback  # noqa: PLC0415  # only on request

        traceback.print_exception(error)
    say(_words(error))
    return BROKEN


#: Number of clone3(2), the same on every architecture.
_CLONE3 = 435


def _is_clone_denied() -> bool:
    """Whether clone3 fails with EPERM; glibc falls back to clone after ENOSYS only.

    Called with arguments that the kernel refuses, it starts nothing.
    """
    import ctypes  # noqa: PLC0415  # only where something is wrong
    import errno  # noqa: PLC0415

    try:
        library = ctypes.CDLL(None, use_errno=True)
        return library.syscall(_CLONE3, None, 0) == -1 and ctypes.get_errno() == errno.EPERM
    except (AttributeError, OSError, TypeError):  # no such function on this system
        return False


def _words(error: BaseException) -> str:
    text = str(error)
    no_thread = "can't start new thread" in text
    if no_thread and _is_clone_denied():
        return (
            "this container denies `clone3`, the system call that starts threads, to jobs as well; "
            "upgrade Docker on the host to 20.10.10 or newer, or start the container with "
            "`--security-opt seccomp=unconfined`"
        )
    if isinstance(error, MemoryError) or no_thread:
        return (
            "out of memory, threads or address space; raise `ulimit -v` and `ulimit -u`, or the "
            "limits of the container"
        )
    if isinstance(error, ImportError):
        return f"a part of dsdoctor cannot be loaded: {_masked(text)}; reinstall dsdoctor"
    if isinstance(error, FileNotFoundError) and error.filename is None and _has_no_folder():
        from dsdoctor.errors import FOLDER_GONE  # noqa: PLC0415  # only where something is wrong

        return FOLDER_GONE
    if isinstance(error, OSError) and error.strerror:
        named = f": `{error.filename}`" if error.filename else ""
        return _masked(f"{error.strerror}{named}")
    kind = type(error).__name__
    if isinstance(error, RecursionError):
        text = "the input is nested too deeply"
    return (
        f"internal error ({kind}: {_masked(text)}); set {DEBUG}=1 for the traceback, and report it"
    )


def _has_no_folder() -> bool:
    """Whether the working folder has been removed."""
    try:
        os.getcwd()  # noqa: PTH109  # standard library's core alone
    except OSError:
        return True
    return False


def _masked(text: str) -> str:
    """An error may quote what was read; if it cannot be masked, it is not quoted at all."""
    try:
        from dsdoctor.model.masking import mask  # noqa: PLC0415  # may be what cannot be loaded

        return mask(text[: 4 * _LONGEST])
    except Exception:  # noqa: BLE001  # the line must come out
        return "its text cannot be shown"


def flush() -> str | None:
    """Flushes stdout; why that failed, or None if it did not.

    Otherwise Python would do it at exit, print a traceback on failure, and end with status 120.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        give_up_output()
        if isinstance(error, BrokenPipeError):
            return None
        return f"the report cannot be written: {getattr(error, 'strerror', None) or error}"
    return None


def give_up_output() -> None:
    """Discards what is still in stdout's buffer."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError:
        return
