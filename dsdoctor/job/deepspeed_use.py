"""Whether the job of a command uses DeepSpeed."""

from __future__ import annotations

import posixpath

from dsdoctor.framework import syntax_of
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.probes.command_tables import ON_TRANSFORMERS
from dsdoctor.probes.script_imports import imports_of, starts_elsewhere
from dsdoctor.probes.yaml_files import accelerate_file, default_accelerate, read_yaml
from dsdoctor.scripts.deepspeed_use import may_start_deepspeed
from dsdoctor.scripts.own_files import own_files

_NAME = "deepspeed"
#: Files of settings that a script may read.
_SETTINGS = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini")
#: Bytes; a longer file is data.
_LONGEST = 1 << 20
#: Variables that turn it on whatever the command says (accelerate 0.20-1.15 state.py).
_SWITCH = "ACCELERATE_USE_DEEPSPEED"


def deepspeed_use(command: LaunchCommand, text: str, host: Host, cwd: str) -> bool | None:
    """Whether the job uses DeepSpeed; None = unknown.

    Args:
        command: the command that starts the job.
        text: its script; "" = it could not be read.
        host: whose files are read.
        cwd: the folder in which the command runs.

    Returns:
        True if its launcher is DeepSpeed's, or the script imports DeepSpeed in any case. False if
        nothing that the script imports can start DeepSpeed without being told to, and nothing
        tells it to: neither the command and its files, nor the script and its own modules.
    """
    if _NAME in (command.launcher, command.inner) or _NAME in (imports_of(text) or {}):
        return True
    if _is_mentioned(command, host, cwd) or starts_elsewhere(command):
        return None
    if posixpath.basename(command.program) in ON_TRANSFORMERS:
        return False
    if not text or syntax_of(text) is None:
        return None
    files = own_files(host, command.script or "", cwd)
    if files is None or not files.complete:
        return None
    return None if may_start_deepspeed([*files.trees.values()], files.names) else False


def _is_mentioned(command: LaunchCommand, host: Host, cwd: str) -> bool:
    """Whether the command, its variables or a file of settings tells something to start it."""
    words = [*command.argv, *command.env]
    if any(_NAME in word.lower() or "ds_config" in word for word in words):
        return True
    if host.env.get(_SWITCH, "").lower() in ("1", "true", "yes", "on"):
        return True
    given = [word.rpartition("=")[2] for word in command.script_args]
    files = [word for word in given if word.lower().endswith(_SETTINGS)]
    files.append(accelerate_file(command, host))
    if posixpath.basename(command.program) in ON_TRANSFORMERS:
        # `trl` and `axolotl` start accelerate
        if command.has_script_option("accelerate_config"):
            return True
        files.append(default_accelerate(host) or "")
    return any(_tells(file, host, cwd) for file in files if file)


def _tells(path: str, host: Host, cwd: str) -> bool:
    """Whether a file of settings contains a key or value that speaks of DeepSpeed."""
    full = posixpath.normpath(posixpath.join(cwd, path))
    try:
        if host.stat(full).size > _LONGEST:
            return False
        if path.lower().endswith((".yaml", ".yml")) and (values := read_yaml(path, host, cwd)):
            return _is_in(values)
        return _NAME in read_text(host, full).lower()
    except HostError:
        return False


def _is_in(value: object) -> bool:
    """Whether settings speak of DeepSpeed, other than with a key that is empty.

    >>> _is_in({"deepspeed_config": {}}), _is_in({"a": [{"distributed_type": "DEEPSPEED"}]})
    (False, True)
    """
    if isinstance(value, dict):
        return any(
            (_NAME in str(key).lower() and bool(inner)) or _is_in(inner)
            for key, inner in value.items()
        )
    if isinstance(value, (list, tuple)):
        return any(map(_is_in, value))
    return isinstance(value, str) and _NAME in value.lower()
