"""How `fabric-manager-not-running` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "fabric-manager-not-running"
TITLE = "the fabric manager of this NVSwitch machine is not running or does not match"
HINT = "run `sudo systemctl restart nvidia-fabricmanager` with the version of the driver"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "system not yet initialized",
            "cudaErrorSystemNotReady",
            "fabric manager",
            "fabricmanager",
            "Error 802",
        ),
        pattern=r"(?i)system not yet initialized|cudaErrorSystemNotReady|fabric ?manager.{0,80}(?:not running|fail|mismatch|not matching|does n.t match|error)|Error 802",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        ),
        not_examples=("fabric manager is running",),
        weight=78,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
)
