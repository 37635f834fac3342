"""How `deepspeed-torch-incompatible` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "deepspeed-torch-incompatible"
TITLE = "this DeepSpeed release does not fit this torch release"
HINT = "upgrade DeepSpeed: `python -m pip install -U deepspeed`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("torch._six",),
        pattern=(r"No module named 'torch\._six'|cannot import name '\w+' from 'torch\._six'"),
        examples=("ModuleNotFoundError: No module named 'torch._six'",),
        not_examples=("import torch._six",),
        weight=70,
    ),
    Signature(
        anchor="torch.distributed.elastic.agent",
        pattern=r"cannot import name 'log' from 'torch\.distributed\.elastic",
        examples=(
            "ImportError: cannot import name 'log' from 'torch.distributed.elastic.agent.server.api'",
        ),
        not_examples=("torch.distributed.elastic.agent started",),
        weight=70,
    ),
    Signature(
        anchor="C++17",
        pattern=(
            r"#error \x22?C\+\+17 or later compatible compiler is required"
            r"|C\+\+17 or later compatible compiler is required"
        ),
        examples=(
            "x/all.h:4:2: error: #error C++17 or later compatible compiler is required to use PyTorch.",
        ),
        not_examples=("-std=c++17 C++17 enabled",),
        weight=62,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("C++20 or later", "C++20 or newer"),
        pattern=r"C\+\+20 or (?:later|newer) (?:compatible compiler )?is required",
        examples=("error: #error C++20 or later compatible compiler is required to use PyTorch.",),
        not_examples=("C++20 or later is optional",),
        weight=62,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor="deepspeed",
        pattern=r"cannot import name '\w+' from 'deepspeed(?:\.[\w.]+)?'",
        examples=("ImportError: cannot import name 'get_accelerator' from 'deepspeed'",),
        not_examples=("cannot import name 'x' from 'torch'",),
        weight=55,
    ),
    Signature(
        anchor="torch",
        pattern=(
            r"(?:cannot import name '\w+' from 'torch\.|module 'torch\.?[\w.]*' has no attribute ')"
        ),
        examples=("ImportError: cannot import name 'ReduceOp' from 'torch.distributed'",),
        not_examples=("from torch.distributed import ReduceOp",),
        weight=50,
        near=("/deepspeed/",),
    ),
    Signature(
        anchor="TORCH_MAJOR",
        pattern=r"TORCH_MAJOR|requires a torch version .{0,40}but detected",
        examples=("AssertionError: TORCH_MAJOR",),
        not_examples=("torch",),
        weight=10,
    ),
)
