"""The processes do not meet at the master address.

## Why it matters
All ranks meet at one address and port. A wrong address, a firewall or a node that never started
leaves the others waiting.

## What to do
Check that the master address resolves, is reachable on its port, and that every node has started.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("rendezvous-timeout", id="DSD1251", scope=Scope.JOB, since="0.1")

HINT = "check that the master address resolves, is reachable on its port, and that every node has started"

SIGNATURES = (
    Signature(
        anchor=(
            "client socket has",
            "RendezvousTimeoutError",
            "RendezvousConnectionError",
            "clients joined",
            "has timed out after",
            "getaddrinfo",
            "failed to connect to any network address",
            "store based barrier on rank",
            "Original timeout was",
            "cannot be retrieved",
            "hostname of the rendezvous",
            "connection to the C10d store",
            "connect() timed out. Original timeout",
        ),
        pattern=(
            r"client socket has (?:timed out|failed to connect to any)"
            r"|(?:^|\.)Rendezvous(?:Timeout|Connection)Error|\d+/\d+ clients joined"
            r"|IPv[46] network addresses of .{0,80}cannot be retrieved"
            r"|torch.*getaddrinfo|in store based barrier on rank|connect\(\) timed out\. Original timeout"
            r"|hostname of the rendezvous|connection to the C10d store has failed"
        ),
        examples=(
            "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 10.0.0.1:1234",
            "DistStoreError: Timed out after 11 seconds waiting for clients. 1/2 clients joined.",
            "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1",
            "RuntimeError: connect() timed out. Original timeout was 1800000 ms.",
        ),
        not_examples=("raise RendezvousTimeoutError",),
        weight=56,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        anchor="client socket has failed to",
        pattern="client socket has failed to (?:connect|get)(?!.{0,200}system error: 10049)",
        examples=(
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [node-0]:29500 (errno: 110 - Connection timed out).",
            "[W socket.cpp:401] [c10d] The client socket has failed to connect to 10.0.0.1:1 (errno: 113 - No route to host).",
        ),
        not_examples=(
            "The client socket has connected",
            "the client socket has failed to resume a session, opening a new one",
        ),
        weight=50,
        masks=("nccl-timeout-watchdog",),
        unless=("exits successfully",),
    ),
    Signature(
        anchor=(
            "Connection timed out",
            "Connection reset by peer",
            "Connection refused",
            "No route to host",
            "name resolution",
            "Name or service not known",
            "Broken pipe",
        ),
        pattern=(
            r"[Ee]rror: (?:Connection (?:timed out|refused|reset by peer)|Broken pipe"
            r"|No route to host|.{0,40}(?:[Tt]emporary failure in name resolution"
            r"|Name or service not known))"
        ),
        examples=(
            "RuntimeError: Connection timed out",
            "RuntimeError: Connection refused",
            "ValueError: host not found: Name or service not known",
        ),
        not_examples=(
            "requests.exceptions.ConnectionError: connection refused by proxy",
            "mirror 2: Connection timed out, trying mirror 3",
        ),
        weight=48,
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
        ),
    ),
    Signature(
        anchor="RendezvousClosedError",
        pattern=r"(?:^|\.)RendezvousClosedError",
        examples=(
            "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
            "RendezvousClosedError",
        ),
        not_examples=("raise RendezvousClosedError()",),
        weight=40,
    ),
    Signature(
        anchor=("waiting for", "Stop_waiting"),
        pattern="Timed out after \\d+ seconds waiting for (?:workers|clients|members)|Stop_waiting response is expected|timed out waiting for (?:the )?(?:other )?(?:nodes|peers|workers) to join",
        examples=(
            "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for workers. 1/4 workers joined.",
            "RuntimeError: Stop_waiting response is expected",
        ),
        not_examples=("waiting for workers to load data",),
        weight=56,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        anchor=("n store based barrier to initialize",),
        pattern=r"Waiting in store based barrier to initialize process group for (?:rank|\d+ seconds)",
        examples=(
            "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=2, timeout=0:30:00)",
            "Waiting in store based barrier to initialize process group for 20 seconds",
        ),
        not_examples=("n store based barrier to initialize the group was passed by 8 ranks",),
        weight=44,
        final=True,
    ),
    Signature(
        anchor=(
            "failed on SocketImpl",
            "host not found: Name or service",
            "Failed to recv, got 0 bytes",
            "No rendezvous handler for",
        ),
        pattern=r"(?:recvValue|sendBytes|recvVector)\w* failed on SocketImpl|host not found: Name or service|Failed to recv, got 0 bytes",
        examples=(
            "[W1 TCPStore.cpp:125] [c10d] recvValueWithTimeout failed on SocketImpl(fd=22, addr=[n1]:1, remote=[n0]:29500): Failed to recv, got 0 bytes",
            "ValueError: host not found: Name or service not known",
        ),
        not_examples=("a retry failed on SocketImpl of the mock",),
        weight=24,
    ),
)
