"""Rows of `hostfile-or-ssh-problem`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Hostfile, Missing, NodeReach, NodesReach, OsInfo, RunNeeds, Why
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.testing import judge
from dsdoctor_checks.launch import hostfile_or_ssh_problem as unit
from tests.checks.launch.rows import command, gpus


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        pytest.param(
            "# nodes\nnode-a slots=4\n\nnode-b slots=4 # spare\n",
            "ok",
            "",
            id="two nodes with comments and an empty line",
        ),
        pytest.param(
            "node-a slots=2\nnode-b 8 gpus\n", "fail", "line 2", id="a line without slots="
        ),
        pytest.param(
            "node-a slots=2\nnode-a slots=2\n",
            "fail",
            "is already on line 1",
            id="a host named twice",
        ),
        pytest.param(
            "node-a slots=two\n", "fail", "HOST slots=N", id="a number of slots in letters"
        ),
        pytest.param("\n# nodes come here\n", "fail", "lists no host", id="only comments"),
        pytest.param(
            "localhost slots=8\n", "fail ok", "8 slots", id="more slots than this node has GPUs"
        ),
        pytest.param("me slots=4\n", "ok", "", id="this node by its short name"),
    ],
)
def test_hostfile(text: str, status: str, words: str) -> None:
    os = OsInfo(system="Linux", release="6", machine="x86_64", hostname="me.cluster")
    check = unit.hostfile_is_sound
    judged = judge(check, hostfile=parse_hostfile(text, "hosts"), gpus=gpus(4), os_info=os)
    assert judged.statuses == status.split()
    assert words in judged.findings[0].message
    # what no correction of a line changes is not offered one
    offered = [finding.fixes for finding in judged.bad]
    lines = "line" in words or "HOST slots=N" in words or "already" in words
    assert all(offered) if lines else not any(offered)


def test_hostfile_that_is_not_there_is_told_where_the_launcher_only_warns() -> None:
    check = unit.hostfile_is_sound
    (found,) = judge(check, hostfile=Hostfile(path="hostfle", exists=False)).findings
    assert "`hostfle` does not exist" in found.message


def test_default_hostfile_is_not_torchruns() -> None:
    broken = parse_hostfile("x\n", "/job/hostfile", asked=False)
    check = unit.hostfile_is_sound
    assert judge(check, hostfile=broken, launch_command=command("torchrun t.py")).status == "ok"
    assert judge(check, hostfile=broken, launch_command=command("deepspeed t.py")).statuses == [
        "fail"
    ]


def test_quick_says_that_other_hosts_were_not_checked() -> None:
    """`ok` for names that do not even resolve would be a false promise."""
    check, quick = unit.hostfile_is_sound, RunNeeds(quick=True)
    found = judge(
        check, hostfile=parse_hostfile("a slots=4\nb slots=4\n", "hosts"), run_needs=quick
    )
    assert found.status == "skip"
    untried, lines = found.findings
    assert (untried.status.value, untried.evidence["hosts"]) == ("skip", 2)
    assert "other hosts (2) were not checked" in untried.message
    assert lines.status.value == "ok"
    alone = judge(check, hostfile=parse_hostfile("localhost slots=4\n", "hosts"), run_needs=quick)
    assert alone.status == "ok"
    broken = judge(check, hostfile=parse_hostfile("a slots=x\n", "hosts"), run_needs=quick)
    assert broken.status == "fail"


TWO = parse_hostfile("me slots=4\nnode-b slots=4\n", "hosts")


def reach(lacking: tuple[str, ...] = (), **changes: Any) -> NodesReach:
    usual: dict[str, Any] = {"addresses": ("10.0.0.2",), "ssh": True, "python": True}
    other = NodeReach(host="node-b", **{**usual, **changes})
    return NodesReach(nodes=(NodeReach(host="me", local=True), other), lacking=lacking)


@pytest.mark.parametrize(
    ("nodes", "line", "status", "words"),
    [
        pytest.param(
            reach(), "deepspeed t.py", "ok", "", id="the other node answers and has Python"
        ),
        pytest.param(reach(ssh=None), "deepspeed t.py", "ok", "", id="ssh was not tried"),
        pytest.param(
            reach(ssh=False, error="Permission denied"),
            "deepspeed t.py",
            "fail ok",
            "line 2 of",
            id="the other node refuses the key",
        ),
        pytest.param(
            reach(ssh=False, timed_out=True),
            "deepspeed t.py",
            "fail ok",
            "ssh timed out",
            id="ssh to the other node times out",
        ),
        pytest.param(
            reach(ssh=False, addresses=()),
            "deepspeed t.py",
            "fail ok",
            "does not resolve",
            id="the name of the other node does not resolve",
        ),
        pytest.param(
            reach(python=False),
            "deepspeed t.py",
            "warn ok",
            "no Python interpreter",
            id="the other node has no Python",
        ),
        pytest.param(
            reach(("pdsh",)),
            "deepspeed t.py",
            "fail ok",
            "`pdsh` is not on PATH",
            id="the default launcher's pdsh is not installed",
        ),
        pytest.param(
            reach(("pdsh",)),
            "deepspeed --launcher openmpi t.py",
            "ok",
            "",
            id="pdsh is not installed, but Open MPI starts the ranks",
        ),
        pytest.param(
            reach(("mpirun", "ompi_info")),
            "deepspeed --launcher openmpi t.py",
            "fail ok",
            "`ompi_info` is not on PATH",
            id="Open MPI is not installed, but starts the ranks",
        ),
        pytest.param(
            reach(("mpirun", "ompi_info", "sinfo")),
            "deepspeed t.py",
            "ok",
            "",
            id="what other launchers need is not installed",
        ),
        pytest.param(
            reach(("pdsh",)),
            "deepspeed --no_ssh --node_rank 0 t.py",
            "ok",
            "",
            id="pdsh is not installed, but each node is started by hand",
        ),
        pytest.param(
            reach(("pdsh",)),
            "torchrun t.py",
            "ok",
            "",
            id="pdsh is not installed, but torchrun does not use it",
        ),
    ],
)
def test_the_other_nodes(nodes: NodesReach, line: str, status: str, words: str) -> None:
    check = unit.hostfile_is_sound
    judged = judge(check, hostfile=TWO, launch_command=command(line), nodes_reach=nodes)
    assert judged.statuses == status.split()
    assert words in judged.findings[0].message


def test_a_hostfile_of_one_node_needs_no_pdsh() -> None:
    alone = NodesReach(nodes=(NodeReach(host="me", local=True),), lacking=("pdsh", "ssh"))
    check = unit.hostfile_is_sound
    one = parse_hostfile("me slots=4\n", "hosts")
    assert judge(check, hostfile=one, nodes_reach=alone).statuses == ["ok"]


def test_hosts_that_were_left_out_are_named_as_not_checked() -> None:
    """`ok` for a hundred hosts of which two were tried would be a false promise."""
    many = parse_hostfile("".join(f"n{n} slots=4\n" for n in range(100)), "hosts")
    tried = tuple(
        NodeReach(host=f"n{n}", addresses=("10.0.0.2",), ssh=True, python=True) for n in range(2)
    )
    judged = judge(
        unit.hostfile_is_sound, hostfile=many, nodes_reach=NodesReach(nodes=tried, untried=98)
    )
    assert judged.status == "skip"
    assert judged.findings[0].evidence == {"hosts": 98, "listed": 100, "checked": 2}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param("deepspeed --num_nodes 2 --num_gpus 4 t.py", "fail", id="two-nodes"),
        pytest.param("deepspeed --num_nodes 1 t.py", "skip", id="one-node"),
        pytest.param("torchrun --nnodes 2 t.py", "skip", id="nodes-of-torchrun"),
        pytest.param("srun -N2 deepspeed --num_nodes 2 t.py", "skip", id="on-other-hosts"),
    ],
)
def test_several_nodes_need_a_hostfile(line: str, status: str) -> None:
    check = unit.hostfile_is_sound
    absent = Missing(why=Why.ABSENT, detail="no hostfile was given")
    unread = Missing(why=Why.NOT_ASKED, detail="not read")
    assert judge(check, launch_command=command(line), hostfile=absent).status == status
    assert judge(check, launch_command=command(line), hostfile=unread).status == "skip"
    slow = Missing(why=Why.TIMEOUT, detail="`hosts` is on a file system that does not answer")
    assert judge(check, launch_command=command(line), hostfile=slow).status == "unknown"


def test_the_launcher_logs_in_to_this_node_too() -> None:
    one = parse_hostfile("me slots=4\n", "hosts")
    refused = NodeReach(
        host="me", addresses=("10.0.0.1",), local=True, ssh=False, error="Connection refused"
    )
    judged = judge(unit.hostfile_is_sound, hostfile=one, nodes_reach=NodesReach(nodes=(refused,)))
    assert judged.statuses == ["fail", "ok"]
    assert "is this node and rejects passwordless SSH" in judged.findings[0].message
    assert judged.findings[0].hint.startswith("leave out the hostfile on a single node")
