"""Whole logs of 4 to 64 ranks with launcher noise: the first cause is named, and nothing else."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.reader import rank_of_name
from tests.support import wholelogs_more
from tests.support.wholelogs import Whole

KNOWN = signatures_of(packs.load(builtin_only=True))


@pytest.mark.parametrize(
    "whole", wholelogs_more.LOGS, ids=[one.name for one in wholelogs_more.LOGS]
)
def test_whole_log(whole: Whole) -> None:
    many = len(whole.files) > 1
    sources = [
        Source(name=name, data=text.encode(), rank=rank_of_name(name) if many else None)
        for name, text in whole.files.items()
    ]
    found = diagnose(sources, KNOWN)
    outcome = "none" if found.outcome.value == "clean" else found.outcome.value
    said = found.causes[0].condition if found.causes else outcome
    assert said in whole.right, found.summary
