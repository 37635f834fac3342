"""Reads the DeepSpeed config as DeepSpeed does: hjson, duplicate keys are rejected."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from dsdoctor import yaml_text
from dsdoctor.api import probe
from dsdoctor.host import Host, HostError
from dsdoctor.model import decode
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.plain import shortened
from dsdoctor.model.redact import mask_tree, mask_value

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$")
_LONGEST_NUMBER = 400
_STOP = re.compile(r"[,}\]#]|//|/\*")
#: Maximum characters of a config: 1 s at worst. A real one has a few thousand.
LONGEST = 1 << 18
LONGEST_SHOWN = 80
_WIDE = "the file is in UTF-16 or UTF-32, expected UTF-8"
_WORDS = frozenset({"true", "false", "null"})
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
#: A JSON object with one of these is a DeepSpeed config (deepspeed 0.19.8 runtime/constants.py).
CONFIG_KEYS = frozenset(
    {"zero_optimization", "train_micro_batch_size_per_gpu", "bf16", "fp16", "bfloat16",
     "zero_allow_untested_optimizer", "activation_checkpointing", "steps_per_print",
     "wall_clock_breakdown", "gradient_clipping", "flops_profiler", "autotuning", "comms_logger"}
)  # fmt: skip
_LEAST_KEYS = 2
#: Keys that no other program's JSON has.
_CERTAIN = frozenset({"zero_optimization", "train_micro_batch_size_per_gpu"})


class _Scanner:
    """Scans hjson and records the line of each key.

    It never raises on broken text: it returns what it has found before the error.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[str, list[int]] = {}
        self.swallowed: dict[str, str] = {}
        self.open: list[int] = []
        self._counted = (0, 1)

    def line(self, at: int) -> int:
        """Number of the line that contains an offset."""
        since, line = self._counted
        if at < since:
            return self.text.count("\n", 0, at) + 1
        # continues from the last position: starting over for each key would be quadratic
        self._counted = (at, line + self.text.count("\n", since, at))
        return self._counted[1]

    def scan(self) -> None:
        """Scans the whole text."""
        try:
            self._space()
            if self._peek() == "{":
                self._value("")
            elif self._peek() != "[":
                self._members("", "")
        except (IndexError, ValueError, RecursionError):
            return

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _space(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in " \t\r\n":
                self.at += 1
            elif self.text.startswith(("#", "//"), self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text.startswith("/*", self.at):
                self.at = self.text.index("*/", self.at + 2) + 2
            else:
                return

    def _quoted(self) -> str:
        quote = self.text[self.at]
        start = self.at = self.at + 1
        while self.text[self.at] != quote:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1
        return _ESCAPE.sub(_unescape, self.text[start : self.at - 1])

    def _key(self) -> str:
        if self._peek() in "\"'":
            return self._quoted()
        start = self.at
        self.at = self.text.index(":", start)
        return self.text[start : self.at].strip()

    def _members(self, path: str, end: str) -> None:
        while True:
            self._space()
            if self._peek() == end:
                self.at += 1
                return
            line = self.line(self.at)
            name = self._key()
            key = f"{path}.{name}" if path else name
            self.lines.setdefault(key, []).append(line)
            self._space()
            if self._peek() != ":":
                raise ValueError(key)
            self.at += 1
            self._value(key)
            self._comma()

    def _items(self, path: str) -> None:
        index = 0
        while True:
            self._space()
            if self._peek() == "]":
                self.at += 1
                return
            self._value(f"{path}.{index}")
            self._comma()
            index += 1

    def _comma(self) -> None:
        self._space()
        if self._peek() == ",":
            self.at += 1

    def _value(self, path: str) -> None:
        self._space()
        first = self.text[self.at]
        if first in "{[":
            self.open.append(self.at)
            self.at += 1
            if first == "{":
                self._members(path, "}")
            else:
                self._items(path)
            self.open.pop()
        elif self.text.startswith("'''", self.at):
            self.at = self.text.index("'''", self.at + 3) + 3
        elif first in "\"'":
            self._quoted()
        else:
            self._bare_word(path)

    def _bare_word(self, path: str) -> None:
        """A number or word ends at a comma, bracket or comment; any other text ends with the line.

        Text such as `True,` and `cpu}` therefore includes the characters after it.
        """
        start = self.at
        end = self.text.find("\n", start)
        end = len(self.text) if end < 0 else end
        # after the first of these, a text is neither a number nor a word
        stop = _STOP.search(self.text, start, end)
        if stop is not None:
            word = self.text[start : stop.start()].strip()
            if word in _WORDS or (len(word) <= _LONGEST_NUMBER and _NUMBER.match(word)):
                self.at = stop.start()
                return
        self.at = end
        word = self.text[start:end].strip()
        if word[-1:] in {",", "}", "]"}:
            self.swallowed[path] = word[:LONGEST_SHOWN]


def _unescape(match: re.Match[str]) -> str:
    try:
        return str(json.loads(f'"{match[0]}"'))
    except ValueError:
        return match[1]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = sorted(name for name, count in counts.items() if count > 1)
        raise ValueError(f"duplicate keys {twice[:20]}")
    return found


def parse_config(text: str, path: str | None = None) -> DsConfig:
    r"""Parses a config; if DeepSpeed would fail to parse it, `error` is set.

    >>> parse_config('{"fp16": {"enabled": true,},  // half\n "zero_optimization": {}}').lines
    {'fp16': 1, 'fp16.enabled': 1, 'zero_optimization': 2}
    """
    import hjson  # noqa: PLC0415  # 10 ms that runs without a config need not pay

    given, text = text, text.removeprefix("\ufeff")
    section = trainer_section(text, path)
    if section is not None:
        # a YAML loader reads it: there are no lines of JSON to report
        fact = parse_config(json.dumps(section, default=str))
        return msgspec.structs.replace(fact, path=path, lines={}, duplicates={})
    if len(text) > LONGEST:
        words = f"the file is larger than {LONGEST >> 10} KiB, expected a DeepSpeed config"
        return DsConfig(path=path, error=words, error_line=1)
    scanner = _Scanner(text)
    scanner.scan()
    fact = DsConfig(
        path=path,
        lines={key: found[0] for key, found in scanner.lines.items()},
        duplicates={key: tuple(found) for key, found in scanner.lines.items() if len(found) > 1},
        swallowed=scanner.swallowed,
    )
    if "\0" in text[:8]:
        return msgspec.structs.replace(fact, error=_WIDE, error_line=1)
    if not text.strip():
        return msgspec.structs.replace(fact, error="the file is empty", error_line=1)
    try:
        parsed = hjson.loads(text, object_pairs_hook=_unique)
    except hjson.HjsonDecodeError as error:
        line, column, words = error.lineno, error.colno, str(error.msg).replace(" %r at", "")
        if scanner.swallowed:
            key, word = next(iter(scanner.swallowed.items()))
            line, column = fact.lines.get(key, line), None
            shown = shortened(mask_value(key, word), LONGEST_SHOWN)
            words = f"`{shown}` is an unquoted string that runs to the end of the line"
        elif error.pos >= len(text.rstrip()) and scanner.open:
            opened = scanner.open[-1]
            line, column = scanner.line(opened), opened - text.rfind("\n", 0, opened)
            words = f"`{text[opened]}` is never closed"
        return msgspec.structs.replace(fact, error=words, error_line=line, error_column=column)
    except (ValueError, OverflowError, IndexError, RecursionError) as error:
        if fact.duplicates and _strict(fact, given).strict_error is None:
            fact = msgspec.structs.replace(fact, last_counts=True)
        line = next((found[1] for found in fact.duplicates.values()), None)
        words = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return msgspec.structs.replace(fact, error=words[:400], error_line=line)
    fact = _strict(fact, given)
    try:
        decode.check(parsed)
    except decode.DecodeError as error:
        return msgspec.structs.replace(fact, error=str(error), error_line=1)
    if not isinstance(parsed, dict):
        kind = type(parsed).__name__
        return msgspec.structs.replace(
            fact, error=f"it contains a {kind}, not an object", error_line=1
        )
    return msgspec.structs.replace(fact, parsed=mask_tree(parsed))


def is_config(keys: AbstractSet[str], *, parsed: bool = True) -> bool:
    """Whether an object with these keys is a DeepSpeed config, wherever it is found.

    Args:
        keys: the keys at the top.
        parsed: the text could be parsed; else one key is too few, since it may be any word.

    >>> is_config({"bf16", "steps_per_print"}), is_config({"zero_optimization"})
    (True, True)
    >>> is_config({"optimizer", "bf16"}), is_config({"zero_optimization"}, parsed=False)
    (False, False)
    """
    return (parsed and bool(_CERTAIN & keys)) or len(CONFIG_KEYS & keys) >= _LEAST_KEYS


def parse_bytes(data: bytes, path: str | None = None) -> DsConfig:
    r"""As `parse_config`; bytes that are not UTF-8 are an error, as `open` makes them one.

    >>> parse_bytes('{"a": 1,\n "备注": 2}'.encode("gbk")).error
    'it contains byte 0xb1, which is not UTF-8'
    """
    if b"\0" in data[:8]:
        keys = parse_config(data.decode("utf-16", "replace")).lines
        return DsConfig(path=path, error=_WIDE, error_line=1, lines=keys)
    try:
        return parse_config(data.decode(), path)
    except UnicodeDecodeError as error:
        fact = parse_config(data.decode("utf-8", "replace"), path)
        return DsConfig(
            path=path,
            error=f"it contains byte 0x{data[error.start]:02x}, which is not UTF-8",
            error_line=data.count(b"\n", 0, error.start) + 1,
            lines=fact.lines,
        )


def trainer_section(text: str, path: str | None) -> dict[str, Any] | None:
    """The DeepSpeed config within a trainer's YAML; None if the text is not such a file."""
    inner = (trainer_values(text, path) or {}).get("deepspeed")
    return inner if isinstance(inner, dict) else None


def trainer_values(text: str, path: str | None) -> dict[str, Any] | None:
    """The YAML of axolotl, LLaMA-Factory, ms-swift, accelerate and others; None for other texts."""
    if path is None or not path.lower().endswith((".yaml", ".yml")):
        return None
    try:
        found = yaml_text.load(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _strict(fact: DsConfig, text: str) -> DsConfig:
    """The fact with the error of Python's own JSON parser for a text that hjson accepts."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return msgspec.structs.replace(fact, strict_error=error.msg, strict_line=error.lineno)
    except (ValueError, RecursionError):
        return fact
    return fact


@probe
def ds_config(host: Host, run: RunNeeds) -> DsConfig:
    """The config of --config; for a missing file, the fact has an error."""
    if run.config_path is None:
        raise HostError(Why.NOT_ASKED, "no DeepSpeed config was passed (`--config FILE`)")
    try:
        data = host.read(posixpath.join(run.cwd, run.config_path))
    except HostError as error:
        if error.missing.why not in (Why.ABSENT, Why.DENIED):
            raise
        words = "the file does not exist" if error.missing.why is Why.ABSENT else "not readable"
        return DsConfig(path=run.config_path, error=words)
    if host.system == "Windows":  # files are read in the encoding of its locale
        return parse_config(data.decode("utf-8", "replace"), run.config_path)
    return parse_bytes(data, run.config_path)
