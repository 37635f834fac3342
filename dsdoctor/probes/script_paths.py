"""Files that the training script reads, and whether they exist."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from dsdoctor.api import (
    LaunchCommand,
    MissingPath,
    RunNeeds,
    ScriptPaths,
    UncachedName,
    probe,
)
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.probes.launch_files import hub_caches, model_of
from dsdoctor.probes.script_imports import script_of, starts_elsewhere
from dsdoctor.probes.yaml_files import hub_home
from dsdoctor.scripts.hub_names import models_loaded, named_of_hub
from dsdoctor.scripts.reach import parsed
from dsdoctor.scripts.read_paths import paths_read

#: Options that name data, as trainers call them: transformers' and diffusers' examples, FastChat,
#: LLaVA, Qwen; read 2026-11-29.
_OPTIONS = frozenset(
    {"train_file", "validation_file", "test_file", "data_path", "eval_data_path",
     "train_data_path", "valid_data_path", "dataset_path", "train_data_file", "eval_data_file"}
)  # fmt: skip
#: A value without such an ending may be a name of the hub, or the beginning of several files.
_DATA = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".arrow", ".npy", ".npz", ".pt")
#: What Git LFS keeps in repositories of models.
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".model", ".gguf", "tokenizer.json")
#: A pointer is a text of three lines.
_MOST_OF_A_POINTER = 1024
#: Larger files are not read only to see whether that is allowed.
_LARGEST_TRIAL = 1 << 20
_POINTER = b"version https://git-lfs"
#: What only a shell or the script itself fills in.
_SYNTAX = frozenset("*?[]{}$`~,")


@probe
def script_paths(host: Host, run: RunNeeds, command: LaunchCommand) -> ScriptPaths:
    """Looks for what the script's source and the command state literally."""
    script = script_of(command)
    if run.container is not None or starts_elsewhere(command):
        raise HostError(Why.UNSUPPORTED, "the script may run in another file system")
    text = read_text(host, posixpath.normpath(posixpath.join(run.cwd, script)))
    tree = parsed(text)
    read = (
        {} if tree is None else {path: f"line {at} of `{script}`" for path, at in paths_read(tree)}
    )
    read |= dict(_of_options(command))
    models = (
        {}
        if tree is None
        else {path: f"line {line} of `{script}`" for path, line in models_loaded(tree)}
    )
    if named := model_of(command, run):
        models[named] = "the command"
    return ScriptPaths(
        script=script,
        folder=run.cwd,
        missing=tuple(
            MissingPath(path=path, read_by=by)
            for path, by in read.items()
            if _is_missing(host, posixpath.normpath(posixpath.join(run.cwd, path)))
        ),
        unusable=tuple(
            MissingPath(path=path, read_by=by, why=why)
            for path, by in _of_options(command)
            if (why := _unusable(host, posixpath.normpath(posixpath.join(run.cwd, path))))
        ),
        pointers=tuple(
            MissingPath(path=posixpath.join(path, name), read_by=by)
            for path, by in models.items()
            for name in _pointers(host, posixpath.normpath(posixpath.join(run.cwd, path)))
        ),
        uncached=tuple(
            UncachedName(name=one.name, line=one.line, is_data=one.is_data)
            for one in (() if tree is None else named_of_hub(text, tree))
            if _is_missing(host, posixpath.normpath(posixpath.join(run.cwd, one.name)))
            and _is_uncached(host, one.name, dict(host.env) | command.env, is_data=one.is_data)
        ),
    )


def _is_uncached(host: Host, name: str, variables: Mapping[str, str], *, is_data: bool) -> bool:
    """Whether no cache holds anything of that name.

    datasets 2.14 to 5.2 keeps what it has prepared as `owner___name`, with the name spelled its own
    way (builder.py).
    """
    folder = f"{'datasets' if is_data else 'models'}--{name.replace('/', '--')}"
    places = [posixpath.join(place, folder) for place in hub_caches(variables)]
    if not all(_is_missing(host, place) for place in places):
        return False
    if not is_data:
        return True
    prepared = variables.get("HF_DATASETS_CACHE") or posixpath.join(hub_home(variables), "datasets")
    try:
        names = host.listdir(prepared)
    except HostError as error:
        return error.missing.why is Why.ABSENT
    return not any(one.startswith(f"{name.partition('/')[0]}___") for one in names)


def _pointers(host: Host, folder: str) -> list[str]:
    """Files of a model's folder that `git clone` without Git LFS left as pointers."""
    try:
        names = [name for name in host.listdir(folder) if name.endswith(_WEIGHTS)]
    except HostError:  # a name of the hub, or a folder that others report
        return []
    return [name for name in names if _is_pointer(host, posixpath.join(folder, name))]


def _is_pointer(host: Host, path: str) -> bool:
    try:
        return host.stat(path).size <= _MOST_OF_A_POINTER and host.read(path).startswith(_POINTER)
    except HostError:
        return False


def _of_options(command: LaunchCommand) -> Iterator[tuple[str, str]]:
    for name, value in command.script_options():
        if name in _OPTIONS and value.endswith(_DATA) and not set(value) & _SYNTAX:
            yield value, f"`--{name}`"


def _unusable(host: Host, path: str) -> str:
    """Why a file of data that exists cannot be used; "" = it may be."""
    try:
        found = host.stat(path)
        if found.kind != "file":
            return ""
        if not found.size:
            return "empty"
        if found.size <= _LARGEST_TRIAL:
            host.read(path)
    except HostError as error:
        return "denied" if error.missing.why is Why.DENIED else ""
    return ""


def _is_missing(host: Host, path: str) -> bool:
    try:
        host.stat(path)
    except HostError as error:
        return error.missing.why is Why.ABSENT
    return False
