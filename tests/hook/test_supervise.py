"""The whole hook as a process, over the fake NVML: budget, re-use, lock, fail-open, kill switch.

Over 400 lines because the tests share one machine and one way to start the hook.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.hook import gatelog
from tests.nvml import fakenvml, scenarios
from tests.support.command import clean_environment

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a shared library for Linux"),
    pytest.mark.system,
]

#: A loaded machine is slow, and what is tested here is not the speed.
PATIENT = ("--budget", "60")


@dataclasses.dataclass
class Node:
    """A machine with a fake NVML, on which hooks run as slurmd runs them."""

    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def set(self, scenario: Any) -> None:
        self.env = fakenvml.environment(scenario, self.folder)

    def hook(self, *argv: str, cwd: str = "/", **env: str) -> Any:
        if "--budget" not in argv:
            argv = (*argv, *PATIENT)
        begun = time.monotonic()
        verdict = self.folder / "verdict.json"
        verdict.unlink(missing_ok=True)
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-m",
                "dsdoctor",
                "hook",
                *argv,
                "--run-folder",
                str(self.run),
                "--json",
                str(verdict),
            ],
            env={**self.env, "SLURMD_NODENAME": "n1", **env},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            cwd=cwd,
        )
        assert "Traceback" not in done.stderr
        found = json.loads(verdict.read_text()) if verdict.exists() else {}
        return dataclasses.make_dataclass("Done", ["status", "out", "verdict", "seconds"])(
            done.returncode, done.stdout + done.stderr, found, time.monotonic() - begun
        )

    def causes(self) -> dict[str, int]:
        folder = self.run / "fail-open"
        return {f.name: f.stat().st_size for f in folder.iterdir()} if folder.is_dir() else {}

    def workers(self) -> bool:
        """Whether a process runs that has the run folder on its command line."""
        left = subprocess.run(
            ["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True
        ).stdout
        return str(self.run) in left

    def wait_for_worker(self) -> None:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline:
            if not self.workers():
                return
            time.sleep(0.1)
        raise AssertionError("a worker went on for ever")


@pytest.fixture(scope="module", autouse=True)
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A node of which one GPU of eight hangs; its worker runs beside the other tests, for 30 s."""
    made = Node(tmp_path_factory.mktemp("hanging"))
    made.set(with_fault(hang={"nvmlDeviceGetFieldValues@3": 1000}))
    first = made.hook("slurm-prolog", "--budget", "2", "--gpus", "all")
    yield made, first
    made.wait_for_worker()


@pytest.fixture
def node(tmp_path: Path) -> Any:
    made = Node(tmp_path)
    made.set(scenarios.h200_x8())
    yield made
    made.wait_for_worker()


def with_fault(**faults: Any) -> Any:
    scenario = copy.deepcopy(scenarios.h200_x8())
    scenario.update(faults)  # type: ignore[typeddict-item]
    return scenario


def test_a_healthy_node_passes(node: Node) -> None:
    done = node.hook("slurm-prolog", SLURM_JOB_GPUS="0,1", SLURM_JOB_ID="42")
    assert (done.status, done.out) == (0, "dsdoctor: ok\n")
    assert done.verdict["verdict"] == "healthy"
    assert done.verdict["job"] == "42"
    assert done.verdict["boot_id"]
    assert done.verdict["counts"]["fail"] == 0
    assert node.causes() == {}


def test_a_lost_gpu_blocks_jobs_that_use_it_and_no_others(node: Node) -> None:
    node.set(scenarios.h200_x8_lost())
    lost = node.hook("slurm-prolog", "--gpus", "all")
    assert lost.status == 1
    assert "gpu-lost" in lost.out
    index = next(
        int(word.rstrip(",:")) for word in lost.out.split() if word.rstrip(",:").isdecimal()
    )
    others = ",".join(str(number) for number in range(8) if number != index)
    mine = node.hook("slurm-prolog", SLURM_JOB_GPUS=str(index), SLURM_JOB_ID="1")
    assert mine.status == 1
    other = node.hook("slurm-prolog", SLURM_JOB_GPUS=others, SLURM_JOB_ID="2")
    assert other.status == 0, other.out
    none = node.hook("slurm-prolog", SLURM_JOB_ID="3")
    assert none.status == 0
    stamp = json.loads((node.run / "blocked.n1.json").read_text())
    assert stamp["job"] == "1"
    assert stamp["reason"].startswith("dsdoctor: DSD601")


def test_a_gpu_that_fell_off_the_bus_blocks(node: Node) -> None:
    node.set(scenarios.rtx_3090_x2_nvlink())
    done = node.hook("slurm-prolog", SLURM_JOB_GPUS="0,3", SLURM_JOB_ID="1")
    assert done.status == 1
    assert "gpu-count-unexpected" in done.out


def test_a_job_is_judged_by_uuids_and_mig_ids_too(node: Node) -> None:
    """Two GPUs cut by MIG, of which the second is lost."""
    scenario = two_mig()
    first, second = ([d["uuid"] for d in gpu["mig_devices"] if d] for gpu in scenario["gpus"])
    scenario["fail"] = {"*@1": 15}
    node.set(scenario)
    uuids = [gpu["uuid"] for gpu in scenario["gpus"]]
    for number, (selector, status) in enumerate(
        [(first[0], 0), (uuids[0], 0), ("0", 0), (second[0], 1), (uuids[1], 1), ("1", 1)]
    ):
        done = node.hook("slurm-prolog", SLURM_JOB_GPUS=selector, SLURM_JOB_ID=str(number))
        assert (done.status, selector) == (status, selector), done.out
    noted = json.loads((node.run / "job.n1.2.json").read_text())["gpus"]
    assert noted == {"0": uuids[0]}, "numbers of the host are mapped to UUIDs"


def two_mig() -> Any:
    text = json.dumps(scenarios.a100_mig()["gpus"][0])
    twin = json.loads(re.sub(r"(GPU|MIG)-[0-9a-f]{8}-", lambda m: m[0].replace("-", "-f", 1), text))
    scenario = scenarios.h200_x8()
    scenario["gpus"] = [json.loads(text), twin]
    return scenario


def test_the_task_prolog_finds_the_jobs_gpus_whatever_their_numbers_are(
    node: Node, tmp_path: Path
) -> None:
    """In the job CUDA_VISIBLE_DEVICES is renumbered; the prolog has noted which GPUs those are."""
    env = clean_environment(tmp_path, SLURM_JOB_ID="42")
    prolog = node.hook("slurm-prolog", SLURM_JOB_GPUS="5,6", **env)
    uuids = list(prolog.verdict["gpus"].values())
    assert [uuid[:4] for uuid in uuids] == ["GPU-", "GPU-"]
    task = node.hook(
        "slurm-task-prolog",
        CUDA_VISIBLE_DEVICES="0,1",
        DSDOCTOR_RUN_FOLDER=str(node.run),
        **env,
    )
    assert list(task.verdict["gpus"].values()) == uuids


def test_a_verdict_is_used_again_for_a_minute(node: Node) -> None:
    first = node.hook("slurm-prolog", "--gpus", "0")
    again = node.hook("slurm-prolog", "--gpus", "5")
    assert (first.verdict["reused"], again.verdict["reused"]) == (False, True)
    assert node.hook("slurm-prolog", "--max-age", "0").verdict["reused"] is False
    other_settings = node.hook("slurm-prolog", "--ignore", "memlock-low")
    assert other_settings.verdict["reused"] is False


def test_a_verdict_of_another_boot_is_not_used(node: Node) -> None:
    node.hook("slurm-prolog")
    file = node.run / "node.json"
    old = json.loads(file.read_text())
    file.write_text(json.dumps({**old, "boot_id": "another"}))
    assert node.hook("slurm-prolog").verdict["reused"] is False


def test_a_hang_is_decided_within_the_budget_and_passes(node: Node) -> None:
    node.set(with_fault(hang={"nvmlInit": 12}, hang_deaf=1))
    done = node.hook("slurm-prolog", "--budget", "4", "--gpus", "0")
    assert done.status == 0
    # what it has started goes on: its end was not waited for
    assert node.workers()
    closed = node.hook("slurm-prolog", "--budget", "1", "--fail-closed")
    assert closed.status == 1
    assert done.verdict["cause"] == "nvml-slow"
    assert "persistence mode" in done.verdict["detail"]
    assert node.causes()["nvml-slow"] >= 1


def test_a_slow_driver_serves_the_next_hook(node: Node) -> None:
    node.set(with_fault(slow_ms={"nvmlInit": 6000}))
    first = node.hook("slurm-prolog", "--budget", "4", "--gpus", "0")
    # on a loaded machine the worker has not even asked the driver by then
    assert (first.status, first.verdict["cause"] in ("nvml-slow", "timeout")) == (0, True)
    second = node.hook("slurm-prolog", "--gpus", "0")
    assert (second.status, second.verdict["verdict"]) == (0, "healthy")
    assert second.verdict["reused"] is True


def test_hooks_at_once_share_one_worker(node: Node) -> None:
    log = node.folder / "calls.log"
    node.set(with_fault(log=str(log)))
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-m",
                "dsdoctor",
                "hook",
                "slurm-prolog",
                *PATIENT,
                "--gpus",
                str(number),
                "--run-folder",
                str(node.run),
            ],
            env={**node.env},
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        for number in range(8)
    ]
    assert [child.communicate(timeout=500)[0] for child in children] == ["dsdoctor: ok\n"] * 8
    assert [child.returncode for child in children] == [0] * 8
    inits = [line for line in log.read_text().splitlines() if line.startswith("nvmlInitWithFlags")]
    assert len(inits) == 1


def test_a_worker_that_crashes_lets_the_job_pass(node: Node) -> None:
    (node.run / "node-snapshot.json").mkdir(parents=True)  # the worker cannot write it
    done = node.hook("slurm-prolog", "--gpus", "0")
    assert done.status == 0
    assert done.verdict["cause"] == "crash"
    assert "status 1" in done.verdict["detail"]
    assert node.causes() == {"crash": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("this is no TOML", "is not TOML and is ignored"),
        ("[limits.memlock-low]\nno_such_limit = 1\n", "`no_such_limit` in `[limits.memlock-low]`"),
        ("[limits.memlok-low]\nx = 1\n", "did you mean `memlock-low`"),
        ("[hook]\nignore = ['memlok-low']\n", "did you mean `memlock-low`"),
        ("[hook]\ndry_run = 'false'\n", '`dry_run = "false"` in `[hook]` is ignored'),
        ("[hook]\nfail_closed = 'no'\nbudget = 0\n", "expected true or false"),
        ("[hook]\ndryrun = true\n", "did you mean `dry_run`"),
        ("hook = 1\nlimits = 2\nignore = 3\nhoock = 4\n", "did you mean `hook`"),
    ],
)
def test_a_mistake_in_the_configuration_is_reported_and_changes_no_verdict(
    node: Node, tmp_path: Path, text: str, said: str
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    done = node.hook("slurm-prolog", "--gpus", "0", DSDOCTOR_CONFIG=str(config))
    assert (done.status, done.verdict["verdict"], done.verdict["cause"]) == (0, "healthy", None)
    assert said in " ".join(done.verdict["problems"])
    assert f"  configuration: {done.verdict['problems'][0]}" in done.out
    node.wait_for_worker()
    node.set(scenarios.h200_x8_lost())
    done = node.hook("slurm-prolog", "--gpus", "all", "--max-age", "0", DSDOCTOR_CONFIG=str(config))
    assert (done.status, done.verdict["verdict"]) == (1, "faulty"), done.out
    assert said in " ".join(done.verdict["problems"])
    assert node.causes() == {}


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--config", "none.json", "is not a file"),
        ("--config", "", "is not a file"),
        ("--python", "nowhere", "does not exist"),
    ],
)
def test_what_a_job_names_and_is_not_there_is_misuse_not_a_crash(
    node: Node, tmp_path: Path, option: str, name: str, said: str
) -> None:
    named = str(tmp_path / name)
    done = node.hook("k8s", option, named, DSDOCTOR_PYTHON=sys.executable)
    assert (done.status, done.verdict["cause"]) == (0, "usage")
    assert done.verdict["detail"].startswith(f"`{option} {named.rstrip('/')}")
    assert said in done.verdict["detail"]
    assert done.out.count("\n") == 1
    assert node.causes() == {"usage": 1}
    closed = node.hook("k8s", option, named, "--fail-closed")
    assert closed.status == 1


def test_paths_are_those_of_the_directory_in_which_the_hook_starts(
    node: Node, tmp_path: Path
) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 7}}')
    (tmp_path / "python").symlink_to(sys.executable)
    done = node.hook("k8s", "--config", "ds.json", "--python", "./python", cwd=str(tmp_path))
    assert (done.status, done.verdict["verdict"]) == (4, "faulty"), done.out
    assert "is 7" in done.out


def test_a_check_can_be_switched_off(node: Node, tmp_path: Path) -> None:
    node.set(scenarios.h200_x8_lost())
    config = tmp_path / "config.toml"
    config.write_text('[hook]\nignore = ["gpu", "driver"]\n')
    assert node.hook("slurm-prolog", "--gpus", "all").status == 1
    off = node.hook("slurm-prolog", "--gpus", "all", DSDOCTOR_CONFIG=str(config))
    assert off.status == 0, off.out


@pytest.mark.parametrize(
    ("kind", "status"), [("slurm-prolog", 0), ("k8s", 0), ("npd", 2), ("nagios", 3)]
)
def test_the_kill_switch_lets_everything_pass(
    node: Node, tmp_path: Path, kind: str, status: int
) -> None:
    node.set(scenarios.h200_x8_lost())
    switch = tmp_path / "disabled"
    switch.touch()
    script = (
        "import pathlib, sys\n"
        "from dsdoctor.hook import entry\n"
        "assert str(entry.KILL_SWITCH) == '/etc/dsdoctor/disabled'\n"
        f"entry.KILL_SWITCH = pathlib.Path({str(switch)!r})\n"
        f"sys.exit(entry.fast([{kind!r}, '--fail-closed', '--run-folder', {str(node.run)!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], env=node.env, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
    assert not node.run.exists(), "something was started"


def test_dry_run_reports_only(node: Node) -> None:
    node.set(scenarios.h200_x8_lost())
    done = node.hook("slurm-prolog", "--gpus", "all", "--dry-run")
    assert done.status == 0
    assert done.verdict["would_block"] is True
    assert "dry run" in done.out
    (day,) = gatelog.summarize(gatelog.read(node.run), "n1")
    assert (day.would_block, day.blocked, day.passed) == ({"gpu-lost": 1}, {}, 0)
    assert not (node.run / "blocked.n1.json").exists()


def test_a_run_folder_of_others_is_not_trusted(node: Node) -> None:
    node.run.mkdir()
    node.run.chmod(0o777)
    done = node.hook("slurm-prolog", "--gpus", "0")
    assert (done.status, done.verdict["cause"]) == (0, "run-folder")
    node.run.chmod(0o755)


def test_a_verdict_that_cannot_be_written_blocks_nothing(node: Node) -> None:
    node.set(scenarios.h200_x8_lost())
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-m",
            "dsdoctor",
            "hook",
            "slurm-prolog",
            "--gpus",
            "all",
            "--run-folder",
            str(node.run),
            "--json",
            "/proc/none/verdict",
        ],
        env=node.env,
        capture_output=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0


def test_a_lock_that_is_stuck_is_not_waited_for(node: Node) -> None:
    import fcntl

    node.run.mkdir()
    with (node.run / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(node.run / "lock", (time.time() - 1000,) * 2)
        done = node.hook("slurm-prolog", "--gpus", "0")
    assert (done.status, done.verdict["cause"]) == (0, "hung")


@pytest.mark.parametrize(("kind", "healthy", "faulty"), [("npd", 0, 1), ("nagios", 0, 2)])
def test_monitors(node: Node, kind: str, healthy: int, faulty: int) -> None:
    metrics = node.folder / "dsdoctor.prom"
    options = ["--textfile", str(metrics), "--ignore", "host-memory-low"]  # other tests take some
    assert node.hook(kind, *options).status == healthy
    assert f'dsdoctor_hook_healthy{{hook="{kind}"}} 1' in metrics.read_text()
    node.set(scenarios.h200_x8_lost())
    sick = node.hook(kind, *options, "--max-age", "0")
    assert sick.status == faulty, sick.out
    assert f'dsdoctor_hook_healthy{{hook="{kind}"}} 0' in metrics.read_text()
    row = f'node="n1",hook="{kind}",decision="pass",cause=""}} 2'
    assert f"dsdoctor_gate_runs{{{row}" in metrics.read_text()


def test_the_task_prolog_tells_the_user(node: Node, tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    done = node.hook("slurm-task-prolog", **env)
    assert done.status == 0
    assert done.out.splitlines()[-1].startswith("export DSDOCTOR_VERDICT=")


def test_a_task_that_names_no_environment_is_judged_without_one(node: Node) -> None:
    """It runs before the batch script activates anything: no word about `python3` on PATH."""
    env = {"SLURM_JOB_ID": "7", "PATH": "/usr/bin:/bin"}
    done = node.hook("slurm-task-prolog", "--enforce", **env)
    assert done.status == 0
    assert done.out == "export DSDOCTOR_VERDICT=healthy\n"
    assert done.verdict["decision"] == "pass"
    # an environment without torch says nothing about the job either
    venv = node.folder / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    done = node.hook("slurm-task-prolog", **env, VIRTUAL_ENV=str(venv))
    assert done.out == "export DSDOCTOR_VERDICT=healthy\n"


def test_a_task_that_names_its_environment_is_told_and_not_ended(node: Node) -> None:
    venv = node.folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    env = {"SLURM_JOB_ID": "7", "DSDOCTOR_PYTHON": str(venv / "bin/python")}
    env |= {"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "0", "SLURM_GPUS_ON_NODE": "1"}
    done = node.hook("slurm-task-prolog", "--enforce", **env)
    assert "torch-missing" in done.out
    assert str(venv) in done.out
    scopes = {found["scope"] for found in done.verdict["findings"] if found["status"] == "fail"}
    assert scopes == {"user-env"}, done.out
    assert (done.status, done.verdict["decision"]) == (0, "pass")


def test_a_task_that_names_an_interpreter_which_is_not_there_reads_so(node: Node) -> None:
    done = node.hook("slurm-task-prolog", SLURM_JOB_ID="7", DSDOCTOR_PYTHON="/nowhere/python")
    assert (done.status, done.verdict["cause"]) == (0, "usage")
    assert re.search(r"(?m)^print dsdoctor: not judged: .*/nowhere/python", done.out)


def test_slow_path_and_help(tmp_path: Path) -> None:
    """Errors are click's: one line, status 2."""
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "hook", "npd", "--budget", "soon"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_used_verdict_imports_next_to_nothing(node: Node) -> None:
    node.hook("slurm-prolog")
    script = (
        "import sys\n"
        f"sys.argv = ['dsdoctor', 'hook', 'slurm-prolog', '--run-folder', {str(node.run)!r}]\n"
        "from dsdoctor.__main__ import main\n"
        "status = main()\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        env=node.env,
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = set(done.stderr.split())
    assert done.stdout == "dsdoctor: ok\n"
    heavy = {"click", "msgspec", "rich", "psutil", "subprocess", "torch", "argparse"}
    assert sorted(loaded & heavy) == []


def test_a_failure_that_rests_on_a_hang_never_blocks(hanging: tuple[Node, Any]) -> None:
    """The worker ends late, and what it could not read is unknown; last here, for it takes 30 s."""
    node, first = hanging
    assert first.status == 0
    node.wait_for_worker()
    # the other tests may have taken longer than a verdict usually serves
    later = node.hook("slurm-prolog", "--gpus", "all", "--max-age", "3600")
    assert later.status == 0, later.out
    assert later.verdict["verdict"] == "unknown"
    assert later.verdict["reused"] is True


def test_a_worker_that_cannot_write_its_progress_ends(node: Node) -> None:
    """On a full disk it held the lock for a minute, and later prologs judged nothing."""
    node.run.mkdir(mode=0o755)
    task = {"mode": "node", "folder": str(node.run), "key": "k", "ignore": [], "limits": {}}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "dsdoctor.hook.worker", json.dumps(task)],
            env=node.env,
            stdout=full,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0
    assert json.loads((node.run / "node.json").read_text())["verdict"] == "healthy"


class Job:
    """A job's process, and a node whose NVML lists it on GPU 0."""

    def __init__(self, node: Node, number: str = "42") -> None:
        self.child = subprocess.Popen(["sleep", "600"], env={"SLURM_JOB_ID": number})
        scenario: Any = copy.deepcopy(scenarios.h200_x8())
        used = {"pid": self.child.pid, "used_bytes": 4 << 30}
        scenario["gpus"][0]["compute_processes"] = [used]
        node.set(scenario)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait()


ENDED = {"SLURM_JOB_ID": "42", "SLURM_JOB_UID": "0", "SLURM_JOB_GPUS": "0,1"}


def test_an_epilog_drains_for_a_process_of_the_job_that_does_not_end(node: Node) -> None:
    with Job(node) as job:
        done = node.hook("slurm-epilog", "--budget", "15", **ENDED)
        assert done.status == 1, done.out
        assert f"job 42 has ended, but its process {job.child.pid} (`sleep`)" in done.out
        stamp = json.loads((node.run / "blocked.n1.json").read_text())
        assert [pid for pid, _ in stamp["left"]] == [job.child.pid]


def test_an_epilog_lets_the_process_of_another_job_be(node: Node) -> None:
    with Job(node, number="43"):
        assert node.hook("slurm-epilog", *PATIENT, **ENDED).status == 0


def test_an_epilog_waits_for_a_process_that_is_ending(node: Node) -> None:
    with Job(node) as job:
        seen = f"grep -qs -e -job_remains {node.run}/worker.*.log"
        ender = f"until {seen}; do sleep 0.1; done; kill {job.child.pid}"
        with subprocess.Popen(["sh", "-c", ender]):
            done = node.hook("slurm-epilog", *PATIENT, **ENDED)
        assert done.status == 0, done.out


def test_an_epilog_notes_the_errors_of_the_job(node: Node) -> None:
    """Compared with what the prolog noted; the node itself is judged by its state."""
    scenario = copy.deepcopy(scenarios.h200_x8())
    node.set(scenario)
    assert node.hook("slurm-prolog", *PATIENT, **ENDED).status == 0
    noted = json.loads((node.run / "job.n1.42.json").read_text())
    assert (noted["uid"], len(noted["ecc"])) == (0, 2)
    uuid = noted["gpus"]["0"]
    noted["ecc"][uuid]["uncorrected"] = -1
    (node.run / "job.n1.42.json").write_text(json.dumps(noted))
    done = node.hook("slurm-epilog", *PATIENT, **ENDED)
    # root is the job's user here, and other tests of root may have shared memory at this moment
    assert (done.status, done.verdict["noted"].split("+")[0]) == (0, "gpu-errors-in-job")
    assert not (node.run / "job.n1.42.json").exists()
    assert "noted=gpu-errors-in-job" in (node.run / "gate.log").read_text()


def test_an_epilog_drains_for_a_gpu_that_the_job_lost(node: Node) -> None:
    assert node.hook("slurm-prolog", *PATIENT, **ENDED).status == 0
    node.set(with_fault(fail={"*@1": 15}))
    done = node.hook("slurm-epilog", *PATIENT, **ENDED)
    assert done.status == 1
    assert "gpu-lost" in done.out, "a verdict of before the job was used"


def test_an_epilog_knows_the_other_jobs_of_its_user(node: Node) -> None:
    """Those that began since epilogs run here: of the others no epilog removes the note."""
    file = Path(f"/dev/shm/psm_dsdoctor_epilog_{os.getpid()}")
    second, third = {**ENDED, "SLURM_JOB_ID": "43"}, {**ENDED, "SLURM_JOB_ID": "44"}
    noted = []
    try:
        file.write_bytes(bytes(2 << 20))
        node.hook("slurm-prolog", *PATIENT, **second)
        noted.append(node.hook("slurm-epilog", *PATIENT, **ENDED).verdict["noted"])
        node.hook("slurm-prolog", *PATIENT, **third)
        noted.append(node.hook("slurm-epilog", *PATIENT, **ENDED).verdict["noted"])
        node.hook("slurm-epilog", *PATIENT, **third)
    finally:
        file.unlink()
    assert noted == ["job-left-shm-files", ""]
    assert not (node.run / "job.n1.44.json").exists()


def test_an_epilog_that_cannot_judge_drains_nothing(node: Node) -> None:
    node.set(with_fault(hang={"nvmlInit": 30}))
    done = node.hook("slurm-epilog", "--budget", "2", **ENDED)
    assert done.status == 0
    assert done.verdict["cause"] in ("nvml-slow", "timeout")
