"""What precedes the program of a command: assignments, `env`, `nohup`, `uv run`, `nsys profile`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from dsdoctor.probes.command_tables import (
    BEFORE_DASHES,
    RUNNER_TAKES,
    RUNNERS,
    SCRIPT_RUNNERS,
    WITH_ARGUMENT,
    WRAPPERS,
)

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"python[\d.]*(?:\.exe)?")


def _drop_options(words: list[str], takes: frozenset[str]) -> list[str]:
    while words and words[0].startswith("-"):
        if words.pop(0) in takes and words:
            words.pop(0)
    return words


def unwrap(words: list[str], *, runners: bool = True) -> tuple[list[str], dict[str, str]]:
    """Removes what precedes the program: assignments, `env`, `nohup`, and runners (`uv run`)."""
    env: dict[str, str] = {}
    while words:
        name = posixpath.basename(words[0])
        if _ASSIGNMENT.match(words[0]):
            key, _, value = words.pop(0).partition("=")
            env[key] = value
        elif name in WRAPPERS:
            action = name == "nsys" and words[1:2] in (["profile"], ["launch"])
            words = _drop_options(words[2 if action else 1 :], WRAPPERS[name])
            if name in WITH_ARGUMENT and words:
                words.pop(0)
        elif name in BEFORE_DASHES and "--" in words:
            words = words[words.index("--") + 1 :]
        elif runners and name in RUNNERS and (place := runs_at(words, RUNNERS[name])):
            words = _run_by(name, words[place:])
        else:
            break
    return _without_tool(words), env


def _without_tool(words: list[str]) -> list[str]:
    """A command without the debugger or profiler that runs its script.

    >>> _without_tool(["python3", "-u", "-m", "pdb", "-c", "continue", "t.py", "-m", "1"])
    ['python3', '-u', 't.py', '-m', '1']
    >>> _without_tool(["python", "-m", "coverage", "run", "-m", "pkg.train"])
    ['python', '-m', 'pkg.train']
    >>> _without_tool(["viztracer", "t.py"]), _without_tool(["coverage", "report"])
    (['python', 't.py'], ['coverage', 'report'])
    """
    if not words:
        return words
    before, tool, rest = ["python"], posixpath.basename(words[0]), words[1:]
    if _PYTHON.fullmatch(tool):
        place = next((n for n, word in enumerate(rest) if not word.startswith("-")), 0)
        if rest[place - 1 : place] != ["-m"]:
            return words
        before, tool, rest = words[:place], rest[place], rest[place + 1 :]
    if tool not in SCRIPT_RUNNERS:
        return words
    action, takes = SCRIPT_RUNNERS[tool]
    if action and rest[:1] != [action]:
        return words
    rest = rest[1 if action else 0 :]
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        if rest.pop(0) in takes and rest:
            rest.pop(0)
    return [*before, *rest] if rest else words


def _run_by(runner: str, words: list[str]) -> list[str]:
    """The command of a runner, which takes a script or a module too (uv 0.9, pdm 2.26).

    >>> _run_by("uv", ["--frozen", "t.py", "1"]), _run_by("uv", ["-m", "torch.distributed.run"])
    (['python', 't.py', '1'], ['python', '-m', 'torch.distributed.run'])
    >>> _run_by("poetry", ["t.py"]), _run_by("hatch", ["gpu:torchrun", "t.py"])
    (['t.py'], ['torchrun', 't.py'])
    """
    rest = _drop_options(list(words), RUNNER_TAKES)
    if not rest:
        return rest
    if runner == "hatch":  # `gpu:torchrun` runs it in the environment `gpu`
        rest[0] = rest[0].rpartition(":")[2]
    options = words[: len(words) - len(rest)]
    if runner == "uv" and options[-1:] and options[-1] in ("-m", "--module"):
        return ["python", "-m", *rest]
    runs_scripts = runner in ("uv", "pdm", "rye", "hatch", "pipx") and rest[0].endswith(".py")
    return ["python", *rest] if runs_scripts else rest


def runs_at(words: Sequence[str], action: str) -> int:
    """Where the command of a runner begins, with its options; 0 = it runs none.

    >>> runs_at(["uv", "--quiet", "run", "a.py"], "run"), runs_at(["uv", "pip", "run"], "run")
    (3, 0)
    """
    if not action:
        return 1
    own = next((n for n, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
    return own + 1 if words[own : own + 1] == [action] else 0
