"""The model that the command trains, and how, from its options, its YAML and its script."""

from __future__ import annotations

import dataclasses
import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from dsdoctor.api import LaunchCommand, RunNeeds, TrainingJob, probe, whole
from dsdoctor.errors import UsageError
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.lazy_regex import lazy
from dsdoctor.model.facts.base import Why
from dsdoctor.probes.command_tables import ON_TRANSFORMERS, PRESETS
from dsdoctor.probes.launch_files import MODELS, hub_caches
from dsdoctor.probes.script_imports import starts_elsewhere
from dsdoctor.scripts.hub_names import OF_HUB
from dsdoctor.scripts.model_name import model_named_in
from dsdoctor.scripts.own_files import OwnFiles, own_files
from dsdoctor.scripts.training_method import (
    FULL,
    LORA,
    OFF,
    UNKNOWN,
    of_options,
    of_script,
    of_trainer,
)

#: Options of Hugging Face's example scripts, TRL, LLaMA-Factory and many others.
_MODEL = (*MODELS, "model", "model_name", "model_id", "model_id_or_path")
_SEQUENCE = (
    "max_seq_length", "max_seq_len", "max_length", "block_size", "cutoff_len", "model_max_length",
    "seq_length", "sequence_length", "sequence_len",
)  # fmt: skip
_MICRO_BATCH = ("per_device_train_batch_size", "micro_batch_size", "train_micro_batch_size_per_gpu")
_CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")
_RANK = ("lora_r", "lora_rank", "lora_dim")
#: What only a shell fills in.
_SYNTAX = lazy(r"[$`*?~{}<>|;&]")
#: The size of a `config.json` that is read.
_LONGEST = 1 << 20
#: The revision of a cached model.
_REVISION = lazy(r"[0-9a-f]{40}")


@probe
def training_job(host: Host, run: RunNeeds, command: LaunchCommand) -> TrainingJob:
    """Runs nothing: options, the model's `config.json` and the source of the script are read."""
    if run.container is not None or starts_elsewhere(command):
        raise HostError(Why.UNSUPPORTED, "the script may run in another file system")
    values = {**run.trainer_values, **dict(command.script_options())}
    files = _files(host, run, command)
    name, named_by = _named(values, command, files)
    tokens, batch = _number(values, _SEQUENCE), _number(values, _MICRO_BATCH)
    preset = values.get("deepspeed", "")
    recomputed = next((values[option] for option in _CHECKPOINTING if option in values), None)
    known = _shape(host, run, command, name) if name else {}
    method = _method(run, command, values, files)
    if method == FULL and known.get("shape", {}).get("towers"):
        method = UNKNOWN  # trainers freeze the encoder of images by default
    return TrainingJob(
        model=name,
        named_by=named_by,
        preset=preset if preset in PRESETS else "",
        method=method,
        lora_rank=_number(values, _RANK),
        micro_batch=batch,
        sequence=tokens,
        checkpointing=None if recomputed is None else recomputed.lower() not in OFF,
        saves_states=_saves_states(run, values),
        **known,
    )


def _number(values: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    """The first of these options that is a number above 0."""
    numbers = (whole(values[name]) for name in names if name in values)
    return next((number for number in numbers if number), None)


def _saves_states(run: RunNeeds, values: Mapping[str, str]) -> bool | None:
    """What transformers' own options say, if the script or trainer takes them.

    It saves by steps unless it is told otherwise (transformers 4.30-5.24 training_args.py).
    """
    if not run.training_arguments:
        return None
    only_weights = values.get("save_only_model", "false").lower() not in OFF
    return values.get("save_strategy", "steps") != "no" and not only_weights


def _files(host: Host, run: RunNeeds, command: LaunchCommand) -> OwnFiles | None:
    """The script with the modules of its project; None if none can be read."""
    script = command.script or ""
    return None if _SYNTAX.search(script) else own_files(host, script, run.cwd)


def _named(
    values: Mapping[str, str], command: LaunchCommand, files: OwnFiles | None
) -> tuple[str, str]:
    """The model, and the option or line that names it."""
    for option in _MODEL:
        name = values.get(option, "")
        if name and not name.startswith("-") and not _SYNTAX.search(name):
            return name, f"`--{option}`" if command.has_script_option(option) else f"`{option}:`"
    tree = next(iter(files.trees.values()), None) if files else None
    if tree is None:
        return "", ""
    found = model_named_in(tree)
    return (found[0], f"line {found[1]} of `{command.script}`") if found else ("", "")


def _method(
    run: RunNeeds,
    command: LaunchCommand,
    values: Mapping[str, str],
    files: OwnFiles | None,
) -> str:
    own_optimizer = bool((run.config or {}).get("optimizer"))
    program = posixpath.basename(command.program)
    if program in ON_TRANSFORMERS:
        return of_trainer(program, command.script_args, values, own_optimizer=own_optimizer)
    if files is None:
        return UNKNOWN
    if not files.complete:
        return LORA if of_options(values) == LORA else UNKNOWN
    trees = list(files.trees.values())
    return of_script(trees, files.names, values, own_optimizer=own_optimizer)


def _shape(host: Host, run: RunNeeds, command: LaunchCommand, name: str) -> dict[str, Any]:
    """The shape of a model and the path of its config; empty if no formula covers it."""
    from dsdoctor.recommend import model_names, models  # noqa: PLC0415  # 35 ms

    variables = dict(host.env) | command.env
    folders = [(name, posixpath.normpath(posixpath.join(run.cwd, name)))]
    if OF_HUB.fullmatch(name):
        folders += [(folder, folder) for folder in _cached(host, name, variables)]
    path, config = next(
        ((path, config) for path, folder in folders if (config := _config(host, folder))),
        ("", None),
    )
    if config is None:
        is_path = name.startswith((".", "/"))
        found = (None if is_path else models.preset(name)) or model_names.from_name(name)
        path = name
    elif config.get("quantization_config"):
        return {}
    else:
        try:
            found = models.from_config(config, name)
        except (UsageError, ArithmeticError, TypeError, ValueError):
            return {}
    if found is None or found.layers > models.MOST_LAYERS:
        return {}
    shape = {**dataclasses.asdict(found), "name": name, "parameters": found.parameters}
    return {"path": path, "shape": shape}


def _cached(host: Host, name: str, variables: Mapping[str, str]) -> Iterator[str]:
    """The model in the hub's caches, of the revision that `main` was when it was downloaded."""
    for place in hub_caches(variables):
        folder = posixpath.join(place, "models--" + name.replace("/", "--"))
        try:
            revision = read_text(host, posixpath.join(folder, "refs", "main")).strip()
        except HostError:
            continue
        if _REVISION.fullmatch(revision):
            yield posixpath.join(folder, "snapshots", revision)


def _config(host: Host, folder: str) -> dict[str, Any] | None:
    """The `config.json` of a folder; None if there is none, or it is no JSON object."""
    try:
        text = read_text(host, posixpath.join(folder, "config.json"))
        found = json.loads(text) if len(text) <= _LONGEST else None
    except (HostError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
