"""How `ds-config-unsupported-combination` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "ds-config-unsupported-combination"
TITLE = "the config asks for settings that exclude each other"
HINT = "drop one of the two settings that the message names"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "not compatible with `low_cpu_mem_usage",
            "ero-3 is not compatible",
            "ero3 is not compatible",
            "device_map",
        ),
        pattern=r"(?i)zero-?3 is (?:not compatible|incompatible) with|device_map.{0,60}(?:incompatible|not compatible|not supported).{0,60}(?:zero|deepspeed)",
        examples=(
            "ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.",
        ),
        not_examples=("device_map auto",),
        weight=66,
    ),
    Signature(
        anchor=(
            "client provided optimizer",
            "untested ZeRO Optimizer",
            "cannot be simultaneously enabled",
            "incompatible with pipeline",
            "nvme_path",
            "only supported with",
            "not supported with ZeRO",
            "does not support ZeRO",
            "not supported for ZeRO",
            "zero_force_ds_cpu_optimizer",
        ),
        pattern=(
            r"ZeRO-Offload with a client provided optimizer|untested ZeRO Optimizer"
            r"|cannot be simultaneously enabled|incompatible with pipeline"
            r"|\x22nvme_path\x22 in DeepSpeed Config cannot be None|only supported with ZeRO"
            r"|not supported (?:with|for) ZeRO|does not support ZeRO"
        ),
        examples=(
            "AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled",
            "AssertionError: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",
        ),
        not_examples=("zero_force_ds_cpu_optimizer true",),
        weight=68,
        masks=("libaio-missing",),
    ),
    Signature(
        anchor=("quantized", "quantization", "QLoRA", "load_in_8bit", "8-bit"),
        pattern=r"(?i)(?:zero-?3|fsdp).{0,80}(?:quantiz|qlora|8-?bit).{0,80}(?:not|in)(?: ?compatible| supported)|(?:quantiz|qlora|8-?bit)\w*.{0,60}(?:not|in)(?: ?compatible| supported).{0,60}zero",
        examples=("ValueError: 8-bit quantization is not compatible with ZeRO-3",),
        not_examples=("quantization ok",),
        weight=60,
    ),
)
