"""Ranks call different collectives, or the same collective with tensors of different shapes.

## Why it matters
All ranks of a process group must call the same collectives, in the same order and with the same shapes.
If a rank takes another path, gloo fails where the sizes differ and torch fails where
`TORCH_DISTRIBUTED_DEBUG=DETAIL` compares the calls. NCCL compares nothing: it hangs or adds up the wrong
values.

## What to do
Compare what the two ranks in the message run: look for branches that depend on the rank or on the data
(empty batches, a last batch of a different size, metrics logged on some ranks only, text-only samples in a
multimodal batch). If the message does not name them, run again with `TORCH_DISTRIBUTED_DEBUG=DETAIL`.

## References
- torch distributed/c10d/ProcessGroupWrapper.cpp
- gloo/transport/tcp/pair.cc
- https://github.com/NVIDIA/nccl/issues/1394 (what NCCL does)
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("collective-mismatch", id="DSD858", scope=Scope.JOB, since="0.1")

HINT = (
    "compare the code paths of the two ranks (branches on the rank or on the data, batches of "
    "different sizes); `TORCH_DISTRIBUTED_DEBUG=DETAIL` names the two calls"
)
#: What other ranks print of the same failure.
_ECHOES = ("peer-connection-lost", "native-crash", "nccl-timeout-watchdog", "rendezvous-timeout")

SIGNATURES = (
    Signature(
        pattern=r"Detected mismatch between collectives on ranks\. Rank \d|Collectives differ in the following aspects:\s*(?:[A-Z]|$)",
        source="torch 1.9-2.13 distributed/c10d/ProcessGroupWrapper.cpp; the second sentence since 2.1",
        examples=(
            "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=BARRIER).",
            "RuntimeError: Collectives differ in the following aspects: \t Op type: ALLREDUCEvs BROADCAST",
        ),
        not_examples=(
            "Detected mismatch between collectives on ranks. Rank N is running collective",
            "Collectives differ in the following aspects: ...",
        ),
        level=Level.STRONG,
        masks=_ECHOES,
    ),
    Signature(
        pattern=r"NCCL WARN NET/IB ?: req \d{1,6}/\d{1,6} tag \w{1,16} peer \S{1,80} collective mismatch error, local size \d+ remote size \d",
        source="NCCL 2.12-2.21 src/transport/net_ib.cc",
        examples=(
            "node-a:24:57 [3] transport/net_ib.cc:1081 NCCL WARN NET/IB : req 0/1 tag 3 peer 10.0.0.3<48895> collective mismatch error, local size 78848 remote size 65536",
        ),
        not_examples=("a collective mismatch error, local size 3 remote size 4",),
        level=Level.STRONG,
        masks=(*_ECHOES, "nccl-ib-or-socket-interface"),
    ),
    Signature(
        pattern=r"op\.preamble\.length <= op\.nbytes\. \d+ vs \d+",
        source="gloo transport/tcp/pair.cc, torch 1.5-2.13",
        examples=(
            "what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 256000 vs 128000",
        ),
        not_examples=("op.preamble.length <= op.nbytes. The sizes of both ranks follow",),
        level=Level.STRONG,
        masks=_ECHOES,
    ),
    Signature(
        pattern=r"\bEI0005\b.{0,80}inconsistent between ranks",
        source="CANN 6-8 hccl: error code EI0005",
        examples=(
            "EI0005: [PID: 7] 2024-05-21-10:00:00 The arguments for collective communication are inconsistent between ranks: parameter count, local end 10, remote end 20",
        ),
        not_examples=("EI0006: what is inconsistent between ranks",),
        level=Level.STRONG,
        masks=(*_ECHOES, "hccl-error"),
    ),
)
