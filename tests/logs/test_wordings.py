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
#: Logs of which a fair reader could say something else, or that lack the deciding line.
HARD: frozenset[str] = frozenset()


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


def test_share_of_causes_named() -> None:
    rows = [row for row in ROWS if row["label"] != "none"]
    assert sum(map(fits, rows)) / len(rows) >= 0.8


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r["label"] == "none"], ids=lambda row: str(row["id"])
)
def test_nothing_wrong_is_left_in_peace(row: dict[str, Any]) -> None:
    if row["id"] in HARD:
        pytest.fail("a `none` log is never hard")
    assert said(row["text"]) in {"none", "user-code", "unrecognised"}
