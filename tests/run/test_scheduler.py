"""What Slurm says of a job that has ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.run import scheduler
from dsdoctor.run.detached import refusal
from dsdoctor.run.elsewhere import starter
from dsdoctor.run.ending import diagnose
from dsdoctor.run.scheduler import announced_job, job_of_session
from tests.run.support import quick, record, run

SCONTROL = """#!/bin/sh
cd {folder}
echo asked >>asked
[ "$(wc -l <asked)" -gt 2 ] && state=CANCELLED || state=COMPLETING
echo "JobId=$3 JobName=train"
echo "   JobState=$state Reason=None"
"""


def test_a_state_that_hides_how_the_job_ended_is_waited_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "scontrol"
    tool.write_text(SCONTROL.format(folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert scheduler.ask(tmp_path, "7") == "CANCELLED"
    assert "JobState=CANCELLED" in (tmp_path / "scheduler.log").read_text()
    assert (tmp_path / "asked").read_text().count("asked") == 3


FORGOTTEN = "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"
#: What a real `sacct` of Slurm 22.05.8 with slurmdbd printed of four jobs. It stands in for one
#: because slurmdbd needs a database server: half a minute of packages and set-up for each run of
#: the suite.
SACCT = """#!/bin/sh
printf '%-12s %20s %8s %64s \\n' 7 '{state}' 0:0 'gpu[1-2]'
"""


@pytest.mark.parametrize(
    ("state", "expected", "cause"),
    [
        ("TIMEOUT", "TIMEOUT", "job-time-limit"),
        ("CANCELLED by 0", "CANCELLED", "job-cancelled"),
        ("NODE_FAIL", "NODE_FAIL", "node-failed"),
        ("FAILED", "FAILED", None),
    ],
)
def test_a_job_that_the_controller_has_forgotten_is_asked_of_the_accounting(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    expected: str,
    cause: str | None,
) -> None:
    for name, text in (("scontrol", FORGOTTEN), ("sacct", SACCT.format(state=state))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert scheduler.ask(tmp_path, "7") == expected
    found = diagnose(tmp_path, packs.load(builtin_only=True))
    assert found is not None
    assert [one.condition for one in found.causes] == ([cause] if cause else [])


@pytest.mark.parametrize(
    ("command", "env", "expected"),
    [
        (["srun", "-N2", "python", "train.py"], {}, "srun"),
        (["salloc", "-N2", "srun", "python", "train.py"], {"SLURM_JOB_ID": "7"}, "salloc"),
        (["env", "A=1", "/opt/slurm/bin/srun", "train"], {"SLURM_JOB_ID": "7"}, "srun"),
        (["srun", "python", "train.py"], {"SLURMD_NODENAME": "gpu1"}, ""),
        (["torchrun", "train.py"], {}, ""),
        (["ssh", "gpu1", "torchrun", "train.py"], {"SLURMD_NODENAME": "gpu2"}, "ssh"),
        (["kubectl", "exec", "-it", "pod/a", "--", "torchrun", "train.py"], {}, "kubectl exec"),
        (["kubectl", "get", "pods"], {}, ""),
        (["sbatch", "-N2", "job.sh"], {}, "sbatch"),
        (["ray", "job", "submit", "--", "python", "train.py"], {}, "ray job submit"),
        (["ray", "status"], {}, ""),
    ],
)
def test_a_command_runs_elsewhere_where_slurm_starts_it_from_outside(
    command: list[str], env: dict[str, str], expected: str
) -> None:
    assert starter(command, env) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            b"srun: job 17 queued and waiting for resources\n", "17", id="a job that waits"
        ),
        pytest.param(
            b"salloc: Granted job allocation 17\nloss 2.0\nsrun: Force Terminated job 17\n",
            "17",
            id="an allocation that ends",
        ),
        pytest.param(b"srun: job 17 queued\nsrun: job 18 queued\n", "", id="two jobs"),
        pytest.param(b"the log says srun: job 17 queued\n", "", id="a line that quotes one"),
    ],
)
def test_the_job_that_srun_names_is_read(text: bytes, expected: str) -> None:
    assert announced_job([text]) == expected


def test_the_job_of_a_session_is_the_only_one_in_its_time() -> None:
    begun = time.mktime((2026, 11, 22, 16, 30, 0, 0, 0, -1))

    def row(job: int, session: int, at: str) -> str:
        return f"{job:<24}{session:<24}2026-11-22T16:{at}  \n"

    rows = row(1, 99, "20:00") + row(2, 99, "30:01") + row(3, 98, "30:02")
    assert job_of_session(rows, 99, begun, begun + 60) == "2"
    assert job_of_session(rows + row(4, 99, "30:09"), 99, begun, begun + 60) == ""
    assert job_of_session(rows, 97, begun, begun + 60) == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sbatch -N2 train.sbatch", "before the launch command in `train.sbatch`"),
        ("env A=1 /opt/slurm/bin/sbatch", "before the launch command in the batch script"),
        ("sbatch --wrap=torchrun", "inside `--wrap`"),
        ("qsub job.pbs", "in `job.pbs`"),
        ("kubectl apply -f job.yaml", "in the pod's spec"),
        ("kubectl run a --image=b", "in the pod's spec"),
        ("ray job submit --no-wait -- python train.py", "omit `--no-wait`"),
        ("tmux new -d torchrun", "inside tmux"),
        ("setsid torchrun train.py", "`setsid dsdoctor run -- CMD`"),
        ("systemd-run --user torchrun train.py", "pass `--scope`"),
    ],
)
def test_what_returns_before_the_job_has_ended_is_refused(command: str, said: str) -> None:
    assert said in refusal(command.split(), terminal=False)


@pytest.mark.parametrize(
    "command",
    [
        "torchrun train.py --i -t",
        "python sbatch.py",
        "srun -N2 python train.py",
        "qsub -I",
        "bsub -Is torchrun train.py",
        "kubectl exec a -- torchrun train.py",
        "kubectl run a -it --image=b",
        "ray job submit -- python train.py --no-wait",
        "setsid --wait torchrun train.py",
        "systemd-run --user --scope torchrun train.py",
        "nohup torchrun train.py",
        "sh -c sbatch",
    ],
)
def test_what_lasts_as_long_as_its_job_is_not_refused(command: str) -> None:
    assert refusal(command.split(), terminal=False) == ""


def test_nohup_takes_the_output_only_from_a_terminal() -> None:
    assert "in front" in refusal(["nohup", "torchrun", "train.py"], terminal=True)


#: Outside of the job: the second start works. Slurm alone says how the first one ended.
SRUN = """#!/bin/sh
echo 'srun: job 7 queued and waiting for resources' >&2
echo 'steps: 1 loss: 2.0'
echo x >>{folder}/starts
[ "$(wc -l <{folder}/starts)" -gt 1 ] || exit {status}
"""
STATE = """#!/bin/sh
[ "$(wc -l <{folder}/starts)" -gt 1 ] && state=COMPLETED || state={state}
echo 'JobId=7 JobName=train'
echo "   JobState=$state Reason=None"
"""


@pytest.mark.parametrize(
    ("state", "status", "starts"),
    [("PREEMPTED", 1, 2), ("TIMEOUT", 1, 1), ("NODE_FAIL", 0, 2), ("TIMEOUT", 0, 1)],
)
def test_slurm_is_asked_before_a_restart_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, status: int, starts: int
) -> None:
    for name, text in (("srun", SRUN), ("scontrol", STATE)):
        (tmp_path / name).write_text(text.format(folder=tmp_path, state=state, status=status))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = quick(tmp_path, "--restarts", "3", "--", "srun", "-N2", "python", "train.py")
    assert len((tmp_path / "starts").read_text().split()) == starts, done.stderr
    assert done.returncode == (status if starts == 1 else 0)
    found = record(tmp_path)
    ended = state if starts == 1 else "COMPLETED"
    assert (found["slurm_job"], found["slurm_state"], found["attempts"]) == ("7", ended, starts)
    listed = run(tmp_path, "list").stdout
    assert ("  ok  " in listed) is (starts == 2)  # srun's status may be 0 after a failure
    assert ("cause: job-time-limit" in done.stderr) is (starts == 1)
    assert found["figures"]["steps"] == 1  # read without a sampler
