"""Rows of `deepspeed-import-broken`."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall, DeepSpeedLive, TorchLive
from dsdoctor_checks.python import deepspeed_import_broken
from tests.checks.gpu.support import bad, worst
from tests.checks.machines import ABSENT
from tests.checks.python.support import deepspeed, deepspeed_live, torch_live

CHECK = deepspeed_import_broken.deepspeed_imports


@pytest.mark.parametrize(
    ("live", "torch", "installed", "expected"),
    [
        (deepspeed_live(), torch_live(), deepspeed(), "ok"),
        (deepspeed_live("no module"), torch_live(), deepspeed(), "fail"),
        (deepspeed_live("no torch"), torch_live(works=False), deepspeed(), "ok"),
        (deepspeed_live("no module"), torch_live(), deepspeed(None), "ok"),
    ],
)
def test_rows(
    live: DeepSpeedLive, torch: TorchLive, installed: DeepSpeedInstall, expected: str
) -> None:
    assert worst(CHECK, live, torch, installed, ABSENT) == expected


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (deepspeed_live("No module named 'torch._six'\n"), "`ImportError: No module named"),
        (deepspeed_live("SIGABRT", "signal"), "was killed by SIGABRT"),
        (deepspeed_live("hung for 120 s", "hang"), "did not finish: hung for 120 s"),
    ],
)
def test_ways_to_end_are_told_apart(live: DeepSpeedLive, words: str) -> None:
    (finding,) = bad(CHECK, live, torch_live(), deepspeed(), ABSENT)
    assert words in finding.message
