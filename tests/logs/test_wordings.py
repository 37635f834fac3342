"""Wordings of many versions that no signature was written from, as short logs with noise.

`wordings/*.jsonl` holds, for every condition, what torch, DeepSpeed, NCCL, CUDA, compilers and
launchers of different versions print, taken from their sources; `wordings/none.jsonl` holds runs
in which nothing is wrong with the environment.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome

FOLDER = Path(__file__).parent / "wordings"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for path in sorted(FOLDER.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
SIGNATURES = signatures_of(packs.load(builtin_only=True))


def said(text: str) -> str:
    found = diagnose([Source(name="log", data=text.encode())], SIGNATURES)
    if found.outcome is Outcome.CAUSE:
        return found.causes[0].condition
    return "none" if found.outcome is Outcome.CLEAN else found.outcome.value


def fits(row: dict[str, Any]) -> bool:
    wanted = {row["label"], *row["also_ok"]}
    if row["label"] == "none":
        wanted.add("user-code")
    return said(row["text"]) in wanted


def test_the_corpus_is_large_and_even() -> None:
    counts = collections.Counter(row["label"] for row in ROWS)
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert counts.pop("none") >= 40
    assert sum(counts.values()) >= 210
    assert min(counts.values()) >= 3
    known = {row[0] for row in SIGNATURES}
    assert set(counts) <= known


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
WATCHDOG = "[E ProcessGroupNCCL.cpp:1] [Rank 5] Watchdog caught collective operation timeout: x\n"
KERNEL = "Memory cgroup out of memory: Killed process 25 (python) total-vm:1kB\n"
CODE_9 = "[ERROR] [launch.py:1:sigkill_handler] ['python'] exits with return code = -9\n"
CODE_1 = "[ERROR] [launch.py:1:sigkill_handler] ['python'] exits with return code = 1\n"
TRACE = 'Traceback (most recent call last):\n  File "/w/t.py", line 3, in f\n'
ENGINE = '  File "/x/site-packages/deepspeed/runtime/engine.py", line 1, in forward\n'
STR_INT = "TypeError: '<' not supported between instances of 'str' and 'int'\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(OOM + WATCHDOG, "gpu-oom", id="memory before a watchdog"),
        pytest.param(WATCHDOG + OOM, "gpu-oom", id="memory after a watchdog"),
        pytest.param(
            KERNEL + CODE_9, "host-oom-killed", id="a kernel's kill before an exit status"
        ),
        pytest.param(
            TRACE + "KeyError: 'x'\n" + CODE_1, "user-code", id="an exception before an exit status"
        ),
        pytest.param(
            TRACE + "ModuleNotFoundError: No module named 'my_utils'\n",
            "user-code",
            id="a module of the script's own",
        ),
        pytest.param(
            TRACE + "ModuleNotFoundError: No module named 'pandas'\n",
            "script-module-missing",
            id="a module of a package",
        ),
        pytest.param(TRACE + ENGINE + STR_INT, "unrecognised", id="a comparison within DeepSpeed"),
        pytest.param(
            "*** JOB 3 ON n1 CANCELLED AT 1 DUE TO TIME LIMIT ***\nKilled\n",
            "job-time-limit",
            id="a time limit before a kill",
        ),
        pytest.param("Bus error (core dumped)\n", "shm-too-small", id="a bus error"),
        pytest.param(
            "NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes\n" + WATCHDOG,
            "shm-too-small",
            id="shared memory before a watchdog",
        ),
        pytest.param(
            (
                "torch_extensions/py310/a.o: No space left on device\n"
                'File "/x/torch/distributed/elastic/multiprocessing/api.py", line 1\n'
            ),
            "disk-full",
            id="a full disk before a launcher's frame",
        ),
    ],
)
def test_the_first_fault_wins(text: str, wanted: str) -> None:
    assert said(text) == wanted


def test_share_of_causes_named() -> None:
    rows = [row for row in ROWS if row["label"] != "none"]
    assert sum(map(fits, rows)) / len(rows) >= 0.98


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r["label"] == "none"], ids=lambda row: str(row["id"])
)
def test_nothing_wrong_is_left_in_peace(row: dict[str, Any]) -> None:
    calm = {"none", "user-code", *row["also_ok"]}
    assert said(row["text"]) in calm
