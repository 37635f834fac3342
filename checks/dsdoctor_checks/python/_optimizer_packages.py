"""What the optimizers of Hugging Face's Trainer need (transformers 5.24 trainer_optimizer.py, 2026-11-30).

The names are those of `OptimizerNames` in training_args.py, 4.39 to 5.24.
"""

from __future__ import annotations

_BITSANDBYTES = (
    "adamw_bnb_8bit adamw_8bit ademamix ademamix_8bit lion_8bit lion_32bit paged_adamw_32bit"
    " paged_adamw_8bit paged_ademamix_32bit paged_ademamix_8bit paged_lion_32bit paged_lion_8bit"
    " rmsprop_bnb rmsprop_bnb_8bit rmsprop_bnb_32bit"
)
_GALORE = (
    "galore_adamw galore_adamw_8bit galore_adafactor galore_adamw_layerwise"
    " galore_adamw_8bit_layerwise galore_adafactor_layerwise"
)

#: Value of `--optim` to the distribution that provides the optimizer.
OPTIMIZERS: dict[str, str] = {
    **dict.fromkeys(_BITSANDBYTES.split(), "bitsandbytes"),
    **dict.fromkeys(_GALORE.split(), "galore-torch"),
    **dict.fromkeys(("apollo_adamw", "apollo_adamw_layerwise"), "apollo-torch"),
    **dict.fromkeys(("lomo", "adalomo"), "lomo-optim"),
    **dict.fromkeys(("adamw_torch_4bit", "adamw_torch_8bit"), "torchao"),
    **dict.fromkeys(
        ("schedule_free_radam", "schedule_free_adamw", "schedule_free_sgd"), "schedulefree"
    ),
    "grokadamw": "grokadamw",
    "stable_adamw": "torch-optimi",
}
