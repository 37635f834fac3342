"""The GPU reports a hardware fault.

## Why it matters
An Xid, a GPU off the bus or an uncorrectable ECC error does not go away by starting again on the
same GPU.

## What to do
Drain the node, read `dmesg | grep -i xid` and run `dcgmi diag -r 3`.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("gpu-hardware-fault", id="DSD650", scope=Scope.NODE, since="0.1")

HINT = "drain the node, read `dmesg | grep -i xid` and run `dcgmi diag -r 3`"

SIGNATURES = (
    Signature(
        anchor=(
            "Xid",
            "fallen off the bus",
            "uncorrectable",
            "ECC error",
            "GPU is lost",
            "hardware error",
            "cudaErrorECCUncorrectable",
            "GPU recovery",
            "Unable to determine the device handle",
            "requires a reset",
            "require a reset",
            "requires reset",
            "require reset",
        ),
        pattern=(
            r"NVRM: Xid|\bXid\b.{0,60}: (?:48|62|63|64|74|79|92|94|95|119"
            r"|120|140)\b|fallen off the bus|(?i:uncorrectable (?:ECC|NVLink"
            r"|error))|ECCUncorrectable|GPU is lost|requires? (?:a )?reset"
            r"|Unable to determine the device handle"
        ),
        examples=(
            "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.",
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        ),
        not_examples=("Volatile uncorrectable: 0",),
        weight=82,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        anchor=(
            "unspecified launch failure",
            "an illegal instruction was encountered",
            "hardware stack error",
        ),
        pattern=(r"CUDA error: (?:an illegal instruction was encountered|hardware stack error)"),
        examples=(
            "RuntimeError: CUDA error: an illegal instruction was encountered",
            "RuntimeError: CUDA error: hardware stack error",
        ),
        not_examples=("unspecified launch failure",),
        weight=40,
    ),
    Signature(
        anchor=("Unable to determine the device handle",),
        pattern=r"Unable to determine the device handle for (?:GPU|gpu)",
        examples=(
            "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
            "Unable to determine the device handle for gpu 0000:8A:00.0: GPU is lost.  Reboot the system to recover this GPU",
        ),
        not_examples=("device handle for GPU 0000:3B:00.0 acquired",),
        weight=80,
    ),
)
