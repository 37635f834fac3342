"""Which values the typed sections of ZeRO accept.

Source: deepspeed 0.19.8 (read 2026-11-22 and 2026-11-28): runtime/zero/config.py,
runtime/zero/offload_config.py, runtime/zero/leaf_module_config.py, runtime/zenflow/zenflow_config.py;
conversions of pydantic 2 in its lax mode, https://docs.pydantic.dev/latest/concepts/conversion_table/.
DeepSpeed drops `"auto"` before it validates (runtime/config_utils.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dsdoctor.api import DsConfig

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


def _is_fraction(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 <= number <= 1


def _is_inner_fraction(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 < number < 1


def _section(value: Any) -> bool:
    return value is None or isinstance(value, dict)


_ACCEPTED: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (
        _boolean,
        "`true` or `false`",
        """
        contiguous_gradients reduce_scatter use_multi_rank_bucket_allreduce allgather_partitions
        load_from_fp32_weights elastic_checkpoint stage3_gather_16bit_weights_on_model_save
        stage3_use_all_reduce_for_fetch_params ignore_unused_parameters legacy_stage1
        round_robin_gradients zero_quantized_weights zero_quantized_nontrainable_weights
        zero_quantized_gradients memory_efficient_linear pipeline_loading_checkpoint
        override_module_apply log_trace_cache_warnings enable_sanity_checks offload_param.pin_memory offload_optimizer.pin_memory
        offload_optimizer.pipeline_read offload_optimizer.pipeline_write
        offload_optimizer.fast_init
        """,
    ),
    (_boolean_or_null, "`true` or `false`", "overlap_comm cpu_offload cpu_offload_param"),
    (
        _is_not_negative_integer,
        "an integer of 0 or more",
        """
        allgather_bucket_size sub_group_size stage3_prefetch_bucket_size
        stage3_param_persistence_threshold stage3_model_persistence_threshold
        stage3_max_live_parameters stage3_max_reuse_distance zero_hpz_partition_size
        offload_param.buffer_count offload_param.buffer_size offload_param.max_in_cpu
        offload_optimizer.buffer_count
        """,
    ),
    (_positive, "an integer above 0", "reduce_bucket_size"),
    (
        _is_fraction,
        "a number from 0 to 1",
        "offload_optimizer.ratio zenflow.auto_ratio zenflow.pt_reserved_cores_perc",
    ),
    (_is_inner_fraction, "a number above 0 and below 1", "zenflow.topk_ratio"),
    (_section, "an object in braces", "offload_param offload_optimizer leaf_module zenflow"),
)


def refused_in_zero(config: DsConfig) -> Iterator[Refused]:
    """Values of `zero_optimization` that DeepSpeed's own validation refuses."""
    zero = config.section("zero_optimization")
    for accepts, expected, names in _ACCEPTED:
        for name in names.split():
            head, _, inner = name.rpartition(".")
            section = zero.get(head) if head else zero
            if not isinstance(section, dict) or inner not in section:
                continue
            key, value = f"zero_optimization.{name}", section[inner]
            if value != "auto" and key not in config.swallowed and not accepts(value):
                yield Refused(key, expected)
