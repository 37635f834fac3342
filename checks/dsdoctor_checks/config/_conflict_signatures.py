"""How products refuse settings that exclude each other."""

from __future__ import annotations

from dsdoctor.api import Signature

SIGNATURES = (
    Signature(
        anchor=(
            "not compatible with `low_cpu_mem_usage",
            "ero-3 is not compatible",
            "ero3 is not compatible",
            "device_map",
            "zero-3 is incompatible with",
            "zero3 is incompatible with",
        ),
        pattern=(
            r"(?i)zero-?3 is (?:not compatible|incompatible) with"
            r"|device_map.{0,60}(?:incompatible|not compatible"
            r"|not supported).{0,60}(?:zero|deepspeed)"
        ),
        examples=(
            "ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.",
            "ValueError: passing a device_map is incompatible with DeepSpeed ZeRO-3",
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
        anchor=("not compatible", "not supported", "incompatible"),
        pattern=(
            r"(?i)(?:zero-?3|fsdp).{0,80}(?:quantiz|qlora|8-?bit).{0,80}(?:not (?:compatible"
            r"|supported)|incompatible)|(?:quantiz|qlora|8-?bit)\w{0,12}.{0,60}(?:not (?:compatible"
            r"|supported)|incompatible).{0,60}zero"
        ),
        examples=(
            "ValueError: 8-bit quantization is not compatible with ZeRO-3",
            "ValueError: ZeRO-3 with quantized weights is not supported",
        ),
        not_examples=("quantization to 8-bit is not supported on this GPU",),
        weight=60,
    ),
    Signature(
        anchor=(
            "only work with DeepSpeed optimizers",
            "but no `scheduler`",
            "loaded with `device_map=",
            "in any distributed mode",
            "no_sync context manager",
            "inside no_sync",
            "makes sense with ZeRO Stage 3",
            "DummyOptim` without",
            "an optimizer in the config file and in the code",
            "not supported with Stage 3",
            "only supported for ZeRO Stage 3",
            "is not compatible with ZeRO",
            "both amp with",
            "cannot be enabled at once",
            "must be 'cpu', make sure you enabled",
            "When using `deepspeed_config_file`",
            "not yet supported with ZeRO",
            "requires an optimizer",
            "elastic checkpointing",
            "DeepSpeed FusedAdam.",
            "fp16 and bf16 can be True",
            "different device than the one you're training on",
            "quantized model",
            "specify an scheduler in the config file and in the code",
            "specify a scheduler in the config file and in the code",
            "specify a optimizer in the config file and in the code",
            "Offloading is supported only for DeepSpeed FusedAdam",
            "MoE is not supported with ZeRO Stage 3",
            "MoE not supported with ZeRO Stage 3",
            "ZeRO-3 does not yet support elastic",
            "create a `DummyScheduler` without",
            "Not sure how to proceed, we were given",
        ),
        pattern=(
            r"can only work with DeepSpeed optimizers|`optimizer` configured in the DeepSpeed config, but no `scheduler`"
            r"|loaded (?:with `device_map='auto'`|in \S+ precision)? ?in any distributed mode"
            r"|loaded with `device_map='auto'` in any|no_sync context manager is incompatible"
            r"|inside no_sync context manager|only makes sense with ZeRO Stage 3"
            r"|create a `Dummy(?:Optim|Scheduler)` without|specify an? (?:optimizer"
            r"|scheduler) in the config file and in the code"
            r"|MoE(?: is)? not supported with (?:ZeRO )?Stage 3"
            r"|only supported for ZeRO Stage 3|(?:1bit-Adam"
            r"|1bit-Lamb|0/1 Adam) is not compatible with ZeRO"
            r"|Cannot enable both amp with|bfloat16 and fp16 cannot be enabled at once"
            r"|must be 'cpu', make sure you enabled 'offload_optimizer'"
            r"|When using `deepspeed_config_file`|not yet supported with ZeRO"
            r"|zero stage \d requires an optimizer|ZeRO-3 does not yet support elastic"
            r"|Offloading is supported only for DeepSpeed FusedAdam"
            r"|At most one of fp16 and bf16 can be True|on a different device than the one you're training on"
            r"|fine-tuning on a quantized model|purely quantized model"
            r"|Not sure how to proceed, we were given (?:both|deepspeed configs)"
        ),
        examples=(
            "ValueError: ZeRO Offload can only work with DeepSpeed optimizers",
            "ValueError: Found `optimizer` configured in the DeepSpeed config, but no `scheduler`. Please configure a scheduler in the DeepSpeed config.",
            "AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage 3",
            "AssertionError: CPUAdam param is on cuda:0 and must be 'cpu', make sure you enabled 'offload_optimizer': 'cpu' in your ds config.",
            "ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.",
            "AssertionError: Not sure how to proceed, we were given both a deepscale_config and deepspeed_config",
        ),
        not_examples=(
            "using no_sync context manager for accumulation",
            "zero stage 2 optimizer ready",
            "Not sure how to proceed, we were given no answer by the server",
        ),
        weight=66,
        masks=("libaio-missing",),
    ),
    Signature(
        anchor="DeepSpeed",
        pattern=(
            r"not supported (?:in|by|with|for) DeepSpeed\b|DeepSpeed (?:does not"
            r"|doesn't) support|incompatible with DeepSpeed"
            r"|not compatible with DeepSpeed"
        ),
        examples=(
            "ValueError: `precision='bf16-true')` is not supported in DeepSpeed. `precision` must be one of: ('32-true', '16-mixed', 'bf16-mixed').",
            "ValueError: torch.compile is not compatible with DeepSpeed",
        ),
        not_examples=("DeepSpeed supports this",),
        weight=54,
        near=("Error", "Exception"),
    ),
    Signature(
        anchor=(
            "sync context manager is incompatible",
            " not supported",
            "ly supported",
            " not yet supported",
            "nbytes != file bytes",
            ">= min_completes",
            "input to be on",
        ),
        pattern="(?i)no[_ ]?sync context manager is incompatible|\\bzero[- ]?(?:offload|infinity|inference|stage ?\\d|\\d)?\\b.{0,60} (?:is|are) not (?:currently |yet |presently )?supported|buffer nbytes != file bytes|`n_completes >= min_completes'|expected input to be on cuda",
        examples=(
            "AssertionError: no_sync context manager is incompatible with ZeRO stage 2",
            "AssertionError: ZeRO-Offload is not currently supported with this optimizer",
            "x.swp: buffer nbytes != file bytes 100 != 50",
            "RuntimeError: expected input to be on cuda",
        ),
        not_examples=(
            "this optimizer is not supported",
            "ZeRO stage 3 is not the default, it is newly supported",
        ),
        weight=48,
    ),
    Signature(
        anchor=(
            "Gradient computed twice",
            "This assert indicates that your module",
            "Master weights feature",
            "communication_data_type with reduce",
            "with reduce scatter",
            "in ZeRO Stage 2 must",
            "if remote device is",
            "moe layers, but None",
            "inflight",
            "param in flight",
            "must provide optimizer during init",
            "is not instantiated but Client",
            "nccl_start_alignment",
            "bf16_optimizer_states",
            "Hybrid Optimizer Only",
            "master_weights_and_grad",
            "Moving states across",
            "ZeRO placement",
            "torch autocast and",
            "the enabled precision mode",
            "ds_status",
            "ZeRO-3 parameter",
            "GatheredParameters",
            "tracing error at step",
            "as an optimizer parameter",
            "requires ZeRO",
            "in this configuration",
            "offloading states",
            "compute_grad_norm",
            "'NOT_AVAILABLE'",
            "is not supported with pipeline",
            "requires the CPU optimizer",
            "num_elems ",
            "unsupported grad type",
        ),
        pattern="Gradient computed twice for this partition|This assert indicates that your module has parameters that were not used|Master weights feature requires|communication_data_type with reduce scatter|not yet supported with .{1,60} with reduce scatter|in ZeRO Stage 2 must be set|in DeepSpeed Config .{0,40}if remote device is|has moe layers, but None of the param groups|(?:still have|expected param .{1,40} to be) inflight|partition a param in flight|must provide optimizer during init|is not instantiated but Client LR|multiple of nccl_start_alignment|bf16_optimizer_states requires|Hybrid Optimizer Only Supports|master_weights_and_grad\\w* (?:are mutually|and bf16|requires)|Moving states across devices is not|unsupported ZeRO placement|enable both torch autocast and|conflicts with the enabled precision mode|param\\.ds_status [!=]= ZeroParamStatus|ZeRO-3 parameters? (?:while it is|inside)|(?:Nested|using) GatheredParameters (?:contexts|with modifier)|^\\w*Error: tracing error at step \\d+|as an optimizer parameter, please switch|Error: .{0,80}(?:this function )?requires ZeRO|backward\\(\\) are not supported in this configuration|offload is not supported for offloading states|compute_grad_norm=false (?:is|does|requires)|'status': 'NOT_AVAILABLE'.{0,400}'ds_shape'|Error: .{0,80}is not supported with pipeline|num_elems \\d+ ?> ?buffer \\d+|attempting to reduce an unsupported grad type",
        examples=(
            "AssertionError: The parameter 12 has already been reduced. Gradient computed twice for this partition. Multiple gradient reduction is currently not supported",
            "RuntimeError: still have inflight params [<bound method Init>]",
            "RuntimeError: tracing error at step 42: module id: 3, training: True expected the next 2 parameters",
            "AssertionError: Reduce Scatter in ZeRO Stage 2 must be set to True for MoE. Other code paths are not tested with MoE",
            "ValueError: 'max_grad_norm' is not supported as an optimizer parameter, please switch to using the deepspeed parameter 'gradient_clipping'",
        ),
        not_examples=(
            "2 params inflight, prefetching 3",
            "assert param.ds_status is checked",
            "num_elems = 4",
        ),
        weight=52,
    ),
    Signature(
        anchor=("'status': '",),
        pattern="\\{'id': \\d+, 'status': '(?:NOT_AVAILABLE|INFLIGHT|AVAILABLE)', 'numel'",
        examples=(
            "AssertionError: {'id': 1, 'status': 'INFLIGHT', 'numel': 0, 'ds_numel': 524288, 'shape': (0,)",
            "    {'id': 7, 'status': 'NOT_AVAILABLE', 'numel': 0, 'ds_numel': 10}",
        ),
        not_examples=("{'id': 3, 'status': 'done'}",),
        weight=52,
    ),
    Signature(
        anchor=(
            "incompatible",
            "not compatible",
            "not supported",
            "unsupported",
            "not initialized with",
            "unique element in",
        ),
        pattern="(?i)\\bz\\w{2,3}[- ]?(?:stage[- ]?)?[0-3]\\b.{0,60}\\b(?:incompatible|not compatible|not supported|unsupported)|Model was not initialized with .{0,3}Zero-3|^RuntimeError: expected there to be only one unique element in",
        examples=(
            "ValueError: DeepSpeed ZeRO-3 or FSDP is incompatible with quantized models of this kind.",
            "ValueError: Model was not initialized with `Zero-3` despite being configured for DeepSpeed Zero-3.",
            "RuntimeError: expected there to be only one unique element in <generator object all_gather_coalesced>",
        ),
        not_examples=("an optimizer that is not supported at ZeRO-3", "incompatible with ZeRO-1"),
        weight=52,
    ),
    Signature(
        anchor=("eepSpeed", "eepspeed", "ZeRO", "Zero", "zero"),
        pattern="^(?:[\\w.]*\\.)?(?:Assertion|Value|Runtime|NotImplemented|Type)Error: (?=.{0,300}\\b(?:DeepSpeed|deepspeed|ZeRO|[Zz]ero[- ]?(?:stage[- ]?)?[0-3])\\b).{0,300}\\b(?:must|requires?|only (?:works?|supports?|supported|available)|not (?:yet |currently )?(?:supported|compatible|allowed)|unsupported|cannot|can't|can not|does not|doesn't|incompatible|conflicts?|mutually)\\b",
        examples=(
            "ValueError: You cannot use this callback together with DeepSpeed",
            "AssertionError: activation offloading requires ZeRO stage 3",
            "NotImplementedError: Expert parallelism is only supported for ZeRO-1 here",
        ),
        not_examples=(
            "ValueError: zero values found, cannot divide",
            "[INFO] DeepSpeed requires no change",
        ),
        weight=28,
    ),
    Signature(
        anchor=("Recomputed values for the following",),
        pattern="Recomputed values for the following tensors",
        examples=(
            "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.",
            "torch.utils.checkpoint.CheckpointError: Recomputed values for the following tensors",
        ),
        not_examples=("Recomputed values for the following layer",),
        weight=56,
        near=("'shape': [0]", "torch.Size([0])"),
        masks=("zero3-empty-weights",),
    ),
    Signature(
        anchor=("requires `low_cpu_mem_usage=True`",),
        pattern=r"Passing along a `device_map`(?: or .{0,40})? requires `low_cpu_mem_usage=True`",
        examples=(
            "ValueError: Passing along a `device_map` requires `low_cpu_mem_usage=True`",
            "ValueError: Passing along a `device_map` or a `tp_plan` requires `low_cpu_mem_usage=True`",
        ),
        not_examples=("sharded loading requires `low_cpu_mem_usage=True` on small hosts",),
        weight=46,
    ),
    Signature(
        anchor=(
            "BF16Optimizer: requires",
            "Client Optimizer is of",
            "in optimizer.param_groups. Make sure",
            "unsupported mix of model_dtype",
            "must base PipelineModule",
            "distributed world size (",
            "in pipeline mode",
            "Cannot reduce scatter gradients",
            "expected param ",
            "should match the size of param.ds_tensor",
            "Invalid to reduce Param",
            "param in ipg bucket",
            "elements than partition size",
            "elements that partition size",
            "param has no gradient, lp",
            "within the TP group. Please",
            "must be MoE params",
        ),
        pattern=r"BF16Optimizer: requires|Client Optimizer is of unexpected type|occurs multiple times in optimizer\.param_groups\. Make sure|unsupported mix of model_dtype|model must base PipelineModule|must divide distributed world size \(|Only train_batch\(\) is accessible in pipeline mode|Cannot reduce scatter gradients whose size|expected param .{1,40} to (?:not )?be available|partition buffer size .{1,40} should match the size of param\.ds_tensor|Invalid to reduce Param|more than 1 param in ipg bucket|different number of elements tha[nt] partition size|high precision param has no gradient, lp|Data inconsistency within the TP group\. Please|All params in MoE group must be MoE params",
        examples=(
            "AssertionError: model must base PipelineModule",
            "RuntimeError: num_stages (3) must divide distributed world size (8)",
            "AssertionError: rank 0 - Invalid to reduce Param 12 with None gradient",
            "pipe.engine.PipelineError: Only train_batch() is accessible in pipeline mode.",
        ),
        not_examples=(
            "the model runs in pipeline mode with 4 stages",
            "expected param count: 7000000000",
        ),
        weight=44,
    ),
    Signature(
        anchor=(
            "has no attribute 'ds_",
            "has no attribute '_ds_",
            "has no attribute 'partition_numel'",
            "has no attribute 'reserve_partitioned_swap_space'",
            "has no attribute 'all_gather'",
            "has no attribute 'convert_to_zero_parameters'",
        ),
        pattern=r"has no attribute '(?:_?ds_(?:id|numel|tensor|status|shape|persist|summary|process_group|active_sub_modules|secondary_tensor|param_alias|grads_remaining|pre_backward\w*|post_backward\w*)|partition_numel|reserve_partitioned_swap_space|all_gather|convert_to_zero_parameters)'",
        examples=(
            "AttributeError: 'Parameter' object has no attribute 'ds_numel'",
            "AttributeError: 'Linear' object has no attribute 'ds_grads_remaining'",
            "AttributeError: 'NoneType' object has no attribute 'reserve_partitioned_swap_space'",
        ),
        not_examples=("AttributeError: 'Namespace' object has no attribute 'ds_config'",),
        weight=42,
    ),
    Signature(
        anchor=("divisible by",),
        pattern=r"Error: .{0,160}\b(?:be|not|n't) (?:evenly )?divisible by (?:the )?(?:mp_size|tp_size|(?:tensor|model|sequence|context)[ _-]?(?:model[ _-])?parallel|(?:world|mesh)[ _]size)",
        examples=(
            "AssertionError: num_heads (13) must be divisible by mp_size (2)",
            "AssertionError: Hidden dim must be divisible by world size",
            "ValueError: the vocabulary must be divisible by tensor parallel size",
        ),
        not_examples=("ValueError: hidden size 10 is not divisible by the number of heads 3",),
        weight=30,
    ),
    Signature(
        anchor=("arg is an empty sequence", "iterable argument is empty"),
        pattern=r"(?:max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)",
        examples=(
            "ValueError: max() arg is an empty sequence",
            "ValueError: max() iterable argument is empty",
        ),
        not_examples=("len() arg is an empty sequence",),
        weight=44,
        near=("deepspeed/runtime/zero", "initialize_optimizer_states", "_create_fp16_partitions"),
    ),
)
