"""How `launched-without-deepspeed` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "launched-without-deepspeed"
TITLE = "the script was started without a launcher"
HINT = "start it with `deepspeed train.py`, `torchrun` or `accelerate launch`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "expected, but not set",
            "mpi4py",
            "KeyError: 'LOCAL_RANK'",
            "KeyError: 'RANK'",
            "KeyError: 'WORLD_SIZE'",
            "Default process group has not been initialized",
            "MASTER_ADDR",
        ),
        pattern=(
            r"environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT"
            r"|LOCAL_RANK) expected, but not set|No module named '?mpi4py"
            r"|KeyError: '(?:LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'"
            r"|Default process group has not been initialized"
        ),
        examples=(
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
            "ModuleNotFoundError: No module named 'mpi4py'",
        ),
        not_examples=("MASTER_ADDR=node-a",),
        weight=62,
    ),
)
