"""Messages about settings that are mutually exclusive.

Over 400 lines because it is a table: one signature for each message.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern="(?i)zero-?3 is (?:not compatible|incompatible) with|device_map.{0,60}(?:incompatible|not compatible|not supported).{0,60}(?:zero|deepspeed)",
        source=(
            "transformers 4.28-5.23 modeling_utils.py; programs' own checks of DeepSpeed's stage"
        ),
        examples=(
            "ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.",
            "ValueError: passing a device_map is incompatible with DeepSpeed ZeRO-3",
        ),
        not_examples=(
            "ValueError: The version of PEFT you are using is not compatible, please use a version that is greater than 0.18.0",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="ZeRO-Offload with a client provided optimizer",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="The optimizer's states are offloaded, but the script passes an optimizer of its own",
        hint="set the optimizer in the config, pass `deepspeed.ops.adam.DeepSpeedCPUAdam`, or set `zero_force_ds_cpu_optimizer` to false",
        examples=("ZeRO-Offload with a client provided optimizer",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="untested ZeRO Optimizer",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="DeepSpeed has not tested the script's optimizer with ZeRO",
        hint="set the optimizer in the config, or set `zero_allow_untested_optimizer` to true",
        examples=(
            'AssertionError: You are using an untested ZeRO Optimizer. Please add <"zero_allow_untested_optimizer": true> in the configuration file to use it.',
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="cannot be simultaneously enabled",
        source="deepspeed 0.19.8 runtime/config.py",
        examples=("AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="incompatible with pipeline",
        source="deepspeed 0.19.8 runtime/pipe/engine.py",
        examples=("AssertionError: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",),
        level=Level.STRONG,
        masks=("libaio-missing",),
        hint="set `zero_optimization.stage` to 1 or 0",
    ),
    Signature(
        pattern=r"\x22nvme_path\x22 in DeepSpeed Config cannot be None",
        source="deepspeed 0.19.8 runtime/zero/partition_parameters.py",
        examples=(
            'AssertionError: "nvme_path" in DeepSpeed Config cannot be None if remote device is OffloadDeviceEnum.nvme',
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
        hint='set `nvme_path` next to `"device": "nvme"` to a directory on a local NVMe disk',
    ),
    Signature(
        pattern="only supported with ZeRO",
        source="deepspeed 0.19.8 runtime/config.py",
        examples=("only supported with ZeRO",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="not supported (?:with|for) ZeRO",
        source="deepspeed 0.19.8 runtime/config.py, runtime/engine.py; accelerate 1.6.0-1.15.0 utils/dataclasses.py",
        examples=(
            "not supported with ZeRO",
            "not supported for ZeRO",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="does not support ZeRO",
        source="deepspeed 0.19.8 runtime/engine.py, runtime/hybrid_engine.py",
        examples=("does not support ZeRO",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern=r"(?i)(?:zero-?3|fsdp).{0,80}(?:quantiz|qlora|8-?bit).{0,80}(?:not (?:compatible|supported)|incompatible)|(?:quantiz|qlora|8-?bit)\w{0,12}.{0,60}(?:not (?:compatible|supported)|incompatible).{0,60}zero",
        source=(
            "programs' own checks of quantized weights under ZeRO-3 or FSDP, such as LLaMA-Factory "
            "hparams/parser.py, axolotl utils/schemas/validation.py"
        ),
        examples=(
            "ValueError: 8-bit quantization is not compatible with ZeRO-3",
            "ValueError: ZeRO-3 with quantized weights is not supported",
        ),
        not_examples=("quantization to 8-bit is not supported on this GPU",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="can only work with DeepSpeed optimizers",
        source="deepspeed 0.19.8 autotuning/utils.py",
        examples=("ValueError: ZeRO Offload can only work with DeepSpeed optimizers",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="`optimizer` configured in the DeepSpeed config, but no `scheduler`",
        source="transformers 4.30-4.31 deepspeed.py",
        message="The config sets an optimizer but no scheduler, and the script passes a dummy scheduler",
        hint="add a `scheduler` section to the config, or create both in the script",
        examples=(
            "ValueError: Found `optimizer` configured in the DeepSpeed config, but no `scheduler`. Please configure a scheduler in the DeepSpeed config.",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern=r"loaded (?:with `device_map='auto'`|in \S+ precision)? ?in any distributed mode",
        source="accelerate 1.15.0 accelerator.py",
        examples=(
            "ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.",
            "loaded in any distributed mode",
        ),
        not_examples=("with `device_map='auto'` in any distributed mode.",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="loaded with `device_map='auto'` in any",
        source="accelerate 1.15.0 accelerator.py",
        examples=(
            "ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="no_sync context manager is incompatible",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="`no_sync` is used, but ZeRO reduces gradients in each backward pass",
        hint="remove `no_sync()`; DeepSpeed accumulates as `gradient_accumulation_steps` says",
        examples=(
            "AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage 3",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="inside no_sync context manager",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("inside no_sync context manager",),
        level=Level.STRONG,
        masks=("libaio-missing",),
        message="`step()` is called inside `no_sync()`",
        hint="call `step()` outside of `no_sync()`",
    ),
    Signature(
        pattern="only makes sense with ZeRO Stage 3",
        source="transformers 5.23.0 integrations/deepspeed.py",
        examples=("only makes sense with ZeRO Stage 3",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="create a `Dummy(?:Optim|Scheduler)` without",
        source="accelerate 0.27.2-1.15.0 accelerator.py",
        examples=(
            "create a `DummyOptim` without",
            "create a `DummyScheduler` without",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
        message="`DummyOptim` or `DummyScheduler` is used, but the DeepSpeed config has no optimizer or scheduler",
        hint="add it to the DeepSpeed config, or pass a real one to `prepare`",
    ),
    Signature(
        pattern="specify an? (?:optimizer|scheduler) in the config file and in the code",
        source="accelerate 0.12-1.15 accelerator.py",
        examples=(
            "specify a optimizer in the config file and in the code",
            "specify a scheduler in the config file and in the code",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
        message="The optimizer or the scheduler is in the DeepSpeed config and in the script",
        hint="remove it from the config, or pass `DummyOptim` and `DummyScheduler` in the script",
    ),
    Signature(
        pattern="MoE(?: is)? not supported with (?:ZeRO )?Stage 3",
        source="deepspeed 0.14.5-0.19.8 runtime/engine.py",
        examples=("AssertionError: MoE not supported with Stage 3",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="only supported for ZeRO Stage 3",
        source="deepspeed 0.19.8 runtime/zero/config.py",
        examples=("only supported for ZeRO Stage 3",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="(?:1bit-Adam|1bit-Lamb|0/1 Adam) is not compatible with ZeRO",
        source="deepspeed 0.14.5-0.16.9 runtime/engine.py",
        examples=(
            "1bit-Adam is not compatible with ZeRO",
            "1bit-Lamb is not compatible with ZeRO",
            "0/1 Adam is not compatible with ZeRO",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="Cannot enable both amp with",
        source="deepspeed 0.14.5-0.16.9 runtime/engine.py",
        examples=("Cannot enable both amp with",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="bfloat16 and fp16 cannot be enabled at once",
        source="deepspeed 0.19.8 runtime/zero/partition_parameters.py",
        examples=("bfloat16 and fp16 cannot be enabled at once",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="must be 'cpu', make sure you enabled 'offload_optimizer'",
        source="deepspeed 0.14.5-0.19.8 ops/adam/cpu_adam.py, ops/lion/cpu_lion.py",
        message="The parameters of CPUAdam are on a GPU",
        hint="set `offload_optimizer.device` to `cpu`, or use an optimizer for GPUs",
        examples=(
            "AssertionError: CPUAdam param is on cuda:0 and must be 'cpu', make sure you enabled 'offload_optimizer': 'cpu' in your ds config.",
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="When using `deepspeed_config_file`",
        source="accelerate 1.15.0 utils/dataclasses.py",
        examples=("When using `deepspeed_config_file`",),
        level=Level.STRONG,
        masks=("libaio-missing",),
        message="`accelerate config` and the DeepSpeed config file set the same values",
        hint="keep them in the DeepSpeed config file: remove them from the config of accelerate",
    ),
    Signature(
        pattern="not yet supported with ZeRO",
        source="deepspeed 0.19.8 runtime/zero/stage3.py",
        examples=("not yet supported with ZeRO",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern=r"zero stage \d requires an optimizer",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="ZeRO is enabled, but the job has no optimizer",
        hint="add an `optimizer` section to the config, or pass `optimizer=` to `deepspeed.initialize`",
        examples=("zero stage 7 requires an optimizer",),
        not_examples=("stage 7 requires an optimizer",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="ZeRO-3 does not yet support elastic",
        source="deepspeed 0.14.5-0.16.9 runtime/zero/stage3.py",
        examples=("ZeRO-3 does not yet support elastic",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="Offloading is supported only for DeepSpeed FusedAdam",
        source="deepspeed 0.19.8 runtime/zero/stage3.py",
        examples=("Offloading is supported only for DeepSpeed FusedAdam",),
        level=Level.STRONG,
        masks=("libaio-missing",),
        message="`offload_states` works only with the optimizer `FusedAdam`",
        hint="use `FusedAdam`, or do not call `offload_states`",
    ),
    Signature(
        pattern="At most one of fp16 and bf16 can be True(?! for full eval)",
        source="transformers 5.23.0 training_args.py",
        examples=("At most one of fp16 and bf16 can be True",),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern="on a different device than the one you're training on",
        source="accelerate 1.15.0 accelerator.py",
        examples=("on a different device than the one you're training on",),
        level=Level.STRONG,
        masks=("libaio-missing",),
        message="The quantized model was loaded on another GPU than that of its rank",
        hint='load it with `device_map={"": local_rank}`',
    ),
    Signature(
        pattern="Not sure how to proceed, we were given (?:both|deepspeed configs)",
        source="deepspeed 0.19.8 __init__.py",
        message="The DeepSpeed config is passed twice",
        hint="pass it once: with `--deepspeed_config`, or as `config=` of `deepspeed.initialize`",
        examples=(
            "AssertionError: Not sure how to proceed, we were given both a deepscale_config and deepspeed_config",
            'assert config is None, "Not sure how to proceed, we were given deepspeed configs in the deepspeed arguments and deepspeed.initialize() function call"',
        ),
        level=Level.STRONG,
        masks=("libaio-missing",),
    ),
    Signature(
        pattern=r"not supported (?:in|by|with|for) DeepSpeed\b|DeepSpeed (?:does not|doesn't) support|incompatible with DeepSpeed|not compatible with DeepSpeed",
        source=(
            "lightning 1.2-2.6 plugins/precision/deepspeed.py, strategies/deepspeed.py; programs' "
            "own checks of DeepSpeed"
        ),
        examples=(
            "ValueError: `precision='bf16-true')` is not supported in DeepSpeed. `precision` must be one of: ('32-true', '16-mixed', 'bf16-mixed').",
            "ValueError: torch.compile is not compatible with DeepSpeed",
            "DeepSpeed does not support",
            "incompatible with DeepSpeed",
        ),
        near=("Error", "Exception"),
    ),
    Signature(
        pattern="(?i)no[_ ]?sync context manager is incompatible",
        source="deepspeed 0.16.9-0.19.8 runtime/engine.py",
        message="`no_sync` is used, but ZeRO reduces gradients in each backward pass",
        hint="remove `no_sync()`; DeepSpeed accumulates as `gradient_accumulation_steps` says",
        examples=("AssertionError: no_sync context manager is incompatible with ZeRO stage 2",),
    ),
    Signature(
        pattern=r"(?i)\bzero[- ]?(?:offload|infinity|inference|stage ?\d|\d)?\b.{0,60} (?:is|are) not (?:currently |yet |presently )?supported",
        source=(
            "deepspeed 0.3-0.19 runtime/engine.py, runtime/zero/stage_1_and_2.py, "
            "runtime/zero/stage3.py"
        ),
        examples=(
            "AssertionError: ZeRO-Offload is not currently supported with this optimizer",
            "zero ...  are not supported",
        ),
        not_examples=("this optimizer is not supported",),
    ),
    Signature(
        pattern="(?i)expected input to be on cuda",
        source="deepspeed 0.14.5-0.19.8 ops/csrc/adam/multi_tensor_apply.cuh, ops/csrc/lion/multi_tensor_apply.cuh",
        message="The model's input is on another device than its parameters",
        hint="move the batch to `engine.device` before the forward pass",
        examples=("RuntimeError: expected input to be on cuda",),
    ),
    Signature(
        pattern="Gradient computed twice for this partition",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        message="A parameter's gradient was computed twice in one backward pass",
        hint="use each parameter once per step: with activation checkpointing, pass `use_reentrant=False`; do not share layers between checkpointed blocks",
        examples=(
            "AssertionError: The parameter 12 has already been reduced. Gradient computed twice for this partition. Multiple gradient reduction is currently not supported",
        ),
    ),
    Signature(
        pattern="This assert indicates that your module has parameters that were not used",
        source="deepspeed 0.14.5-0.19.8 runtime/zero/stage_1_and_2.py",
        message="A parameter of the model got no gradient in the backward pass",
        hint="freeze or remove layers that the forward pass does not use, or use them on every rank",
        examples=("This assert indicates that your module has parameters that were not used",),
    ),
    Signature(
        pattern="Master weights feature requires",
        source="deepspeed 0.19.8 runtime/zero/stage3.py, runtime/zero/stage_1_and_2.py",
        examples=("Master weights feature requires",),
    ),
    Signature(
        pattern="communication_data_type with reduce scatter",
        source="deepspeed 0.19.8 runtime/zero/stage3.py, runtime/zero/stage_1_and_2.py",
        examples=("communication_data_type with reduce scatter",),
    ),
    Signature(
        pattern="not yet supported with .{1,60} with reduce scatter",
        source="deepspeed 0.19.8 runtime/zero/stage3.py",
        examples=("not yet supported with x with reduce scatter",),
        not_examples=("not yet supported with x with reduce",),
    ),
    Signature(
        pattern="in ZeRO Stage 2 must be set",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=(
            "AssertionError: Reduce Scatter in ZeRO Stage 2 must be set to True for MoE. Other code paths are not tested with MoE",
        ),
    ),
    Signature(
        pattern="in DeepSpeed Config .{0,40}if remote device is",
        source="deepspeed 0.19.8 runtime/zero/partition_parameters.py",
        examples=(
            'AssertionError: "nvme_path" in DeepSpeed Config cannot be None if remote device is OffloadDeviceEnum.nvme',
        ),
        not_examples=(
            'AssertionError: "nvme_path" in DeepSpeed Config cannot be None if remote device',
        ),
    ),
    Signature(
        pattern="has moe layers, but None of the param groups",
        source="deepspeed 0.19.8 runtime/bf16_optimizer.py, runtime/zero/stage_1_and_2.py",
        message="The model has MoE layers, but no parameter group of the optimizer is marked for them",
        hint="build the groups with `deepspeed.moe.utils.split_params_into_different_moe_groups_for_optimizer`",
        examples=("has moe layers, but None of the param groups",),
    ),
    Signature(
        pattern="expected param .{1,40} to be inflight",
        source="deepspeed 0.14.5-0.19.8 runtime/zero/partition_parameters.py",
        examples=("expected param x to be inflight",),
        not_examples=("expected param x to be",),
    ),
    Signature(
        pattern="partition a param in flight",
        source="deepspeed 0.19.8 runtime/zero/partition_parameters.py",
        examples=("partition a param in flight",),
    ),
    Signature(
        pattern="must provide optimizer during init",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="A scheduler is set, but the job has no optimizer",
        hint="add an `optimizer` section to the config, or pass `optimizer=` to `deepspeed.initialize`",
        examples=("must provide optimizer during init",),
    ),
    Signature(
        pattern="is not instantiated but Client LR",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="The script passes a scheduler but no optimizer",
        hint="pass `optimizer=` to `deepspeed.initialize` too, or set the scheduler in the config",
        examples=("is not instantiated but Client LR",),
    ),
    Signature(
        pattern="multiple of nccl_start_alignment",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("multiple of nccl_start_alignment",),
    ),
    Signature(
        pattern="bf16_optimizer_states requires",
        source="deepspeed 0.19.8 runtime/base_optimizer.py, runtime/config.py",
        examples=("bf16_optimizer_states requires",),
    ),
    Signature(
        pattern="Hybrid Optimizer Only Supports",
        source="deepspeed 0.19.8 runtime/zero/stage3.py",
        examples=("Hybrid Optimizer Only Supports",),
    ),
    Signature(
        pattern=r"master_weights_and_grad\w* (?:are mutually|and bf16|requires)",
        source="deepspeed 0.19.8 runtime/base_optimizer.py",
        examples=(
            "master_weights_and_gradname are mutually",
            "master_weights_and_gradname and bf16",
            "master_weights_and_gradname requires",
        ),
        not_examples=("master_weights_and_gradname are",),
    ),
    Signature(
        pattern="Moving states across devices is not",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("Moving states across devices is not",),
    ),
    Signature(
        pattern="unsupported ZeRO placement",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("unsupported ZeRO placement",),
    ),
    Signature(
        pattern="enable both torch autocast and",
        source="deepspeed 0.19.8 runtime/torch_autocast.py",
        examples=("enable both torch autocast and",),
    ),
    Signature(
        pattern="conflicts with the enabled precision mode",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("conflicts with the enabled precision mode",),
    ),
    Signature(
        pattern=r"param\.ds_status [!=]= ZeroParamStatus",
        source="deepspeed 0.3-0.19 runtime/zero/partition_parameters.py",
        examples=("param.ds_status != ZeroParamStatus",),
        message="ZeRO-3 found a parameter in a state that it does not expect",
        hint="run every module through the engine, use the same forward pass on all ranks, and change parameters only inside `deepspeed.zero.GatheredParameters`",
    ),
    Signature(
        pattern="ZeRO-3 parameters? (?:while it is|inside)",
        source="deepspeed 0.3-0.19 runtime/zero/partition_parameters.py",
        examples=(
            "ZeRO-3 parameter while it is",
            "ZeRO-3 parameter inside",
        ),
    ),
    Signature(
        pattern="(?:Nested|using) GatheredParameters (?:contexts|with modifier)",
        source="deepspeed 0.3-0.19 runtime/zero/partition_parameters.py",
        examples=(
            "Nested GatheredParameters contexts",
            "using GatheredParameters contexts",
            "Nested GatheredParameters with modifier",
        ),
    ),
    Signature(
        pattern=r"^\w*Error: tracing error at step \d+",
        source="deepspeed 0.6-0.19 runtime/zero/partitioned_param_coordinator.py",
        examples=(
            "RuntimeError: tracing error at step 42: module id: 3, training: True expected the next 2 parameters",
        ),
        not_examples=("Error: tracing error at step is fine",),
    ),
    Signature(
        pattern="as an optimizer parameter, please switch",
        source="deepspeed 0.19.8 runtime/config.py, runtime/engine.py",
        message="The optimizer's parameters set a limit of the gradient norm",
        hint="remove `max_grad_norm` there, and set `gradient_clipping` in the config",
        examples=(
            "ValueError: 'max_grad_norm' is not supported as an optimizer parameter, please switch to using the deepspeed parameter 'gradient_clipping'",
        ),
    ),
    Signature(
        pattern="Error: .{0,80}(?:this function )?requires ZeRO",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("RuntimeError: requires ZeRO",),
        not_examples=("requires ZeRO",),
    ),
    Signature(
        pattern=r"backward\(\) are not supported in this configuration",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("backward() are not supported in this configuration",),
    ),
    Signature(
        pattern="offload is not supported for offloading states",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("offload is not supported for offloading states",),
    ),
    Signature(
        pattern="compute_grad_norm=false (?:is|does|requires)",
        source="deepspeed 0.19.8 runtime/engine.py, runtime/zero/config.py, runtime/zero/stage_1_and_2.py",
        examples=(
            "compute_grad_norm=false is",
            "compute_grad_norm=false does",
            "compute_grad_norm=false requires",
        ),
    ),
    Signature(
        pattern="'status': 'NOT_AVAILABLE'.{0,400}'ds_shape'",
        source="deepspeed 0.3-0.19 runtime/zero/partition_parameters.py",
        examples=("'status': 'NOT_AVAILABLE''ds_shape'",),
        not_examples=("'status': 'NOT_AVAILABLE' is fine",),
        message="ZeRO-3 found a parameter in a state that it does not expect",
        hint="run every module through the engine, use the same forward pass on all ranks, and change parameters only inside `deepspeed.zero.GatheredParameters`",
    ),
    Signature(
        pattern="Error: .{0,80}is not supported with pipeline",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("RuntimeError: is not supported with pipeline",),
        not_examples=("is not supported with pipeline",),
    ),
    Signature(
        pattern=r"num_elems \d+ ?> ?buffer \d+",
        source="deepspeed 0.4-0.19 runtime/swap_tensor/utils.py",
        examples=("num_elems 7>buffer 7",),
        not_examples=("7>buffer 7",),
    ),
    Signature(
        pattern="attempting to reduce an unsupported grad type",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("attempting to reduce an unsupported grad type",),
    ),
    Signature(
        pattern=r"\{'id': \d+, 'status': '(?:NOT_AVAILABLE|INFLIGHT|AVAILABLE)', 'numel'",
        source="deepspeed 0.3-0.19 runtime/zero/partition_parameters.py",
        examples=(
            "AssertionError: {'id': 1, 'status': 'INFLIGHT', 'numel': 0, 'ds_numel': 524288, 'shape': (0,)",
            "    {'id': 7, 'status': 'NOT_AVAILABLE', 'numel': 0, 'ds_numel': 10}",
            "{'id': 7, 'status': 'AVAILABLE', 'numel'",
        ),
        not_examples=("1, 'status': 'INFLIGHT', 'numel': 0, 'ds_numel': 524288, 'shape': (0,)",),
        message="ZeRO-3 found a parameter in a state that it does not expect",
        hint="run every module through the engine, use the same forward pass on all ranks, and change parameters only inside `deepspeed.zero.GatheredParameters`",
    ),
    Signature(
        pattern=r"(?i)\bz\w{2,3}[- ]?(?:stage[- ]?)?[0-3]\b.{0,60}\b(?:incompatible|not compatible|not supported|unsupported)|Model was not initialized with .{0,3}Zero-3|^RuntimeError: expected there to be only one unique element in",
        source=(
            "deepspeed 0.6-0.19 runtime/utils.py; trainers derived from transformers 4.4x (no "
            "release of it words `Zero-3` so); programs' own checks of DeepSpeed's stage"
        ),
        examples=(
            "ValueError: DeepSpeed ZeRO-3 or FSDP is incompatible with quantized models of this kind.",
            "ValueError: Model was not initialized with `Zero-3` despite being configured for DeepSpeed Zero-3.",
            "RuntimeError: expected there to be only one unique element in <generator object all_gather_coalesced>",
        ),
        not_examples=(
            "an optimizer that is not supported at ZeRO-3",
            "incompatible with ZeRO-1",
        ),
    ),
    Signature(
        pattern="Recomputed values for the following tensors",
        source="torch 2.13.0 utils/checkpoint.py",
        examples=(
            "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.",
            "torch.utils.checkpoint.CheckpointError: Recomputed values for the following tensors",
        ),
        near=("'shape': [0]", "torch.Size([0])"),
        masks=("zero3-empty-weights",),
    ),
    Signature(
        pattern="Passing along a `device_map`(?: or .{0,40})? requires `low_cpu_mem_usage=True`",
        source="transformers 4.28.1-4.36.2 modeling_utils.py",
        examples=(
            "ValueError: Passing along a `device_map` requires `low_cpu_mem_usage=True`",
            "ValueError: Passing along a `device_map` or a `tp_plan` requires `low_cpu_mem_usage=True`",
        ),
        not_examples=("sharded loading requires `low_cpu_mem_usage=True` on small hosts",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="BF16Optimizer: requires",
        source="deepspeed 0.19.8 runtime/bf16_optimizer.py",
        examples=("BF16Optimizer: requires",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Client Optimizer is of unexpected type",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="The optimizer passed to `deepspeed.initialize` is neither a `torch.optim.Optimizer` nor a function that returns one",
        hint="pass an instance, or a function of the parameters",
        examples=("Client Optimizer is of unexpected type",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"occurs multiple times in optimizer\.param_groups\. Make sure",
        source="deepspeed 0.19.8 runtime/engine.py",
        message="A parameter is in the optimizer's groups more than once",
        hint="put each parameter into one group: shared (tied) weights count once",
        examples=("occurs multiple times in optimizer.param_groups. Make sure",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="unsupported mix of model_dtype",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("unsupported mix of model_dtype",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="model must base PipelineModule",
        source="deepspeed 0.19.8 runtime/pipe/engine.py",
        message="The pipeline engine is selected, but the model is not a `PipelineModule`",
        hint="wrap the layers in `deepspeed.pipe.PipelineModule`, or remove the `pipeline` section and the topology",
        examples=("AssertionError: model must base PipelineModule",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"num_stages \((?P<stages>\d+)\) must divide distributed world size \((?P<ranks>\d+)\)",
        source="deepspeed 0.19.8 runtime/pipe/module.py",
        message="The pipeline has {stages} stages, which do not divide the {ranks} ranks of the job",
        hint="choose `num_stages` so that it divides the number of ranks, or start that many ranks",
        examples=("RuntimeError: num_stages (3) must divide distributed world size (8)",),
        not_examples=("num_stages (x) must divide distributed world size (y)",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Only train_batch\(\) is accessible in pipeline mode",
        source="deepspeed 0.19.8 runtime/pipe/engine.py",
        message="The script calls the model of a pipeline directly",
        hint="call `engine.train_batch(data_iter=…)` or `engine.eval_batch(…)`: with pipeline parallelism there is no `forward`, `backward` or `step`",
        examples=("pipe.engine.PipelineError: Only train_batch() is accessible in pipeline mode.",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Cannot reduce scatter gradients whose size",
        source="deepspeed 0.19.8 runtime/zero/partition_parameters.py",
        examples=("Cannot reduce scatter gradients whose size",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="expected param .{1,40} to (?:not )?be available",
        source="deepspeed 0.14.5-0.19.8 runtime/zero/partition_parameters.py",
        examples=("expected param x to be available",),
        not_examples=("param x to be available",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"partition buffer size .{1,40} should match the size of param\.ds_tensor",
        source="deepspeed 0.19.8 runtime/zero/partition_parameters.py",
        examples=("partition buffer size x should match the size of param.ds_tensor",),
        not_examples=("buffer size x should match the size of param.ds_tensor",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Invalid to reduce Param",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("AssertionError: rank 0 - Invalid to reduce Param 12 with None gradient",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="more than 1 param in ipg bucket",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("more than 1 param in ipg bucket",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="different number of elements tha[nt] partition size",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py, runtime/zero/stage3.py",
        examples=("different number of elements than partition size",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="high precision param has no gradient, lp",
        source="deepspeed 0.19.8 runtime/bf16_optimizer.py",
        examples=("high precision param has no gradient, lp",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Data inconsistency within the TP group\. Please",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("Data inconsistency within the TP group. Please",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="All params in MoE group must be MoE params",
        source="deepspeed 0.19.8 runtime/bf16_optimizer.py, runtime/zero/stage_1_and_2.py",
        message="A parameter group that is marked for MoE holds parameters of other layers",
        hint="build the groups with `deepspeed.moe.utils.split_params_into_different_moe_groups_for_optimizer`",
        examples=("All params in MoE group must be MoE params",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"has no attribute '(?:_?ds_(?:id|numel|tensor|status|shape|persist|summary|process_group|active_sub_modules|secondary_tensor|param_alias|grads_remaining|pre_backward\w*|post_backward\w*)|partition_numel|reserve_partitioned_swap_space|all_gather|convert_to_zero_parameters)'",
        source=(
            "python 3.3-3.14 Objects/object.c, for attributes that deepspeed 0.3-0.19 "
            "runtime/zero/partition_parameters.py, runtime/zero/parameter_offload.py give "
            "parameters and modules"
        ),
        message="ZeRO-3 does not manage a parameter or module: it was created or replaced after `deepspeed.initialize`, or outside of `deepspeed.zero.Init`",
        hint="create all parameters before `deepspeed.initialize`, and change their data in place inside `deepspeed.zero.GatheredParameters`",
        examples=(
            "AttributeError: 'Parameter' object has no attribute 'ds_numel'",
            "AttributeError: 'Linear' object has no attribute 'ds_grads_remaining'",
            "AttributeError: 'NoneType' object has no attribute 'reserve_partitioned_swap_space'",
            "has no attribute 'partition_numel'",
            "has no attribute 'all_gather'",
            "has no attribute 'convert_to_zero_parameters'",
        ),
        not_examples=("AttributeError: 'Namespace' object has no attribute 'ds_config'",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Error: (?:world[ _]size|World [Ss]ize)\b.{0,60}(?:\bbe|\bnot|n't) (?:evenly )?divisible by",
        source="colossalai 0.3-0.5 booster/plugin; programs' own checks",
        message="The number of ranks is not divisible by the parallel sizes",
        hint="choose parallel sizes whose product divides the number of ranks, or start that many ranks",
        examples=(
            "AssertionError: World size 8 is not divisible by tp_size 1 * pp_size 3",
            "ValueError: world_size (6) must be divisible by tp * pp",
            "ValueError: world size isn't divisible by 4",
        ),
        not_examples=("ValueError: world size 8 and pp_size 3",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"Error: (?!world[ _]size|World [Ss]ize).{0,160}\b(?:be|not|n't) (?:evenly )?divisible by (?:the )?(?:mp_size|tp_size|(?:tensor|model|sequence|context)[ _-]?(?:model[ _-])?parallel|(?:world|mesh)[ _]size)",
        source=(
            "deepspeed 0.5-0.19 module_inject/replace_module.py, ops/transformer/inference; "
            "megatron_core 0.4-0.16 utils.py; programs' own checks"
        ),
        message="A dimension of the model is not divisible by the size of tensor parallelism",
        hint="choose a size of tensor parallelism that divides the heads, the hidden size and the vocabulary",
        examples=(
            "AssertionError: num_heads (13) must be divisible by mp_size (2)",
            "AssertionError: Hidden dim must be divisible by world size",
            "ValueError: the vocabulary must be divisible by tensor parallel size",
            "RuntimeError: not divisible by mp_size",
            "RuntimeError: n't divisible by mp_size",
            "RuntimeError: be divisible by tp_size",
        ),
        not_examples=(
            "ValueError: hidden size 10 is not divisible by the number of heads 3",
            "AssertionError: World size 8 is not divisible by tp_size 1 * pp_size 3",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"(?:max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)",
        source=(
            "python 3.3-3.14 Python/bltinmodule.c, for deepspeed 0.3-0.19 runtime/zero/stage3.py"
        ),
        examples=(
            "ValueError: max() arg is an empty sequence",
            "ValueError: max() iterable argument is empty",
            "min() arg is an empty sequence",
        ),
        level=Level.WEAK,
        near=("deepspeed/runtime/zero", "initialize_optimizer_states", "_create_fp16_partitions"),
    ),
)
