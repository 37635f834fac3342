"""How many ranks the memory is divided among if no launcher starts them."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, MemoryDemand, RunNeeds
from dsdoctor.job.request import shape
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.demand import memory_demand
from dsdoctor.testing import FakeHost, judge, read
from dsdoctor_checks.memory import plan_exceeds_gpu_memory
from tests.checks.machines import ABSENT, NO_ENV, gpus

PLAIN = "import torch, deepspeed\nengine, *_ = deepspeed.initialize(model=torch.nn.Linear(1, 1))\n"
PYTHON = ("python", "t.py")
CONFIG = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 1}}


def demanded(
    words: tuple[str, ...], script: str | None, env: Any, cards: Any, **more: Any
) -> MemoryDemand:
    host = FakeHost(files={} if script is None else {"/w/t.py": script})
    run = RunNeeds(
        cwd="/w", command=words, model=shape("7B"), config=CONFIG, finetune="full", **more
    )
    found = read(
        memory_demand, host, run_needs=run, launch_command=parse_command(words), gpus=cards,
        environment=env,
    )  # fmt: skip
    assert isinstance(found, MemoryDemand), found
    return found


@pytest.mark.parametrize(
    ("words", "script", "variables", "ranks"),
    [
        pytest.param(PYTHON, PLAIN, {}, 1, id="one process"),
        pytest.param(("env", "A=1", *PYTHON), PLAIN, {}, 1, id="after env"),
        pytest.param(PYTHON, None, {}, 4, id="a script that cannot be read"),
        pytest.param(PYTHON, PLAIN + "torch.multiprocessing.spawn(f)", {}, 4, id="it spawns ranks"),
        pytest.param(PYTHON, PLAIN + "import lightning", {}, 4, id="a trainer that starts ranks"),
        pytest.param(PYTHON, PLAIN + "import net", {}, 4, id="a module that is not known"),
        pytest.param(PYTHON, PLAIN + "f(device_map='auto')", {}, 4, id="a model on all GPUs"),
        pytest.param(PYTHON, PLAIN, {"RANK": "0", "WORLD_SIZE": "4"}, 4, id="a rank of several"),
        pytest.param(PYTHON, PLAIN, {"SLURM_PROCID": "0"}, 4, id="a task of Slurm"),
        pytest.param(("deepspeed", "t.py"), PLAIN, {}, 4, id="a launcher"),
        pytest.param(("mpirun", "-np", "4", *PYTHON), PLAIN, {}, 4, id="MPI"),
    ],
)
def test_ranks(
    words: tuple[str, ...], script: str | None, variables: dict[str, str], ranks: int
) -> None:
    env = Environment(variables=variables)
    assert demanded(words, script, env, gpus(*["A100"] * 4)).ranks_here == ranks


def test_requested_gpus_count() -> None:
    found = demanded(PYTHON, PLAIN, NO_ENV, gpus(*["A100"] * 4), expect_gpus=4)
    assert found.ranks_here == 4


@pytest.mark.parametrize(
    ("cards", "model_fits"),
    [
        pytest.param(("A100", "A100"), False, id="131 GiB on one of two"),
        pytest.param(("V100", "B200"), True, id="it fits on the larger one"),
    ],
)
def test_one_rank_is_judged_by_one_gpu(cards: tuple[str, ...], model_fits: bool) -> None:
    found = gpus(*cards)
    (finding,) = judge(
        plan_exceeds_gpu_memory.gpu_memory_is_enough,
        memory_demand=demanded(PYTHON, PLAIN, NO_ENV, found),
        gpus=found,
        run_needs=RunNeeds(),
        environment=NO_ENV,
        torch_live=ABSENT,
    ).findings
    assert finding.status.value == ("ok" if model_fits else "fail")
