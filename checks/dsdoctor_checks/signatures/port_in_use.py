"""How `port-in-use` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "port-in-use"
TITLE = "the master port is already bound"
HINT = "choose another: `--master_port` / `--rdzv_endpoint`, or end the old run"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("ddress already in use", "EADDRINUSE"),
        pattern=r"[Aa]ddress already in use|EADDRINUSE",
        examples=(
            "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        ),
        not_examples=("address in use",),
        weight=70,
        masks=("rendezvous-timeout",),
    ),
)
