"""Dumps of torch's flight recorder that were made to do harm: memory, time, terminal, and traps."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.logs import Budget, flight_recorder, read_dumps
from dsdoctor.logs.flight_recorder import Collective, Dump, missing

HEAD = b"\x80\x02}q\x00(X\x09\x00\x00\x00pg_configNX\x07\x00\x00\x00entries"
ENTRY: dict[str, Any] = {"collective_seq_id": 7, "process_group": ["0", "x"], "state": "started"}


def dumped(entry: dict[str, Any], **more: Any) -> bytes:
    return pickle.dumps({"pg_config": {}, "rank": 0, "entries": [entry], **more})


def shared(depth: int) -> list[Any]:
    """A list that contains itself 2 ** depth times in the same few bytes."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found, found]
    return found


def pickled_deep(depth: int) -> bytes:
    """An entry whose sizes are lists within each other; pickle itself cannot write that."""
    key = b"X\x0b\x00\x00\x00input_sizes"
    number = b"X\x11\x00\x00\x00collective_seq_idK\x07"
    return HEAD + b"](}(" + number + key + b"]" * depth + b"a" * (depth - 1) + b"ueu."


#: What each dump may cost at most, far beyond a sound one: MiB in all, and seconds of CPU time.
MEMORY_MIB, SECONDS = 512, 60
BOMBS: dict[str, Callable[[], bytes]] = {
    "a table of gigabytes": lambda: HEAD + b"]r" + struct.pack("<I", 1 << 28) + b"u.",
    "a number beyond the end": lambda: HEAD + b"X\xff\xff\xff\xffu.",
    "millions of lists": lambda: HEAD + b"](" + b"]" * (60 << 20) + b"eu.",
    "millions of marks": lambda: HEAD + b"(" * (60 << 20) + b".",
    "millions of lists in JSON": lambda: b'{"entries": [' + b"[]," * (20 << 20) + b"1]}",
    "sizes that contain themselves": lambda: dumped({**ENTRY, "input_sizes": shared(60)}),
    "a name that contains itself": lambda: dumped({**ENTRY, "profiling_name": shared(60)}),
    "sizes nested deeply": lambda: pickled_deep(100_000),
    "a rank of 600 digits": lambda: dumped(ENTRY, rank=10**600),
    "a number of 600 digits": lambda: dumped({**ENTRY, "collective_seq_id": 10**600}),
    "one stack a million times": lambda: pickle.dumps(
        {
            "pg_config": {},
            "entries": [{**ENTRY, "frames": [{"filename": "f" * 100_000}] * 1000}] * 1_000_000,
        }
    ),
}
JUDGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30,) * 2)  # a lower one would hide what was asked for
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)
from dsdoctor.logs import flight_recorder
data = open(sys.argv[1], "rb").read()
found = flight_recorder.read("trace_0", data)
shown = 0
if found is not None:
    other = flight_recorder.Dump(1, tuple(one._replace(number=1) for one in found.collectives))
    shown = len(str(flight_recorder.missing([found, other])))
# the peak of `getrusage` also contains that of the process which forked this one
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(shown, int(peak) >> 10)
"""


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_dump_costs_neither_memory_nor_time(tmp_path: Path, bomb: str) -> None:
    path = tmp_path / "trace_0"
    path.write_bytes(BOMBS[bomb]())
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(path), str(SECONDS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-500:]
    shown, peak = map(int, done.stdout.split())
    assert peak < MEMORY_MIB
    assert shown < 5000, "what is shown has a bound"


def test_many_ranks_that_wait_are_judged_in_linear_time() -> None:
    """1,000 ranks that wait in 300 collectives each, and never in another's."""
    row = Collective("g", 1, "all_reduce", "[]", "[]", "started", "")
    dumps = [
        Dump(rank, tuple(row._replace(number=number) for number in range(300)))
        for rank in range(1000)
    ]
    begun = time.process_time()
    assert missing(dumps) is None
    assert time.process_time() - begun < 20


def test_dumps_beyond_the_limit_are_not_read_and_named(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"trace_{rank}").write_bytes(dumped(ENTRY))
    assert len(read_dumps([str(tmp_path)], Budget())) == 3
    over = Budget(seconds=-1.0)
    assert read_dumps([str(tmp_path)], over) == {}
    assert over.left_out == [f"dumps of the flight recorder in `{tmp_path}` (the limit of -1 s)"]


def test_a_pipe_in_place_of_a_dump_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trace_0")
    (tmp_path / "trace_1").write_bytes(dumped(ENTRY))
    assert list(read_dumps([str(tmp_path)], Budget())) == [str(tmp_path / "trace_1")]
    assert read_dumps([str(tmp_path / "trace_0")], Budget()) == {}


def test_what_is_not_over_is_kept_and_what_is_over_is_not() -> None:
    """Memory for thousands of ranks: of 2,000 collectives one counts."""
    rows = [{**ENTRY, "collective_seq_id": n, "state": "completed"} for n in range(2000)]
    rows.append({**ENTRY, "collective_seq_id": 2000})
    rows.append({**ENTRY, "collective_seq_id": 3})  # again, and not over this time
    data = json.dumps({"pg_config": {}, "rank": 0, "entries": rows}).encode()
    found = flight_recorder.read("trace_0", data)
    assert found is not None
    assert sorted((one.number, one.state) for one in found.collectives) == [
        (3, "started"),
        (2000, "started"),
    ]
