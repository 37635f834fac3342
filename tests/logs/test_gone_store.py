"""What the other ranks' watchdogs say of a store whose rank has died is a consequence."""

from __future__ import annotations

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

#: As torch 2.9.1+cu128 wrote it where ncclCommInitRank failed on rank 0 (tests/standin).
FAILED = """\
Traceback (most recent call last):
  File "train.py", line 40, in main
    dist.all_reduce(tensor)
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3699, unhandled system error \
(run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
"""
STORE = "[W1122 13:25:0{} TCPStore.cpp:1] [c10d] {} failed on SocketImpl(fd=5, addr=[127.0.0.1]:3, remote=[127.0.0.1]:4): {}\n"
MONITOR = (
    "[W1122 13:25:0{} ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0(default_pg) Rank 1] Failed to check the "
    '"should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: {}\n'
)
CLOSED = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"


def test_the_failed_rank_is_the_cause_and_the_closed_store_is_not() -> None:
    other = (
        STORE.format("1.68", "recvValue", CLOSED)
        + MONITOR.format("1.69", CLOSED)
        + STORE.format("2.70", "sendBytes", "Broken pipe")
        + MONITOR.format("2.71", "Broken pipe")
    )
    sources = [
        Source(name=f"rank-{rank}.log", data=text.encode(), rank=rank)
        for rank, text in enumerate((FAILED, other))
    ]
    found = diagnose(sources, signatures_of(packs.load(builtin_only=True)))
    assert [cause.condition for cause in found.causes] == ["nccl-ib-or-socket-interface"]
