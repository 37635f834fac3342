"""The checkpoint lacks what is asked for, or was written with another world size or ZeRO stage.

## Why it matters
A ZeRO checkpoint is cut into one file for each rank. Another world size, stage or model finds
shards that are not there or do not fit.

## What to do
Load with the world size and ZeRO stage it was written with, convert it with `ds_to_universal.py`,
or pass `load_optimizer_states=False`.

## References
- DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py and stage3.py: `load_state_dict`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Checkpoint,
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import chosen

CONDITION = Condition("checkpoint-mismatch", id="DSD1550", scope=Scope.JOB, since="0.1")

_PARTITIONED = 3


def _ranks(
    run: RunNeeds,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
) -> tuple[int | None, bool]:
    """Ranks of this run, and whether somebody said so (else it is the number of GPUs here)."""
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
    """World size and stage of the checkpoint against those of the run."""
    if checkpoint.error is not None or not checkpoint.files:
        return
    config = run.config or {}
    zero, loading = config.get("zero_optimization"), config.get("checkpoint")
    stage = zero.get("stage", 0) if isinstance(zero, dict) else None
    universal = isinstance(loading, dict) and loading.get("load_universal") is True
    have = checkpoint.zero_stage
    evidence: dict[str, Any] = {
        "checkpoint": checkpoint.path,
        "dp_world_size": checkpoint.dp_world_size,
        "mp_world_size": checkpoint.mp_world_size,
        "zero_stage": have,
        "config_stage": stage,
    }
    if universal and not checkpoint.universal:
        yield fail(
            "`checkpoint.load_universal` is true, but the checkpoint is no universal one",
            effect="loading ends with an error",
            hint="convert it with `python -m deepspeed.checkpoint.ds_to_universal`",
            **evidence,
        )
        return
    if checkpoint.universal:
        yield ok(**evidence)
        return
    if isinstance(stage, int) and have is not None and _differ(have, stage):
        yield fail(
            f"the checkpoint was written with ZeRO stage {have}, but the config asks for {stage}",
            effect="its files have other names and other contents than this stage looks for",
            hint="set the stage it was written with, or convert it to a universal checkpoint",
            **evidence,
        )
        return
    ranks, said = _ranks(run, command, gpus, env)
    mp_size = checkpoint.mp_world_size or 1
    if ranks and checkpoint.dp_world_size and have and ranks != checkpoint.dp_world_size * mp_size:
        wrote = checkpoint.dp_world_size * mp_size
        yield (fail if said else warn)(
            f"the checkpoint was written by {wrote} {'rank' if wrote == 1 else 'ranks'} "
            f"(ZeRO stage {have}), but this run has {ranks}",
            effect="DeepSpeed does not repartition the optimizer states: loading ends with an error",
            hint=f"run with {wrote} ranks, or convert it to a universal checkpoint",
            ranks=ranks,
            wrote=wrote,
            **evidence,
        )
        return
    yield ok(ranks=ranks, **evidence)


def _differ(have: int, stage: int) -> bool:
    """Whether a stage cannot read another's files; 1 and 2 share their optimizer and its files."""
    return (have == _PARTITIONED) != (stage == _PARTITIONED) or (have == 0) != (stage == 0)


HINT = "load with the world size and ZeRO stage it was written with, convert it with `ds_to_universal.py`, or pass `load_optimizer_states=False`"

SIGNATURES = (
    Signature(
        anchor=("_optim_states.pt", "_model_states.pt"),
        pattern=(
            r"(?:No such file|does not exist|not found|Errno 2\]|missing).{0,300}_(?:optim"
            r"|model)_states\.pt|_(?:optim|model)_states\.pt.{0,120}(?:does not exist"
            r"|not found|No such)"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'c/global_step9/zero_pp_rank_1_mp_rank_00_optim_states.pt'",
            "/c/mp_rank_00_model_states.pt does not exist",
        ),
        not_examples=("Saved c/mp_rank_00_model_states.pt",),
        weight=70,
    ),
    Signature(
        anchor=(
            "used a DP world size",
            "checkpoint being loaded used",
            "zero checkpoint",
            "ZeRO checkpoint",
        ),
        pattern=r"(?i)checkpoint being loaded used a (?:DP|TP|MP) world size|expected .{0,40}zero checkpoint",
        examples=(
            "ZeRORuntimeException: The checkpoint being loaded used a DP world size of 4 but the current world size is 2",
            "AssertionError: The checkpoint being loaded used a TP world size of 2 but the current TP world size is 1.",
        ),
        not_examples=(
            "loading zero checkpoint shards",
            "The checkpoint being loaded is global_step100",
        ),
        weight=75,
    ),
    Signature(
        anchor=("latest file", "Can't find a valid checkpoint", "No valid checkpoint found"),
        pattern=(
            r"Unable to find latest file|Can't find a valid checkpoint at"
            r"|No valid checkpoint found in"
        ),
        examples=(
            "Unable to find latest file at c/latest, if trying to load latest checkpoint make sure it exists",
            "ValueError: Can't find a valid checkpoint at out/checkpoint-5",
        ),
        not_examples=("wrote latest file",),
        weight=45,
    ),
    Signature(
        anchor=(
            "load_checkpoint",
            "zero_checkpoint",
            "_load_zero",
            "load_state_dict",
            "in _load_elastic",
            "in _load_rigid",
        ),
        pattern=(
            r"in (?:_load_zero_checkpoint|load_checkpoint|_load_checkpoint"
            r"|_get_all_zero_checkpoint\w*|_rigid_load_state_dict|_load_rigid\w*"
            r"|_load_elastic\w*)\b"
        ),
        examples=(
            '  File "/x/deepspeed/runtime/engine.py", line 3, in _load_zero_checkpoint',
            '  File "/x/deepspeed/runtime/zero/stage_1_and_2.py", line 2300, in _load_elastic_checkpoint',
        ),
        not_examples=("def load_checkpoint(path)", "load_checkpoint(path)"),
        weight=22,
        near=(
            "_states.pt",
            "world size",
            "global_step",
            "zero_pp_rank",
        ),
    ),
    Signature(
        anchor="loaded state dict",
        pattern=(
            r"loaded state dict (?:contains a parameter group|has a different number of parameter groups)"
        ),
        examples=(
            "ValueError: loaded state dict has a different number of parameter groups",
            "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
        not_examples=("loaded state dict ok",),
        weight=55,
    ),
    Signature(
        anchor=(
            "_optim_states.pt' under",
            "_model_states.pt' under",
            "failed to resume from checkpoint",
            "Unable to find 'latest' file",
            "ZeRO files found in",
            "state files in directory",
            "model states file at",
            "not a zero checkpoint",
            "not a model state checkpoint",
            "Empty ds_version in checkpoint",
            "valid for universal checkpoint",
            "assert len(self.ckpt_list) > 0",
            " state is missing in checkpoint",
        ),
        pattern=(
            r"Expected \d+ of '\*_(?:optim|model)_states\.pt' under|failed to resume from checkpoint"
            r"|Unable to find 'latest' file|No ZeRO files found in"
            r"|can't find .{0,60}state files in directory|can't find model states file at"
            r"|is not a (?:zero|model state) checkpoint|Empty ds_version in checkpoint"
            r"|Invalid for universal checkpoint|assert len\(self\.ckpt_list\) > 0"
            r"|Required \S+ state is missing in checkpoint"
        ),
        examples=(
            "ValueError: Expected 8 of '*_optim_states.pt' under 'ckpt/global_step90' but found 6 files.",
            "ValueError: [deepspeed] failed to resume from checkpoint out/run1",
            "ValueError: Unable to find 'latest' file at adapters/latest",
            "    assert len(self.ckpt_list) > 0",
            "FileNotFoundError: can't find model states file at 'x/zero_pp_rank_0_mp_rank_00_model_states.pt'",
        ),
        not_examples=(
            "resuming from checkpoint out/run1",
            "saved 8 of '*_optim_states.pt' under './global_step7'",
        ),
        weight=68,
    ),
    Signature(
        anchor=(
            "in _rigid_load_state_dict",
            "in _load_elastic_checkpoint",
            "in _restore_base_optimizer_state",
            "in _restore_from_elastic",
            "in _load_global_state",
            "in load_hp_checkpoint_state",
        ),
        pattern=(
            r"in (?:_rigid_load_state_dict|_load_elastic_checkpoint"
            r"|_restore_base_optimizer_state|_restore_from_elastic\w*"
            r"|_load_global_state|load_hp_checkpoint_state\w*)\b"
        ),
        examples=(
            '  File "/x/deepspeed/runtime/zero/stage3.py", line 2700, in _rigid_load_state_dict',
            '  File "/x/deepspeed/runtime/zero/stage_1_and_2.py", line 2200, in _restore_base_optimizer_state',
        ),
        not_examples=("self._rigid_load_state_dict(sd)",),
        weight=45,
    ),
    Signature(
        anchor=(
            "world size for sd",
            "optimizer global state is missing",
            "'model' or 'module'",
            "saved mp_world_size",
            "State dicts of all partitions",
            "is not found in the checkpoint",
            "xpert checkpoint file",
            "pipeline checkpoint loading",
            "checkpoint version:",
            "in named params",
            "checkpoint with gradient clipping",
            "parameter-alignment layout",
            "model states checkpoint",
            "same step value",
            "zero_pp_rank_",
        ),
        pattern="Invalid checkpoints and world size for sd|optimizer global state is missing|neither 'model' or 'module' keys|different from saved mp_world_size|State dicts of all partitions must|key: \\S+ is not found in the checkpoint|[Ee]xpert checkpoint file (?:not found|is corrupt)|support for pipeline checkpoint loading|checkpoint version: \\S+ is not supported|failed to find (?:frozen \\S+|optimizer param) in named params|Cannot load a checkpoint with gradient clipping|checkpoint parameter-alignment layout does not|[Uu]nable to (?:load|find) .{0,40}(?:model states checkpoint|zero_pp_rank_)",
        examples=(
            "AssertionError: checkpoint count 4 is different from saved mp_world_size 2",
            "ValueError: failed to find frozen lm_head.weight in named params",
            "AssertionError: State dicts of all partitions must have the same step value",
            "AssertionError: key: fp32_groups is not found in the checkpoint out/mp_rank_00",
        ),
        not_examples=("saved mp_world_size 2", "loading zero_pp_rank_0"),
        weight=60,
    ),
    Signature(
        anchor=("checkpoint", "Checkpoint"),
        pattern="^(?:[\\w.]*\\.)?\\w*(?:Error|Exception): (?=.{0,300}[Cc]heckpoint).{0,300}\\b(?:dp_world_size|ZeRO|zero stage|partition(?:s|ed|ing)?|shards?|global_step\\d*|universal|mp_rank|pp_rank)\\b",
        examples=(
            "RuntimeError: checkpoint was written with 8 shards, found 4",
            "ValueError: Loading a universal checkpoint needs its own folder",
        ),
        not_examples=("ValueError: checkpoint folder is empty",),
        weight=28,
        not_near=("CUDA out of memory",),
    ),
    Signature(
        anchor=(
            "number of checkpoints to be equal",
            "mp_size mismatch in checkpoint",
            "global_step* files",
            "CheckpointingException",
            "CheckpointException",
            "Missing key in checkpoint state_dict",
            "value from checkpoint",
            "heckpoint was saved with",
            "heckpoints were saved with",
            "latest_universal",
            "rng_state_",
            "KeyError: 'dp_world_size'",
            "Did not find `",
            "checkpoint(s) found but",
            "unknown zero stage",
            "partition_count",
        ),
        pattern=(
            r"number of checkpoints to be equal|mp_size mismatch in checkpoint"
            r"|can't find \S{0,40}global_step\* files|CheckpointingException: "
            r"|CheckpointException ranks|Missing key in checkpoint state_dict"
            r"|value from checkpoint \([^)]{0,80}\) is not equal"
            r"|heckpoint(?: was|s were) saved with .{1,120}\b(?:but|while|current|load)"
            r"|(?:Cannot find|Can't find|[Nn]o such file.{0,300}|does not exist.{0,80})latest_universal"
            r"|No such file or directory: '[^']{0,300}rng_state_\d{1,5}\.pth'"
            r"|KeyError: 'dp_world_size'|Did not find `(?:pytorch_model|optimizer|model)\w{0,40}`"
            r"|\d checkpoint\(s\) found but|ValueError: unknown zero stage \d|KeyError: '?partition_count"
        ),
        examples=(
            "AssertionError: tensor_model_parallel_size value from checkpoint (2) is not equal to the input argument value (4).",
            "RuntimeError: Checkpoint was saved with pipeline_parallel_size=2 but the job has 4",
            "FileNotFoundError: can't find */global_step* files in directory 'out'",
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/checkpoint-9/rng_state_3.pth'",
        ),
        not_examples=(
            "checkpoint was saved with 8 ranks",
            "value from checkpoint (2) taken",
        ),
        weight=58,
    ),
    Signature(
        anchor=("current model is torch.Size", "in current model is torch.Size"),
        pattern=r"^(?:in )?current model is torch\.Size",
        examples=(
            "current model is torch.Size([16, 4]).",
            "in current model is torch.Size([32, 8]).",
        ),
        not_examples=("the shape in current model is torch.Size([16, 4])",),
        weight=48,
        near=("lora", "adapter", "deepspeed"),
    ),
    Signature(
        anchor=('Error opening "zarr"', "rror reading local file", "No ZeRO files", ".distcp"),
        pattern=(
            r"Error opening \"zarr\" driver|rror reading local file \"|No ZeRO files found"
            r"|No such file or directory: '[^']{0,300}\.distcp'"
        ),
        examples=(
            'ValueError: Error opening "zarr" driver: Error reading local file "w/.zarray"',
            "FileNotFoundError: [Errno 2] No such file or directory: 'ckpt/__1_0.distcp'",
        ),
        not_examples=("wrote ckpt/__1_0.distcp",),
        weight=50,
    ),
    Signature(
        anchor=("KeyError: '",),
        pattern=(
            r"^KeyError: '(?:(?:model|optimizer|lr_scheduler|ema|net)?_?state_dict|optimizer_states?"
            r"|global_step|pytorch-lightning_version|hyper_parameters|ds_version|model|module)'"
        ),
        examples=("KeyError: 'state_dict'", "KeyError: 'optimizer_state_dict'"),
        not_examples=("KeyError: 'state_dicts'",),
        weight=34,
        near=(
            "torch.load(",
            "load_checkpoint",
            "load_from_checkpoint",
            "load_state_dict",
            "checkpoint[",
            "ckpt[",
        ),
    ),
    Signature(
        anchor=("not a valid DeepSpeed checkpoint", "not a valid checkpoint", "<module 'deepspeed"),
        pattern=(
            r"not a valid (?:DeepSpeed )?checkpoint\b"
            r"|Can't get attribute '\w{1,80}' on <module 'deepspeed"
        ),
        examples=(
            "FileNotFoundError: The provided path is not a valid DeepSpeed checkpoint: out/last.ckpt",
            "AttributeError: Can't get attribute 'ZeroStageEnum' on <module 'deepspeed.runtime.zero' from 'x'>",
        ),
        not_examples=("imported <module 'deepspeed.runtime' from 'x'>",),
        weight=54,
    ),
    Signature(
        anchor=("lobal shape mismatch for",),
        pattern=r"[Gg]lobal shape mismatch for loaded \(",
        examples=(
            "Global shape mismatch for loaded ((64, 8)) and expected ((32, 8)) tensor for key a.weight",
            "CheckpointingException: Global shape mismatch for loaded (torch.Size([4])) and expected ((8,)) tensor",
        ),
        not_examples=("checks for a global shape mismatch for every key",),
        weight=54,
    ),
)
