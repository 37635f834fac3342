r"""Measure the memory of a model's training pass, without that memory and without a GPU.

    python measure_model.py REQUEST

The request is JSON: `{"config": {...}, "cases": [{"batch": 1, "sequence": 2048, ...}]}`. The
model is built from its config by the transformers of this environment on the meta device, and
forward pass, loss and backward pass run only on shapes. Writes, one per line on stdout after
`\x1edsdoctor:`:

    {"step": "import transformers"}
    {"versions": {"torch": "2.9.1", "transformers": "4.57.3"}}
    {"model": {"class": "LlamaForCausalLM", "tensors": [...], "layers": 32, ...}}
    {"case": {...}, "forward": 1, "forward_peak": 2, "segments": [[peak, gradient, left], ...], ...}
    {"error": {"kind": "...", "message": "..."}}
    {"done": true}

A segment is the time between two gradients of weights: its peak in bytes in addition to weights and
finished gradients, the bytes of the gradient that ends it, and the bytes alive without that
gradient then.

Standard library, and the environment's own torch and transformers; Python 3.8 and later.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import sys
import time
from typing import Any

SENTINEL = "\x1edsdoctor:"
HERE = os.path.dirname(os.path.abspath(__file__))
#: Tables of transformers that map a type to its class, in the order in which they are searched.
HEADS = ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "VISION_2_SEQ", "MASKED_LM")
#: Those of them that see: of Qwen3.5 the first table has a class for the text part.
SEEING_HEADS = ("IMAGE_TEXT_TO_TEXT", "VISION_2_SEQ")
#: The same for an encoder and a decoder, whose decoder alone is a class of the first table too.
PAIRED_HEADS = ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ")
#: Names of the vision tower in transformers' models.
VISION_NAMES = ("visual", "vision_tower", "vision_model")
#: Arguments of a class that computes its loss.
ANSWERS = frozenset({"labels", "start_positions"})
EXPERT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
#: Bytes of memory: the largest public models take a tenth, since their weights have no values.
MOST_MEMORY = 8 << 30
CHOICE_KEYS = ("num_experts_per_tok", "moe_topk", "num_experts_per_token", "top_k")


def bound_memory(most: int = MOST_MEMORY) -> None:
    """Ends this process, not the machine, when a config asks for a billion classes."""
    try:
        import resource  # only POSIX has it

        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min([most, half, *known]), hard))
    except (ImportError, OSError, ValueError, AttributeError):
        pass  # the limit of the time remains


def emit(record: dict[str, Any]) -> None:
    """Write one record at once."""
    os.write(1, (SENTINEL + json.dumps(record) + "\n").encode("ascii"))


def brief(error: BaseException) -> dict[str, str]:
    """The error in one line."""
    if isinstance(error, MemoryError):
        return {"kind": "LookupError", "message": "it needs too much memory even without weights"}
    lines = str(error).strip().splitlines()
    return {"kind": type(error).__name__, "message": (lines[0] if lines else "")[:500]}


def modules_named(model: Any, name: str) -> list[Any]:
    """The modules with a name as the last part of their path; none within another."""
    if name in ("embed_tokens", "lm_head"):  # GPT-2 calls its embedding `wte`
        embedding = name == "embed_tokens"
        found = model.get_input_embeddings() if embedding else model.get_output_embeddings()
        return [found]
    names = VISION_NAMES if name == "vision" else (name,)
    paths = {path: module for path, module in model.named_modules() if path.split(".")[-1] in names}
    if not paths:
        raise LookupError("the model has no module `" + name + "`")
    inner = [path for path in paths if any(path.startswith(other + ".") for other in paths)]
    return [module for path, module in paths.items() if path not in inner]


class Lora:
    """LoRA: adapters next to each linear layer of a model's blocks."""

    def __init__(self, torch: Any, rank: int, dropout: float, dtype: Any) -> None:
        self.torch, self.rank, self.dropout, self.dtype = torch, rank, dropout, dtype

    def attach(self, model: Any, saved: list[str]) -> int:
        """Freezes the model and adapts every linear layer but the output layer.

        A copy of each module in `saved` is trained instead of it, as PEFT does; a layer that is
        tied to one keeps the frozen weight. Returns the number of parameters of the copies.
        """
        output = model.get_output_embeddings()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        copied: dict[Any, None] = {}
        for name in saved:
            for whole in modules_named(model, name):
                copied.update(dict.fromkeys(whole.modules()))
        count = 0
        for module in copied:
            for name, parameter in list(module._parameters.items()):
                if parameter is not None:
                    copy = self.torch.nn.Parameter(parameter.detach().clone())
                    module._parameters[name] = copy
                    count += copy.numel()
        layers = [one for one in model.modules() if one is not output and one not in copied]
        found = [module for module in layers if isinstance(module, self.torch.nn.Linear)]
        if not found:  # the linear layers of GPT-2 are convolutions of width 1
            found = [module for module in layers if type(module).__name__ == "Conv1D"]
        for module in found:
            self._adapt(module)
        return count

    def _adapt(self, module: Any) -> None:
        torch = self.torch
        out_width, in_width = module.weight.shape
        if type(module).__name__ == "Conv1D":
            in_width, out_width = out_width, in_width
        make = {"dtype": self.dtype, "device": module.weight.device}
        down = torch.nn.Parameter(torch.empty(self.rank, in_width, **make))
        up = torch.nn.Parameter(torch.empty(out_width, self.rank, **make))
        module.register_parameter("lora_down", down)
        module.register_parameter("lora_up", up)
        plain, functional, share = module.forward, torch.nn.functional, self.dropout

        def forward(x: Any) -> Any:
            result = plain(x)
            small = functional.linear(functional.dropout(x.to(down.dtype), share, True), down)
            return (result + functional.linear(small, up) * 2.0).to(result.dtype)

        module.forward = forward


def first(config: Any, keys: tuple[str, ...]) -> int:
    """A number of the config or of its text part."""
    for part in (config, getattr(config, "text_config", None)):
        for key in keys:
            value = None
            with contextlib.suppress(Exception):  # Gemma 4 refuses what differs between its layers
                value = getattr(part, key, None)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return 0


def make_config(transformers: Any, values: dict[str, Any]) -> Any:
    """The config object of a `config.json`."""
    known = dict(values)
    family = known.pop("model_type")
    try:
        return transformers.AutoConfig.for_model(family, **known)
    except ValueError as error:  # its message lists all known types
        if not str(error).startswith("Unrecognized model identifier"):
            raise
        release = transformers.__version__
        reason = "transformers " + release + " does not know the type `" + family + "`"
        raise LookupError(reason) from None


def head_of(transformers: Any, config: Any) -> Any:
    """The class to train: the one in the config, else the usual one for its type."""
    for name in getattr(config, "architectures", None) or ():
        found = getattr(transformers, name, None)
        if found is not None and hasattr(found, "_from_config"):
            return found
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    tasks = PAIRED_HEADS if getattr(config, "is_encoder_decoder", False) else ()
    if getattr(config, "vision_config", None) is not None:  # not its text part alone
        tasks = (*tasks, *SEEING_HEADS)
    for task in (*tasks, *HEADS, *PAIRED_HEADS):
        name = getattr(auto, "MODEL_FOR_" + task + "_MAPPING_NAMES", {}).get(config.model_type)
        if name is not None:
            return getattr(transformers, name if isinstance(name, str) else name[0])
    raise LookupError("transformers has no class with a loss for the type " + config.model_type)


def without_init() -> Any:
    """A context in which transformers does not initialize weights, which have no values here."""
    for name in ("transformers.initialization", "transformers.modeling_utils"):
        with contextlib.suppress(ImportError):
            found = getattr(importlib.import_module(name), "no_init_weights", None)
            if found is not None:
                return found()
    return contextlib.nullcontext()


def onto(torch: Any, model: Any, device: str) -> None:
    """Moves weights that a model makes on the CPU whatever it is told (`torch.normal`)."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.device.type != device:
                moved = parameter.detach().to(device)
                module._parameters[name] = torch.nn.Parameter(moved, parameter.requires_grad)


def build(torch: Any, kind: Any, config: Any, case: dict[str, Any], choices: Any = None) -> Any:
    """The model on the meta device, as an engine would train it.

    Recomputed blocks also use the operators of a CUDA device.
    """
    dtype = torch.float32 if case.get("autocast") else getattr(torch, case["dtype"])
    attention = case.get("attention") or "sdpa"
    if getattr(config, "pad_token_id", 0) is None:  # a classifier takes no batch without
        config.pad_token_id = 0
    for part in (config, getattr(config, "text_config", None)):
        if part is not None:
            part.use_cache = False
    with torch.device(case.get("device", "meta")), without_init():
        try:
            model = kind._from_config(config, attn_implementation=attention)
        except ValueError:  # the type has no such attention
            model = kind._from_config(config, attn_implementation="eager")
            case["attention_taken"] = "eager"
            if case.get("forced"):  # a kernel of another package, of the same sizes
                model.config._attn_implementation = attention
                case["attention_taken"] = attention
    model.to(dtype)
    onto(torch, model, case.get("device", "meta"))
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    model.train()
    if case.get("lora_rank"):
        adapters = torch.float32 if case.get("lora_fp32") else dtype
        lora = Lora(torch, case["lora_rank"], case.get("lora_dropout", 0.0), adapters)
        case["saved_parameters"] = lora.attach(model, case.get("saved", []))
    if case.get("checkpointing"):
        again = {"use_reentrant": False, "context_fn": lambda: (contextlib.nullcontext(), choices)}
        model.gradient_checkpointing_enable(again)
    return model


def loss_of(model: Any, given: dict[str, Any]) -> Any:
    """The loss of a pass; if the class computes none, the output that a script computes it from."""
    made = model(**given)
    if "loss" in made:
        return made["loss"]
    return made[0].sum()


def measure(torch: Any, kind: Any, config: Any, case: dict[str, Any]) -> dict[str, Any]:
    """One pass: bytes at the end of the forward pass, and segment by segment of the backward."""
    from dsdmeasure_cuda import CudaChoices
    from dsdmeasure_inputs import inputs_of, marked
    from dsdmeasure_storages import StorageMeter, rounded

    started = time.perf_counter()
    choices = CudaChoices(getattr(torch, case["dtype"]) if case.get("autocast") else None)
    model = build(torch, kind, config, case, choices)
    trained = [p for p in model.parameters() if p.requires_grad]
    real = case.get("device") == "cpu"
    meter = StorageMeter(first(config, EXPERT_KEYS), first(config, CHOICE_KEYS), real=real)
    for tensor in [*model.parameters(), *model.buffers()]:
        meter.adopt(tensor)
    segments: list[list[int]] = []

    def arrived(parameter: Any) -> None:
        size = rounded(parameter.grad.untyped_storage().nbytes())
        peak = meter.peak
        parameter.grad = None
        meter.reset()
        segments.append([peak, size, meter.live])

    hooks = [p.register_post_accumulate_grad_hook(arrived) for p in trained]
    accepted = inspect.signature(model.forward).parameters
    given = inputs_of(torch, case, config, type(model).__name__)
    given = {name: value for name, value in given.items() if name in accepted}
    meter.image_share = marked(given, config)
    with contextlib.nullcontext() if real else choices, meter:
        if case.get("fused_loss"):
            given.pop("labels", None)
            loss = model.base_model(**given)[0].sum()
        else:
            loss = loss_of(model, given)
    forward, forward_peak = meter.live, meter.peak
    meter.reset()
    with meter:
        loss.backward()
        segments.append([meter.peak, 0, meter.live])
    for hook in hooks:
        hook.remove()
    choices.casts.clear()
    return {
        "case": case,
        "attention": case.pop("attention_taken", case.get("attention")),
        "forward": forward,
        "forward_peak": forward_peak,
        "segments": segments,
        "trained": sum(parameter.numel() for parameter in trained),
        "saved": case.pop("saved_parameters", 0),
        "guessed": sorted(meter.guessed),
        "seconds": round(time.perf_counter() - started, 2),
    }


def allow_autocast(torch: Any) -> None:
    """Makes disabled autocast a no-op on the meta device, where torch rejects it.

    Rotary embeddings of transformers before 5 turn it off so that they are in fp32.
    """
    known = torch.autocast

    def autocast(device_type: str, *args: Any, **kwargs: Any) -> Any:
        if device_type == "meta" and kwargs.get("enabled") is False:
            return contextlib.nullcontext()
        return known(device_type, *args, **kwargs)

    torch.autocast = autocast


def describe(torch: Any, kind: Any, config: Any) -> dict[str, Any]:
    """The sizes of the model: its parameters, in the order in which an optimizer gets them."""
    from dsdmeasure_modules import modules_of

    model = build(torch, kind, config, {"dtype": "bfloat16", "attention": "eager"})
    heads = first(config, ("num_attention_heads", "n_head", "num_heads", "encoder_attention_heads"))
    hidden = first(config, ("hidden_size", "n_embd", "d_model"))
    return {
        "class": kind.__name__,
        "loss": not ANSWERS.isdisjoint(inspect.signature(kind.forward).parameters),
        "type": config.model_type,
        "tensors": [parameter.numel() for parameter in model.parameters()],
        **modules_of(model),
        "layers": first(config, ("num_hidden_layers", "n_layer", "num_layers", "n_layers")),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": first(config, ("num_key_value_heads",)) or heads,
        "head_dim": first(config, ("head_dim",)) or (hidden // heads if heads else 0),
        "intermediate": first(config, ("intermediate_size", "n_inner", "ffn_dim", "d_ff")),
        "vocab": first(config, ("vocab_size",)),
        "positions": first(config, ("max_position_embeddings", "n_positions")),
        "experts": first(config, EXPERT_KEYS),
    }


def main() -> int:
    """Answer the request."""
    bound_memory()
    request = json.loads(sys.argv[1])
    # the folder of this script contains names that other packages may import
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    try:
        emit({"step": "import torch"})
        torch = importlib.import_module("torch")
        emit({"step": "import transformers"})
        transformers = importlib.import_module("transformers")
        emit({"versions": {"torch": torch.__version__, "transformers": transformers.__version__}})
        sys.path.append(HERE)
        transformers.logging.set_verbosity_error()
        allow_autocast(torch)
        emit({"step": "build"})
        config = make_config(transformers, request["config"])
        kind = head_of(transformers, config)
        emit({"model": describe(torch, kind, config)})
    except Exception as error:  # any error is reported in one line
        emit({"error": brief(error)})
        return 1
    for case in request["cases"]:
        emit({"step": "case"})
        try:
            emit(measure(torch, kind, make_config(transformers, request["config"]), case))
        except Exception as error:  # likewise
            if os.environ.get("DSDOCTOR_DEBUG"):
                raise
            emit({"case": case, "error": brief(error)})
        gc.collect()
    emit({"done": True})
    return 0


if __name__ == "__main__":
    sys.exit(main())
