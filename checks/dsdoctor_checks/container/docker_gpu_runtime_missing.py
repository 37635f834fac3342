"""Docker has no NVIDIA runtime.

## Why it matters
Docker hands a GPU to a container through NVIDIA's runtime; without it the container does not
start.

## What to do
Install `nvidia-container-toolkit`, run `nvidia-ctk runtime configure --runtime=docker`, restart
Docker.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("docker-gpu-runtime-missing", id="DSD1150", scope=Scope.NODE, since="0.1")

HINT = "install `nvidia-container-toolkit`, run `nvidia-ctk runtime configure --runtime=docker`, restart Docker"

SIGNATURES = (
    Signature(
        anchor="could not select device driver",
        pattern=r"could not select device driver",
        examples=(
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            'Error response from daemon: could not select device driver "nvidia" with capabilities: [[compute utility]]',
        ),
        not_examples=("device driver loaded",),
        weight=80,
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor=(
            "nvidia runtime",
            "runtime name: nvidia",
            "nvidia-container-runtime",
            "unknown runtime specified nvidia",
            "unresolvable CDI devices",
            "nvidia-container-cli",
        ),
        pattern=(
            r"(?i)unknown or invalid runtime name: nvidia|unknown runtime specified nvidia"
            r"|nvidia-container-runtime\S*: (?:executable file )?not found"
            r"|unresolvable CDI devices|nvidia-container-runtime-hook.{0,60}not found"
            r"|nvidia-container-cli: (?!.*(?:version mismatch"
            r"|requirement)).{0,120}(?:error|not found)"
        ),
        examples=(
            "docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
            'exec: "nvidia-container-runtime-hook": executable file not found',
        ),
        not_examples=("nvidia-container-runtime 1.14",),
        weight=72,
    ),
    Signature(
        anchor=(
            "nvidia-container-runtime",
            "no runtime for",
            "RuntimeHandler",
            "nvidia-docker",
            "nvidia.com/gpu",
        ),
        pattern=(
            r"nvidia-container-runtime\S*: no such file|no runtime for \x22nvidia\x22 is configured"
            r"|RuntimeHandler \x22nvidia\x22 not supported|nvidia-docker: command not found"
            r"|Insufficient nvidia\.com/gpu"
        ),
        examples=(
            "error running hook #0: fork/exec /usr/bin/nvidia-container-runtime-hook: no such file or directory: unknown.",
            'failed to get sandbox runtime: no runtime for "nvidia" is configured',
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        ),
        not_examples=("nvidia.com/gpu: 8 allocatable",),
        weight=70,
        masks=("no-gpu-visible",),
    ),
)
