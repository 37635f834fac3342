"""The GPU ran out of memory.

## Why it matters
Parameters, gradients, optimizer states, activations and logits together need more memory than is
free on the GPU.

## What to do
It depends on where the run stopped. While the model is moved to the GPU, load it on the CPU or under
`deepspeed.zero.Init`. During setup or in the optimizer step, raise the ZeRO stage or offload. In the
forward or backward pass, lower the micro-batch or the sequence length, or use activation
checkpointing.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope

from . import _accelerator_oom_signatures, _gpu_oom_signatures

CONDITION = Condition("gpu-oom", id="DSD1451", scope=Scope.JOB, since="0.1")

HINT = "lower the micro-batch or the sequence length, raise the ZeRO stage, or offload"

SIGNATURES = (*_gpu_oom_signatures.SIGNATURES, *_accelerator_oom_signatures.SIGNATURES)
