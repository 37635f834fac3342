"""Which number format a DeepSpeed config enables, and the options of a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsdoctor.api import LaunchCommand


def asks(config: Mapping[str, object] | None, *sections: str) -> str | None:
    """The first of these sections that is enabled; `auto` does not count.

    >>> asks({"bf16": {"enabled": True}}, "bf16", "bfloat16"), asks({"fp16": {}}, "fp16")
    ('bf16', None)
    """
    for name in sections:
        section = (config or {}).get(name)
        if not isinstance(section, Mapping):
            continue
        enabled = section.get("enabled")
        if enabled is True or (isinstance(enabled, str) and enabled.lower() == "true"):
            return name
    return None


def option_values(command: LaunchCommand) -> Iterator[tuple[str, str]]:
    """Name and value of every option of launcher and script; "" if it has no value."""
    for name, value in command.options.items():
        yield name.replace("-", "_"), value
    yield from command.script_options()
