"""Keyword arguments of the classes that `optimizer` and `scheduler` select.

For where the installed classes were not asked. Source: the signatures in deepspeed 0.19.8 (ops/,
runtime/lr_schedules.py, runtime/engine.py `_configure_basic_optimizer`) and torch 2.13, read by a
program on 2026-11-29; older releases accept the same or fewer, and `verbose`.
"""

from __future__ import annotations

from dsdoctor.api import DsConfig

_OFFLOADED = frozenset({"cpu", "nvme"})


def _named(table: dict[str, str]) -> dict[str, frozenset[str]]:
    return {name: frozenset(keys.split()) for name, keys in table.items()}


OPTIMIZER_PARAMETERS = _named(
    {
        "FusedAdam": """
            lr bias_correction betas eps adam_w_mode weight_decay amsgrad set_grad_none
        """,
        "DeepSpeedCPUAdam": """
            lr bias_correction betas eps weight_decay amsgrad adamw_mode fp32_optimizer_states
        """,
        "FusedLamb": """
            lr bias_correction betas eps eps_inside_sqrt weight_decay max_grad_norm max_coeff
            min_coeff amsgrad
        """,
        "FusedLion": "lr betas weight_decay set_grad_none",
        "DeepSpeedCPULion": "lr betas weight_decay fp32_optimizer_states",
        "DeepSpeedCPUAdagrad": "lr eps weight_decay amsgrad fp32_optimizer_states",
        "ASGD": "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
        "Adadelta": "lr rho eps weight_decay foreach capturable maximize differentiable",
        "Adafactor": "lr beta2_decay eps d weight_decay foreach maximize",
        "Adagrad": """
            lr lr_decay weight_decay initial_accumulator_value eps foreach maximize differentiable
            fused
        """,
        "AdamW": """
            lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused
        """,
        "Adamax": "lr betas eps weight_decay foreach maximize differentiable capturable",
        "NAdam": """
            lr betas eps weight_decay momentum_decay decoupled_weight_decay foreach maximize
            capturable differentiable
        """,
        "RAdam": """
            lr betas eps weight_decay decoupled_weight_decay foreach maximize capturable
            differentiable
        """,
        "RMSprop": """
            lr alpha eps weight_decay momentum centered capturable foreach maximize differentiable
        """,
        "Rprop": "lr etas step_sizes capturable foreach maximize differentiable",
        "SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    }
)
SCHEDULER_PARAMETERS = _named(
    {
        "LRRangeTest": """
            lr_range_test_min_lr lr_range_test_step_size lr_range_test_step_rate
            lr_range_test_staircase last_batch_iteration
        """,
        "OneCycle": """
            cycle_min_lr cycle_max_lr decay_lr_rate cycle_first_step_size cycle_second_step_size
            cycle_first_stair_count cycle_second_stair_count decay_step_size cycle_momentum
            cycle_min_mom cycle_max_mom decay_mom_rate last_batch_iteration
        """,
        "WarmupLR": """
            warmup_min_lr warmup_max_lr warmup_num_steps warmup_type last_batch_iteration
        """,
        "WarmupDecayLR": """
            total_num_steps warmup_min_lr warmup_max_lr warmup_num_steps warmup_type
            last_batch_iteration
        """,
        "WarmupCosineLR": """
            total_num_steps warmup_min_ratio warmup_num_steps cos_min_ratio warmup_type
            last_batch_iteration
        """,
        "ConstantLR": "factor total_iters last_epoch verbose",
        "CosineAnnealingLR": "T_max eta_min last_epoch verbose",
        "CosineAnnealingWarmRestarts": "T_0 T_mult eta_min last_epoch verbose",
        "CyclicLR": """
            base_lr max_lr step_size_up step_size_down mode gamma scale_fn scale_mode
            cycle_momentum base_momentum max_momentum last_epoch verbose
        """,
        "ExponentialLR": "gamma last_epoch verbose",
        "LinearLR": "start_factor end_factor total_iters last_epoch verbose",
        "MultiStepLR": "milestones gamma last_epoch verbose",
        "OneCycleLR": """
            max_lr total_steps epochs steps_per_epoch pct_start anneal_strategy cycle_momentum
            base_momentum max_momentum div_factor final_div_factor three_phase last_epoch verbose
        """,
        "PolynomialLR": "total_iters power last_epoch verbose",
        "ReduceLROnPlateau": """
            mode factor patience threshold threshold_mode cooldown min_lr eps verbose
        """,
        "StepLR": "step_size gamma last_epoch verbose",
    }
)
#: Parameters of schedulers that have no default.
SCHEDULER_NEEDS = {
    "WarmupDecayLR": ("total_num_steps",),
    "WarmupCosineLR": ("total_num_steps",),
    "OneCycle": ("cycle_min_lr", "cycle_max_lr"),
    "CosineAnnealingLR": ("T_max",),
    "CosineAnnealingWarmRestarts": ("T_0",),
    "CyclicLR": ("base_lr", "max_lr"),
    "ExponentialLR": ("gamma",),
    "LambdaLR": ("lr_lambda",),
    "MultiStepLR": ("milestones",),
    "MultiplicativeLR": ("lr_lambda",),
    "OneCycleLR": ("max_lr",),
    "SequentialLR": ("schedulers", "milestones"),
    "StepLR": ("step_size",),
}
#: What the engine takes from `params` itself, before it creates Adam.
_ADAM_TAKEN = frozenset({"torch_adam", "adam_w_mode", "fp32_optimizer_states"})


def is_offloaded(config: DsConfig) -> bool:
    """Whether the engine creates an optimizer for the CPU, whatever the stage."""
    return config.get("zero_optimization.offload_optimizer.device") in _OFFLOADED


def optimizer_of(config: DsConfig) -> tuple[str, frozenset[str]] | None:
    """Class and keyword arguments of the optimizer; None if they are not known.

    >>> optimizer_of(DsConfig(parsed={"optimizer": {"type": "Lion"}}))[0]
    'FusedLion'
    """
    name = config.get("optimizer.type")
    if not isinstance(name, str):
        return None
    offloaded = is_offloaded(config)
    taken: frozenset[str] = frozenset()
    match name.lower():
        case "adam" | "adamw":
            cls = "DeepSpeedCPUAdam" if offloaded else "FusedAdam"
            cls = "AdamW" if config.get("optimizer.params.torch_adam") else cls
            taken = _ADAM_TAKEN
        case "adagrad":
            cls = "DeepSpeedCPUAdagrad" if offloaded else "Adagrad"
        case "lion":
            cls = "DeepSpeedCPULion" if offloaded else "FusedLion"
        case "lamb":
            cls = "FusedLamb"
        case "muon":  # splits its parameters itself
            return None
        case _:
            cls = name
    known = OPTIMIZER_PARAMETERS.get(cls)
    return None if known is None else (cls, known | taken)
