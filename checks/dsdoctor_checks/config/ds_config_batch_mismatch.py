"""The batch sizes of the DeepSpeed config do not match each other or the number of ranks.

## Why it matters
DeepSpeed asserts `train_batch_size = train_micro_batch_size_per_gpu *
gradient_accumulation_steps * ranks` when it starts, with the ranks divided by
`sequence_parallel_size`. If only two of them are set, it derives the third by integer division
before it asserts, so the numbers in its error may differ from those in the file.

A trainer replaces values that are `"auto"`, but not the others: a `train_batch_size` that the
accumulation steps do not divide cannot work with any micro-batch. transformers also compares the
config with the Trainer's options (learning rate, clipping, weight decay), and stops if they differ.

## What to do
Leave out one of the three so that DeepSpeed computes it, or choose numbers whose product matches.

## References
deepspeed/runtime/config.py (`_batch_assertion`, `_set_batch_related_parameters`)
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    RunNeeds,
    Scope,
    Signature,
    Status,
    TracebackRule,
    check,
    fail,
    ok,
    ranks_of,
    skip,
)
from dsdoctor_checks._util import at_least

from ._batch_equation import EFFECT, counted, divisor, unequal
from ._repairable import offered
from ._tables import BATCH_KEYS, REMOVED_SINCE, enabled
from ._trainer_options import Conflict, conflicts

CONDITION = Condition(
    "ds-config-batch-mismatch",
    id="DSD1303",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-ds-config",),
)

#: Frameworks that add `gradient_accumulation_steps` of 1 to a config without it (accelerate 0.12
#: to 1.15 utils/dataclasses.py, on which transformers is built; 2026-11-29).
_ONE_STEP = frozenset({"hf", "accelerate"})
#: Distributions of Lightning, whose strategy sets the micro-batch from the data loader
#: (lightning/pytorch/strategies/deepspeed.py, `_auto_select_batch_size`, 2026-11-22).
_LIGHTNING = ("lightning", "pytorch-lightning")


@check(CONDITION)
def batches_fit(  # the engine injects by annotation
    config: DsConfig,
    run: RunNeeds,
    command: LaunchCommand | Missing,
    hostfile: Hostfile | Missing,
    environment: Environment | Missing,
    gpus: Gpus | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """Checks the equation of the batch sizes for the ranks of this run."""
    found = _batches(config, run, command, hostfile, environment, gpus, deepspeed, packages)
    yield from offered(config, found)


def _batches(
    config: DsConfig,
    run: RunNeeds,
    command: LaunchCommand | Missing,
    hostfile: Hostfile | Missing,
    environment: Environment | Missing,
    gpus: Gpus | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    if config.parsed is None:
        return
    ranks = ranks_of(run, command, hostfile, environment, gpus)
    if run.framework == "hf" and isinstance(command, LaunchCommand):
        world = ranks.count if ranks and ranks.asked else None
        differing = list(conflicts(config, command.script_args, world, run))
        if differing:
            yield from map(functools.partial(_against_option, config), differing)
            return
    given = {key: config.parsed[key] for key in BATCH_KEYS if config.parsed.get(key) is not None}
    auto = [key for key, value in given.items() if value == "auto"]
    given = {key: value for key, value in given.items() if value != "auto"}
    odd = any(isinstance(value, (str, list, dict)) for value in given.values())
    if odd or divisor(config) is None:
        return  # reported by ds-config-wrong-type
    total, micro, steps = (given.get(key) for key in BATCH_KEYS)
    if steps is None and BATCH_KEYS[2] not in auto and run.framework in _ONE_STEP:
        steps = 1
    if total is None and micro is None and not set(auto) & set(BATCH_KEYS[:2]):
        yield _without_batch_sizes(config, deepspeed, packages, run.framework)
        return
    for key, value in given.items():
        if value <= 0:
            yield fail(
                f"{config.named(key)} is {json.dumps(value)}, but it must be at least 1",
                effect=EFFECT,
                hint=f"set `{key}` to 1 or more",
                value=value,
                line=config.lines.get(key),
            )
            return
    bad = [] if total is None else list(unequal(config, (total, micro, steps), ranks))
    if auto and not any(found.status in (Status.FAIL, Status.WARN) for found in bad):
        yield skip('the trainer fills in the batch sizes that are "auto"', keys=auto)
    elif total is None:
        yield ok(micro=micro, steps=steps or 1)
    else:
        yield from bad


def _against_option(config: DsConfig, found: Conflict) -> Finding:
    """A value of the config that an option of the Trainer contradicts."""
    value = json.dumps(found.value)
    hint = f'set `{found.key}` to "auto", and leave the value to the option'
    said = f"{config.named(found.key)} is {value}, but the command passes `{found.given}`"
    if found.value is None:
        said = f"`{found.key}` is missing, so accelerate sets it to 1, but the command passes `{found.given}`"
        if found.in_yaml:
            said = f"`{found.key}` is missing, so accelerate sets it to 1, but the trainer's YAML sets `{found.given}`"
    elif found.ranks and (found.missing or found.in_yaml):
        said = f"{config.named(found.key)} is {value}, but options and their defaults come to `{found.given}` on {counted(found.ranks)}"
    elif found.ranks:
        said = f"{config.named(found.key)} is {value}, but the command passes `{found.given}` to {counted(found.ranks)}"
    elif found.missing:
        default = found.given.split()[1]
        said = f"{config.named(found.key)} is {value}, but the command does not pass `--{found.missing}`, whose default is {default}"
        hint = f'pass `--{found.missing}`, and set `{found.key}` to "auto"'
    elif found.in_yaml:
        said = f"{config.named(found.key)} is {value}, but the trainer's YAML sets `{found.given}`"
    return fail(
        said,
        effect="transformers rejects the config before training starts",
        hint=hint,
        key=found.key,
        config=found.value,
        option=found.given,
        line=config.lines.get(found.key),
    )


def _without_batch_sizes(
    config: DsConfig,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
    framework: str,
) -> Finding:
    """A config without batch sizes, which something else may supply."""
    removed = isinstance(deepspeed, Missing) or at_least(deepspeed.version, REMOVED_SINCE)
    if "elasticity" in (config.parsed or {}) and removed:
        return skip("`elasticity`, which set the batch sizes, is reported separately")
    if enabled(config.section("elasticity")):
        return skip("`elasticity` computes the batch sizes when the job starts")
    if framework == "lightning":
        return skip(
            "the config sets no batch size; Lightning's DeepSpeed strategy sets the micro-batch"
        )
    if not framework and isinstance(packages, Missing):
        return skip(
            "the config sets no batch size; the script may, as Lightning's DeepSpeed strategy"
            " does (`--framework`)"
        )
    lightning = next(
        (one for one in _LIGHTNING if isinstance(packages, Packages) and packages.version(one)),
        None,
    )
    if lightning and not framework:
        return skip(
            f"the config sets no batch size; `{lightning}` is installed, and its DeepSpeed strategy"
            " sets the micro-batch",
            package=lightning,
        )
    return fail(
        "the config sets neither `train_batch_size` nor `train_micro_batch_size_per_gpu`, but"
        " DeepSpeed needs one of them",
        effect="`Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided`",
        hint='add `"train_micro_batch_size_per_gpu": 1`',
    )


HINT = "set `train_batch_size` to micro-batch * accumulation * world size, or leave out one of the three"

SIGNATURES = (
    Signature(
        pattern="Check batch related parameters|train_batch_size is not equal",
        source="deepspeed 0.19.8 runtime/config.py",
        examples=(
            "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 8 != 1 * 1 * 4",
            "equal to micro_batch_per_gpu: train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 32 != 2 * 4 * 8",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?:Train batch size|Micro batch size per gpu|Gradient accumulation steps): \S+ has to be greater than 0",
        source="deepspeed 0.19.8 runtime/config.py",
        examples=(
            "AssertionError: Micro batch size per gpu: 0 has to be greater than 0",
            "AssertionError: Gradient accumulation steps: 0 has to be greater than 0",
            "AssertionError: Train batch size: 0.0 has to be greater than 0",
        ),
        not_examples=("x has to be greater than 0",),
        level=Level.CERTAIN,
        hint="set that value to 1 or more; `train_batch_size` must not be smaller than micro-batch * accumulation * world size",
    ),
    Signature(
        pattern=r"DeepSpeed config values that mismatch kwargs\s+values",
        source="accelerate 0.29-1.15 utils/dataclasses.py",
        examples=(
            "ValueError: Please correct the following DeepSpeed config values that mismatch kwargs  values:",
        ),
        not_examples=("DeepSpeed config values that mismatch kwargs of a caller",),
        level=Level.STRONG,
        message="The DeepSpeed config and the settings that accelerate was given disagree",
        hint='set the values that the error lists to "auto" in the config, or make both equal',
    ),
    Signature(
        pattern="mismatch TrainingArguments|DeepSpeed config values that mismatch(?! kwargs)",
        source="transformers 4.28.1-5.23.0 integrations/deepspeed.py",
        examples=(
            "ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values:",
        ),
        level=Level.STRONG,
        message="The DeepSpeed config and the TrainingArguments disagree",
        hint='set the values that the error lists to "auto" in the config, or make both equal',
    ),
    Signature(
        pattern="train_batch_size or (?:train_micro_batch_size_per_gpu|micro_batch_per_gpu) needs",
        source="deepspeed 0.14.5-0.19.8 runtime/config.py",
        examples=(
            "AssertionError: Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided",
            "AssertionError: Either train_batch_size or micro_batch_per_gpu needs to be provided",
        ),
        level=Level.STRONG,
        message="The config sets no batch size",
        hint='add `"train_micro_batch_size_per_gpu": 1`, or the micro-batch that you want',
    ),
    Signature(
        pattern=r"- ds \w+=\S+ vs hf \w+",
        source="transformers 4.4-5.23 integrations/deepspeed.py (deepspeed.py until 4.32)",
        examples=(
            "- ds train_batch_size=8 vs hf train_batch_size (calculated)=4",
            "- ds gradient_accumulation_steps=2 vs hf gradient_accumulation_steps=1",
        ),
        not_examples=("ds train_batch_size=8 vs hf train_batch_size (calculated)=4",),
        level=Level.STRONG,
        message="The DeepSpeed config and the TrainingArguments disagree",
        hint='set the values that the error lists to "auto" in the config, or make both equal',
    ),
    Signature(
        pattern=r"global batch size \(\d+\) is not divisible by micro batch size \(\d+\) times data parallel size \((?P<ranks>\d+)\)",
        source="megatron_core 0.4-0.16 num_microbatches_calculator.py",
        examples=(
            "AssertionError: global batch size (8) is not divisible by micro batch size (3) times data parallel size (4)",
        ),
        not_examples=("batch size (8) is not divisible by micro batch size (3)",),
        level=Level.CERTAIN,
        message="Megatron's global batch is not a multiple of the micro-batch times {ranks} data-parallel ranks",
        hint="choose `--global-batch-size` as a multiple of `--micro-batch-size` times the data-parallel ranks, or change the number of GPUs or the parallel sizes",
    ),
    Signature(
        pattern="(?i)(?!global batch size \\(\\d+\\) is not divisible by micro batch)(?:global|train)[ _]batch[ _]size.{0,60}(?:not|n't) (?:be )?divisible|batch size .{0,60}divisible by .{0,60}(?:world|parallel)",
        source=(
            "megatron_core 0.4-0.16 num_microbatches_calculator.py and programs' own checks of "
            "their batch sizes"
        ),
        examples=(
            "ValueError: train batch size 10 is not divisible by 4",
            "ValueError: global batch size 10 isn't divisible by 4",
            "AssertionError: batch size 6 must be divisible by the world size 4",
        ),
        not_examples=("hidden size is not divisible by heads",),
    ),
    Signature(
        pattern="ElasticityIncompatibleWorldSize: ",
        source="deepspeed 0.3-0.19 elasticity/elasticity.py",
        message="The `elasticity` section does not allow this number of GPUs",
        hint="start as many ranks as one of the counts that the error lists, or change `micro_batch_sizes`",
        examples=(
            "deepspeed.elasticity.config.ElasticityIncompatibleWorldSize: World size (3) is not valid with the current list of valid GPU counts",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Train batch size must be divisible by micro-batch",
        source="deepspeed 0.3-0.19 runtime/engine.py",
        examples=(
            "ValueError: Train batch size must be divisible by micro-batch data parallelism",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Do not set .{1,4}(?:gradient_accumulation_steps|train_(?:micro_)?batch_size\w*).{1,4} in the DeepSpeed config",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=(
            "MisconfigurationException: Do not set `gradient_accumulation_steps` in the DeepSpeed config as this will be set with the trainer's argument",
            "MisconfigurationException: Do not set 'train_micro_batch_size_per_gpu' in the DeepSpeed config",
        ),
        not_examples=("`gradient_accumulation_steps` in the DeepSpeed config is 4",),
        level=Level.STRONG,
        message="Lightning sets `gradient_accumulation_steps` itself",
        hint="remove it from the DeepSpeed config, and pass `accumulate_grad_batches` "
        "to the Trainer",
    ),
    Signature(
        pattern=r"Error: .{0,120}[Mm]icro[ _-]?batch.{0,80}\bdivisible by",
        source=(
            "megatron_core 0.4-0.16 pipeline_parallel/schedules.py, "
            "num_microbatches_calculator.py; programs' own checks"
        ),
        examples=(
            "AssertionError: micro_batches 7 must be divisible by the pipeline's group of 2",
            "ValueError: the number of microbatches (3) is not divisible by 2",
        ),
        not_examples=("micro_batch 2 per GPU, as 8 is divisible by 2",),
        level=Level.WEAK,
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="deepspeed/runtime/config.py",
        function="_batch_assertion",
        kinds=("AssertionError",),
        source="deepspeed 0.9-0.19 runtime/config.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/runtime/config.py", line 7, in _batch_assertion\nAssertionError: x',
    ),
)
