"""`dsdoctor run` in a batch job of a real Slurm: time limit, cancel, requeue without a node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import fakenvml, scenarios
from tests.slurm.cluster import MARKS, NODES, Cluster
from tests.support.folders import let_others_in

pytestmark = MARKS

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."
WAIT = "echo step 1 loss: 2.0; touch {mark}; sleep 300"
#: Dies of a GPU on the first node, ends well on the second.
BAD_NODE = "echo step 1 loss: 2.0; [ $SLURMD_NODENAME = n1 ] && {{ echo '{xid}'; exit 1; }}; exit 0"
ALWAYS = "echo step 1 loss: 2.0; echo '{xid}'; exit 1"
OWN_FAULT = "exec {python} -c 'raise KeyError(1)'"


@pytest.fixture(scope="module", name="running")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    made.advised = False
    let_others_in(made.folder)  # munged walks to its socket
    for node in NODES:
        (made.folder / node).mkdir()
        (made.folder / node / "env").write_text("")
        for name in ("prolog", "task-prolog", "health"):
            script = made.folder / node / f"{name}.sh"
            script.write_text("#!/bin/sh\nexit 0\n")
            script.chmod(0o755)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(name="cluster")
def _cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.resume()


def submit(cluster: Cluster, tmp_path: Path, command: str, *options: str) -> str:
    """A job of one node, first on n1, whose records lie in the test's own folder."""
    script = tmp_path / "job.sh"
    words = " ".join(options)
    script.write_text(
        "#!/bin/sh\n"
        f"export DSDOCTOR_RUNS={tmp_path}/runs XDG_STATE_HOME={tmp_path}/state\n"
        f"{sys.executable} -m dsdoctor run --preflight off --every 0.2s {words} -- sh -c "
        f'"$(cat {tmp_path}/command.sh)"\n'
    )
    (tmp_path / "command.sh").write_text(command)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    out = cluster.run(
        "sbatch", "--parsable", "--requeue", "--open-mode=append",
        f"--output={tmp_path}/job.out", str(script),
    )  # fmt: skip
    return out.strip().split(";")[0]


def records(tmp_path: Path) -> list[dict[str, Any]]:
    paths = sorted((tmp_path / "runs").glob("*/run.json"))
    found = [json.loads(path.read_text()) for path in paths]
    return sorted(found, key=lambda one: str(one["started"]))


def until_ended(cluster: Cluster, tmp_path: Path, count: int = 1) -> list[dict[str, Any]]:
    def ended() -> bool:
        found = records(tmp_path)
        return len(found) == count and all(one["ended"] for one in found)

    cluster.wait(ended, "the run has ended")
    return records(tmp_path)


def start_again_at_once(cluster: Cluster, job: str) -> None:
    """Slurm holds a requeued job back for two minutes."""

    def requeued() -> bool:
        found = cluster.job(job)
        return (found["JobState"], found["Restarts"]) == ("PENDING", "1")

    cluster.wait(requeued, "requeued")
    cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")


@pytest.mark.parametrize(
    ("ended_by", "cause"),
    [("EndTime=now", "job-time-limit"), ("scancel", "job-cancelled")],
)
def test_who_ended_the_job_is_named(
    cluster: Cluster, tmp_path: Path, ended_by: str, cause: str
) -> None:
    mark = tmp_path / "going"
    job = submit(cluster, tmp_path, WAIT.format(mark=mark), "--requeue", "--restarts", "3")
    cluster.wait(mark.exists, "the command runs")
    if ended_by == "scancel":
        cluster.run("scancel", job)
    else:
        cluster.run("scontrol", "update", f"JobId={job}", ended_by)
    (found,) = until_ended(cluster, tmp_path)
    assert "SIGTERM" in {sent["name"] for sent in found["signals"]}
    assert [one["condition"] for one in found["diagnosis"]["causes"]][:1] == [cause]
    assert found["requeued_for"] == ""
    cluster.wait(lambda: f"cause: {cause}" in (tmp_path / "job.out").read_text(), "it is said")


def test_a_job_goes_back_into_the_queue_without_the_node_at_fault(
    cluster: Cluster, tmp_path: Path
) -> None:
    job = submit(cluster, tmp_path, BAD_NODE.format(xid=XID), "--requeue")
    cluster.wait(lambda: cluster.job(job)["ExcNodeList"] == "n1", "n1 is excluded")
    start_again_at_once(cluster, job)
    first, second = until_ended(cluster, tmp_path, 2)
    assert first["requeued_for"] == "gpu-hardware-fault"
    assert (second["status"], second["slurm_job"]) == (0, job)
    said = (tmp_path / "job.out").read_text()
    assert f"job {job} goes back into the queue without node n1" in said


def test_the_same_cause_twice_is_not_requeued(cluster: Cluster, tmp_path: Path) -> None:
    job = submit(cluster, tmp_path, ALWAYS.format(xid=XID), "--requeue", "--restarts", "3")
    start_again_at_once(cluster, job)
    cluster.wait(lambda: cluster.job(job)["JobState"] == "FAILED", "failed")
    assert cluster.job(job)["Restarts"] == "1"
    said = (tmp_path / "job.out").read_text()
    assert f"job {job} is not requeued: it died of the same cause as before" in said


def test_a_fault_of_the_script_is_not_requeued(cluster: Cluster, tmp_path: Path) -> None:
    job = submit(cluster, tmp_path, OWN_FAULT.format(python=sys.executable), "--requeue")
    cluster.wait(lambda: cluster.job(job)["JobState"] == "FAILED", "failed")
    assert cluster.job(job)["Restarts"] == "0"


def test_srun_from_a_login_node_is_not_judged_by_that_node(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A GPU of the login node is lost; the job's nodes have their own. How it ended, Slurm says."""
    lost = scenarios.rtx_3090_x2_nvlink()
    lost["fail"] = {"*@1": 15}  # NVML_ERROR_GPU_IS_LOST
    env = {
        **cluster.env,
        **fakenvml.environment(lost, tmp_path),
        "DSDOCTOR_RUNS": str(tmp_path / "runs"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    job = ["srun", "-N1", sys.executable, "-c", "raise KeyError(1)"]
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "run", "--", *job],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,  # by its session the controller knows the job
    )
    (found,) = records(tmp_path)
    assert done.returncode == 1, done.stderr
    assert found["preflight"] != "failed"
    assert (found["elsewhere"], found["slurm_state"]) == ("srun", "FAILED")
    assert cluster.job(found["slurm_job"])["JobState"] == "FAILED"
    assert f"Slurm job {found['slurm_job']}: FAILED" in done.stderr
    assert found["gpus"] == []
    assert found["figures"]["peak_host_bytes"] is None
