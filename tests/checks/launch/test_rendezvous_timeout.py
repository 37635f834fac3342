"""Rows of `rendezvous-timeout`, and what the master address is read from."""

from __future__ import annotations

import pytest

from dsdoctor.api import MasterAddress, NetInterface, Network, RunNeeds
from dsdoctor.host import HostError
from dsdoctor.probes.command_line import with_accelerate
from dsdoctor.probes.ports import master_address
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.launch import rendezvous_timeout
from tests.checks.launch.rows import ABSENT, command, env

KNOWN = {
    "/usr/bin/getent ahosts node-a": "10.0.0.1       STREAM node-a\n10.0.0.1       DGRAM\n",
    "/usr/bin/getent ahosts ::1": "::1             STREAM ::1\n",
    "/usr/bin/getent ahosts node-x": "",
}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(MasterAddress(host="node-a", addresses=("10.0.0.1",)), "ok", id="it resolves"),
        pytest.param(MasterAddress(host="node-x"), "fail", id="nobody knows the name"),
    ],
)
def test_rows(fact: MasterAddress, expected: str) -> None:
    found = judge(rendezvous_timeout.master_address_resolves, master_address=fact)
    assert found.status == expected


HERE = Network(
    interfaces=(
        NetInterface(name="lo", loopback=True, addresses=("127.0.0.1",)),
        NetInterface(name="eth0", addresses=("10.0.0.1", "fe80::1")),
    )
)
THERE = "torchrun --master-addr 10.0.0.9 t.py"


@pytest.mark.parametrize(
    ("line", "address", "variables", "network", "expected"),
    [
        pytest.param(THERE, "10.0.0.9", {}, HERE, "warn", id="of another node"),
        pytest.param(THERE, "10.0.0.1", {}, HERE, "ok", id="of this node"),
        pytest.param(THERE, "127.0.1.1", {}, HERE, "ok", id="its name"),
        pytest.param(
            f"{THERE[:8]} --nnodes 2{THERE[8:]}", "10.0.0.9", {}, HERE, "ok", id="two nodes"
        ),
        pytest.param(THERE, "10.0.0.9", {"SLURM_JOB_ID": "7"}, HERE, "ok", id="a step of Slurm"),
        pytest.param(
            THERE, "10.0.0.9", {"KUBERNETES_SERVICE_HOST": "x"}, HERE, "ok", id="a service"
        ),
        pytest.param("torchrun t.py", "10.0.0.9", {}, HERE, "ok", id="an old variable"),
        pytest.param(
            THERE, "10.0.0.9", {}, Network(interfaces=(NetInterface(name="a"),)), "ok", id="unknown"
        ),
    ],
)
def test_a_run_on_one_node_with_the_address_of_another(
    line: str, address: str, variables: dict[str, str], network: Network, expected: str
) -> None:
    found = judge(
        rendezvous_timeout.master_address_resolves,
        master_address=MasterAddress(host="h", addresses=(address,)),
        launch_command=command(line),
        environment=env(**variables),
        network=network,
    )
    assert found.status == expected


def read(line: str, *, quick: bool = False, **env: str) -> MasterAddress:
    host = FakeHost(env={"PATH": "/usr/bin", **env}, files={"/usr/bin/getent": ""}, commands=KNOWN)
    run = RunNeeds(command=tuple(line.split()), quick=quick)
    found: MasterAddress = master_address.function(host, run)
    return found


def test_the_address_of_the_command_is_resolved() -> None:
    found = read("torchrun --nnodes 2 --node-rank 1 --master-addr node-a t.py")
    assert (found.host, found.addresses) == ("node-a", ("10.0.0.1",))
    assert read("torchrun --nnodes 2 --master-addr node-x t.py").addresses == ()
    assert read("python t.py", MASTER_ADDR="node-x").host == "node-x"


@pytest.mark.parametrize(
    ("line", "quick", "env"),
    [
        pytest.param("torchrun --nproc-per-node 2 t.py", False, {}, id="one node"),
        pytest.param(
            "torchrun --nproc-per-node 2 t.py", False, {"MASTER_ADDR": "node-x"},
            id="torchrun sets the variable itself",
        ),
        pytest.param("torchrun --master-addr $HEAD t.py", False, {}, id="a variable of the shell"),
        pytest.param("torchrun --master-addr node-x t.py", True, {}, id="quick resolves nothing"),
    ],
)  # fmt: skip
def test_nothing_is_resolved(line: str, quick: bool, env: dict[str, str]) -> None:
    with pytest.raises(HostError):
        read(line, quick=quick, **env)


@pytest.mark.parametrize(
    ("line", "host", "variables", "expected"),
    [
        pytest.param("torchrun --nnodes 2 t.py", "", {}, "fail", id="torchrun meets at its default"),
        pytest.param(
            "srun torchrun --nnodes 2 t.py", "", {}, "fail", id="so do several under srun"
        ),
        pytest.param(
            "torchrun --nnodes 2 --rdzv-backend c10d t.py", "", {}, "fail", id="c10d has no endpoint"
        ),
        pytest.param(
            "torchrun --nnodes 2 --rdzv_endpoint $HEAD:29400 t.py", "", {}, "skip",
            id="an endpoint of the shell",
        ),
        pytest.param(
            "torchrun --nnodes 2 t.py", "", {"PET_MASTER_ADDR": "n0"}, "skip",
            id="an address in the environment",
        ),
        pytest.param("torchrun --nnodes 1:4 t.py", "", {}, "skip", id="one node is enough"),
        pytest.param("torchrun --standalone t.py", "", {}, "skip", id="a node on its own"),
        pytest.param(
            "torchrun --standalone --nnodes 2 t.py", "", {}, "fail", id="two nodes, each on its own"
        ),
        pytest.param(
            "torchrun --standalone --nnodes 1:2 t.py", "", {}, "skip", id="one of two is enough"
        ),
        pytest.param(
            "torchrun --nnodes 2 --master-addr 127.0.0.1 t.py", "127.0.0.1", {}, "fail",
            id="the loopback address for two nodes",
        ),
        pytest.param(
            "srun python t.py", "localhost", {"SLURM_NNODES": "4"}, "fail",
            id="localhost for the nodes of srun",
        ),
        pytest.param(
            "python t.py", "localhost", {"SLURM_NNODES": "4"}, "ok",
            id="one node of a larger allocation",
        ),
        pytest.param(
            "srun python t.py", "localhost", {"SLURM_NNODES": "1"}, "ok", id="srun on one node"
        ),
        pytest.param(
            "torchrun --nnodes 2 --node_rank 1 --master_addr n0 t.py", "n0", {}, "fail",
            id="the name of node 0 leads to node 1 itself",
        ),
        pytest.param(
            "torchrun --nnodes 2 --node_rank 0 --master_addr n0 t.py", "n0", {}, "ok",
            id="a node may resolve its own name to a loopback address",
        ),
        pytest.param(
            "torchrun --nnodes 2 --master_addr n0 t.py", "n0", {}, "ok",
            id="which node this is is not known",
        ),
        pytest.param(
            "accelerate launch --num_machines 2 --main_process_ip ::1 t.py", "::1", {}, "fail",
            id="accelerate on two machines",
        ),
    ],
)  # fmt: skip
def test_the_address_of_several_nodes(
    line: str, host: str, variables: dict[str, str], expected: str
) -> None:
    found = judge(
        rendezvous_timeout.master_address_resolves,
        master_address=MasterAddress(host=host, addresses=("127.0.0.1",)) if host else ABSENT,
        launch_command=command(line),
        environment=env(**variables),
    )
    assert found.status == expected


def test_localhost_needs_no_program_that_resolves_names() -> None:
    host = FakeHost(env={"MASTER_ADDR": "localhost"})
    assert master_address.function(host, RunNeeds(command=("srun", "python", "t.py"))).addresses


LIGHTNING = RunNeeds(framework="lightning")


@pytest.mark.parametrize(
    ("line", "run", "variables", "expected"),
    [
        pytest.param("python t.py", LIGHTNING, {"NODE_RANK": "1"}, "fail", id="a number left over"),
        pytest.param("python t.py", LIGHTNING, {"GROUP_RANK": "2"}, "fail", id="that of torchrun"),
        pytest.param("python t.py", LIGHTNING, {"NODE_RANK": "0"}, "skip", id="node 0"),
        pytest.param(
            "python t.py", LIGHTNING, {"NODE_RANK": "1", "MASTER_ADDR": "10.0.0.1"}, "skip",
            id="the second of several nodes",
        ),
        pytest.param("torchrun t.py", LIGHTNING, {"NODE_RANK": "1"}, "skip", id="torchrun counts"),
        pytest.param("python t.py", RunNeeds(), {"NODE_RANK": "1"}, "skip", id="no Lightning"),
        pytest.param(
            "python t.py", LIGHTNING, {"NODE_RANK": "1", "SLURM_JOB_ID": "7"}, "skip", id="Slurm"
        ),
    ],
)  # fmt: skip
def test_the_number_of_a_node_that_is_alone(
    line: str, run: RunNeeds, variables: dict[str, str], expected: str
) -> None:
    found = judge(
        rendezvous_timeout.master_address_resolves,
        launch_command=command(line),
        environment=env(**variables),
        master_address=ABSENT,
        run_needs=run,
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("line", "settings", "expected"),
    [
        pytest.param("--num_machines 2 --machine_rank 0 t.py", {}, "fail", id="no address"),
        pytest.param("--num_machines 2 --main_process_ip n0 t.py", {}, "ok", id="an address"),
        pytest.param("--num_machines 2 --main_process_ip $N t.py", {}, "ok", id="of the shell"),
        pytest.param("--num_machines 1 t.py", {}, "ok", id="one node"),
        pytest.param("--num_machines 2 --use_deepspeed t.py", {}, "ok", id="pdsh knows the hosts"),
        pytest.param("--num_machines 2 --rdzv_backend c10d t.py", {}, "ok", id="a rendezvous"),
        pytest.param("--num_machines 2 --config_file gone.yaml t.py", {}, "ok", id="unknown file"),
        pytest.param(
            "--config_file a.yaml t.py",
            {"distributed_type": "MULTI_GPU", "num_machines": 2},
            "fail",
            id="the file has no address",
        ),
        pytest.param(
            "--config_file a.yaml t.py",
            {"distributed_type": "MULTI_GPU", "num_machines": 2, "main_process_ip": "n0"},
            "ok",
            id="the file has one",
        ),
        pytest.param(
            "--config_file a.yaml t.py",
            {"distributed_type": "DEEPSPEED", "num_machines": 2},
            "ok",
            id="the file starts DeepSpeed",
        ),
        pytest.param(
            "--config_file a.yaml t.py",
            {
                "compute_environment": "AMAZON_SAGEMAKER",
                "distributed_type": "NO",
                "num_machines": 2,
            },
            "ok",
            id="SageMaker knows its nodes",
        ),
    ],
)
def test_nodes_of_accelerate(line: str, settings: dict[str, object], expected: str) -> None:
    found = judge(
        rendezvous_timeout.master_address_resolves,
        master_address=MasterAddress(host="n0", addresses=("10.0.0.1",)),
        launch_command=with_accelerate(command(f"accelerate launch {line}"), settings),
    )
    assert found.status == expected
