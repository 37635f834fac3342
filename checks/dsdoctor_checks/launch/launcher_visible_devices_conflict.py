"""The deepspeed launcher overrides or rejects CUDA_VISIBLE_DEVICES.

## Why it matters
Without a hostfile the launcher converts `CUDA_VISIBLE_DEVICES` to `--include localhost:LIST` and
parses the list as integers, so it stops at a UUID or MIG name. With `--include`, `--exclude`,
`--num_gpus` or `--num_nodes` it deletes the variable and counts from GPU 0, so a job meant for GPUs
4 and 5 runs on 0 and 1.

Before 0.15.2 it takes the numbers of the variable as slots of this node, but counts the slots with torch,
which before 2.4 keeps the number of GPUs that it saw first: the visible ones. `CUDA_VISIBLE_DEVICES=2`
then ends with `No slot '2' specified on host 'localhost'`.

## What to do
Choose the GPUs in one place: with `--include localhost:4,5`, or with integers in the variable and
none of these options.

## References
- deepspeed/launcher/runner.py (0.19.8, `main`; 0.15.1 and 0.15.2, `parse_inclusion_exclusion`)
- https://github.com/deepspeedai/DeepSpeed/issues/4248
- https://github.com/pytorch/pytorch/pull/122815
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Environment,
    Finding,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    Observation,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least, hosts_may_be_listed, pair

CONDITION = Condition(
    "launcher-visible-devices-conflict",
    id="DSD1203",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.WRONG_DEVICES,),
)


#: First DeepSpeed whose launcher reads the variable; before, it numbered the visible GPUs from 0.
READS_VARIABLE = "0.5.7"
#: First DeepSpeed that takes the slots of `--include` as they are (its pull request 6530), and first
#: torch that counts the GPUs anew until CUDA has started (its pull request 122815). 2026-11-28.
TAKES_SLOTS, COUNTS_AFRESH = "0.15.2", (2, 4)


@check(CONDITION)
def launcher_sees_the_same_devices(
    command: LaunchCommand,
    environment: Environment | Missing,
    hostfile: Hostfile | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    torch: TorchBuild | Missing,
) -> Iterator[Finding]:
    """Judges the deepspeed launcher on one node; torchrun and accelerate keep the variable."""
    if command.launcher != "deepspeed":
        return
    if hosts_may_be_listed(hostfile, command):
        if isinstance(hostfile, Missing):
            yield skip(hostfile.detail)
        return
    value = command.env.get("CUDA_VISIBLE_DEVICES")
    if value is None and isinstance(environment, Environment):
        value = environment.get("CUDA_VISIBLE_DEVICES")
    if not value or "$" in value:  # only the shell of the script around it knows it
        return
    tokens = [word.strip() for word in value.split(",") if word.strip()]
    asked = [
        f"--{name} {text}"
        for name, text in (
            ("include", command.include),
            ("exclude", command.exclude),
            ("num_gpus", _positive(command.num_gpus, 0)),
            ("num_nodes", _positive(command.num_nodes, 1)),
        )
        if text
    ]
    if isinstance(deepspeed, DeepSpeedInstall) and not at_least(deepspeed.version, READS_VARIABLE):
        yield from _numbered_anew(command, value, tokens, deepspeed)
        return
    if not asked:
        if not all(token.isdigit() for token in tokens):
            yield fail(
                f"`CUDA_VISIBLE_DEVICES` is `{value}`, but the deepspeed launcher parses it as"
                " integers",
                effect="`ValueError: invalid literal for int()` before anything starts",
                hint="start it with `torchrun`, which leaves the variable to torch"
                if any(token.startswith("MIG-") for token in tokens)
                else "set `CUDA_DEVICE_ORDER=PCI_BUS_ID`, and use the indices that `nvidia-smi -L`"
                " prints",
                value=value,
            )
        elif _counts_what_is_visible(deepspeed, torch):
            yield from _beyond(value, tokens, deepspeed, map(int, tokens))
        return
    counted = [str(number) for number in range(len(tokens))]
    same = command.num_gpus == len(tokens) and tokens == counted
    if same or command.include == f"localhost:{','.join(tokens)}":
        yield ok(
            f"the deepspeed launcher deletes `CUDA_VISIBLE_DEVICES`, but `{asked[0]}` selects the"
            " same GPUs",
            value=value,
            option=asked[0],
        )
        return
    yield warn(
        f"`CUDA_VISIBLE_DEVICES` is `{value}`, but the deepspeed launcher deletes it because of"
        f" `{asked[0]}`",
        effect="the job uses the GPUs that the option selects, counted over all GPUs of the node",
        hint=f"use `--include localhost:{','.join(tokens)}` instead of `{asked[0]}`"
        if all(token.isdigit() for token in tokens)
        else f"unset the variable, and use `--include localhost:0,1` instead of `{asked[0]}`",
        value=value,
        option=asked[0],
        num_gpus=command.num_gpus,
    )


def _counts_what_is_visible(
    deepspeed: DeepSpeedInstall | Missing, torch: TorchBuild | Missing
) -> bool:
    if isinstance(deepspeed, Missing) or isinstance(torch, Missing):
        return False
    release = pair(torch.version)
    return (
        release is not None
        and release < COUNTS_AFRESH
        and not at_least(deepspeed.version, TAKES_SLOTS)
    )


def _numbered_anew(
    command: LaunchCommand, value: str, tokens: list[str], deepspeed: DeepSpeedInstall
) -> Iterator[Finding]:
    """DeepSpeed before it read the variable: the numbers of its slots are those of all GPUs again."""
    chosen = (LaunchCommand.filter_slots(command.include or "") or {}).get("localhost")
    slots = chosen or range(len(tokens))
    if any(slot >= len(tokens) for slot in slots):
        yield from _beyond(value, tokens, deepspeed, slots)
    elif tokens != [str(number) for number in range(len(tokens))]:
        yield warn(
            f"`CUDA_VISIBLE_DEVICES` is `{value}`, but DeepSpeed {deepspeed.version} overwrites it with"
            f" `{','.join(map(str, slots))}`",
            effect="the job uses the GPUs with these numbers, counted over all GPUs of the node",
            hint=f"unset the variable, and pass `--include localhost:{','.join(tokens)}`"
            if all(token.isdigit() for token in tokens)
            else "unset the variable, and select GPUs with `--include localhost:0,1`",
            value=value,
            deepspeed=deepspeed.version,
        )


def _beyond(
    value: str,
    tokens: list[str],
    deepspeed: DeepSpeedInstall | Missing,
    slots: Iterable[int],
) -> Iterator[Finding]:
    """A failure if the launcher finds fewer slots than the highest one that it is to use."""
    slot = next((slot for slot in slots if slot >= len(tokens)), None)
    if slot is None or isinstance(deepspeed, Missing):
        return
    yield fail(
        f"slot {slot} is to be used, but with `CUDA_VISIBLE_DEVICES={value}` DeepSpeed"
        f" {deepspeed.version} counts only the {len(tokens)} visible GPU{'s' * (len(tokens) != 1)}",
        effect=f"`ValueError: No slot '{slot}' specified on host 'localhost'` before anything starts",
        hint=f"unset the variable, and pass `--include localhost:{','.join(tokens)}`",
        value=value,
        slot=slot,
        deepspeed=deepspeed.version,
    )


def _positive(number: int | None, floor: int) -> str:
    return str(number) if number is not None and number > floor else ""


HINT = "unset `CUDA_VISIBLE_DEVICES`, and select GPUs with `--include localhost:0,2`"

SIGNATURES = (
    Signature(
        pattern=r"No slot '\d+' specified on host '(?:localhost|127\.0\.0\.1)",
        source="deepspeed 0.3-0.19 launcher/runner.py",
        examples=(
            "ValueError: No slot '9' specified on host 'localhost'",
            "ValueError: No slot '1' specified on host '127.0.0.1'",
        ),
        not_examples=("slot '9' specified on host 'localhost'",),
        level=Level.STRONG,
        message="the launch selects a GPU that this host does not have, or not under that number",
        hint="pass `--include localhost:N` with GPUs that `nvidia-smi -L` lists, and unset "
        "`CUDA_VISIBLE_DEVICES`",
        masks=("hostfile-or-ssh-problem",),
    ),
    Signature(
        pattern=r"invalid literal for int\(\) with base 10: '(?:'|GPU-|MIG-|\s|all|none)",
        source="python 3.3-3.14 Objects/longobject.c, for deepspeed 0.3-0.19 launcher/runner.py",
        examples=(
            "ValueError: invalid literal for int() with base 10: ''",
            "ValueError: invalid literal for int() with base 10: 'GPU-5a5a5a5a'",
            "ValueError: invalid literal for int() with base 10: 'MIG-1'",
            "invalid literal for int() with base 10: ' ",
            "invalid literal for int() with base 10: 'all",
            "invalid literal for int() with base 10: 'none",
        ),
        not_examples=("ValueError: invalid literal for int() with base 10: 'abc'",),
        level=Level.STRONG,
        masks=("hostfile-or-ssh-problem",),
        near=(
            "launcher/runner.py",
            "launcher/launch.py",
            "launcher\\runner.py",
            "CUDA_VISIBLE_DEVICES",
            "parse_resource_filter",
            "parse_visible",
        ),
    ),
    Signature(
        pattern=r"Detected (?:\w+_)?VISIBLE_DEVICES=\S* but ignoring it because one or several",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=(
            "Detected CUDA_VISIBLE_DEVICES=2,3 but ignoring it because one or several of --include/--exclude/--num_gpus/--num_nodes cl args were used.",
            "[runner.py:463:main] Detected CUDA_VISIBLE_DEVICES=0 but ignoring it because one or several of --include/--exclude",
            "Detected VISIBLE_DEVICES=1,3 but ignoring it because one or several of --include/--exclude/--num_gpus/--num_nodes cl args were used.",
        ),
        not_examples=("stopped, but ignoring it because one or several ranks ended",),
        level=Level.HINT,
        final=True,
    ),
    Signature(
        pattern=r"No slot '\{?\w*\}?' specified on host",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=(
            "ValueError: No slot '4' specified on host 'node-a'",
            "    raise ValueError(\"No slot '{}' specified on host '{}'\".format(",
        ),
        not_examples=("slot '4' specified on host 'node-a'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Detected (?:\w+_)?VISIBLE_DEVICES=\S+: setting --include=localhost:",
        source="deepspeed 0.9-0.19 launcher/runner.py",
        examples=(
            "Detected CUDA_VISIBLE_DEVICES=1: setting --include=localhost:1",
            "Detected VISIBLE_DEVICES=6: setting --include=localhost:6",
            "Detected VISIBLE_DEVICES=3: setting --include=localhost:3 Detected CUDA_VISIBLE_DEVICES=3: setting --include=localhost:3",
        ),
        not_examples=("CUDA_VISIBLE_DEVICES=1: setting --include=localhost:1",),
        level=Level.WEAK,
        requires=("parse_resource_filter", "parse_inclusion_exclusion"),
    ),
    Signature(
        pattern=r"No slot '?\d+'? specifi\w+ on host",
        source="deepspeed 0.14.5-0.19.8 launcher/runner.py",
        examples=(
            "No slot 2 specified on host n1",
            "ValueError: No slot '6' specified on host 'n1'",
        ),
        not_examples=("No slot 2 on host n1",),
    ),
)
