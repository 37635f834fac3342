"""A GPU or the communication between GPUs computes wrong results.

## Why it matters
A wrong sum in a collective, a wrong matrix product or replicas that drift apart raise no error. The
run continues and trains a wrong model.

## What to do
Run `dsdoctor check`, which reports ECC errors and broken links. Exclude the GPU or the host of the
rank shown in the finding, and run `dsdoctor smoke` again. If `NCCL_*` variables are set, unset them.

## References
`dsdoctor smoke` compares every collective with the expected sum, the losses of all ranks on the same
tokens, and the losses with those of a single process with the same seed.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Observation, Scope

CONDITION = Condition(
    "wrong-results",
    id="DSD1760",
    scope=Scope.NODE,
    since="0.1",
    names=(Observation.WRONG_VALUES,),
)

HINT = "run `dsdoctor check` to find ECC errors and broken links, exclude the GPU of the rank that is named, and run `dsdoctor smoke` again"
