"""What is wrong with a batch script before its job starts."""

from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds, Storage
from dsdoctor.job.resolve import resolve
from dsdoctor.testing import FakeHost, assert_fail, judge
from dsdoctor_checks.cluster import slurm_request_refused
from dsdoctor_checks.storage import path_missing

HEAD = "#!/bin/bash\n#SBATCH -N 1\n"
BODY = "torchrun t.py\n"


def submitted(script: str, command: str = "sbatch job.sh") -> RunNeeds:
    files = {"/job/job.sh": script, "/job/t.py": "", "/job/logs/1.out": "", "/usr/bin/torchrun": ""}
    host = FakeHost(env={"PATH": "/usr/bin"}, files=files)
    return resolve(RunNeeds(command=tuple(command.split()), cwd="/job"), host)


@pytest.mark.parametrize(
    ("script", "command", "expected"),
    [
        pytest.param(HEAD + BODY, "sbatch job.sh", "", id="a script"),
        pytest.param(
            "#SBATCH -N 1\n" + BODY, "sbatch job.sh", "no interpreter", id="no first line"
        ),
        pytest.param(
            "\n" + HEAD + BODY, "sbatch job.sh", "no interpreter", id="an empty line before"
        ),
        pytest.param(
            (HEAD + BODY).replace("\n", "\r\n"), "sbatch job.sh", "line breaks", id="Windows"
        ),
        pytest.param("#SBATCH -N 1\n" + BODY, "bash job.sh", "", id="a shell takes it"),
        pytest.param("", "sbatch --wrap torchrun", "", id="no script"),
    ],
)
def test_what_sbatch_refuses(script: str, command: str, expected: str) -> None:
    run = submitted(script, command)
    assert run.batch_refused == expected
    judged = judge(slurm_request_refused.the_script_is_taken, run_needs=run)
    assert (judged.status == "fail") == bool(expected)


@pytest.mark.parametrize(
    ("options", "command", "expected"),
    [
        pytest.param("--output=out/%j.out", "sbatch job.sh", "out", id="it is missing"),
        pytest.param("-o out/%j.out", "sbatch job.sh", "out", id="the short option"),
        pytest.param("--error=/gone/%j.err", "sbatch job.sh", "/gone", id="of errors"),
        pytest.param("--output=logs/%j.out", "sbatch job.sh", "", id="it exists"),
        pytest.param("--output=out/%j.out", "sbatch -o logs/a job.sh", "", id="the command wins"),
        pytest.param("--output=%j.out", "sbatch job.sh", "", id="the working folder"),
        pytest.param("--output=%x/%j.out", "sbatch job.sh", "", id="a name that Slurm fills in"),
        pytest.param("--output=out/%j.out", "bash job.sh", "", id="no Slurm"),
    ],
)
def test_the_folder_of_the_output(options: str, command: str, expected: str) -> None:
    run = submitted(f"#!/bin/bash\n#SBATCH {options}\nmkdir -p out\n{BODY}", command)
    assert run.batch_folder == expected
    judged = judge(path_missing.paths_are_there, storage=Storage(), run_needs=run)
    if expected:
        assert f"the folder `{expected}`" in assert_fail(judged).message
    else:
        assert judged.status == "ok"
