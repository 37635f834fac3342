"""The launcher refuses an option of the command line.

## Why it matters
The launcher exits with a usage error before any rank starts. On a cluster that happens only after
the job has waited in the queue.

## What to do
Correct the option. Options of the launcher come before the script, options of the script after it.
`deepspeed --help`, `torchrun --help` and `accelerate launch --help` list what this release accepts.

## References
- DeepSpeed launcher/runner.py: `parse_args` (0.19.8)
- PyTorch torch/distributed/run.py: `get_args_parser` (2.13)
- accelerate commands/launch.py: `launch_command_parser` (1.15)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, LaunchParse, Scope, check, fail, ok

CONDITION = Condition(
    "launch-option-refused",
    id="DSD1213",
    scope=Scope.JOB,
    since="0.1",
    narrower=("include-exclude-conflict", "launch-placeholder-left"),
)


@check(CONDITION)
def the_launcher_accepts_its_options(parse: LaunchParse) -> Iterator[Finding]:
    """By the launcher's own parser, in the environment that is examined."""
    if parse.accepted:
        yield ok(launcher=parse.launcher)
        return
    yield fail(
        f"{parse.launcher} refuses the command line: {parse.error}",
        effect="the launcher exits with a usage error and starts no rank",
        hint=f"correct the option; `{_help(parse.launcher)}` lists what this release accepts",
        launcher=parse.launcher,
        error=parse.error,
    )


def _help(launcher: str) -> str:
    return "accelerate launch --help" if launcher == "accelerate" else f"{launcher} --help"
