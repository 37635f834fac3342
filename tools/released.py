"""Released packages: their sources, read from archives that are never installed or run."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import native_messages

#: Which files of a product are read: those that a training job runs.
SCOPES: dict[str, tuple[str, ...]] = {
    "accelerate": ("accelerate/",),
    "axolotl": (
        "axolotl/cli/", "axolotl/common/", "axolotl/convert.py", "axolotl/core/",
        "axolotl/datasets.py", "axolotl/integrations/base.py",
        "axolotl/integrations/cut_cross_entropy/", "axolotl/integrations/liger/",
        "axolotl/integrations/spectrum/", "axolotl/loaders/", "axolotl/logging_config.py",
        "axolotl/model_support/registry.py", "axolotl/processing_strategies.py",
        "axolotl/prompt", "axolotl/telemetry/", "axolotl/train.py", "axolotl/utils/",
    ),
    "bitsandbytes": ("bitsandbytes/",),
    "colossalai": (
        "colossalai/accelerator/", "colossalai/amp/", "colossalai/booster/",
        "colossalai/checkpoint_io/", "colossalai/cli/", "colossalai/cluster/",
        "colossalai/context/", "colossalai/device/", "colossalai/initialize.py",
        "colossalai/interface/", "colossalai/kernel/extensions/base_extension.py",
        "colossalai/kernel/extensions/cpp_extension.py",
        "colossalai/kernel/extensions/cuda_extension.py",
        "colossalai/kernel/extensions/triton_extension.py",
        "colossalai/kernel/extensions/utils.py", "colossalai/kernel/kernel_loader.py",
        "colossalai/lazy/", "colossalai/moe/", "colossalai/nn/", "colossalai/pipeline/",
        "colossalai/quantization/", "colossalai/shardformer/layer/",
        "colossalai/shardformer/policies/auto_policy.py",
        "colossalai/shardformer/policies/base_policy.py", "colossalai/shardformer/shard/",
        "colossalai/utils/", "colossalai/zero/",
    ),
    "datasets": (
        "datasets/arrow_dataset.py", "datasets/arrow_reader.py", "datasets/arrow_writer.py",
        "datasets/builder.py", "datasets/combine.py", "datasets/data_files.py",
        "datasets/dataset_dict.py", "datasets/exceptions.py", "datasets/features/features.py",
        "datasets/fingerprint.py", "datasets/iterable_dataset.py", "datasets/load.py",
        "datasets/packaged_modules/arrow/", "datasets/packaged_modules/csv/",
        "datasets/packaged_modules/json/", "datasets/packaged_modules/parquet/",
        "datasets/packaged_modules/text/", "datasets/splits.py", "datasets/table.py",
        "datasets/utils/info_utils.py", "datasets/utils/py_utils.py",
    ),
    "deepspeed": ("deepspeed/",),  # its C++ sources too, where an installation has them
    "diffusers": (
        # without what is copied from transformers: its quantizers, and helpers for imports
        "diffusers/configuration_utils.py", "diffusers/hooks/context_parallel.py",
        "diffusers/hooks/group_offloading.py",
        "diffusers/loaders/lora_base.py", "diffusers/loaders/lora_pipeline.py",
        "diffusers/loaders/peft.py", "diffusers/loaders/single_file",
        "diffusers/loaders/textual_inversion.py", "diffusers/loaders/unet.py",
        "diffusers/models/_modeling_parallel.py", "diffusers/models/attention_dispatch.py",
        "diffusers/models/attention_processor.py", "diffusers/models/auto_model.py",
        "diffusers/models/model_loading_utils.py", "diffusers/models/modeling_utils.py",
        "diffusers/optimization.py", "diffusers/pipelines/pipeline_loading_utils.py",
        "diffusers/pipelines/pipeline_utils.py", "diffusers/quantizers/pipe_quant_config.py",
        "diffusers/schedulers/scheduling_ddim.py",
        "diffusers/schedulers/scheduling_ddpm.py",
        "diffusers/schedulers/scheduling_euler_discrete.py",
        "diffusers/schedulers/scheduling_flow_match_euler_discrete.py",
        "diffusers/schedulers/scheduling_utils.py", "diffusers/training_utils.py",
        "diffusers/utils/hub_utils.py", "diffusers/utils/peft_utils.py",
        "diffusers/utils/state_dict_utils.py", "diffusers/utils/torch_utils.py",
    ),
    "flash_attn": (
        "flash_attn/", "csrc/flash_attn/", "csrc/flash_attn_ck/", "csrc/fused_dense_lib/",
        "csrc/layer_norm/ln_api.cpp", "csrc/rotary/", "csrc/xentropy/",
    ),
    "flashinfer": (
        "flashinfer/__init__.py", "flashinfer/artifacts.py", "flashinfer/compilation_context.py",
        "flashinfer/cuda_utils.py", "flashinfer/jit/core.py", "flashinfer/jit/cpp_ext.py",
        "flashinfer/jit/cubin_loader.py", "flashinfer/jit/env.py", "flashinfer/sampling.py",
        "flashinfer/utils.py",
    ),
    "huggingface_hub": (
        "huggingface_hub/_commit_api.py", "huggingface_hub/_commit_scheduler.py",
        "huggingface_hub/_local_folder.py", "huggingface_hub/_login.py",
        "huggingface_hub/_revision.py", "huggingface_hub/_snapshot_download.py",
        "huggingface_hub/_tensorboard_logger.py", "huggingface_hub/_tree_cache.py",
        "huggingface_hub/_upload_", "huggingface_hub/cli/_cli_utils.py",
        "huggingface_hub/cli/_errors.py", "huggingface_hub/cli/_framework.py",
        "huggingface_hub/cli/auth.py", "huggingface_hub/cli/cache.py",
        "huggingface_hub/cli/download.py", "huggingface_hub/cli/hf.py",
        "huggingface_hub/cli/upload", "huggingface_hub/commands/",
        "huggingface_hub/constants.py", "huggingface_hub/dataclasses.py",
        "huggingface_hub/errors.py", "huggingface_hub/file_download.py",
        "huggingface_hub/hf_api.py", "huggingface_hub/hf_file_system.py",
        "huggingface_hub/hub_mixin.py", "huggingface_hub/lfs.py",
        "huggingface_hub/repocard", "huggingface_hub/repository.py",
        "huggingface_hub/serialization/", "huggingface_hub/utils/",
    ),
    "liger_kernel": (
        "liger_kernel/backends/", "liger_kernel/chunked_loss/", "liger_kernel/megatron/",
        "liger_kernel/ops/cross_entropy.py", "liger_kernel/ops/fused_", "liger_kernel/ops/geglu.py",
        "liger_kernel/ops/grpo_loss.py", "liger_kernel/ops/layer_norm.py",
        "liger_kernel/ops/mlp.py", "liger_kernel/ops/modulated_rms_norm.py",
        "liger_kernel/ops/multi_token_attention.py", "liger_kernel/ops/rms_norm.py",
        "liger_kernel/ops/rope.py", "liger_kernel/ops/swiglu.py", "liger_kernel/ops/utils.py",
        "liger_kernel/ops/vocab_parallel_cross_entropy.py", "liger_kernel/transformers/",
        "liger_kernel/triton/", "liger_kernel/utils.py",
    ),
    "lightning": (
        "lightning/fabric/accelerators/", "lightning/fabric/cli.py",
        "lightning/fabric/connector.py", "lightning/fabric/fabric.py", "lightning/fabric/plugins/",
        "lightning/fabric/strategies/ddp.py", "lightning/fabric/strategies/deepspeed.py",
        "lightning/fabric/strategies/dp.py", "lightning/fabric/strategies/fsdp.py",
        "lightning/fabric/strategies/launchers/", "lightning/fabric/strategies/model_parallel.py",
        "lightning/fabric/strategies/parallel.py", "lightning/fabric/strategies/registry.py",
        "lightning/fabric/strategies/strategy.py", "lightning/fabric/utilities/",
        "lightning/fabric/wrappers.py", "lightning/pytorch/accelerators/",
        "lightning/pytorch/callbacks/batch_size_finder.py",
        "lightning/pytorch/callbacks/early_stopping.py",
        "lightning/pytorch/callbacks/finetuning.py",
        "lightning/pytorch/callbacks/gradient_accumulation_scheduler.py",
        "lightning/pytorch/callbacks/lr_monitor.py",
        "lightning/pytorch/callbacks/model_checkpoint.py",
        "lightning/pytorch/callbacks/prediction_writer.py",
        "lightning/pytorch/callbacks/stochastic_weight_avg.py",
        "lightning/pytorch/callbacks/timer.py", "lightning/pytorch/callbacks/weight_averaging.py",
        "lightning/pytorch/cli.py", "lightning/pytorch/core/", "lightning/pytorch/loggers/",
        "lightning/pytorch/loops/", "lightning/pytorch/overrides/", "lightning/pytorch/plugins/",
        "lightning/pytorch/strategies/ddp", "lightning/pytorch/strategies/deepspeed.py",
        "lightning/pytorch/strategies/dp.py", "lightning/pytorch/strategies/fsdp.py",
        "lightning/pytorch/strategies/fully_sharded", "lightning/pytorch/strategies/launchers/",
        "lightning/pytorch/strategies/model_parallel.py",
        "lightning/pytorch/strategies/parallel.py", "lightning/pytorch/strategies/sharded",
        "lightning/pytorch/strategies/single_device.py", "lightning/pytorch/strategies/strategy.py",
        "lightning/pytorch/trainer/", "lightning/pytorch/tuner/",
        "lightning/pytorch/utilities/combined_loader.py", "lightning/pytorch/utilities/compile.py",
        "lightning/pytorch/utilities/data.py", "lightning/pytorch/utilities/deepspeed.py",
        "lightning/pytorch/utilities/enums.py", "lightning/pytorch/utilities/finite_checks.py",
        "lightning/pytorch/utilities/migration/", "lightning/pytorch/utilities/model_helpers.py",
        "lightning/pytorch/utilities/parsing.py",
        "lightning/pytorch/utilities/upgrade_checkpoint.py",
    ),
    "llamafactory": (
        "llamafactory/chat/", "llamafactory/cli.py", "llamafactory/data/", "llamafactory/eval/",
        "llamafactory/extras/", "llamafactory/hparams/", "llamafactory/launcher.py",
        "llamafactory/model/", "llamafactory/train/", "llamafactory/v1/",
    ),
    "megatron": (
        "megatron/core/datasets/blended_", "megatron/core/datasets/gpt_dataset.py",
        "megatron/core/datasets/indexed_dataset.py", "megatron/core/datasets/utils",
        "megatron/core/dist_checkpointing/", "megatron/core/distributed/distributed_data_parallel",
        "megatron/core/distributed/finalize_model_grads.py",
        "megatron/core/distributed/param_and_grad_buffer.py",
        "megatron/core/extensions/transformer_engine.py", "megatron/core/fp8_utils.py",
        "megatron/core/fusions/", "megatron/core/model_parallel_config.py",
        "megatron/core/models/common/", "megatron/core/models/gpt/",
        "megatron/core/num_microbatches_calculator.py", "megatron/core/optimizer/",
        "megatron/core/optimizer_param_scheduler.py", "megatron/core/parallel_state.py",
        "megatron/core/pipeline_parallel/", "megatron/core/rerun_state_machine.py",
        "megatron/core/tensor_parallel/", "megatron/core/transformer/attention.py",
        "megatron/core/transformer/cuda_graphs.py",
        "megatron/core/transformer/custom_layers/transformer_engine.py",
        "megatron/core/transformer/dot_product_attention.py", "megatron/core/transformer/mlp.py",
        "megatron/core/transformer/module.py", "megatron/core/transformer/moe/",
        "megatron/core/transformer/multi_",
        "megatron/core/transformer/pipeline_parallel_layer_layout.py",
        "megatron/core/transformer/torch_norm.py", "megatron/core/transformer/transformer_",
        "megatron/core/utils.py",
    ),
    "openrlhf": ("openrlhf/",),
    "peft": ("peft/",),
    "ray": (
        "ray/_common/ray_option_utils.py", "ray/_common/utils.py", "ray/_private/node.py",
        "ray/_private/parameter.py", "ray/_private/ray_option_utils.py",
        "ray/_private/resource_and_label_spec.py", "ray/_private/resource_spec.py",
        "ray/_private/runtime_env/packaging.py", "ray/_private/runtime_env/pip.py",
        "ray/_private/runtime_env/py_modules.py", "ray/_private/runtime_env/uv.py",
        "ray/_private/runtime_env/validation.py", "ray/_private/runtime_env/working_dir.py",
        "ray/_private/services.py", "ray/_private/utils.py", "ray/_private/worker.py",
        "ray/actor.py", "ray/air/_internal/device_manager/", "ray/air/_internal/torch_utils.py",
        "ray/air/config.py", "ray/exceptions.py", "ray/remote_function.py", "ray/train/__init__.py",
        "ray/train/_checkpoint.py", "ray/train/_internal/", "ray/train/base_trainer.py",
        "ray/train/context.py", "ray/train/data_parallel_trainer.py", "ray/train/huggingface/",
        "ray/train/lightning/", "ray/train/torch/", "ray/train/trainer.py",
        "ray/train/v2/_internal/", "ray/train/v2/api/", "ray/train/v2/torch/",
        "ray/util/collective/", "ray/util/placement_group.py", "ray/util/scheduling_strategies.py",
    ),
    "safetensors": ("safetensors/numpy.py", "safetensors/torch.py"),
    "sentence_transformers": ("sentence_transformers/",),
    "swift": (
        "swift/arguments/", "swift/callbacks/", "swift/cli/", "swift/dataloader/",
        "swift/dataset/", "swift/hub/", "swift/infer_engine/", "swift/llm/argument/",
        "swift/llm/data_loader.py", "swift/llm/dataset/", "swift/llm/infer/infer_engine/",
        "swift/llm/model/model_arch.py", "swift/llm/model/patcher.py",
        "swift/llm/model/register.py", "swift/llm/model/utils.py", "swift/llm/template/base.py",
        "swift/llm/template/register.py", "swift/llm/template/template_inputs.py",
        "swift/llm/template/utils.py", "swift/llm/train/", "swift/llm/utils.py", "swift/loss/",
        "swift/megatron/arguments/", "swift/megatron/argument/", "swift/megatron/init.py",
        "swift/megatron/model/", "swift/megatron/trainers/base.py", "swift/megatron/utils/",
        "swift/metrics/", "swift/model/model_arch.py", "swift/model/model_meta.py",
        "swift/model/patcher.py", "swift/model/register.py", "swift/model/utils.py",
        "swift/optimizers/", "swift/pipelines/train/", "swift/pipelines/utils.py",
        "swift/plugin/", "swift/rlhf_trainers/", "swift/sequence_parallel/",
        "swift/template/base.py", "swift/template/register.py",
        "swift/template/template_inputs.py", "swift/template/utils.py", "swift/trainers/",
        "swift/tuners/", "swift/utils/",
    ),
    "tokenizers": ("tokenizers/implementations/",),
    "torch": (
        "torch/amp/", "torch/cuda/", "torch/distributed/checkpoint/",
        "torch/distributed/device_mesh.py", "torch/distributed/distributed_c10d.py",
        "torch/distributed/elastic/", "torch/distributed/fsdp/", "torch/distributed/launch.py",
        "torch/distributed/launcher/", "torch/distributed/rendezvous.py",
        "torch/distributed/run.py", "torch/distributed/utils.py", "torch/multiprocessing/",
        "torch/nn/parallel/", "torch/serialization.py",
        "torch/utils/checkpoint.py", "torch/utils/cpp_extension.py", "torch/utils/data/_utils/",
        "torch/utils/data/dataloader.py", "torch/utils/data/dataset.py",
        "torch/utils/data/distributed.py", "torch/utils/data/sampler.py",
        # headers of a wheel, and sources of its release's tag beside them in a folder
        "torch/include/torch/csrc/distributed/c10d/", "torch/csrc/distributed/c10d/",
        "torch/csrc/autograd/", "torch/csrc/utils/", "aten/src/ATen/", "c10/",
    ),
    "torchao": (
        "torchao/core/config.py", "torchao/float8/", "torchao/optim/",
        "torchao/prototype/low_bit_optim/", "torchao/prototype/quantized_training/",
        "torchao/quantization/qat/api.py", "torchao/quantization/qat/fake_quantize_config.py",
        "torchao/quantization/qat/linear.py", "torchao/quantization/quant_api.py",
        "torchao/quantization/quantize_/workflows/float8/float8_tensor.py",
        "torchao/quantization/quantize_/workflows/nf4/", "torchao/quantization/utils.py",
        "torchao/utils.py",
    ),
    "transformers": (
        "transformers/integrations/deepspeed.py", "transformers/deepspeed.py",
        "transformers/data/data_collator.py", "transformers/hf_argparser.py",
        "transformers/tokenization_utils_base.py", "transformers/tokenization_utils_tokenizers.py",
        "transformers/trainer.py",
        "transformers/trainer_callback.py", "transformers/trainer_optimizer.py",
        "transformers/trainer_pt_utils.py", "transformers/trainer_seq2seq.py",
        "transformers/trainer_utils.py",
        "transformers/training_args.py", "transformers/utils/chat_template_utils.py",
    ),
    "triton": (
        "triton/_utils.py", "triton/backends/", "triton/common/", "triton/compiler/",
        "triton/knobs.py", "triton/language/", "triton/runtime/",
    ),
    "trl": ("trl/",),
    "unsloth": (
        "unsloth/__init__.py", "unsloth/_auto_install.py", "unsloth/chat_templates.py",
        "unsloth/context_parallel.py", "unsloth/dataprep/raw_text.py", "unsloth/device_type.py",
        "unsloth/import_fixes.py", "unsloth/kernels/utils.py",
        "unsloth/models/_utils.py", "unsloth/models/fsdp2",
        "unsloth/models/gemma.py", "unsloth/models/gemma2.py", "unsloth/models/llama.py",
        "unsloth/models/loader", "unsloth/models/mistral.py", "unsloth/models/qwen2.py",
        "unsloth/models/rl.py", "unsloth/models/rl_replacements.py", "unsloth/models/vision.py",
        "unsloth/save.py", "unsloth/tokenizer_utils.py", "unsloth/trainer.py",
    ),
    "unsloth_zoo": (
        "unsloth_zoo/__init__.py", "unsloth_zoo/compiler.py", "unsloth_zoo/dataset_utils.py",
        "unsloth_zoo/device_type.py", "unsloth_zoo/gradient_checkpointing.py",
        "unsloth_zoo/hf_utils.py", "unsloth_zoo/loss_utils.py", "unsloth_zoo/patching_utils.py",
        "unsloth_zoo/peft_utils.py", "unsloth_zoo/rl_replacements.py",
        "unsloth_zoo/saving_utils.py", "unsloth_zoo/tokenizer_utils.py",
        "unsloth_zoo/training_utils.py", "unsloth_zoo/vision_utils.py",
        "unsloth_zoo/vllm_utils.py",
    ),
    "verl": (
        "verl/checkpoint_engine/base.py", "verl/experimental/agent_loop/",
        "verl/experimental/fully_async_policy/fully_async_main.py",
        "verl/experimental/fully_async_policy/fully_async_rollouter.py",
        "verl/experimental/fully_async_policy/fully_async_trainer.py",
        "verl/experimental/reward_loop/reward_loop.py",
        "verl/experimental/reward_loop/reward_manager/",
        "verl/experimental/reward_loop/reward_model.py", "verl/model_merger/",
        "verl/models/mcore/config_converter.py", "verl/models/mcore/registry.py",
        "verl/models/transformers/monkey_patch.py", "verl/models/weight_loader_registry.py",
        "verl/protocol.py", "verl/single_controller/", "verl/tools/", "verl/trainer/",
        "verl/utils/activation_offload.py", "verl/utils/checkpoint/", "verl/utils/config.py",
        "verl/utils/dataset/", "verl/utils/device.py", "verl/utils/fs.py",
        "verl/utils/fsdp_utils.py", "verl/utils/import_utils.py", "verl/utils/megatron_utils.py",
        "verl/utils/model.py", "verl/utils/py_functional.py",
        "verl/utils/reward_score/__init__.py", "verl/utils/seqlen_balancing.py",
        "verl/utils/tensordict_utils.py", "verl/utils/tokenizer.py",
        "verl/utils/tokenizer/tokenizer.py", "verl/utils/torch_functional.py",
        "verl/utils/tracking.py", "verl/utils/ulysses.py", "verl/utils/vllm/utils.py",
        "verl/workers/actor/", "verl/workers/config/", "verl/workers/critic/",
        "verl/workers/engine/base.py", "verl/workers/engine/fsdp/",
        "verl/workers/engine/megatron/transformer_impl.py", "verl/workers/engine/utils.py",
        "verl/workers/engine_workers.py", "verl/workers/fsdp_workers.py",
        "verl/workers/megatron_workers.py", "verl/workers/reward_manager/",
        "verl/workers/rollout/base.py", "verl/workers/rollout/hf_rollout.py",
        "verl/workers/rollout/llm_server.py", "verl/workers/rollout/replica.py",
        "verl/workers/rollout/schemas.py", "verl/workers/rollout/sglang_rollout/",
        "verl/workers/rollout/vllm_rollout/", "verl/workers/sharding_manager/fsdp_vllm.py",
        "verl/workers/utils/",
    ),
    "vllm": (
        "vllm/config/cache.py", "vllm/config/compilation.py", "vllm/config/device.py",
        "vllm/config/load.py", "vllm/config/lora.py", "vllm/config/model.py",
        "vllm/config/parallel.py", "vllm/config/scheduler.py", "vllm/config/vllm.py",
        "vllm/distributed/device_communicators/custom_all_reduce.py",
        "vllm/distributed/device_communicators/pynccl", "vllm/distributed/parallel_state.py",
        "vllm/distributed/utils.py", "vllm/engine/arg_utils.py", "vllm/entrypoints/llm.py",
        "vllm/envs.py", "vllm/lora/peft_helper.py", "vllm/lora/request.py", "vllm/lora/utils.py",
        "vllm/lora/worker_manager.py", "vllm/model_executor/model_loader/__init__.py",
        "vllm/model_executor/model_loader/base_loader.py",
        "vllm/model_executor/model_loader/default_loader.py",
        "vllm/model_executor/model_loader/utils.py",
        "vllm/model_executor/model_loader/weight_utils.py", "vllm/platforms/__init__.py",
        "vllm/platforms/cuda.py", "vllm/platforms/interface.py", "vllm/platforms/rocm.py",
        "vllm/transformers_utils/config.py", "vllm/transformers_utils/repo_utils.py",
        "vllm/utils/mem_utils.py", "vllm/utils/network_utils.py",
        "vllm/v1/core/kv_cache_planning.py", "vllm/v1/core/kv_cache_utils.py",
        "vllm/v1/engine/__init__.py", "vllm/v1/engine/async_llm.py", "vllm/v1/engine/core.py",
        "vllm/v1/engine/core_client.py", "vllm/v1/engine/exceptions.py",
        "vllm/v1/engine/llm_engine.py", "vllm/v1/engine/processor.py",
        "vllm/v1/engine/input_processor.py", "vllm/v1/engine/utils.py", "vllm/v1/executor/",
        "vllm/v1/worker/gpu_worker.py", "vllm/v1/worker/worker_base.py", "vllm/v1/worker/utils.py",
    ),
}  # fmt: skip
#: Packages whose archives have another name.
DISTRIBUTIONS = {
    "flashinfer": "flashinfer_python",
    "megatron": "megatron_core",
    "swift": "ms_swift",
}
#: Sources that are read: Python's, and the C++ that a source archive has.
READ = (".py", *native_messages.SUFFIXES)
#: The folder of a wheel that holds packages of pure Python if its build calls it a binary, as
#: OpenRLHF's does.
DATA = re.compile(r"^[^/]+\.data/(?:pure|plat)lib/")
#: Where folders of a source archive are found once they are installed.
INSTALLED = {
    "deepspeed": {
        "accelerator/": "deepspeed/accelerator/",
        "csrc/": "deepspeed/ops/csrc/",
        "op_builder/": "deepspeed/ops/op_builder/",
    },
}
#: ... of any other product.
SOURCES = {"src/": ""}


def sources(path: Path, product: str) -> Iterator[tuple[str, str]]:
    """File within the package and text of each source file of an archive or a folder."""
    rows: Iterator[tuple[str, bytes]]
    if path.is_dir():
        tops = {scope.partition("/")[0] for scope in SCOPES[product]}
        found = (one for top in tops for one in (path / top).rglob("*"))
        files = sorted(one for one in found if one.suffix in READ)
        rows = ((one.relative_to(path).as_posix(), one.read_bytes()) for one in files)
    elif path.suffix == ".whl":
        rows = _zipped(path)
    else:
        rows = _tarred(path)
    for name, data in rows:
        inner = DATA.sub("", name)
        for folder, there in INSTALLED.get(product, SOURCES).items():
            if inner.startswith(folder):
                inner = there + inner[len(folder) :]
        if inner.startswith(SCOPES[product]) and "/test" not in inner:
            yield inner, data.decode("utf-8", "replace")


def _zipped(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(READ):
                yield name, archive.read(name)


def _tarred(path: Path) -> Iterator[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    with tarfile.open(path) as archive:
        for member in archive:  # in the order of the file: to go back in it reads it anew
            if member.isfile() and member.name.endswith(READ):
                handle = archive.extractfile(member)
                if handle is not None:
                    found.append((member.name.partition("/")[2], handle.read()))
    yield from sorted(found)


def release_of(path: Path, product: str) -> str:
    """The release that an archive's name tells, or that an installed package's folder tells."""
    name = DISTRIBUTIONS.get(product, product)
    if path.is_dir():
        info = next(path.glob(f"{name}-*.dist-info"))
        return info.name[len(name) + 1 : -len(".dist-info")].partition("+")[0]
    found = re.match(rf"{name}-(\d[\d.]*\d)", path.name)
    if found is None:
        raise SystemExit(f"{path.name}: expected an archive such as {name}-1.2.3.tar.gz")
    return found[1]
