"""Rows of `invalid-device-ordinal`."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor.api import Missing, RunNeeds, Why
from dsdoctor.testing import assert_fail, judge
from dsdoctor_checks.launch import invalid_device_ordinal as unit
from tests.checks.launch.rows import command, env, gpus


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        pytest.param("deepspeed --num_gpus 4 t.py", None, "ok", id="four ranks on four GPUs"),
        pytest.param("deepspeed --num_gpus 8 t.py", None, "fail", id="eight ranks on four GPUs"),
        pytest.param(
            "deepspeed --num_gpus 4 t.py",
            "0,1",
            "ok",
            id="deepspeed sets its own list of visible GPUs",
        ),
        pytest.param("deepspeed t.py", None, "ok", id="deepspeed starts one rank on each GPU"),
        pytest.param(
            "torchrun --nproc_per_node 4 t.py",
            "0,1",
            "fail",
            id="four ranks where two GPUs are visible",
        ),
        pytest.param(
            "torchrun --nproc_per_node gpu t.py",
            "0,1",
            "ok",
            id="torchrun starts one rank on each visible GPU",
        ),
        pytest.param(
            "accelerate launch --num_processes 8 --num_machines 2 t.py",
            None,
            "ok",
            id="eight ranks on two nodes are four on this one",
        ),
        pytest.param(
            "accelerate launch --cpu --num_processes 8 t.py",
            None,
            "ok",
            id="ranks on the CPU need no GPU",
        ),
        pytest.param("python t.py", None, "ok", id="a script without a launcher"),
    ],
)
def test_ranks(line: str, visible: str | None, status: str) -> None:
    environment = env() if visible is None else env(CUDA_VISIBLE_DEVICES=visible)
    judged = judge(
        unit.ranks_have_devices, launch_command=command(line), gpus=gpus(4), environment=environment
    )
    assert judged.statuses == status.split()


@pytest.mark.parametrize(
    ("visible", "devices"),
    [
        pytest.param("0,1,9", 2, id="an-index-that-no-gpu-has"),
        pytest.param("0,-1,1", 1, id="a-mark-of-the-end"),
        pytest.param("9,0", 0, id="a-wrong-index-first"),
        pytest.param("GPU-1,GPU-2,GPU-3", 3, id="uuids"),
        pytest.param("MIG-1", 1, id="a-slice"),
        pytest.param("0,x,2,3", 1, id="a-word"),
        pytest.param("NoDevFiles", 0, id="what-old-releases-of-slurm-set-without-a-gpu"),
    ],
)
def test_cuda_ignores_what_follows_a_wrong_entry(visible: str, devices: int) -> None:
    judged = judge(
        unit.ranks_have_devices,
        launch_command=command("torchrun --nproc_per_node 4 t.py"),
        gpus=gpus(4),
        environment=env(CUDA_VISIBLE_DEVICES=visible),
    )
    (found,) = judged.bad
    assert found.evidence["devices"] == devices
    assert f"has {devices} of 4 GPUs visible" in found.message
    assert ("--nproc-per-node" in found.hint) == bool(devices)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "CUDA_VISIBLE_DEVICES=$GPUS torchrun --nproc_per_node 4 t.py", id="a variable"
        ),
        pytest.param("accelerate launch --gpu_ids $GPUS --num_processes 4 t.py", id="an option"),
    ],
)
def test_what_a_shell_replaces_is_not_counted(line: str) -> None:
    for visible in ("0,1,2,3", "0"):
        environment = env(CUDA_VISIBLE_DEVICES=visible)
        judged = judge(
            unit.ranks_have_devices,
            launch_command=command(line),
            gpus=gpus(4),
            environment=environment,
        )
        assert judged.statuses == ["ok"]


@pytest.mark.parametrize(("have", "words"), [(1, "it has 1 GPU"), (2, "it has 2 GPUs")])
def test_one_gpu_is_no_plural(have: int, words: str) -> None:
    judged = judge(
        unit.ranks_have_devices,
        launch_command=command("torchrun --nproc_per_node 4 t.py"),
        gpus=gpus(have),
        environment=env(),
    )
    assert judged.worst.message.endswith(words)


UNREAD = Missing(why=Why.NOT_ASKED, detail="a paste without GPUs")
NO_DRIVER = Missing(why=Why.ABSENT, detail="no driver")


@pytest.mark.parametrize(
    ("line", "visible", "said"),
    [
        pytest.param("torchrun --nproc_per_node 4 t.py", "0,1", "`CUDA_VISIBLE_DEVICES` lists 2 GPUs", id="more ranks than listed"),
        pytest.param("torchrun --nproc_per_node 2 t.py", "0,1", None, id="as many as listed"),
        pytest.param("torchrun --nproc_per_node 2 t.py", None, None, id="nothing is listed"),
        pytest.param("accelerate launch --gpu_ids 0,1 --num_processes 3 t.py", "0,1,2,3", "`gpu_ids` lists 2 GPUs", id="accelerate overwrites the variable"),
        pytest.param("accelerate launch --gpu_ids all --num_processes 3 t.py", "0,1,2", None, id="all of accelerate are the visible ones"),
        pytest.param("deepspeed --num_gpus 4 t.py", "0,1", None, id="the deepspeed launcher sets its own list"),
    ],
)  # fmt: skip
def test_a_list_of_gpus_is_compared_where_the_gpus_are_not_known(
    line: str, visible: str | None, said: str | None
) -> None:
    judged = judge(
        unit.ranks_have_devices,
        launch_command=command(line),
        gpus=UNREAD,
        environment=env() if visible is None else env(CUDA_VISIBLE_DEVICES=visible),
    )
    if said is None:
        assert judged.statuses == ["skip"]
    else:
        assert said in assert_fail(judged).message


@pytest.mark.parametrize(
    ("line", "visible", "status"),
    [
        pytest.param(
            "torchrun --nproc_per_node 2 t.py", "0", "skip", id="a variable of a login node"
        ),
        pytest.param("torchrun --nproc_per_node 2 t.py", "", "skip", id="no GPU is to be used"),
        pytest.param(
            "env CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node 2 t.py",
            None,
            "fail",
            id="the command sets it",
        ),
    ],
)
def test_without_a_driver_only_the_command_counts(
    line: str, visible: str | None, status: str
) -> None:
    judged = judge(
        unit.ranks_have_devices,
        launch_command=command(line),
        gpus=NO_DRIVER,
        environment=env() if visible is None else env(CUDA_VISIBLE_DEVICES=visible),
    )
    assert judged.statuses == [status]


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_of_a_container_are_compared_with_the_gpus_that_it_gets(ranks: int) -> None:
    judged = judge(
        unit.ranks_have_devices,
        launch_command=command(f"torchrun --nproc_per_node {ranks} t.py"),
        gpus=UNREAD,
        environment=env(),
        run_needs=RunNeeds(container_gpus=2, container_gpus_by="nvidia.com/gpu: 2"),
    )
    if ranks == 2:
        assert judged.statuses == ["skip"]
    else:
        found = assert_fail(judged, "its container gets 2 GPUs (`nvidia.com/gpu: 2`)")
        assert found.hint == "request 2 ranks: `--nproc-per-node 2`"


def test_gpus_that_could_not_be_read_leave_it_open() -> None:
    judged = judge(
        unit.ranks_have_devices,
        launch_command=command("deepspeed --num_gpus 4 t.py"),
        gpus=Missing(why=Why.TIMEOUT, detail="NVML did not answer"),
    )
    assert judged.statuses == ["unknown"]


@pytest.mark.parametrize(
    ("line", "variables", "expected"),
    [
        pytest.param("mpirun -np 4 python t.py --deepspeed", {}, ["fail"], id="a script with DeepSpeed's options"),
        pytest.param("mpirun -np 4 python t.py", {}, ["warn"], id="a script that may share the GPUs"),
        pytest.param("mpiexec -n 2 python t.py", {}, ["ok"], id="as many as there are"),
        pytest.param("mpirun -np 2 python t.py", {"CUDA_VISIBLE_DEVICES": "0"}, ["warn"], id="one is visible"),
        pytest.param("mpirun -np 4 -H a:2,b:2 python t.py", {}, [], id="hosts on the line"),
        pytest.param("mpirun -np 4 --hostfile h python t.py", {}, [], id="a hostfile"),
        pytest.param("mpirun -np 4 python t.py", {"SLURM_JOB_ID": "7"}, [], id="hosts of the scheduler"),
        pytest.param("mpirun -np 4 ./bench", {}, [], id="a program of another kind"),
        pytest.param("mpirun -np 4 torchrun t.py", {}, [], id="a launcher"),
        pytest.param("mpirun -np $N python t.py", {}, [], id="a number that the shell fills in"),
    ],
)  # fmt: skip
def test_ranks_of_mpirun(line: str, variables: dict[str, str], expected: list[str]) -> None:
    found = judge(
        unit.ranks_have_devices,
        launch_command=command(line),
        gpus=gpus(2),
        environment=env(**variables),
    )
    assert found.statuses == (expected or ["ok"])


@pytest.mark.parametrize(
    ("line", "slots", "expected"),
    [
        pytest.param("mpirun -np 16 -H a:8,b:8 python t.py", (8, 8), 8, id="full hosts"),
        pytest.param("mpirun -H a:8,b:8 python t.py", (8, 8), 8, id="without a total"),
        pytest.param("mpirun -np 12 -H a:8,b:8 python t.py", (8, 8), 8, id="the last gets fewer"),
        pytest.param("mpirun -np 2 -H a:8,b:8 python t.py", (8, 8), None, id="one host in part"),
        pytest.param("mpirun -np 12 -H a:8,b:2 python t.py", (8, 2), None, id="a small host"),
        pytest.param("mpirun -np 32 -H a:8,b:8 python t.py", (8, 8), None, id="too few slots"),
        pytest.param("mpirun -np 16 -H a,b python t.py", (), None, id="slots not stated"),
        pytest.param("mpirun -np 16 --hostfile h -npernode 8 python t.py", (), 8, id="per host"),
        pytest.param("mpirun -np 16 --map-by ppr:8:node python t.py", (), 8, id="mapped"),
        pytest.param("mpirun -np 16 -npernode 2 python t.py", (), None, id="as many as GPUs"),
        pytest.param("mpirun -np 2 -npernode 8 python t.py", (), None, id="fewer in all"),
        pytest.param(
            "mpirun -np 16 -H a:8,b:8 --map-by node python t.py", (8, 8), None, id="another mapping"
        ),
    ],
)
def test_ranks_of_mpirun_on_each_host(
    line: str, slots: tuple[int, ...], expected: int | None
) -> None:
    found = judge(
        unit.ranks_have_devices,
        launch_command=msgspec.structs.replace(command(f"{line} --deepspeed"), mpi_slots=slots),
        gpus=gpus(2),
        environment=env(),
    )
    assert found.statuses == (["ok"] if expected is None else ["fail"])
    if expected is not None:
        assert f"`mpirun` starts {expected} ranks on this node" in found.findings[0].message
