"""Peaks of torch's caching allocator on one rank of N, with a real DeepSpeed engine.

    python rank_peak.py '[{"model": {…}, "stage": 2, "world": 8, …}, …]'
    python rank_peak.py @FILE_OF_CASES

Prints a line for each case, when it is known: `peak NUMBER {…}` with what the allocator says, in
bytes, or `failed NUMBER …` with the phase and the error. Each case runs in a process of its own,
forked from this one, which has imported everything: what one engine leaves does not count with the
next, and importing takes longer than most cases.

A case is a `Setting` of `recommend` with a `model` in the words of transformers' config.json,
whatever its type: the class that is trained and what it is given are those of `recommend
--measure`. Adapters are PEFT's, 4-bit weights those of bitsandbytes, a fused loss is Liger's. More:

    rank          which of the ranks it is (0): each has another part of the gradients
    script        what differs in the script: `reentrant` recomputation, `num_items` of the Trainer,
                  `zero_init`: ZeRO-3 divides each weight as soon as it is made
    ds_config     the DeepSpeed config, in place of one that is made of the setting
    allocator     what PYTORCH_CUDA_ALLOC_CONF would say
    machine       file of the scenario, in place of $FAKE_NVML
    steps         how many (2); the peak is that of the last
    resident      GiB of host memory at which it is ended (5)

Runs with STANDIN_MODE=meta (shapes only) and STANDIN_NCCL_SOLO=1 (the other ranks do not exist).
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from dsdoctor.probes.children import dsdmeasure_inputs, measure_model

_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
#: What the batch says of padding for each kind of attention.
_MASKS = {"flash": "none", "sdpa": "padded", "eager": "none"}


class NoKernel:
    """Kernels of another package: its Python allocates what they fill, and shapes have no contents."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None

    def __getitem__(self, _: Any) -> Any:
        return lambda *_, **__: None


def adapted(model: Any, case: dict[str, Any]) -> Any:
    """The model with PEFT's adapters on every linear layer but the output layer."""
    import peft

    dropout = 0.05 if case["lora_dropout"] else 0.0
    lora = peft.LoraConfig(
        r=case["lora_rank"], lora_dropout=dropout, target_modules="all-linear", bias="none",
        modules_to_save=list(case.get("saved_modules") or ()) or None,
    )  # fmt: skip
    return peft.get_peft_model(model, lora)


def quantized(model: Any, case: dict[str, Any]) -> Any:
    """The linear layers of the blocks in 4 bits (NF4, double quantization), as QLoRA loads them.

    bitsandbytes' own Python allocates what its kernels fill; on shapes there is nothing to fill.
    ZeRO-3 can divide only weights of a floating type, so they are stored as such
    (`bnb_4bit_quant_storage`).
    """
    import bitsandbytes.backends.cuda.ops as kernels
    import bitsandbytes.functional
    import torch
    from bitsandbytes.nn import Linear4bit, Params4bit

    kernels.lib = bitsandbytes.functional.lib = NoKernel()
    dtype = getattr(torch, _DTYPES[case["precision"]])
    storage = dtype if case["stage"] == 3 else torch.uint8
    output = model.get_output_embeddings()
    for path, module in list(model.named_modules()):
        if not isinstance(module, torch.nn.Linear) or module is output:
            continue
        weight, width, height = module.weight.data, module.in_features, module.out_features
        made = Linear4bit(
            width, height, module.bias is not None, dtype, True, "nf4", storage, device="meta"
        )
        packed = Params4bit(weight, False, None, 64, True, "nf4", storage)
        made.weight, made.bias = packed._quantize(weight.device), module.bias
        made.quant_state = made.weight.quant_state
        above, _, name = path.rpartition(".")
        setattr(model.get_submodule(above), name, made)
    return model


def fuse_loss(model: Any) -> None:
    """Gives the model Liger's fused linear cross entropy: its Python, without its kernels."""
    import liger_kernel.ops.fused_linear_cross_entropy as fused

    fused.liger_cross_entropy_kernel = fused.element_mul_kernel = NoKernel()

    def forward(labels: Any = None, **given: Any) -> dict[str, Any]:
        hidden = model.base_model(**given)[0]
        tokens = hidden[:, :-1].reshape(-1, hidden.shape[-1])
        # within the forward pass, so that ZeRO-3 gathers the weight
        head = model.get_output_embeddings().weight
        loss = fused.LigerFusedLinearCrossEntropyFunction.apply
        return {"loss": loss(tokens, head, labels[:, 1:].reshape(-1))[0]}

    model.forward = forward


def zero_of(case: dict[str, Any]) -> dict[str, Any]:
    zero = {
        "stage": case["stage"], "reduce_bucket_size": case["bucket"],
        "allgather_bucket_size": case["bucket"], "contiguous_gradients": True,
    }  # fmt: skip
    zero |= {"overlap_comm": case["overlap"], "stage3_max_live_parameters": case["max_live"]}
    zero |= {
        "stage3_max_reuse_distance": case["reuse"],
        "stage3_prefetch_bucket_size": min(case["prefetch"], case["bucket"]),
    }
    host = {"device": "cpu", "pin_memory": True}
    if case["offload"] != "none":
        zero["offload_optimizer"] = host
    if case["offload"] == "optimizer+parameters":
        zero["offload_param"] = host
    return zero


def config_of(case: dict[str, Any]) -> dict[str, Any]:
    """The DeepSpeed config of a setting."""
    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": case["micro_batch"],
        "gradient_accumulation_steps": case["accumulation"],
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": zero_of(case),
    }
    if case["precision"] != "fp32":
        config[case["precision"]] = {"enabled": True}
    if case.get("gradient_width") == 4:
        config["data_types"] = {"grad_accum_dtype": "fp32"}
    return config


def model_of(case: dict[str, Any], config: dict[str, Any]) -> Any:
    """The model on the GPU."""
    import deepspeed
    import torch
    import transformers

    shape = measure_model.make_config(transformers, case["model"])
    shape.use_cache = False
    if getattr(shape, "pad_token_id", 0) is None:  # a classifier takes no batch without
        shape.pad_token_id = 0
    kind = measure_model.head_of(transformers, shape)
    attention = "eager" if case["attention"] == "eager" else "sdpa"
    divided = contextlib.nullcontext()
    if case.get("script", {}).get("zero_init"):
        # rank 0 alone: the others, to which it would send each weight, do not exist
        deepspeed.zero.partition_parameters.dist.broadcast = lambda *_, **__: None
        divided = deepspeed.zero.Init(config_dict_or_path=config)
    torch.set_default_dtype(getattr(torch, _DTYPES[case["precision"]]))
    with torch.device("cuda"), measure_model.without_init(), divided:
        try:
            model = kind._from_config(shape, attn_implementation=attention)
        except ValueError:  # the type has no such attention
            model = kind._from_config(shape, attn_implementation="eager")
    with torch.device("cuda"):
        model.tie_weights()
        model.train()
        if case["fused_loss"]:
            fuse_loss(model)
        if case["quantized"]:
            model = quantized(model, case)
        if case["checkpointing"]:
            again = case.get("script", {}).get("reentrant", False)
            model.gradient_checkpointing_enable({"use_reentrant": again})
        if case["lora_rank"]:
            model = adapted(model, case)
    torch.set_default_dtype(torch.float32)
    return model


def engine_of(case: dict[str, Any]) -> Any:
    """The model in an engine of this ZeRO stage and precision."""
    import deepspeed

    config = case.get("ds_config") or config_of(case)
    model = model_of(case, config)
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=[one for one in model.parameters() if one.requires_grad],
        config=config,
        dist_init_required=False,
    )
    return engine


def batch_of(case: dict[str, Any], model: Any) -> dict[str, Any]:
    """What the model is given, on the GPU."""
    import torch

    size = {"batch": case["micro_batch"], "sequence": case["sequence"]}
    size |= {"mask": _MASKS[case["attention"]], "image_tokens": case["image_tokens"]}
    made = {**size, "dtype": _DTYPES[case["precision"]], "device": "cuda"}
    given = dsdmeasure_inputs.inputs_of(torch, made, model.config, type(model).__name__)
    accepted = inspect.signature(type(model).forward).parameters
    found = {name: value.cuda() for name, value in given.items() if name in accepted}
    if case.get("script", {}).get("num_items"):  # how the Trainer of transformers averages
        found["num_items_in_batch"] = torch.tensor(case["micro_batch"] * case["sequence"]).cuda()
    return found


@dataclasses.dataclass
class Run:
    """One case, and how far it is."""

    case: dict[str, Any]
    phase: str = "start"

    def figures(self) -> dict[str, int | bool]:
        """What torch's allocator says after the last step."""
        import torch

        case, cuda = self.case, torch.cuda
        before = cuda.memory_allocated()
        self.phase = "loading"
        engine = engine_of(case)
        inner = engine.module.get_base_model() if case["lora_rank"] else engine.module
        given = batch_of(case, inner)
        loading = cuda.max_memory_allocated() - before
        reserved = cuda.max_memory_reserved()
        for step in range(case.get("steps", 2)):
            cuda.reset_peak_memory_stats()
            for number in range(case["accumulation"]):
                self.phase = f"step {step + 1}, pass {number + 1}"
                engine.backward(measure_model.loss_of(engine, given))
                engine.step()
            reserved = max(reserved, cuda.max_memory_reserved())
        stats = cuda.memory_stats()
        return {
            "allocated": cuda.max_memory_allocated() - before,
            "reserved": cuda.memory_reserved(),
            "most_reserved": reserved,
            "loading": loading,
            "retries": stats.get("num_alloc_retries", 0),
            "expandable": any(one["is_expandable"] for one in cuda.memory_snapshot()),
        }


def only_shapes() -> None:
    """What DeepSpeed reads and computes beside the GPU, where tensors are shapes and ranks are one.

    NVML's stand-in does not know what torch takes. Weights that are flattened on the host, for want
    of memory on the GPU, have no contents there either. NCCL's identifier comes from rank 0, so
    only DeepSpeed takes this process for another.
    """
    import deepspeed
    import torch
    from deepspeed.runtime.zero import stage_1_and_2

    flatten = stage_1_and_2._flatten_dense_tensors

    def flattened(tensors: list[Any]) -> Any:
        if tensors[0].is_cuda:
            return flatten(tensors)
        return torch.empty(sum(one.numel() for one in tensors), dtype=tensors[0].dtype)

    stage_1_and_2._flatten_dense_tensors = flattened
    accelerator = deepspeed.accelerator.get_accelerator()
    accelerator.available_memory = lambda *_: torch.cuda.mem_get_info()[0]


def answer(number: int, case: dict[str, Any]) -> int:
    """Runs one case in this process, and prints its line."""
    import deepspeed.comm
    import torch

    if case.get("allocator"):  # the variable was read when torch was imported
        torch.cuda.memory._set_allocator_settings(case["allocator"])
    if "machine" in case:
        os.environ["FAKE_NVML"] = case["machine"]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(case["world"]))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    torch.distributed.init_process_group(
        "nccl", store=torch.distributed.HashStore(), rank=0, world_size=case["world"]
    )
    deepspeed.init_distributed("nccl", auto_mpi_discovery=False)
    only_shapes()
    deepspeed.comm.get_rank = lambda *_, **__: case.get("rank", 0)
    run = Run(case)
    try:
        print("peak", number, json.dumps(run.figures()), flush=True)
    except Exception as error:  # whatever it is, the reader gets it in one line
        if os.environ.get("RANK_PEAK_DEBUG"):
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print("failed", number, f"{run.phase}: {text}"[:600], flush=True)
        return 1
    return 0


def resident(child: int) -> float:
    """GiB of a child in memory."""
    with contextlib.suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{child}/statm").read_text("utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return 0.0


def in_a_child(number: int, case: dict[str, Any]) -> bool:
    """Runs one case in a child, which is ended if it takes too much of the host's memory."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            status = answer(number, case)
        finally:  # not the teardown: the other ranks that it would wait for do not exist
            os._exit(status)
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if resident(child) > case.get("resident", 5):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.2)
    if os.WIFSIGNALED(status):
        print("failed", number, f"ended by signal {os.WTERMSIG(status)}", flush=True)
    return status == 0


def main() -> int:
    """One case after another."""
    given = sys.argv[1]
    cases = json.loads(Path(given[1:]).read_text("utf-8") if given[0] == "@" else given)
    # imported here once; CUDA is not started, so that each child can
    import deepspeed  # noqa: F401  # for the children
    import torch
    import transformers  # noqa: F401  # for the children

    assert not torch.cuda.is_initialized()
    failed = [number for number, case in enumerate(cases) if not in_a_child(number, case)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
