"""Messages of the libraries of a training job: what answers them, and conditions that they name."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.error_lookup import REFUSAL
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


def traced(file: str, function: str, line: str) -> str:
    return (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/{file}", line 7, in {function}\n    raise\n{line}\n'
    )


@pytest.mark.parametrize(
    ("file", "function", "line", "answer"),
    [
        pytest.param(
            "transformers/hf_argparser.py",
            "parse_dict",
            "ValueError: Some keys are not used by the HfArgumentParser: ['x']",
            "the keys that the message lists",
            id="transformers: unknown keys",
        ),
        pytest.param(
            "datasets/table.py",
            "cast_table_to_schema",
            "datasets.table.CastError: Couldn't cast\nid: string\ntext: string\nto\n"
            "{'id': Value(dtype='string', id=None)}\nbecause column names don't match",
            "the same columns",
            id="datasets: columns that differ",
        ),
        pytest.param(
            "datasets/builder.py",
            "_prepare_split_single",
            "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
            "the exception above it",
            id="datasets: what failed is above",
        ),
        pytest.param(
            "datasets/builder.py",
            "_create_builder_config",
            "ValueError: BuilderConfig 'mian' not found. Available: ['main', 'socratic']",
            "configurations that the message lists",
            id="datasets: a configuration",
        ),
        pytest.param(
            "datasets/arrow_dataset.py",
            "map",
            "ValueError: Column to remove ['txt'] not in the dataset. Current columns in the dataset: ['text']",
            "a column that the dataset has",
            id="datasets: a column",
        ),
        pytest.param(
            "datasets/load.py",
            "dataset_module_factory",
            "RuntimeError: Dataset scripts are no longer supported, but found wiki.py",
            "without a loading script",
            id="datasets: a script",
        ),
        pytest.param(
            "swift/trainers/rlhf_trainer/grpo_trainer.py",
            "_prepare_rewards",
            "ValueError: Number of reward weights (3) must match number of reward functions (2)",
            "as many entries as there are reward functions",
            id="ms-swift: what it copied from trl",
        ),
        pytest.param(
            "swift/trainers/mixin.py",
            "get_train_dataloader",
            "ValueError: Trainer: training requires a train_dataset.",
            "`train_dataset`",
            id="ms-swift: what several products say",
        ),
        pytest.param(
            "flashinfer/jit/core.py",
            "check_cuda_arch",
            "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
            "compute capability 7.5 or newer",
            id="flashinfer: the GPU",
        ),
        pytest.param(
            "flashinfer/utils.py",
            "wrapper",
            "flashinfer.utils.BackendSupportedError: mm_fp4 does not support backend 'cutlass' with capability 90",
            "another backend of flashinfer",
            id="flashinfer: a back end",
        ),
        pytest.param(
            "flash_attn/flash_attn_interface.py",
            "_flash_attn_forward",
            "RuntimeError: FlashAttention only support fp16 and bf16 data type",
            "fp16 or bf16",
            id="FlashAttention: precision",
        ),
        pytest.param(
            "flash_attn/flash_attn_interface.py",
            "_flash_attn_forward",
            "RuntimeError: FlashAttention forward only supports head dimension at most 256",
            "another attention implementation",
            id="FlashAttention: size of a head",
        ),
        pytest.param(
            "triton/backends/nvidia/driver.py",
            "libcuda_dirs",
            "AssertionError: libcuda.so cannot found!",
            "libcuda.so.1",
            id="Triton: libcuda",
        ),
        pytest.param(
            "bitsandbytes/functional.py",
            "is_on_gpu",
            (
                "RuntimeError: Input tensors need to be on the same GPU, but found the following "
                "tensor and device combinations: []"
            ),
            "to one GPU",
            id="bitsandbytes: two GPUs",
        ),
        pytest.param(
            "torch/distributed/distributed_c10d.py",
            "all_reduce",
            "RuntimeError: No backend type associated with device type cpu",
            "a backend for",
            id="torch: no backend for a device",
        ),
        pytest.param(
            "torch/distributed/distributed_c10d.py",
            "all_gather_into_tensor",
            ("ValueError: output tensor size must be equal to world_size times input tensor size"),
            "as the group has ranks",
            id="torch: size of a gathered tensor",
        ),
        pytest.param(
            "torch/distributed/utils.py",
            "_verify_param_shape_across_processes",
            (
                "RuntimeError: [1]: params[0] in this process with sizes [10, 5] appears not to "
                "match sizes of the same param in process 0."
            ),
            "the same model on every rank",
            id="torch: models that differ",
        ),
        pytest.param(
            "torch/distributed/elastic/rendezvous/utils.py",
            "parse_rendezvous_endpoint",
            (
                "ValueError: The port number of the rendezvous endpoint 'n1:99999' must be an "
                "integer between 0 and 65536."
            ),
            "HOST:PORT",
            id="torch: a port out of range",
        ),
    ],
)
def test_libraries_of_a_training_job_are_answered(
    file: str, function: str, line: str, answer: str
) -> None:
    found = read(traced(file, function, line))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.causes == ()
    assert found.explained is not None
    assert found.explained.kind == REFUSAL
    assert answer in found.explained.text


@pytest.mark.parametrize(
    ("file", "function", "line", "condition"),
    [
        pytest.param(
            "triton/compiler/compiler.py",
            "_init_handles",
            (
                "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
                "131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help."
            ),
            "cuda-kernel-failed",
            id="Triton: shared memory",
        ),
        pytest.param(
            "bitsandbytes/cextension.py",
            "get_native_library",
            "RuntimeError: Configured CUDA binary not found at /x/libbitsandbytes_cuda131.so",
            "bitsandbytes-cuda-setup",
            id="bitsandbytes: no build for this CUDA",
        ),
        pytest.param(
            "flash_attn/flash_attn_interface.py",
            "_flash_attn_forward",
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
            "flash-attn-needs-ampere",
            id="FlashAttention: an old GPU",
        ),
        pytest.param(
            "triton/runtime/build.py",
            "_build",
            (
                "RuntimeError: Failed to find C compiler. Please specify via CC environment "
                "variable."
            ),
            "jit-build-compiler-missing",
            id="Triton: no C compiler",
        ),
    ],
)
def test_libraries_of_a_training_job_name_conditions(
    file: str, function: str, line: str, condition: str
) -> None:
    found = read(traced(file, function, line))
    assert [cause.condition for cause in found.causes] == [condition]
