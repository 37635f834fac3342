"""The user's options, checked for contradictions with the hardware and with each other."""

from __future__ import annotations

import dataclasses

from dsdoctor.errors import UsageError
from dsdoctor.model.launch_plan import Reason
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.optimizers import OPTIMIZERS
from dsdoctor.recommend.releases import T5_KERNEL, bias_kernel
from dsdoctor.recommend.shape import ModelShape
from dsdoctor.recommend.traits import traits_of

FINETUNES = ("full", "lora", "qlora")
ATTENTIONS = ("flash", "sdpa", "eager")
LAUNCHERS = ("deepspeed", "torchrun", "accelerate")
#: Share of each limit that stays free: allocator fragmentation, the driver, other processes.
HEADROOM = {"speed": 0.08, "memory": 0.08, "balanced": 0.20}
#: Fields of `PlanOptions` that mean something for adapters only.
_OF_ADAPTERS = ("modules_to_save", "lora_rank", "lora_dropout", "lora_fp32")
BF16_MAJOR = 8
FP16_MAJOR = 7


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The user's options; None = to be chosen.

    Attributes:
        nodes: number of hosts.
        sequence: tokens in a sequence.
        micro_batch: sequences for each GPU at once.
        global_batch: sequences for each step of the optimizer.
        precision: `bf16`, `fp16` or `fp32`.
        stage, offload: the one option to size, in place of all.
        finetune: `full`, `lora` or `qlora` (adapters on weights in 4 bits).
        lora_rank: rank of the adapters.
        lora_dropout: adapters drop some of their input.
        lora_fp32: adapters are in fp32.
        modules_to_save: modules that are trained in full with adapters (`saved.saved_of`).
        fused_loss: the loss is fused with the output layer (Liger kernels).
        loads_first: the script loads the whole model before DeepSpeed divides it.
        deepspeed: release of DeepSpeed that will train; None = the newest.
        transformers: release of transformers that will train; None = not known.
        liger: release of Liger kernels that will train; None = the newest.
        optimizer: a key of OPTIMIZERS.
        attention: `flash`, `sdpa` (batches with padding) or `eager`; None = `flash`, or `eager`
            if the family has no other.
        image_tokens: tokens of a sequence that come from images; None = one image.
        checkpointing: recompute activations.
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        objective: `speed`, `memory` or `balanced`.
        cpu_ranks: ranks on each host when there is no GPU.
        master_port: port of the rendezvous.
        hosts: names of the nodes, for a launch across several.
        script: the user's training script.
        framework: what passes the config to DeepSpeed: `hf` (the Hugging Face Trainer) or `native`.
        programs: paths of the environment's launchers that PATH does not find.
    """

    nodes: int = 1
    sequence: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    precision: str | None = None
    stage: int | None = None
    offload: str | None = None
    finetune: str = "full"
    lora_rank: int = 16
    lora_dropout: bool = True
    lora_fp32: bool = False
    modules_to_save: tuple[str, ...] = ()
    fused_loss: bool = False
    loads_first: bool = False
    deepspeed: str | None = None
    transformers: str | None = None
    liger: str | None = None
    optimizer: str = "adamw"
    attention: str | None = None
    image_tokens: int | None = None
    checkpointing: bool | None = None
    launcher: str | None = None
    objective: str = "speed"
    cpu_ranks: int = 1
    master_port: int = 29500
    hosts: tuple[str, ...] = ()
    script: str = "train.py"
    framework: str = "native"
    programs: tuple[tuple[str, str], ...] = ()


def note(subject: str, text: str) -> Reason:
    """A note that is neither for nor against an option."""
    return Reason(subject=subject, verdict="note", text=text)


def choose_precision(machine: Machine, asked: str | None) -> tuple[str, Reason]:
    """What the hardware can do, not what torch emulates (bf16 on a V100 is emulated).

    Raises:
        UsageError: DeepSpeed rejects the requested precision on this hardware.
    """
    if not machine.devices:
        if asked == "fp16":
            raise UsageError("fp16 was requested on a CPU, expected bf16 or fp32")
        return asked or "bf16", note("precision", "CPUs train in bf16 or fp32")
    lowest = min(device.cc for device in machine.devices)
    mixed = len({device.cc for device in machine.devices}) > 1
    text = f"compute capability {lowest[0]}.{lowest[1]}" + (", the lowest here," if mixed else "")
    if asked == "fp16" and lowest[0] < FP16_MAJOR:
        raise UsageError(
            f"`--precision fp16`: this is {text}, but DeepSpeed's fp16 needs 7.0; pass "
            "`--precision fp32`"
        )
    if asked == "bf16" and lowest[0] < BF16_MAJOR:
        what = "fp16" if lowest[0] >= FP16_MAJOR else "fp32"
        return asked, note(
            "precision",
            f"bf16 was requested, but {text} only emulates it: the run will be slow; {what} is "
            "what this hardware supports",
        )
    if asked:
        return asked, note("precision", f"{asked} was requested")
    if lowest[0] >= BF16_MAJOR:
        return "bf16", note("precision", f"bf16: {text} supports it")
    if lowest[0] >= FP16_MAJOR:
        return "fp16", note("precision", f"fp16: {text} has no bf16 units")
    return "fp32", note("precision", f"fp32: {text} is below 7.0, which DeepSpeed's fp16 needs")


def choose_launcher(machine: Machine, asked: str | None) -> str:
    """The requested launcher; a MIG device is selected by its UUID, which only torchrun forwards.

    Raises:
        UsageError: a MIG device with the deepspeed launcher, which cannot select one.
    """
    sliced = any(device.mig for device in machine.devices)
    if asked == "deepspeed" and sliced:
        raise UsageError(
            "the deepspeed launcher takes GPU numbers, but a MIG device has none; "
            "pass `--launcher torchrun`"
        )
    return asked or ("torchrun" if sliced else "deepspeed")


def choose_sequence(model: ModelShape, asked: int | None) -> tuple[int, Reason | None]:
    """The sequence length: the requested one, otherwise 2048 or the model's maximum.

    Raises:
        UsageError: it is longer than the model's table of positions.
    """
    if asked is None:
        length = min(model.max_length, 2048)
        return length, note(
            "sequence",
            f"{length} tokens of at most {model.max_length}; set `--seq-len`",
        )
    if model.positions and asked > model.positions:
        raise UsageError(
            f"the sequence is {asked} tokens, but {model.name} has {model.positions} positions; "
            f"pass at most {model.positions}"
        )
    if asked > model.max_length and model.stated_parameters is None:
        return asked, note(
            "sequence",
            f"{asked} tokens are more than the {model.max_length} that the model was trained for",
        )
    return asked, None


def choose_attention(
    model: ModelShape, asked: str | None, sequence: int, transformers: str | None = None
) -> tuple[str, Reason | None]:
    """The requested attention, otherwise a kernel that stores no scores if the family has one.

    A window as long as the sequence or shorter needs a mask, as padding does
    (`_ignore_causal_mask_sdpa` of transformers' masking_utils.py, 5.24.0).

    Args:
        model: the shape.
        asked: value of `--attention`.
        sequence: tokens of a sequence.
        transformers: its release, None = not known.
    """
    if asked is not None:
        return asked, None
    traits = traits_of(model.family)
    if traits.eager:
        return "eager", note(
            "attention",
            f"eager: transformers has no SDPA for {model.family}, whose scores are stored; pass "
            "`--attention flash` if the flash-attn package (or a kernel of the hub) is used",
        )
    if 0 < model.window <= sequence:
        return "sdpa", note(
            "attention",
            f"each token attends to {model.window} tokens, and sequences have {sequence}: torch's "
            "kernel needs a mask for that, and keys and values for every query head; pass "
            "`--attention flash` if the flash-attn package is used",
        )
    if not traits.relative_bias:
        return "flash", None
    kernel = bias_kernel(transformers)
    if kernel:
        text = f"a kernel takes the position bias of {model.family} in transformers {transformers}"
    else:
        release = "" if transformers is None else f"{transformers} is older; "
        text = (
            f"the formula counts attention scores as stored, as {model.family} does before "
            f"transformers {T5_KERNEL}; {release}pass the release with `--transformers`"
        )
    return "flash", note("attention", text)


def choose_images(model: ModelShape, sequence: int, asked: int | None) -> tuple[int, Reason | None]:
    """Tokens of images in a sequence: as requested, otherwise one image of the usual size.

    Raises:
        UsageError: the model takes no images, or a sequence has fewer tokens.
    """
    if not model.image_tokens:
        if asked:
            raise UsageError(
                f"`--image-tokens {asked}` is for vision-language models, but {model.name} is not "
                "known to take images; leave it out"
            )
        return 0, None
    if asked is not None:
        if asked > sequence:
            raise UsageError(
                f"`--image-tokens` is {asked}, but a sequence has {sequence} tokens; pass at most "
                f"{sequence}"
            )
        return asked, None
    count = min(model.image_tokens, sequence)
    return count, note(
        "images",
        f"{count} of the {sequence} tokens of a sequence are assumed to be one image, through a "
        "vision tower that is trained; set `--image-tokens`",
    )


def validate(options: PlanOptions, world: int) -> None:
    """Raises UsageError for a request that contradicts itself."""
    for name in ("nodes", "sequence", "micro_batch", "global_batch", "lora_rank", "cpu_ranks"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"{name.replace('_', '-')} is {value}, expected at least 1")
    allowed = {
        "precision": (None, "bf16", "fp16", "fp32"),
        "finetune": FINETUNES,
        "optimizer": tuple(OPTIMIZERS),
        "attention": (None, *ATTENTIONS),
        "launcher": (None, *LAUNCHERS),
        "objective": tuple(HEADROOM),
    }
    for name, values in allowed.items():
        if getattr(options, name) not in values:
            words = ", ".join(str(value) for value in values if value)
            raise UsageError(f"{name} is `{getattr(options, name)}`, expected one of {words}")
    for name in _OF_ADAPTERS if options.finetune == "full" else ():
        if getattr(options, name) != getattr(PlanOptions, name):
            option = "no-lora-dropout" if name == "lora_dropout" else name.replace("_", "-")
            raise UsageError(
                f"`--{option}` belongs to adapters; pass `--finetune lora` or `--finetune qlora`"
            )
    if options.hosts and len(options.hosts) != options.nodes:
        raise UsageError(
            f"{len(options.hosts)} hosts are listed for {options.nodes} nodes; list each node once"
        )
    if len(set(options.hosts)) != len(options.hosts):
        raise UsageError(f"a host is listed twice in {', '.join(options.hosts)}; list each once")
    each = world * (options.micro_batch or 1)
    if options.global_batch and options.global_batch % each:
        raise UsageError(
            f"global batch {options.global_batch} is not a multiple of {each} "
            f"(micro-batch {options.micro_batch or 1} on {world} ranks); "
            f"expected {max(1, round(options.global_batch / each)) * each}"
        )
