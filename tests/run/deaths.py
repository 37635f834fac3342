"""Ways in which a job of two ranks dies, how each is brought about, and what must be said of it.

`test_deaths.py` and `benchmarks/run_deaths.py` run them under each launcher.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.run.support import RUN, ended_first, environment, launch, running, spoken

LAUNCHERS = ("deepspeed", "torchrun", "accelerate", "python")
DEATHS = ("key", "kill", "memory", "hang", "nan", "disk", "ctrl-c", "term")
#: What names the cause of a death, where it has a condition.
CAUSES = {
    "kill": "rank-killed",
    "memory": "host-oom-killed",
    "disk": "disk-full",
    "ctrl-c": "interrupted-by-user",
}
#: Two ranks of an engine and their launcher take 1.2 GiB; what is left fills within seconds.
MEMORY_LIMIT = 2 << 30
DISK_LIMIT = "4m"
_OPTIONS = ("--preflight", "off", "--every", "0.2s")


@dataclasses.dataclass(frozen=True)
class Ended:
    """A run that has ended.

    Attributes:
        status: of `dsdoctor run`.
        out, err: what was printed; on a terminal all of it is in `err`.
        record: `run.json`.
    """

    status: int
    out: str
    err: str
    record: dict[str, Any]

    @property
    def said(self) -> list[str]:
        """Lines of dsdoctor."""
        lines = [line.rstrip("\r") for line in self.err.split("\n")]
        return spoken("\n".join(lines))

    @property
    def cause(self) -> str:
        """Its line about the cause, without the name of the folder."""
        rows = [line for line in self.said if line.startswith("dsdoctor: cause: ")]
        return rows[0].removeprefix("dsdoctor: cause: ") if rows else ""


@contextmanager
def memory_group(most: int = MEMORY_LIMIT) -> Iterator[Path]:
    """A control group with a limit in bytes; needs root.

    Raises:
        OSError: none can be made here.
    """
    base = Path("/sys/fs/cgroup")
    old = (base / "memory").is_dir()
    folder = base / ("memory" if old else "") / f"dsdoctor-test-{os.getpid()}"
    folder.mkdir()
    try:
        limit = folder / ("memory.limit_in_bytes" if old else "memory.max")
        limit.write_text(str(most))
        yield folder
    finally:
        folder.rmdir()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 4 MiB; needs root.

    Raises:
        CalledProcessError: none can be mounted here.
    """
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_LIMIT}", "tmpfs", str(folder)]
    subprocess.run(words, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def die(how: str, launcher: str, folder: Path, port: str, job: str) -> Ended:
    """Runs the job to its end under `dsdoctor run`."""
    command = [*launch(launcher, folder, port), job, how]
    if how == "memory":
        with memory_group() as group:
            enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
            return _plain(folder, ["sh", "-c", enter, "sh", *RUN, *_OPTIONS, "--", *command])
    if how == "disk":
        with small_disk(folder / "disk") as disk:
            command += ["--output_dir", str(disk / "out")]
            return _plain(folder, [*RUN, *_OPTIONS, "--", *command])
    if how == "ctrl-c":
        return _interrupted(folder, [*RUN, *_OPTIONS, "--", *command])
    if how == "term":
        return _ended_by_term(folder, [*command, "--output_dir", str(folder / "out")])
    options = ("--hang-after", "4s", "--on-hang", "stop") if how == "hang" else ()
    return _plain(folder, [*RUN, *_OPTIONS, *options, "--", *command])


def _record(folder: Path) -> dict[str, Any]:
    (path,) = (folder / "runs").glob("*/run.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _plain(folder: Path, words: list[str]) -> Ended:
    done = subprocess.run(
        words, env=environment(folder), capture_output=True, text=True, check=False, timeout=1000,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr, _record(folder))


def _interrupted(folder: Path, words: list[str]) -> Ended:
    """Ctrl-C on a terminal, once both ranks train."""
    outer, inner = pty.openpty()
    with subprocess.Popen(
        words, stdin=inner, stdout=inner, stderr=inner, env=environment(folder),
        preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        start_new_session=True,
    ) as child:  # fmt: skip
        os.close(inner)
        seen = b""
        while not (b"rank 0 did step 1" in seen and b"rank 1 did step 1" in seen):
            seen += os.read(outer, 4096)
        os.write(outer, b"\x03")
        while b"saved in" not in seen and b"done in" not in seen:
            seen += os.read(outer, 65536)
        status = child.wait(500)
    os.close(outer)
    return Ended(status, "", seen.decode("utf-8", "replace"), _record(folder))


def _ended_by_term(folder: Path, command: list[str]) -> Ended:
    """SIGTERM to dsdoctor, once both ranks train."""
    with running(folder, "--", *command) as child:
        assert child.stdout is not None
        seen = ""
        while not ("rank 0 did step 1" in seen and "rank 1 did step 1" in seen):
            line = child.stdout.readline()
            assert line, f"the job has ended: {seen}"
            seen += line
        os.kill(child.pid, signal.SIGTERM)
        out, err = child.communicate(timeout=500)
    return Ended(child.returncode, seen + out, err, _record(folder))


def wrong(how: str, ended: Ended) -> list[str]:
    """What was not seen or said of a death; empty = everything was."""
    found = ended.record
    diagnosis = found["diagnosis"] or {}
    causes = [cause["condition"] for cause in diagnosis.get("causes", ())]
    checks = {"at most ten lines": len(ended.said) <= 10 + len(found["notices"])}
    if how == "nan":
        keys = [notice["key"] for notice in found["notices"]]
        checks["status 0"] = ended.status == 0
        checks["one notice about the loss"] = keys.count("loss-nan") == 1
    elif how == "term":
        saved = all(f"rank {rank} has saved" in ended.out for rank in (0, 1))
        checks["SIGTERM is noted"] = "SIGTERM" in {sent["name"] for sent in found["signals"]}
        # DeepSpeed's launcher may have the time to say that it was ended so
        checks["no other cause is named"] = causes in ([], ["launcher-killed"])
        checks["what was saved is known"] = bool(found["checkpoint"]) or not saved
        if ended.status:
            checks["it is said"] = "SIGTERM" in ended.cause and "from outside" in ended.cause
    else:
        checks["not status 0"] = ended.status != 0
    if how in CAUSES:
        checks[f"cause {CAUSES[how]}"] = causes[:1] == [CAUSES[how]]
        checks["it is said"] = ended.cause.startswith(f"{CAUSES[how]}: ")
    if how == "key":
        checks["the exception"] = (diagnosis.get("first_error") or {}).get("type") == "KeyError"
        checks["it is said"] = "KeyError: 'missing'" in ended.err
    if how in ("kill", "memory"):
        checks["rank 1 ended first"] = ended_first(found, 1)
    if how == "hang":
        checks["hang"] = found["hang"].startswith("no output and no work for")
        checks["the rank that is waited for"] = "load_next_batch" in found["hang"]
        checks["it is said"] = ended.cause.startswith("the job hung: no output")
    if how == "ctrl-c":
        checks["both ranks have ended"] = {end["rank"] for end in found["rank_ends"]} == {0, 1}
    return [what for what, holds in checks.items() if not holds]
