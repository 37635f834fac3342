"""How `cuda-toolkit-mismatch` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "cuda-toolkit-mismatch"
TITLE = "nvcc is of another CUDA version than torch was built with"
HINT = "install the toolkit of torch's CUDA version and point `CUDA_HOME` at it"
FIXES: tuple[str, ...] = ("install-cuda-toolkit",)

SIGNATURES = (
    Signature(
        anchor="does not match the version torch was compiled with",
        pattern=(
            r"Installed CUDA version (?P<have>\S+) does not match the version torch was compiled with (?P<want>[\d.]+)(?=.{0,60}(?:unable"
            r"|\Z))"
        ),
        examples=(
            "Exception: >- DeepSpeed Op Builder: Installed CUDA version 12.1 does not match the version torch was compiled with 11.8, unable to compile cuda/cpp extensions",
        ),
        not_examples=(
            "Installed CUDA version 11.8 does not match the version torch was compiled with 11.7 but since the APIs are compatible, accepting this combination",
        ),
        message="nvcc is CUDA {have}, but torch was built for CUDA {want}",
        weight=58,
        not_near=("APIs are compatible", "Python.h: No such"),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=("The detected CUDA version", "mismatches the version that was used to compile"),
        pattern=r"(?:The )?detected CUDA version \(?.{0,12}\)? mismatches the version",
        examples=(
            "RuntimeError: The detected CUDA version (11.4) mismatches the version that was used to compile PyTorch (12.1)",
        ),
        not_examples=(
            "There was a minor version mismatch: The detected CUDA version (11.4) has a minor version mismatch with the version",
        ),
        weight=66,
    ),
    Signature(
        anchor="CUDAMismatchException",
        pattern=r"^\S*CUDAMismatchException: ",
        examples=(
            "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: x",
        ),
        not_examples=("raise CUDAMismatchException(",),
        weight=66,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=(
            "Cuda extensions are being compiled with a version",
            "compiled with a version of Cuda that does not match",
        ),
        pattern=r"version of Cuda that does not match",
        examples=(
            "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used to compile Pytorch binaries.",
        ),
        not_examples=("Cuda extensions are being compiled",),
        weight=64,
    ),
)
