"""Whose name it is that is missing: a module, a class or an argument that a release lacks.

An `AttributeError`, `ImportError` or `TypeError` on a name of a product tells that two releases do
not fit, even where no frame is shown. Names of the user's own are nobody's here.
Sources: the public names of deepspeed, torch, transformers, accelerate, peft, trl, diffusers,
datasets, bitsandbytes, triton and pydantic in releases of 2021 to 2026.
"""

from __future__ import annotations

import re

#: Products of Python that speak with one another; what one lacks, another expected.
PEERS = frozenset(
    {"accelerate", "apex", "auto_gptq", "awq", "colossalai", "composer", "cv2", "datasets",
     "diffusers", "einops", "evaluate", "fairscale", "fairseq", "flash_attn", "fsspec", "google",
     "gradio", "huggingface_hub", "jinja2", "keras", "liger_kernel", "lightning", "lmdeploy",
     "mmcv", "mmdet", "mmengine", "modelscope", "optimum", "pandas", "peft", "PIL",
     "pkg_resources", "pyarrow", "pydantic", "pydantic_core", "pytorch_lightning", "requests",
     "safetensors", "scipy", "sentence_transformers", "setuptools", "sglang", "sklearn", "swift",
     "tensorboard", "tensorflow", "timm", "tokenizers", "torch", "torchaudio", "torchmetrics",
     "torchtext", "torchvision", "transformers", "trl", "typing_extensions", "unsloth",
     "urllib3", "vllm", "wandb", "xformers", "xtuner"},
)  # fmt: skip
#: The product that a module belongs to, and the condition where it lacks a name.
MODULES = {
    "bitsandbytes": "bitsandbytes-cuda-setup",
    "deepspeed": "deepspeed-torch-incompatible",
    "numpy": "numpy-abi-2",
    "triton": "triton-unusable",
    **dict.fromkeys(PEERS, "dependency-version-conflict"),
}
LACKING = re.compile(
    r"(?:module|from partially initialized module|from) '(?P<module>[A-Za-z_][\w.]{0,120})'"
    r"(?: has no attribute| \(|\s*$|\.)"
)
#: A part that an installed product lacks.
PART = re.compile(r"^No module named '(?P<module>[A-Za-z_]\w{0,60}\.[\w.]{1,120})'")
DEEPSPEEDS = re.compile(r"'\w{0,40}(?:[Dd]eep[Ss]peed|DummyOptim|DummySched)\w{0,40}'")
CLASS = re.compile(
    r"(?:type object )?'(?P<a>[A-Za-z_]\w{1,60})'(?: object)? has no (?:attribute|setter)"
    r"|^(?P<b>[A-Za-z_]\w{1,60})(?:\.\w{1,60})?\(\) (?:got an unexpected keyword"
    r"|missing \d+ required|takes \d+ positional|got multiple values)"
)
CLASSES = (
    (
        re.compile(
            r"\w*DeepSpeed(?!\w*Engine$)\w*$|Accelerator(?:State)?$|PartialState$|Dummy(?:Optim|Scheduler)$"
            r"|deepspeed_(?:init|load_checkpoint|optim_sched)$"
        ),
        "transformers-deepspeed-incompatible",
    ),
    (
        re.compile(r"JITFunction$|CompiledKernel$|Autotuner$|ASTSource$|GPUTarget$|LazyDict$"),
        "triton-unusable",
    ),
    (
        re.compile(
            r"(?:Llama|CodeLlama|Mistral|Mixtral|Qwen|Gemma|Phi\d|Falcon|GPTNeoX|GPT2|GPTJ|OPT|Bloom|Bert"
            r"|Roberta|T5|MT5|Whisper|CLIP|SigLIP|Siglip|Llava|InternLM|InternVL|Baichuan|ChatGLM|GLM"
            r"|Deepseek|Idefics|Paligemma|PaliGemma|Cohere|Mamba|MPT|StableLm|Starcoder2|UNet2D"
            r"|Auto(?:Model|Config|Tokenizer|Processor))\w*$"
            r"|(?:Dynamic|Static|Sliding\w*|Hybrid|EncoderDecoder)Cache$|Pre[tT]rained\w*$|Peft\w*$"
            r"|(?:Lora|Generation|BitsAndBytes|GPTQ|AWQ|SFT|DPO|GRPO|PPO|Reward|ORPO|KTO)\w*Config$"
            r"|(?:SFT|DPO|GRPO|PPO\w*|Reward|ORPO|KTO|Seq2Seq)Trainer$|(?:Seq2Seq)?TrainingArguments$"
            r"|Lora(?:Model|Layer)$|Linear(?:8bitLt|4bit)$|Params4bit$|Int8Params$|MatmulLtState$"
            r"|FieldInfo$|ModelField$|ModelMetaclass$|EntryPoints$|\w+Tokenizer(?:Fast)?$|ForwardRef$"
            r"|\w+(?:ForCausalLM|ForConditionalGeneration|ForSequenceClassification)$"
        ),
        "dependency-version-conflict",
    ),
)
ARGUMENT = re.compile(r"got an unexpected keyword argument '(?P<name>\w{1,60})'")
#: Arguments that some releases of accelerate know and some of transformers pass on.
PASSED = frozenset(
    {"dataloader_config", "deepspeed_plugin", "device_placement", "dispatch_batches",
     "even_batches", "hf_ds_config", "split_batches", "use_seedable_sampler"},
)  # fmt: skip
#: Arguments that came and went in transformers, trl, peft, datasets and torch.
CHANGED = frozenset(
    {"attn_implementation", "cache_position", "eval_strategy", "evaluation_strategy",
     "field_specifiers", "gradient_checkpointing_kwargs", "is_causal", "layer_idx",
     "logits_to_keep", "num_items_in_batch", "num_logits_to_keep", "position_embeddings",
     "processing_class", "recursive_guard", "safe_serialization", "use_auth_token",
     "use_flash_attention_2", "weights_only"},
)  # fmt: skip
#: Names that torch moved, and that old releases of DeepSpeed import.
MOVED = re.compile(
    r"^cannot import name '(?:log|inf|_get_socket_with_port|container_abcs|string_classes)'\s*$"
)
#: An exception that a compiler wraps.
WRAPPED = re.compile(r"^(?P<kind>(?:Attribute|Import|Type|Name|ModuleNotFound)Error): (?P<text>.*)")
NAMING = frozenset(
    {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "NameError"}
)


def owner(kind: str, text: str, *, own: bool) -> str | None:
    """The condition that a missing name tells of, None where it is nobody's known.

    Args:
        kind: the exception.
        text: its words.
        own: the user's own code raised it, which may well misuse an object.

    >>> owner("AttributeError", "module 'peft' has no attribute 'LoraConfig'", own=True)
    'dependency-version-conflict'
    >>> owner("AttributeError", "'LlamaModel' object has no attribute 'head'", own=True)
    """
    if found := WRAPPED.search(text):
        kind, text = found["kind"], found["text"]
    if kind.rpartition(".")[2] not in NAMING:
        return None
    if MOVED.search(text):
        return "deepspeed-torch-incompatible"
    if found := LACKING.search(text) or PART.search(text):
        top, _, rest = found["module"].partition(".")
        if top in PEERS and (DEEPSPEEDS.search(text) or rest.startswith("deepspeed")):
            return "transformers-deepspeed-incompatible"
        if top == "deepspeed" and not rest:
            return "deepspeed-missing" if "has no attribute" in text else MODULES[top]
        # a script that does not find a name in torch has a torch.py beside it, or a slip
        shadowed = top == "torch" and (own or "partially initialized" in text)
        if top in MODULES and not shadowed:
            return MODULES[top]
    if found := ARGUMENT.search(text):
        if found["name"] in PASSED:
            return "transformers-deepspeed-incompatible"
        if found["name"] in CHANGED:
            return "dependency-version-conflict"
    if not own and (found := CLASS.search(text)):
        name = found["a"] or found["b"]
        return next((said for pattern, said in CLASSES if pattern.match(name)), None)
    return None
