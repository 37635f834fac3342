"""The hooks under a real Slurm: what drains, what does not, what the user reads.

Over 400 lines because the tests share one cluster, which takes seconds to start.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import scenarios
from tests.slurm.cluster import MARKS, NODES, Cluster
from tests.support.folders import let_others_in

pytestmark = MARKS


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    # munged wants to walk to its socket, and jobs of others to their output
    let_others_in(made.folder)
    for node in NODES:
        (made.folder / node).mkdir()
        made.machine(node, healthy())
    made.install()
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    for node in NODES:
        running.machine(node, healthy())
    running.install()
    if running.health_on or running.nohold or running.epilog_on or not running.advised:
        running.health_on = running.nohold = running.epilog_on = False
        running.advised = True
        running.configure()
    running.resume()


def healthy() -> Any:
    return copy.deepcopy(scenarios.rtx_3090_x2_nvlink())


def broken(gpu: int = 1) -> Any:
    scenario = healthy()
    scenario["fail"] = {f"*@{gpu}": 15}  # NVML_ERROR_GPU_IS_LOST
    return scenario


def verdict(cluster: Cluster, node: str, job: str) -> dict[str, Any]:
    file = cluster.folder / node / "run" / f"job.{node}.{job}.json"
    cluster.wait(file.exists, f"the prolog of job {job}")
    found = json.loads(file.read_text())
    assert isinstance(found, dict)
    return found


def drained(cluster: Cluster, node: str) -> bool:
    return "DRAIN" in cluster.state(node)[0]


def test_a_job_runs_when_the_prolog_passes(cluster: Cluster) -> None:
    done = cluster.srun("-N2", "--gres=gpu:2", "sh", "-c", "echo ran on $SLURMD_NODENAME")
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if "ran on" in line) == [
        "ran on n1",
        "ran on n2",
    ]
    assert cluster.state("n1")[1] == ""


def test_the_gpus_of_the_job_are_judged_and_no_others(cluster: Cluster) -> None:
    cluster.machine("n1", broken(gpu=1))
    end = cluster.folder / "first-may-end"
    holds = f"until [ -e {end} ]; do sleep 0.1; done"
    one = cluster.submit("-w", "n1", "--gres=gpu:1", "-n1", command=holds)
    found = verdict(cluster, "n1", one)
    assert list(found["gpus"]) == ["0"]
    assert found["gpus"]["0"].startswith("GPU-")
    assert found["decision"] == "pass"
    two = cluster.submit("-w", "n1", "--gres=gpu:1", "-n1", command="echo done")
    cluster.wait(lambda: drained(cluster, "n1"), "the second GPU is the faulty one")
    found = verdict(cluster, "n1", two)
    assert found["decision"] == "block"
    assert found["findings"][0]["condition"] == "gpu-lost"
    end.touch()


@pytest.mark.parametrize("nohold", [False, True])
def test_a_faulty_node_drains_and_the_job_is_requeued(cluster: Cluster, nohold: bool) -> None:
    cluster.nohold = nohold
    cluster.configure()
    cluster.machine("n1", broken())
    job = cluster.submit("-w", "n1", "--gres=gpu:2", command="echo done")
    cluster.wait(lambda: drained(cluster, "n1"), "drained")
    cluster.wait(lambda: cluster.job(job)["JobState"] == "PENDING", "requeued")
    found = cluster.job(job)
    assert found["Restarts"] == "1"
    held = found["Reason"] == "launch_failed_requeued_held"
    assert held is not nohold, found["Reason"]
    assert cluster.state("n1")[1] == "Prolog error"
    stamp = json.loads((cluster.folder / "n1" / "run" / "blocked.n1.json").read_text())
    assert (stamp["job"], stamp["node"]) == (job, "n1")
    assert "gpu-lost" in cluster.log("n1")


def test_without_the_flags_the_prolog_waits_for_the_first_step(cluster: Cluster) -> None:
    """Neither PrologFlags nor PrologEpilogTimeout: the job has begun before its node is judged."""
    cluster.advised = False
    cluster.configure()
    cluster.machine("n1", broken())
    run = cluster.folder / "n1" / "run"
    before = set(run.glob("job.n1.*"))
    allocated = cluster.try_run("salloc", "-w", "n1", "--gres=gpu:2", "true")
    assert allocated.returncode == 0, allocated.stderr
    assert set(run.glob("job.n1.*")) == before, "a job without a step was judged"
    assert not drained(cluster, "n1")
    job = cluster.submit("-w", "n1", "--gres=gpu:2", command="echo done")
    cluster.wait(lambda: drained(cluster, "n1"), "drained at the first step")
    assert verdict(cluster, "n1", job)["decision"] == "block"


def test_the_health_program_gives_the_drain_our_reason_and_undoes_it(cluster: Cluster) -> None:
    cluster.machine("n1", broken())
    cluster.submit("-w", "n1", "--gres=gpu:2")
    cluster.wait(lambda: cluster.state("n1")[1] == "Prolog error", "drained by slurmd")
    cluster.health_on = True
    cluster.configure()
    cluster.wait(
        lambda: cluster.state("n1")[1].startswith("dsdoctor: DSD601 gpu-lost"), "our reason"
    )
    assert drained(cluster, "n1")
    cluster.run("scancel", "--user=root")
    cluster.machine("n1", healthy())
    cluster.wait(lambda: not drained(cluster, "n1"), "resumed")


def test_the_epilog_drains_for_a_process_that_the_job_left_on_a_gpu(cluster: Cluster) -> None:
    """It has left its session, as a container engine's does, so that Slurm does not end it."""
    cluster.install("--no-job-comment")
    cluster.install(target="epilog")
    cluster.epilog_on = cluster.health_on = True
    pidfile = cluster.folder / "left.pid"
    scenario = healthy()
    command = (
        f"setsid sh -c 'echo $$ >{pidfile}.new; mv {pidfile}.new {pidfile}; exec sleep 600' & "
        f"until [ -e {cluster.folder}/listed ]; do sleep 0.1; done"
    )
    job = cluster.submit("-w", "n1", "--gres=gpu:2", command=command)
    cluster.wait(pidfile.exists, "the process that will stay")
    pid = int(pidfile.read_text())
    try:
        scenario["gpus"][0]["compute_processes"] = [{"pid": pid, "used_bytes": 4 << 30}]
        cluster.machine("n1", scenario)
        cluster.configure()
        (cluster.folder / "listed").touch()
        cluster.wait(lambda: drained(cluster, "n1"), "drained by the epilog")
        assert cluster.job(job)["JobState"] in ("COMPLETED", "COMPLETING")
        cluster.wait(
            lambda: cluster.state("n1")[1].startswith("dsdoctor: DSD1606 job-left-gpu-busy"),
            "our reason",
        )
        cluster.machine("n1", healthy())
        ran = health_runs(cluster, "n1")
        cluster.wait(lambda: health_runs(cluster, "n1") > ran + 1, "the health program ran twice")
        assert drained(cluster, "n1"), "resumed while the process still runs"
    finally:
        os.kill(pid, signal.SIGKILL)
    cluster.wait(lambda: not drained(cluster, "n1"), "resumed")


def health_runs(cluster: Cluster, node: str) -> int:
    rows = cluster.status(node)
    return sum(row["ran"] for row in rows if row["hook"] == "slurm-health")


def test_the_epilog_only_notes_files_in_shm(cluster: Cluster) -> None:
    cluster.install(target="epilog")
    cluster.epilog_on = True
    cluster.configure()
    file = Path(f"/dev/shm/psm_dsdoctor_test_{os.getpid()}")
    try:
        job = cluster.submit("-w", "n1", command=f"head -c 2000000 /dev/zero >{file}")
        cluster.wait(lambda: noted(cluster, "n1") == {"job-left-shm-files": 1}, "noted")
        assert not drained(cluster, "n1")
        assert not (cluster.folder / "n1" / "run" / f"job.n1.{job}.json").exists()
    finally:
        file.unlink(missing_ok=True)


def noted(cluster: Cluster, node: str) -> dict[str, int]:
    rows = [row for row in cluster.status(node) if row["hook"] == "slurm-epilog"]
    return rows[0]["noted"] if rows else {}


def test_an_epilog_without_dsdoctor_drains_nothing(cluster: Cluster) -> None:
    cluster.install(target="epilog")
    cluster.delete_dsdoctor()
    cluster.epilog_on = True
    cluster.configure()
    runs_on_n1(cluster)
    cluster.wait(
        lambda: unjudged(cluster, "n1", hook="slurm-epilog") == 1, "the epilog was let pass"
    )
    assert not drained(cluster, "n1")


def test_the_health_program_drains_and_resumes_only_its_own(cluster: Cluster) -> None:
    cluster.run("scontrol", "update", "nodename=n2", "state=drain", "reason=disk swap")
    cluster.machine("n1", broken())
    cluster.health_on = True
    cluster.configure()
    cluster.wait(lambda: drained(cluster, "n1"), "drained by the health program")
    assert cluster.state("n1")[1].startswith("dsdoctor: DSD601")
    cluster.machine("n1", healthy())
    cluster.wait(lambda: not drained(cluster, "n1"), "resumed")
    assert drained(cluster, "n2")
    assert cluster.state("n2")[1] == "disk swap"


def test_reason_from_prolog(cluster: Cluster) -> None:
    cluster.install("--reason-from-prolog")
    cluster.machine("n1", broken())
    cluster.submit("-w", "n1", "--gres=gpu:2")
    cluster.wait(lambda: drained(cluster, "n1"), "drained")
    cluster.wait(lambda: cluster.state("n1")[1].startswith("dsdoctor: DSD601"), "our reason")


def test_the_user_of_a_requeued_job_reads_why(cluster: Cluster) -> None:
    cluster.machine("n1", broken())
    job = cluster.submit("-w", "n1", "--gres=gpu:2", command="echo it runs")
    cluster.wait(lambda: drained(cluster, "n1"), "drained")
    cluster.wait(lambda: cluster.job(job)["JobState"] == "PENDING", "requeued")
    shown = cluster.run("scontrol", "show", "job", job)
    assert "AdminComment=dsdoctor: n1: DSD601 gpu-lost" in shown
    cluster.run("scontrol", "update", f"jobid={job}", "reqnodelist=n2")
    # Slurm holds a requeued job back for two minutes, while a node may still know its credential
    cluster.run("scontrol", "update", f"jobid={job}", "starttime=now")
    cluster.run("scontrol", "release", job)
    out = cluster.folder / f"job-{job}.out"
    cluster.wait(lambda: out.exists() and "it runs" in out.read_text(), "started again", 200)
    first = out.read_text().splitlines()[0]
    assert first.startswith("dsdoctor: this job was requeued: n1: DSD601 gpu-lost: ")


def runs_on_n1(cluster: Cluster) -> None:
    done = cluster.srun("-w", "n1", "--gres=gpu:2", "echo", "it runs")
    assert "it runs" in done.stdout, done.stderr
    assert not drained(cluster, "n1")


def causes(folder: Path) -> set[str]:
    return {entry.name for entry in (folder / "fail-open").iterdir()}


def test_a_hanging_probe_does_not_drain(cluster: Cluster) -> None:
    scenario = healthy()
    scenario["hang"] = {"nvmlInit": 12}
    scenario["hang_deaf"] = 1
    cluster.install("--budget", "3")
    cluster.machine("n1", scenario)
    runs_on_n1(cluster)
    # on a loaded machine the worker has not even asked the driver by then
    given = causes(cluster.folder / "n1" / "run")
    assert given & {"nvml-slow", "timeout", "wrapper-timeout"}
    # the worker was left behind; when the driver answers at last it ends, and frees its lock
    cluster.wait(lambda: lock_is_free(cluster.folder / "n1" / "run"), "the worker's end")


def lock_is_free(run: Path) -> bool:
    with (run / "lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def test_a_crash_of_dsdoctor_does_not_drain(cluster: Cluster) -> None:
    cluster.machine("n1", broken())
    snapshot = cluster.folder / "n1" / "run" / "node-snapshot.json"
    snapshot.unlink(missing_ok=True)
    snapshot.mkdir(parents=True)  # the worker cannot write it
    try:
        runs_on_n1(cluster)
    finally:
        snapshot.rmdir()
    assert "crash" in causes(cluster.folder / "n1" / "run")


def test_a_mistake_in_the_configuration_changes_no_verdict(cluster: Cluster) -> None:
    """It drains no healthy node, and lets no faulty one pass."""
    config = cluster.folder / "mistake.toml"
    config.write_text("[limits.memlock-low]\nno_such = 1\n[hook]\nmax_age = 0\ndry_run = 'no'\n")
    cluster.machine("n1", healthy(), DSDOCTOR_CONFIG=str(config))
    runs_on_n1(cluster)
    cluster.machine("n1", broken(), DSDOCTOR_CONFIG=str(config))
    job = cluster.submit("-w", "n1", "--gres=gpu:2", "-n1", command="echo done")
    cluster.wait(lambda: drained(cluster, "n1"), "a GPU is lost")
    problems = " ".join(verdict(cluster, "n1", job)["problems"])
    assert "`no_such` in `[limits.memlock-low]`" in problems
    assert '`dry_run = "no"`' in problems


def test_a_missing_interpreter_does_not_drain(cluster: Cluster) -> None:
    """Each job that was let pass is in the log of the gate, whatever syslog has heard."""
    cluster.delete_dsdoctor()
    cluster.machine("n1", broken())
    before = unjudged(cluster, "n1")
    for _ in range(3):
        runs_on_n1(cluster)
    assert "no-interpreter" in causes(cluster.folder / "n1" / "run")
    assert unjudged(cluster, "n1") - before == 3


def unjudged(
    cluster: Cluster, node: str, cause: str = "no-interpreter", hook: str = "slurm-prolog"
) -> int:
    runs = cluster.status(node)
    return sum(row["unjudged"].get(cause, 0) for row in runs if row["hook"] == hook)


def test_a_full_disk_does_not_drain(cluster: Cluster) -> None:
    disk = cluster.folder / "disk"
    disk.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "full", str(disk)], check=True
    )
    try:
        cluster.install(run_folder=disk)
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        cluster.machine("n1", broken())
        runs_on_n1(cluster)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
        disk.rmdir()


def test_the_task_prolog_reaches_the_users_output(cluster: Cluster) -> None:
    script = "echo verdict is $DSDOCTOR_VERDICT"
    env = {"DSDOCTOR_PYTHON": sys.executable, "CUDA_LAUNCH_BLOCKING": "1"}
    done = cluster.srun("-w", "n1", "--gres=gpu:2", "sh", "-c", script, **env)
    assert done.returncode == 0
    assert "dsdoctor: warning" in done.stdout, done.stdout + done.stderr
    assert "CUDA_LAUNCH_BLOCKING" in done.stdout
    assert "verdict is " in done.stdout
    assert "verdict is \n" not in done.stdout


def test_the_task_prolog_is_silent_where_no_environment_is_named(cluster: Cluster) -> None:
    """It runs before the batch script activates one; with --enforce sound jobs run as well."""
    cluster.install("--enforce")
    done = cluster.srun("-w", "n1", "--gres=gpu:1", "-c2", "echo", "it runs")
    assert (done.returncode, done.stdout) == (0, "it runs\n"), done.stderr
    job = cluster.submit("-w", "n1", command="echo it runs")
    cluster.wait(lambda: cluster.job(job)["JobState"] == "COMPLETED", "completed")
    assert (cluster.folder / f"job-{job}.out").read_text() == "it runs\n"


def test_a_task_prolog_that_breaks_does_not_end_the_task(cluster: Cluster) -> None:
    cluster.delete_dsdoctor()
    runs_on_n1(cluster)


def test_run_under_srun_records_scancel(cluster: Cluster) -> None:
    """`dsdoctor run` in a job step: who ended it, and what Slurm said of the job."""
    runs = cluster.folder / "runs"
    script = (
        f"export DSDOCTOR_RUNS={runs} XDG_STATE_HOME={cluster.folder}/state; "
        f"srun {sys.executable} -m dsdoctor run --preflight off --every 0.2s -- "
        f"sh -c 'echo step 1; touch {cluster.folder}/going; sleep 300'"
    )
    job = cluster.submit("-w", "n1", command=script)
    cluster.wait((cluster.folder / "going").exists, "the command runs")
    cluster.run("scancel", job)
    cluster.wait(lambda: cluster.job(job)["JobState"] == "CANCELLED", "cancelled")

    def record() -> dict[str, Any]:
        (folder,) = runs.iterdir()
        found = json.loads((folder / "run.json").read_text())
        assert isinstance(found, dict)
        return found

    cluster.wait(lambda: record()["ended"] is not None, "the run has ended")
    found = record()
    assert "SIGTERM" in {sent["name"] for sent in found["signals"]}, found
    assert found["status"] in (-15, 143)
    (folder,) = runs.iterdir()
    assert f"JobId={job}" in (folder / "scheduler.log").read_text()


def test_fleet_check_in_an_allocation(cluster: Cluster) -> None:
    """`fleet check --slurm` in a job of two nodes: both report, each under its own name."""
    command = f"{sys.executable} -m dsdoctor fleet check --slurm --format json --timeout 300"
    env = {"DSDOCTOR_PYTHON": sys.executable}
    done = cluster.try_run(
        "salloc", "-N2", "--gres=gpu:2", "sh", "-c", command, env=env, timeout=500
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["counts"]["silent"] == 0, report["findings"]
    assert sum(group["count"] for group in report["groups"]) == 2
    named = {group["nodes"] for group in report["groups"]}
    assert named in ({"n[1-2]"}, {"n1", "n2"})
    assert done.returncode in (0, 1, 3), done.stderr


def test_fleet_check_outside_of_an_allocation(cluster: Cluster) -> None:
    done = cluster.try_run(sys.executable, "-m", "dsdoctor", "fleet", "check", "--slurm")
    assert done.returncode == 2
    assert "salloc" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_slurm_passes_no_command_of_a_step_to_the_task_prolog(cluster: Cluster) -> None:
    """Why the gate does not judge it (docs/hook.md): the job's name is all that there is."""
    seen = cluster.folder / "n1" / "task-prolog.environment"
    script = cluster.folder / "n1" / "task-prolog.sh"
    script.write_text(f"#!/bin/sh\ntr '\\0' '\\n' </proc/self/environ >{seen}\n")
    try:
        done = cluster.srun("-w", "n1", "-c2", "/bin/echo", "word-of-the-command")
    finally:
        script.unlink()
    assert done.stdout == "word-of-the-command\n", done.stderr
    text = seen.read_text()
    assert "SLURM_STEP_ID=0\n" in text
    assert "SLURM_JOB_NAME=echo\n" in text
    assert "word-of-the-command" not in text
    assert "/bin/echo" not in text
