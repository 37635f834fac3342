"""Requests a dump of torch's flight recorder from each rank while the job hangs.

NCCL's monitor thread polls a named pipe once a second. If it reads a request, it writes its dump
and training continues. torch creates the pipe as PREFIX + rank + `.pipe`, and a process dies if it
cannot create it. The prefix is therefore in `/tmp`, which every node has, not in the run's folder.
torch 2.9 creates the pipe only if `TORCH_NCCL_TRACE_BUFFER_SIZE` is set, and warns about that
variable; no dump is requested there.
Source: `ProcessGroupNCCL.hpp` (DumpPipe) and `ProcessGroupNCCL.cpp` (HeartbeatMonitor) of torch
2.4 to 2.13, read 2026-11; tried with 2.9.1.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dsdoctor import files
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.command_tables import STARTERS

PIPES = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
#: In the folder of a run, with the names that torch's own analyzer expects.
FOLDER = "flight-recorder"
DUMP = "nccl_trace_rank_"
#: How long the ranks may take for their dumps: the monitor polls once a second, and resolving the
#: symbols of a stack took 5 s on a busy machine.
ANSWER_SECONDS = 30.0
#: After this time, torch has opened the pipe that it created.
OPENED_SECONDS = 60.0
_PLACE = Path("/tmp")  # noqa: S108  # see above; the name is not known beforehand


def pipe_prefix(command: Sequence[str]) -> str:
    """The prefix of the pipes that the ranks on this host create; "" = none."""
    if sys.platform != "linux" or not os.access(_PLACE, os.W_OK):
        return ""
    # they start ranks on other nodes, where nothing would remove the pipes
    if parse_command(tuple(command)).launcher in STARTERS:
        return ""
    return str(_PLACE / f"dsdoctor-{secrets.token_hex(8)}-rank-")


def sweep() -> None:
    """Removes the pipes of this user's runs that were killed before they could remove them.

    A running rank reads its pipe, so opening the pipe for writing succeeds.
    """
    for path in _PLACE.glob("dsdoctor-*-rank-*.pipe"):
        with contextlib.suppress(OSError):
            row = path.lstat()
            if not stat.S_ISFIFO(row.st_mode) or row.st_uid != os.geteuid():
                continue
            if time.time() - row.st_mtime < OPENED_SECONDS:
                continue
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
            except OSError as error:
                if error.errno == errno.ENXIO:  # no rank reads it
                    files.remove(path)


def _pipes(prefix: str) -> dict[int, Path]:
    """Rank to its pipe."""
    found: dict[int, Path] = {}
    start = Path(prefix)
    for path in start.parent.glob(f"{start.name}*.pipe") if prefix else ():
        rank = re.fullmatch(r"(\d{1,6})\.pipe", path.name.removeprefix(start.name))
        with contextlib.suppress(OSError):
            if rank and stat.S_ISFIFO(path.lstat().st_mode):
                found[int(rank[1])] = path
    return found


def ask(prefix: str) -> list[int]:
    """Requests a dump from every rank; returns the ranks that read their pipe."""
    asked: list[int] = []
    for rank, path in sorted(_pipes(prefix).items()):
        with contextlib.suppress(OSError):  # no reader: the rank has ended
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                os.write(number, b"1")
            finally:
                os.close(number)
            asked.append(rank)
    return asked


def missing(env: Mapping[str, str], folder: Path) -> str:
    """Which ranks never started the collective that others wait in; "" = not in the dumps.

    Args:
        env: the job's environment.
        folder: of the run.
    """
    asked = ask(env.get(PIPES, ""))
    if not asked:
        return ""
    from dsdoctor.logs import flight_recorder  # noqa: PLC0415  # only if a job hangs

    found: dict[int, flight_recorder.Dump] = {}
    deadline = time.monotonic() + ANSWER_SECONDS
    while len(found) < len(asked) and time.monotonic() < deadline:
        time.sleep(0.1)
        for rank in set(asked) - set(found):
            path = folder / FOLDER / f"{DUMP}{rank}"
            with contextlib.suppress(OSError):
                data = files.read(path, limit=flight_recorder.MOST_BYTES)
                if (dump := flight_recorder.read(path.name, data)) is not None:
                    found[rank] = dump
    late = flight_recorder.missing(list(found.values()))
    return "" if late is None else str(late)


def dumps_of(folder: Path) -> list[str]:
    """Dumps that a run has stored."""
    return [str(path) for path in sorted((folder / FOLDER).glob(f"{DUMP}*")) if path.is_file()]


def forget(prefix: str) -> None:
    """Removes the pipes."""
    for path in _pipes(prefix).values():
        with contextlib.suppress(OSError):
            files.remove(path)
