"""How `cuda-init-driver-state` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "cuda-init-driver-state"
TITLE = "CUDA cannot initialise although driver and GPU are there"
HINT = "reload the module (`sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm`) or reboot, and check `dmesg`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="CUDA unknown error",
        pattern=r"CUDA unknown error",
        examples=(
            "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
        ),
        not_examples=("CUDA error: out of memory",),
        weight=62,
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor=(
            "initialization error",
            "cuInit",
            "cudaErrorInitializationError",
            "CUDA driver initialization failed",
        ),
        pattern=r"(?i)cuda(?: error:| runtime error \(3\) :)? ?initialization error|cuInit\b.{0,60}(?:fail|return|error)|cudaErrorInitializationError|CUDA driver initialization failed|cudaGetDeviceCount\(\).{0,80}(?:unknown error|initialization error)",
        examples=(
            "RuntimeError: CUDA error: initialization error",
            "RuntimeError: cuda runtime error (3) : initialization error at x.cpp:50",
            "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        ),
        not_examples=("weight initialization done",),
        weight=55,
        not_near=("fork", "spawn"),
    ),
    Signature(
        anchor=("couldn't communicate with the NVIDIA driver", "nvidia-smi has failed because"),
        pattern=r"(?i)NVIDIA-SMI has failed because it couldn't communicate",
        examples=("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",),
        not_examples=("NVIDIA-SMI 535.54",),
        weight=66,
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor=("unknown error",),
        pattern=r"(?i)cuda runtime error \(30\)|CUDA error: unknown error|cudaErrorUnknown|CUDA_ERROR_UNKNOWN",
        examples=("RuntimeError: cuda runtime error (30) : unknown error at x.cpp:50",),
        not_examples=("error: unknown error code",),
        weight=52,
    ),
    Signature(
        anchor=("nvidia-modprobe", "could not insert 'nvidia"),
        pattern=r"could not insert 'nvidia|modprobe: (?:FATAL|ERROR).{0,60}nvidia",
        examples=("modprobe: ERROR: could not insert 'nvidia': No such device",),
        not_examples=("nvidia-modprobe installed",),
        weight=64,
    ),
)
