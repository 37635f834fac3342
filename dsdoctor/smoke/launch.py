"""Starts the real launcher, watches what the ranks write, and ends everything that it started."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.model.smoke import PHASES
from dsdoctor.smoke import evidence
from dsdoctor.smoke.plan import SmokePlan
from dsdoctor.smoke.track import DEADLINES, Progress, Tracker
from dsdoctor.smoke.worker import dsdsmoke_locks as locks

WORKER = Path(__file__).parent / "worker"
PREFIX = "dsdoctor-smoke-"
#: Seconds between two looks at the ranks.
TICK = 0.1
#: What the launcher gets to notice by itself that a rank has died, so that its log says so.
NOTICE_SECONDS = 6.0
#: How long ranks may outlive the launcher before that counts as its death.
ORPHAN_SECONDS = 1.5
#: How far the time of a file may lag behind the clock.
CLOCK_GRAIN_SECONDS = 0.1

#: Told again and again where the slowest rank is: phase, place in it, share of it (None = unknown).
Teller = Callable[[str, str, float | None], None]


@dataclasses.dataclass
class Attempt:
    """How one run went: observations only.

    Attributes:
        plan: what was run.
        argv, env: the real command and the variables set for it.
        tracker: what the ranks told.
        reason: `ended`, `rank-died`, `rank-failed`, `hang`, `timeout`, `launcher-gone`,
            `not-started` or `interrupted`.
        returncode: of the launcher; negative = signal; None = it was ended by us.
        orphans: ranks that still ran when the launcher had gone.
        overdue: ranks that were in one phase for too long.
        stacks: rank to stack.
        tails: rank to last lines.
        launcher_tail: last lines of the launcher.
        kernel: the kernel's word on memory.
        folder: where logs lie, until the attempt is cleaned up.
        seconds: wall time.
        started: when it began, in seconds since the epoch.
        error: why the launcher could not be started.
        leftovers: what could not be ended or removed.
        timeout: seconds that it had, compiling not counted.
    """

    plan: SmokePlan
    argv: tuple[str, ...]
    env: dict[str, str]
    tracker: Tracker
    folder: Path
    reason: str = "ended"
    returncode: int | None = None
    orphans: tuple[int, ...] = ()
    overdue: tuple[int, ...] = ()
    stacks: dict[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    tails: dict[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    launcher_tail: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    seconds: float = 0.0
    started: float = dataclasses.field(default_factory=time.time)
    error: str = ""
    leftovers: tuple[str, ...] = ()
    timeout: float = 0.0


def launcher_of(python: str, name: str) -> list[str]:
    """The user's launcher in the patient: the script beside its interpreter, else its module."""
    beside = Path(python).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside)]
    module = "deepspeed.launcher.runner" if name == "deepspeed" else "torch.distributed.run"
    return [python, "-m", module]


def command(plan: SmokePlan, python: str, folder: Path) -> tuple[str, ...]:
    """The plan's own launch line, with the small training script in the place of the user's."""
    words = list(plan.launch.argv)
    name = Path(words[0]).name  # a path where PATH led to another environment's
    if name not in ("deepspeed", "torchrun"):
        raise UsageError(f"the plan launches with `{name}`, expected `deepspeed` or `torchrun`")
    if "--deepspeed" not in words:
        raise UsageError("the plan's command has no `--deepspeed`; expected one of `recommend`")
    head = words[1 : words.index("--deepspeed") - 1]
    for index, word in enumerate(head):
        if word == "--hostfile" and plan.hostfile is not None:
            head[index + 1] = str(Path(plan.hostfile).absolute())
        if word.startswith("$"):
            raise UsageError(
                f"the plan's command holds `{word}`, which must be known here; name the hosts"
            )
    script = folder / "worker" / "dsdsmoke_rank.py"
    return (*launcher_of(python, name), *head, str(script), "--job", str(folder / "job.json"))


def environment(
    plan: SmokePlan, python: str, folder: Path, base: Mapping[str, str]
) -> dict[str, str]:
    """Variables set for the run, on top of the user's own.

    The patient's programs (ninja) come first on PATH, as in an activated environment, and
    temporary files go where they are swept.
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


def _prepare(plan: SmokePlan) -> Path:
    """Folder of one run; with several hosts it must be one that all of them see."""
    where = Path.cwd() if plan.launch.nodes > 1 else None
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=where))
    (folder / "tmp").mkdir()
    (folder / "worker").mkdir()
    for source in WORKER.glob("*.py"):
        shutil.copyfile(source, folder / "worker" / source.name)
    (folder / "job.json").write_text(json.dumps(plan.job), encoding="utf-8")
    (folder / "port").write_text(str(_port(plan)))
    (folder / "alive").touch()
    return folder


def remove_stale() -> None:
    """Removes what earlier runs have left whose dsdoctor was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name[len(PREFIX) :].partition("-")[0]
        if owner.isdigit() and not evidence.is_alive(int(owner)):
            with contextlib.suppress(OSError, ValueError):
                port = int((folder / "port").read_text())
                evidence.sweep_shared_memory(evidence.shared_memory(), port)
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def attempt(
    plan: SmokePlan,
    python: str,
    *,
    timeout: float,
    base_env: Mapping[str, str],
    tell: Teller | None = None,
) -> Iterator[Attempt]:
    """Runs a plan; the logs can be read until the block is left, then everything is removed.

    Args:
        plan: what to run.
        python: the patient's interpreter.
        timeout: seconds for everything but the compiling of ops.
        base_env: the user's variables.
        tell: is told where the run is.

    Raises:
        UsageError: the plan has no command that can be run here.
    """
    folder = _prepare(plan)
    before = evidence.shared_memory()
    port = _port(plan)
    made: Attempt | None = None
    try:
        made = Attempt(
            plan=plan,
            argv=command(plan, python, folder),
            env=environment(plan, python, folder, base_env),
            tracker=Tracker(folder, plan.world),
            folder=folder,
            timeout=timeout,
        )
        _run(made, base_env, python, tell or (lambda *_: None))
        yield made
    finally:
        stubborn = process.sweep()
        left = [f"process {pid}" for pid in stubborn]
        if made is not None:
            release_locks(made.tracker.ranks)
        left += evidence.sweep_shared_memory(before, port)
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            # a rank that was just killed may have been writing
            time.sleep(0.2)
            shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            left.append(str(folder))
        if made is not None:
            made.leftovers = tuple(left)


def release_locks(ranks: Sequence[Progress]) -> None:
    """Removes the locks of builds that ended with the ranks; the next job would wait for them."""
    here = platform.node()
    for progress in ranks:
        if not progress.events or progress.ended("build-ops"):
            continue
        if progress.events[0].data.get("host", here) != here:
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


class _Watch:
    """One look after another, until there is a reason to stop."""

    def __init__(self, made: Attempt, child: process.Child, tell: Teller) -> None:
        self.made, self.child, self.tell = made, child, tell
        self.begun = time.monotonic()
        self.building = 0.0
        self.trouble: float | None = None
        self.gone: float | None = None
        self.finished: float | None = None
        self.looked = self.begun
        self._local = platform.node()
        for progress in made.tracker.ranks:
            progress.since = self.begun

    def _look(self, now: float) -> None:
        tracker = self.made.tracker
        tracker.read(now)
        phase = self._tell_place()
        if phase == "build-ops":
            self.building += now - self.looked
        self.looked = now
        for progress in tracker.ranks:
            if progress.pid and progress.died is None and not progress.done:
                # a rank of another host has no process here, and is not dead for that
                hosts = {e.data["host"] for e in progress.events if "host" in e.data}
                local = not hosts - {self._local} and (hosts or self.made.plan.hostfile is None)
                if local and not evidence.is_alive(progress.pid):
                    # its last lines may have come between the two looks
                    tracker.read(now)
                    if not progress.done:
                        progress.died = now

    def _tell_place(self) -> str:
        """Tells where the slowest rank is; its phase."""
        slowest = min(
            (progress for progress in self.made.tracker.ranks if not progress.done),
            key=lambda progress: (PHASES.index(progress.phase), progress.step),
            default=None,
        )
        if slowest is None:
            self.tell("teardown", "", None)
            return "teardown"
        phase = slowest.phase
        if phase == "build-ops":
            self.tell(phase, f"{slowest.place()}; the first build takes minutes", None)
        elif phase == "steps":
            steps = self.made.plan.job["steps"]
            self.tell(phase, f"step {slowest.step} of {steps}", slowest.step / steps)
        else:
            self.tell(phase, "", None)
        return phase

    def reason(self) -> str | None:
        """Why to stop now, None to go on."""
        self.made.returncode = self.child.follow(TICK)
        now = time.monotonic()
        (self.made.folder / "alive").touch()
        self._look(now)
        tracker = self.made.tracker
        if self.made.returncode is not None:
            return self._after_launcher(now)
        failed = any(progress.failure for progress in tracker.ranks)
        died = any(progress.died is not None for progress in tracker.ranks)
        if failed or died:
            self.trouble = self.trouble or now
            if now > self.trouble + NOTICE_SECONDS:
                return "rank-failed" if failed else "rank-died"
            return None
        late = tracker.overdue(now)
        if late:
            self.made.overdue = tuple(progress.rank for progress in late)
            return "hang"
        if tracker.all_done:
            self.finished = self.finished or now
            return "hang" if now - self.finished > DEADLINES["teardown"] else None
        if now - self.begun - self.building > self.made.timeout:
            self.made.overdue = tuple(p.rank for p in tracker.ranks if not p.done)
            return "timeout"
        return None

    def _after_launcher(self, now: float) -> str | None:
        """The launcher has ended; its status proves nothing, so the ranks are looked at."""
        tracker = self.made.tracker
        open_ranks = [progress for progress in tracker.ranks if not progress.done]
        if not open_ranks:
            return "ended"
        self.gone = self.gone or now
        if any(progress.failure for progress in tracker.ranks):
            return "rank-failed"
        if any(p.died is not None for p in open_ranks):
            # a launcher that has ended because a rank died; ranks outlive one that was killed
            return "rank-died"
        alive = [p for p in open_ranks if p.pid and p.died is None]
        if alive and now < self.gone + ORPHAN_SECONDS:
            return None
        if alive:
            self.made.orphans = tuple(progress.rank for progress in alive)
            return "launcher-gone"
        if any(progress.events for progress in open_ranks):
            return "rank-died"
        return "not-started"


def _run(made: Attempt, base_env: Mapping[str, str], python: str, tell: Teller) -> None:
    begun = time.monotonic()
    kernel = evidence.Kernel()
    log = made.folder / "launcher.log"
    child: process.Child | None = None
    try:
        with log.open("ab", buffering=0) as stream:

            def write(chunk: bytes) -> None:
                stream.write(chunk)

            child = process.Child(
                made.argv,
                env={**base_env, **made.env},
                on_stdout=write,
                on_stderr=write,
            )
            watch = _Watch(made, child, tell)
            while (reason := watch.reason()) is None:
                pass
            made.reason = reason
            if reason in ("hang", "timeout", "rank-died", "launcher-gone"):
                pids = {
                    progress.rank: progress.pid
                    for progress in made.tracker.ranks
                    if progress.pid and not progress.done and evidence.is_alive(progress.pid)
                }
                made.stacks = evidence.stacks(made.folder, pids, python)
            child.wait(0.0)
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
        made.kernel = kernel.killed(p.pid for p in made.tracker.ranks if p.pid)
        kernel.close()
        made.launcher_tail = evidence.tail(log)
        made.tails = {
            progress.rank: evidence.tail(made.folder / f"rank-{progress.rank}.log")
            for progress in made.tracker.ranks
        }
        made.seconds = time.monotonic() - begun


def culprit(ranks: list[Progress], stacks: Mapping[int, tuple[str, ...]]) -> Progress | None:
    """The rank that the others wait for: the least advanced, else the one in no collective."""
    open_ranks = [progress for progress in ranks if not progress.done]
    if not open_ranks:
        return None
    least = min(PHASES.index(progress.phase) for progress in open_ranks)
    behind = [progress for progress in open_ranks if PHASES.index(progress.phase) == least]
    if len(behind) < len(open_ranks):
        return behind[0]
    waiting = ("distributed_c10d", "deepspeed/comm", "c10d_logger", "distributed/")
    for progress in behind:
        text = "\n".join(stacks.get(progress.rank, ())[:12])
        if text and not any(word in text for word in waiting):
            return progress
    return None
