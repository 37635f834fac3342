"""Judges accelerate's YAML for `lint`: alone, and with the launch line that refers to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dsdoctor import reading, yaml_text
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.launch import LaunchCommand, LaunchParse
from dsdoctor.model.facts.python import Packages
from dsdoctor.probes.accelerate_fp8 import without_fp8
from dsdoctor.probes.accelerate_keys import rejected_by_plugin, too_few_ranks, unread
from dsdoctor.probes.accelerate_releases import ended
from dsdoctor.probes.accelerate_sections import Rejection
from dsdoctor.probes.accelerate_values import rejected_value, verdict
from dsdoctor.probes.command_line import with_accelerate

#: How many folders from that of a script upwards may be the one that its lines are run in.
_FOLDERS_ABOVE = 6
_LARGEST = 1 << 20


def facts_of(
    values: dict[str, Any], text: str, packages: Packages | None
) -> Iterator[tuple[Fact, int]]:
    """What a file of accelerate states, each with its line (0 = none).

    Args:
        values: of the YAML.
        text: of the file.
        packages: of the environment that will read it; None = not known.
    """
    few = too_few_ranks(values, {})
    if few:
        starved = LaunchParse(launcher="accelerate", accepted=True, too_few_ranks=few)
        yield starved, _line_of("num_processes", text)
    for key, near in unread(values).items():
        fact = LaunchParse(launcher="accelerate", accepted=True, ignored={key: near})
        yield fact, _line_of(key.rpartition(".")[2], text)
    rejection = _stopped(values, {}, packages, launched=False)
    line = 0 if rejection is None else _line_of(_named_key(rejection.said, text), text)
    yield verdict(rejection), line
    if packages is None or packages.version("accelerate") is None:
        for key, said in ended(values, {}).items():
            fact = LaunchParse(launcher="accelerate", accepted=True, ended={key: said})
            yield fact, _line_of(key, text)
    alone = values.get("distributed_type") == "NO"  # one rank, whatever `num_processes` says
    if rejection is None and isinstance(values.get("gpu_ids"), str) and not alone:
        command = with_accelerate(LaunchCommand(launcher="accelerate"), values)
        yield command, _line_of("gpu_ids", text)
    error = rejected_by_plugin(values, {}, None)
    if error:
        refused = LaunchParse(launcher="accelerate", accepted=False, error=error, in_ranks=True)
        yield refused, _line_of(error.split("`")[1], text)


def config_of(values: dict[str, Any]) -> str:
    """The DeepSpeed config that accelerate's YAML, or a trainer's, names; "" if it names none.

    >>> config_of({"deepspeed_config": {"deepspeed_config_file": "ds.json"}})
    'ds.json'
    >>> config_of({"deepspeed": "ds.json"}), config_of({"deepspeed": True})
    ('ds.json', '')
    """
    section = values.get("deepspeed_config")
    inner = section.get("deepspeed_config_file") if isinstance(section, dict) else section
    named = [inner, values.get("deepspeed")]
    return next((name for name in named if isinstance(name, str)), "")


def _line_of(key: str, text: str) -> int:
    """The line of YAML that sets a key; 0 if it is not found."""
    found = re.search(rf"^[ \t]*['\"]?{re.escape(key)}['\"]?[ \t]*:", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def _stopped(
    values: dict[str, Any],
    options: Mapping[str, str],
    packages: Packages | None,
    *,
    launched: bool,
) -> Rejection | None:
    """What stops a run of accelerate with such a file, in the environment if that is known."""
    release = None if packages is None else packages.version("accelerate")
    found = rejected_value(values, options, launched=launched, release=release)
    if found is None and packages is not None:
        found = without_fp8(values, options, packages.packages, release)
    return found


def _named_key(said: str, text: str) -> str:
    """The key that a message names: its first word in backticks that the file sets."""
    words = said.split("`")[1::2]
    return next((word for word in words if _line_of(word, text)), words[0])


def with_its_file(
    script: Path, options: Mapping[str, str], packages: Packages | None
) -> Iterator[LaunchParse]:
    """What stops accelerate at its file and the options of the line together."""
    values = _yaml_of(script, options.get("config_file", ""))
    # what the file alone is rejected for is reported where it is linted
    if not values or _stopped(values, {}, packages, launched=False) or too_few_ranks(values, {}):
        return
    rejection = _stopped(values, options, packages, launched=True)
    few = too_few_ranks(values, options)
    if rejection is not None:
        yield verdict(rejection)
    elif few:
        yield LaunchParse(launcher="accelerate", accepted=True, too_few_ranks=few)


def working_folders(script: Path) -> Iterator[Path]:
    """Where a line of a script may run: its folder and those above, up to the repository's."""
    for folder in [*script.absolute().parents][:_FOLDERS_ABOVE]:
        yield folder
        if (folder / ".git").exists():
            return


def named_file(file: Path, name: str) -> Path | None:
    """The file that another one refers to; None unless only one can be meant.

    Args:
        file: refers to it, by a path in the folder that the job will start in.
        name: that path.
    """
    if not name or name.startswith(("/", "~")) or "$" in name:
        return None
    try:
        found = [
            path
            for path in (folder / name for folder in working_folders(file))
            if path.is_file() and path.stat().st_size <= _LARGEST
        ]
    except (OSError, ValueError):  # a path with NUL, or one that is too long
        return None
    return found[0] if len(found) == 1 else None


def _yaml_of(script: Path, name: str) -> dict[str, Any]:
    """The YAML file that a line of a script refers to; {} if there is none."""
    path = named_file(script, name) if name.endswith((".yaml", ".yml")) else None
    if path is None:
        return {}
    try:
        values = yaml_text.load(reading.read(path, size=_LARGEST).decode("utf-8", "replace"))
    except (OSError, DecodeError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
