"""Which values the typed sections of the config accept.

Source: deepspeed 0.19.8 (read 2026-11-22 and 2026-11-28): the models in runtime/zero/,
runtime/precision_config.py, runtime/config.py, runtime/zenflow/, runtime/tensor_parallel/config.py,
monitor/config.py, compile/config.py and comm/config.py;
conversions of pydantic 2 in its lax mode, https://docs.pydantic.dev/latest/concepts/conversion_table/.
DeepSpeed drops `"auto"` before it validates (runtime/config_utils.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dsdoctor.api import DsConfig

from ._releases import has

_BOOLEAN_WORDS = frozenset("0 off f false n no 1 on t true y yes".split())  # noqa: SIM905  # reads as a list
_WHOLE = re.compile(r"\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*")

#: pydantic converts floats to integers of 64 bits only.
_LARGEST_FLOAT = 2.0**63


class Refused(NamedTuple):
    """A value that a section does not accept.

    Attributes:
        key: its dotted key.
        expected: what the section accepts, for a sentence.
    """

    key: str
    expected: str


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() in _BOOLEAN_WORDS
    return isinstance(value, (bool, int, float)) and value in (0, 1)


def _boolean_or_null(value: Any) -> bool:
    return value is None or _boolean(value)


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, (dict, list)) else float(value)
    except ValueError:
        return None


def _is_integer(value: Any) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value) is not None
    if isinstance(value, float):
        return value.is_integer() and abs(value) < _LARGEST_FLOAT
    return isinstance(value, int)


def _is_not_negative_integer(value: Any) -> bool:
    return _is_integer(value) and (_number(value) or 0) >= 0


def _positive(value: Any) -> bool:
    return _is_integer(value) and (_number(value) or 0) > 0


def _interval(value: Any) -> bool:
    """A number, which is no string here; `"auto"` was dropped."""
    return _is_integer(value) and not isinstance(value, str)


def _is_fraction(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 <= number <= 1


def _is_inner_fraction(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 < number < 1


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _object_or_null(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _texts(value: Any) -> bool:
    """A string, or a list of them."""
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    )


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _list_or_null(value: Any) -> bool:
    return value is None or isinstance(value, list)


def _finite(value: Any) -> bool:
    number = _number(value)
    return number is not None and abs(number) < float("inf")


def _switch(value: Any) -> bool:
    """A boolean that DeepSpeed combines with another by `|`."""
    return isinstance(value, int)


def _divides(value: Any) -> bool:
    """What a number can be divided by, without quotes."""
    return isinstance(value, (int, float)) and value > 0


def _object_or_switch(value: Any) -> bool:
    """Of the first releases, in which ZeRO was on or off."""
    return isinstance(value, (dict, bool))


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
_KINDS = (
    _Kind(
        _boolean,
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
        _boolean_or_null,
        _BOOLEAN,
        "zero_optimization",
        "overlap_comm cpu_offload cpu_offload_param cpu_offload_use_pin_memory",
    ),
    _Kind(
        _is_not_negative_integer,
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
    _Kind(_positive, "an integer above 0", "zero_optimization", "reduce_bucket_size"),
    _Kind(
        _is_integer,
        "an integer",
        "zero_optimization",
        """
        stage3_module_granularity_threshold module_granularity_threshold
        zenflow.full_warm_up_rounds
        """,
    ),
    _Kind(_interval, 'an integer or "auto"', "zero_optimization", "zenflow.select_interval"),
    _Kind(
        lambda value: _interval(value) and _positive(value),
        'an integer above 0 or "auto"',
        "zero_optimization",
        "zenflow.update_interval",
    ),
    _Kind(
        _is_fraction,
        "a number from 0 to 1",
        "zero_optimization",
        """
        offload_optimizer.ratio offload_optimizer.cpuadam_cores_perc zenflow.auto_ratio
        zenflow.pt_reserved_cores_perc
        """,
    ),
    _Kind(
        _is_inner_fraction,
        "a number above 0 and below 1",
        "zero_optimization",
        "zenflow.topk_ratio",
    ),
    _Kind(
        _text_or_null,
        "a path in quotes",
        "zero_optimization",
        "offload_param.nvme_path offload_optimizer.nvme_path",
    ),
    _Kind(
        _texts,
        "a list of strings",
        "zero_optimization",
        "leaf_module.classes leaf_module.names leaf_module.name_suffixes",
    ),
    _Kind(
        _object_or_null,
        _OBJECT,
        "zero_optimization",
        "offload_param offload_optimizer leaf_module zenflow",
    ),
    _Kind(
        _boolean,
        _BOOLEAN,
        "fp16",
        "enabled auto_cast consecutive_hysteresis fp16_master_weights_and_grads",
    ),
    _Kind(
        _is_integer,
        "an integer",
        "fp16",
        "initial_scale_power loss_scale_window hysteresis min_loss_scale",
    ),
    _Kind(_finite, "a number of 0 or more", "fp16", "loss_scale"),
    _Kind(
        _boolean,
        _BOOLEAN,
        "bf16",
        """
        enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads
        bf16_optimizer_states
        """,
    ),
    _Kind(
        _boolean,
        _BOOLEAN,
        "compile",
        """
        deepcompile autoep_non_moe free_activation offload_activation
        offload_activation_pin_memory offload_opt_states double_buffer symmetric_memory debug_log
        offload_parameters sync_before_reduce sync_after_reduce sync_before_allgather
        sync_after_allgather keep_int_input_tensors keep_all_input_tensors
        """,
    ),
    _Kind(_is_integer, "an integer", "compile", "free_activation_threshold"),
    _Kind(_list_or_null, "a list in brackets", "compile", "passes"),
    _Kind(
        _boolean,
        _BOOLEAN,
        "hybrid_engine",
        "enabled release_inference_cache pin_parameters enable_cuda_graph",
    ),
    _Kind(_positive, "an integer above 0", "hybrid_engine", "max_out_tokens"),
    _Kind(_is_integer, "an integer", "hybrid_engine", "inference_tp_size tp_gather_partition_size"),
    _Kind(_boolean, _BOOLEAN, "comms_logger", "enabled prof_all verbose debug"),
    _Kind(_list, "a list in brackets", "comms_logger", "prof_ops"),
    _Kind(_boolean, _BOOLEAN, "tensorboard", "enabled"),
    _Kind(_text, "a string", "tensorboard", "output_path job_name"),
    _Kind(_boolean, _BOOLEAN, "csv_monitor", "enabled"),
    _Kind(_text, "a string", "csv_monitor", "output_path job_name"),
    _Kind(_boolean, _BOOLEAN, "wandb", "enabled"),
    _Kind(_text, "a string", "wandb", "project"),
    _Kind(_text_or_null, "a string", "wandb", "group team"),
    _Kind(_boolean, _BOOLEAN, "comet", "enabled"),
    _Kind(_boolean_or_null, _BOOLEAN, "comet", "online"),
    _Kind(_is_integer, "an integer", "comet", "samples_log_interval"),
    _Kind(
        _text_or_null,
        "a string",
        "comet",
        "project workspace api_key experiment_name experiment_key mode",
    ),
    _Kind(
        _boolean,
        _BOOLEAN,
        "tensor_parallel",
        "tp_overlap_comm keep_module_on_host replace_with_kernel_inject kernel_inject",
    ),
    _Kind(_boolean_or_null, _BOOLEAN, "tensor_parallel", "vocab_parallel_lm_head"),
    _Kind(_is_integer, "an integer", "tensor_parallel", "autotp_size"),
    _Kind(_text_or_null, "a string", "tensor_parallel", "preset_model"),
    _Kind(_object_or_null, _OBJECT, "tensor_parallel", "partition_config"),
    _Kind(_object, _OBJECT, "tensor_parallel", "tensor_parallel tp"),
    _Kind(_switch, f"{_BOOLEAN} without quotes", "flops_profiler", "enabled"),
    _Kind(_switch, f"{_BOOLEAN} without quotes", "", "wall_clock_breakdown"),
    _Kind(_divides, "an integer above 0", "", "sequence_parallel_size"),
    _Kind(_object_or_null, _OBJECT, "optimizer", "params"),
    _Kind(_text_or_null, "a string", "optimizer", "type"),
    _Kind(_object, _OBJECT, "data_efficiency", "data_sampling data_routing"),
    _Kind(_object, _OBJECT, "checkpoint", "parallel_write"),
    _Kind(_object_or_switch, _OBJECT, "", "zero_optimization"),
    _Kind(
        _object,
        _OBJECT,
        "",
        """
        scheduler compile hybrid_engine comms_logger tensorboard csv_monitor wandb comet
        tensor_parallel data_types checkpoint data_efficiency pipeline torch_autocast
        flops_profiler autotuning
        """,
    ),
)


def refused_kinds(config: DsConfig, version: str | None) -> Iterator[Refused]:
    """Values that DeepSpeed's own models refuse.

    Args:
        config: the config.
        version: the DeepSpeed release; None = not known.
    """
    for kind in _KINDS:
        top = config.section(kind.section) if kind.section else config.parsed or {}
        for name in kind.names.split():
            head, _, inner = name.rpartition(".")
            section = top.get(head) if head else top
            if not isinstance(section, dict) or inner not in section:
                continue
            key, value = ".".join(filter(None, (kind.section, name))), section[inner]
            given = value != "auto" and key not in config.swallowed
            if given and has(key, version) and not kind.accepts(value):
                yield Refused(key, kind.expected)
