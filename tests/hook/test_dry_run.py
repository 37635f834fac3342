"""What a dry run reports, and what a job under Grid Engine reads."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.hook import health, outputs
from dsdoctor.hook.decide import decide, unknown
from dsdoctor.hook.request import Request

LOST: dict[str, Any] = {
    "findings": [
        {
            "id": "DSD601",
            "condition": "gpu-lost",
            "status": "fail",
            "message": "GPU 3 is lost",
            "scope": "node",
            "family": "gpu",
            "confirmed": True,
        }
    ]
}


@pytest.mark.parametrize(
    ("kind", "does"),
    [("slurm-prolog", True), ("slurm-task-prolog", False), ("npd", False), ("nagios", False)],
)
def test_what_blocks_nothing_would_not_have_blocked_either(kind: str, does: bool) -> None:
    request = Request(kind, dry_run=True)
    found = outputs.settle(request, decide(LOST, dry_run=True))
    assert found.would_block == does
    assert outputs.note(request, found, "1", "n1", 0.1)["would"] == ("gpu-lost" if does else "")


def test_a_dry_run_of_the_health_program_says_what_it_would_drain() -> None:
    found = decide(LOST, dry_run=True)
    assert health.plan(frozenset({"IDLE"}), "", "", found, None) == [("drain", found.reason)]


def test_grid_engine_adds_nothing_to_the_output_of_a_job_that_runs() -> None:
    """Its prolog writes there; seen in Son of Grid Engine 8.1.9."""
    request = Request("sge-prolog")
    assert outputs.stdout(request, decide({"findings": []}), 0.1) == ""
    assert outputs.stdout(request, unknown("timeout", "x"), 0.1) == ""
    assert "gpu-lost" in outputs.stdout(request, decide(LOST), 0.1)
