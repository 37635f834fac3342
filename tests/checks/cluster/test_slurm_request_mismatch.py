"""Rows of `slurm-request-mismatch`, and the options of sbatch that it compares."""

from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.job.resolve import resolve
from dsdoctor.probes.command_line import batch_options, parse_command
from dsdoctor.testing import FakeHost, Judged, judge
from dsdoctor_checks.cluster import slurm_request_mismatch

TWO_NODES = "#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n"


def judged(script: str, command: str) -> Judged:
    run = RunNeeds(command=tuple(command.split()), batch=batch_options(script))
    return judge(
        slurm_request_mismatch.request_fits_command,
        run_needs=run,
        launch_command=parse_command(run.command),
    )


@pytest.mark.parametrize(
    ("script", "command", "expected", "words"),
    [
        pytest.param("", "torchrun --nproc_per_node 8 t.py", "skip", "", id="no batch job"),
        pytest.param(TWO_NODES, "srun python t.py", "skip", "", id="srun starts the ranks itself"),
        pytest.param(
            TWO_NODES,
            "srun torchrun --nnodes 2 --nproc_per_node 4 t.py",
            "ok",
            "",
            id="as many nodes and ranks as the job asks for",
        ),
        pytest.param(
            TWO_NODES,
            "srun torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE t.py",
            "ok",
            "",
            id="Slurm fills the numbers in",
        ),
        pytest.param(
            TWO_NODES,
            "srun torchrun --nnodes 2 --nproc_per_node 8 t.py",
            "fail",
            "starts 8 ranks on each node, but the job asks for 4 GPUs on each (`--gres=gpu:4`)",
            id="more ranks than GPUs",
        ),
        pytest.param(
            TWO_NODES + "#SBATCH --exclusive\n",
            "srun torchrun --nnodes 2 --nproc_per_node 8 t.py",
            "ok",
            "",
            id="an exclusive job has all GPUs of its nodes",
        ),
        pytest.param(
            "#SBATCH -N 2\n#SBATCH -G 16\n",
            "srun torchrun --nnodes 2 --nproc_per_node 8 t.py",
            "ok",
            "",
            id="GPUs of the whole job are divided among its nodes",
        ),
        pytest.param(
            TWO_NODES,
            "srun torchrun --nnodes 4 --nproc_per_node 4 t.py",
            "fail",
            "waits for 4 nodes (`--nnodes`), but the job asks for 2",
            id="more nodes than the job has",
        ),
        pytest.param(
            TWO_NODES,
            "torchrun --nnodes 2 --nproc_per_node 4 t.py",
            "fail",
            "without `srun`, on the first node only",
            id="one launcher waits for another that nobody starts",
        ),
        pytest.param(
            TWO_NODES,
            "torchrun --nproc_per_node 4 t.py",
            "warn",
            "without `srun`, on the first node only",
            id="a run on one node of two",
        ),
        pytest.param(
            TWO_NODES,
            "deepspeed --hostfile hosts t.py",
            "ok",
            "",
            id="deepspeed reaches the other nodes itself",
        ),
        pytest.param(
            TWO_NODES,
            "srun -N 1 torchrun --nnodes 1 --nproc_per_node 4 t.py",
            "ok",
            "",
            id="a step of one node is a run of its own",
        ),
        pytest.param(
            TWO_NODES,
            "srun torchrun --nnodes 1 --nproc_per_node 4 t.py",
            "warn",
            "but the command uses 1",
            id="each node trains alone",
        ),
        pytest.param(
            "#SBATCH --nodes=2-4\n",
            "srun torchrun --nnodes 4 t.py",
            "ok",
            "",
            id="a range of nodes may be as many",
        ),
    ],
)
def test_rows(script: str, command: str, expected: str, words: str) -> None:
    found = judged(script, command)
    assert found.status == expected
    assert words in found.worst.message


def test_the_command_line_of_sbatch_overrides_the_script() -> None:
    script = "#!/bin/bash\n#SBATCH -N 2\nsrun torchrun --nnodes 4 train.py\n#SBATCH -N 9\n"
    host = FakeHost(files={"/job/run.sh": script})
    for words, nodes in ((("sbatch", "run.sh"), "2"), (("sbatch", "--nodes=4", "run.sh"), "4")):
        run = resolve(RunNeeds(cwd="/job", command=words), host)
        assert run.batch == {"nodes": nodes}
        assert run.command == ("srun", "torchrun", "--nnodes", "4", "train.py")


def test_a_shell_reads_no_such_lines() -> None:
    host = FakeHost(files={"/job/run.sh": "#SBATCH -N 2\ntorchrun train.py\n"})
    assert resolve(RunNeeds(cwd="/job", command=("bash", "run.sh")), host).batch == {}
