"""Files of a job that reporters paste: a DeepSpeed config, accelerate's YAML, a hostfile.

A config counts if it is whole and the reporter's own. If a text has several, the one that the
command names counts, else none. An object that does not parse is not judged: reporters leave out
parts of what they paste.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dsdoctor import yaml_text
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.launch import (
    DeepSpeedEnvFile,
    Hostfile,
    LaunchCommand,
    LaunchParse,
)
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage, is_advice, lead_of, passages
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.shell_passages import typed_at
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.accelerate_keys import rejected_by_plugin, too_few_ranks, unread
from dsdoctor.probes.accelerate_values import rejected_value
from dsdoctor.probes.command_line import with_accelerate
from dsdoctor.probes.config import CONFIG_KEYS, is_config, parse_config
from dsdoctor.probes.hostfile import parse_env_file

#: A line that begins an object: alone, as a value of Python, or in DeepSpeed's own log.
_BEGINS = re.compile(
    r"(?P<before>.{0,120}?)(?:^|(?<=[\s=]))\{\s*(?:[\"'#/\w].*)?$",
)
_BEFORE = re.compile(
    r"\s*$|.*\bjson = $|\s*[A-Za-z_][\w.\[\]'\"]{0,60}(?:: \w+)?\s*=\s*$|\s*[$>] .*$"
)
_NAME = re.compile(r"[\w./~-]{1,100}\.(?:json|hjson)\b")
_PYTHON = re.compile(r":\s*(?:True|False|None)\b|'\s*:")
_LEFT_OUT = re.compile(r"(?m)(?:^|//|#)[^\n\"']{0,80}?(?:\.\.\.|…)|(?:\.\.\.|…)\s*$|<[a-z_ ]+>")
_LONGEST = 64 << 10
_MOST_LINES = 600
_MOST = 20
#: Objects of a passage that may be something else; a log can have one in each line.
_MOST_TRIES = 500
#: Lines in which a hostfile is introduced.
_ABOVE = 3
_CAT = re.compile(r"(?:cat|more|less|head|tail)\s+(?P<path>\S+)\s*$")
_HOST = re.compile(r"\s*\S+\s+slots=\d{1,4}\s*$")
_ENV_FILE = re.compile(r"\.deepspeed_env\b")
_ACCELERATE = re.compile(r"(?m)^distributed_type:|^deepspeed_config:")
_DEFAULT = re.compile(r"\s*(?:[-*]\s+)?`?Accelerate`? default config:\s*$")
_SETTING = re.compile(r"\s+[-*] (?P<key>\w{1,60}): (?P<value>.{0,2000})$")


class Config(NamedTuple):
    """A DeepSpeed config in a text.

    Attributes:
        line: where it begins.
        fact: its content; lines are those of the text.
        name: of its file, if the text says so.
        logged: DeepSpeed printed it, with what a trainer had filled in.
    """

    line: Line
    fact: DsConfig
    name: str
    logged: bool


def configs_of(lines: Sequence[Line]) -> list[Config]:
    """The configs of a text, each once."""
    found: dict[str, Config] = {}
    for passage in passages(lines):
        for config in _configs(passage):
            key = json.dumps(config.fact.parsed, sort_keys=True, default=str)
            first = found.setdefault(key, config)
            if config.name and not first.name:
                found[key] = first._replace(name=config.name)
            if len(found) >= _MOST:
                return list(found.values())
    return list(found.values())


def _configs(passage: Passage) -> Iterator[Config]:
    lines = passage.lines
    place, left = 0, _MOST_TRIES
    while place < len(lines) and left:
        begun = _BEGINS.match(lines[place].text) if "{" in lines[place].text else None
        if begun is None or not _BEFORE.match(begun["before"]):
            place += 1
            continue
        text, end = _object(lines, place, len(begun["before"]))
        fact = _parsed(text, lines[place].number) if text else None
        if fact is None:
            left -= 1
            place = end + 1 if text else place + 1
            continue
        above = lines[max(0, place - 3) : place]
        names = _NAME.findall(" ".join([passage.lead, *(line.text for line in above)]))
        names += _NAME.findall(begun["before"])
        logged = begun["before"].rstrip().endswith("json =")
        yield Config(lines[place], fact, names[-1] if names else "", logged)
        place = end + 1


def _object(lines: Sequence[Line], place: int, start: int) -> tuple[str, int]:
    """The object that begins in a line, and the place of its last line; "" if it never ends."""
    depth, quote, escaped, size = 0, "", False, 0
    parts: list[str] = []
    for at in range(place, min(len(lines), place + _MOST_LINES)):
        text = lines[at].text[start:] if at == place else lines[at].text
        size += len(text)
        if size > _LONGEST:
            break
        for number, letter in enumerate(text):
            if escaped:
                escaped = False
            elif quote:
                escaped = letter == "\\"
                quote = "" if letter == quote else quote
            elif letter in "\"'":
                quote = letter
            elif letter in "{[":
                depth += 1
            elif letter in "}]":
                depth -= 1
                if not depth:
                    return "\n".join([*parts, text[: number + 1]]), at
        parts.append(text)
        quote = ""  # a string ends with its line
    return "", place


def _parsed(text: str, number: int) -> DsConfig | None:
    """A whole DeepSpeed config; None for other objects."""
    if _LEFT_OUT.search(text) or not any(key in text for key in CONFIG_KEYS):
        return None
    if _PYTHON.search(text):
        try:
            value = ast.literal_eval(text)
            text, own = json.dumps(value), False
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return None
    else:
        own = True
    fact = parse_config(text)
    keys = set(fact.parsed or ())
    if fact.parsed is None or not is_config(keys):
        return None
    shift = number - 1
    return msgspec.structs.replace(
        fact,
        lines={key: line + shift for key, line in fact.lines.items()} if own else {},
        duplicates={
            key: tuple(line + shift for line in found) for key, found in fact.duplicates.items()
        },
        # comments of the reporter's
        strict_error=None,
        strict_line=None,
    )


def _the_config(found: Sequence[Config], path: str | None) -> Config | None:
    """The config of the job; None if nothing decides which one that is."""
    written = [config for config in found if not config.logged] or list(found)
    if len(written) == 1:
        return written[0]
    wanted = posixpath.basename(path or "")
    named = [one for one in written if wanted and posixpath.basename(one.name) == wanted]
    return named[0] if len(named) == 1 else None


def _read_config(lines: Sequence[Line], into: Statements) -> None:
    found = configs_of(lines)
    if not found:
        return
    path = into.value(LaunchCommand, "config_path")
    config = _the_config(found, path)
    if config is None:
        numbers = ", ".join(str(each.line.number) for each in found[:6])
        into.lack(DsConfig, f"configs begin in lines {numbers}, and the command names none of them")
        return
    name = config.name or (path if isinstance(path, str) and "$" not in path else "")
    into.whole(msgspec.structs.replace(config.fact, path=name or None), config.line)
    into.request(config=config.fact.parsed, config_path=name or None)


def _read_accelerate(lines: Sequence[Line], into: Statements) -> None:
    found = []
    for passage in passages(lines):
        text = "\n".join(line.text for line in passage.lines)
        if not passage.fenced or not _ACCELERATE.search(text) or _LEFT_OUT.search(text):
            continue
        try:
            values = yaml_text.load(text)
        except ValueError:
            continue
        if isinstance(values, dict) and "distributed_type" in values:
            found.append((values, passage.lines))
    found = found or [shown for shown in [_shown_by_accelerate_env(lines)] if shown]
    if len(found) == 1:
        _accelerate(*found[0], into)


def _shown_by_accelerate_env(
    lines: Sequence[Line],
) -> tuple[dict[Any, Any], tuple[Line, ...]] | None:
    """The default configuration in the output of `accelerate env`: `- key: value`, indented."""
    places = [place for place, line in enumerate(lines) if _DEFAULT.match(line.text)]
    if len(places) != 1:
        return None
    values: dict[Any, Any] = {}
    rows = []
    for line in lines[places[0] + 1 :]:
        item = _SETTING.match(line.text)
        if item is None:
            break
        rows.append(line)
        try:
            values[item["key"]] = ast.literal_eval(item["value"])
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            values[item["key"]] = item["value"]
    return (values, tuple(rows)) if "distributed_type" in values else None


def _accelerate(values: dict[Any, Any], lines: Sequence[Line], into: Statements) -> None:
    """What accelerate's launcher and its plugin make of its configuration."""
    options = _options_of_accelerate(into)
    if options is None:
        return
    left = unread(values)
    refused = rejected_by_plugin(values, options, None)
    stopped = rejected_value(values, options) if not refused else None
    few = too_few_ranks(values, options)
    error = refused or (stopped.said if stopped is not None else "")
    keys = (
        re.findall(r"`(\w+)`", error)
        or [key.rpartition(".")[2] for key in left]
        or ["num_processes"]
    )
    fact = LaunchParse(
        launcher="accelerate",
        accepted=not error,
        error=error,
        ignored=left,
        in_file=stopped is not None,
        in_ranks=bool(refused) or (stopped is not None and stopped.in_ranks),
        advice=stopped.advice if stopped is not None else "",
        too_few_ranks=few,
    )
    into.whole(fact, _line_of(keys, lines))
    _ranks_of_accelerate(values, lines, into)


def _line_of(keys: Iterable[str], lines: Sequence[Line]) -> Line:
    """The first line that sets one of the keys; the first line if none does."""
    named = rf"\s*(?:- )?(?:{'|'.join(map(re.escape, keys))})\s*:"
    return next((line for line in lines if re.match(named, line.text)), lines[0])


def _ranks_of_accelerate(values: dict[Any, Any], lines: Sequence[Line], into: Statements) -> None:
    """States how many ranks it starts on a machine and on which GPUs, for a command or without."""
    known = into.states(LaunchCommand, "launcher")
    given: Mapping[str, str] = into.value(LaunchCommand, "options") if known else {}
    before = LaunchCommand(
        launcher="accelerate",
        options=dict(given),
        num_gpus=into.value(LaunchCommand, "num_gpus"),
        num_nodes=into.value(LaunchCommand, "num_nodes"),
    )
    command = with_accelerate(before, values)
    if not known:
        if "gpu_ids" not in command.options:
            return
        line = _line_of(["gpu_ids"], lines)
        for name in ("launcher", "inner", "hostfile"):
            into.state(LaunchCommand, name, getattr(command, name), line)
    for name, key in (
        ("options", "gpu_ids"), ("num_gpus", "num_processes"), ("num_nodes", "num_machines")
    ):  # fmt: skip
        if getattr(command, name) != getattr(before, name):
            into.override(LaunchCommand, name, getattr(command, name), _line_of([key], lines))


def _options_of_accelerate(into: Statements) -> Mapping[str, str] | None:
    """Options of the command, which take precedence; None if it starts another launcher."""
    if not into.states(LaunchCommand, "launcher"):
        return {}
    launcher = into.value(LaunchCommand, "inner") or into.value(LaunchCommand, "launcher")
    options: Mapping[str, str] = into.value(LaunchCommand, "options")
    return options if launcher == "accelerate" else None


def _read_hosts(lines: Sequence[Line], into: Statements) -> None:
    hostfiles, files = [], []
    for passage in passages(lines):
        for place, line in enumerate(passage.lines):
            shown = _CAT.match(typed_at(line) or "")
            if shown:
                below = _below(passage.lines, place + 1)
                if _ENV_FILE.search(shown["path"]):
                    files.append((below, shown["path"]))
                elif below and (_HOST.match(below[0].text) or "hostfile" in shown["path"]):
                    hostfiles.append((below, shown["path"]))
        rows = [line for line in passage.lines if line.text.strip()]
        hosts = [line for line in rows if not line.text.lstrip().startswith("#")]
        if passage.fenced and passage.closed and rows and _ENV_FILE.search(passage.lead):
            files.append((list(passage.lines), ".deepspeed_env"))
        elif hosts and passage.fenced and all(_HOST.match(line.text) for line in hosts):
            hostfiles.append((rows, ""))
        elif not passage.fenced:
            hostfiles += [(run, "") for run in _runs_of_hosts(passage.lines)]
    if len(hostfiles) == 1:
        _hostfile(*hostfiles[0], into)
    if len(files) == 1 and files[0][0]:
        rows, path = files[0]
        fact = parse_env_file("".join(line.text + "\n" for line in rows), path)
        if all("=" in line.text or not line.text.strip() for line in rows):
            into.whole(_at(fact, rows), rows[0])


def _runs_of_hosts(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines of a hostfile outside a fenced block: one may be a sentence, several are none."""
    run: list[Line] = []
    for place, line in enumerate(lines):
        if _HOST.match(line.text):
            run.append(line)
            if place + 1 < len(lines) and _HOST.match(lines[place + 1].text):
                continue
            above = lines[max(0, place + 1 - len(run) - _ABOVE) : place + 1 - len(run)]
            shown = any(typed_at(other) for other in above)
            if len(run) > 1 and not shown and not is_advice(lead_of(above)):
                yield run
            run = []


def _below(lines: Sequence[Line], place: int) -> list[Line]:
    """What a command printed: the lines to the next blank one or prompt."""
    found = []
    for line in lines[place:]:
        if not line.text.strip() or typed_at(line):
            break
        found.append(line)
    return found


def _hostfile(rows: Sequence[Line], path: str, into: Statements) -> None:
    if any(is_placeholder(line.text) for line in rows):
        return  # the names are left out, and with them which hosts are the same
    command = into.value(LaunchCommand, "hostfile")
    name = path or (command if isinstance(command, str) and "$" not in command else "hostfile")
    fact = parse_hostfile("\n".join(line.text for line in rows), name, asked=True)
    into.whole(_at(fact, rows), rows[0])


def _at(fact: Hostfile | DeepSpeedEnvFile, rows: Sequence[Line]) -> Hostfile | DeepSpeedEnvFile:
    """The fact with the lines of the text in place of those of the file."""

    def moved(item: Any) -> Any:
        line = rows[item.line - 1].number if 0 < item.line <= len(rows) else item.line
        return msgspec.structs.replace(item, line=line)

    problems = tuple(map(moved, fact.problems))
    if isinstance(fact, Hostfile):
        return msgspec.structs.replace(
            fact, problems=problems, entries=tuple(map(moved, fact.entries))
        )
    return msgspec.structs.replace(fact, problems=problems)


CONFIG = Reader("a DeepSpeed config", _read_config)
ACCELERATE = Reader("a configuration of accelerate", _read_accelerate)
HOSTS = Reader("a hostfile", _read_hosts)
