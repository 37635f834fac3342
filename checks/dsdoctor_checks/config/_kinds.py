"""Which values the typed sections of the config accept.

Source: deepspeed 0.19.8 (read 2026-11-22 and 2026-11-28): the models in runtime/zero/,
runtime/precision_config.py, runtime/config.py, runtime/zenflow/, runtime/tensor_parallel/config.py,
monitor/config.py, compile/config.py and comm/config.py.
DeepSpeed drops `"auto"` before it validates (runtime/config_utils.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dsdoctor.api import DsConfig

from . import _accepts as accepts
from ._releases import has
from ._tables import STRICT, bf16_section


class Refused(NamedTuple):
    """A value that a section does not accept.

    Attributes:
        key: its dotted key.
        expected: what the section accepts, for a sentence.
    """

    key: str
    expected: str


class _Kind(NamedTuple):
    """Settings that accept the same values.

    Attributes:
        accepts: whether a value is one of them.
        expected: the same for a sentence.
        section: the section that they are in, "" for the top level.
        names: the settings; a dot stands between those of a section within it.
    """

    accepts: Callable[[Any], bool]
    expected: str
    section: str
    names: str


_BOOLEAN = "`true` or `false`"
_OBJECT = "an object in braces"
_BF16 = """
    enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads
    bf16_optimizer_states
"""
#: Sections that are settings of one model.
_MONITORS = frozenset({"tensorboard", "csv_monitor", "wandb", "comet"})
#: Expected where no value of a file is accepted.
_ABSENT = "absent: JSON cannot express what DeepSpeed takes here"
_KINDS = (
    _Kind(
        accepts.boolean,
        _BOOLEAN,
        "zero_optimization",
        """
        contiguous_gradients reduce_scatter use_multi_rank_bucket_allreduce allgather_partitions
        compute_grad_norm load_from_fp32_weights elastic_checkpoint
        stage3_gather_16bit_weights_on_model_save gather_16bit_weights_on_model_save
        stage3_gather_fp16_weights_on_model_save stage3_use_all_reduce_for_fetch_params
        use_all_reduce_for_fetch_params stage3_allgather_sequential allgather_sequential
        ignore_unused_parameters legacy_stage1 round_robin_gradients parameter_alignment
        zero_quantized_weights zero_quantized_nontrainable_weights zero_quantized_gradients
        memory_efficient_linear pipeline_loading_checkpoint override_module_apply
        log_trace_cache_warnings enable_sanity_checks save_muon_momentum_buffer_in_memory
        offload_param.pin_memory offload_optimizer.pin_memory offload_optimizer.pipeline_read
        offload_optimizer.pipeline_write offload_optimizer.fast_init
        offload_optimizer.super_offload zenflow.overlap_step zenflow.offload
        """,
    ),
    _Kind(
        accepts.boolean_or_null,
        _BOOLEAN,
        "zero_optimization",
        "overlap_comm cpu_offload cpu_offload_param cpu_offload_use_pin_memory",
    ),
    _Kind(
        accepts.is_not_negative_integer,
        "an integer of 0 or more",
        "zero_optimization",
        """
        allgather_bucket_size sub_group_size stage3_prefetch_bucket_size prefetch_bucket_size
        stage3_param_persistence_threshold param_persistence_threshold
        stage3_model_persistence_threshold model_persistence_threshold stage3_max_live_parameters
        max_live_parameters stage3_max_reuse_distance max_reuse_distance zero_hpz_partition_size
        offload_param.buffer_count offload_param.buffer_size offload_param.max_in_cpu
        offload_optimizer.buffer_count
        """,
    ),
    _Kind(accepts.positive, "an integer above 0", "zero_optimization", "reduce_bucket_size"),
    _Kind(
        accepts.is_integer,
        "an integer",
        "zero_optimization",
        """
        stage3_module_granularity_threshold module_granularity_threshold
        zenflow.full_warm_up_rounds
        """,
    ),
    _Kind(accepts.integer_or_null, "an integer", "zero_optimization", "zenflow.steps_per_epoch"),
    _Kind(accepts.interval, 'an integer or "auto"', "zero_optimization", "zenflow.select_interval"),
    _Kind(
        lambda value: accepts.interval(value) and accepts.positive(value),
        'an integer above 0 or "auto"',
        "zero_optimization",
        "zenflow.update_interval",
    ),
    _Kind(
        accepts.is_fraction,
        "a number from 0 to 1",
        "zero_optimization",
        """
        offload_optimizer.ratio offload_optimizer.cpuadam_cores_perc zenflow.auto_ratio
        zenflow.pt_reserved_cores_perc
        """,
    ),
    _Kind(
        accepts.is_inner_fraction,
        "a number above 0 and below 1",
        "zero_optimization",
        "zenflow.topk_ratio",
    ),
    _Kind(
        accepts.text_or_null,
        "a path in quotes",
        "zero_optimization",
        "offload_param.nvme_path offload_optimizer.nvme_path",
    ),
    _Kind(
        accepts.texts,
        "a list of strings",
        "zero_optimization",
        "leaf_module.classes leaf_module.names leaf_module.name_suffixes",
    ),
    _Kind(
        accepts.mapping_or_null,
        _OBJECT,
        "zero_optimization",
        "offload_param offload_optimizer leaf_module zenflow",
    ),
    _Kind(
        accepts.boolean,
        _BOOLEAN,
        "fp16",
        "enabled auto_cast consecutive_hysteresis fp16_master_weights_and_grads",
    ),
    _Kind(
        accepts.is_integer,
        "an integer",
        "fp16",
        "initial_scale_power loss_scale_window hysteresis min_loss_scale",
    ),
    _Kind(accepts.finite, "a number of 0 or more", "fp16", "loss_scale"),
    _Kind(
        accepts.boolean,
        _BOOLEAN,
        "bf16",
        _BF16,
    ),
    _Kind(accepts.boolean, _BOOLEAN, "bfloat16", _BF16),
    _Kind(
        accepts.boolean,
        _BOOLEAN,
        "compile",
        """
        deepcompile autoep_non_moe free_activation offload_activation
        offload_activation_pin_memory offload_opt_states double_buffer symmetric_memory debug_log
        offload_parameters sync_before_reduce sync_after_reduce sync_before_allgather
        sync_after_allgather keep_int_input_tensors keep_all_input_tensors
        """,
    ),
    _Kind(accepts.is_integer, "an integer", "compile", "free_activation_threshold"),
    _Kind(accepts.passes, f"a list of {', '.join(sorted(accepts.PASSES))}", "compile", "passes"),
    _Kind(
        accepts.boolean,
        _BOOLEAN,
        "hybrid_engine",
        "enabled release_inference_cache pin_parameters enable_cuda_graph",
    ),
    _Kind(accepts.positive, "an integer above 0", "hybrid_engine", "max_out_tokens"),
    _Kind(
        accepts.is_integer,
        "an integer",
        "hybrid_engine",
        "inference_tp_size tp_gather_partition_size",
    ),
    _Kind(accepts.boolean, _BOOLEAN, "comms_logger", "enabled prof_all verbose debug"),
    _Kind(accepts.sequence, "a list in brackets", "comms_logger", "prof_ops"),
    _Kind(accepts.boolean, _BOOLEAN, "tensorboard", "enabled"),
    _Kind(accepts.text, "a string", "tensorboard", "output_path job_name"),
    _Kind(accepts.boolean, _BOOLEAN, "csv_monitor", "enabled"),
    _Kind(accepts.text, "a string", "csv_monitor", "output_path job_name"),
    _Kind(accepts.boolean, _BOOLEAN, "wandb", "enabled"),
    _Kind(accepts.text, "a string", "wandb", "project"),
    _Kind(accepts.text_or_null, "a string", "wandb", "group team"),
    _Kind(accepts.boolean, _BOOLEAN, "comet", "enabled"),
    _Kind(accepts.boolean_or_null, _BOOLEAN, "comet", "online"),
    _Kind(accepts.is_integer, "an integer", "comet", "samples_log_interval"),
    _Kind(
        accepts.text_or_null,
        "a string",
        "comet",
        "project workspace api_key experiment_name experiment_key mode",
    ),
    _Kind(
        accepts.boolean,
        _BOOLEAN,
        "tensor_parallel",
        "tp_overlap_comm keep_module_on_host replace_with_kernel_inject kernel_inject",
    ),
    _Kind(accepts.boolean_or_null, _BOOLEAN, "tensor_parallel", "vocab_parallel_lm_head"),
    _Kind(accepts.is_integer, "an integer", "tensor_parallel", "autotp_size"),
    _Kind(accepts.text_or_null, "a string", "tensor_parallel", "preset_model"),
    _Kind(accepts.mapping_or_null, _OBJECT, "tensor_parallel", "partition_config"),
    _Kind(accepts.mapping, _OBJECT, "tensor_parallel", "tensor_parallel tp"),
    _Kind(accepts.never, _ABSENT, "tensor_parallel", "dtype"),
    _Kind(accepts.sequence_or_null, "a list", "tensor_parallel", "injection_policy_tuple"),
    _Kind(accepts.is_integer, "an integer", "tensor_parallel.tp", "tp_size tp_grain_size"),
    _Kind(
        accepts.is_integer, "an integer", "tensor_parallel.tensor_parallel", "tp_size tp_grain_size"
    ),
    _Kind(accepts.boolean, _BOOLEAN, "weight_quantization", "enabled"),
    _Kind(accepts.is_integer, "an integer", "weight_quantization", "num_bits q_groups"),
    _Kind(
        accepts.mapping, _OBJECT, "weight_quantization", "quantized_initialization post_init_quant"
    ),
    _Kind(accepts.container, _OBJECT, "", "timers"),
    _Kind(accepts.mapping, _OBJECT, "timers", "throughput"),
    _Kind(accepts.boolean, _BOOLEAN, "timers.throughput", "enabled synchronized"),
    _Kind(
        accepts.strings_or_auto,
        'a list of strings, or "auto"',
        "data_types",
        "keep_in_fp32_modules",
    ),
    _Kind(accepts.names, "a list of strings", "torch_autocast", "lower_precision_safe_modules"),
    _Kind(
        lambda value: isinstance(value, (int, float)) and value in (0, 1),
        f"{_BOOLEAN} without quotes",
        "checkpoint.parallel_write",
        "pipeline_stage",
    ),
    _Kind(accepts.mapping, _OBJECT, "data_efficiency.data_sampling", "curriculum_learning"),
    _Kind(accepts.mapping, _OBJECT, "data_efficiency.data_routing", "random_ltd"),
    _Kind(accepts.size, "an integer", "", "vocabulary_size"),
    _Kind(accepts.switch, f"{_BOOLEAN} without quotes", "flops_profiler", "enabled"),
    _Kind(accepts.switch, f"{_BOOLEAN} without quotes", "", "wall_clock_breakdown"),
    _Kind(accepts.divides, "an integer above 0", "", "sequence_parallel_size"),
    _Kind(accepts.mapping_or_null, _OBJECT, "optimizer", "params"),
    _Kind(accepts.text_or_null, "a string", "optimizer", "type"),
    _Kind(accepts.mapping, _OBJECT, "data_efficiency", "data_sampling data_routing"),
    _Kind(accepts.mapping, _OBJECT, "checkpoint", "parallel_write"),
    _Kind(accepts.mapping_or_null, _OBJECT, "checkpoint", "writer"),
    _Kind(accepts.mapping_or_null, _OBJECT, "autotuning", "model_info"),
    _Kind(accepts.filled, "a path in quotes", "autotuning", "results_dir exps_dir"),
    _Kind(accepts.mapping_or_empty, _OBJECT, "", "expert_parallel"),
    _Kind(
        accepts.is_null,
        "absent: this release does not support it",
        "expert_parallel",
        "load_balance_coeff",
    ),
    _Kind(accepts.mapping, _OBJECT, "data_efficiency.data_sampling", "dynamic_batching"),
    _Kind(
        accepts.whole_number,
        "an integer",
        "data_efficiency.data_sampling.dynamic_batching",
        "min_batch_size max_batch_size",
    ),
    _Kind(accepts.mapping_or_switch, _OBJECT, "", "zero_optimization"),
    _Kind(accepts.mapping_or_null, _OBJECT, "", "bf16 aio"),
    _Kind(
        accepts.mapping,
        _OBJECT,
        "",
        """
        fp16 bfloat16 optimizer activation_checkpointing weight_quantization
        scheduler compile hybrid_engine comms_logger tensorboard csv_monitor wandb comet
        tensor_parallel data_types checkpoint data_efficiency pipeline torch_autocast
        flops_profiler autotuning
        """,
    ),
)


def refused_kinds(config: DsConfig, version: str | None, *, filled: bool) -> Iterator[Refused]:
    """Values that DeepSpeed's own models refuse.

    Args:
        config: the config.
        version: the DeepSpeed release; None = not known.
        filled: a trainer reads the config first, which fills in or rejects `"auto"`.
    """
    unread = "bf16" if bf16_section(config) == "bfloat16" else "bfloat16"
    for kind in _KINDS:
        if kind.section == unread:
            continue
        top = config.section(kind.section) if kind.section else config.parsed or {}
        for name in kind.names.split():
            head, _, inner = name.rpartition(".")
            section = top.get(head) if head else top
            if not isinstance(section, dict) or inner not in section:
                continue
            key, value = ".".join(filter(None, (kind.section, name))), section[inner]
            # a section with a model drops "auto", and a trainer fills it in or rejects it
            modeled = key in _MONITORS or key.rpartition(".")[0] in STRICT
            dropped = value == "auto" and (filled or modeled)
            given = not dropped and key not in config.swallowed and key != unread
            if given and has(key, version) and not kind.accepts(value):
                yield Refused(key, kind.expected)
