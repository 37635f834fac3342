"""A connection between two ranks broke.

## Why it matters
The kernel closed a socket because the process or the node at its other end is gone, or because the
network dropped the connection. Every rank that waits for that peer fails with the same message.

## What to do
Look for the rank that ended first: its log states the cause, and the other ranks only repeat that it
is gone. If no rank failed on its own, check the node and its network (`ip -s link`, `dmesg`), and
resume from the last checkpoint.

## References
- gloo/transport/tcp/pair.cc
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html (`ncclRemoteError`)
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Observation, Scope, Signature

CONDITION = Condition(
    "peer-connection-lost",
    id="DSD857",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.PEER_GONE,),
    transient="the node or network that dropped the connection may be back next time",
)

HINT = (
    "look for the rank that ended first; if none failed on its own, check the nodes and the network,"
    " and resume from the last checkpoint"
)

SIGNATURES = (
    Signature(
        pattern=r"gloo/transport/\w+/\S{1,30}:\d+\] ?(?:(?:Read error|writev) \[\S{1,60}: )?Connection (?:closed|reset) by peer",
        source="gloo transport/tcp/pair.cc, torch 1.9-2.13",
        examples=(
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:24823",
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection reset by peer",
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Read error [10.0.0.2]:4711: Connection reset by peer",
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:411] writev [10.0.0.2]:4711: Connection reset by peer",
        ),
        not_examples=(
            "mirror 2: Connection reset by peer, trying mirror 3; Connection closed by peer",
        ),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        # the sockets of the store and of its clients
        pattern=r"^RuntimeError: (?:Connection reset by peer|Broken pipe)$",
        source="torch 1.0-2.1 c10d: the words of glibc for what a call of the system returned",
        examples=("RuntimeError: Connection reset by peer", "RuntimeError: Broken pipe"),
        not_examples=("RuntimeError: Broken pipe of the tokenizer",),
        level=Level.HINT,
        echo=True,
        near=("/torch/distributed/",),
    ),
    Signature(
        # the store is served by rank 0, or by the launcher's agent: it had been reached before
        pattern=r"(?:recvValue|sendBytes|recvVector)\w* failed on SocketImpl|Failed to recv, got 0 bytes",
        source="torch 1.11-2.13 csrc/distributed/c10d/Utils.hpp, TCPStore.cpp",
        message="The process that serves the job's store (TCPStore) has ended, or its node cannot be reached any more",
        examples=(
            "[W1 TCPStore.cpp:125] [c10d] recvValueWithTimeout failed on SocketImpl(fd=22, addr=[n1]:1, remote=[n0]:29500): Failed to recv, got 0 bytes",
            "[W1 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=5, addr=[n1]:3, remote=[n0]:29500): Broken pipe",
        ),
        not_examples=("a retry failed on SocketImpl of the mock",),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        # NCCL cannot distinguish a peer that died from a network that failed
        pattern="ncclRemoteError|remote process exited or there was a network error|NCCL WARN .{0,60}[Cc]onnection closed by remote peer",
        source="NCCL 2.9-2.30 src/misc/socket.cc; torch 1.9-2.13 distributed/c10d/NCCLUtils.hpp",
        examples=(
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            "NCCL WARN socketProgress: Connection closed by remote peer node-b<4>",
            "remote process exited or there was a network error",
        ),
        not_examples=("sftp: connection closed by remote peer, reconnecting",),
        level=Level.HINT,
        masks=("rendezvous-timeout",),  # it has a client of the store: the ranks had met
        echo=True,
    ),
    Signature(
        # a peer that died resets the connection; one that cannot be reached lets it time out
        pattern=r"NCCL WARN (?:(?:Net|NET/Socket|socketProgress\w{0,8}) ?: )?Call to (?:recv|read|send|write)(?: (?:from|to) \S{1,80})? failed ?: (?P<why>Connection (?:reset by peer|timed out)|Broken pipe|No route to host)",
        source="NCCL 2.2-2.30 src/include/socket.h, src/misc/socket.cc",
        examples=(
            "w1:83:2526 [0] misc/socket.cc:503 NCCL WARN Net : Call to recv from 10.0.0.7<41468> failed : Connection timed out",
            "w1:15:91 [3] include/socket.h:398 NCCL WARN Call to write failed : Connection reset by peer",
            "w1:15:91 [3] misc/socket.cc:52 NCCL WARN socketProgressOpt: Call to recv from 10.0.0.7<4> failed : Broken pipe",
            "NCCL WARN Net : Call to send to 10.0.0.7<4> failed : No route to host",
            "NCCL WARN Call to read failed : Connection reset by peer",
        ),
        not_examples=(
            "NCCL WARN Call to connect failed : Connection timed out",
            "NCCL WARN Net : Call to accept failed : Connection reset by peer",
        ),
        level=Level.WEAK,
        masks=("rendezvous-timeout",),
        message="A connection between two ranks broke ({why})",
        echo=True,
    ),
    Signature(
        # of a connection that had been made; 255 is ssh's own status
        pattern=r"Connection to (?P<host>\S{1,80}) closed by remote host",
        source="OpenSSH 7.0-9.9 clientloop.c; pdsh 2.18-2.35 src/pdsh/dsh.c",
        examples=("n2: Connection to n2 closed by remote host.",),
        not_examples=("Connection to closed by remote host",),
        near=("ssh exited with exit code 255",),
        message="the connection to `{host}` broke while the job ran",
        hint="check the node whose connection was closed: whether it was restarted, ran out of memory or"
        " lost its network; then resume from the last checkpoint",
        echo=True,
    ),
    Signature(
        # an agent sends heartbeats only after a rendezvous that succeeded
        pattern=r"has failed to send a keep-alive heartbeat to the rendezvous",
        source="torch 1.9-2.13 distributed/elastic/rendezvous/dynamic_rendezvous.py",
        examples=(
            "The node 'w-1_17_0' has failed to send a keep-alive heartbeat to the rendezvous 'r' due to an error of type RendezvousConnectionError.",
        ),
        level=Level.HINT,
        masks=("rendezvous-timeout",),
        echo=True,
    ),
)
