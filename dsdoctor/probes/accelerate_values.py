"""Values in accelerate's YAML at which `accelerate launch` stops, or DeepSpeed in each rank.

Source: accelerate 1.15 (read and run 2026-11-28): commands/config/config_args.py (`from_yaml_file`,
`ClusterConfig`, `SageMakerConfig`), utils/dataclasses.py (`DistributedType`, `PrecisionType`,
`DeepSpeedPlugin`), commands/launch.py, utils/launch.py; seven releases from 0.24 to 1.15 run over
random files (2026-11-29).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dsdoctor.model.facts.launch import LaunchParse
from dsdoctor.model.redact import mask
from dsdoctor.probes.accelerate_fp8 import rejected_fp8
from dsdoctor.probes.accelerate_keys import OPTIONS, rejected_gpu_ids
from dsdoctor.probes.accelerate_releases import NEWEST, minor, true_since, without
from dsdoctor.probes.accelerate_sections import Rejection, rejected_nodes, rejected_sections
from dsdoctor.probes.launcher_options import either

#: The keys of both kinds of configuration, and those of earlier releases.
_KEYS = frozenset(
    {"command_file", "commands", "compute_environment", "debug", "deepspeed_config",
     "distributed_type", "downcast_bf16", "dynamo_config", "enable_cpu_affinity", "fp8_config",
     "fsdp_config", "gpu_ids", "machine_rank", "main_process_ip", "main_process_port",
     "main_training_function", "megatron_lm_config", "mixed_precision", "mpirun_config",
     "num_machines", "num_processes", "parallelism_config", "rdzv_backend", "same_network",
     "tpu_env", "tpu_name", "tpu_use_cluster", "tpu_use_sudo", "tpu_vm", "tpu_zone", "use_cpu",
     "additional_args", "base_job_name", "ec2_instance_type", "iam_role_name", "image_uri",
     "profile", "py_version", "pytorch_version", "region", "sagemaker_inputs_file",
     "sagemaker_metrics_file", "transformers_version", "dynamo_backend", "fp16", "ipex_config",
     "tp_config", "tpu_metadata"}
)  # fmt: skip
#: Keys that hardly another program has.
_OWN = frozenset({"downcast_bf16", "main_training_function", "rdzv_backend", "tpu_use_sudo"})
_ALIKE = 0.8
_ENVIRONMENTS = ("LOCAL_MACHINE", "AMAZON_SAGEMAKER")
#: Those of 1.15, and TP, TPU and MPS of earlier releases.
_TYPES = (
    "NO", "MULTI_CPU", "MULTI_GPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA",
    "MULTI_XPU", "DEEPSPEED", "FSDP", "XLA", "MEGATRON_LM", "MULTI_HPU", "MULTI_NEURON", "TPU",
    "TP", "MPS",
)  # fmt: skip
_PRECISIONS = ("no", "fp8", "fp16", "bf16")
#: `DynamoBackend` of accelerate 0.12 to 1.15.
_BACKENDS = (
    "NO", "EAGER", "AOT_EAGER", "INDUCTOR", "AOT_TS_NVFUSER", "NVPRIMS_NVFUSER", "CUDAGRAPHS",
    "OFI", "FX2TRT", "ONNXRT", "TENSORRT", "IPEX", "TVM", "AOT_TORCHXLA_TRACE_ONCE",
    "TORCHXLA_TRACE_ONCE", "HPU_BACKEND", "NEURON", "AOT_CUDAGRAPHS", "AOT_NVFUSER", "NVFUSER",
)  # fmt: skip
_DEVICES = ("none", "cpu", "nvme")
_STAGES = ("0", "1", "2", "3")
_GPU_IDS = (
    'write them as quoted text (`gpu_ids: "0,1"`; two or more for `MULTI_GPU`), or `gpu_ids: all`'
)


def rejected_value(
    values: Mapping[str, Any],
    options: Mapping[str, str],
    *,
    launched: bool = False,
    release: str | None = None,
) -> Rejection | None:
    """The first value that stops a run; None without one.

    Args:
        values: of accelerate's YAML.
        options: of `accelerate launch`, which take precedence, `-` as `_`.
        launched: the options are all that the command passes; else they are not known.
        release: of accelerate; None = not known.

    >>> rejected_value({"distributed_type": "DEEPSPEED", "mixed_precision": "fp18"}, {}).said
    '`mixed_precision` is `fp18`; expected `no`, `fp8`, `fp16` or `bf16`'
    >>> rejected_value({"distributed_type": "DEEPSPEED", "mixed_precison": "bf16"}, {}).said
    '`mixed_precison` is not a key of it; the closest is `mixed_precision`'
    """
    if not values:
        return None
    return next(_rejections(values, options, launched=launched, release=release), None)


def is_accelerate(values: Mapping[str, Any]) -> bool:
    """Whether YAML is the configuration of accelerate.

    >>> is_accelerate({"distributed_type": "FSDP", "num_machines": 1})
    True
    """
    known = {"compute_environment", "distributed_type"} & values.keys()
    own = _KEYS & values.keys()
    return len(own) > 1 and bool(known or len(_OWN & own) > 1)


def verdict(rejection: Rejection | None) -> LaunchParse:
    """The same as what the launcher's own parser would have said."""
    if rejection is None:
        return LaunchParse(launcher="accelerate", accepted=True)
    return LaunchParse(
        launcher="accelerate",
        accepted=False,
        error=mask(rejection.said),
        advice=mask(rejection.advice),
        in_file=True,
        in_ranks=rejection.in_ranks,
    )


def _rejections(
    values: Mapping[str, Any], options: Mapping[str, str], *, launched: bool, release: str | None
) -> Iterator[Rejection]:
    if (minor(release) or NEWEST) <= NEWEST:  # a later one may have further keys
        yield from _unknown_keys(values)
    if of_other := without(values, options, release):
        yield Rejection(*of_other)
    yield from _missing(values, options, launched=launched)
    if (other := _unexpected(values, "compute_environment", _ENVIRONMENTS)) is not None:
        yield other
    elif values.get("compute_environment", "") is None:  # taken for SageMaker's
        said = "`compute_environment` is null; expected `LOCAL_MACHINE`"
        yield Rejection(said, "set it to `LOCAL_MACHINE`")
    kind = values.get("distributed_type")
    if isinstance(kind, str) and kind not in _TYPES:
        near = _nearest(kind.upper(), _TYPES)
        said = f"`distributed_type` is `{kind}`, which accelerate does not have"
        advice = (
            f"set it to `{near}`" if near else "set it to `DEEPSPEED`, `MULTI_GPU`, `FSDP` or `NO`"
        )
        yield Rejection(f"{said}; the closest is `{near}`" if near else said, advice)
    if "mixed_precision" not in options:
        # earlier releases made it the word (commands/config/config_args.py)
        known = true_since((0, 34), release)
        if values.get("mixed_precision") is False and known is not None:
            said = "`mixed_precision` is false, as YAML reads an unquoted `no`"
            yield Rejection(said + known, "write `mixed_precision: 'no'`")
        precision = _unexpected(values, "mixed_precision", _PRECISIONS)
        if precision is not None:
            yield precision
    yield from _dynamo(values, options)
    machines = options.get("num_machines") or values.get("num_machines") or 1
    several = str(machines) != "1"  # else nothing reads `machine_rank`
    for key in ("num_processes", "num_machines", *("machine_rank",) * several):
        value = values.get(key)
        odd = isinstance(value, str) and not re.fullmatch(r"\s*\d+\s*", value)
        odd = odd or (key == "num_machines" and isinstance(value, (dict, list)))
        if key not in options and odd:
            yield Rejection(f"`{key}` is `{value}`; expected a number", f"set `{key}` to a number")
    if gpu_ids := rejected_gpu_ids(values, options):
        yield Rejection(gpu_ids, _GPU_IDS)
    yield from _of_the_plugin(values, options)
    yield from _of_fsdp(values, options)
    yield from rejected_nodes(values, options, release)
    yield from rejected_sections(values, options, release)
    yield from rejected_fp8(values, options)


def _unknown_keys(values: Mapping[str, Any]) -> Iterator[Rejection]:
    """Accelerate stops at any key that its release does not know."""
    for key in values:
        if key in _KEYS:
            continue
        near = _nearest(str(key), sorted(_KEYS))
        if near and near not in values:
            said = f"`{key}` is not a key of it; the closest is `{near}`"
            yield Rejection(said, f"rename it to `{near}`")
            continue
        home = "fsdp_config" if str(key).startswith("fsdp_") else "deepspeed_config"
        advice = f"move it into `{home}`" if _is_option(str(key)) else f"remove `{key}`"
        yield Rejection(f"`{key}` is not a key of it", advice)


def _is_option(key: str) -> bool:
    return key in OPTIONS or key.startswith("fsdp_")


def _missing(
    values: Mapping[str, Any], options: Mapping[str, str], *, launched: bool
) -> Iterator[Rejection]:
    """Keys that accelerate needs."""
    if "distributed_type" not in values:
        yield Rejection("`distributed_type` is missing", "add it, for example `DEEPSPEED`")
        return
    several = launched and values["distributed_type"] != "NO"
    given = values.get("num_processes") is not None
    given = given or bool({"num_processes", "nproc_per_node"} & options.keys())
    if several and not given:
        said = "`num_processes` is missing, and the command does not pass `--num_processes`"
        yield Rejection(said, "pass the number of ranks on all nodes")


def _dynamo(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    """The backend of `torch.compile`, which the launcher checks and DeepSpeed's ranks never get."""
    if values.get("distributed_type") == "DEEPSPEED" or "use_deepspeed" in options:
        return
    section = values.get("dynamo_config")
    section = section if isinstance(section, dict) else {}
    if "dynamo_backend" in values:  # an earlier key, which replaces the section
        section = {}
    for held, key in (
        (section, "dynamo_backend"),
        (section, "backend"),
        (values, "dynamo_backend"),
    ):
        backend = held.get(key)
        if "dynamo_backend" in options or backend is None or str(backend).upper() in _BACKENDS:
            continue
        near = _nearest(str(backend).upper(), _BACKENDS)
        said = f"`{key}` is `{backend}`, which accelerate does not have"
        if backend is False:
            said = f"`{key}` is false, as YAML reads an unquoted `no`"
            yield Rejection(said, f"write `{key}: 'NO'`")
        elif near:
            yield Rejection(f"{said}; the closest is `{near}`", f"set it to `{near}`")
        else:
            yield Rejection(said, "set it to `INDUCTOR`, or remove it")


def _of_fsdp(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    """Two settings of FSDP that depend on each other; loading is on unless it is switched off."""
    section = values.get("fsdp_config")
    loading, synced = "fsdp_cpu_ram_efficient_loading", "fsdp_sync_module_states"
    if values.get("distributed_type") != "FSDP" or not isinstance(section, dict):
        return
    if section.get(synced) is False and section.get(loading, True) and synced not in options:
        said = f"`{synced}` is false, but `{loading}` needs it"
        yield Rejection(said, f"set `{synced}` to true, or `{loading}` to false")


def _of_the_plugin(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    """What accelerate writes into the DeepSpeed config as it stands."""
    section = values.get("deepspeed_config")
    kind = str(values.get("distributed_type", "")).upper()
    if kind != "DEEPSPEED" or section is None:
        return
    if not isinstance(section, dict):
        said = f"`deepspeed_config` is `{section}`; expected a mapping"
        yield Rejection(said, "write its settings below it, indented")
        return
    if section.get("deepspeed_config_file") or "deepspeed_config_file" in options:
        return
    for key, known in (
        ("zero_stage", _STAGES),
        ("offload_optimizer_device", _DEVICES),
        ("offload_param_device", _DEVICES),
    ):
        if key not in options and (other := _unexpected(section, key, known)) is not None:
            yield other._replace(in_ranks=True)


def _unexpected(values: Mapping[str, Any], key: str, expected: tuple[str, ...]) -> Rejection | None:
    value = values.get(key)
    # YAML reads an unquoted `no` as false
    text = "no" if value is False else str(value)
    if value is None or text.lower() in map(str.lower, expected):
        return None
    words = either(expected)
    return Rejection(f"`{key}` is `{value}`; expected {words}", f"set `{key}` to {words}")


def _nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    import difflib  # noqa: PLC0415  # only for a file with such a word

    return "".join(difflib.get_close_matches(word, known, 1, _ALIKE))
