r"""Ask the installed DeepSpeed about a config; run as a script in a process of its own.

    python ds_config.py CONFIG [WORLD]

Writes, one per line on stdout after `\x1edsdoctor:`:

    {"step": "import deepspeed"}
    {"fact": "version", "value": "0.19.8"}
    {"refusal": {"key": "zero_optimization.stage", "message": "...", "kind": "ValidationError"}}
    {"parameters": {"part": "scheduler", "class": "WarmupLR", "names": ["warmup_num_steps"]}}
    {"done": true}

DeepSpeed stops at the first thing that it rejects. So the rejected key is removed and the rest is
tried again, until DeepSpeed accepts it. `"auto"` batch sizes are for a trainer to fill in, and
without WORLD the equation of the batch sizes is not checked. `aio.use_gds` is not checked if torch
was built for CUDA: DeepSpeed would need a GPU, which a login node does not have. Nothing is
started: no process group, no engine.

Standard library and the installed deepspeed, Python 3.8 and later.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import os
import shutil
import sys
import tempfile
from typing import Any

SENTINEL = "\x1edsdoctor:"
#: Further errors of a config are omitted.
MOST = 20
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
#: Part of a model's name, lower case, to the section that it reads.
SECTIONS = (
    ("offloadparam", "zero_optimization.offload_param"),
    ("offloadoptimizer", "zero_optimization.offload_optimizer"),
    ("zenflow", "zero_optimization.zenflow"),
    ("zeroconfig", "zero_optimization"),
    ("fp16", "fp16"),
    ("bf16", "bf16"),
    ("compile", "compile"),
    ("tensorboard", "tensorboard"),
    ("wandb", "wandb"),
    ("csv", "csv_monitor"),
    ("comet", "comet"),
    ("monitor", ""),
    ("hybridengine", "hybrid_engine"),
    ("tensorparallel", "tensor_parallel"),
    ("tpconfig", "tensor_parallel"),
    ("weightquant", "weight_quantization"),
)


def emit(record: dict[str, Any]) -> None:
    """Write one record at once."""
    os.write(1, (SENTINEL + json.dumps(record) + "\n").encode("ascii"))


def load(module: Any, path: str) -> Any:
    """Read the file as this DeepSpeed does: hjson since 0.8, duplicate keys refused."""
    reader = getattr(module, "hjson", json)
    hook = getattr(module, "dict_raise_error_on_duplicate_keys", None)
    with open(path, encoding="utf-8-sig") as file:
        return reader.load(file, object_pairs_hook=hook)


def section_of(title: str) -> str:
    """Which section a pydantic model reads."""
    name = title.lower().replace("_", "")
    return next((section for part, section in SECTIONS if part in name), "")


def holds(config: Any, key: str) -> bool:
    """Whether a config contains a dotted key."""
    for part in key.split("."):
        if not isinstance(config, dict) or part not in config:
            return False
        config = config[part]
    return True


def drop(config: Any, key: str) -> None:
    """Remove a dotted key."""
    parts = key.split(".")
    for part in parts[:-1]:
        config = config[part]
    del config[parts[-1]]


def subject_of(message: str, config: Any) -> str:
    """The key that a message is about: a quoted section that comes first, else the longest key."""
    best = named_in(message, config)
    end = message.find(best.rpartition(".")[2]) if best else len(message)
    for key in config:
        place = message.find("'" + str(key) + "'")
        if 0 <= place < end:
            return str(key)
    return best


def named_in(message: str, config: Any, prefix: str = "") -> str:
    """The longest key of the config that a message contains; "" if there is none."""
    best = ""
    for key, value in config.items():
        path = prefix + str(key)
        if str(key) in message and len(str(key)) > len(best.rpartition(".")[2]):
            best = path
        if isinstance(value, dict):
            inner = named_in(message, value, path + ".")
            if len(inner.rpartition(".")[2]) > len(best.rpartition(".")[2]):
                best = inner
    return best


def refusals(error: BaseException, config: Any) -> list[dict[str, str]]:
    """The messages of an exception, each with the key that it is about."""
    kind = type(error).__name__
    listed = getattr(error, "errors", None)
    if kind == "ValidationError" and callable(listed):
        home = section_of(str(getattr(error, "title", "")))
        found = []
        for entry in listed():
            names = [str(part) for part in entry.get("loc", ())]
            while names and not holds(config, ".".join(([home] if home else []) + names)):
                names.pop()
            key = ".".join(([home] if home else []) + names)
            text = str(entry.get("msg", ""))[:400]
            if key and key == home and isinstance(config.get(home), dict):
                key = named_in(text, config[home], home + ".") or key
            found.append({"key": key, "message": text, "kind": kind})
        return found
    message = str(error).strip()[:600]
    return [{"key": subject_of(message, config), "message": message, "kind": kind}]


def scheduler_class(name: str) -> Any:
    """The class that the engine would create; None if there is none."""
    for place in ("deepspeed.runtime.lr_schedules", "torch.optim.lr_scheduler"):
        found = getattr(importlib.import_module(place), name, None)
        if inspect.isclass(found):
            return found
    return None


def optimizer_class(name: str, config: Any) -> Any:
    """The class that the engine would create, and the keys that it removes from `params` itself."""
    params = config["optimizer"].get("params")
    params = params if isinstance(params, dict) else {}
    offload = config.get("zero_optimization")
    offload = offload.get("offload_optimizer") if isinstance(offload, dict) else None
    offloaded = isinstance(offload, dict) and offload.get("device") in ("cpu", "nvme")
    own = name.lower()
    if own in ("adam", "adamw"):
        taken = ["torch_adam", "adam_w_mode", "fp32_optimizer_states"]
        if params.get("torch_adam"):
            place, name = "torch.optim", "AdamW"
        else:
            place, name = "deepspeed.ops.adam", "DeepSpeedCPUAdam" if offloaded else "FusedAdam"
        return getattr(importlib.import_module(place), name, None), taken
    places = {
        "adagrad": ("deepspeed.ops.adagrad", "DeepSpeedCPUAdagrad"),
        "lion": ("deepspeed.ops.lion", "DeepSpeedCPULion" if offloaded else "FusedLion"),
        "lamb": ("deepspeed.ops.lamb", "FusedLamb"),
    }
    if own == "adagrad" and not offloaded:
        places["adagrad"] = ("torch.optim", "Adagrad")
    if own.startswith("mu") or "." in name:
        return None, []  # Muon splits `params` itself, the mup family is another package
    place, name = places.get(own, ("torch.optim", name))
    return getattr(importlib.import_module(place), name, None), []


def parameters(part: str, config: Any) -> None:
    """Report the keyword arguments of the class that `optimizer` or `scheduler` names."""
    section = config.get(part)
    name = section.get("type") if isinstance(section, dict) else None
    if not isinstance(name, str):
        return
    taken = []
    try:
        if part == "optimizer":
            cls, taken = optimizer_class(name, config)
        else:
            cls = scheduler_class(name)
        if not inspect.isclass(cls):
            return
        found = list(inspect.signature(cls.__init__).parameters.values())[2:]
    except Exception:
        return  # an old or broken class does not make the config wrong
    if any(one.kind is one.VAR_KEYWORD for one in found):
        return
    names = [one.name for one in found] + taken
    emit({"parameters": {"part": part, "class": cls.__name__, "names": sorted(set(names))}})


def prepare(config: Any, world: int) -> None:
    """Remove what depends on a trainer, the number of ranks or the job's machine."""
    torch = importlib.import_module("torch")
    if isinstance(config.get("aio"), dict) and torch.version.cuda is not None:
        config["aio"].pop("use_gds", None)
    for name in BATCH:
        if config.get(name) == "auto":
            del config[name]
    if not world and "train_micro_batch_size_per_gpu" in config:
        config.pop("train_batch_size", None)
    elif not world:
        config.pop("gradient_accumulation_steps", None)
    if not any(name in config for name in BATCH[:2]):
        config["train_micro_batch_size_per_gpu"] = 1


def examine(path: str, world: int) -> None:
    """Ask, remove what was rejected, ask again."""
    emit({"step": "import deepspeed"})
    try:
        module = importlib.import_module("deepspeed.runtime.config")
        comm = importlib.import_module("deepspeed.comm")
        package = importlib.import_module("deepspeed")
    except BaseException as error:
        emit({"error": "import", "text": (type(error).__name__ + ": " + str(error))[:400]})
        return
    emit({"fact": "version", "value": str(getattr(package, "__version__", ""))})
    # as in a job of that many ranks, without starting any
    vars(comm).update(
        get_rank=lambda *_, **__: 0,
        get_world_size=lambda *_, **__: max(world, 1),
    )
    emit({"step": "read config"})
    try:
        config = load(module, path)
    except Exception as error:
        refusal = {"key": "", "message": str(error)[:400], "kind": type(error).__name__}
        emit({"refusal": refusal})
        return
    if not isinstance(config, dict):
        return
    config = json.loads(json.dumps(config))
    for part in ("optimizer", "scheduler"):
        parameters(part, config)
    prepare(config, world)
    seen = set()
    for _ in range(MOST):
        try:
            module.DeepSpeedConfig(copy.deepcopy(config))
        except Exception as error:
            fresh = [one for one in refusals(error, config) if str(one) not in seen]
            for one in fresh:
                seen.add(str(one))
                emit({"refusal": one})
            again = [one["key"] for one in fresh if one["key"] and one["key"] not in BATCH]
            for key in sorted(set(again), key=len, reverse=True):
                if holds(config, key):
                    drop(config, key)
            if not again:
                return
        else:
            return


def main(arguments: list[str]) -> None:
    """Run the script."""
    del sys.argv[1:]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    try:  # what imported modules keep until the end; the name allows removal if this is killed
        tempfile.tempdir = tempfile.mkdtemp(prefix=mine)
    except OSError:  # no place is writable
        mine = ""
    examine(arguments[0], int(arguments[1]) if len(arguments) > 1 else 0)
    emit({"done": True})
    if mine and tempfile.tempdir is not None:
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
