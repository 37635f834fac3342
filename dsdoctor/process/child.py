"""A child process with a deadline: its output is read, and its group is ended with it."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, NamedTuple

import msgspec

from dsdoctor.process.marker import marked
from dsdoctor.process.signals import POSIX, signal_group
from dsdoctor.process.sweep import KILL_SECONDS, remove_scratch, running, running_lock

#: Output of a child beyond this is dropped, in bytes; the child continues.
OUTPUT_LIMIT = 8 << 20
#: How long a child may take to end after SIGTERM before it gets SIGKILL.
TERM_SECONDS = 0.5
#: How long pipes may stay open after the child itself has ended (a grandchild holds them).
DRAIN_SECONDS = 0.3


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended.

    Attributes:
        argv: what was run.
        returncode: exit status; negative = signal; None = it was killed at its deadline.
        stdout: what it printed, at most OUTPUT_LIMIT bytes.
        stderr: the same for the other stream.
        timed_out: it ran past a limit.
        idle: that limit was `idle_timeout`: it had printed nothing for that long.
        seconds: wall time.
    """

    argv: tuple[str, ...]
    returncode: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    idle: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it ended with status 0."""
        return self.returncode == 0

    @property
    def text(self) -> str:
        """Its output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """The last line that it wrote to stderr, or if there is none, to stdout."""
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


class Account(NamedTuple):
    """The account that a child runs as.

    Attributes:
        uid, gid, groups: its ids.
        home: its home folder.
        name: its name.
        withholds: whether a variable, by name and value, is not passed on to it.
    """

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    name: str
    withholds: Callable[[str, str], bool] | None = None

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment without the caller's folders and secrets."""
        hidden = self.withholds or (lambda _name, _value: False)
        kept = {n: v for n, v in env.items() if not n.startswith("XDG_") and not hidden(n, v)}
        return {**kept, "HOME": self.home, "USER": self.name, "LOGNAME": self.name}


class Child:
    """A running child; use `run` unless you need its output while it runs.

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
        """Starts it, as `account` if that is not None (which needs root).

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
            start_new_session=POSIX,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else account.groups,
        )
        self.pid = self._process.pid
        with running_lock:
            running.add(self.pid)
        if stdin is not None and self._process.stdin is not None:
            # in a thread: a child that does not read must not block `wait`
            threading.Thread(target=_feed, args=(self._process.stdin, stdin), daemon=True).start()
        if not POSIX:  # pipes cannot be selected on Windows
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
        """Exit status; None while it runs.

        The child is not reaped: until its group has been killed, its pid stays in use, so that no
        other process can get it.
        """
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # a sweep has reaped it
            return self._process.poll()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _signal(self, number: int) -> None:
        """Signals the group, unless the child was reaped, after which its pid may be reused."""
        if self._process.returncode is None:
            signal_group(self.pid, number)

    def _kill_and_reap(self) -> bool:
        """Kills the group, then reaps the child, which frees its pid; False = it does not end."""
        with running_lock:
            self._signal(signal.SIGKILL if POSIX else signal.SIGTERM)
            running.discard(self.pid)
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> bool:
        """Ends the child and its group; False = it did not end and is abandoned."""
        if self.poll() is None:
            self._signal(signal.SIGTERM)
            end = time.monotonic() + TERM_SECONDS
            while self.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
        try:
            return self._kill_and_reap()
        finally:
            remove_scratch(self.pid)

    def follow(self, seconds: float) -> int | None:
        """Passes its output on for `seconds`; returns its exit status, None while it runs."""
        deadline = time.monotonic() + seconds
        with self._selector() as selector:
            while self.poll() is None and time.monotonic() < deadline:
                self._read_some(selector, max(0.0, min(0.05, deadline - time.monotonic())))
        return self.poll()

    def wait(self, timeout: float, idle_timeout: float | None = None) -> Result:
        """Reads until it ends or a limit is reached, then ends its whole group."""
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
            if POSIX:
                for name, stream in self._streams().items():
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, selectors.EVENT_READ, name)
            yield selector

    def _read_some(self, selector: selectors.BaseSelector, seconds: float) -> None:
        if not selector.get_map():
            # Windows, or the child has closed both pipes and continues
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
        elif POSIX:
            # processes that the child left in its group are killed
            gone = self._kill_and_reap()
            # a child that exits normally has removed its own scratch folder
            if (self._process.returncode or 0) < 0:
                remove_scratch(self.pid)
        with running_lock:
            running.discard(self.pid)
        for stream in self._streams().values():
            with contextlib.suppress(OSError):
                stream.close()
        returncode = None if timed_out else self._process.returncode
        if not gone:
            self._process.returncode = -9  # otherwise the destructor of Popen would warn
        return Result(
            argv=self.argv,
            returncode=returncode,
            stdout=bytes(self._kept["out"]),
            stderr=bytes(self._kept["err"]),
            timed_out=timed_out,
            idle=idle,
            seconds=time.monotonic() - self._begun,
        )


def _feed(stream: IO[bytes], data: bytes) -> None:
    """Writes until everything is written or the reader has closed the pipe."""
    rest = memoryview(data)
    with contextlib.suppress(OSError):
        while rest:
            rest = rest[os.write(stream.fileno(), rest) :]
    with contextlib.suppress(OSError):
        stream.close()


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
    """Runs a command until it ends or its deadline is reached.

    Its output is kept up to OUTPUT_LIMIT; `on_stdout` receives all of it.

    Raises:
        OSError: the program does not exist or may not be run.
    """
    child = Child(argv, env=env, cwd=cwd, stdin=stdin, on_stdout=on_stdout, account=account)
    try:
        return child.wait(timeout, idle_timeout)
    except BaseException:
        child.kill()
        with running_lock:
            running.discard(child.pid)
        raise
