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
        ),
        pattern=(
            r"client socket has (?:timed out|failed to connect to any)"
            r"|(?:^|\.)Rendezvous(?:Timeout|Connection)Error|\d+/\d+ clients joined"
            r"|client socket has failed to (?:connect|get)|IPv[46] network addresses of .{0,80}cannot be retrieved"
            r"|torch.*getaddrinfo"
        ),
        examples=(
            "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 10.0.0.1:1234",
            "DistStoreError: Timed out after 11 seconds waiting for clients. 1/2 clients joined.",
        ),
        not_examples=("raise RendezvousTimeoutError",),
        weight=56,
        masks=("nccl-timeout-watchdog",),
    ),
)
