"""This transformers does not work with this DeepSpeed or accelerate.

## Why it matters
The Hugging Face trainer refuses a DeepSpeed or accelerate older than it was written for, and hands
an automatic warm-up of 0 steps to a scheduler that DeepSpeed 0.19.6 no longer accepts.

## What to do
Upgrade the package that is named.

## References
- transformers 5.23.0: dependency_versions_table.py, integrations/deepspeed.py
- DeepSpeed runtime/lr_schedules.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Packages,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least

CONDITION = Condition(
    "transformers-deepspeed-incompatible", id="DSD905", scope=Scope.USER_ENV, since="0.1"
)
#: What transformers 5 asks of its partners (dependency_versions_table.py of 5.23.0).
NEEDED = (("deepspeed", "0.9.3"), ("accelerate", "1.1.0"))


def _automatic_warmup(run: RunNeeds) -> bool:
    scheduler = (run.config or {}).get("scheduler")
    params = scheduler.get("params") if isinstance(scheduler, dict) else None
    return isinstance(params, dict) and params.get("warmup_num_steps") == "auto"


@check(CONDITION)
def transformers_suits_deepspeed(packages: Packages, run: RunNeeds) -> Iterator[Finding]:
    """Compares the releases that are installed with what each asks of the other."""
    transformers, deepspeed = packages.version("transformers"), packages.version("deepspeed")
    if transformers is None or deepspeed is None:
        yield skip("transformers or deepspeed is not installed")
        return
    evidence = {"transformers": transformers, "deepspeed": deepspeed}
    if at_least(transformers, "5.0"):
        for name, needed in NEEDED:
            version = packages.version(name)
            if not at_least(version, needed):
                yield fail(
                    f"{name} {version} is installed, but transformers {transformers} needs "
                    f"{needed} or newer",
                    effect="the trainer stops with an `ImportError` when DeepSpeed is asked for",
                    hint=f"run `pip install -U '{name}>={needed}'`",
                    transformers=transformers,
                    package=name,
                    version=version,
                    needed=needed,
                )
    elif at_least(deepspeed, "0.19.6") and _automatic_warmup(run):
        yield warn(
            f"transformers {transformers} fills `warmup_num_steps: auto` with 0 unless told "
            f"otherwise, but deepspeed {deepspeed} refuses 0",
            effect="the scheduler ends in a `ValueError` unless warm-up steps are set",
            hint="set `warmup_steps` to 1 or more in the training arguments",
            **evidence,
        )
    else:
        yield ok("", **evidence)


HINT = "align transformers, accelerate and deepspeed: `python -m pip install -U transformers accelerate deepspeed`"

SIGNATURES = (
    Signature(
        anchor=(
            "transformers.deepspeed",
            "integrations.deepspeed",
            "DeepSpeedPlugin",
            "Accelerator",
            "DummyOptim",
            "is_deepspeed_zero3_enabled",
            "deepspeed_init",
            "DeepSpeedEngine",
            "DeepSpeedZeroOptimizer",
            "DeepSpeedOptimizerWrapper",
            "'DeepSpeedCPUAdam' object",
            "DeepSpeed version must be",
            "deepspeed>=",
            "deepspeed==",
            "DeepSpeedConfig",
            " is required for a normal functioning",
            "'DummyScheduler' object has no attribute",
            "' from 'transformers.integrations",
            "property 'deepspeed_plugin'",
            "accelerate.utils.deepspeed",
            "eepSpeed",
            "eepspeed",
            "DummySched",
        ),
        pattern=(
            r"No module named 'transformers\.(?:deepspeed|integrations\.deepspeed)"
            r"|cannot import name '\w+' from 'transformers\.(?:deepspeed"
            r"|integrations)|(?:Accelerator|DeepSpeedPlugin|AcceleratorState"
            r"|HfTrainerDeepSpeedConfig|DeepSpeedEngine|deepspeed_init)(?:\.\w+)?\(\) got an unexpected"
            r"|'(?:Accelerator\w*|DummyOptim|DummyScheduler|DeepSpeedPlugin"
            r"|HfTrainerDeepSpeedConfig|HfDeepSpeedConfig|(?:FP16_|BF16_)?DeepSpeedZeroOptimizer\w*|DeepSpeedCPUAdam"
            r"|DeepSpeedOptimizerWrapper|DeepSpeedEngineWrapper)' object has no attribute(?! 'ds_opt)"
            r"|cannot import name '\w{0,40}(?:[dD]eep[sS]peed|DummyOptim|DummySched)\w{0,40}' from"
            r" '(?:transformers|accelerate)[\w.]{0,80}'|No module named 'accelerate\.utils\.deepspeed"
            r"|deepspeed_init\(\) (?:missing|takes)|property 'deepspeed_plugin' of"
            r"|DeepSpeed version must be [<>]=|deepspeed[<>=!]=?\S+ is required for a normal functioning"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'transformers.deepspeed'",
            "TypeError: Accelerator.__init__() got an unexpected keyword argument 'logging_dir'",
            "TypeError: DeepSpeedEngine.backward() got an unexpected keyword argument 'sync_gradients'",
            "AttributeError: 'DeepSpeedZeroOptimizer_Stage3' object has no attribute 'train'",
            "ImportError: deepspeed>=0.9.3 is required for a normal functioning of this module, but found deepspeed==0.8.0.",
            "ImportError: DeepSpeed version must be >= 0.6.5. Please update DeepSpeed.",
        ),
        not_examples=(
            "Accelerator ready",
            "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
        ),
        weight=64,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        anchor=("Engine' object has no attribute",),
        pattern=(
            r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute '(?:base_model_prefix"
            r"|config_class|peft_config|pretrained_model|warnings_issued|is_gradient_checkpointing"
            r"|gradient_checkpointing_\w{1,20}|get_base_model|push_to_hub|save_pretrained"
            r"|_?hf_\w{1,30}|active_adapters?|is_loaded_in_\wbit|no_sync|offload_states"
            r"|(?:set|is)_gradient_accumulation_boundary|get_global_grad_norm|coalesce_grad_reduction)'"
        ),
        examples=(
            "AttributeError: 'DeepSpeedEngine' object has no attribute 'peft_config'",
            "AttributeError: 'DeepSpeedHybridEngine' object has no attribute 'save_pretrained'",
        ),
        not_examples=(
            "AttributeError: 'DeepSpeedEngine' object has no attribute 'my_head'",
            "AttributeError: 'SearchEngine' object has no attribute 'peft_config'",
        ),
        weight=40,
    ),
    Signature(
        anchor="object has no attribute '",
        pattern=(
            r"object has no attribute '(?:hf_deepspeed_config"
            r"|deepspeed_(?:plugin|engine|config|engine_wrapped)"
            r"|trainer_config_finalize|trainer_config_process)'"
        ),
        examples=(
            "AttributeError: 'TrainingArguments' object has no attribute 'hf_deepspeed_config'",
            "AttributeError: 'AcceleratorState' object has no attribute 'deepspeed_plugin'",
        ),
        not_examples=("AttributeError: 'Args' object has no attribute 'deepspeed'",),
        weight=62,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        anchor=("object has no attribute",),
        pattern="'\\w*(?:Trainer|Accelerator\\w*|Arguments)' object has no attribute '\\w*deepspeed\\w*'|'(?:Hf\\w*)?Deep[Ss]peed(?!Engine'|CPUAdam')\\w*' object has no attribute '(?!ds_opt)",
        examples=(
            "AttributeError: 'CustomTrainer' object has no attribute 'is_deepspeed_enabled'",
            "AttributeError: 'DeepSpeedGPTInference' object has no attribute 'config'",
            "AttributeError: 'DeepSpeedStrategy' object has no attribute '_deepspeed_engine'",
        ),
        not_examples=(
            "AttributeError: 'DeepSpeedEngine' object has no attribute 'generate'",
            "AttributeError: 'Net' object has no attribute 'deepspeed'",
        ),
        weight=50,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        anchor=("() got an unexpected keyword", "() missing ", "() takes ", "positional argument"),
        pattern="\\b(?:Warmup\\w*LR|OneCycle|LRRangeTest|Deep[Ss]peed\\w+|Fused(?:Adam|Lamb|Lion)|DeepSpeedZeroOptimizer\\w*|FP16_\\w+Optimizer|Init)(?:\\.\\w+)?\\(\\) (?:got an unexpected keyword|missing \\d+ required|takes \\d+ positional|takes from \\d+)",
        examples=(
            "TypeError: WarmupDecayLR.step() got an unexpected keyword argument 'increment'",
            "TypeError: DeepSpeedCPUAdam.__init__() got an unexpected keyword argument 'foreach'",
            "TypeError: DeepSpeedZeroConfig.__init__() takes 1 positional argument but 2 were given",
        ),
        not_examples=("TypeError: Net.forward() got an unexpected keyword argument 'mask'",),
        weight=50,
    ),
    Signature(
        anchor=("properly initialize your accelerator",),
        pattern=r"Error: .{0,20}make sure to properly initialize your accelerator",
        examples=(
            "ValueError: Please make sure to properly initialize your accelerator via `accelerator = Accelerator()` before",
            "[rank1]: ValueError: Please make sure to properly initialize your accelerator via `accelerator = Accelerator()`",
        ),
        not_examples=("make sure to properly initialize your accelerator first, says the guide",),
        weight=44,
        near=("AcceleratorState().deepspeed_plugin", "accelerate/accelerator.py"),
    ),
)
