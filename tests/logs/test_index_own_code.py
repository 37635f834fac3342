"""A check that only a reader's own call, class, config or checkpoint breaks is no internal one.

The reader of such an error cannot do anything with "report it to the authors". Of a check that two
conditions above it have narrowed down, the answer is about what is left.
"""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(file: str, function: str, line: str) -> Diagnosis:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/{file}", line 7, in {function}\n    raise\n{line}\n'
    )
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("file", "function", "line", "said"),
    [
        pytest.param(
            "deepspeed/inference/v2/modules/implementations/pre_norm/cuda_pre_rms.py",
            "forward",
            "AssertionError: Beta is not supported for RMSNorm",
            "Pass no `beta` to the RMSNorm of your FastGen model class",
            id="a model class of one's own",
        ),
        pytest.param(
            "deepspeed/checkpoint/affine.py",
            "validate",
            "AssertionError: Rank 3 holds a shard of 8 elements but its pieces account for 6.",
            "Save the checkpoint again or convert another one",
            id="a layout that is read from a file",
        ),
        pytest.param(
            "deepspeed/runtime/utils.py",
            "get_global_norm_of_tensors",
            "AssertionError: expected list of only tensors",
            "Pass a list of tensors to your call of `get_global_norm_of_tensors`",
            id="a function that scripts call",
        ),
        pytest.param(
            "transformers/utils/chat_template_utils.py",
            "activate_tracker",
            "ValueError: AssistantTracker should not be reused before closed",
            "Do not render one chat template in several threads at once",
            id="threads",
        ),
        pytest.param(
            "transformers/trainer_pt_utils.py",
            "__iter__",
            "AssertionError: Indices length 6 and total size 16 mismatched",
            "Use a dataset with at least half as many samples",
            id="a dataset that is too small for the sampler",
        ),
        pytest.param(
            "accelerate/utils/fsdp_utils.py",
            "fsdp2_switch_optimizer_parameters",
            "KeyError: A parameter in the optimizer couldn't be switched to its sharded version. "
            "This breaks the training. Please raise an issue on GitHub.",
            "Pass the optimizer to `prepare` together with the model whose parameters it has",
            id="an optimizer of another model",
        ),
        pytest.param(
            "deepspeed/compile/profilers/graph_profile.py",
            "_abort_if_any_rank_failed",
            "ProfileAborted: profiling failed on another rank",
            "Look for another error",
            id="an error that the product catches",
        ),
        pytest.param(
            "deepspeed/sequence/cross_entropy.py",
            "_set_vocab_parallel_loss",
            "ValueError: Unable to install the vocab-parallel loss_function hook; "
            "use gather_output=True",
            "Set `vocab_parallel_lm_head` to false",
            id="an option that the message names and another one overrides",
        ),
        pytest.param(
            "deepspeed/runtime/sequence_parallel/ulysses_sp.py",
            "forward",
            "AssertionError: The context shape torch.Size([8, 1, 64]) is not of the expected shape "
            "torch.Size([8, 1, 128])",
            "Use another `core_attn_implementation`",
            id="lengths that were checked above",
        ),
        pytest.param(
            "deepspeed/module_inject/auto_ep.py",
            "ep_parser",
            "ValueError: Config num_experts=8 mismatches router weight shape (64, 128) "
            "(expected 64) in layer 'model.layers.0.mlp'",
            "Set `preset_model`, or the router's name",
            id="shapes that come from the module, not from a file",
        ),
        pytest.param(
            "accelerate/utils/dataclasses.py",
            "set_mixed_precision",
            "ValueError: Unknown mixed precision value: fp8",
            "Set `mixed_precision` to `fp16` or `bf16` with FSDP",
            id="values that this function takes, not those of `Accelerator`",
        ),
        pytest.param(
            "deepspeed/ops/fp_quantizer/quantize.py",
            "quantize",
            "AssertionError: meta tensor is only supported with q_bit=8",
            "Set `q_bits` to 8, or leave `return_meta_tensor` out",
            id="an argument of one's own call",
        ),
        pytest.param(
            "transformers/data/data_collator.py",
            "__call__",
            "ValueError: DataCollatorWithFlattening received a batch where every example is empty.",
            "Remove the samples without tokens from the dataset",
            id="one's own dataset",
        ),
        pytest.param(
            "deepspeed/inference/v2/model_implementations/inference_policy_base.py",
            "__init__",
            "ValueError: Either checkpoint_engine or ds_checkpoint_path must be provided.",
            "Pass either `checkpoint_engine` or `inf_checkpoint_path`",
            id="an argument that the message calls by another name",
        ),
        pytest.param(
            "deepspeed/inference/v2/model_implementations/layer_container_base.py",
            "is_initialized",
            "ValueError: Layer should be finalized, but word_emb is neither Tensor or None",
            "Return a tensor from `finalize`",
            id="a parameter class of one's own, in an old release",
        ),
    ],
)
def test_the_answer_is_what_its_reader_can_change(
    file: str, function: str, line: str, said: str
) -> None:
    found = read(file, function, line)
    assert not found.causes
    assert found.explained is not None
    assert found.explained.kind == "refusal"
    assert found.explained.text.startswith(said)


@pytest.mark.parametrize(
    ("file", "function", "line", "said"),
    [
        pytest.param(
            "deepspeed/runtime/engine.py",
            "__init__",
            "AssertionError: Elasticity is not currently supported with model parallelism.",
            "set it to the number of GPUs of a node",
            id="a combination that works with other numbers",
        ),
        pytest.param(
            "deepspeed/runtime/pipe/engine.py",
            "__init__",
            "AssertionError: Elasticity is not currently supported with pipeline parallelism.",
            "set it to the number of GPUs of a node",
            id="a combination that works with other numbers, in a pipeline",
        ),
        pytest.param(
            "deepspeed/module_inject/auto_ep_layer.py",
            "set_deepspeed_parallelism",
            'ValueError: comm_backend="deepep" does not support folded tensor parallelism '
            "(expert_tensor_parallel_size=2). Set expert_tensor_parallel_size to 1, or "
            'comm_backend to "comm".',
            "set `autotp_size` to 1",
            id="an option that has its only value already",
        ),
    ],
)
def test_a_combination_is_explained_by_what_decides_it(
    file: str, function: str, line: str, said: str
) -> None:
    [cause] = read(file, function, line).causes
    assert cause.condition == "ds-config-unsupported-combination"
    assert cause.hint.startswith(said)


def test_gpus_that_a_hostfile_lacks_are_not_invisible() -> None:
    found = read(
        "deepspeed/autotuning/autotuner.py",
        "_get_resource_manager",
        "AssertionError: no gpu is available",
    )
    [cause] = found.causes
    assert cause.condition == "hostfile-or-ssh-problem"
    assert cause.hint == "give each host the number of its GPUs as `slots`"
