"""Names that releases of packages gained or lost, as imports that fail show them.

`cannot import name` contains the package that does not have the name. The release that brought or
removed it says which of the two packages is too old, and what to install.

Each row was read in the wheels of the release and of the one before it, 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import Level, Signature

#: Where transformers reads DeepSpeed, another condition knows the names.
NOT_NEAR = ("integrations.deepspeed", "transformers.deepspeed")


class Change(NamedTuple):
    """Names that a module gained or lost.

    Attributes:
        package: what pip calls the package.
        modules: the modules that had or have them, as the message contains them; what is below one
            counts, with `...`.
        release: the first release with them, or without.
        names: the names.
        gone: whether the release is the first without.
        instead: what own code uses in their place, "" if nothing.
    """

    package: str
    modules: tuple[str, ...]
    release: str
    names: tuple[str, ...]
    gone: bool = False
    instead: str = ""


_HUB, _HF = "huggingface_hub", ("transformers",)
_LLAMA = ("transformers.models...",)
CHANGES = (
    Change(_HUB, (_HUB, f"{_HUB}.file_download"), "0.26", ("cached_download",), gone=True,
           instead="`hf_hub_download`"),
    Change(_HUB, (_HUB,), "0.24", ("ModelFilter", "DatasetFilter"), gone=True,
           instead="the arguments of `list_models` and `list_datasets`"),
    Change(_HUB, (_HUB,), "1.0", ("HfFolder", "Repository", "InferenceApi", "configure_http_backend"),
           gone=True),
    Change(_HUB, (_HUB,), "0.20", ("list_repo_tree",)),
    Change(_HUB, (f"{_HUB}.utils",), "0.20", ("OfflineModeIsEnabled",)),
    Change(_HUB, (_HUB,), "0.21", ("split_torch_state_dict_into_shards",)),
    Change(_HUB, (f"{_HUB}.errors",), "0.25", ("HfHubHTTPError", "LocalEntryNotFoundError")),
    Change(_HUB, (_HUB,), "1.2.1", ("is_offline_mode",)),
    Change("transformers", ("transformers", "transformers.optimization"), "4.50", ("AdamW",),
           gone=True, instead="`torch.optim.AdamW`"),
    Change("transformers", _HF, "4.39", ("top_k_top_p_filtering",), gone=True),
    Change("transformers", ("transformers.utils",), "4.39", ("is_flash_attn_available",), gone=True,
           instead="`is_flash_attn_2_available`"),
    Change("transformers", ("transformers.modeling_utils",), "4.47", ("shard_checkpoint",), gone=True,
           instead="`split_torch_state_dict_into_shards` of huggingface_hub"),
    Change("transformers", ("transformers.modeling_utils",), "4.56",
           ("apply_chunking_to_forward", "find_pruneable_heads_and_indices", "prune_linear_layer"),
           gone=True, instead="`transformers.pytorch_utils`"),
    Change("transformers", ("transformers.modeling_utils",), "5.0", ("no_init_weights",), gone=True),
    Change("transformers", ("transformers.pytorch_utils",), "5.0",
           ("find_pruneable_heads_and_indices",), gone=True),
    Change("transformers", ("transformers.utils", "transformers.utils.import_utils"), "5.0",
           ("is_torch_fx_available",), gone=True),
    Change("transformers", ("transformers.utils",), "5.0",
           ("is_torch_bf16_available", "is_safetensors_available", "is_offline_mode",
            "get_full_repo_name", "FLAX_WEIGHTS_NAME"), gone=True),
    Change("transformers", ("transformers.utils",), "4.54", ("LossKwargs",), gone=True,
           instead="`TransformersKwargs`"),
    Change("transformers", ("transformers.trainer",), "4.53", ("ALL_LAYERNORM_LAYERS",), gone=True,
           instead="`transformers.pytorch_utils`"),
    Change("transformers", ("transformers.trainer", "transformers.trainer_utils"), "4.35",
           ("ShardedDDPOption",), gone=True),
    Change("transformers", ("transformers.generation.utils",), "5.0",
           ("SampleOutput", "GreedySearchOutput", "SampleDecoderOnlyOutput"), gone=True),
    Change("transformers", ("transformers.generation.utils",), "4.56",
           ("NEED_SETUP_CACHE_CLASSES_MAPPING",), gone=True),
    Change("transformers", ("transformers.cache_utils",), "5.0", ("HybridCache", "SinkCache"),
           gone=True),
    Change("transformers", _LLAMA, "4.48",
           ("LlamaFlashAttention2", "LlamaSdpaAttention", "LLAMA_ATTENTION_CLASSES",
            "Qwen2FlashAttention2"), gone=True),
    Change("transformers", _LLAMA, "4.52", ("LLAMA_INPUTS_DOCSTRING", "QWEN2_INPUTS_DOCSTRING"),
           gone=True),
    Change("transformers", ("transformers.models.llama.modeling_llama",), "4.38",
           ("_make_causal_mask", "_expand_mask"), gone=True),
    Change("transformers", _HF, "4.32", ("GPTQConfig", "is_torch_npu_available")),
    Change("transformers", _HF, "4.34", ("MistralForCausalLM",)),
    Change("transformers", _HF, "4.35", ("AwqConfig",)),
    Change("transformers", ("transformers", "transformers.cache_utils"), "4.36",
           ("Cache", "DynamicCache")),
    Change("transformers", _HF, "4.36", ("MixtralForCausalLM", "LlavaForConditionalGeneration")),
    Change("transformers", _HF, "4.37", ("Qwen2ForCausalLM",)),
    Change("transformers", _HF, "4.38", ("GemmaForCausalLM", "StaticCache")),
    Change("transformers", _HF, "4.39", ("LlavaNextForConditionalGeneration",)),
    Change("transformers", ("transformers", "transformers.utils"), "4.39",
           ("is_torch_xla_available",)),
    Change("transformers", _HF, "4.41", ("Phi3ForCausalLM", "HqqConfig")),
    Change("transformers", _HF, "4.42", ("Gemma2ForCausalLM",)),
    Change("transformers", ("transformers", "transformers.cache_utils"), "4.43",
           ("EncoderDecoderCache",)),
    Change("transformers", _HF, "4.45",
           ("Qwen2VLForConditionalGeneration", "MllamaForConditionalGeneration", "TorchAoConfig")),
    Change("transformers", _HF, "4.46",
           ("AutoModelForImageTextToText", "Idefics3ForConditionalGeneration")),
    Change("transformers", ("transformers.modeling_utils",), "4.48", ("ALL_ATTENTION_FUNCTIONS",)),
    Change("transformers", _HF, "4.49", ("Qwen2_5_VLForConditionalGeneration",)),
    Change("transformers", _HF, "4.50", ("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration")),
    Change("transformers", _HF, "4.51",
           ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Llama4ForConditionalGeneration")),
    Change("transformers", ("transformers.utils",), "4.52", ("auto_docstring",)),
    Change("transformers", ("transformers.utils", "transformers.utils.import_utils"), "4.52",
           ("check_torch_load_is_safe",)),
    Change("transformers", ("transformers.utils",), "4.54", ("TransformersKwargs",)),
    Change("transformers", _HF, "4.55", ("Mxfp4Config", "GptOssForCausalLM")),
    Change("transformers", _HF, "4.57", ("Qwen3VLForConditionalGeneration", "Qwen3NextForCausalLM")),
    Change("trl", ("trl", "trl.trainer", "trl.trainer.utils"), "0.20",
           ("DataCollatorForCompletionOnlyLM", "ConstantLengthDataset"), gone=True,
           instead="`completion_only_loss` and `packing` of `SFTConfig`"),
    Change("trl", ("trl.trainer.utils",), "0.27",
           ("DPODataCollatorWithPadding", "peft_module_casting_to_bf16", "get_reward",
            "first_true_indices", "truncate_right"), gone=True),
    Change("trl", ("trl", "trl.models"), "0.26", ("setup_chat_format",), gone=True,
           instead="`clone_chat_template`"),
    Change("trl", ("trl",), "0.24", ("IterativeSFTTrainer", "DDPOTrainer"), gone=True),
    Change("trl", ("trl",), "0.21", ("TextEnvironment",), gone=True),
    Change("trl", ("trl",), "0.13", ("PPOv2Trainer",), gone=True, instead="`PPOTrainer`"),
    Change("trl", ("trl",), "0.29",
           ("PPOTrainer", "AutoModelForCausalLMWithValueHead", "ORPOConfig", "OnlineDPOConfig",
            "CPOTrainer", "BCOTrainer", "GKDTrainer", "NashMDTrainer", "XPOTrainer", "PRMTrainer"),
           gone=True, instead="`trl.experimental`"),
    Change("trl", ("trl", "trl.import_utils"), "0.11", ("is_xpu_available",), gone=True),
    Change("trl", ("trl",), "0.8", ("KTOConfig",)),
    Change("trl", ("trl",), "0.9", ("SFTConfig", "DPOConfig")),
    Change("trl", ("trl",), "0.11", ("RLOOTrainer",)),
    Change("trl", ("trl",), "0.12", ("ScriptArguments",)),
    Change("trl", ("trl",), "0.14", ("GRPOTrainer", "GRPOConfig")),
    Change("trl", ("trl",), "0.19", ("clone_chat_template",)),
    Change("peft", ("peft",), "0.10", ("prepare_model_for_int8_training",), gone=True,
           instead="`prepare_model_for_kbit_training`"),
    Change("peft", ("peft.tuners.lora",), "0.15", ("QuantLinear",), gone=True),
    Change("peft", ("peft",), "0.5", ("inject_adapter_in_model",)),
    Change("peft", ("peft",), "0.7", ("PeftMixedModel", "LoftQConfig", "OFTConfig")),
    Change("peft", ("peft",), "0.12", ("LoraRuntimeConfig", "XLoraConfig", "HRAConfig")),
    Change("peft", ("peft",), "0.13", ("VBLoRAConfig",)),
    Change("peft", ("peft",), "0.14", ("EvaConfig",)),
    Change("accelerate", ("accelerate.utils",), "0.28", ("is_tpu_available",), gone=True,
           instead="`is_torch_xla_available`"),
    Change("accelerate", ("accelerate.utils",), "0.21", ("is_npu_available",)),
    Change("accelerate", ("accelerate", "accelerate.utils"), "0.28", ("DataLoaderConfiguration",)),
    Change("accelerate", ("accelerate.utils",), "0.29", ("is_mlu_available",)),
    Change("accelerate", ("accelerate", "accelerate.utils"), "0.32", ("ProfileKwargs",)),
    Change("accelerate", ("accelerate.utils.memory",), "0.32", ("clear_device_cache",)),
    Change("accelerate", ("accelerate.utils",), "1.4", ("TorchTensorParallelPlugin",)),
    Change("accelerate", ("accelerate.utils",), "1.5", ("is_hpu_available",)),
    Change("accelerate", ("accelerate.utils",), "1.7", ("compile_regions",)),
    Change("accelerate", ("accelerate",), "1.10", ("ParallelismConfig",)),
    Change("datasets", ("datasets",), "3.0", ("load_metric",), gone=True,
           instead="`evaluate.load`"),
    Change("pydantic", ("pydantic",), "2.0",
           ("field_validator", "model_validator", "field_serializer", "model_serializer",
            "TypeAdapter", "RootModel", "computed_field", "validate_call", "AliasChoices",
            "GetCoreSchemaHandler")),
    Change("typing_extensions", ("typing_extensions",), "4.4", ("override",)),
    Change("typing_extensions", ("typing_extensions",), "4.5", ("deprecated",)),
    Change("typing_extensions", ("typing_extensions",), "4.6",
           ("TypeAliasType", "Buffer", "get_original_bases")),
    Change("typing_extensions", ("typing_extensions",), "4.7", ("get_protocol_members",)),
    Change("typing_extensions", ("typing_extensions",), "4.10", ("TypeIs",)),
    Change("typing_extensions", ("typing_extensions",), "4.13", ("TypeForm", "evaluate_forward_ref")),
    Change("typing_extensions", ("typing_extensions",), "4.14", ("Sentinel",)),
    Change("markupsafe", ("markupsafe",), "2.1", ("soft_unicode",), gone=True,
           instead="`soft_str`"),
    Change("jinja2", ("jinja2",), "3.1", ("contextfilter", "environmentfilter", "Markup", "escape"),
           gone=True, instead="`pass_context` and `pass_environment` of jinja2, or markupsafe"),
    Change("click", ("click",), "8.1", ("get_terminal_size",), gone=True,
           instead="`shutil.get_terminal_size`"),
    Change("packaging", ("packaging.version",), "22", ("LegacyVersion",), gone=True),
    Change("urllib3", ("urllib3.util.ssl_",), "2", ("DEFAULT_CIPHERS",), gone=True),
    Change("scipy", ("scipy.linalg",), "1.13", ("tril", "triu"), gone=True,
           instead="numpy's"),
    Change("protobuf", ("google.protobuf.internal",), "3.20", ("builder",)),
    Change("protobuf", ("google.protobuf",), "5.27", ("runtime_version",)),
)  # fmt: skip


def _signature(change: Change) -> Signature:
    names, modules = "|".join(change.names), "|".join(map(_pattern, change.modules))
    first = change.modules[0].replace("...", ".llama.modeling_llama")
    older, newer = f"'{change.package}<{change.release}'", f"'{change.package}>={change.release}'"
    own = f"; in your own code, use {change.instead}" if change.instead else ""
    if change.gone:
        said = f"{change.package} {change.release} and newer do not have `{{name}}`, which a file imports"
        what = f"upgrade the package whose file imports it, or run `python -m pip install {older}`{own}"
    else:
        said = f"`{{name}}` was added in {change.package} {change.release}, but the installed release is older"
        what = f"run `python -m pip install {newer}`, or install an older release of the package whose file imports it"
    return Signature(
        pattern=rf"cannot import name '(?P<name>{names})' from '(?:{modules})'(?! \(unknown)",
        source=f"python 3.7-3.14 Python/ceval.c; wheels of {change.package} around {change.release}, 2026-11-29",
        message=said,
        hint=what,
        examples=tuple(
            f"ImportError: cannot import name '{name}' from '{module}' (/x/{module}.py)"
            for name in change.names
            for module in (first, *change.modules[1:])
        ),
        not_examples=tuple(
            f"ImportError: cannot import name '{name}' from '{first}' (unknown location)"
            for name in change.names[:1]
        ),
        not_near=NOT_NEAR,
        level=Level.STRONG,
    )


def _pattern(module: str) -> str:
    below = module.endswith("...")
    return module.rstrip(".").replace(".", r"\.") + (r"\.[\w.]+" if below else "")


def signatures() -> Iterator[Signature]:
    """A signature for each change."""
    yield from map(_signature, CHANGES)
