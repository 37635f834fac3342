"""Peer access or the shared-memory transport between the GPUs fails.

## Why it matters
GPUs of one node talk through peer access or shared memory; consumer cards, ACS and small
`/dev/shm` break either.

## What to do
Set `NCCL_P2P_DISABLE=1` (and `NCCL_IB_DISABLE=1` on RTX 4000), or switch ACS off.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("nccl-p2p-or-shm-failure", id="DSD852", scope=Scope.JOB, since="0.1")

HINT = "set `NCCL_P2P_DISABLE=1` (and `NCCL_IB_DISABLE=1` on RTX 4000), or switch ACS off"

SIGNATURES = (
    Signature(
        anchor=(
            "peer access",
            "p2p.cc",
            "shm.cc",
            "CUDA IPC",
            "P2P",
            "while creating shared memory segment",
            "cudaIpc",
            "to shared memory segment",
            "failed to peer with device",
            "No transport found",
            "peer mapping resources",
            "mapping of buffer object failed",
            "NCCL WARN Cuda failure",
        ),
        pattern=(
            r"peer access is not supported|NCCL WARN (?:failed to open CUDA IPC"
            r"|Cuda failure.{0,40}peer)|cudaIpc\w+.{0,60}fail|(?<!NCCL INFO )Could not enable P2P"
            r"|doesn't support faster communication broadband via P2P|P2P (?:communication |transport |access )?(?:fail"
            r"|error)|while (?:creating|attaching to) shared memory segment"
            r"|P2P is disabled between NVLINK|failed to peer with device|NCCL WARN No transport found"
            r"|peer mapping resources exhausted|mapping of buffer object failed"
        ),
        examples=(
            "NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported between these two devices",
            "Error while creating shared memory segment /dev/shm/nccl-x (size 9)",
            "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-x (size 9637888)",
            "NCCL WARN failed to peer with device 0(=3d000): 217 peer access is not supported between these two devices",
            "NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0.",
        ),
        not_examples=(
            "Channel 00 via P2P/IPC",
            "a:1:2 [1] NCCL INFO Could not enable P2P between dev 1(=1e000) and dev 0(=1d000)",
        ),
        weight=66,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        anchor=("ncclInternalError", "internal error"),
        pattern="ncclInternalError|NCCL error in: .{0,120}, internal error",
        examples=(
            "ncclInternalError: Internal check failed.",
            "RuntimeError: NCCL error in: x.cpp:1269, internal error, NCCL version 2.14.3",
        ),
        not_examples=("internal error counter 0",),
        weight=22,
    ),
    Signature(
        anchor=(
            "transport/p2p.",
            "transport/shm.",
            "misc/shmutils.",
            "misc/ipcsocket.",
            "include/shm.",
        ),
        pattern=r"(?:transport/p2p|transport/shm|misc/shmutils|misc/ipcsocket|include/shm)\.(?:cc|cu|h):\d+ (?:NCCL )?WARN ",
        examples=(
            "n1:9:12 [0] transport/shm.cc:114 NCCL WARN Could not map the segment",
            "n1:9:12 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'",
            "n1:9:12 [0] include/shm.h:30 NCCL WARN Call to shm_open failed : Permission denied",
            "n1:9:12 [0] misc/ipcsocket.cc:110 NCCL WARN UDS: Sending data over socket /tmp/nccl-socket-1-2 failed : Connection refused (111)",
        ),
        not_examples=("n1:9:12 [0] NCCL INFO transport/p2p.cc:372 -> 1",),
        weight=48,
        masks=("permissions",),
        not_near=(
            "No space left on device",
            "out of memory",
            "failed to extend",
            "driver version is insufficient",
        ),
    ),
)
