"""The command line requests a number format that a GPU of the run does not support.

## Why it matters
Besides the config, a launcher or script can choose the format: `--mixed_precision fp8`, `--tf32`,
`--bf16`. FP8 needs compute capability 8.9 (Ada, Hopper or newer); TF32 and BF16 need 8.0 (Ampere).
On older GPUs, FP8 fails in Transformer Engine and `--tf32` in transformers, after the model has
been loaded; BF16 is emulated and slow. An option of the launcher is a failure. An option of your
own script is only a warning, because dsdoctor does not know what the script does with it.

## What to do
Remove the option, request a format that the oldest GPU of the run supports, or exclude that GPU with
`--gpus`.

## References
- NVIDIA, Transformer Engine: FP8 primer (compute capability 8.9 or higher)
- CUDA C++ programming guide, arithmetic types by compute capability
- transformers 5.23.0 training_args.py, accelerate 1.15.0 commands/launch.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import capabilities, dotted
from dsdoctor_checks.precision._config import asks, option_values

CONDITION = Condition("precision-flag-unsupported", id="DSD504", scope=Scope.JOB, since="0.1")
_FLOORS = {"fp8": (8, 9), "tf32": (8, 0), "bf16": (8, 0)}
_EFFECTS = {
    "fp8": "every rank fails in Transformer Engine once the model is set up",
    "tf32": "the Hugging Face trainer fails; other scripts may ignore the option",
    "bf16": "the Hugging Face trainer fails, or bf16 is emulated and slow",
}
_YES = ("true", "1", "yes", "")


def requested_formats(command: LaunchCommand) -> dict[str, str]:
    """Formats that a command requests, each with the option as the user wrote it.

    >>> requested_formats(LaunchCommand(script_args=("--tf32", "True", "--mixed_precision=fp8", "--bf16=0")))
    {'tf32': '--tf32', 'fp8': '--mixed_precision fp8'}
    """
    found: dict[str, str] = {}
    for name, value in option_values(command):
        if name == "mixed_precision" and value in _FLOORS:
            found[value] = f"--mixed_precision {value}"
        elif name in _FLOORS and value.lower() in _YES:
            found[name] = f"--{name}"
    return found


@check(CONDITION)
def gpus_support_requested_formats(
    command: LaunchCommand,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    env: Environment | Missing,
) -> Iterator[Finding]:
    """Compares every requested format with every GPU of the run."""
    wanted = requested_formats(command)
    devices = capabilities(gpus, live, run, env)
    if not wanted or not devices:
        yield skip("the command requests no number format, or no GPU is known")
        return
    lacks = False
    for kind, option in wanted.items():
        floor = _FLOORS[kind]
        lacking = {name: dotted(cc) for name, cc in devices.items() if cc < floor}
        if not lacking or (kind == "bf16" and asks(run.config, "bf16", "bfloat16")):
            continue
        lacks = True
        name, capability = next(iter(lacking.items()))
        launcher = kind == "fp8" and command.options.get("mixed_precision") == "fp8"
        yield (fail if launcher else warn)(
            f"`{option}` is set, but {name} has capability {capability} and {kind} needs "
            f"{dotted(floor)}",
            effect=_EFFECTS[kind],
            hint=f"remove `{option}`, or train on GPUs of capability {dotted(floor)} or newer",
            asked=kind,
            lacking=lacking,
            needs=dotted(floor),
        )
    if not lacks:
        yield ok(asked=sorted(wanted))


HINT = "leave out the option, or train on GPUs that support the format"

SIGNATURES = (
    Signature(
        pattern="(?:tf32|TF32) requires (?:an )?Ampere",
        source="transformers 4.28.1-5.24.0 training_args.py",
        message="`--tf32` needs a GPU of the Ampere generation or newer, and torch sees none",
        hint="leave out `--tf32`; if this machine has such a GPU, find out with `dsdoctor check` why"
        " torch does not see it",
        examples=(
            "ValueError: --tf32 requires Ampere or a newer GPU arch",
            "ValueError: TF32 requires Ampere or newer",
        ),
        level=Level.STRONG,
    ),
)
