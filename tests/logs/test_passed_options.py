"""Options of a launcher that a script's own parser refused: the condition, with advice."""

from __future__ import annotations

import pytest

from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.packs import load

KNOWN = signatures_of(load(builtin_only=True))


def diagnosed(line: str) -> Diagnosis:
    text = f"usage: train.py [-h] [--lr LR]\n{line}\n"
    return diagnose([Source("a.log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--local_rank=0", 'add `parser.add_argument("--local_rank", type=int)`'),
        ("--lr 1 --local-rank=3", 'add `parser.add_argument("--local-rank", type=int)`'),
        ("--nproc_per_node 1", "`--nproc_per_node` is an option of its own"),
        ("--rdzv-backend=c10d --x", "`--rdzv-backend` is an option of its own"),
    ],
)
def test_what_to_change_is_said(arguments: str, words: str) -> None:
    found = diagnosed(f"train.py: error: unrecognized arguments: {arguments}")
    [cause] = found.causes
    assert cause.condition == "script-option-refused"
    assert words in cause.hint


@pytest.mark.parametrize("arguments", ["--local_rank 0", "--lr 1", "--rdzv"])
def test_other_options_have_no_advice(arguments: str) -> None:
    found = diagnosed(f"train.py: error: unrecognized arguments: {arguments}")
    [cause] = found.causes
    assert (cause.condition, found.explained) == ("script-option-refused", None)
    assert "its usage is in the lines above" in cause.hint
