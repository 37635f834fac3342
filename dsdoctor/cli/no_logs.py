"""Files that `dsdoctor diagnose` is given but that are no logs: they show no failure either."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from dsdoctor import yaml_text
from dsdoctor.errors import UsageError
from dsdoctor.logs import reader
from dsdoctor.probes.accelerate_values import is_accelerate
from dsdoctor.probes.config import is_config, parse_bytes
from dsdoctor.probes.shell_lines import starts_jobs

#: A larger file is no configuration.
_LARGEST = 1 << 20


def refuse(sources: Sequence[reader.Source], named: Sequence[str]) -> None:
    """Refuses files that are no logs if there is nothing else, and says what judges them.

    Args:
        sources: what was read, without a failure in it.
        named: paths on the command line; a folder of logs may hold other files too.

    Raises:
        UsageError: none of them is a log.
    """
    found = [_what(source.path) if source.name in named else "" for source in sources]
    if found and all(found):
        raise UsageError(f"`{sources[0].name}` {found[0]}")


def _what(path: Path | None) -> str:
    """What a file is instead of a log, and what to do with it; "" = it may be a log."""
    suffix = path.suffix.lower() if path is not None else ""
    if path is None or suffix not in _KINDS or path.stat().st_size > _LARGEST:
        return ""
    quoted = shlex.quote(str(path))
    try:
        kind = _KINDS[suffix](path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return ""
    if not kind:
        return ""
    do = f"judge it with `dsdoctor lint {quoted}`"
    if kind == _SNAPSHOT:
        do = f"judge it with `dsdoctor check --from {quoted}`"
    elif kind == _PYTHON:
        do = f"`dsdoctor check -- python {quoted}` looks for what it needs"
    return f"is {kind}, not the log of a run; {do}"


_SNAPSHOT = "a snapshot of dsdoctor"
_PYTHON = "a Python program"


def _of_json(data: bytes) -> str:
    fact = parse_bytes(data)
    if is_config(fact.lines.keys(), parsed=fact.error is None):
        return "a DeepSpeed config"
    found = json.loads(data)
    own = isinstance(found, dict) and found.get("schema") == "dsdoctor/snapshot"
    return _SNAPSHOT if own else ""


def _of_yaml(data: bytes) -> str:
    found = yaml_text.load(data.decode())
    return "a config of accelerate" if isinstance(found, dict) and is_accelerate(found) else ""


def _of_python(data: bytes) -> str:
    body = ast.parse(data).body
    imports = any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)
    return _PYTHON if imports else ""


def _of_shell(data: bytes) -> str:
    text = data.decode()
    return "a launch script" if text.startswith("#!") or starts_jobs(text) else ""


_KINDS = {
    ".json": _of_json,
    ".hjson": _of_json,
    ".yaml": _of_yaml,
    ".yml": _of_yaml,
    ".py": _of_python,
    ".sh": _of_shell,
    ".bash": _of_shell,
    ".sbatch": _of_shell,
    ".slurm": _of_shell,
    ".pbs": _of_shell,
    ".lsf": _of_shell,
    ".bsub": _of_shell,
}
