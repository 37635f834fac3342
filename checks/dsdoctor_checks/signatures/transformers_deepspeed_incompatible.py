"""How `transformers-deepspeed-incompatible` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "transformers-deepspeed-incompatible"
TITLE = "this transformers or accelerate does not fit this DeepSpeed"
HINT = "align transformers, accelerate and deepspeed: `python -m pip install -U transformers accelerate deepspeed`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "transformers.deepspeed",
            "integrations.deepspeed",
            "HfDeepSpeedConfig",
            "DeepSpeedPlugin",
            "Accelerator.__init__",
            "Accelerator",
            "DummyOptim",
            "is_deepspeed_zero3_enabled",
            "deepspeed_init",
        ),
        pattern=(
            r"No module named 'transformers\.(?:deepspeed|integrations\.deepspeed)"
            r"|cannot import name '\w+' from 'transformers\.(?:deepspeed"
            r"|integrations)|(?:Accelerator|DeepSpeedPlugin|AcceleratorState"
            r"|HfTrainerDeepSpeedConfig)(?:\.\w+)?\(\) got an unexpected"
            r"|'(?:Accelerator\w*|DummyOptim|DummyScheduler|DeepSpeedPlugin"
            r"|HfTrainerDeepSpeedConfig)' object has no attribute"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'transformers.deepspeed'",
            "TypeError: Accelerator.__init__() got an unexpected keyword argument 'dispatch_batches'",
        ),
        not_examples=("Accelerator ready",),
        weight=64,
        masks=("dependency-version-conflict",),
    ),
)
