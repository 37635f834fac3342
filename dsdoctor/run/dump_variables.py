"""Variables that make a job dump its state before a hang or crash."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dsdoctor.run.flight import DUMP, FOLDER, PIPES


def announced(
    folder: Path, env: Mapping[str, str], torch: str | None, pipes: str = ""
) -> dict[str, str]:
    """Variables that enable dumps and change no result; values that the user set are not changed.

    Torch 2.9 renamed the flight recorder's variables and warns of the old names
    (`ProcessGroupNCCL.hpp` and `FlightRecorder.hpp` of torch 2.1 to 2.15, read 2026-11).

    Args:
        folder: of the run.
        env: the job's environment.
        torch: version of torch there; None = not known.
        pipes: prefix of the pipes on which ranks wait for a dump request; "" = none.
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
