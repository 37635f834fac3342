"""YAML files that a command refers to: accelerate's configuration, arguments of trainers."""

from __future__ import annotations

import posixpath
import weakref
from collections.abc import Mapping
from typing import Any

from dsdoctor import yaml_text
from dsdoctor.host import Host, HostError, read_text
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


#: What a host has read. Its file is asked for the config, for the ranks and for what stops them,
#: and all of them must see the same content.
_READ: weakref.WeakKeyDictionary[Host, dict[str, dict[str, Any] | None]] = (
    weakref.WeakKeyDictionary()
)


def read_yaml(path: str, host: Host, cwd: str) -> dict[str, Any] | None:
    """A YAML mapping; None if it cannot be read, is too large or is something else.

    A host reads a file once.
    """
    full = posixpath.normpath(posixpath.join(cwd, path))
    read = _READ.setdefault(host, {})
    if full not in read:
        read[full] = _mapping(full, host)
    return read[full]


def _mapping(path: str, host: Host) -> dict[str, Any] | None:
    try:
        found = yaml_text.load(read_text(host, path))
    except (HostError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def accelerate_values(command: LaunchCommand, host: Host, cwd: str) -> dict[str, Any]:
    """The values of accelerate's YAML, for a command that accelerate launches."""
    if (command.inner or command.launcher) != "accelerate":
        return {}
    name = command.options.get("config_file") or default_accelerate(host)
    return (read_yaml(name, host, cwd) or {}) if name else {}
