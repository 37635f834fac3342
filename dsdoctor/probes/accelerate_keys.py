"""Which keys of `deepspeed_config` in accelerate's YAML become options of `accelerate launch`.

And what its DeepSpeed plugin rejects when a script creates it: settings that stand both in this
YAML and in the DeepSpeed config that it refers to (`DeepSpeedPlugin` of accelerate 0.16 to 1.15,
utils/dataclasses.py: `__post_init__`, `_deepspeed_config_checks`, `set_mixed_precision`; read
2026-11-28).

If accelerate is installed, its own parser decides (`launch_parser`). Source:
`launch_command_parser` of accelerate 0.12, 0.18, 0.24, 0.34 and 1.15 (commands/launch.py), read
2026-11-23: the union of their options, since a file does not say for which release it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Options of `accelerate launch`.
OPTIONS = frozenset(
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
OTHERS = ("aws_", "dynamo_", "fp8_", "fsdp_", "megatron_lm_", "parallelism_config_", "tpu")
_ALIKE = 0.8
#: Keys of other sections, without their prefix (0.20, 0.27, 0.34, 1.6, 1.12 and 1.15).
_SECTIONS = {
    "fsdp": (
        "activation_checkpointing activation_checkpointing_offload auto_wrap_policy"
        " backward_prefetch backward_prefetch_policy cpu_ram_efficient_loading forward_prefetch"
        " ignored_modules min_num_params offload_params reshard_after_forward sharding_strategy"
        " state_dict_type sync_module_states transformer_layer_cls_to_wrap use_orig_params version"
    ),
    "dynamo": "backend mode use_dynamic use_fullgraph use_regional_compilation",
    "megatron_lm": (
        "attention_backend attention_dropout attention_softmax_in_fp32 calculate_per_token_loss"
        " context_parallel_size decoder_last_pipeline_num_layers eod_mask_loss"
        " expert_model_parallel_size expert_tensor_parallel_size gradient_clipping hidden_dropout"
        " no_load_optim no_save_optim num_micro_batches optimizer_cpu_offload"
        " overlap_cpu_optimizer_d2h_h2d pp_degree recompute_activations recompute_granularity"
        " recompute_method recompute_num_layers sequence_parallelism tp_degree use_custom_fsdp"
        " use_distributed_optimizer use_precision_aware_optimizer use_rotary_position_embeddings"
    ),
    "parallelism_config": (
        "cp_backend cp_comm_strategy cp_size dp_replicate_size dp_shard_size"
        " sp_attn_implementation sp_backend sp_seq_length sp_seq_length_is_variable sp_size tp_size"
    ),
}
#: Sections whose keys accelerate completes with the prefix.
_COMPLETED = frozenset({"fsdp", "dynamo"})


def unread(values: Mapping[str, Any]) -> dict[str, str]:
    """Keys of the sections of accelerate's YAML that no release reads, each with a similar one.

    Of `deepspeed_config` all such keys; of the others only those with a similar one, which are
    `section.key`.

    >>> unread({"fsdp_config": {"fsdp_offload_param": True, "min_num_params": 1, "own": 2}})
    {'fsdp_config.fsdp_offload_param': 'fsdp_offload_params'}
    """
    section = values.get("deepspeed_config")
    found = ignored({str(k): v for k, v in section.items()}) if isinstance(section, dict) else {}
    for prefix, names in _SECTIONS.items():
        home = prefix if prefix.endswith("_config") else f"{prefix}_config"
        section = values.get(home)
        known = [f"{prefix}_{name}" for name in names.split()]
        for key in section if isinstance(section, dict) else ():
            name = str(key)
            if prefix in _COMPLETED and not name.startswith(prefix):
                name = f"{prefix}_{name}"
            if name in known:
                continue
            near = _nearest(name, known)
            if near:
                found[f"{home}.{key}"] = near
    return found


def _nearest(name: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415  # only for a file with such a key

    return "".join(difflib.get_close_matches(name, known, 1, _ALIKE))


def ignored(section: Mapping[str, Any]) -> dict[str, str]:
    """Keys that no release reads, each with the option of a similar name ("" = none has).

    >>> ignored({"zero_stage": 2, "zero_stagee": 3, "zero_optimization": {}})
    {'zero_stagee': 'zero_stage', 'zero_optimization': ''}
    """
    others = [key for key in section if key not in OPTIONS and not key.startswith(OTHERS)]
    return {key: _nearest(key, sorted(OPTIONS)) for key in others}


#: Options that choose what starts the ranks, instead of `distributed_type` in the file.
_CHOSEN = frozenset({"multi_gpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "cpu"})


def too_few_ranks(values: Mapping[str, Any], options: Mapping[str, str]) -> tuple[int, int] | None:
    """`num_processes` and `num_machines` if no machine gets a rank; None if each does.

    accelerate 0.12 to 1.15 utils/launch.py divides the one by the other, without a remainder, where
    it starts torchrun: not for `NO` and `MULTI_CPU`.

    >>> too_few_ranks({"num_processes": 1, "num_machines": 2}, {})
    (1, 2)
    """
    simple = values.get("distributed_type") in ("NO", "MULTI_CPU")
    if "cpu" in options or (simple and not _CHOSEN & options.keys()):
        return None
    both = [options.get(name, values.get(name)) for name in ("num_processes", "num_machines")]
    if not all(re.fullmatch(r"[1-9]\d{0,5}", str(value)) for value in both):
        return None
    ranks, machines = (int(str(value)) for value in both)
    return (ranks, machines) if ranks < machines else None


def rejected_gpu_ids(values: Mapping[str, Any], options: Mapping[str, str]) -> str:
    """Why `accelerate launch` stops at the `gpu_ids` of its YAML; "" if it does not.

    `_validate_launch_command` of accelerate 1.15 (commands/launch.py) splits them at commas, so a
    list and a number raise `AttributeError`, and asks for two of `MULTI_GPU` (run 2026-11-28).

    >>> rejected_gpu_ids({"gpu_ids": [0, 1]}, {})
    '`gpu_ids` is a list; expected text, for example `"0,1"`'
    >>> rejected_gpu_ids({"gpu_ids": "0,1"}, {}), rejected_gpu_ids({"gpu_ids": 0}, {"gpu_ids": "0"})
    ('', '')
    """
    ids = options.get("gpu_ids", values.get("gpu_ids"))
    if ids is None:
        return ""
    if not isinstance(ids, str):
        kind = "list" if isinstance(ids, list) else "number" if type(ids) is int else "mapping"
        return f'`gpu_ids` is a {kind}; expected text, for example `"0,1"`'
    kind = str(values.get("distributed_type", "")).upper()
    machines = str(options.get("num_machines") or values.get("num_machines") or 1)
    if ids == "all" or "," in ids or _CHOSEN & options.keys() or machines != "1":
        return ""
    if not kind.startswith("MULTI_") or kind == "MULTI_CPU" or values.get("use_cpu") is True:
        return ""
    return f"`gpu_ids` lists one GPU (`{ids}`), but `distributed_type` is `{kind}`"


#: Settings that only one of the two files may have; `_deepspeed_config_checks`.
_ONCE = ("gradient_accumulation_steps", "gradient_clipping", "zero_stage",
         "offload_optimizer_device", "offload_param_device", "offload_param_nvme_path",
         "offload_optimizer_nvme_path", "zero3_save_16bit_model")  # fmt: skip
#: Options of `accelerate launch` that choose another plugin.
_OTHER_PLUGINS = frozenset({"cpu", "multi_gpu", "tpu", "use_fsdp", "use_megatron_lm"})
_OTHER_PRECISION = {"fp16": "bf16", "bf16": "fp16"}


def rejected_by_plugin(
    values: Mapping[str, Any],
    options: Mapping[str, str],
    config: Mapping[str, Any] | None,
    passed_by_script: str = "",
) -> str:
    """Why accelerate's DeepSpeed plugin rejects its settings; "" if it accepts them.

    Args:
        values: of accelerate's YAML.
        options: of `accelerate launch`, which take precedence, `-` as `_`.
        config: the DeepSpeed config in use; None if it is not known.
        passed_by_script: the DeepSpeed config that transformers' `--deepspeed` passes, whose
            `TrainingArguments` create the plugin of it; "" if none.

    >>> yaml = {"distributed_type": "DEEPSPEED", "mixed_precision": "no"}
    >>> yaml["deepspeed_config"] = {"deepspeed_config_file": "ds.json", "zero_stage": 3}
    >>> rejected_by_plugin(yaml, {}, None)
    '`zero_stage` and `mixed_precision` are set in addition to `deepspeed_config_file`'
    """
    section = values.get("deepspeed_config")
    section = section if isinstance(section, dict) else {}
    by_file = str(values.get("distributed_type", "")).upper() == "DEEPSPEED"
    used = "use_deepspeed" in options or (by_file and not _OTHER_PLUGINS & options.keys())
    file = options.get("deepspeed_config_file") or section.get("deepspeed_config_file")
    other = "`deepspeed_config_file`"
    if passed_by_script:
        file, other = passed_by_script, "the script's `--deepspeed`"
    if not used or not file or file == "none":
        return ""
    twice = [name for name in _ONCE if name in section]
    passed = options.get("mixed_precision")
    if not passed and values.get("mixed_precision") is not None:
        twice.append("mixed_precision")
    if twice:
        names = ", ".join(f"`{name}`" for name in twice[:-1])
        names += f"{' and ' if names else ''}`{twice[-1]}`"
        return f"{names} {'are' if len(twice) > 1 else 'is'} set in addition to {other}"
    if config is None:
        return ""
    if "zero_optimization" not in config:
        return f"`{file}` does not contain `zero_optimization`"
    other = "" if passed_by_script else _OTHER_PRECISION.get(passed or "", "")
    enabled = config.get(other)
    enabled = enabled.get("enabled") if isinstance(enabled, dict) else None
    if str(enabled).lower() == "true":
        return f"`--mixed_precision {passed}` is passed, but `{file}` enables {other}"
    return ""
