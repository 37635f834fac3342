"""YAML files that a command refers to: accelerate's configuration, arguments of trainers."""

from __future__ import annotations

import posixpath
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

from dsdoctor import yaml_text
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.launch import LaunchCommand

#: Accelerate's file without `--config_file` (accelerate 1.15 commands/config/config_args.py).
_ACCELERATE_DEFAULT = "accelerate/default_config.yaml"


def hub_home(variables: Mapping[str, str]) -> str:
    """The folder of Hugging Face's caches and settings (huggingface_hub 0.14-2.4 constants.py)."""
    cache = variables.get("XDG_CACHE_HOME") or posixpath.join(variables.get("HOME", ""), ".cache")
    return variables.get("HF_HOME") or posixpath.join(cache, "huggingface")


def default_accelerate(host: Host) -> str | None:
    """The file that accelerate reads without `--config_file`; None = it does not exist."""
    path = posixpath.join(hub_home(host.env), _ACCELERATE_DEFAULT)
    try:
        host.stat(path)
    except HostError:
        return None
    return path


class _Read(NamedTuple):
    """A file: its mapping, or why every reader of YAML stops at it; neither is known of others."""

    values: dict[str, Any] | None = None
    fault: str = ""


#: What a host has read. Its file is asked for the config, for the ranks and for what stops them,
#: and all of them must see the same content.
_READ: weakref.WeakKeyDictionary[Host, dict[str, _Read]] = weakref.WeakKeyDictionary()


def read_yaml(path: str, host: Host, cwd: str) -> dict[str, Any] | None:
    """A YAML mapping; None if it cannot be read, is too large or is something else.

    A host reads a file once.
    """
    return _read(path, host, cwd).values


def _read(path: str, host: Host, cwd: str) -> _Read:
    full = posixpath.normpath(posixpath.join(cwd, path))
    held = _READ.setdefault(host, {})
    if full not in held:
        held[full] = _read_now(full, host)
    return held[full]


def _read_now(path: str, host: Host) -> _Read:
    try:
        return _parsed(host.read(path))
    except HostError:
        return _Read()


def _parsed(data: bytes) -> _Read:
    """The mapping in a file, or its fault.

    >>> _parsed(b"a: [1").fault, _parsed(b"").fault, _parsed(b"a: 1").values
    ("line 1: expected ',' or ']', but got '<stream end>'", 'it is empty', {'a': 1})
    """
    try:
        found = yaml_text.load(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _Read(fault="it is not in UTF-8")
    except yaml_text.NotYamlError as error:
        return _Read(fault=str(error))
    except ValueError:  # a limit of this program
        return _Read()
    if isinstance(found, dict):
        return _Read(found)
    return _Read(fault="it is empty" if found is None else "it is not a mapping")


def trainer_files(command: LaunchCommand) -> list[str]:
    """The first YAML files among the arguments of a trainer or a script."""
    return [word for word in command.script_args if word.endswith((".yaml", ".yml"))][:3]


def trainer_values(command: LaunchCommand, host: Host, cwd: str) -> dict[str, str]:
    """Options that the YAML files of a trainer set, as the command line would write them.

    LLaMA-Factory, axolotl and TRL name them as transformers does.
    """
    found: dict[str, str] = {}
    for name in trainer_files(command):
        for key, value in (read_yaml(name, host, cwd) or {}).items():
            if isinstance(value, bool):
                found[str(key)] = str(value).lower()
            elif isinstance(value, (str, int, float)):
                found[str(key)] = str(value)
    return found


def accelerate_fault(command: LaunchCommand, host: Host, cwd: str) -> str:
    """Why accelerate stops at its YAML, whatever it contains; "" if it does not."""
    name = accelerate_file(command, host)
    fault = _read(name, host, cwd).fault if name and not name.endswith(".json") else ""
    return f"`{name}` cannot be read as YAML: {fault}" if fault else ""


def accelerate_file(command: LaunchCommand, host: Host) -> str:
    """The file that accelerate reads for a command that it launches; "" = none."""
    if (command.inner or command.launcher) != "accelerate":
        return ""
    return command.options.get("config_file") or default_accelerate(host) or ""


def accelerate_values(command: LaunchCommand, host: Host, cwd: str) -> dict[str, Any]:
    """The values of accelerate's YAML, for a command that accelerate launches."""
    name = accelerate_file(command, host)
    return (read_yaml(name, host, cwd) or {}) if name else {}
