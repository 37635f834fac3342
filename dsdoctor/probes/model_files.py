"""Files of the model and of the checkpoint that a command loads."""

from __future__ import annotations

import json
import posixpath

from dsdoctor.api import LaunchCommand, RunNeeds
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.probes.shell_words import SYNTAX

#: Weights of a model as transformers looks for them: a file, else its index, first those of
#: safetensors (4.30 to 5.24 modeling_utils.py, 2026-11-30).
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
#: An index of a thousand files has some hundred KiB.
_LARGEST_INDEX = 32 << 20
#: Names of SentencePiece's files in folders of transformers: Llama, T5, XLM-R, DeBERTa.
_SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
#: What a file of SentencePiece begins with: the first field of its protocol buffer, the pieces. A
#: `tokenizer.model` of tiktoken is text.
_PIECES = b"\n"


def checkpoint_loaded(host: Host, command: LaunchCommand, run: RunNeeds) -> str | None:
    """The folder from which the script loads a checkpoint of DeepSpeed, if it says so."""
    if not (command.script or "").endswith(".py"):
        return None
    path = posixpath.normpath(posixpath.join(run.cwd, str(command.script)))
    try:
        text = read_text(host, path)
    except (HostError, UnicodeDecodeError):
        return None
    if "load_checkpoint" not in text or "deepspeed" not in text:
        return None
    # most scripts load none
    from dsdoctor.scripts.checkpoint_loaded import (  # noqa: PLC0415
        folder_of_checkpoint,
        option_of_checkpoint,
    )
    from dsdoctor.scripts.reach import parsed  # noqa: PLC0415

    tree = parsed(text)
    if tree is None:
        return None
    given = dict(command.script_options()).get(option_of_checkpoint(tree), "")
    given = given or folder_of_checkpoint(tree)
    return None if not given or given.startswith("-") or SYNTAX.search(given) else given


def has_weights(host: Host, folder: str) -> bool:
    """Whether a folder holds the weights of a whole model."""
    try:
        names = host.listdir(folder)
    except HostError:
        return False
    return any(name in _WEIGHTS or name.endswith(".index.json") for name in names)


def files_lacking(host: Host, folder: str) -> tuple[str, ...]:
    """Weights that the index in a model's folder lists and that are not there."""
    try:
        names = set(host.listdir(folder))
        for file in _WEIGHTS:
            index = f"{file}.index.json"
            path = posixpath.join(folder, index)
            if file in names:
                return ()
            if index in names and host.stat(path).size <= _LARGEST_INDEX:
                listed = json.loads(host.read(path))["weight_map"].values()
                return tuple(sorted({str(name) for name in listed if "/" not in name} - names))
    except (HostError, ValueError, KeyError, TypeError, AttributeError):
        return ()
    return ()


def sentencepiece_file(host: Host, folder: str) -> str:
    """The file of SentencePiece that a model's tokenizer must be made from; "" = none is needed.

    With `tokenizer.json`, transformers needs no other file, and Mistral's `tekken.json` has its own
    reader. Code of the model (`auto_map`) may read the file in another way.
    """
    try:
        names = set(host.listdir(folder))
        if names & {"tokenizer.json", "tekken.json"}:
            return ""
        name = next((name for name in _SENTENCEPIECE if name in names), "")
        if not name or not host.read(posixpath.join(folder, name)).startswith(_PIECES):
            return ""
        config = posixpath.join(folder, "tokenizer_config.json")
        own = b"auto_map" in host.read(config) if "tokenizer_config.json" in names else False
    except HostError:
        return ""
    return "" if own else name
