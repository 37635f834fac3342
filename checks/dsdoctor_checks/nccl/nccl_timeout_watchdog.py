"""A collective timed out because a rank is slow, stuck or dead.

## Why it matters
The watchdog aborts a rank that waited too long in a collective. The rank that reports the timeout is not
the cause: look for the rank that never reached the collective.

## What to do
Find the missing rank with `py-spy dump --pid PID` on each node. If it is only slow, raise the timeout:
`ddp_timeout` of the Hugging Face trainer (seconds), else `DEEPSPEED_TIMEOUT` (minutes) or the argument
`timeout` of `deepspeed.init_distributed` or `torch.distributed.init_process_group`.

A mixture of experts under ZeRO-3 hangs when ranks use different experts, each of them a module of its
own: mark the block of experts as a leaf module (`deepspeed.utils.set_z3_leaf_modules`).

## References
- https://github.com/deepspeedai/DeepSpeed/issues/7461 (experts under ZeRO-3)
- Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import (
    Condition,
    Level,
    Observation,
    Scope,
    Signature,
)

CONDITION = Condition(
    "nccl-timeout-watchdog",
    id="DSD853",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.NO_COLLECTIVE,),
    transient="a rank that was stuck may reach the collective next time",
)

HINT = (
    "find the rank that never reached the collective (`py-spy dump --pid PID`); if it is only slow,"
    " raise the timeout: `ddp_timeout` of the Hugging Face trainer, else `DEEPSPEED_TIMEOUT` (minutes)"
)

SIGNATURES = (
    Signature(
        pattern=r"[Ww]atchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)",
        source="torch 1.7-2.13 csrc/distributed/c10d/ProcessGroupNCCL.cpp",
        examples=(
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800021 milliseconds before timing out.",
            "[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800128 milliseconds",
        ),
        not_examples=(
            "[E ProcessGroupNCCL.cpp:1] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for 600100 milliseconds before timing out.",
        ),
        message="A collective timed out ({operation} number {number}): a rank is slow, stuck or dead",
        compared=("operation", "number"),
        echo=True,
    ),
    Signature(
        pattern="[Ww]atchdog caught collective operation timeout",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)",
            "RuntimeError: NCCL communicator was aborted on rank 1. Original reason: [Rank 1] Watchdog caught collective operation timeout",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        # no library prints it; trainers raise it in their own words
        pattern=r"(?:(?<=Error: )|(?<=Exception: )|(?<=failure was: ))NCCL communication timeout",
        source=(
            "published guides of running DeepSpeed, which word it so; no release of torch 1.13-2.9 "
            "does"
        ),
        examples=(
            "RuntimeError: NCCL communication timeout",
            "train.CommException: NCCL communication timeout",
            "RuntimeError: NCCL communicator was aborted on rank 1.  Original reason for failure was: NCCL communication timeout",
        ),
        not_examples=("4. NCCL communication timeout (check GPU connectivity)",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="Timeout at NCCL work",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "[E522 03:03:03.120 ProcessGroupNCCL.cpp:1537] [PG 3 Rank 4] Timeout at NCCL work: 119, last enqueued NCCL work: 119, last completed NCCL work: 118.",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"Timed out waiting \d+ms for (?:recv|send)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: [unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete",
            "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:129] Timed out waiting 10000ms for send operation to complete",
        ),
        not_examples=("RuntimeError: [unbound_buffer.cc:84] Timed out waiting 1800000ms for",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="NCCL operation timed out|NCCL timeout when waiting for nonblocking call",
        source="torch 2.14.1 libtorch_cuda.so",
        examples=(
            "RuntimeError: NCCL operation timed out",
            "RuntimeError: NCCL timeout when waiting for nonblocking call to become successful.",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="failed to pass monitoredBarrier",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("RuntimeError: Rank 0 failed to pass monitoredBarrier in 1800000 ms",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank \d",
        source="torch 1.9-2.15 csrc/distributed/c10d/ProcessGroupGloo.cpp",
        examples=(
            "RuntimeError: Rank 4 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
        ),
        not_examples=(
            "successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank x",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="in monitoredBarrier",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("in monitoredBarrier",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"[Ww]ait timeout after \d+",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//timeout",
        ),
        not_examples=("Wait timeout after is fine",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        # of an answer of the store: of a key that another rank writes, such as the ID of a new group
        pattern=r"\[c10d\] waitForInput: socket .{1,300} timed out after \d+ms",
        source="torch 2.5-2.13 csrc/distributed/c10d/socket.cpp",
        message="A rank waited too long in the store for what another rank writes",
        hint="look for the ranks that had not come as far and what they did: the loading of a checkpoint or of data, or a failure; if all were at work, raise the `timeout` of `init_process_group`",
        examples=(
            "[rank5]:[W319 11:31:42.914854611 socket.cpp:487] [c10d] waitForInput: socket SocketImpl(fd=114, addr=[::ffff:10.0.0.3]:38584, remote=[::ffff:10.0.0.3]:39283) timed out after 600000ms",
        ),
        not_examples=("[c10d] waitForInput: socket SocketImpl(fd=114) timed out after a while",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="[Hh]eartbeat monitor timed out",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=("Heartbeat monitor timed out",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"[Ss]ocket [Tt]imeout\b",
        source="torch 2.13.0 distributed/elastic/utils/distributed.py, include/torch/csrc/distributed/c10d/Utils.hpp",
        examples=("RuntimeError: Socket Timeout",),
        not_examples=("[rank0]: Heartbeat ok, socket timeout_s=30",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"store->get\(.{0,80}(?:[Tt]imeout|timed out)",
        source="torch 1.8-2.13 csrc/distributed/c10d/ProcessGroupNCCL.cpp",
        examples=(
            "torch.distributed.DistBackendError: [7] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout",
            "store->get(timed out",
        ),
        not_examples=(
            "torch.distributed.DistBackendError: [7] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Socket",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"watchdog got stuck for \d+",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "[F ProcessGroupNCCL.cpp:1250] [Rank 0] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress",
        ),
        not_examples=("watchdog got stuck for is fine",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="Application timeout caused pair closure",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("Application timeout caused pair closure",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="NCCL operations have failed or timed out",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "[E ProcessGroupNCCL.cpp:684] [Rank 1] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"ran for \d+ milliseconds before timing out",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "what():  [PG 3 Rank 4] Process group watchdog thread terminated with exception: [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=119, OpType=COALESCED, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.",
        ),
        not_examples=("for 600042 milliseconds before timing out.",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern="detected by watchdog at work|on this rank to signal dumping|Received a dump signal",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "[rank1]:[E1026 04:01:29.1 ProcessGroupNCCL.cpp:2241] [PG ID 0 Rank 1] failure detected by watchdog at work sequence id: 9",
            "[E ProcessGroupNCCL.cpp:1664] [PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 12",
            "[E ProcessGroupNCCL.cpp:1682] [PG ID 0 Rank 3] Received a dump signal due to a collective timeout from rank 1",
            "on this rank to signal dumping",
        ),
        level=Level.HINT,
        echo=True,
    ),
)
