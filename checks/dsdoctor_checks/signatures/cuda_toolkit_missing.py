"""How `cuda-toolkit-missing` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "cuda-toolkit-missing"
TITLE = "no CUDA toolkit is found"
HINT = "install the CUDA toolkit of torch's version and set `CUDA_HOME` to it"
FIXES: tuple[str, ...] = ("install-cuda-toolkit",)

SIGNATURES = (
    Signature(
        anchor="CUDA_HOME",
        pattern=(
            r"^(?!.*\[WARNING\]).*CUDA_HOME(?: environment variable)? (?:is not set"
            r"|does not exist|is undefined|not set|is None)"
        ),
        examples=(
            "OSError: CUDA_HOME environment variable is not set.",
            "MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)",
        ),
        not_examples=("CUDA_HOME=/usr/local/cuda",),
        weight=64,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor="nvcc",
        pattern=(
            r"(?:No such file or directory|\[Errno 2\]|Errno 13).{0,40}nvcc\b"
            r"|nvcc['\x22]?:? (?:command )?not found|nvcc: No such file"
            r"|/nvcc: (?:not found|No such)|Could not find nvcc|nvcc was not found"
            r"|Unable to (?:find|locate) nvcc|which: no nvcc"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'",
            "/bin/sh: 1: nvcc: not found",
            "bash: nvcc: command not found",
        ),
        not_examples=("/usr/local/cuda/bin/nvcc -O3 -c x.cu",),
        weight=64,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=("bare_metal_version", "Cannot find CUDA", "CUDA toolkit"),
        pattern=r"(?i)(?:cannot|could not|unable to) (?:find|locate)(?: a| the)? (?:valid )?CUDA(?: toolkit| installation)?\b|name 'bare_metal_version' is not defined|CUDA_TOOLKIT_ROOT_DIR not found",
        examples=(
            "NameError: name 'bare_metal_version' is not defined",
            "Cannot find CUDA installation.",
        ),
        not_examples=("CUDA toolkit found",),
        weight=60,
    ),
    Signature(
        anchor="NoneType",
        pattern=r"unsupported operand type\(s\) for \+: 'NoneType' and 'str'",
        examples=("TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",),
        not_examples=("'NoneType' object has no attribute 'x'",),
        weight=58,
        near=("nvcc", "cuda_home", "CUDA_HOME", "installed_cuda_version"),
    ),
)
