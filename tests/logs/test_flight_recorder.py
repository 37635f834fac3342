"""Dumps of torch's flight recorder: what they show, and that none runs code."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsdoctor import packs
from dsdoctor.cli.diagnose import command
from dsdoctor.logs import diagnose_paths, flight_recorder, signatures_of


def entry(number: int, state: str, operation: str = "nccl:all_reduce") -> dict[str, Any]:
    return {
        "collective_seq_id": number,
        "process_group": ("0", "default_pg"),
        "profiling_name": operation,
        "input_sizes": [[16, 16]],
        "input_dtypes": ["Float"],
        "state": state,
        "is_p2p": False,
        "frames": [{"name": "train", "filename": "train.py", "line": 30}],
    }


def dump(rank: int, *entries: dict[str, Any]) -> dict[str, Any]:
    return {"version": "2.4", "rank": rank, "pg_config": {}, "entries": list(entries)}


AHEAD = [entry(6, "completed"), entry(7, "started")]
BEHIND = [entry(6, "completed")]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(pickle.dumps, id="pickle"),
        pytest.param(lambda found: json.dumps(found).encode(), id="JSON"),
    ],
)
def test_the_rank_that_is_missing_is_named(form: Any) -> None:
    dumps = [
        flight_recorder.read(f"trace_{rank}", form(dump(rank, *rows)))
        for rank, rows in enumerate((AHEAD, BEHIND, AHEAD))
    ]
    found = flight_recorder.missing([one for one in dumps if one is not None])
    assert found is not None
    assert (found.missing, found.waiting, found.collective.number) == ((1,), (0, 2), 7)
    assert "train.py:30 train" in str(found)


def test_ranks_that_are_level_miss_nothing() -> None:
    dumps = [flight_recorder.read(f"t_{n}", pickle.dumps(dump(n, *AHEAD))) for n in range(2)]
    assert flight_recorder.missing([one for one in dumps if one is not None]) is None


def test_what_gloo_has_retired_is_over() -> None:
    """Gloo's entries stay at `scheduled`; here rank 0 waits in 7 and rank 1 never started it."""
    over = {**entry(6, "scheduled", "gloo:all_reduce"), "retired": True}
    rows = [[over, {**entry(7, "scheduled"), "retired": False}], [over]]
    dumps = [flight_recorder.read(f"t_{n}", pickle.dumps(dump(n, *rows[n]))) for n in (0, 1)]
    found = flight_recorder.missing([one for one in dumps if one is not None])
    assert found is not None
    assert (found.missing, found.waiting, found.collective.number) == ((1,), (0,), 7)
    done = {**entry(7, "scheduled"), "retired": True}  # a rank that only sends may be ahead
    rows = [[over, done], [over]]
    dumps = [flight_recorder.read(f"t_{n}", pickle.dumps(dump(n, *rows[n]))) for n in (0, 1)]
    assert flight_recorder.missing([one for one in dumps if one is not None]) is None


class Evil:
    """What a pickle that means harm asks for."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Asks whoever loads it to make a folder."""
        return (os.mkdir, (str(self.mark),))


def test_a_pickle_runs_no_code(tmp_path: Path) -> None:
    mark = tmp_path / "owned"
    data = pickle.dumps({"entries": [Evil(mark)], "pg_config": {}})
    assert flight_recorder.read("trace_0", data) is None
    assert not mark.exists()
    pickle.loads(data)  # the pickle itself works
    assert mark.exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"{", b'{"entries": 3}', b"\x80\x04entries", b'{"entries": [[1], 7]}', b"log"],
)
def test_what_is_no_dump_is_left_alone(data: bytes) -> None:
    found = flight_recorder.read("x", data)
    assert found is None or found.collectives == ()


def test_a_folder_with_dumps_names_the_missing_rank(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text(
        "[rank0]:[E506 07:18:09.5 ProcessGroupNCCL.cpp:633] [Rank 0] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1) ran for 600012 "
        "milliseconds before timing out.\n"
    )
    for rank, rows in enumerate((AHEAD, BEHIND)):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(rank, *rows)))
    found = diagnose_paths([str(tmp_path)], signatures_of(packs.load(builtin_only=True)))
    assert found.causes[0].condition == "nccl-timeout-watchdog"
    assert "rank 1 never started collective 7" in found.causes[0].message
    assert found.files == 1
    typed = CliRunner().invoke(command, [str(tmp_path)])
    assert "rank 1 never started collective 7" in " ".join(typed.output.split())
