"""Which keys of `deepspeed_config` in accelerate's YAML become options of `accelerate launch`.

If accelerate is installed, its own parser decides (`launch_parser`). Source:
`launch_command_parser` of accelerate 0.12, 0.18, 0.24, 0.34 and 1.15 (commands/launch.py), read
2026-11-23: the union of their options, since a file does not say for which release it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPTIONS = frozenset(
    {"config_file", "cpu", "debug", "deepspeed_config_file", "deepspeed_exclusion_filter",
     "deepspeed_hostfile", "deepspeed_inclusion_filter", "deepspeed_moe_layer_cls_names",
     "deepspeed_multinode_launcher", "downcast_bf16", "enable_cpu_affinity", "env", "fp16",
     "gpu_ids", "gradient_accumulation_steps", "gradient_clipping", "ipex", "log_dir",
     "machine_rank", "main_process_ip", "main_process_port", "main_training_function",
     "master_addr", "master_port", "max_restarts", "min_num_params", "mixed_precision",
     "module", "monitor_interval", "mpirun_ccl", "mpirun_hostfile", "mps", "multi_gpu",
     "nnodes", "no_local_rank", "no_python", "no_tpu_cluster", "node_rank", "nproc_per_node",
     "num_cpu_threads_per_process", "num_gpus", "num_machines", "num_processes",
     "offload_optimizer_device", "offload_optimizer_nvme_path", "offload_param_device",
     "offload_param_nvme_path", "offload_params", "quiet", "rdzv_backend", "rdzv_conf", "role",
     "same_network", "sharding_strategy", "tee", "training_script", "training_script_args",
     "transformer_layer_cls_to_wrap", "use_deepspeed", "use_fsdp", "use_megatron_lm",
     "use_mps_device", "use_parallelism_config", "use_xpu", "vm", "zero3_init_flag",
     "zero3_save_16bit_model", "zero_stage"}
)  # fmt: skip
#: Options of other plugins, of which each release adds some.
_OTHERS = ("aws_", "dynamo_", "fp8_", "fsdp_", "megatron_lm_", "parallelism_config_", "tpu")
_ALIKE = 0.8


def ignored(section: Mapping[str, Any]) -> dict[str, str]:
    """Keys that no release reads, each with the option of a similar name ("" = none has).

    >>> ignored({"zero_stage": 2, "zero_stagee": 3, "zero_optimization": {}})
    {'zero_stagee': 'zero_stage', 'zero_optimization': ''}
    """
    import difflib  # noqa: PLC0415  # only for a file with such a key

    unread = [key for key in section if key not in _OPTIONS and not key.startswith(_OTHERS)]
    options = sorted(_OPTIONS)
    return {key: "".join(difflib.get_close_matches(key, options, 1, _ALIKE)) for key in unread}
