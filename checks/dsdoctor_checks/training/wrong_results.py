"""A GPU or the communication between GPUs computes wrong results.

## Why it matters
A wrong sum in a collective, a wrong matrix product or replicas that drift apart raise no error. The
run continues and trains a wrong model.

## What to do
Run `dsdoctor check`, which reports ECC errors and broken links. Exclude the GPU or the host of the
rank that is named, and run `dsdoctor smoke` again. If `NCCL_*` variables are set, unset them.

## References
`dsdoctor smoke` compares every collective with the expected sum, the losses of all ranks on the same
tokens, and the losses with those of a single process with the same seed.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("wrong-results", id="DSD1760", scope=Scope.NODE, since="0.1")

HINT = "run `dsdoctor check` to find ECC errors and broken links, exclude the GPU of the rank that is named, and run `dsdoctor smoke` again"

SIGNATURES = (
    Signature(
        pattern=r"\b(?:all_reduce|broadcast|all_gather|reduce_scatter|p2p) gave \S+ on rank \d+, expected|the loss of step \d+ is \S+, but \S+ in a single process with the same seed|the loss on the same tokens is \S+ on rank \d+, but \S+ on rank \d+",
        examples=(
            "CheckError: all_reduce gave 4 on rank 1, expected 3",
            "FAIL  the loss of step 3 is 6.100000, but 5.900000 in a single process with the same seed",
            "the loss on the same tokens is 6.100000 on rank 0, but 6.200000 on rank 1",
        ),
        not_examples=(
            "RuntimeError: unexpected EOF, expected 3811290 more bytes. The file might be corrupted.",
        ),
        level=Level.CERTAIN,
    ),
)
