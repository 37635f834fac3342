"""The ranks could not connect to the master address.

## Why it matters
All ranks connect to one address and port. If the address is wrong, a firewall blocks the port or a
node did not start, the other ranks wait until they time out. With `localhost`, the ranks of each node
connect to their own node; torchrun uses that address unless it is given another.

## What to do
Use the same address on every node, one at which the others reach node 0. Check on every node that it
resolves and that its port can be reached (`nc -vz ADDRESS PORT`). Check that the job started on every
node.

## References
- torch/distributed/elastic/rendezvous, torch distributed/c10d/socket.cpp
- torch 2.13.0 distributed/run.py: `--master-addr` is 127.0.0.1 by default, `--rdzv-endpoint` empty;
  each option is also read from `PET_` and its name
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Hostfile,
    LaunchCommand,
    MasterAddress,
    Missing,
    Network,
    Observation,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import node_count, variable

from . import _rendezvous_timeout_signatures
from ._node_rank import (
    accelerate_meets_nowhere,
    meets_nowhere,
    node_rank_left,
    own_address,
)

CONDITION = Condition(
    "rendezvous-timeout",
    id="DSD1251",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.NO_RENDEZVOUS,),
    transient="a node that joined late, or a network that was down, may be available next time",
)


@check(CONDITION)
def master_address_resolves(
    address: MasterAddress | Missing,
    command: LaunchCommand | Missing,
    env: Environment | Missing,
    hostfile: Hostfile | Missing,
    run: RunNeeds,
    network: Network | Missing,
) -> Iterator[Finding]:
    """Fails for an unknown name, for one of node 0 that leads back to another node, and for this node's own address if there are other nodes."""
    nodes = _nodes(command, env, hostfile)
    if isinstance(command, LaunchCommand) and nodes > 1 and _is_alone(command):
        yield fail(
            f"`--standalone` starts a rendezvous for one node, but `--nnodes` asks for {nodes}",
            effect="each node waits on its own port for nodes that cannot join, until it times out",
            hint="pass `--nnodes 1`; for several nodes, replace `--standalone` with"
            " `--rdzv-backend c10d --rdzv-endpoint HOST:29500`, the same on every node",
            nodes=nodes,
        )
        return
    if isinstance(command, LaunchCommand) and nodes > 1 and meets_nowhere(command, env):
        yield fail(
            f"torchrun starts a run over {nodes} nodes, but neither `--master-addr` nor `--rdzv-endpoint`"
            " is passed, and the default address is 127.0.0.1",
            effect="each node waits for the others on its own address until it times out",
            hint="add `--master-addr ADDRESS` with the address of node 0, the same on every node",
            nodes=nodes,
        )
        return
    if isinstance(command, LaunchCommand) and nodes > 1 and accelerate_meets_nowhere(command):
        yield fail(
            f"`accelerate launch` starts a run over {nodes} nodes, but `--main_process_ip` is not"
            " passed and its configuration sets none",
            effect="it stops with `you need to specify the main process IP`, or each node waits"
            " for an address that is called `None`",
            hint="add `--main_process_ip ADDRESS --main_process_port 29500` with the address of node 0,"
            " the same on every node",
            nodes=nodes,
        )
        return
    left = node_rank_left(command, env, run)
    if left is not None:
        yield fail(
            f"`{left[0]}={left[1]}` is set, so Lightning treats this machine as node {left[1]} of the run,"
            " but `MASTER_ADDR`, the address of node 0, is not set",
            effect="its ranks wait for rank 0 on this machine, where none starts, until they time out",
            hint=f"run `unset {left[0]}` on a single node; for several, set `MASTER_ADDR` to node 0",
            variable=left[0],
            value=left[1],
        )
        return
    if isinstance(address, Missing):
        yield skip(address.detail, fact=MasterAddress.key(), why=address.why.value)
        return
    if nodes > 1 and own_address(address.host):
        yield fail(
            f"the master address is `{address.host}`, which on each node is that node itself, but the run has"
            f" {nodes} nodes",
            effect="the ranks of the other nodes wait for rank 0 on their own node until they time out",
            hint="set it to the address of node 0, the same on every node; in a Slurm job, to the"
            ' first line of `scontrol show hostnames "$SLURM_JOB_NODELIST"`',
            host=address.host,
            nodes=nodes,
        )
        return
    own = bool(address.addresses) and all(own_address(one) for one in address.addresses)
    if nodes > 1 and own and _is_not_first(command):
        yield fail(
            f"the master address `{address.host}` resolves to {address.addresses[0]}, which is this node"
            f" itself, but the run has {nodes} nodes",
            effect="the ranks of this node wait for rank 0 on their own node until they time out",
            hint="correct the entry in /etc/hosts, until `getent hosts "
            f"{address.host}` prints the address of node 0",
            host=address.host,
            addresses=address.addresses,
            nodes=nodes,
        )
        return
    if nodes == 1 and _is_of_another_node(address, command, env, network):
        yield warn(
            f"the master address is `{address.host}`, which is no address of this node, but the run is on this"
            " node alone",
            effect="the ranks wait for a store on another node, where none starts, until they time out",
            hint="pass `--standalone` in place of `--master-addr`, or `--nnodes` if there are several nodes",
            host=address.host,
            addresses=address.addresses,
        )
        return
    if address.addresses:
        yield ok(host=address.host, addresses=address.addresses)
        return
    yield fail(
        f"the master address `{address.host}` does not resolve on this node",
        effect="the ranks of this node try to connect until they time out",
        hint="correct the name, or add it to DNS or /etc/hosts, until `getent hosts "
        f"{address.host}` prints an address",
        host=address.host,
    )


def _is_of_another_node(
    address: MasterAddress,
    command: LaunchCommand | Missing,
    env: Environment | Missing,
    network: Network | Missing,
) -> bool:
    """Whether torchrun on one node gets an address that no interface of it has.

    A service of Kubernetes has an address that leads back to its pod, and Slurm may start the
    command on another node.
    """
    if isinstance(command, Missing) or isinstance(network, Missing) or not address.addresses:
        return False
    if command.launcher != "torchrun" or "master_addr" not in command.options:
        return False
    if variable(env, "KUBERNETES_SERVICE_HOST") or variable(env, "SLURM_JOB_ID"):
        return False
    own = [one.addresses for one in network.interfaces]
    if not own or None in own:
        return False
    here = {place for places in own for place in places or ()}
    return not any(own_address(one) or one in here for one in address.addresses)


def _is_not_first(command: LaunchCommand | Missing) -> bool:
    """Whether this is not node 0, whose name Debian and Ubuntu resolve to 127.0.1.1 on it."""
    options = {} if isinstance(command, Missing) else command.options
    rank = options.get("node_rank", options.get("machine_rank", ""))
    return rank.isdecimal() and int(rank[:9]) > 0


def _nodes(
    command: LaunchCommand | Missing, env: Environment | Missing, hostfile: Hostfile | Missing
) -> int:
    """Nodes on which the ranks of this command run; 1 if it starts on this node only.

    The deepspeed launcher starts the other nodes itself and gives them an address.
    """
    if isinstance(command, Missing) or "deepspeed" in (command.launcher, command.inner):
        return 1
    if command.launcher in ("srun", "mpirun"):
        return node_count(env, hostfile, command)
    return command.num_nodes or 1


def _is_alone(command: LaunchCommand) -> bool:
    """Whether torchrun makes a rendezvous that no other node knows (torch/distributed/run.py)."""
    return "torchrun" in (command.launcher, command.inner) and "standalone" in command.options


HINT = "check on every node that the job started there and that `nc -vz ADDRESS PORT` reaches the master address"

SIGNATURES = _rendezvous_timeout_signatures.SIGNATURES
