"""What a DeepSpeed config may contain, for the checks of this family.

Source: deepspeed 0.19.8 (read 2026-11-21): runtime/config.py, runtime/zero/config.py and
offload_config.py, runtime/precision_config.py, compile/config.py, monitor/config.py,
runtime/tensor_parallel/config.py, runtime/lr_schedules.py; torch 2.13 torch.optim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dsdoctor.api import DsConfig, whole
from dsdoctor_checks._util import at_least

#: The release that these tables were read from.
TABLE_VERSION = "0.19.8"

#: Keys that DeepSpeed reads at top level.
TOP_LEVEL = frozenset(
    """
    activation_checkpointing aio autotuning bf16 bfloat16 checkpoint comet comms_logger
    communication_data_type compile csv_monitor data_efficiency data_parallel_size data_types dataloader_drop_last
    datastates_ckpt disable_allgather disable_python_gc dump_state expert_parallel flops_profiler
    fp16 gradient_accumulation_steps gradient_allreduce_op gradient_clipping
    gradient_predivide_factor hybrid_engine log_level managed_gradient_accumulation
    memory_breakdown optimizer pipeline prescale_gradients scheduler
    seq_parallel_communication_data_type sequence_parallel_size steps_per_print tensor_parallel
    tensorboard timers torch_autocast train_batch_size train_micro_batch_size_per_gpu
    use_data_before_expert_parallelism vocabulary_size wall_clock_breakdown wandb
    weight_quantization zero_allow_untested_optimizer zero_force_ds_cpu_optimizer
    zero_optimization
    """.split(),  # noqa: SIM905  # reads as a list
)

#: Sections that refuse keys they do not know (pydantic `extra=forbid`).
STRICT = {
    section: frozenset(keys.split())
    for section, keys in {
        "zero_optimization": """
            stage contiguous_gradients reduce_scatter reduce_bucket_size
            use_multi_rank_bucket_allreduce allgather_partitions allgather_bucket_size overlap_comm
            compute_grad_norm load_from_fp32_weights elastic_checkpoint offload_param
            offload_optimizer zenflow sub_group_size cpu_offload_param cpu_offload_use_pin_memory
            cpu_offload stage3_prefetch_bucket_size prefetch_bucket_size
            stage3_param_persistence_threshold param_persistence_threshold
            stage3_model_persistence_threshold model_persistence_threshold
            stage3_max_live_parameters max_live_parameters stage3_max_reuse_distance
            max_reuse_distance stage3_gather_16bit_weights_on_model_save
            gather_16bit_weights_on_model_save stage3_module_granularity_threshold
            module_granularity_threshold stage3_use_all_reduce_for_fetch_params
            use_all_reduce_for_fetch_params stage3_allgather_sequential allgather_sequential
            stage3_gather_fp16_weights_on_model_save ignore_unused_parameters legacy_stage1
            round_robin_gradients parameter_alignment zero_hpz_partition_size
            zero_quantized_weights zero_quantized_nontrainable_weights zero_quantized_gradients
            memory_efficient_linear pipeline_loading_checkpoint override_module_apply
            log_trace_cache_warnings enable_sanity_checks save_muon_momentum_buffer_in_memory
            leaf_module
        """,
        "zero_optimization.offload_param": """
            device nvme_path buffer_count buffer_size max_in_cpu pin_memory
        """,
        "zero_optimization.offload_optimizer": """
            device nvme_path buffer_count pin_memory pipeline_read pipeline_write fast_init ratio
            super_offload cpuadam_cores_perc
        """,
        "zero_optimization.zenflow": """
            topk_ratio select_strategy select_interval update_interval overlap_step offload
            auto_ratio full_warm_up_rounds pt_reserved_cores_perc steps_per_epoch
        """,
        "zero_optimization.leaf_module": "classes names name_suffixes",
        "comms_logger": "enabled prof_all prof_ops verbose debug",
        "fp16": """
            enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis
            consecutive_hysteresis min_loss_scale fp16_master_weights_and_grads
        """,
        "bf16": """
            enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads
            bf16_optimizer_states
        """,
        "bfloat16": """
            enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads
            bf16_optimizer_states
        """,
        "compile": """
            deepcompile autoep_non_moe free_activation free_activation_threshold
            offload_activation offload_activation_pin_memory offload_opt_states double_buffer
            symmetric_memory debug_log offload_parameters sync_before_reduce sync_after_reduce
            sync_before_allgather sync_after_allgather keep_int_input_tensors
            keep_all_input_tensors passes
        """,
        "tensorboard": "enabled output_path job_name",
        "csv_monitor": "enabled output_path job_name",
        "wandb": "enabled group team project",
        "comet": """
            enabled samples_log_interval project workspace api_key experiment_name experiment_key
            online mode
        """,
        "hybrid_engine": """
            enabled max_out_tokens inference_tp_size release_inference_cache pin_parameters
            tp_gather_partition_size enable_cuda_graph
        """,
        "tensor_parallel": """
            dtype autotp_size tp_overlap_comm vocab_parallel_lm_head vocab_parallel_ce_backend
            tensor_parallel tp injection_policy_tuple partition_config preset_model
            keep_module_on_host replace_with_kernel_inject kernel_inject
        """,
        "tensor_parallel.tp": "tp_size tp_grain_size mpu tp_group",
        "tensor_parallel.tensor_parallel": "tp_size tp_grain_size mpu tp_group",
        "timers.throughput": "enabled synchronized",
        "weight_quantization": """
            enabled num_bits q_type q_groups quantized_initialization post_init_quant
        """,
    }.items()
}

#: Keys that DeepSpeed rejects since 0.19.7, even when they are disabled (issue 8489).
REMOVED_SINCE = "0.19.7"
REMOVED = frozenset(
    """
    nebula compression_training amp quantize_training sparse_gradients eigenvalue sparse_attention
    elasticity graph_harvesting curriculum_learning progressive_layer_drop
    zero_optimization.mics_shard_size zero_optimization.mics_hierarchical_params_gather
    zero_optimization.zeropp_loco_param
    """.split(),  # noqa: SIM905  # reads as a list
)

#: Built-in optimizers, lower case; DeepSpeed compares without regard to case.
OPTIMIZERS = ("adagrad", "adam", "adamw", "lamb", "muadam", "muadamw", "musgd", "lion", "muon")
REMOVED_OPTIMIZERS = frozenset({"onebitadam", "zerooneadam", "onebitlamb"})
#: Classes of torch.optim; any other name must be one of them, and is case-sensitive.
TORCH_OPTIMIZERS = (  # noqa: SIM905  # reads as a list
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD"
    " SparseAdam"
).split()
SCHEDULERS = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
#: Classes of torch.optim.lr_scheduler.
TORCH_SCHEDULERS = (  # noqa: SIM905  # reads as a list
    "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR"
    " ExponentialLR LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR"
    " ReduceLROnPlateau SequentialLR StepLR"
).split()

BATCH_KEYS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
)


def newer_than_table(version: str | None) -> bool:
    """Whether this DeepSpeed may know keys that the tables do not."""
    return at_least(version, TABLE_VERSION) and not at_least(TABLE_VERSION, str(version))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one; None if none is close."""
    import difflib  # noqa: PLC0415  # only for an unknown key

    found = difflib.get_close_matches(name.lower(), {key.lower(): key for key in known}, 1, 0.8)
    return next((key for key in known if found and key.lower() == found[0]), None)


def is_number(value: Any) -> bool:
    """Whether it is a number and not a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


#: How pydantic spells booleans, in lower case (conversions of its lax mode).
_TRUTH = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


def truth(value: Any) -> bool | None:
    """The boolean that a validated section reads from a value; None if it rejects the value.

    >>> truth("Yes"), truth(0), truth("auto"), truth(2)
    (True, False, None, None)
    """
    if isinstance(value, str):
        return _TRUTH.get(value.lower())
    return bool(value) if isinstance(value, (bool, int, float)) and value in (0, 1) else None


def number_of(value: Any) -> float | None:
    """The number that a validated section reads from a value; None if it rejects the value.

    >>> number_of("0.5"), number_of(2), number_of(None), number_of("auto")
    (0.5, 2.0, None, None)
    """
    try:
        return None if value is None or isinstance(value, (dict, list)) else float(value)
    except ValueError:
        return None


def enabled(section: dict[str, Any]) -> bool:
    """Whether a section is enabled; `"auto"` is not."""
    return truth(section.get("enabled")) is True


def bf16_section(config: DsConfig) -> str:
    """The section of bf16: DeepSpeed reads the older spelling if the other is absent."""
    return "bf16" if config.get("bf16") is not None else "bfloat16"


def stage_of(section: dict[str, Any]) -> int | None:
    """The ZeRO stage that DeepSpeed will use; None when a trainer sets it or it is invalid."""
    value = section.get("stage", 0)
    if isinstance(value, str):
        value = whole(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is not an object, with its dotted key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value
