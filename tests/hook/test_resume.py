"""When Slurm's health program may put a node that it drained back into service."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.hook import health, rundir
from dsdoctor.hook.decide import Decision
from dsdoctor.hook.request import Request


@pytest.mark.parametrize(("listed", "resumed"), [(["0"], False), (["0", "1"], True), ([], False)])
def test_a_node_without_a_gpu_of_the_blocked_job_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: list[str], resumed: bool
) -> None:
    """The node alone is healthy with one GPU less, and the next job would drain it once more."""
    folder = rundir.RunFolder(tmp_path)
    this_boot = {"boot_id": rundir.boot_id()}
    folder.stamp("n1", {**this_boot, "gpus": {"0": "GPU-a", "1": "1"}})
    folder.write(rundir.NODE_FILE, {**this_boot, "uuids": {n: f"GPU-{n}" for n in listed}})
    calls: list[str] = []

    def scontrol(*words: str) -> str:
        calls.append(words[-1])
        return "NodeName=n1 State=IDLE+DRAIN Reason=dsdoctor: DSD616 x [root@2026-01-01T01:02:03]"

    monkeypatch.setattr(health, "_scontrol", scontrol)
    assert health.act(Request("slurm-health"), Decision(verdict="healthy"), folder, "n1") == 0
    assert ("state=resume" in calls) == resumed
