"""Notes of a plan: what the reader must also do or know."""

from __future__ import annotations

from dsdoctor.framework import HF
from dsdoctor.model.launch_plan import MemoryOption, Reason
from dsdoctor.model.units import GIB, gib
from dsdoctor.recommend import choice, output, trainer
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.options import BF16_MAJOR, PlanOptions, note
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: `ctx.tensors` of `MatMul4Bit` (autograd/_functions.py of bitsandbytes 0.50.2).
KEPT_BY_GRAPH = (
    "autograd keeps the gathered 4-bit weights of all blocks until their backward pass, so each "
    "GPU holds the whole 4-bit model in each pass; reentrant recomputation does not "
    "(`gradient_checkpointing_kwargs={'use_reentrant': True}`, the default before transformers 5)"
)
#: DeepSpeed pull request 4966, issue 7461; leaf_module_config.py and transformers' Mixtral and
#: DeepSeek V3 of 4.51.3 and 5.23 (2026-11-23).
EXPERTS = (
    "with transformers before 5, where each expert is a module of its own, the run hangs when "
    "ranks use different experts; mark the block of experts as a ZeRO-3 leaf module with "
    "`deepspeed.utils.set_z3_leaf_modules`, or with `deepspeed_moe_layer_cls_names` of accelerate"
)


def notes_on(
    chosen: MemoryOption,
    setting: Setting,
    machine: Machine,
    options: PlanOptions,
    model: ModelShape,
) -> list[Reason]:
    """What the reader must also do or know."""
    reasons = []
    if chosen.fits and (left := choice.headroom_left(chosen)):
        reasons.append(note("headroom", f"{left} stay free at the predicted peak"))
    if chosen.host_limit_bytes is None and chosen.offload != "none":
        reasons.append(
            note(
                "host",
                f"{gib(chosen.host_bytes)} GiB of memory are needed on each host, whose size "
                "was not stated: check it, or pass `--host-memory`",
            )
        )
    if options.framework == HF:
        reasons.append(
            note(
                "framework",
                "the Hugging Face Trainer compares its arguments with the DeepSpeed config: change "
                "the batch and the precision in both",
            )
        )
    elif chosen.checkpointing:
        reasons.append(
            note(
                "checkpointing",
                "the script must turn it on (`model.gradient_checkpointing_enable()`); the "
                "DeepSpeed config cannot",
            )
        )
    if model.experts and setting.partitions_weights and setting.world > 1:
        reasons.append(note("experts", EXPERTS))
    if setting.partitions_weights and setting.on_gpu and setting.quantized:
        reasons.append(
            note(
                "loading",
                "transformers quantizes a model outside `deepspeed.zero.Init`, so each GPU holds "
                "the whole 4-bit model before DeepSpeed partitions it",
            )
        )
        if not (chosen.checkpointing and setting.reentrant):
            reasons.append(note("4-bit weights", KEPT_BY_GRAPH))
    elif setting.partitions_weights and setting.on_gpu and not setting.loads_first:
        whole = setting.width * model.parameters * setting.ranks_per_node / GIB
        reasons.append(
            note(
                "loading",
                "the script must build the model under `deepspeed.zero.Init` (the Hugging Face "
                "Trainer does); else the ranks of a host hold "
                f"{whole:.1f} GiB of weights together before DeepSpeed partitions them, and each "
                f"GPU takes {whole / setting.ranks_per_node:.1f} GiB at once; `--loads-first` "
                "plans for such a script",
            )
        )
    if (
        setting.attention == "flash"
        and machine.devices
        and min(device.cc for device in machine.devices)[0] < BF16_MAJOR
    ):
        reasons.append(
            note(
                "attention",
                "flash kernels need compute capability 8.0; the figures hold for torch's "
                'memory-efficient kernel (`attn_implementation="sdpa"`), which stores no scores '
                "either; for other code pass `--attention eager`",
            )
        )
    if options.optimizer in output.OF_THE_SCRIPT and not (
        options.framework == HF and trainer.makes(options.optimizer)
    ):
        made = output.OF_THE_SCRIPT[options.optimizer]
        reasons.append(
            note(
                "optimizer",
                f"the script must create `{made}` and pass it to `deepspeed.initialize`; the "
                "DeepSpeed config cannot",
            )
        )
    if options.nodes > 1 and not options.hosts:
        reasons.append(
            note(
                "hosts",
                "the nodes have no names yet; pass `--hosts A,B` or `--hostfile FILE`: without "
                "a hostfile the deepspeed launcher only warns and runs on one node",
            )
        )
    return reasons
