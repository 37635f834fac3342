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
    Level,
    MasterAddress,
    Missing,
    Observation,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import node_count

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

SIGNATURES = (
    Signature(
        pattern=r"shutdown the rendezvous '[^']{1,200}' due to an error of type Rendezvous(?:Connection|Timeout)Error",
        source="torch 1.9-2.13 distributed/elastic/rendezvous/dynamic_rendezvous.py",
        examples=(
            "The node 'w-1_17_0' has failed to shutdown the rendezvous 'none' due to an error of type RendezvousConnectionError.",
            "The node 'a' has failed to shutdown the rendezvous 'r' due to an error of type RendezvousTimeoutError.",
        ),
        not_examples=(
            "shutdown the rendezvous '' due to an error of type RendezvousConnectionError",
            "shutdown the rendezvous '' due to an error of type RendezvousTimeoutError",
        ),
        level=Level.WEAK,
        masks=("nccl-timeout-watchdog",),
        # the ranks had met, and the node of the store ended before this one
        unless=(
            "Rendezvous complete for workers",
            "keep-alive heartbeat to the rendezvous",
            "process group has NOT been destroyed before",
            "destroy_process_group() was not called before",
        ),
        echo=True,
    ),
    Signature(
        pattern="client socket has (?:timed out|failed to connect to any)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 10.0.0.1:1234",
            "[E1121 04:43:00.914205340 socket.cpp:818] [c10d] The client socket has failed to connect to any network address of (10.0.0.1, 29500).",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"(?:^|\.)Rendezvous(?:Timeout|Connection)Error",
        source="torch 2.13.0 distributed/elastic/rendezvous/api.py, distributed/elastic/rendezvous/__init__.py",
        examples=(
            "RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        ),
        not_examples=("raise RendezvousTimeoutError",),
        unless=("keep-alive heartbeat to the rendezvous",),  # see above
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"\d+/\d+ clients joined",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "DistStoreError: Timed out after 11 seconds waiting for clients. 1/2 clients joined.",
        ),
        not_examples=(" clients joined ",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="IPv[46] network addresses of .{0,80}cannot be retrieved",
        source="torch 1.11-2.13 csrc/distributed/c10d/socket.cpp",
        examples=(
            "[W socket.cpp:601] [c10d] The IPv6 network addresses of (worker-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
        ),
        not_examples=(
            "[W socket.cpp:601] [c10d] The IPv6 network addresses of (worker-0, 29500) cannot be",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
        hint="correct the name of the master address, or add it to DNS or /etc/hosts, until `getent hosts NAME` prints an address on every node",
    ),
    Signature(
        pattern="torch.*getaddrinfo",
        source="python 3.3-3.14 Lib/traceback.py: a frame of Lib/socket.py below one of torch",
        examples=("torch ... getaddrinfo",),
        not_examples=("... getaddrinfo",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="in store based barrier on rank",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"^RuntimeError: connect\(\) timed out\.?$",
        source="torch 1.0-1.7 c10d/Utils.cpp",
        near=("rendezvous", "TCPStore", "init_process_group"),
        examples=("RuntimeError: connect() timed out.",),
        not_examples=("RuntimeError: connect() timed out. Original was a socket",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"connect\(\) timed out\. Original timeout",
        source="torch 1.9-2.13 csrc/distributed/c10d/socket.cpp, exception.h",
        examples=("RuntimeError: connect() timed out. Original timeout was 1800000 ms.",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="hostname of the rendezvous",
        source="torch 2.13.0 distributed/elastic/rendezvous/utils.py",
        examples=(
            "File \"x\", RuntimeError: The hostname of the rendezvous endpoint 'head:29400' must resolve",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="connection to the C10d store has failed",
        source="torch 2.13.0 distributed/elastic/rendezvous/c10d_rendezvous_backend.py",
        examples=(
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
        ),
        unless=("keep-alive heartbeat to the rendezvous",),  # see above
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="client socket has failed to (?:connect|get)(?!.{0,200}system error: 10049)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [node-0]:29500 (errno: 110 - Connection timed out).",
            "[W socket.cpp:401] [c10d] The client socket has failed to connect to 10.0.0.1:1 (errno: 113 - No route to host).",
            "client socket has failed to get",
        ),
        masks=("nccl-timeout-watchdog",),
        unless=("exits successfully",),
        echo=True,
    ),
    Signature(
        # "with error: " are the words of NCCL's watchdog, which asks a store whose rank has gone
        pattern="(?<!with )[Ee]rror: (?:Connection (?:timed out|refused|reset by peer)|Broken pipe|No route to host|.{0,40}(?:[Tt]emporary failure in name resolution|Name or service not known))",
        source=(
            "glibc 2.17-2.41 strerror and gai_strerror, as torch 1.0-2.13 "
            "csrc/distributed/c10d/Utils.hpp and socket.cpp print them"
        ),
        examples=(
            "RuntimeError: Connection timed out",
            "RuntimeError: Connection refused",
            "ValueError: host not found: Name or service not known",
            "RuntimeError: Broken pipe",
            "RuntimeError: No route to host",
        ),
        not_examples=(
            "mirror 2: Connection timed out, trying mirror 3",
            '[W1 ProcessGroupNCCL.cpp:1771] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe',
        ),
        masks=("nccl-timeout-watchdog",),
        near=(
            "TCPStore",
            "rendezvous.py",
            "rendezvous_handler",
            "_create_c10d_store",
            "rendezvous_backend",
            "_create_tcp_store",
            "rendezvous_iterator",
            "self._store, store_op",
            "in init_process_group",
        ),
        echo=True,
    ),
    Signature(
        pattern=r"(?:^|\.)RendezvousClosedError",
        source="torch 2.13.0 distributed/elastic/rendezvous/api.py, distributed/elastic/rendezvous/__init__.py",
        examples=(
            "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
            "RendezvousClosedError",
        ),
        not_examples=("raise RendezvousClosedError()",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"Timed out after \d+ seconds waiting for (?:workers|clients|members)|Stop_waiting response is expected|timed out waiting for (?:the )?(?:other )?(?:nodes|peers|workers) to join",
        source=(
            "torch 1.9-2.13 distributed/distributed_c10d.py, distributed/elastic/utils/store.py, "
            "csrc/distributed/c10d/TCPStore.cpp"
        ),
        examples=(
            "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for workers. 1/4 workers joined.",
            "RuntimeError: Stop_waiting response is expected",
            "timed out waiting for nodes to join",
        ),
        not_examples=("out after 61 seconds waiting for workers. 1/4 workers joined.",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"Waiting in store based barrier to initialize process group for (?:rank|\d+ seconds)",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=2, timeout=0:30:00)",
            "Waiting in store based barrier to initialize process group for 20 seconds",
        ),
        not_examples=("Waiting in store based barrier to initialize process group for 20",),
        level=Level.WEAK,
        final=True,
        echo=True,
    ),
    Signature(
        pattern=r"(?:recvValue|sendBytes|recvVector)\w* failed on SocketImpl|host not found: Name or service|Failed to recv, got 0 bytes",
        source="torch 1.11-2.13 csrc/distributed/c10d/Utils.hpp",
        examples=(
            "[W1 TCPStore.cpp:125] [c10d] recvValueWithTimeout failed on SocketImpl(fd=22, addr=[n1]:1, remote=[n0]:29500): Failed to recv, got 0 bytes",
            "ValueError: host not found: Name or service not known",
        ),
        not_examples=("a retry failed on SocketImpl of the mock",),
        level=Level.HINT,
        echo=True,
    ),
)
