"""Which number format a DeepSpeed config enables."""

from __future__ import annotations

from collections.abc import Mapping


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
