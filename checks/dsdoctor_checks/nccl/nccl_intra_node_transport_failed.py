"""NCCL's peer access or shared-memory transport between GPUs fails.

## Why it matters
GPUs in a node communicate through peer access or shared memory. Peer access fails on some consumer cards
and with ACS enabled; shared memory fails if `/dev/shm` is small.

## What to do
Set `NCCL_P2P_DISABLE=1` (and `NCCL_IB_DISABLE=1` on RTX 40 cards), disable ACS, or enlarge `/dev/shm`.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "nccl-intra-node-transport-failed",
    id="DSD852",
    scope=Scope.JOB,
    since="0.1",
    formerly=("nccl-p2p-or-shm-failure",),
)

HINT = (
    "set `NCCL_P2P_DISABLE=1` (and `NCCL_IB_DISABLE=1` on RTX 40 cards), disable ACS, or enlarge"
    " `/dev/shm`"
)

SIGNATURES = (
    Signature(
        pattern="peer access is not supported",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported between these two devices",
            "NCCL WARN failed to peer with device 0(=3d000): 217 peer access is not supported between these two devices",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="NCCL WARN (?:failed to open CUDA IPC|Cuda failure.{0,40}peer)",
        source="nccl 2.0-2.32 src/transport/p2p.cc, src/include/checks.h",
        examples=(
            "NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported between these two devices",
            "NCCL WARN Cuda failure ... peer",
        ),
        not_examples=(
            "box:31:90 [1] transport/p2p.cc:431 NCCL WARN Cuda failure 'invalid device context'",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"cudaIpc\w+.{0,60}fail",
        source="nccl 2.0-2.32 src/transport/p2p.cc",
        examples=(
            "box:31:90 [1] transport/p2p.cc:140 NCCL WARN cudaIpcGetMemHandle failed : invalid argument",
        ),
        not_examples=("box:31:90 [1] transport/p2p.cc:140 NCCL WARN cudaIpcGetMemHandle",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="(?<!NCCL INFO )Could not enable P2P",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("Could not enable P2P",),
        not_examples=(
            "a:1:2 [1] NCCL INFO Could not enable P2P between dev 1(=1e000) and dev 0(=1d000)",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="doesn't support faster communication broadband via P2P",
        source="accelerate 1.15.0 state.py",
        examples=(
            'NotImplementedError: Using RTX 4000 series doesn\'t support faster communication broadband via P2P or IB. Please set `NCCL_P2P_DISABLE="1"` and `NCCL_IB_DISABLE="1" or use `accelerate launch` which will do this automatically.',
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="accelerate stops with several RTX 40 GPUs unless peer access and "
        "InfiniBand are off",
        hint="set `NCCL_P2P_DISABLE=1` and `NCCL_IB_DISABLE=1`, or start the job with "
        "`accelerate launch`",
    ),
    Signature(
        pattern="while attaching to shared memory segment",
        source="nccl 2.8-2.32 src/misc/shmutils.cc, src/os/linux.cc",
        examples=(
            "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-x (size 9637888)",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="NCCL could not map its shared memory",
        hint="enlarge `/dev/shm` (`--shm-size=16g` or `--ipc=host`); containers with "
        "ranks of one node have to share it",
    ),
    Signature(
        pattern="P2P is disabled between NVLINK",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0.",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="failed to peer with device",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "NCCL WARN failed to peer with device 0(=3d000): 217 peer access is not supported between these two devices",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="NCCL WARN No transport found",
        source="nccl 2.4-2.32 src/transport.cc",
        examples=("NCCL WARN No transport found",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="peer mapping resources exhausted",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("peer mapping resources exhausted",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="mapping of buffer object failed",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "host1:2274:2274 [0] allocator.cc:89 (ncclMemAlloc) NCCL WARN Cuda failure 205 'mapping of buffer object failed'",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:transport/p2p|transport/shm|misc/shmutils|misc/ipcsocket|include/shm)\.(?:cc|cu|h):\d+ (?:NCCL )?WARN ",
        source=(
            "nccl 2.0-2.32 src/transport/p2p.cc, shm.cc, src/misc/shmutils.cc, ipcsocket.cc, "
            "src/include/shm.h, headed by src/debug.cc"
        ),
        examples=(
            "n1:9:12 [0] transport/shm.cc:114 NCCL WARN Could not map the segment",
            "n1:9:12 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'",
            "n1:9:12 [0] include/shm.h:30 NCCL WARN Call to shm_open failed : Permission denied",
            "n1:9:12 [0] misc/ipcsocket.cc:110 NCCL WARN UDS: Sending data over socket /tmp/nccl-socket-1-2 failed : Connection refused (111)",
            "c:10:44 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-ab12 to 33030532 bytes",
            "transport/p2p.cu:7 WARN ",
        ),
        not_examples=("n1:9:12 [0] NCCL INFO transport/p2p.cc:372 -> 1",),
        masks=("path-not-writable",),
        not_near=(
            "No space left on device",
            "out of memory",
            "failed to extend",
            "driver version is insufficient",
        ),
    ),
)
