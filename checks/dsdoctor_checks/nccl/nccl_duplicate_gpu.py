"""Two ranks use the same GPU.

## Why it matters
Each rank needs its own GPU. NCCL refuses to start if two ranks use the same one.

## What to do
Call `torch.cuda.set_device(local_rank)` before the first collective, and start at most as many ranks per
node as it has GPUs.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("nccl-duplicate-gpu", id="DSD850", scope=Scope.JOB, since="0.1")

HINT = "call `torch.cuda.set_device(local_rank)` before the first collective"

SIGNATURES = (
    Signature(
        pattern="Duplicate GPU detected",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
            "NCCL WARN Duplicate GPU detected : rank 7 and rank 0 both on CUDA device 3d000",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        # nccl before 2.13 does not say why; while ranks connect for DistributedDataParallel, which
        # first compares the parameters, it refuses hardly anything else so
        pattern=r"ProcessGroupNCCL\.cpp:\d{1,6}, invalid usage, NCCL version",
        source="torch 1.7-1.12 csrc/distributed/c10d/ProcessGroupNCCL.cpp; nccl 2.7-2.12 src/init.cc; NVIDIA/nccl issue 1241, PiPPy issue 396 and espnet issue 4726",
        message="NCCL refuses how it is used, mostly since two ranks use the same GPU",
        hint="let each rank use the GPU of its `LOCAL_RANK` (`torch.cuda.set_device`), and start no more ranks on a node than it has GPUs; with `NCCL_DEBUG=WARN` NCCL says what it refuses",
        examples=(
            "RuntimeError: NCCL error in: /src/ProcessGroupNCCL.cpp:911, invalid usage, NCCL version 2.7.8",
        ),
        not_examples=("error in: ../comm.cpp:12, invalid usage, NCCL version 2.7.8",),
        near=("_verify_param",),
        not_near=("Last error:",),
    ),
)
