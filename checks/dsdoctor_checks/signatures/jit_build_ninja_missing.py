"""How `jit-build-ninja-missing` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "jit-build-ninja-missing"
TITLE = "ninja is not found, or cannot be run"
HINT = "install it into the environment: `python -m pip install ninja`, and put the environment's `bin` on PATH"
FIXES: tuple[str, ...] = ("install-ninja",)

SIGNATURES = (
    Signature(
        anchor=(
            "inja is required to load",
            "due to ninja not being installed",
            "'ninja'",
            "ninja: command not found",
            "ninja: not found",
            "attempted to use ninja",
        ),
        pattern=(
            r"[Nn]inja is required to load|due to ninja not being|(?:No such file or directory"
            r"|Errno 2\]|Errno 13\].*): '?ninja'|ninja: (?:command )?not found"
            r"|'ninja', '--version'\].{0,40}non-zero"
        ),
        examples=(
            "RuntimeError: Ninja is required to load C++ extensions",
            "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        ),
        not_examples=("Command '['ninja', '-v']' returned non-zero exit status 1.",),
        weight=68,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
