"""A script that starts another script is followed to the job."""

from __future__ import annotations

import pytest

from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.shell_lines import launches
from dsdoctor.testing import FakeHost

DIST = """#!/bin/bash
N=$1
while true; do
    PORT=$(( ((RANDOM<<15)|RANDOM) % 49152 + 10000 ))
    break
done
torchrun --nproc_per_node=$N --master_port 29501 t.py ${@:2}
"""


def resolved(script: str, *words: str, **others: str) -> RunNeeds:
    files = {"/w/job.sh": f"#!/bin/bash\n{script}\n", "/w/t.py": "", "/w/s/dist.sh": DIST, **others}
    run = RunNeeds(command=words or ("bash", "job.sh"), cwd="/w")
    return resolve(run, FakeHost(files=files))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("bash s/dist.sh 4", id="a-shell"),
        pytest.param("set -e\npython prepare.py\nsh s/dist.sh 4 | tee log", id="beside-python"),
        pytest.param("srun -N 2 --gres=gpu:4 bash s/dist.sh 4", id="srun"),
        pytest.param("cd s\nbash dist.sh 4", id="in-another-folder"),
        pytest.param("CUDA_VISIBLE_DEVICES=0,1 bash s/dist.sh 4", id="with-a-variable"),
        pytest.param("N=4\nbash s/dist.sh $N", id="a-variable-as-argument"),
    ],
)
@pytest.mark.parametrize("starter", ["bash job.sh", "sbatch -N 2 job.sh"])
def test_a_script_in_a_script_is_followed(script: str, starter: str) -> None:
    found = resolved(script, *starter.split())
    assert found.not_followed == ""
    assert found.followed.startswith("line 7 of `")
    command = parse_command(found.command)
    assert (command.launcher, command.num_gpus) in (("torchrun", 4), ("srun", 4))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("bash s/dist.sh 4\nbash s/dist.sh 2", id="two"),
        pytest.param("bash s/absent.sh 4", id="absent"),
        pytest.param("bash job.sh", id="itself"),
        pytest.param("bash setup.sh", id="one-that-starts-no-job"),
    ],
)
def test_a_script_that_is_not_known_has_a_reason(script: str) -> None:
    found = resolved(script, **{"/w/setup.sh": "pip install torchrun-tools\n"})
    assert found.not_followed


def test_a_launch_of_the_script_itself_comes_first() -> None:
    found = resolved("torchrun --nproc_per_node=2 t.py\nbash s/dist.sh 4")
    assert parse_command(found.command).num_gpus == 2


@pytest.mark.parametrize(
    "before",
    [
        "P=$(( ((RANDOM<<15)|RANDOM) % 9 ))",
        "((N = A << B))",
        "read A <<< B",
        "echo '(A << B)'",
        "grep x <<EOF",  # which no line ends
    ],
)
def test_no_heredoc_hides_what_follows(before: str) -> None:
    assert [one.line for one in launches(f"{before}\ntorchrun t.py\n")] == [2]


def test_a_heredoc_hides_its_lines() -> None:
    assert not launches("cat <<EOF\ntorchrun t.py\nEOF\n")
