"""Settings in the DeepSpeed config are mutually exclusive.

## Why it matters
Each setting is valid on its own, and most pairs pass DeepSpeed's validation. The run stops with an
assertion in the engine or at the first step, when the model is loaded and the GPUs are allocated.

## What to do
Keep one of the two settings named in the finding.

## References
deepspeed/runtime/config.py (`_do_error_check`), deepspeed/runtime/zero/config.py,
deepspeed/runtime/zero/stage_1_and_2.py, deepspeed/runtime/engine.py (`_forward_prologue`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DsConfig,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Scope,
    ScriptImports,
    TracebackRule,
    check,
    fail,
    warn,
)
from dsdoctor_checks._util import at_least

from . import _conflict_signatures
from ._classes import optimizer_of
from ._engine_rules import clash, engine_clashes
from ._releases import has
from ._tables import bf16_section, enabled, is_number, number_of, stage_of, truth

CONDITION = Condition(
    "ds-config-unsupported-combination", id="DSD1305", scope=Scope.JOB, since="0.1"
)

_CPU_ADAM = "DeepSpeedCPUAdam"
_OFFLOAD = "zero_optimization.offload_optimizer"
#: From here on the inputs are cast although fp16 is off (DeepSpeed#6976; before it the getter asked
#: whether fp16 was enabled).
_CASTS_SINCE = "0.17.1"


@check(CONDITION)
def settings_agree(
    config: DsConfig,
    deepspeed: DeepSpeedInstall | Missing,
    command: LaunchCommand | Missing,
    script: ScriptImports | Missing,
) -> Iterator[Finding]:
    """Fails on pairs that DeepSpeed rejects or that stop the run."""
    bf16 = bf16_section(config)
    if enabled(config.section("fp16")) and enabled(config.section(bf16)):
        yield clash(
            config,
            ("fp16.enabled", f"{bf16}.enabled"),
            "{named} are both true, but only one precision can be enabled",
            "`AssertionError` in `deepspeed.initialize`",
            "disable one of them",
        )
    elif enabled(config.section(bf16)) and config.get("fp16.auto_cast") is True:
        yield from _auto_cast_of_bf16(config, bf16, deepspeed)
    zero = config.section("zero_optimization")
    stage = stage_of(zero)
    yield from _offload(config, stage)
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    yield from _gradients(config, stage, version)
    yield from _optimizer(config, stage)
    yield from _master_weights(config, bf16, stage)
    yield from engine_clashes(config, version)
    yield from _data_sampling(config)
    if isinstance(command, LaunchCommand) and command.launcher == "accelerate":
        yield from _also_in_script(config, script)
    for old, new in _twice(config):
        yield clash(
            config,
            (old, new),
            "{named} configure the same feature, but DeepSpeed accepts only one of them",
            "DeepSpeed rejects the config",
            f"remove `{old.rpartition('.')[2]}`, the other name of `{new.rpartition('.')[2]}`",
        )


#: What stands in for it in a script (accelerate 0.12-1.15 accelerator.py `_prepare_deepspeed`).
_DUMMIES = {"optimizer": "DummyOptim", "scheduler": "DummyScheduler"}


def _also_in_script(config: DsConfig, script: ScriptImports | Missing) -> Iterator[Finding]:
    """What Accelerate gets from the config and from the script, of which it takes only one."""
    if isinstance(script, Missing):
        return
    for kind, line in script.prepared.items():
        if kind not in (config.parsed or {}):
            continue
        dummies = [_DUMMIES[kind]]
        if kind == "optimizer" and "scheduler" in script.prepared:
            dummies.append(_DUMMIES["scheduler"])  # which a `DummyOptim` needs
        instead = " and ".join(f"`accelerate.utils.{one}`" for one in dummies)
        yield fail(
            f"`{script.script}` creates the {kind} in line {line} and passes it to `prepare`, but the"
            f" config `{config.path}` contains `{kind}` too",
            effect="`ValueError` in `prepare` of Accelerate",
            hint=f"remove `{kind}` from the config, or create {instead} in the script",
            setting=kind,
            line=line,
        )


#: Names that older releases had for settings of ZeRO (deepspeed 0.19.8 runtime/zero/config.py).
_REPLACED = {
    "cpu_offload": ("offload_optimizer",),
    "cpu_offload_param": ("offload_param",),
    "stage3_gather_fp16_weights_on_model_save": (
        "stage3_gather_16bit_weights_on_model_save",
        "gather_16bit_weights_on_model_save",
    ),
}
_PREFIX = "stage3_"
#: Two names of one setting of tensor parallelism.
_TENSOR = {"tp": "tensor_parallel", "kernel_inject": "replace_with_kernel_inject"}


def _twice(config: DsConfig) -> Iterator[tuple[str, str]]:
    """Settings that are given under two of their names, dotted; `"auto"` is not given."""
    zero = {k for k, v in config.section("zero_optimization").items() if v != "auto"}
    for old in sorted(zero):
        for new in (*_REPLACED.get(old, ()), f"{_PREFIX}{old}"):
            if new in zero:
                yield f"zero_optimization.{old}", f"zero_optimization.{new}"
    tensor = {k for k, v in config.section("tensor_parallel").items() if v != "auto"}
    for old, new in _TENSOR.items():
        if {old, new} <= tensor:
            yield f"tensor_parallel.{old}", f"tensor_parallel.{new}"


def _auto_cast_of_bf16(
    config: DsConfig, bf16: str, deepspeed: DeepSpeedInstall | Missing
) -> Iterator[Finding]:
    if isinstance(deepspeed, DeepSpeedInstall) and not at_least(deepspeed.version, _CASTS_SINCE):
        return
    keys = ("fp16.auto_cast", f"{bf16}.enabled")
    yield warn(
        f"{config.named(keys[0])} casts the inputs to fp16, but {config.named(keys[1])} makes the"
        " model bf16",
        effect="floating-point inputs cause a dtype mismatch in the forward pass; integer inputs"
        " such as token ids are not affected",
        hint="set `fp16.auto_cast` to false",
        keys={key: config.lines.get(key) for key in keys},
        values={key: config.get(key) for key in keys},
    )


def _offload(config: DsConfig, stage: int | None) -> Iterator[Finding]:
    optimizer = config.section(_OFFLOAD)
    device = optimizer.get("device", "none")
    if stage == 0 and device in {"cpu", "nvme"}:
        yield clash(
            config,
            (f"{_OFFLOAD}.device",),
            f"{{named}} is `{device}`, but the ZeRO stage is 0, which keeps the parameters on the GPU",
            "the CPU optimizer fails at the first step: `CPUAdam param is on cuda`",
            "set `zero_optimization.stage` to 1, 2 or 3, or remove `offload_optimizer`",
        )
    for section in ("offload_optimizer", "offload_param"):
        key = f"zero_optimization.{section}"
        used = stage == 3  # noqa: PLR2004  # below it the nvme device is not used at all
        if used and config.get(f"{key}.device") == "nvme" and not config.get(f"{key}.nvme_path"):
            yield clash(
                config,
                (f"{key}.device",),
                "{named} is `nvme`, but `nvme_path` is not set",
                "`TypeError` in the engine: the path is None",
                f"set `{key}.nvme_path` to a directory on a local NVMe disk",
            )
    ratio = number_of(optimizer.get("ratio", 1.0))
    if ratio is not None and ratio < 1 and stage in {0, 1, 2}:
        yield clash(
            config,
            (f"{_OFFLOAD}.ratio",),
            f"{{named}} is {ratio}, but partial offload needs ZeRO stage 3, and the stage is {stage}",
            "`ValidationError` when the config is read",
            "remove `ratio`, or set `zero_optimization.stage` to 3",
        )


def _gradients(config: DsConfig, stage: int | None, version: str | None) -> Iterator[Finding]:
    scatter = config.get("zero_optimization.reduce_scatter", True)
    sharded = stage in {2, 3} and scatter is not False
    if sharded and config.get("prescale_gradients") is True:
        yield clash(
            config,
            ("prescale_gradients",),
            f"{{named}} is true, but ZeRO stage {stage} with `reduce_scatter` cannot scale before it reduces",
            "`AssertionError` when the gradients are reduced",
            "remove `prescale_gradients`",
        )
    factor = config.get("gradient_predivide_factor", 1.0)
    if sharded and is_number(factor) and factor != 1:
        yield clash(
            config,
            ("gradient_predivide_factor",),
            f"{{named}} is {factor}, but ZeRO stage {stage} with `reduce_scatter` supports only 1.0",
            "`AssertionError` when the gradients are reduced",
            "remove `gradient_predivide_factor`",
        )
    yield from _summed(config, stage, version)
    if str(config.get("optimizer.type", "")).lower() == "lamb" and _static_scale(config):
        scale = config.get("fp16.loss_scale")
        yield clash(
            config,
            ("optimizer.type", "fp16.loss_scale"),
            f"{{named}} are incompatible: LAMB needs a dynamic loss scale, but it is fixed at {scale}",
            "`AssertionError` in `deepspeed.initialize`",
            "set `fp16.loss_scale` to 0",
        )


def _summed(config: DsConfig, stage: int | None, version: str | None) -> Iterator[Finding]:
    """What only averages gradients."""
    key = "gradient_allreduce_op"
    if str(config.get(key)).lower() != "sum" or not has(key, version):
        return
    others = {
        "ZeRO stage 3": stage == 3,  # noqa: PLR2004
        "ZenFlow": config.get("zero_optimization.zenflow") not in (None, "auto"),
        "DeepCompile": truth(config.get("compile.deepcompile")) is True,
    }
    for other in (name for name, used in others.items() if used):
        yield clash(
            config,
            (key,),
            f"{{named}} is `sum`, but {other} only averages",
            "DeepSpeed rejects the config",
            "set `gradient_allreduce_op` to `mean`",
        )


def _optimizer(config: DsConfig, stage: int | None) -> Iterator[Finding]:
    """Optimizers and master weights that the stage or the offload does not support."""
    name = str(config.get("optimizer.type", "")).lower()
    scatter = config.get("zero_optimization.reduce_scatter", True)
    if name == "muon" and stage == 3 and scatter is not False:  # noqa: PLR2004
        yield clash(
            config,
            ("optimizer.type", "zero_optimization.stage"),
            "{named} are incompatible: Muon at ZeRO stage 3 needs `reduce_scatter` disabled",
            "`ValueError` in `deepspeed.initialize`",
            'set `"reduce_scatter": false` in `zero_optimization`',
        )
    quantized = "zero_optimization.zero_quantized_gradients"
    if name == "muon" and stage == 3 and truth(config.get(quantized)) is True:  # noqa: PLR2004
        yield clash(
            config,
            ("optimizer.type", quantized),
            "{named} are incompatible",
            "`ValueError` in `deepspeed.initialize`",
            "remove `zero_quantized_gradients`",
        )
    if "max_grad_norm" in config.section("optimizer.params"):
        yield clash(
            config,
            ("optimizer.params.max_grad_norm",),
            "{named} is set, but DeepSpeed clips gradients by the top-level `gradient_clipping`",
            "`ValueError` in `deepspeed.initialize`",
            "remove it and set `gradient_clipping`",
        )


def _master_weights(config: DsConfig, bf16: str, stage: int | None) -> Iterator[Finding]:
    """Master weights of 16 bits, and what they need."""
    offloaded = config.get(f"{_OFFLOAD}.device", "none") in {"cpu", "nvme"}
    # a client's optimizer is not known; Muon creates several
    unknown = "" if "type" in config.section("optimizer") else _CPU_ADAM
    offloaded &= (optimizer_of(config) or (unknown, None))[0] == _CPU_ADAM
    states = f"{bf16}.bf16_optimizer_states"
    kept = truth(config.get(states)) is True
    for kind, section in (("fp16", "fp16"), ("bf16", bf16)):
        key = f"{section}.{kind}_master_weights_and_grads"
        if truth(config.get(key)) is not True:
            if kind == "bf16" and kept:
                yield clash(
                    config,
                    (states,),
                    f"{{named}} is true, but it needs `{key}`",
                    "`AssertionError` in `deepspeed.initialize`",
                    f"set `{key}` to true, or remove `{states}`",
                )
            continue
        if stage == 0:
            yield clash(
                config,
                (key,),
                "{named} is true, but it needs ZeRO stage 1 or higher, and the stage is 0",
                "`AssertionError` in `deepspeed.initialize`",
                f"set `zero_optimization.stage` to 1 or more, or remove `{key}`",
            )
        elif stage in {1, 2, 3} and not offloaded and not (kind == "bf16" and kept):
            yield clash(
                config,
                (key,),
                "{named} is true, but half-precision master weights need Adam on the CPU",
                "`AssertionError` in `deepspeed.initialize`",
                'set `"offload_optimizer": {"device": "cpu"}` in `zero_optimization`, or'
                " `bf16_optimizer_states`"
                if kind == "bf16"
                else 'set `"offload_optimizer": {"device": "cpu"}` in `zero_optimization`',
            )


#: Parts of data sampling, and what each needs (deepspeed 0.19.8 runtime/data_pipeline/config.py,
#: which reads them even if `data_efficiency` is disabled).
_SAMPLING_NEEDS = {"curriculum_learning": "curriculum_metrics", "dynamic_batching": "max_tokens"}


def _data_sampling(config: DsConfig) -> Iterator[Finding]:
    for part, needed in _SAMPLING_NEEDS.items():
        section = f"data_efficiency.data_sampling.{part}"
        held = config.section(section)
        if held.get("enabled") and needed not in held:
            key = f"{section}.enabled"
            yield clash(
                config,
                (key,),
                f"{{named}} is true, but `{needed}` is not set",
                "`AssertionError` in `deepspeed.initialize`",
                f"set `{section}.{needed}`, or `enabled` to false",
            )


def _static_scale(config: DsConfig) -> bool:
    scale = config.get("fp16.loss_scale", 0)
    return enabled(config.section("fp16")) and is_number(scale) and scale != 0


HINT = "remove one of the two settings named in the error"


#: Both join the path to a folder name: without `nvme_path`, None is no path.
TRACEBACK_RULES = tuple(
    TracebackRule(
        file=file,
        function=function,
        kinds=("TypeError",),
        source=f"deepspeed 0.19 {file.partition('/')[2]}: offload to NVMe without `nvme_path`",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/'
        f'{file}", line 7, in {function}\nTypeError: x',
    )
    for file, function in (
        ("deepspeed/runtime/zero/stage3.py", "_configure_tensor_swapping"),
        ("deepspeed/runtime/swap_tensor/partitioned_param_swapper.py", "_configure_aio"),
    )
)

SIGNATURES = _conflict_signatures.SIGNATURES
