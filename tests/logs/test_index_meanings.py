"""What the answers of single messages say, where their condition's title says something else."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))


def log(file: str, function: str, line: str, package: str = "deepspeed") -> str:
    return (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/{package}/{file}", line 7, in {function}\n'
        f"    raise\n{line}\n"
    )


@pytest.mark.parametrize(
    ("file", "function", "line", "said"),
    [
        pytest.param(
            "elasticity/config.py",
            "__init__",
            (
                "deepspeed.elasticity.config.ElasticityConfigError: Model-Parallel size cannot be less"
                " than 1, given model-parallel size: 0"
            ),
            "Set `model_parallel_size` of the section `elasticity` to 1 or more",
            id="sizes of an elastic run",
        ),
        pytest.param(
            "runtime/zero/stage_1_and_2.py",
            "_restore_step_from_elastic_checkpoint",
            "AssertionError: State dicts of all partitions must have the same step value",
            "The shards of the checkpoint are from different steps",
            id="shards of different steps",
        ),
        pytest.param(
            "runtime/engine.py",
            "_load_zero_checkpoint",
            "AssertionError: Only stage3 support for pipeline checkpoint loading",
            "`pipeline_loading_checkpoint` needs ZeRO stage 3",
            id="a checkpoint of a pipeline",
        ),
        pytest.param(
            "runtime/zero/stage3.py",
            "set_local_hp_param",
            "AssertionError:  The parameter does not contain the partitioned copy of the tensor.",
            "Pass a parameter of a ZeRO-3 model: this one is not partitioned",
            id="a parameter that is not partitioned",
        ),
        pytest.param(
            "ops/triton_ops/fused_rotary_pos_emb.py",
            "assert_supported",
            "RuntimeError: fused RoPE needs q, k, cos and sin in one dtype, got torch.bfloat16 and"
            " torch.float32.",
            "Convert cos and sin to the type of q and k: rotary embeddings are often computed in fp32",
            id="types of a fused kernel's tensors",
        ),
        pytest.param(
            "runtime/activation_checkpointing/checkpointing.py",
            "fork",
            "Exception: cuda rng state model-parallel-rng is not added",
            "Call `model_parallel_cuda_manual_seed` of DeepSpeed's activation checkpointing before"
            " the first checkpointed layer: it adds this state",
            id="a random-number state that was not added",
        ),
        pytest.param(
            "launcher/launcher_helper.py",
            "env_mapping",
            "OSError: rank number doesn't match!",
            "Unset PMIX_RANK and PMI_RANK before starting: both are set, to different ranks, so one"
            " of them is left from another launcher",
            id="ranks of two MPI launchers",
        ),
        pytest.param(
            "runtime/zero/stage3.py",
            "load_hp_checkpoint_state_from_checkpoint_dir_stage3",
            "AssertionError: /ckpt/zero/optimizer_state.pt containing optimizer global state is"
            " missing! Cannot proceed.",
            "The universal checkpoint has no `zero/optimizer_state.pt`",
            id="a universal checkpoint without the optimizer's state",
        ),
        pytest.param(
            "runtime/zero/partition_parameters.py",
            "_validate_remote_device",
            "AssertionError: 'device' in DeepSpeed Config cannot be OffloadDeviceEnum.nvme if remote"
            " device is None.",
            "`offload_param` of the config has a different device than the `remote_device` of"
            " `zero.Init`",
            id="devices of the config and of zero.Init",
        ),
        pytest.param(
            "launcher/runner.py",
            "main",
            "RuntimeError: launcher 'pdsh' not installed.",
            "The launcher `pdsh` is not installed",
            id="a launcher that is not installed",
        ),
        pytest.param(
            "inference/v2/model_implementations/layer_container_base.py",
            "set_dependency",
            'ValueError: Could not find a mapping for dependency "self_attn.rotary_emb.inv_freq".'
            " Check that it is included in the ``MAPPING_PARAMS``. See docstring for more on"
            " ``MAPPING_PARAMS``",
            "Use an unquantized checkpoint of an architecture that DeepSpeed inference (FastGen)"
            " knows: a weight of this one has no place in its model",
            id="a weight that FastGen's model does not have",
        ),
        pytest.param(
            "inference/v2/model_implementations/layer_container_base.py",
            "__new__",
            "ValueError: Cannot mix ParametrizedLists and Tensors in a single mapping rule.",
            "Correct `PARAM_MAPPING` of your own layer container: one rule maps to lists of"
            " parameters or to single ones, not to both",
            id="a rule that only one's own container breaks",
        ),
        pytest.param(
            "runtime/zenflow/engine_stage3.py",
            "wait_last_update_and_copy",
            "AssertionError: Optimizer process did not finish stepping correctly.",
            None,
            id="a check that cannot fail",
        ),
        pytest.param(
            "utils/zero_to_fp32.py",
            "parse_optim_states",
            "ValueError: /ckpt/global_step9/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt is not a"
            " zero checkpoint",
            "The optimizer states of this file are not of ZeRO: bf16 with fp32 gradients and ZeRO"
            " stage 1 (`BF16_Optimizer`), or MoE without ZeRO",
            id="optimizer states that are not of ZeRO",
        ),
        pytest.param(
            "utils/zero_to_fp32.py",
            "parse_model_states",
            "ValueError: /ckpt/global_step9/layer_0_expert_0_mp_rank_00_model_states.pt is not a"
            " model state checkpoint",
            "A file of the folder holds no model states of an engine, such as one of an expert:"
            " `zero_to_fp32` cannot join the experts of DeepSpeed's MoE layers",
            id="the file of an expert",
        ),
        pytest.param(
            "ops/op_builder/builder.py",
            "installed_cuda_version",
            "deepspeed.ops.op_builder.builder.MissingCUDAException: Unable to run"
            " /usr/local/cuda/bin/nvcc, unable to compile CUDA op(s): [Errno 2] No such file or"
            " directory: '/usr/local/cuda/bin/nvcc'",
            "The `nvcc` of CUDA_HOME cannot be run: it does not exist in an installation of the"
            " CUDA runtime alone, or is broken",
            id="no nvcc in CUDA_HOME",
        ),
        pytest.param(
            "inference/engine.py",
            "__init__",
            "ValueError: Type fp16 is not supported.",
            "fp16 is set, or is the default of `init_inference`, but this device does not support it",
            id="the default type of init_inference",
        ),
        pytest.param(
            "runtime/engine.py",
            "buffered_allreduce_fallback",
            "AssertionError: attempting to reduce grads in unsupported way w.r.t. MoE",
            "Call `buffered_allreduce_fallback` without `grads` for a model with MoE layers: it then"
            " reduces the gradients of the experts among their own ranks",
            id="gradients that only the script's own call passes",
        ),
        pytest.param(
            "inference/v2/ragged/blocked_allocator.py",
            "__init__",
            "ValueError: Blocked KV-cache must have at least 1 block, provided 0",
            None,
            id="a number of blocks that an earlier check ensures",
        ),
        pytest.param(
            "accelerator/real_accelerator.py",
            "get_accelerator",
            "AssertionError: XPU_Accelerator requires an intel_extension_for_pytorch that supports"
            " XPU.",
            "Install an `intel_extension_for_pytorch` built for XPU: the installed one is for the CPU"
            " alone; or set DS_ACCELERATOR to the device that the machine has",
            id="an extension without XPU",
        ),
        pytest.param(
            "ops/op_builder/npu/quantizer.py",
            "swizzle_quant",
            "AssertionError: groups must cover all partitions",
            "Switch `zero_quantized_gradients` off, or use another number of ranks: DeepSpeed takes"
            " the number of groups from the shape of a weight, and the ranks do not divide it",
            id="groups that DeepSpeed chooses itself",
        ),
        pytest.param(
            "module_inject/auto_ep_config.py",
            "validate_autoep_config",
            "ValueError: autoep_size=8 must divide the stage size (world_size=8 / pp_size=2 = 4)."
            " Valid autoep_size values: [1, 2, 4]",
            "Set `autoep_size` to one of the values that the message lists, which divide the ranks of"
            " a pipeline stage; it has to divide the number of experts as well",
            id="experts of a pipeline stage",
        ),
        pytest.param(
            "runtime/engine.py",
            "_backward_prologue",
            "AssertionError: Eigenvalue is not supported with non-scalar backward",
            "`eigenvalue` does not work in this DeepSpeed release, whatever the loss: each backward"
            " pass is refused",
            id="a check that a scalar loss does not pass either",
        ),
        pytest.param(
            "module_inject/fusedqkv_utils.py",
            "_codegen_type_transpose",
            "AssertionError: codgen autoTP requires num_kv_heads % (mp_size*codegen_mp_num) == 0",
            "Choose a tensor-parallel size that, times 4, divides the number of heads: CodeGen packs"
            " its attention weights in 4 blocks",
            id="a size with a factor of the model",
        ),
        pytest.param(
            "runtime/sequence_parallel/ulysses_sp.py",
            "forward",
            "ValueError: unknown value none: valid values are: none/mean/sum",
            'Pass `output_reduction` as None, `"mean"` or `"sum"` to the tiled function',
            id="a None that the message writes as a word",
        ),
        pytest.param(
            "moe/utils.py",
            "split_params_into_different_moe_groups_for_optimizer",
            "ValueError: Unknown param group type of <class 'generator'>",
            "Pass the parameter groups to `split_params_into_different_moe_groups_for_optimizer` as a"
            " dict, or as a list of dicts, each with `params` and a `name`",
            id="groups that may not be parameters",
        ),
    ],
)
def test_a_message_is_told_for_what_it_means(
    file: str, function: str, line: str, said: str | None
) -> None:
    found = diagnose([Source(name="log", data=log(file, function, line).encode())], KNOWN)
    if said is None:
        assert not found.causes
        assert found.explained is not None
        assert found.explained.kind == "internal"
        return
    told = [one.message for one in found.causes]
    told += [found.explained.text] if found.explained else []
    assert told == [said]


@pytest.mark.parametrize(
    ("file", "function", "line", "said"),
    [
        pytest.param(
            "torch/cuda/_utils.py",
            "_get_device_index",
            "ValueError: Expected a cuda device, but got: cpu",
            "Pass a CUDA device",
            id="a device of the CPU",
        ),
        pytest.param(
            "torch/distributed/elastic/rendezvous/etcd_rendezvous.py",
            "confirm_membership",
            (
                "torch.distributed.elastic.rendezvous.etcd_rendezvous.EtcdRendezvousRetryImmediately:"
                " Rendezvous no longer frozen, before we confirmed. Must join next one"
            ),
            "Look for a later error if the job ended",
            id="a race that torch repeats",
        ),
        pytest.param(
            "torch/distributed/distributed_c10d.py",
            "_new_process_group_helper",
            "AssertionError: Unknown c10d backend type HCCL",
            "Choose a backend that this torch has",
            id="a backend that nothing has registered",
        ),
        pytest.param(
            "torch/distributed/distributed_c10d.py",
            "new_subgroups",
            "ValueError: The arg 'group_size' (0) must be positive",
            "Set `group_size` to 1 or more",
            id="groups of no rank",
        ),
        pytest.param(
            "torch/distributed/distributed_c10d.py",
            "recv_object_list",
            "AssertionError: Mismatch in return ranks for object sizes and objects.",
            "Pass `src` to `recv_object_list`",
            id="an object from two ranks",
        ),
        pytest.param(
            "torch/multiprocessing/reductions.py",
            "reduce_tensor",
            (
                "RuntimeError: Cowardly refusing to serialize non-leaf tensor which requires_grad,"
                " since autograd does not support crossing process boundaries.  If you just want to"
                " transfer the data, call detach() on the tensor before serializing (e.g., putting"
                " it on the queue)."
            ),
            "Detach the tensor",
            id="a part of torch that has the name of one of Python",
        ),
        pytest.param(
            "bitsandbytes/functional.py",
            "_convert_weight_packed_for_cpu_inverse",
            "AssertionError: packed_weight should be [N, K/2]",
            None,
            id="what bitsandbytes packed itself",
        ),
        pytest.param(
            "accelerate/tracking.py",
            "filter_trackers",
            "ValueError: Logging with `tensorboard` requires a `logging_dir` to be passed in.",
            "Pass `project_dir` to `Accelerator`, or `logging_dir` to its `ProjectConfiguration`",
            id="an argument that Accelerator does not take",
        ),
        pytest.param(
            "accelerate/accelerator.py",
            "save_state",
            (
                "ValueError: Checkpoint directory /ckpt/checkpoints/checkpoint_0 (0) already exists."
                " Please manually override `self.save_iteration` with what iteration to start with."
            ),
            "Pass as `iteration` to `ProjectConfiguration` a number that no checkpoint has",
            id="a property that cannot be set",
        ),
        pytest.param(
            "transformers/trainer_utils.py",
            "derive_stage",
            (
                "ValueError: was called from my_loop, but only expect to be called from one of"
                " dict_keys(['__init__', 'train', '_inner_training_loop', 'evaluate', 'predict'])"
            ),
            "Set `skip_memory_metrics` to true",
            id="the memory tracker in a method of a subclass",
        ),
    ],
)
def test_a_message_of_another_product_is_told_for_what_it_means(
    file: str, function: str, line: str, said: str | None
) -> None:
    package, _, rest = file.partition("/")
    text = log(rest, function, line, package)
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert not found.causes
    assert found.explained is not None
    assert (found.explained.kind == "internal") is (said is None)
    assert said is None or found.explained.text.startswith(said)


def test_bf16_that_a_device_lacks_is_no_missing_gpu() -> None:
    """Transformers raises it on no CPU: a run without a GPU passes that check."""
    text = (
        'Traceback (most recent call last):\n  File "/x/site-packages/transformers/training_args.py"'
        ", line 1505, in __post_init__\n    raise ValueError(\n"
        "ValueError: BF16 Mixed precision training with AMP (`--bf16`) and BF16 half precision"
        " evaluation (`--bf16_full_eval`) can only be used on CUDA, XPU (with IPEX), NPU or"
        " CPU/TPU/NeuronCore devices.\n"
    )
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert not found.causes
    assert found.explained is not None
    assert found.explained.text.startswith("Switch `bf16` and `bf16_full_eval` off")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "ValueError: Invalid `dtype` passed to `GRPOConfig`. Expected either 'auto' or a string"
            " representing a `torch.dtype` (e.g., 'float32'), but got 3.",
            id="expected values",
        ),
        pytest.param(
            "ValueError: `--half_precision_backend apex`: GPU bf16 is not supported by apex.",
            id="an option of another library",
        ),
    ],
)
def test_what_a_message_only_lists_is_no_cause(line: str) -> None:
    text = log("other/library.py", "check", line)
    assert not diagnose([Source(name="log", data=text.encode())], KNOWN).causes


def test_common_words_name_no_condition_of_deepspeeds_config() -> None:
    found = diagnose([Source("log", data=b"ValueError: num_workers must be an integer\n")], KNOWN)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is None
