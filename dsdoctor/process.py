"""The one place that starts processes: deadlines, marker, abandon, sweep (docs/architecture.md).

Every child gets a session of its own and `DSDOCTOR_RUN=<uuid>` in its environment. torchrun's
workers start sessions of their own, so a kill of the process group is not enough: descendants are
found by the marker in `/proc/*/environ`. A child that cannot be killed (state D) is abandoned.
"""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import msgspec

from dsdoctor import files

MARKER = "DSDOCTOR_RUN"
#: Marks everything that this process starts.
RUN_ID = uuid.uuid4().hex
#: A child that prints more than this is cut off (and goes on).
OUTPUT_LIMIT = 8 << 20
#: How long a child may take to die of SIGTERM, and then of SIGKILL, before it is abandoned.
TERM_SECONDS = 0.5
KILL_SECONDS = 1.0
#: How long pipes may stay open after the child itself has ended (a grandchild holds them).
DRAIN_SECONDS = 0.3

T = TypeVar("T")
R = TypeVar("R")
_POSIX = os.name == "posix"
_live: set[int] = set()
_live_lock = threading.RLock()  # a signal handler may come to it while it is held


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended.

    Attributes:
        argv: what was run.
        returncode: exit status; negative = signal; None = it was killed at its deadline.
        stdout: what it printed, at most OUTPUT_LIMIT bytes.
        stderr: the same for the other stream.
        timed_out: it ran past a limit.
        idle: that limit was the idle one: it had said nothing for that long.
        abandoned: it could not even be killed.
        seconds: wall time.
    """

    argv: tuple[str, ...]
    returncode: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    idle: bool = False
    abandoned: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.returncode == 0

    @property
    def text(self) -> str:
        """Its output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """The last line that it wrote to stderr, or else to stdout."""
        for stream in (self.stderr, self.stdout):
            lines = stream.decode("utf-8", "replace").strip().splitlines()
            if lines:
                return lines[-1].strip()[:300]
        return ""

    @property
    def is_text(self) -> bool:
        """Whether its output is UTF-8 without NULs."""
        try:
            return "\0" not in self.stdout.decode("utf-8")
        except UnicodeDecodeError:
            return False


def marked(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment that carries the marker."""
    return {**(os.environ if env is None else env), MARKER: RUN_ID}


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process, so that they can be waited for."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415  # 5 ms that --version need not pay

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def marked_pids(run_id: str = RUN_ID) -> Iterator[int]:
    """Processes that carry the marker, this one excepted."""
    if not sys.platform.startswith("linux"):
        return
    me = os.getpid()
    for entry in os.scandir("/proc"):
        if (
            entry.name.isdigit()
            and int(entry.name) != me
            and carries_marker(int(entry.name), run_id)
        ):
            yield int(entry.name)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if _POSIX:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def carries_marker(pid: int, run_id: str = RUN_ID) -> bool:
    """Whether the process that has this number now was started by a run."""
    return _has_variable(pid, f"{MARKER}={run_id}")


def is_rank(rank: int, pid: int) -> bool:
    """Whether the process that has this number now is a rank's, or was started by this run."""
    return _has_variable(pid, f"RANK={rank}") or carries_marker(pid)


def _has_variable(pid: int, word: str) -> bool:
    try:
        return word.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def signal_one(pid: int, number: int, is_meant: Callable[[int], bool]) -> bool:
    """Sends a signal to one process, never to another that has its number by now.

    The descriptor is opened first. If the number passes on to another process afterwards,
    `is_meant` may look at either of the two, but the signal reaches only the one that the
    descriptor names. Without descriptors of processes (Linux before 5.3, macOS, a seccomp filter),
    the number is used.

    Args:
        pid: its number.
        number: the signal.
        is_meant: looks in `/proc` at what has the number now; not asked where there is no `/proc`.

    Returns:
        Whether it was sent.
    """
    if pid <= 0:  # a group, or every process
        return False
    handle: int | None = None
    try:
        handle = os.pidfd_open(pid)
        sends = functools.partial(signal.pidfd_send_signal, handle, number)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError, OverflowError):
        sends = functools.partial(os.kill, pid, number)
    try:
        if sys.platform.startswith("linux") and not is_meant(pid):
            return False
        sends()
    except (OSError, OverflowError):
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def _reap(pid: int) -> None:
    """Takes the status of an orphan that became ours; others are not ours to wait for."""
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


def sweep(run_id: str = RUN_ID, *, seconds: float = KILL_SECONDS) -> tuple[int, ...]:
    """Kills every process that carries the marker; returns those that would not die."""
    deadline = time.monotonic() + seconds
    while True:
        left = tuple(marked_pids(run_id))
        if not left or time.monotonic() > deadline:
            return left
        for pid in left:
            signal_one(pid, signal.SIGKILL, lambda found: carries_marker(found, run_id))
        time.sleep(0.02)
        for pid in left:
            _reap(pid)


def _remove_scratch(pid: int | None = None) -> None:
    """Removes the temporary folders of a child that could not do so itself; of all with None.

    Our children name them `dsdoctor-RUN-PID-…`.
    """
    import shutil  # noqa: PLC0415  # only where a child has died
    import tempfile  # noqa: PLC0415

    mine = f"dsdoctor-{RUN_ID}-" + ("" if pid is None else f"{pid}-")
    with contextlib.suppress(OSError):  # no usable folder for temporary files: none of ours either
        for folder in Path(tempfile.gettempdir()).glob(f"{mine}*"):
            shutil.rmtree(folder, ignore_errors=True)


def kill_all() -> None:
    """Kills every child that is running now; for Ctrl-C and for the end of the whole deadline."""
    with _live_lock:  # none of them is waited for meanwhile, so the numbers are still theirs
        for pid in _live:
            _signal_group(pid, signal.SIGKILL if _POSIX else signal.SIGTERM)
    sweep()
    _remove_scratch()


def _feed(stream: IO[bytes], data: bytes) -> None:
    """Writes until everything is told or nobody listens any more."""
    rest = memoryview(data)
    with contextlib.suppress(OSError):
        while rest:
            rest = rest[os.write(stream.fileno(), rest) :]
    with contextlib.suppress(OSError):
        stream.close()


class Account(NamedTuple):
    """Who a child runs as.

    Attributes:
        uid, gid, groups: its numbers.
        home: its home folder.
        name: its name.
    """

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    name: str

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment without the folders of the account that started us."""
        kept = {name: value for name, value in env.items() if not name.startswith("XDG_")}
        return {**kept, "HOME": self.home, "USER": self.name, "LOGNAME": self.name}


class Child:
    """A running child; use `run` unless its output is wanted while it runs.

    Attributes:
        argv: what was run.
        pid: process id, and on POSIX the id of its group and session.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        account: Account | None = None,
    ) -> None:
        """Starts it, as another account if one is given (which needs root).

        Raises:
            OSError: the program does not exist or may not be run.
        """
        self.argv = tuple(argv)
        self._begun = time.monotonic()
        self._last_output = self._begun
        self._kept: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
        self._listeners = {"out": on_stdout, "err": on_stderr}
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=marked(env if account is None else account.environment(env or os.environ)),
            cwd=cwd,
            start_new_session=_POSIX,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else account.groups,
        )
        self.pid = self._process.pid
        with _live_lock:
            _live.add(self.pid)
        if stdin is not None and self._process.stdin is not None:
            # a child that does not read must not keep us from its deadline
            threading.Thread(target=_feed, args=(self._process.stdin, stdin), daemon=True).start()
        if not _POSIX:  # pipes cannot be selected there
            for name, stream in self._streams().items():
                threading.Thread(target=self._pump, args=(name, stream), daemon=True).start()

    def _streams(self) -> dict[str, IO[bytes]]:
        found = {"out": self._process.stdout, "err": self._process.stderr}
        return {name: stream for name, stream in found.items() if stream is not None}

    def _take(self, name: str, chunk: bytes) -> None:
        self._last_output = time.monotonic()
        kept = self._kept[name]
        if len(kept) < OUTPUT_LIMIT:
            kept += chunk[: OUTPUT_LIMIT - len(kept)]
        listener = self._listeners[name]
        if listener is not None:
            listener(chunk)

    def _pump(self, name: str, stream: IO[bytes]) -> None:
        for chunk in iter(lambda: stream.read(4096), b""):
            self._take(name, chunk)

    def poll(self) -> int | None:
        """Exit status, None while it runs.

        The child is not waited for: until its group has been killed, its number stays taken, and no
        other process can get it.
        """
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # a sweep has waited for it
            return self._process.poll()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _signal(self, number: int) -> None:
        """Signals the group, unless the child has been waited for: the number may be another's."""
        if self._process.returncode is None:
            _signal_group(self.pid, number)

    def _bury(self) -> bool:
        """Kills the group, then waits for the child, which frees its number; False = it stays."""
        with _live_lock:
            self._signal(signal.SIGKILL if _POSIX else signal.SIGTERM)
            _live.discard(self.pid)
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> bool:
        """Ends the child and its group; False = it would not die and is abandoned."""
        if self.poll() is None:
            self._signal(signal.SIGTERM)
            end = time.monotonic() + TERM_SECONDS
            while self.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
        try:
            return self._bury()
        finally:
            _remove_scratch(self.pid)

    def follow(self, seconds: float) -> int | None:
        """Passes its output on for a while; its exit status once it has ended."""
        deadline = time.monotonic() + seconds
        with self._selector() as selector:
            while self.poll() is None and time.monotonic() < deadline:
                self._read_some(selector, max(0.0, min(0.05, deadline - time.monotonic())))
        return self.poll()

    def wait(self, timeout: float, idle_timeout: float | None = None) -> Result:
        """Reads until it ends or a limit is reached, then makes sure that it is gone."""
        deadline = self._begun + timeout
        timed_out = idle = False
        ended: float | None = None
        with self._selector() as selector:
            while True:
                now = time.monotonic()
                if ended is None and self.poll() is not None:
                    ended = now
                if ended is not None and (not selector.get_map() or now > ended + DRAIN_SECONDS):
                    break
                if ended is None and now >= deadline:
                    timed_out = True
                    break
                if (
                    ended is None
                    and idle_timeout is not None
                    and now >= self._last_output + idle_timeout
                ):
                    timed_out = idle = True
                    break
                self._read_some(selector, min(0.05, max(deadline - now, 0.0)))
        return self._finish(timed_out=timed_out, idle=idle)

    @contextlib.contextmanager
    def _selector(self) -> Iterator[selectors.BaseSelector]:
        with selectors.DefaultSelector() as selector:
            if _POSIX:
                for name, stream in self._streams().items():
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, selectors.EVENT_READ, name)
            yield selector

    def _read_some(self, selector: selectors.BaseSelector, seconds: float) -> None:
        if not selector.get_map():
            # Windows, or both pipes closed while the child goes on
            end = time.monotonic() + max(seconds, 0.005)
            while self.poll() is None and time.monotonic() < end:
                time.sleep(0.002)
            return
        for key, _ in selector.select(seconds):
            stream = key.fileobj
            if isinstance(stream, int):
                continue
            try:
                chunk = os.read(stream.fileno(), 65536)
            except BlockingIOError:
                continue
            if chunk:
                self._take(key.data, chunk)
            else:
                selector.unregister(stream)

    def _finish(self, *, timed_out: bool, idle: bool) -> Result:
        gone = True
        if timed_out:
            gone = self.kill()
        elif _POSIX:
            # what the child left behind in its own group goes with it
            gone = self._bury()
            # one that ended by itself has removed its own
            if (self._process.returncode or 0) < 0:
                _remove_scratch(self.pid)
        with _live_lock:
            _live.discard(self.pid)
        for stream in self._streams().values():
            with contextlib.suppress(OSError):
                stream.close()
        returncode = None if timed_out else self._process.returncode
        if not gone:
            self._process.returncode = -9  # or its destructor would warn of a child that still runs
        return Result(
            argv=self.argv,
            returncode=returncode,
            stdout=bytes(self._kept["out"]),
            stderr=bytes(self._kept["err"]),
            timed_out=timed_out,
            idle=idle,
            abandoned=not gone,
            seconds=time.monotonic() - self._begun,
        )


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    idle_timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stdin: bytes | None = None,
    on_stdout: Callable[[bytes], None] | None = None,
    account: Account | None = None,
) -> Result:
    """Runs a command to its end or its deadline, whichever comes first.

    What it prints is kept up to OUTPUT_LIMIT; `on_stdout` gets all of it as it comes.

    Raises:
        OSError: the program does not exist or may not be run.
    """
    child = Child(argv, env=env, cwd=cwd, stdin=stdin, on_stdout=on_stdout, account=account)
    try:
        return child.wait(timeout, idle_timeout)
    except BaseException:
        child.kill()
        with _live_lock:
            _live.discard(child.pid)
        raise


class Guard:
    """Ends what this process has started if SIGKILL ends it: a helper that sees a pipe close.

    A launcher would otherwise go on without anybody to read its output, and its ranks with it.
    """

    def __init__(self, folder: Path) -> None:
        """Starts the helper, where there is `/proc`.

        Args:
            folder: is removed as well.
        """
        self._child: subprocess.Popen[bytes] | None = None
        if not sys.platform.startswith("linux"):
            return
        script = Path(__file__).parent / "probes" / "children" / "guard.py"
        with contextlib.suppress(OSError):  # what it guards is more important than it is
            self._child = subprocess.Popen(
                [sys.executable, "-I", str(script), RUN_ID, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

    def end(self) -> None:
        """Ends the helper first: if it saw the pipe close, it would kill what is started next."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(KILL_SECONDS)
            if self._child.stdin is not None:
                self._child.stdin.close()


class Detached:
    """A process that is started and may be left behind: it holds no pipe of ours.

    Attributes:
        pid: its process id, and on POSIX the id of its group and session.
        output: the file that both its streams go to.
    """

    def __init__(self, child: subprocess.Popen[bytes], output: Path) -> None:
        self._child = child
        self.pid = child.pid
        self.output = output

    def poll(self) -> int | None:
        """Exit status, None while it runs; never waits."""
        return self._child.poll()

    def kill(self) -> None:
        """Sends SIGKILL to its group and does not wait: perhaps no signal can end it."""
        if self._child.poll() is None:
            _signal_group(self.pid, signal.SIGKILL if _POSIX else signal.SIGTERM)

    def end(self, seconds: float) -> None:
        """Sends SIGTERM, so that it can end what it has started, and SIGKILL after so long."""
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
        self.kill()

    def __del__(self) -> None:
        # left behind on purpose: no warning that it still runs
        if self._child.returncode is None:
            self._child.returncode = -1


def start_detached(
    argv: Sequence[str],
    *,
    output: Path,
    env: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
) -> Detached:
    """Starts a process in a session of its own that outlives this one if need be.

    Args:
        argv: the command.
        output: file for its streams, written anew.
        env: its environment; it gets no marker, since no sweep of ours is to end it.
        keep: descriptors that it inherits (a lock).

    Raises:
        OSError: the program or the file cannot be opened.
    """
    with os.fdopen(files.open_new(output, mode=0o644, strict=True), "wb") as file:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=None if env is None else dict(env),
            start_new_session=_POSIX,
            pass_fds=tuple(keep),
            cwd="/" if _POSIX else None,
        )
    return Detached(child, output)


class Attached:
    """The user's own command, in the foreground: its streams are the caller's business.

    Nothing here ends it: no deadline, no marker, no sweep. `dsdoctor run` is a guest beside it.

    Attributes:
        pid: its process id, and on POSIX the id of its group.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.pid = child.pid

    def poll(self) -> int | None:
        """Exit status (negative: signal), None while it runs."""
        return self._child.poll()

    def wait(self, timeout: float) -> int | None:
        """Waits so long at most for its exit status."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout)
        return self._child.returncode

    def signal_group(self, number: int) -> None:
        """Passes a signal on to the command and its group, unless the command has ended."""
        if self._child.poll() is None:
            _signal_group(self.pid, number)


def start_attached(
    argv: Sequence[str],
    *,
    stdin: int | None,
    stdout: int,
    stderr: int,
    env: Mapping[str, str],
    terminal: int | None = None,
    foreground: int | None = None,
) -> Attached:
    """Starts the user's command in a group of its own.

    Args:
        argv: the command.
        stdin: its standard input; None = inherited.
        stdout: descriptor for its output.
        stderr: descriptor for its errors.
        env: its environment.
        terminal: the inner side of a pseudo-terminal that becomes its controlling terminal.
        foreground: a terminal whose foreground it takes, so that Ctrl-C reaches it and it may read.

    Raises:
        OSError: the program does not exist or may not be run.
    """

    def prepare() -> None:  # pragma: no cover  # runs in the child, before exec
        if terminal is not None:
            import fcntl  # noqa: PLC0415  # POSIX only
            import termios  # noqa: PLC0415

            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            return
        os.setpgid(0, 0)
        if foreground is not None:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with contextlib.suppress(OSError):
                os.tcsetpgrp(foreground, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)

    child = subprocess.Popen(  # nothing else runs in this process yet
        list(argv),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=dict(env),
        start_new_session=terminal is not None,
        preexec_fn=prepare if _POSIX else None,  # noqa: PLW1509  # calls nothing that takes a lock
        restore_signals=True,
    )
    return Attached(child)


def parallel(
    function: Callable[[Sequence[T]], list[R]], items: Sequence[T], *, least: int, chunk: int = 64
) -> Iterator[R]:
    """Applies a function to chunks of items, on all cores where there are many.

    Args:
        function: must be a module's own function; what it needs besides may be global, for workers
            are copies of this process.
        items: what to work on.
        least: with fewer items no process is worth its start.
        chunk: items for one call.
    """
    chunks = [items[start : start + chunk] for start in range(0, len(items), chunk)]
    workers = min(os.cpu_count() or 1, 8)
    if len(items) < least or workers < 2 or not sys.platform.startswith("linux"):  # noqa: PLR2004
        for piece in chunks:
            yield from function(piece)
        return
    import multiprocessing  # noqa: PLC0415  # only large fleets need it

    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for results in pool.imap(function, chunks):
            yield from results
