"""Which release of DeepSpeed brought a setting.

Source: the models in the sources of all 73 releases from 0.9.0 to 0.19.8, read by a program on
2026-11-28, and what they read at top level (2026-11-29). A key that is not here is as old as its
section, or as 0.9.0.
"""

from __future__ import annotations

from dsdoctor_checks._util import at_least

from ._tables import STRICT

#: Release from which a section has a model; earlier ones read some of its keys, or none, and reject
#: none. Sections that are not here have had one since 0.9.0.
SECTION_SINCE = {
    "fp16": "0.17.1",
    "bf16": "0.17.1",
    "bfloat16": "0.17.1",
    "comet": "0.14.3",
    "tensor_parallel": "0.16.4",
    "zero_optimization.zenflow": "0.17.5",
    "zero_optimization.leaf_module": "0.18.0",
    "compile": "0.16.6",
    "tensor_parallel.tp": "0.16.4",
    "tensor_parallel.tensor_parallel": "0.16.4",
    "timers.throughput": "0.14.3",
    "weight_quantization": "0.10.3",
}
#: The first release with such models. Earlier ones read what they know from each section and reject
#: nothing, and have keys that are not in the tables (0.3.13: `cpu_offload_params`). Read 2026-11-29
#: in the sources of 0.3.13, 0.6.7 and 0.7.0.
FIRST_MODELS = "0.7.0"
#: The model that `compile` had from 0.13.2 to 0.14.3; none from 0.14.4 to 0.16.5.
COMPILE_BEFORE = ("0.13.2", "0.14.4", frozenset({"enabled", "backend", "kwargs"}))
#: Release that added a key; one without a dot is read at top level.
SINCE = {
    key: release
    for release, keys in {
        "0.10.0": """
            zero_optimization.zero_hpz_partition_size
            zero_optimization.zero_quantized_gradients
            zero_optimization.zero_quantized_weights
        """,
        "0.10.1": """
            zero_optimization.override_module_apply
            zero_optimization.pipeline_loading_checkpoint
        """,
        "0.10.2": """
            zero_optimization.zero_quantized_nontrainable_weights
        """,
        "0.10.3": """
            weight_quantization
        """,
        "0.12.3": """
            zero_optimization.offload_optimizer.ratio
        """,
        "0.12.4": """
            use_data_before_expert_parallelism
            zero_optimization.use_multi_rank_bucket_allreduce
        """,
        "0.13.2": """
            compile
        """,
        "0.14.3": """
            comet timers
            zero_optimization.stage3_use_all_reduce_for_fetch_params
            zero_optimization.use_all_reduce_for_fetch_params
        """,
        "0.15.0": """
            data_parallel_size sequence_parallel_size
        """,
        "0.16.0": """
            zero_optimization.module_granularity_threshold
            zero_optimization.stage3_module_granularity_threshold
        """,
        "0.16.4": """
            tensor_parallel
            zero_optimization.log_trace_cache_warnings
        """,
        "0.16.5": """
            seq_parallel_communication_data_type
        """,
        "0.16.6": """
            tensor_parallel.tp_overlap_comm
        """,
        "0.17.1": """
            checkpoint.writer.type checkpoint.writer.data_parallel
        """,
        "0.17.2": """
            torch_autocast
            compile.keep_all_input_tensors compile.keep_int_input_tensors
        """,
        "0.17.5": """
            zero_optimization.zenflow
        """,
        "0.17.6": """
            zero_optimization.enable_sanity_checks
            zero_optimization.zenflow.pt_reserved_cores_perc
        """,
        "0.18.0": """
            zero_optimization.leaf_module
            zero_optimization.offload_optimizer.cpuadam_cores_perc
            zero_optimization.offload_optimizer.super_offload
            compile.free_activation_threshold
        """,
        "0.18.1": """
            datastates_ckpt
        """,
        "0.18.3": """
            bfloat16.bf16_master_weights_and_grads bfloat16.bf16_optimizer_states
            bf16.bf16_master_weights_and_grads bf16.bf16_optimizer_states
        """,
        "0.18.5": """
            zero_optimization.allgather_sequential
            zero_optimization.stage3_allgather_sequential
        """,
        "0.18.6": """
            tensor_parallel.partition_config tensor_parallel.preset_model
        """,
        "0.18.9": """
            zero_optimization.save_muon_momentum_buffer_in_memory compile.passes
        """,
        "0.19.2": """
            expert_parallel data_types.param_dtype
        """,
        "0.19.3": """
            log_level
        """,
        "0.19.4": """
            managed_gradient_accumulation
        """,
        "0.19.6": """
            gradient_allreduce_op
            compile.offload_activation_pin_memory hybrid_engine.enable_cuda_graph
        """,
        "0.19.7": """
            zero_optimization.compute_grad_norm zero_optimization.parameter_alignment
        """,
        "0.19.8": """
            data_types.keep_in_fp32_modules disable_python_gc
            compile.autoep_non_moe tensor_parallel.vocab_parallel_ce_backend
            tensor_parallel.vocab_parallel_lm_head
        """,
    }.items()
    for key in keys.split()
}


def keys_of(section: str, version: str | None) -> frozenset[str] | None:
    """The keys that a section accepts in a release; None if the release rejects none.

    Args:
        section: a section of `STRICT`.
        version: the release; None = that of the tables.

    >>> sorted(keys_of("compile", "0.14.0")), keys_of("compile", "0.15.0")
    (['backend', 'enabled', 'kwargs'], None)
    >>> "zenflow" in keys_of("zero_optimization", "0.17.0")
    False
    """
    if version is None:
        return STRICT[section]
    first, gone, keys = COMPILE_BEFORE
    if section == "compile" and at_least(version, first) and not at_least(version, gone):
        return keys
    if section in SECTION_SINCE and not at_least(version, SECTION_SINCE[section]):
        return None
    return frozenset(
        key
        for key in STRICT[section]
        if f"{section}.{key}" not in SINCE or at_least(version, SINCE[f"{section}.{key}"])
    )


def has(key: str, version: str | None) -> bool:
    """Whether a release reads a setting, given by its dotted key.

    >>> has("zero_optimization.zenflow", "0.17.0"), has("fp16.hysteresis", "0.17.0")
    (False, False)
    >>> has("torch_autocast.dtype", "0.17.0"), has("timers", "0.17.0")
    (False, True)
    """
    section, _, name = key.rpartition(".")
    if section not in STRICT:
        parts = key.split(".")
        names = (".".join(parts[: place + 1]) for place in range(len(parts)))
        return version is None or all(at_least(version, SINCE.get(one, "0")) for one in names)
    keys = keys_of(section, version)
    return keys is not None and name in keys and (has(section, version) if "." in section else True)
