"""Booleans that DeepSpeed takes as they stand, so that any string in quotes counts as true.

Source: `get_scalar_param` and `dict.get` in runtime/config.py, runtime/config_utils.py,
runtime/data_pipeline/config.py, runtime/activation_checkpointing/config.py,
runtime/swap_tensor/aio_config.py, runtime/model_checkpointing/config.py, profiling/config.py,
nebula/config.py, elasticity/config.py, compression/config.py, module_inject/auto_ep_config.py:
0.8.0, 0.11.2, 0.13.5, 0.14.5, 0.16.9, 0.17.6, 0.18.3, 0.19.7 and 0.19.8, read by a program on
2026-11-29. In 0.14.5, 0.16.9, 0.17.6, 0.18.3 and 0.19.8, `"false"` stayed in the config object, or
DeepSpeed stopped because the feature was on.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor_checks._util import at_least

from ._releases import SECTION_SINCE, has
from ._tables import REMOVED, REMOVED_SINCE

_ALWAYS = """
    prescale_gradients zero_allow_untested_optimizer zero_force_ds_cpu_optimizer dump_state
    memory_breakdown dataloader_drop_last disable_allgather disable_python_gc sparse_gradients
    graph_harvesting use_data_before_expert_parallelism optimizer.legacy_fusion
    flops_profiler.detailed torch_autocast.enabled expert_parallel.enabled
    amp.enabled progressive_layer_drop.enabled
    curriculum_learning.enabled elasticity.enabled nebula.enabled nebula.enable_nebula_load
    data_efficiency.enabled data_efficiency.data_sampling.enabled
    data_efficiency.data_sampling.curriculum_learning.enabled
    data_efficiency.data_sampling.dynamic_batching.enabled
    data_efficiency.data_sampling.pin_memory data_efficiency.data_routing.enabled
    data_efficiency.data_routing.random_ltd.enabled
    checkpoint.load_universal checkpoint.use_node_local_storage
    checkpoint.checkpoint_serialization
    checkpoint.writer.io_buffer_double checkpoint.writer.show_statistics
    checkpoint.writer.decoupled pipeline.pipe_partitioned pipeline.grad_partitioned
    activation_checkpointing.partition_activations activation_checkpointing.profile
    activation_checkpointing.contiguous_memory_optimization
    activation_checkpointing.synchronize_checkpoint_boundary
    activation_checkpointing.cpu_checkpointing
    aio.single_submit aio.overlap_events aio.use_gds
    compression_training.layer_reduction.enabled
    compression_training.weight_quantization.shared_parameters.enabled
    compression_training.activation_quantization.shared_parameters.enabled
    compression_training.sparse_pruning.shared_parameters.enabled
    compression_training.row_pruning.shared_parameters.enabled
    compression_training.head_pruning.shared_parameters.enabled
    compression_training.channel_pruning.shared_parameters.enabled
"""
#: Those of sections that have had a model since a release, which reads the word.
_BEFORE_MODELS = """
    fp16.enabled bf16.enabled bfloat16.enabled
"""
#: Releases from which some of them are read, or were first seen to be.
_SINCE = {
    "aio.use_gds": "0.16.9",
    "checkpoint.checkpoint_serialization": "0.17.6",
    "checkpoint.writer.decoupled": "0.17.6",
    "checkpoint.writer.io_buffer_double": "0.17.6",
    "checkpoint.writer.show_statistics": "0.17.6",
    "data_efficiency.data_sampling.dynamic_batching.enabled": "0.16.9",
    "data_efficiency.data_sampling.pin_memory": "0.16.9",
    "graph_harvesting": "0.13.5",
    "use_data_before_expert_parallelism": "0.13.5",
    "zero_force_ds_cpu_optimizer": "0.11.2",
}


def unchecked_booleans(version: str | None) -> Iterator[str]:
    """Dotted keys of booleans that a release does not validate.

    Args:
        version: the release; None = that of the tables.

    >>> "fp16.enabled" in {*unchecked_booleans("0.16.9")}, "fp16.enabled" in {*unchecked_booleans(None)}
    (True, False)
    """
    gone = version is None or at_least(version, REMOVED_SINCE)
    for key in _ALWAYS.split():
        known = version is None or at_least(version, _SINCE.get(key, "0"))
        # a removed section is an error of its own
        if known and has(key, version) and not (gone and key.partition(".")[0] in REMOVED):
            yield key
    for key in _BEFORE_MODELS.split():
        if version is not None and not at_least(version, SECTION_SINCE[key.partition(".")[0]]):
            yield key
