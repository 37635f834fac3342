"""Starts the real launcher, reads what the ranks write, and ends everything that was started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from dsdoctor import files, process
from dsdoctor.errors import UsageError
from dsdoctor.host.account import working_folder
from dsdoctor.model.redact import mask
from dsdoctor.smoke import build_times, evidence
from dsdoctor.smoke.attempt import Attempt, OnProgress
from dsdoctor.smoke.gpus import GpuWatch
from dsdoctor.smoke.job import SmokePlan
from dsdoctor.smoke.track import Progress, Tracker
from dsdoctor.smoke.watch import Watch
from dsdoctor.smoke.worker import dsdsmoke_locks as locks

if sys.platform != "win32":
    import fcntl

WORKER = Path(__file__).parent / "worker"
PREFIX = "dsdoctor-smoke-"
#: How far a file's timestamp may lag behind the clock.
CLOCK_GRAIN_SECONDS = 0.1
#: A folder without its lock file may still be under construction for this long.
_MAKING_SECONDS = 10.0


def _cpus() -> int:
    """CPUs that this process and its ranks may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def launcher_of(python: str, name: str) -> list[str]:
    """The user's launcher in the patient: the script next to its interpreter, or its module."""
    beside = Path(python).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside)]
    module = "deepspeed.launcher.runner" if name == "deepspeed" else "torch.distributed.run"
    return [python, "-m", module]


def command(plan: SmokePlan, python: str, folder: Path) -> tuple[str, ...]:
    """The plan's launch line, with the small training script instead of the user's."""
    words = list(plan.launch.argv)
    name = Path(words[0]).name  # a path, because PATH led to the launcher of another environment
    if name not in ("deepspeed", "torchrun"):
        raise UsageError(f"the plan launches with `{name}`, expected `deepspeed` or `torchrun`")
    if "--deepspeed" not in words:
        raise UsageError(
            "the plan's command has no `--deepspeed`; expected a plan made by `dsdoctor recommend`"
        )
    head = words[1 : words.index("--deepspeed") - 1]
    for index, word in enumerate(head):
        if word == "--hostfile" and plan.hostfile is not None:
            head[index + 1] = str(Path(plan.hostfile).absolute())
        if word.startswith("$"):
            raise UsageError(
                f"the plan's command contains `{word}`, which has no value here; "
                "create the plan again with `--hosts` or `--hostfile`"
            )
    script = folder / "worker" / "dsdsmoke_rank.py"
    return (*launcher_of(python, name), *head, str(script), "--job", str(folder / "job.json"))


def environment(
    plan: SmokePlan, python: str, folder: Path, base: Mapping[str, str]
) -> dict[str, str]:
    """Variables that are set for the run, in addition to the user's own.

    The patient's programs (ninja) come first on PATH, as in an activated environment. Temporary
    files go to a folder that is removed.
    """
    beside = str(Path(python).parent)
    path = base.get("PATH", os.defpath)
    if beside not in path.split(os.pathsep):
        path = beside + os.pathsep + path
    return {
        **plan.launch.env,
        "PATH": path,
        "TMPDIR": str(folder / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **plan.env,
    }


def _prepare(plan: SmokePlan) -> tuple[Path, int]:
    """The folder of one run, and the descriptor of its lock.

    With several hosts, all of them must see the folder.
    """
    where = Path.cwd() if plan.launch.nodes > 1 else None
    folder = files.scratch_folder(f"{PREFIX}{os.getpid()}-", where)
    try:
        return folder, _fill(plan, folder)
    except BaseException:  # a signal too
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _fill(plan: SmokePlan, folder: Path) -> int:
    owned = files.open_lock(folder / "alive")
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # a file system without locks: use the process number
            fcntl.flock(owned, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for name in ("tmp", "worker"):
        files.make_folder(folder / name)
    for source in WORKER.glob("*.py"):
        files.copy(source, folder / "worker" / source.name, mode=0o644)
    files.write(folder / "job.json", json.dumps(plan.job))
    files.write(folder / "port", str(_port(plan)))
    return owned


def _is_owned(folder: Path) -> bool:
    """Whether the dsdoctor of a run is still running, possibly in a container or on another host.

    Process numbers from there have no meaning here, so the lock decides.
    """
    if sys.platform == "win32":
        return False
    try:
        # neither a link nor a pipe of another account
        handle = os.open(folder / "alive", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # it may be about to create it
        with contextlib.suppress(OSError):
            return time.time() - folder.stat().st_mtime < _MAKING_SECONDS
        return False
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def remove_stale() -> None:
    """Removes what earlier runs of this user left because their dsdoctor was killed.

    Any account can create a folder of such a name in /tmp, so only folders of this user are opened.
    """
    bases = {Path(tempfile.gettempdir()), Path.cwd()}  # for one host, and for several
    for folder in [folder for base in bases for folder in base.glob(f"{PREFIX}*-*")]:
        owner = folder.name[len(PREFIX) :].partition("-")[0]
        with contextlib.suppress(OSError):
            if not (owner.isdecimal() and evidence.is_mine(folder.lstat(), stat.S_IFDIR)):
                continue
            if evidence.is_alive(int(owner[:9])) or _is_owned(folder):
                continue
            port = _noted_port(folder)
            if port is not None:
                evidence.sweep_stale_buffers(port)
            shutil.rmtree(folder, ignore_errors=True)


def _noted_port(folder: Path) -> int | None:
    """The port that a run recorded; None if the record is not a regular file of this user."""
    path = folder / "port"
    try:
        if not evidence.is_mine(path.lstat(), stat.S_IFREG):
            return None
        text = files.read(path, limit=16).decode("ascii", "replace")
    except (OSError, ValueError):
        return None
    return int(text) if re.fullmatch("[0-9]{1,5}", text) else None


@contextlib.contextmanager
def attempt(
    plan: SmokePlan,
    python: str,
    *,
    timeout: float,
    base_env: Mapping[str, str],
    on_progress: OnProgress | None = None,
) -> Iterator[Attempt]:
    """Runs a plan; the logs can be read until the context ends, then everything is removed.

    Args:
        plan: what to run.
        python: the patient's interpreter.
        timeout: seconds for everything except compiling ops.
        base_env: the user's variables.
        on_progress: called with the progress of the run.

    Raises:
        UsageError: the plan has no command that can be run here.
    """
    folder, owned = _prepare(plan)
    guard = process.Guard(folder)
    before = evidence.shared_memory()
    port = _port(plan)
    made: Attempt | None = None
    try:
        made = Attempt(
            plan=plan,
            argv=command(plan, python, folder),
            env=environment(plan, python, folder, base_env),
            tracker=Tracker(folder, plan.world, plan.world / plan.launch.nodes / _cpus()),
            folder=folder,
            timeout=timeout,
        )
        _run(made, base_env, python, on_progress or (lambda *_: None))
        build_times.remember(made.tracker.ranks)
        yield made
    finally:
        stubborn = process.sweep()
        left = [f"process {pid}" for pid in stubborn]
        if made is not None:
            release_locks(made.tracker.ranks)
        left += evidence.sweep_shared_memory(made.segments if made else (), before, port)
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            # a rank that was just killed may have been writing
            time.sleep(0.2)
            shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            left.append(str(folder))
        guard.end()
        os.close(owned)
        if made is not None:
            made.leftovers = tuple(left)


def release_locks(ranks: Sequence[Progress]) -> None:
    """Removes locks of builds that ended with the ranks: the next job would wait for them."""
    for progress in ranks:
        if not progress.is_here or progress.ended("build-ops"):
            continue
        for event in progress.events:
            folder = event.data.get("folder")
            if event.phase == "build-ops" and folder:
                path = str(Path(folder) / locks.NAME)
                locks.remove_left(path, event.time - CLOCK_GRAIN_SECONDS)


def _port(plan: SmokePlan) -> int:
    words = plan.launch.argv
    for option in ("--master_port", "--master-port"):
        if option in words:
            return int(words[words.index(option) + 1])
    return 29500


class Lines:
    """Writes complete lines to a log as they arrive, with secrets masked."""

    #: Output longer than this without a line break gets one.
    LONGEST = 1 << 16

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Adds output, which may end within a line."""
        whole, cut, self._rest = (self._rest + chunk).rpartition(b"\n")
        if not cut and len(self._rest) > self.LONGEST:
            whole, cut, self._rest = self._rest, b"\n", b""
        self._write(whole + cut)

    def end(self) -> None:
        """Writes the last line, which may have no line end."""
        self._write(self._rest)
        self._rest = b""

    def _write(self, data: bytes) -> None:
        if data:
            text = mask(data.decode("utf-8", "surrogateescape"))
            self._stream.write(text.encode("utf-8", "surrogateescape"))


def _run(made: Attempt, base_env: Mapping[str, str], python: str, on_progress: OnProgress) -> None:
    begun = time.monotonic()
    kernel = evidence.Kernel()
    gpus = GpuWatch(made.folder, base_env) if made.plan.device == "cuda" else None
    log = made.folder / "launcher.log"
    child: process.Child | None = None
    try:
        with os.fdopen(files.open_append(log), "ab", buffering=0) as stream:
            # the launcher prints its command line, with the variables that it forwards
            said = (Lines(stream), Lines(stream))
            child = process.Child(
                made.argv,
                env={**base_env, **made.env},
                cwd=working_folder(None, None),
                on_stdout=said[0].take,
                on_stderr=said[1].take,
            )
            watch = Watch(made, child, on_progress)
            while (reason := watch.reason()) is None:
                pass
            made.reason = reason
            watch.note_segments()
            if reason in ("hang", "timeout", "rank-died", "launcher-gone"):
                pids = {
                    progress.rank: progress.pid
                    for progress in made.tracker.ranks
                    if progress.is_here
                    and progress.pid
                    and not progress.done
                    and evidence.is_alive(progress.pid)
                }
                made.stacks = evidence.stacks(made.folder, pids, python)
            child.wait(0.0)
            for lines in said:
                lines.end()
    except OSError as error:
        made.reason = "not-started"
        made.error = f"`{made.argv[0]}` cannot be started: {error.strerror or error}"
    except KeyboardInterrupt:
        made.reason = "interrupted"
    finally:
        if child is not None:
            child.kill()
            process.sweep()
        made.tracker.read(time.monotonic())
        made.kernel = kernel.killed(p.pid for p in made.tracker.ranks if p.pid and p.is_here)
        kernel.close()
        if gpus is not None:
            made.gpu_errors = gpus.end(made.plan.uuids)
        made.launcher_tail = evidence.tail(log)
        made.tails = {
            progress.rank: evidence.tail(made.folder / f"rank-{progress.rank}.log")
            for progress in made.tracker.ranks
        }
        made.seconds = time.monotonic() - begun
