"""What the error index asks of a reader is something that the reader can do.

DeepSpeed chooses many sizes, types and groups itself, or has checked them before: then the answer
is the call of one's own that breaks the check, or `internal` where there is none.
"""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))


@pytest.mark.parametrize(
    ("file", "function", "line", "said"),
    [
        pytest.param(
            "deepspeed/compile/passes/sp_compile.py",
            "apply_autosp",
            "AssertionError: Insufficient device count for mesh size",
            None,
            id="a data-parallel size that DeepSpeed computes",
        ),
        pytest.param(
            "deepspeed/utils/groups.py",
            "_get_max_expert_size",
            "AssertionError: Warning! Process group not initialized",
            None,
            id="a group that always exists",
        ),
        pytest.param(
            "deepspeed/runtime/zero/stage_1_and_2.py",
            "_configure_moe_settings",
            "AssertionError: Expert parallel group should be configured with MoE",
            None,
            id="a group that the engine passes",
        ),
        pytest.param(
            "deepspeed/runtime/zero/stage3.py",
            "_create_fp16_partitions_with_defragmentation",
            "AssertionError: Unexpected that largest partition is empty",
            None,
            id="a list that is never empty",
        ),
        pytest.param(
            "deepspeed/runtime/bf16_optimizer.py",
            "__init__",
            "AssertionError: BF16Optimizer: Unsupported gradient accumulation data type: torch.float16",
            None,
            id="a type that decides between optimizers before",
        ),
        pytest.param(
            "deepspeed/runtime/data_pipeline/data_sampling/variable_batch_size_and_lr.py",
            "batch_by_seqlens",
            "AssertionError: size of microbatch exceeds max tokens",
            None,
            id="batches that were made to fit",
        ),
        pytest.param(
            "deepspeed/runtime/pipe/engine.py",
            "_recv_tensor_meta",
            "NotImplementedError: Could not receive type <class 'int'>",
            None,
            id="what the sending stage has checked",
        ),
        pytest.param(
            "deepspeed/ops/op_builder/npu/quantizer.py",
            "swizzle_quant",
            "AssertionError: partitions must split evenly into pipeline slices",
            None,
            id="a number of slices that is always 1",
        ),
        pytest.param(
            "deepspeed/ops/op_builder/npu/quantizer.py",
            "quantized_reduction",
            "AssertionError: sum must split into out_groups",
            "Pass `out_groups` that divides the bytes of one rank's tensor in your own call",
            id="groups that ZeRO passes itself",
        ),
        pytest.param(
            "deepspeed/ops/op_builder/npu/quantizer.py",
            "dequantize_int8_to_half_experimental",
            "NotImplementedError: experimental fp_quantizer path is not needed for hpZ",
            "Set `group_dim` of `weight_quantization` to another dimension than the last",
            id="a kernel of another setting",
        ),
        pytest.param(
            "deepspeed/inference/v2/ragged/kv_cache.py",
            "__init__",
            "NotImplementedError: Offloading of KV-caches is not yet supported.",
            "Set `offload` of `state_manager` to false",
            id="the setting that a constructor is given",
        ),
        pytest.param(
            "deepspeed/inference/v2/kernels/ragged_ops/moe_gather/moe_gather.py",
            "__init__",
            "RuntimeError: Unsupported dtype torch.float32",
            "Use fp16 or bf16 in your own FastGen model class or call",
            id="a type that DeepSpeed's models refuse before",
        ),
        pytest.param(
            "deepspeed/inference/v2/kernels/core_ops/cuda_linear/cuda_linear.py",
            "__call__",
            "ValueError: The out and in channel should be multiple of 256 and 64 respectively.",
            "Leave `quantization_mode` unset for this model",
            id="dimensions of one form of quantization",
        ),
        pytest.param(
            "deepspeed/utils/groups.py",
            "_init_tp_groups_with_new_group",
            "AssertionError: data_parallel_size (3) * tensor_model_parallel_size (2) must equal"
            " world_size (8)",
            "Leave `data_parallel_size` out of your own call of `_init_tp_mesh_device`",
            id="a size that DeepSpeed leaves out",
        ),
        pytest.param(
            "deepspeed/moe/ep_router.py",
            "forward",
            "NotImplementedError: Unknown score function: tanh",
            "Create your own router with the `score_func` `softmax` or `sigmoid`",
            id="a key that was checked before",
        ),
        pytest.param(
            "deepspeed/runtime/bf16_optimizer.py",
            "__init__",
            "ValueError: BF16 Muon currently requires FP32 accumulation, dense DP and eager execution",
            "Use ZeRO stage 2, or another optimizer: the bf16 optimizer of ZeRO stage 1",
            id="an mpu that is one of the reasons",
        ),
        pytest.param(
            "deepspeed/module_inject/replace_module.py",
            "generic_injection",
            "ValueError: Generic injection only supported with FP16",
            "Pass `dtype=torch.half` to `init_inference`",
            id="an argument, not the model's type",
        ),
        pytest.param(
            "deepspeed/inference/v2/model_implementations/sharding/utils.py",
            "get_shard_endpoints",
            "AssertionError: Dimension size must be divisible by granularity",
            "Use another inference engine for this model: DeepSpeed inference (FastGen) needs",
            id="sizes of the reader's model",
        ),
        pytest.param(
            "deepspeed/inference/v2/allocator.py",
            "empty_from",
            "ValueError: Cannot create empty tensor with size 0",
            "Pass at least one token to `put` of the inference engine",
            id="an empty batch of the reader",
        ),
        pytest.param(
            "deepspeed/utils/timer.py",
            "start",
            "AssertionError: fwd_microstep timer has already been started",
            "Stop this timer before you start it again",
            id="a timer that an exception left running",
        ),
        pytest.param(
            "deepspeed/inference/v2/model_implementations/layer_container_base.py",
            "get_dep_name_target",
            "ValueError: Multiple targets matched for dependency mlp.w: ['mlp_1', 'mlp_2']",
            "Correct `PARAM_MAPPING` of your own layer container",
            id="a mapping of the reader's own",
        ),
        pytest.param(
            "deepspeed/module_inject/auto_tp_model_utils.py",
            "_head_shard",
            "ValueError: Head shard sizes [3, 3] do not partition 7 heads across 2 tensor-parallel"
            " ranks.",
            None,
            id="sizes that DeepSpeed computes",
        ),
        pytest.param(
            "deepspeed/elasticity/elasticity.py",
            "_compatible_ds_version_check",
            "deepspeed.elasticity.config.ElasticityError: Target deepspeed version of 0.2.0 is not"
            " compatible with minimum version 0.3.8 supporting elasticity.",
            "Pass 0.3.8 or newer as `target_deepspeed_version` to your own call",
            id="a release that no upgrade changes",
        ),
        pytest.param(
            "deepspeed/elasticity/elasticity.py",
            "compute_elastic_config",
            "ValueError: Expected ds_config to be a dictionary but received a <class 'str'>,"
            " containing: ds.json",
            "Pass `ds_config` to your own call of `compute_elastic_config` as a dictionary",
            id="a path that the function does not take",
        ),
        pytest.param(
            "deepspeed/autotuning/scheduler.py",
            "run_experiment",
            "AssertionError: must provide launcher args",
            None,
            id="arguments that the autotuner writes itself",
        ),
        pytest.param(
            "deepspeed/module_inject/auto_ep_folding.py",
            "validate_folding_global",
            "ValueError: mpu pipeline parallel world size (2) conflicts with pp_size=1.",
            "Give your own `mpu` the method `get_pipeline_model_parallel_world_size`",
            id="a size that is taken from the mpu itself",
        ),
        pytest.param(
            "transformers/trainer_optimizer.py",
            "_get_schedule_free_optimizer",
            "ValueError: Invalid schedulefree optimizer",
            None,
            id="names of which each has a branch",
        ),
        pytest.param(
            "accelerate/data_loader.py",
            "__iter__",
            "ValueError: Batch does not contain any data (`None`). At the end of all iterable data"
            " available before expected stop iteration.",
            "Pass a data loader that has at least one batch",
            id="a data loader that is empty",
        ),
        pytest.param(
            "accelerate/utils/modeling.py",
            "set_module_tensor_to_device",
            "ValueError: weight is on the meta device, we need a `value` to put in on cuda:0.",
            "Load a checkpoint that has this weight",
            id="a weight that no checkpoint gave",
        ),
        pytest.param(
            "deepspeed/checkpoint/autoep_universal.py",
            "get_autoep_zero12_fp32_fallback_param_names",
            "RuntimeError: AutoEP expert parameter model.layers.0.mlp.experts.w1 is missing from"
            " checkpoint parameter shapes.",
            "Train the experts, and pass them to the optimizer",
            id="experts that the optimizer does not have",
        ),
        pytest.param(
            "deepspeed/ops/transformer/inference/triton/matmul_ext.py",
            "_context_4d_matmul",
            "AssertionError: inner-product dimension K should be larger than 1",
            "Pass sequences of more than one token, or set `use_triton` to false",
            id="a sequence of one token",
        ),
        pytest.param(
            "deepspeed/compile/backend.py",
            "backend_fn",
            "AssertionError: All param inputs should have param_id",
            "Train all parameters of the model, or use DeepCompile with ZeRO stage 3",
            id="frozen parameters under DeepCompile",
        ),
        pytest.param(
            "deepspeed/runtime/engine.py",
            "_zero3_consolidated_16bit_state_dict",
            "ValueError: this function requires ZeRO-3 mode",
            "Call `engine.module.state_dict()` or `save_16bit_model` instead",
            id="weights that nothing partitions",
        ),
        pytest.param(
            "deepspeed/launcher/launcher_helper.py",
            "env_mapping",
            "OSError: rank number is not in current env!",
            "Put the `mpirun` of MPICH first in PATH",
            id="the mpirun of another MPI",
        ),
        pytest.param(
            "deepspeed/utils/tensor_fragment.py",
            "get_hp_fragment_mapping",
            "AssertionError: fragment start 12 should be < fragment_end 12",
            "A tensor that is written to the checkpoint, or a parameter of the model, has no elements",
            id="a parameter without elements",
        ),
        pytest.param(
            "deepspeed/runtime/pipe/p2p.py",
            "send",
            "AssertionError: Doesn't support async_op true",
            "Leave `async_op=True` out of your call of `send` or `recv`",
            id="an asynchronous send between the stages of a pipeline",
        ),
        pytest.param(
            "transformers/tokenization_utils_base.py",
            "__init__",
            "ValueError: Padding side should be selected between 'right' and 'left', current"
            " value: middle",
            "Set `padding_side` to `left` or `right`, or if that is right, `truncation_side`",
            id="a side of truncation that older releases call one of padding",
        ),
    ],
)
def test_an_answer_asks_for_what_the_reader_can_do(
    file: str, function: str, line: str, said: str | None
) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/{file}", line 7, in {function}\n    raise\n{line}\n'
    )
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert not found.causes
    assert found.explained is not None
    assert (found.explained.kind == "internal") is (said is None)
    assert said is None or found.explained.text.startswith(said)
