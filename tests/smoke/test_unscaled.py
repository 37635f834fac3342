"""fp16 without ZeRO in releases of DeepSpeed that do not scale its loss: no fault of a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.smoke import verdict
from dsdoctor.smoke.attempt import Attempt
from tests.smoke.test_reference import attempt

SCALE = 65536.0


def fp16_run(folder: Path, norm: float, *, scale: float = SCALE) -> Attempt:
    """A run whose losses are those of its reference, and whose gradients had this norm."""
    made = attempt(folder, 0.0, count=1, device="Tesla T4", size=0)
    (rank,) = made.tracker.ranks
    for event in rank.events:
        if event.phase == "steps" and event.state == "ok":
            event.data["gradients"] = {"norm": norm, "scale": scale}
        elif event.phase == "teardown" and event.state == "ok":
            event.data["reference_norm"] = 1.5
    return made


def test_gradients_of_a_loss_that_was_not_scaled_are_named(tmp_path: Path) -> None:
    report = verdict.report(fp16_run(tmp_path, 1.5), packs.load())
    assert report.verdict == "fail"
    (cause,) = report.causes
    assert cause.condition == "fp16-loss-unscaled"
    assert "norm of 1.5, as a single process" in cause.message
    assert "divides them by 65536" in cause.message


@pytest.mark.parametrize(
    ("norm", "scale"),
    [
        pytest.param(1.5 * SCALE, SCALE, id="scaled"),
        pytest.param(0.3 * SCALE, SCALE, id="scaled, and fp16 lost some of it"),
        pytest.param(1.5, 1.0, id="a loss scale of 1"),
    ],
)
def test_scaled_gradients_are_not(tmp_path: Path, norm: float, scale: float) -> None:
    report = verdict.report(fp16_run(tmp_path, norm, scale=scale), packs.load())
    assert (report.verdict, report.causes) == ("pass", ())
