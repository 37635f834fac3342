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
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Observation, Scope, Signature

CONDITION = Condition(
    "peer-connection-lost",
    id="DSD857",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.PEER_GONE,),
    transient="a node or a network that dropped the connection can be back next time",
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
)
