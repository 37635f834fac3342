"""Variables that make a job dump what it did before it hung or crashed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dsdoctor.run.flight import DUMP, FOLDER, PIPES


def announced(
    folder: Path, env: Mapping[str, str], torch: str | None, pipes: str = ""
) -> dict[str, str]:
    """Variables that make dumps possible and change no result; what the user has set stays.

    Torch 2.9 renamed the flight recorder's variables and warns of the old names
    (`ProcessGroupNCCL.hpp` and `FlightRecorder.hpp` of torch 2.1 to 2.15, read 2026-11).

    Args:
        folder: of the run.
        env: the job's environment.
        torch: version of torch there; None = not known.
        pipes: where ranks are to listen for a request to dump; "" = nowhere.
    """
    prefix = str(folder / FOLDER / DUMP)
    numbers = [int(part) for part in re.findall(r"\d+", torch or "")[:2]]
    old = bool(numbers) and numbers < [2, 9]
    size, file = (
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
        if old
        else ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE")
    )
    wanted = {
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        size: "2000",
        file: prefix,
        "PYTHONFAULTHANDLER": "1",
    }
    if pipes:
        wanted[PIPES] = pipes
    return {name: value for name, value in wanted.items() if name not in env}
