"""Rows of `launched-without-deepspeed`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import DsConfig, Environment, OsInfo, RunNeeds
from dsdoctor.probes.environment import select
from dsdoctor.testing import judge
from dsdoctor_checks.launch import launched_without_deepspeed as unit
from tests.checks.launch.rows import command, env, gpus

RANKS = dict.fromkeys(("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"), "0")


@pytest.mark.parametrize(
    ("line", "chosen", "variables", "status"),
    [
        pytest.param("deepspeed t.py", ("0", "1"), {}, "ok", id="deepspeed starts the ranks"),
        pytest.param("srun python t.py", ("0", "1"), {}, "ok", id="srun starts the ranks"),
        pytest.param("python prepare.py", (), {}, "ok", id="a script that does not train"),
        pytest.param("python t.py", ("0",), {}, "ok", id="one GPU needs no launcher"),
        pytest.param("python t.py", ("0", "1"), {}, "fail", id="two GPUs without a launcher"),
        pytest.param(
            "python t.py --deepspeed ds.json",
            (),
            {},
            "warn",
            id="a DeepSpeed config without a launcher",
        ),
        pytest.param(
            "python t.py --deepspeed ds.json",
            (),
            RANKS,
            "ok",
            id="another program has already set the variables of the ranks",
        ),
        pytest.param(
            "python -m torch.distributed.run t.py",
            ("0", "1"),
            {},
            "ok",
            id="torchrun as a module starts the ranks",
        ),
    ],
)
def test_launcher(line: str, chosen: tuple[str, ...], variables: Any, status: str) -> None:
    check = unit.a_launcher_starts_the_ranks
    judged = judge(
        check,
        launch_command=command(line),
        run_needs=RunNeeds(gpus=chosen),
        environment=env(**variables),
    )
    assert judged.statuses == status.split()


def test_config_needs_ranks() -> None:
    check = unit.a_launcher_starts_the_ranks
    judged = judge(
        check,
        launch_command=command("python t.py"),
        environment=env(),
        ds_config=DsConfig(parsed={}),
    )
    assert judged.statuses == ["warn"]


@pytest.mark.parametrize(
    ("line", "variables", "seen", "hint"),
    [
        pytest.param(
            "A=1 python t.py --deepspeed ds.json --lr 1",
            {},
            4,
            "`A=1 deepspeed --num_gpus 4 t.py --deepspeed ds.json --lr 1`",
            id="all GPUs and the arguments of the script",
        ),
        pytest.param(
            "python t.py --deepspeed ds.json",
            {"CUDA_VISIBLE_DEVICES": "2,3"},
            4,
            "--num_gpus 2 t.py",
            id="those that the variable shows",
        ),
        pytest.param(
            "python -m pkg.t --deepspeed ds.json",
            {},
            0,
            "`deepspeed --module pkg.t --deepspeed ds.json`",
            id="a module, and no GPU to count",
        ),
    ],
)
def test_the_command_that_it_offers(
    line: str, variables: dict[str, str], seen: int, hint: str
) -> None:
    judged = judge(
        unit.a_launcher_starts_the_ranks,
        launch_command=command(line),
        environment=env(**variables),
        gpus=gpus(seen),
    )
    assert hint in judged.worst.hint


@pytest.mark.parametrize(
    ("value", "status"),
    [
        pytest.param("29500", "ok", id="a port"),
        pytest.param("abc", "fail", id="a word"),
        pytest.param("", "fail", id="nothing"),
        pytest.param("$PORT", "ok", id="what a shell replaces"),
    ],
)
def test_the_port_is_a_number(value: str, status: str) -> None:
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "n1"}
    judged = judge(
        unit.a_launcher_starts_the_ranks,
        launch_command=command("python t.py"),
        environment=env(**ranks, MASTER_PORT=value),
        gpus=gpus(2),
    )
    assert judged.statuses == [status]


LEFT = {
    "RANK": "0",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "1234",
}
HERE = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="n0")


@pytest.mark.parametrize(
    ("line", "changes", "system", "status"),
    [
        pytest.param("python t.py", {}, HERE, "warn", id="a shell in which ranks were tried"),
        pytest.param("python t.py", {"WORLD_SIZE": "1"}, HERE, "ok", id="one rank"),
        pytest.param("python t.py", {"MASTER_ADDR": "n1"}, HERE, "ok", id="another node's rank"),
        pytest.param("python t.py", {"SLURM_JOB_ID": "1"}, HERE, "ok", id="a task of Slurm"),
        pytest.param("python t.py", {"TORCHELASTIC_RUN_ID": "1"}, HERE, "ok", id="under torchrun"),
        pytest.param("WORLD_SIZE=2 RANK=1 python t.py", {}, HERE, "ok", id="ranks by hand"),
        pytest.param("torchrun t.py", {}, HERE, "ok", id="a launcher sets its own"),
        pytest.param(
            "python t.py", {}, msgspec.structs.replace(HERE, container="docker"), "ok",
            id="a pod, whose maker sets them",
        ),
    ],
)  # fmt: skip
def test_ranks_that_nothing_starts(
    line: str, changes: dict[str, str], system: OsInfo, status: str
) -> None:
    judged = judge(
        unit.a_launcher_starts_the_ranks,
        launch_command=command(line),
        environment=env(**{**LEFT, **changes}),
        os_info=system,
        gpus=gpus(4),
    )
    assert judged.status == status


@pytest.mark.parametrize(
    ("line", "values", "count", "status"),
    [
        pytest.param("llamafactory-cli train a.yaml", {"deepspeed": "d"}, 1, "fail", id="one GPU"),
        pytest.param(
            "llamafactory-cli train a.yaml", {"deepspeed": "d"}, 0, "warn", id="none here"
        ),
        pytest.param("llamafactory-cli train a.yaml", {"deepspeed": "d"}, 2, "ok", id="two GPUs"),
        pytest.param("llamafactory-cli train a.yaml", {}, 1, "ok", id="without DeepSpeed"),
        pytest.param("llamafactory-cli chat a.yaml", {"deepspeed": "d"}, 1, "ok", id="no training"),
        pytest.param(
            "FORCE_TORCHRUN=1 llamafactory-cli train a.yaml",
            {"deepspeed": "d"},
            1,
            "ok",
            id="torchrun is asked for",
        ),
    ],
)
def test_llamafactory(line: str, values: dict[str, str], count: int, status: str) -> None:
    judged = judge(
        unit.a_launcher_starts_the_ranks,
        launch_command=command(line),
        run_needs=RunNeeds(trainer_values=values),
        environment=env(),
        gpus=gpus(count),
    )
    assert judged.statuses == [status]
    if judged.bad:
        assert "FORCE_TORCHRUN=1 llamafactory-cli" in judged.bad[0].hint


def test_llamafactory_with_a_variable_of_the_shell() -> None:
    shell = Environment(variables=select({"FORCE_TORCHRUN": "1", "SECRET": "x"}))
    judged = judge(
        unit.a_launcher_starts_the_ranks,
        launch_command=command("llamafactory-cli train a.yaml"),
        run_needs=RunNeeds(trainer_values={"deepspeed": "d"}),
        environment=shell,
        gpus=gpus(1),
    )
    assert judged.statuses == ["ok"]
