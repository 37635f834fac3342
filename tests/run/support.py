"""Starts `dsdoctor run` as a user does, with its records in a folder of the test's own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RUN = [sys.executable, "-m", "dsdoctor", "run"]


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DSDOCTOR_RUNS": str(folder / "runs"),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONUNBUFFERED": "1",
    }


def run(
    folder: Path,
    *words: str,
    timeout: float = 500,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The whole command; words stand behind `dsdoctor run`."""
    return subprocess.run(
        [*RUN, *words],
        env=environment(folder) | dict(env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def quick(folder: Path, *words: str, timeout: float = 500) -> subprocess.CompletedProcess[str]:
    """Without the check before the start, and sampled often."""
    split = words.index("--") if "--" in words else 0
    options, command = words[:split], words[split:] if split or "--" in words else ("--", *words)
    return run(folder, "--preflight", "off", "--every", "0.2s", *options, *command, timeout=timeout)


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command while it runs; killed with its group at the end if a test fails."""
    with subprocess.Popen(
        [*RUN, "--preflight", "off", "--every", "0.2s", *words],
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


#: What other programs on the machine may cause while a test runs.
_OF_THE_MACHINE = re.compile(r"dsdoctor: (?:host memory is |`/[^`]*` (?:has|is) )")


def spoken(stderr: str) -> list[str]:
    """What dsdoctor itself has said, without notices on memory and disks of the whole machine."""
    lines = [line for line in stderr.splitlines() if line.startswith("dsdoctor: ")]
    return [line for line in lines if not _OF_THE_MACHINE.match(line)]


def record(folder: Path) -> dict[str, Any]:
    """`run.json` of the only run."""
    (path,) = (folder / "runs").glob("*/run.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def folder_of(folder: Path) -> Path:
    (path,) = (folder / "runs").iterdir()
    return path


def sampled_ranks(folder: Path) -> set[int]:
    """Ranks that were seen while the job ran."""
    rows = (folder_of(folder) / "samples.jsonl").read_text().splitlines()
    return {rank["rank"] for row in rows for rank in json.loads(row)["ranks"]}


def ended_first(found: Mapping[str, Any], rank: int) -> bool:
    """Whether a rank ended before the others, or was seen to end together with them."""
    moments = {end["rank"]: end["time"] for end in found["rank_ends"]}
    return rank in moments and moments[rank] <= min(moments.values()) + 0.02


def wait_for(what: Any, seconds: float = 200) -> Any:
    """Waits for an event, never for a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def python(text: str) -> Sequence[str]:
    return (sys.executable, "-c", text)


#: Two ranks without a launcher: the script starts the other one.
BY_HAND = """
import os, signal, subprocess, sys
for name in (signal.SIGTERM, signal.SIGINT):
    signal.signal(name, lambda *_: None)  # the ranks decide
kids = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={**os.environ, "RANK": str(rank),
        "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": sys.argv[1]}) for rank in (0, 1)]
sys.exit(int(any([kid.wait() for kid in kids])))  # Gloo may abort the rank that is left alone
"""


def launch(launcher: str, folder: Path, port: str) -> list[str]:
    """A launcher of two ranks; the script and its arguments follow."""
    if launcher == "python":
        path = folder / "start.py"
        path.write_text(BY_HAND)
        return [sys.executable, str(path), port]
    if launcher == "deepspeed":
        return ["deepspeed", "--num_gpus", "2", "--master_port", port]
    if launcher == "accelerate":  # `--cpu` starts one process; the script uses no GPU
        return [
            "accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
            "--main_process_port", port,
        ]  # fmt: skip
    return ["torchrun", "--nproc-per-node", "2", "--master-port", port]
