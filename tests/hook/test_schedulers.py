"""The gate under PBS, LSF and Grid Engine: installed scripts, with the environments that they document.

Over the fake NVML; none of these schedulers is started here.
"""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.hook import gatelog, install, pbs_node
from dsdoctor.hook.decide import Decision
from dsdoctor.hook.request import Request, gpu_selectors, job_id
from tests.nvml import fakenvml, scenarios

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a shared library for Linux"),
]

PBS = {"PATH": "/bin:/usr/bin"}
LSF = {
    "PATH": "/bin /usr/bin /sbin /usr/sbin",  # spaces: LSF's own documentation
    "LSB_JOBID": "211",
    "LSB_JOBINDEX": "0",
    "LSB_QUEUE": "gpu",
    "LSB_HOSTS": "host1 host1",
    "LSB_MCPU_HOSTS": "host1 2",
    "LSF_BINDIR": "/opt/lsf/bin",
}
SGE = {
    "PATH": "/usr/bin:/bin",
    "SGE_ROOT": "/opt/sge",
    "SGE_CELL": "default",
    "JOB_ID": "31",
    "SGE_TASK_ID": "undefined",
    "QUEUE": "gpu.q",
    "HOSTNAME": "host1",
    "SGE_HGR_gpu": "0 1",
}


def installed(tmp_path: Path, target: str, *options: str, fail_closed: bool = False) -> Path:
    """The folder of the scripts of a target, whose run folder is `tmp_path / "run"`."""
    argv = [sys.executable, "-m", "dsdoctor", "hook", "install", target, *options]
    argv += ["--into", str(tmp_path / target), "--run-folder", str(tmp_path / "run")]
    argv += ["--budget", "60"]  # a loaded machine is slow; what is tested is no speed
    argv += ["--fail-closed"] * fail_closed
    subprocess.run(argv, check=True, capture_output=True, timeout=300)
    return tmp_path / target


def call(
    script: Path, env: dict[str, str], scenario: Any, *words: str
) -> subprocess.CompletedProcess[str]:
    machine = fakenvml.environment(scenario, script.parent.parent)
    # for LSF and Grid Engine an administrator does the same: the job's environment is left out
    exports = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in machine.items())
    script.write_text(script.read_text().replace("\nuser_path=", f"\n{exports}user_path=", 1))
    return subprocess.run(
        [str(script), *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd="/",
    )


def lost(gpu: int = 1) -> Any:
    scenario = copy.deepcopy(scenarios.rtx_3090_x2_nvlink())
    scenario["fail"] = {f"*@{gpu}": 15}  # NVML_ERROR_GPU_IS_LOST
    return scenario


@pytest.mark.parametrize(
    ("target", "name", "env", "words", "job", "blocked"),
    [
        pytest.param(
            "pbs", "prologue.sh", PBS, ("12[3].pbs", "ada", "users"), "12[3].pbs", 2, id="PBS"
        ),
        pytest.param(
            "lsf", "pre-exec.sh", {**LSF, "CUDA_VISIBLE_DEVICES": "0,1"}, (), "211", 1, id="LSF"
        ),
        pytest.param("sge", "prolog.sh", SGE, (), "31", 1, id="Grid Engine"),
    ],
)
def test_a_fault_ends_with_the_status_that_requeues(
    tmp_path: Path,
    target: str,
    name: str,
    env: dict[str, str],
    words: tuple[str, ...],
    job: str,
    blocked: int,
) -> None:
    script = installed(tmp_path, target) / name
    sound = call(script, env, scenarios.rtx_3090_x2_nvlink(), *words)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    (tmp_path / "run" / "node.json").unlink()
    done = call(script, env, lost(), *words)
    assert done.returncode == blocked, done.stdout + done.stderr
    assert done.stdout.startswith("dsdoctor: DSD601 gpu-lost")
    ends = [row for row in gatelog.read(tmp_path / "run") if row["event"] == "end"]
    assert [(row["job"], row["decision"]) for row in ends] == [(job, "pass"), (job, "block")]


@pytest.mark.parametrize(
    ("target", "name", "closed"),
    [("pbs", "prologue.sh", 2), ("lsf", "pre-exec.sh", 1), ("sge", "prolog.sh", 1)],
)
def test_without_an_interpreter_the_job_runs(
    tmp_path: Path, target: str, name: str, closed: int
) -> None:
    """With --fail-closed the status is still that of a requeue: 1 would delete a job of PBS."""
    for fail_closed, status in ((False, 0), (True, closed)):
        script = installed(tmp_path, target, fail_closed=fail_closed) / name
        script.write_text(script.read_text().replace(sys.executable, "/nowhere/python"))
        assert call(script, LSF, lost(), "9.pbs").returncode == status


@pytest.mark.parametrize("words", ["5; echo x", "5 event=end", '5"', "$(id)"])
def test_a_jobs_number_that_is_none_reaches_no_log(tmp_path: Path, words: str) -> None:
    """Under LSF the owner of a job may have set it."""
    script = installed(tmp_path, "lsf") / "pre-exec.sh"
    script.write_text(script.read_text().replace(sys.executable, "/nowhere/python"))
    assert call(script, {**LSF, "LSB_JOBID": words}, lost()).returncode == 0
    assert {row.get("job", "") for row in gatelog.read(tmp_path / "run")} == {""}


@pytest.mark.parametrize(
    ("kind", "env", "expected"),
    [
        ("lsf-pre-exec", {"LSB_JOBID": "1"}, ()),
        ("lsf-pre-exec", {"LSB_JOBID": "1", "CUDA_VISIBLE_DEVICES": "3"}, ("3",)),
        ("lsf-pre-exec", {}, None),
        ("sge-prolog", {"JOB_ID": "1", "SGE_HGR_gpu": "0 2"}, ("0", "2")),
        ("sge-prolog", {"JOB_ID": "1"}, ()),
        ("pbs-prologue", {"PBS_JOBID": "1.pbs"}, None),
        ("pbs-prologue", {"PBS_JOBID": "1.pbs", "CUDA_VISIBLE_DEVICES": ""}, ()),
    ],
)
def test_gpus_of_a_job(kind: str, env: dict[str, str], expected: tuple[str, ...] | None) -> None:
    assert gpu_selectors(Request(kind), env) == expected


def test_a_job_has_the_number_of_the_scheduler_that_asks() -> None:
    both = {"SLURM_JOB_ID": "1", "PBS_JOBID": "2.pbs", "JOB_ID": "3"}
    assert [job_id(both, kind) for kind in ("slurm-prolog", "pbs-prologue", "sge-prolog")] == [
        "1",
        "2.pbs",
        "3",
    ]


class Ended(SystemExit):
    """What PBS raises from `accept` and `reject`."""


def pbs_event(
    hook: Path, vnode: str, select: str, *, periodic: bool = False
) -> tuple[str, list[str]]:
    """What a hook answers to execjob_begin, by PBS's documented interface; and what it logs."""
    said: list[str] = []

    class Event:
        type = 2 if periodic else 1
        job = types.SimpleNamespace(id="12.pbs", exec_vnode=vnode, schedselect=select)

        def accept(self) -> None:
            raise Ended("accept")

        def reject(self, message: str) -> None:
            raise Ended(f"reject {message}")

    pbs = types.ModuleType("pbs")
    pbs.__dict__.update(event=Event, logmsg=lambda _level, text: said.append(text), LOG_WARNING=3)
    pbs.__dict__.update(EXECHOST_PERIODIC=2, get_local_nodename=lambda: "n1")
    sys.modules["pbs"] = pbs
    try:
        with pytest.raises(Ended) as ended:
            exec(compile(hook.read_text(), str(hook), "exec"), {"__name__": "__main__"})
    finally:
        del sys.modules["pbs"]
    return str(ended.value), said


def test_the_hook_of_pbs_rejects_a_faulty_node_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = installed(tmp_path, "pbs") / "pbs_hook.py"
    for name, value in fakenvml.environment(lost(), tmp_path).items():
        monkeypatch.setenv(name, value)
    answer, said = pbs_event(hook, "(n1:ncpus=1:ngpus=2)", "1:ncpus=1:ngpus=2")
    assert answer.startswith("reject dsdoctor: DSD601 gpu-lost")
    assert said == [answer.removeprefix("reject ")]
    assert pbs_event(hook, "(n1:ncpus=1)", "1:ncpus=1") == ("accept", [])
    # as OpenPBS 23.06 was seen to do where its scheduler's `resources:` does not name ngpus
    assert pbs_event(hook, "(n1:ncpus=1)", "1:ncpus=1:ngpus=2")[0].startswith("reject")
    (hook.parent / "prologue.sh").unlink()
    answer, said = pbs_event(hook, "(n1:ncpus=1:ngpus=2)", "1:ncpus=1:ngpus=2")
    assert answer == "accept"
    assert "hook passed the job" in said[0]


#: Keeps a node's state in files, as `pbsnodes` of OpenPBS shows and sets it.
PBSNODES = """#!/bin/sh
cd {folder}
echo "$*" >>calls
case $1 in
  -o) echo offline >state; echo "$3" >comment ;;
  -r) echo free >state; : >comment ;;
  *) printf '%s\\n     state = %s\\n     comment = %s\\n' "$1" "$(cat state)" "$(cat comment)" ;;
esac
"""


def fake_pbsnodes(folder: Path, state: str = "free", comment: str = "") -> Path:
    (folder / "state").write_text(f"{state}\n")
    (folder / "comment").write_text(f"{comment}\n")
    (folder / "calls").write_text("")
    program = folder / "pbsnodes"
    program.write_text(PBSNODES.format(folder=folder))
    program.chmod(0o755)
    return program


def test_the_hook_of_pbs_sets_its_node_offline_and_online_where_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_pbsnodes(tmp_path)
    hook = installed(tmp_path, "pbs", "--offline") / "pbs_hook.py"
    script = hook.parent / "health.sh"
    text = script.read_text()
    script.write_text(
        re.sub(r"(?m)^export DSDOCTOR_PBSNODES=.*$", f"export DSDOCTOR_PBSNODES={program}", text)
    )
    for name, value in fakenvml.environment(lost(), tmp_path).items():
        monkeypatch.setenv(name, value)
    assert pbs_event(hook, "(n1:ngpus=2)", "1:ngpus=2")[0].startswith("reject dsdoctor: DSD601")
    assert (tmp_path / "state").read_text() == "offline\n"
    comment = (tmp_path / "comment").read_text().strip()
    assert comment.startswith("dsdoctor: DSD601 gpu-lost")
    assert len(comment) <= 80
    for name, value in fakenvml.environment(scenarios.rtx_3090_x2_nvlink(), tmp_path).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "run" / "node.json").unlink()  # a minute later
    assert pbs_event(hook, "", "", periodic=True) == ("accept", [])
    assert (tmp_path / "state").read_text() == "free\n"


@pytest.mark.parametrize(
    ("decision", "state", "comment", "expected"),
    [
        pytest.param(
            Decision(verdict="healthy"),
            "offline",
            "dsdoctor: DSD601 x",
            ["-r -C  n1"],
            id="healthy: offline for a fault that we found",
        ),
        pytest.param(
            Decision(verdict="healthy"),
            "offline",
            "new disk",
            [],
            id="healthy: offline for other reasons",
        ),
        pytest.param(
            Decision(verdict="healthy"), "offline", "", [], id="healthy: offline without a reason"
        ),
        pytest.param(
            Decision(verdict="healthy"),
            "free",
            "dsdoctor: DSD601 x",
            [],
            id="healthy: free already",
        ),
        pytest.param(
            Decision(verdict="unknown", cause="timeout"),
            "offline",
            "dsdoctor: DSD601 x",
            [],
            id="inconclusive: offline for a fault that we found",
        ),
        pytest.param(
            Decision(verdict="unknown", cause="timeout"), "free", "", [], id="inconclusive: free"
        ),
        pytest.param(
            Decision(verdict="faulty", block=True, cause="x"),
            "offline",
            "new disk",
            [],
            id="faulty: offline for other reasons",
        ),
    ],
)
def test_only_our_own_nodes_of_pbs_go_back_online(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    decision: Decision,
    state: str,
    comment: str,
    expected: list[str],
) -> None:
    monkeypatch.setenv("DSDOCTOR_PBSNODES", str(fake_pbsnodes(tmp_path, state, comment)))
    assert pbs_node.act(Request("pbs-health"), decision, "n1") == int(decision.block)
    assert (tmp_path / "calls").read_text().splitlines() == ["n1", *expected]


@pytest.mark.parametrize("target", ["pbs", "lsf", "sge"])
def test_the_advice_names_the_files(tmp_path: Path, target: str) -> None:
    plan = install.plan(target, install.InstallOptions(into=tmp_path, python="/p"))
    for path in plan.files:
        assert str(path) in plan.advice
    assert "/etc/dsdoctor/disabled" in plan.advice
    assert max(len(line) for line in plan.advice.splitlines()) <= 100 + len(str(tmp_path))
