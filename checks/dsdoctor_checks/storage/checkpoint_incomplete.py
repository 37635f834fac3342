"""Files of the checkpoint are missing.

## Why it matters
A ZeRO checkpoint is a set of files: `mp_rank_XX_model_states.pt` for each model-parallel rank and
`zero_pp_rank_D_mp_rank_XX_optim_states.pt` for each rank. With ZeRO-3 each rank also has a file of
model states. If a run is killed while it saves, or a copy is interrupted, some files are missing.
`latest` can refer to a directory that was never completed or has been removed.

## What to do
Copy the missing files from where the checkpoint was saved, or write the last complete tag to `latest`
(`echo global_step1000 > latest`).

## References
- DeepSpeed 0.19.8 runtime/engine.py: `_get_ckpt_name`, `_get_optimizer_ckpt_name`, `load_checkpoint`
- transformers 4.28-5.24 trainer.py: `train`; integrations/deepspeed.py: `deepspeed_load_checkpoint`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Checkpoint,
    Condition,
    Finding,
    LaunchFiles,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition(
    "checkpoint-incomplete",
    id="DSD1501",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("checkpoint-mismatch",),
)
_PARTITIONED = 3
_SHOWN = 4
#: Of the newest checkpoint of an output directory without any.
_NEWEST = "/checkpoint-*"


def missing_shards(found: Checkpoint) -> list[str]:
    """Names of missing shards, derived from the world size that the others record."""
    if found.universal or found.of("layer") or found.of("expert"):
        return []  # pipelines and experts number their files differently
    if {file.role for file in found.files} == {"weights"}:
        return []  # a model as transformers saves it, which no rank has a part of
    models, optimizers = found.of("model"), found.of("optimizer")
    shards = [*models, *optimizers]
    by_name = [file.mp_rank for file in shards if file.mp_rank is not None]
    dp_names = [file.dp_rank for file in shards if file.dp_rank is not None]
    mp_size = max(found.mp_world_size or 1, max(by_name, default=0) + 1)
    dp_size = max(found.dp_world_size or 1, max(dp_names, default=0) + 1)
    partitioned = found.zero_stage == _PARTITIONED or any(m.dp_rank is not None for m in models)
    sharded = bool(optimizers) or partitioned or bool(found.zero_stage)
    have = {(file.role, file.dp_rank, file.mp_rank) for file in shards}
    lacking = []
    for mp in range(mp_size):
        if not partitioned and ("model", None, mp) not in have:
            lacking.append(f"mp_rank_{mp:02d}_model_states.pt")
        for dp in range(dp_size):
            if partitioned and ("model", dp, mp) not in have:
                lacking.append(f"zero_pp_rank_{dp}_mp_rank_{mp:02d}_model_states.pt")
            if sharded and ("optimizer", dp, mp) not in have:
                lacking.append(f"zero_pp_rank_{dp}_mp_rank_{mp:02d}_optim_states.pt")
    return lacking


def _lacking_for_trainer(checkpoint: Checkpoint, run: RunNeeds) -> str:
    """What transformers' Trainer needs to resume and does not find; "" = all of it."""
    if run.framework != "hf":
        return ""
    if run.config is not None and not checkpoint.tags and checkpoint.latest is None:
        return "`global_step*` directory, from which it loads DeepSpeed's states"
    return "`trainer_state.json`" if checkpoint.trainer_state is False else ""


def _of_model(files: LaunchFiles) -> Finding:
    """What is missing from the folder of the model that the command loads."""
    lacking = files.model_lacks
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    listed = ", ".join(f"`{name}`" for name in lacking[:_SHOWN])
    why = "" if lacking == ("config.json",) else ", which its index lists"
    return fail(
        f"the folder `{files.model}` of the model does not contain {listed}{more}{why}",
        effect="every rank fails when it loads the model",
        hint="copy or download what is missing (`hf download MODEL --local-dir DIR` completes a folder)",
        model=files.model,
        missing=list(lacking),
    )


@check(CONDITION)
def checkpoint_is_whole(
    found: Checkpoint | Missing, run: RunNeeds, files: LaunchFiles | Missing
) -> Iterator[Finding]:
    """Fails if the tag or one of its shards is missing, or a file of the model that is loaded."""
    if isinstance(files, LaunchFiles) and files.model_lacks:
        yield _of_model(files)
    elif isinstance(found, Missing):
        yield skip(found.detail, fact=Checkpoint.key(), why=found.why.value)
    if isinstance(found, Checkpoint):
        yield from _judged(found, run)


def _judged(checkpoint: Checkpoint, run: RunNeeds) -> Iterator[Finding]:
    place = checkpoint.path
    if checkpoint.resumed and checkpoint.error is not None and place.endswith(_NEWEST):
        folder = place.removesuffix(_NEWEST)
        yield fail(
            f"`resume_from_checkpoint` is true, but `{folder}` contains no `checkpoint-*` directory",
            effect="transformers stops before the first step: it resumes from the newest one there",
            hint="correct `output_dir`, or start without `resume_from_checkpoint`",
            checkpoint=folder,
        )
        return
    if checkpoint.error is not None:
        resumed = checkpoint.resumed
        yield fail(
            f"the checkpoint `{place}`{' (`--resume_from_checkpoint`)' if resumed else ''} cannot be"
            f" read: {checkpoint.error}",
            effect="the run cannot resume",
            hint="correct `--resume_from_checkpoint`, or start without it"
            if resumed
            else "pass the directory that was passed to `save_checkpoint`",
            checkpoint=place,
        )
        return
    if checkpoint.resumed:
        absent = _lacking_for_trainer(checkpoint, run)
        if absent:
            yield fail(
                f"`{place}` (`--resume_from_checkpoint`) contains no {absent}",
                effect="transformers cannot resume the run from it",
                hint="pass a `checkpoint-*` directory that was written completely with DeepSpeed, or"
                " start without `--resume_from_checkpoint`"
                if run.config
                else "pass a `checkpoint-*` directory that was written completely, or start without"
                " `--resume_from_checkpoint`",
                checkpoint=place,
            )
            return
        if not checkpoint.tags and checkpoint.latest is None:
            yield skip(f"`{place}` is not a checkpoint of DeepSpeed", checkpoint=place)
            return
    if not checkpoint.tag_exists:
        if checkpoint.tag is None:
            message = f"`{place}` is not a checkpoint: it has no `latest` and no directory with `*_states.pt`"
            hint = "pass the directory that was passed to `save_checkpoint`"
        else:
            message = f"`{place}/latest` refers to `{checkpoint.tag}`, which does not exist"
            others = ", ".join(checkpoint.tags)
            hint = (
                f"write an existing tag to `latest` ({others})"
                if others
                else "copy the tag's directory from where the checkpoint was saved"
            )
        yield fail(
            message,
            effect="the run cannot resume",
            hint=hint,
            checkpoint=place,
            latest=checkpoint.latest,
            tags=list(checkpoint.tags),
        )
        return
    lacking = missing_shards(checkpoint)
    tag = f"{place}/{checkpoint.tag}" if checkpoint.tag else place
    evidence: dict[str, Any] = {
        "checkpoint": tag,
        "files": len(checkpoint.files),
        "dp_world_size": checkpoint.dp_world_size,
        "mp_world_size": checkpoint.mp_world_size,
        "zero_stage": checkpoint.zero_stage,
    }
    if not checkpoint.files:
        yield fail(
            f"the checkpoint `{tag}` contains no shards",
            effect="the run cannot resume",
            hint="resume from another tag, or copy the files from where the checkpoint was saved",
            **evidence,
        )
    elif lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        plural = "files are" if len(lacking) > 1 else "file is"
        yield fail(
            f"{len(lacking)} {plural} missing from the checkpoint `{tag}`: "
            f"{', '.join(lacking[:_SHOWN])}{more}",
            effect="loading fails, or the states of those ranks are lost",
            hint=f"copy {'them' if len(lacking) > 1 else 'it'} from where the checkpoint was saved, or resume from another tag",
            missing=lacking,
            **evidence,
        )
    else:
        yield ok(**evidence)


HINT = "copy the missing files, or write the last complete tag to `latest`"

SIGNATURES = (
    Signature(
        # safetensors opens the parts that the index lists; a download that was cut off leaves some out
        pattern=r"No such file or directory: [\"']?(?P<path>\S{0,300}?-\d{5}-of-\d{5}\.(?:safetensors|bin))",
        source="safetensors 0.8 bindings/python/src/lib.rs; python 3.5-3.14 Objects/exceptions.c",
        message="`{path}`, a part of a model's weights, is missing",
        hint="download or copy it again (`hf download MODEL --local-dir DIR` completes a folder)",
        examples=(
            "FileNotFoundError: No such file or directory: model/model-00003-of-00008.safetensors",
            "FileNotFoundError: [Errno 2] No such file or directory: '/m/pytorch_model-00001-of-00002.bin'",
        ),
        not_examples=("FileNotFoundError: No such file or directory: model/model.safetensors",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No valid checkpoint found in output directory",
        source="transformers 4.0-5.0 trainer.py",
        message="the run should resume, but its output directory contains no checkpoint",
        hint="correct the output directory, or start without `resume_from_checkpoint`",
        examples=("ValueError: No valid checkpoint found in output directory (out)",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"Can't find a valid checkpoint at (?P<path>\S.{0,400}?)$",
        source="transformers 4.36-5.23 trainer.py, integrations/deepspeed.py",
        message="`{path}` contains no checkpoint that the run can resume from",
        hint="pass a `checkpoint-*` folder with the weights, or of DeepSpeed with its `global_step*` folder, or start without `resume_from_checkpoint`",
        examples=("ValueError: Can't find a valid checkpoint at /data/out/checkpoint-500",),
        not_examples=("ValueError: Can't find a valid checkpoint at  ",),
        level=Level.STRONG,
    ),
    Signature(
        # the Trainer writes it last, and reads it first; that of transformers 4.36 saves to a folder
        # `tmp-checkpoint-N` that it then renames, on each node
        pattern=r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>(?![^']{0,400}\btmp-checkpoint-\d)[^']{1,400})/trainer_state\.json'",
        source="transformers 4.0-5.23 trainer.py, trainer_callback.py: `TrainerState.load_from_json`",
        message="`{path}` contains no `trainer_state.json`, so the Trainer cannot resume from it",
        hint="resume from a checkpoint that was written completely, or start without `resume_from_checkpoint`",
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/checkpoint-20/trainer_state.json'",
        ),
        not_examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'trainer_state.json'",
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/tmp-checkpoint-20/trainer_state.json'",
        ),
        level=Level.STRONG,
    ),
)
