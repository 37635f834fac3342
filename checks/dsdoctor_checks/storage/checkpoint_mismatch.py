"""The checkpoint was saved with a different world size, ZeRO stage or model.

## Why it matters
A ZeRO checkpoint is partitioned into one file per rank. With another world size, ZeRO stage or model
the shards are missing or do not match.

## What to do
Load it with the world size and ZeRO stage that it was saved with, convert it with
`python -m deepspeed.checkpoint.ds_to_universal --input_folder DIR/TAG --output_folder DIR/TAG_universal --inject_missing_state`
and set `checkpoint.load_universal` in the config, or pass `load_optimizer_states=False`.

## References
- DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py and stage3.py: `load_state_dict`
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Checkpoint,
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    Missing,
    Observation,
    RunNeeds,
    Scope,
    TracebackRule,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import chosen

from . import _checkpoint_mismatch_signatures

CONDITION = Condition(
    "checkpoint-mismatch",
    id="DSD1550",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.CHECKPOINT_DIFFERS,),
)

_PARTITIONED = 3


def _ranks(
    run: RunNeeds,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
) -> tuple[int | None, bool]:
    """Ranks of this run, and whether the user chose them (otherwise the GPUs of this machine)."""
    nodes = 1
    if isinstance(command, LaunchCommand):
        nodes = command.num_nodes or 1
        if command.num_gpus:
            return command.num_gpus * nodes, True
    if run.plan is not None and run.plan.gpus_per_node:
        return run.plan.gpus_per_node * nodes, True
    asked = len(run.gpus) or run.expect_gpus
    if asked:
        return asked * nodes, True
    return len(chosen(gpus, run, env)) or None, False


@check(CONDITION)
def checkpoint_fits_the_run(
    checkpoint: Checkpoint,
    run: RunNeeds,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
) -> Iterator[Finding]:
    """Compares the world size and the stage of the checkpoint with those of the run."""
    if checkpoint.error is not None or not checkpoint.files:
        return
    config = run.config or {}
    zero, loading = config.get("zero_optimization"), config.get("checkpoint")
    stage = zero.get("stage", 0) if isinstance(zero, dict) else None
    universal = isinstance(loading, dict) and loading.get("load_universal") is True
    have, conversion = checkpoint.zero_stage, _conversion(checkpoint)
    evidence: dict[str, Any] = {
        "checkpoint": checkpoint.path,
        "dp_world_size": checkpoint.dp_world_size,
        "mp_world_size": checkpoint.mp_world_size,
        "zero_stage": have,
        "config_stage": stage,
    }
    if universal and not checkpoint.universal:
        yield fail(
            "`checkpoint.load_universal` is true, but the checkpoint is not a universal checkpoint",
            effect="loading fails",
            hint=f"convert it with `{conversion}`",
            **evidence,
        )
        return
    if checkpoint.universal:
        yield ok(**evidence)
        return
    if isinstance(stage, int) and have is not None and _differ(have, stage):
        yield fail(
            f"the checkpoint was saved with ZeRO stage {have}, but the config sets stage {stage}",
            effect="loading fails: the two stages use different files",
            hint=f"set the stage that it was saved with, or convert it with `{conversion}` and set `checkpoint.load_universal` to true",
            **evidence,
        )
        return
    ranks, said = _ranks(run, command, gpus, env)
    mp_size = checkpoint.mp_world_size or 1
    if ranks and checkpoint.dp_world_size and have and ranks != checkpoint.dp_world_size * mp_size:
        wrote = checkpoint.dp_world_size * mp_size
        saved = "1 rank" if wrote == 1 else f"{wrote} ranks"
        yield (fail if said else warn)(
            f"the checkpoint was saved by {saved} (ZeRO stage {have}), but this run has {ranks}",
            effect="loading fails: DeepSpeed does not repartition the optimizer states",
            hint=f"run with {saved}, or convert it with `{conversion}` and set `checkpoint.load_universal` to true",
            ranks=ranks,
            wrote=wrote,
            **evidence,
        )
        return
    yield ok(ranks=ranks, **evidence)


def _conversion(checkpoint: Checkpoint) -> str:
    """The command that makes it a universal checkpoint, next to it."""
    folder = f"{checkpoint.path.rstrip('/')}/{checkpoint.tag}".rstrip("/")
    command = ["python", "-m", "deepspeed.checkpoint.ds_to_universal"]
    folders = ["--input_folder", folder, "--output_folder", f"{folder}_universal"]
    # a script that does not store `universal_checkpoint_info` needs it (DeepSpeed 0.15 and later)
    return shlex.join([*command, *folders, "--inject_missing_state"])


def _differ(have: int, stage: int) -> bool:
    """Whether a stage cannot read another's files; stages 1 and 2 use the same files."""
    return (have == _PARTITIONED) != (stage == _PARTITIONED) or (have == 0) != (stage == 0)


HINT = "load with the world size and ZeRO stage that it was saved with, or convert it with `python -m deepspeed.checkpoint.ds_to_universal --input_folder DIR/TAG --output_folder DIR/TAG_universal --inject_missing_state` and set `checkpoint.load_universal` to true"


TRACEBACK_RULES = (
    TracebackRule(
        file="deepspeed/runtime/engine.py",
        function="load_module_state_dict",
        kinds=("RuntimeError",),
        source="deepspeed 0.9-0.19 runtime/engine.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 7, in load_module_state_dict\nRuntimeError: x',
    ),
)

SIGNATURES = _checkpoint_mismatch_signatures.SIGNATURES
