"""Facts about the DeepSpeed config."""

from __future__ import annotations

from typing import Any

import msgspec

from dsdoctor.model.facts.base import Fact


class DsConfig(Fact, frozen=True, kw_only=True):
    """The DeepSpeed config, read as DeepSpeed reads it.

    Attributes:
        path: the file, as given; None for text that did not come from a file.
        parsed: its content, secrets masked; None if it cannot be parsed or is not an object.
        error: why it cannot be used; None if it can.
        error_line: line of that error, if known.
        error_column: column of that error, if known.
        duplicates: keys that occur twice in one section (dotted), with all their lines.
        last_counts: keys occur twice, which Python's `json` module accepts; it keeps the last.
        lines: dotted key to its line number, from 1.
        strict_error: why Python's `json` module cannot parse the file, as Hugging Face's and
            Lightning's loaders do; None if it can.
        strict_line: line of that error, if known.
        swallowed: dotted key to an unquoted string that includes the comma or bracket after it.
    """

    path: str | None = None
    parsed: dict[str, Any] | None = None
    error: str | None = None
    error_line: int | None = None
    error_column: int | None = None
    duplicates: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    last_counts: bool = False
    lines: dict[str, int] = msgspec.field(default_factory=dict)
    strict_error: str | None = None
    strict_line: int | None = None
    swallowed: dict[str, str] = msgspec.field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under a dotted key.

        >>> DsConfig(parsed={"zero_optimization": {"stage": 2}}).get("zero_optimization.stage")
        2
        """
        value: Any = self.parsed
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return default
            value = value[part]
        return value

    def section(self, key: str) -> dict[str, Any]:
        """The object under a dotted key; empty if there is none."""
        value = self.get(key)
        return value if isinstance(value, dict) else {}

    def named(self, key: str) -> str:
        """A key as messages name it, with its line.

        >>> DsConfig(lines={"fp16.enabled": 7}).named("fp16.enabled")
        '`fp16.enabled` (line 7)'
        """
        line = self.lines.get(key)
        return f"`{key}`" if line is None else f"`{key}` (line {line})"


class ConfigRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """One objection that DeepSpeed itself raises to the config.

    Attributes:
        key: dotted key concerned; "" = the config as a whole.
        message: DeepSpeed's or pydantic's words.
        kind: class of the error (`ValidationError`, `AssertionError`, `DeepSpeedConfigError`).
    """

    key: str = ""
    message: str = ""
    kind: str = ""


class ClassParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Keyword arguments that a class accepts from the config.

    Attributes:
        cls: its name.
        names: the arguments, without the parameters or the optimizer that the engine passes.
    """

    cls: str
    names: tuple[str, ...] = ()


class ConfigVerdict(Fact, frozen=True, kw_only=True):
    """DeepSpeed's own verdict on the config, obtained without starting a run.

    Attributes:
        version: version of that DeepSpeed.
        world: number of ranks that the batch sizes were tried with.
        refusals: what it rejects; empty = the config is accepted.
        parameters: `optimizer` and `scheduler` to the class in the config and what it
            accepts; absent where the class is unknown or accepts any keyword.
    """

    version: str | None = None
    world: int = 1
    refusals: tuple[ConfigRefusal, ...] = ()
    parameters: dict[str, ClassParameters] = {}
