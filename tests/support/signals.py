"""Sends a signal to a command at a random moment, and looks for what is left of it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dsdoctor.probes.children import guard
from tests.support.command import clean_environment, left_running

#: Command to the seconds within which the signal comes.
COMMANDS: dict[tuple[str, ...], float] = {
    ("check", "--quick"): 1.5,
    ("check", "--timeout", "40"): 6.0,
    ("snapshot", "--quick", "-o", "s.json"): 1.5,
    ("diagnose", "train.log"): 1.5,
    ("recommend", "--model", "7B", "--cpu", "2"): 1.5,
    ("fix", "--dry-run"): 3.0,
    ("fleet", "check", "--nodes", "localhost", "--timeout", "10"): 4.0,
    ("hook", "nagios"): 0.6,
    ("lint", "."): 1.5,
    ("triage", "train.log"): 1.5,
    # the job of a `run` that SIGKILL ends goes on, as it would without dsdoctor
    ("run", "--preflight", "off", "--runs-dir", "runs", "--", "sleep", "6"): 4.0,
    ("smoke", "--cpu", "2", "--config", "ds_config.json"): 12.0,
}
MISUSE = 2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


class Ended(NamedTuple):
    """How an attempt ended.

    Attributes:
        status: of the command, None if it did not end.
        left: what it left, as words.
        met: the signal came while it ran.
    """

    status: int | None
    left: list[str]
    met: bool


class Place(NamedTuple):
    """Where a command runs.

    Attributes:
        prefix: words before it.
        env: variables beside the clean ones.
        left: what still runs elsewhere, on behalf of the command.
    """

    prefix: tuple[str, ...]
    env: dict[str, str]
    left: Callable[[], list[str]]


HERE = Place((), {}, list)
#: For everything to be gone after the signal.
LIMIT_SECONDS = 100.0
CONFIG = '{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Adam", "params": {"torch_adam": true, "lr": 0.001}}}'
SHM = Path("/dev/shm")


def _segments() -> set[str]:
    """Of this user, of the kinds that torch, NCCL and DeepSpeed make, and of no living process."""
    found = set()
    for entry in SHM.iterdir():
        try:
            mine = entry.lstat().st_uid == os.getuid()
        except OSError:
            continue
        kind = entry.name.startswith(("nccl-", "torch_", "deepspeed_allreduce"))
        if mine and kind and not guard.is_mapped(str(entry)):
            found.add(entry.name)
    return found


def attempt(
    argv: tuple[str, ...],
    number: signal.Signals,
    delay: float,
    folder: Path,
    limit: float = LIMIT_SECONDS,
    place: Place = HERE,
) -> Ended:
    """Runs a command, sends the signal, and returns what is left after the limit.

    A command that SIGKILL has ended cannot clean up: its folder may stay until the next start.
    """
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    (folder / "ds_config.json").write_text(CONFIG)
    (folder / "train.log").write_text("RuntimeError: x\n" * 200_000)
    env = clean_environment(folder, TMPDIR=str(temporary)) | place.env
    before = _segments()
    # `python -m` ends with status 1 if Ctrl-C comes before our first line
    installed = Path(sys.executable).with_name("dsdoctor")
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "dsdoctor"]
    child = subprocess.Popen(
        [*place.prefix, *program, *argv],
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, error = child.communicate(timeout=delay)
        ended = True
    except subprocess.TimeoutExpired:
        ended = False
        os.kill(child.pid, number)
    deadline = time.monotonic() + limit
    if not ended:
        try:
            _, error = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return Ended(None, [f"it runs {limit:g} s after {number.name}"], met=True)
    left: list[str] = []
    while True:
        left = [f"process {line}" for line in [*left_running(folder), *place.left()]]
        left += [f"segment {name}" for name in _segments() - before if number != signal.SIGKILL]
        if number != signal.SIGKILL:
            left += [f"folder {path.name}" for path in temporary.iterdir()]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    if child.returncode == MISUSE:
        left.append(f"a command that does nothing: {error[-400:]!r}")
    # not those of Python's own start, which no program can prevent
    own = child.returncode == -signal.SIGINT or error.startswith(b"Fatal Python error: init_")
    if b"Traceback" in error and not own:
        left.append(f"traceback {error[-400:]!r}")
    return Ended(child.returncode, left, met=not ended)


def undisturbed(argv: tuple[str, ...], folder: Path, place: Place = HERE) -> float:
    """Seconds that a command takes by itself, the shorter of two."""
    found = []
    for turn in range(2):
        made = folder / f"undisturbed-{turn}"
        made.mkdir()
        begun = time.monotonic()
        attempt(argv, signal.SIGKILL, LIMIT_SECONDS, made, place=place)
        found.append(time.monotonic() - begun)
    return min(found)


def over_ssh(argv: tuple[str, ...], count: int, place: Place) -> tuple[str, ...]:
    """The command with hosts h1 … hN in place of this machine."""
    words = [f"h[1-{count}]" if word == "localhost" else word for word in argv]
    return (*words, "--ssh-options", f"-F {place.env['HOME']}/ssh_config")


def with_ranks(argv: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The command with another number of CPU ranks."""
    place = argv.index("--cpu") + 1
    return (*argv[:place], str(count), *argv[place + 1 :])


def with_extensions(place: Place, compiled: Path | None, folder: Path) -> Place:
    """The place with a copy of compiled operators: a SIGKILL leaves locks in such a folder."""
    if compiled is None:
        return place
    shutil.copytree(compiled, folder / "extensions")
    more = {"TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    return place._replace(env=place.env | more)


def moments(draw: random.Random, argv: tuple[str, ...]) -> tuple[signal.Signals, float]:
    """A signal and a moment for a command."""
    return draw.choice(SIGNALS), draw.uniform(0.02, COMMANDS[argv])
