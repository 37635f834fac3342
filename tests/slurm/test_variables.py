"""What a real Slurm sets for tasks, batch scripts and the shell of salloc, as the checks read it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator

import pytest

from dsdoctor.api import Environment, RunNeeds
from dsdoctor.testing import judge, missing
from dsdoctor_checks.cluster import _slurm, slurm_gpus_not_visible
from tests.checks import machines
from tests.nvml import scenarios
from tests.slurm.cluster import MARKS, NODES, Cluster
from tests.support.folders import let_others_in

pytestmark = MARKS

GPUS = machines.gpus("A100", "A100")
#: Prints the variables of one task.
SAY = (
    "import json, os; print(json.dumps({k: v for k, v in os.environ.items()"
    " if k.startswith(('SLURM', 'CUDA_V'))}))"
)
COMMAND = [sys.executable, "-S", "-c", SAY]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    let_others_in(made.folder)
    for node in NODES:
        (made.folder / node).mkdir()
        made.machine(node, scenarios.rtx_3090_x2_nvlink())
    made.install()
    try:
        made.start()
        yield made
    finally:
        made.stop()


def printed(text: str) -> list[Environment]:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return [Environment(variables=json.loads(line)) for line in lines]


def started(cluster: Cluster, *argv: str) -> list[Environment]:
    done = cluster.try_run(*argv, *COMMAND)
    assert done.returncode == 0, done.stderr
    return printed(done.stdout)


def status(env: Environment, **variables: str) -> str:
    judged = judge(
        slurm_gpus_not_visible.allocation_is_visible,
        environment=Environment(variables={**env.variables, **variables}),
        gpus=GPUS,
        run_needs=RunNeeds(expect_gpus=2),
        nvml=missing(),
        torch_live=missing(),
    )
    return judged.status


@pytest.mark.parametrize(
    ("options", "each", "bound"),
    [
        pytest.param("-n2 --gpus-per-task=1", "1", True, id="gpus-per-task"),
        pytest.param("-n2 --gres=gpu:2 --gpu-bind=single:1", "1", True, id="gpu-bind=single"),
        pytest.param("-n2 --gres=gpu:2 --gpu-bind=map_gpu:1,0", "1", True, id="gpu-bind=map_gpu"),
        pytest.param("-n2 --gres=gpu:2", "2", False, id="gres"),
        pytest.param("-n1 --gpus=2", "2", False, id="gpus"),
        pytest.param("-n1 --gpus-per-node=1", "1", False, id="gpus-per-node"),
    ],
)
def test_tasks(cluster: Cluster, options: str, each: str, bound: bool) -> None:
    tasks = started(cluster, "srun", "-N1", *options.split())
    assert tasks
    for env in tasks:
        own = env.get("SLURM_STEP_GPUS") or ""
        assert (_slurm.in_step(env), str(_slurm.counted(own))) == (True, each)
        assert env.get("CUDA_VISIBLE_DEVICES") == own
        assert _slurm.tasks_here(env) == len(tasks)
        count, name = _slurm.gpus_of_node(env) or (0, "")
        assert name == "SLURM_GPUS_ON_NODE"
        assert (_slurm.share_of_task(env, count) is not None) == bound
        assert status(env) == "ok"
        assert status(env, CUDA_VISIBLE_DEVICES="7") == "fail"


def test_a_batch_script_and_a_step_of_it_without_gpus(cluster: Cluster) -> None:
    words = shlex.join(COMMAND)
    job = cluster.submit(
        "-N1", "--gres=gpu:2", "--wait", command=f"{words}; srun --gres=none {words}"
    )
    script, step = printed((cluster.folder / f"job-{job}.out").read_text())
    assert not _slurm.in_step(script)
    assert _slurm.gpus_of_node(script) == (2, "SLURM_GPUS_ON_NODE")
    assert status(script) == "ok"
    assert status(script, CUDA_VISIBLE_DEVICES="0") == "fail"
    assert _slurm.in_step(step)
    assert step.get("SLURM_JOB_GPUS") == "0,1"
    assert _slurm.gpus_of_node(step) == (0, "SLURM_STEP_GPUS")
    assert status(step) == "fail"


def test_the_shell_of_salloc(cluster: Cluster) -> None:
    (env,) = started(cluster, "salloc", "-N1", "--gres=gpu:2")
    assert _slurm.in_job(env)
    assert _slurm.beside_the_job(env)
    assert status(env) == "skip"
