"""What a dry run reports, and what a job under Grid Engine reads."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.hook import health, outputs
from dsdoctor.hook.decide import decide, unknown
from dsdoctor.hook.request import Request, configured

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


def test_a_budget_that_the_script_does_not_wait_for_is_ignored() -> None:
    """It would end dsdoctor before its verdict, and let each job on a slow node pass."""
    by_script = Request("slurm-prolog", token="t")
    found = configured(by_script, {"budget": 20.0})
    assert found.budget == by_script.budget
    assert "--budget 20" in found.problems[0]
    assert configured(by_script, {"budget": 3.0}).budget == 3.0
    assert configured(Request("slurm-prolog"), {"budget": 20.0}).budget == 20.0


def test_the_metrics_of_the_node_are_not_written_by_its_users() -> None:
    table = {"textfile": "/var/lib/node_exporter/dsdoctor.prom"}
    assert configured(Request("slurm-prolog"), table).textfile == table["textfile"]
    assert configured(Request("slurm-task-prolog"), table).textfile is None


def test_grid_engine_adds_nothing_to_the_output_of_a_job_that_runs() -> None:
    """Its prolog writes there; seen in Son of Grid Engine 8.1.9."""
    request = Request("sge-prolog")
    assert outputs.stdout(request, decide({"findings": []}), 0.1) == ""
    assert outputs.stdout(request, unknown("timeout", "x"), 0.1) == ""
    assert "gpu-lost" in outputs.stdout(request, decide(LOST), 0.1)
