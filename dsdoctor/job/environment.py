"""The environment that a command itself selects: by a path, a runner, or a script that activates.

`/opt/env/bin/torchrun`, `uv run`, `conda run -n NAME`, and `source .venv/bin/activate` in a batch
script decide which interpreter the job gets, whatever is active in the shell that starts dsdoctor.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dsdoctor.host import Host, HostError, exists, home_folder, matches, read_text
from dsdoctor.interpreter import conda_environments, holding
from dsdoctor.probes.command_line import started
from dsdoctor.probes.command_tables import RUNNER_TAKES, RUNNERS
from dsdoctor.probes.command_wrappers import runs_at
from dsdoctor.probes.shell_lines import commands

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_CONDA = ("conda", "mamba", "micromamba")
#: Where installers of conda put it by default, below the home directory.
_CONDA_ROOTS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "miniconda")
_ACTIVATE = re.compile(r"(?P<prefix>.+)/bin/activate(?:\.sh)?")
#: Runners that look for a project, with the file that marks one.
_FILES = {"poetry": "pyproject.toml", "pipenv": "Pipfile", "pdm": "pyproject.toml"}
#: A script whose metadata lists its packages runs in an environment that uv makes for it.
_METADATA = re.compile(r"(?m)^# /// script\s*$")


class Selected(NamedTuple):
    """An environment.

    Attributes:
        path: its folder, or its interpreter.
        why: what selects it, as the beginning of a sentence.
    """

    path: str
    why: str


def of_command(words: Sequence[str], host: Host, cwd: str) -> Selected | None:
    """What a command selects by the path of its program or by a runner; None = nothing."""
    left = started(words, runners=False)
    if not left:
        return None
    program, name = left[0], posixpath.basename(left[0])
    if name in RUNNERS:
        return _of_runner(name, left, host, _folder(host, cwd))
    if "/" not in program:
        return None
    path = posixpath.normpath(posixpath.join(_folder(host, cwd), program))
    if _PYTHON.fullmatch(name):
        return Selected(path, f"the command starts `{program}`") if exists(host, path) else None
    python = _beside(host, path) or _first_line(host, path)
    return Selected(python, f"`{program}` runs in it") if python else None


def of_active(words: Sequence[str], host: Host) -> Selected | None:
    """The active environment, if its `bin` has the program but it has neither torch nor DeepSpeed.

    Without this, an environment with torch that dsdoctor finds elsewhere would be judged, though
    the job starts in this one.
    """
    program = "".join(started(words, runners=False)[:1])
    found = host.which(program) if program and "/" not in program else None
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = host.env.get(variable, "").rstrip("/")
        if not (found and prefix and posixpath.dirname(found) == f"{prefix}/bin"):
            continue
        if exists(host, f"{prefix}/bin/python") and not holding(host, prefix):
            return Selected(prefix, f"`{variable}` is active and `{program}` is of it")
    return None


def of_script(text: str, line: int, name: str, host: Host, cwd: str) -> Selected | None:
    """What a shell script has activated when it reaches a line; None = nothing that is known."""
    found: Selected | None = None
    if "activate" not in text:  # most scripts; the text has been parsed once already
        return None
    for command in commands(text):
        if command.line >= line:
            break
        words = command.words
        if words[0] in ("source", ".") and len(words) > 1:
            activated = _ACTIVATE.fullmatch(words[1])
            # `source activate NAME` is conda's form of old
            named = words[2:3] if posixpath.basename(words[1]) == "activate" else ()
            prefix = _conda_prefix(host, named[0]) if named else None
            if activated and not named:
                prefix = _expanded(activated["prefix"], host, cwd)
        elif words[0] in _CONDA and words[1:2] == ("activate",):
            prefix = _conda_prefix(host, words[2] if len(words) > 2 else "base")  # noqa: PLR2004  # its name
        elif words in (("deactivate",), ("conda", "deactivate")):
            found = None
            continue
        else:
            continue
        shown = " ".join(words)
        where = f"line {command.line} of {name}" if name.startswith("`") else name
        is_there = prefix is not None and exists(host, f"{prefix}/bin/python")
        found = Selected(str(prefix), f"`{shown}` in {where} selects it") if is_there else None
    return found


def _folder(host: Host, cwd: str) -> str:
    try:
        return posixpath.join(str(host.query("cwd")), cwd)
    except HostError:
        return cwd


def _beside(host: Host, program: str) -> str | None:
    """The interpreter of the environment in whose `bin` a program is."""
    folder = posixpath.dirname(program)
    prefix = posixpath.dirname(folder)
    if not any(exists(host, f"{prefix}/{mark}") for mark in ("pyvenv.cfg", "conda-meta")):
        return None
    python = f"{folder}/python"
    return python if exists(host, program) and exists(host, python) else None


def _first_line(host: Host, program: str) -> str | None:
    """The interpreter that a script names in its first line."""
    try:
        head = host.read(program)[:300].partition(b"\n")[0].decode("utf-8", "replace")
    except HostError:
        return None
    found = re.fullmatch(r"#!\s*(/\S+)\s*(?:-\S+)?", head)
    is_python = found is not None and _PYTHON.fullmatch(posixpath.basename(found[1]))
    return found[1] if found and is_python and exists(host, found[1]) else None


# ---- runners ---------------------------------------------------------------------------------


def _of_runner(name: str, words: Sequence[str], host: Host, cwd: str) -> Selected | None:
    if not runs_at(words, RUNNERS[name]):
        return None
    options, rest = _options(words, RUNNERS[name])
    if name in _CONDA:
        given = options.get("--prefix") or options.get("-p")
        named = options.get("--name") or options.get("-n")
        prefix = _expanded(given, host, cwd) if given else _conda_prefix(host, named or "")
        option = f"-p {given}" if given else f"-n {named}"
        return Selected(prefix, f"`{name} run {option}` selects it") if prefix else None
    if name in ("uv", "rye"):
        return _uv(options, rest, host, cwd)
    if name == "pixi":
        return _pixi(options, host, cwd)
    return _in_project(name, options, host, cwd) if name in _FILES else None


def _options(words: Sequence[str], action: str) -> tuple[dict[str, str], list[str]]:
    """Options of a runner, and the command that it runs.

    >>> _options(["uv", "run", "--project", "p", "--frozen", "torchrun", "--x"], "run")
    ({'--project': 'p', '--frozen': ''}, ['torchrun', '--x'])
    """
    found: dict[str, str] = {}
    rest = list(words[1:])
    while rest and (rest[0].startswith("-") or rest[0] == action):
        word = rest.pop(0)
        if word == action:
            action = ""
            continue
        if word == "--":
            break
        key, equals, value = word.partition("=")
        if not equals and key in RUNNER_TAKES and rest:
            value = rest.pop(0)
        found[key] = value
    return found, rest


def _roots(cwd: str, host: Host, *files: str) -> Iterator[str]:
    """The folder and its parents that have one of these files, innermost first."""
    folder = posixpath.normpath(cwd)
    while True:
        if any(exists(host, posixpath.join(folder, file)) for file in files):
            yield folder
        if posixpath.dirname(folder) == folder:
            return
        folder = posixpath.dirname(folder)


def _uv(options: Mapping[str, str], rest: list[str], host: Host, cwd: str) -> Selected | None:
    """Uv 0.9-0.13: the environment of the project, whatever is active; else one nearby."""
    if "--active" in options or "--isolated" in options:
        return None
    folder = posixpath.join(cwd, options.get("--directory", ""), options.get("--project", ""))
    script = next((word for word in rest[:2] if word.endswith(".py")), "")
    if script and _METADATA.search(_text(host, posixpath.join(cwd, script))):
        return None
    roots = [] if "--no-project" in options else list(_roots(folder, host, "pyproject.toml"))
    set_to = host.env.get("UV_PROJECT_ENVIRONMENT", "")
    if roots and set_to:
        path = posixpath.join(roots[-1], set_to)
        return Selected(path, "`UV_PROJECT_ENVIRONMENT` sets it for `uv run`")
    if not roots and host.env.get("VIRTUAL_ENV"):
        return None
    near = next(_roots(folder, host, ".venv/bin/python"), None)
    if near is None and not roots:
        return None
    # in a workspace it is at the root, which is found once it exists
    path = posixpath.join(near or roots[0], ".venv")
    return Selected(path, "`uv run` uses it")


def _pixi(options: Mapping[str, str], host: Host, cwd: str) -> Selected | None:
    manifest = options.get("--manifest-path")
    root = posixpath.dirname(posixpath.join(cwd, manifest)) if manifest else None
    root = root or next(_roots(cwd, host, "pixi.toml", ".pixi/envs"), None)
    if root is None:
        return None
    name = options.get("-e") or options.get("--environment") or "default"
    return Selected(f"{root}/.pixi/envs/{name}", "`pixi run` uses it")


def _in_project(runner: str, options: Mapping[str, str], host: Host, cwd: str) -> Selected | None:
    """A runner that uses the active environment, else `.venv` of the project, else its cache."""
    if host.env.get("VIRTUAL_ENV"):
        return None
    given = options.get("-C") or options.get("--directory") or options.get("--project") or ""
    root = next(_roots(posixpath.join(cwd, given), host, _FILES[runner]), None)
    if root is None:
        return None
    noted = _text(host, f"{root}/.pdm-python").strip() if runner == "pdm" else ""
    if noted and exists(host, noted):
        return Selected(noted, "`pdm run` uses it (`.pdm-python`)")
    if exists(host, f"{root}/.venv/bin/python"):
        return Selected(f"{root}/.venv", f"`{runner} run` uses it")
    cache = {"poetry": _of_poetry, "pipenv": _of_pipenv}.get(runner)
    cached = matches(host, cache(host, root)) if cache else []
    return Selected(cached[0], f"`{runner} run` uses it") if len(cached) == 1 else None


def _of_poetry(host: Host, root: str) -> str:
    """Poetry 1.2-2.2: `NAME-HASH-py3.11` in its cache."""
    named = re.search(r"(?m)^\s*name\s*=\s*[\"']([^\"']+)", _text(host, f"{root}/pyproject.toml"))
    cache = host.env.get("POETRY_CACHE_DIR") or f"{_home(host)}/.cache/pypoetry"
    folder = host.env.get("POETRY_VIRTUALENVS_PATH") or f"{cache}/virtualenvs"
    safe = re.sub(r"[ $`!*@\"\\\r\n\t]", "_", named[1]).lower()[:42] if named else ""
    return f"{folder}/{safe or '?'}-????????-py*"


def _of_pipenv(host: Host, root: str) -> str:
    folder = host.env.get("WORKON_HOME") or f"{_home(host)}/.local/share/virtualenvs"
    safe = re.sub(r"[ &$`!*@\"()\[\]\\\r\n\t]", "_", posixpath.basename(root))[:42]
    return f"{folder}/{safe}-????????"


# ---- conda -----------------------------------------------------------------------------------


def _conda_prefix(host: Host, name: str) -> str | None:
    """The folder of a conda environment, by its name or path; None = not found."""
    if not name:
        return None
    if "/" in name:
        return _expanded(name, host, "/")
    home = _home(host)
    roots = [
        posixpath.dirname(posixpath.dirname(host.env.get("CONDA_EXE", ""))),
        host.env.get("MAMBA_ROOT_PREFIX", ""),
        *(f"{home}/{folder}" for folder in _CONDA_ROOTS),
        *("/opt/conda", "/opt/miniconda3", "/opt/miniforge3"),
    ]
    if name == "base":
        return next((root for root in roots if root and exists(host, f"{root}/conda-meta")), None)
    folders = [f"{root}/envs" for root in roots if root]
    folders += [*host.env.get("CONDA_ENVS_PATH", "").split(":"), f"{home}/.conda/envs"]
    places = [f"{folder}/{name}" for folder in folders if folder]
    places += [place for place in conda_environments(host) if posixpath.basename(place) == name]
    return next((place for place in places if exists(host, f"{place}/conda-meta")), None)


def _expanded(path: str, host: Host, cwd: str) -> str | None:
    """A path with `~` and variables of the environment; None if one is not known."""
    if path.startswith("~/"):
        path = _home(host) + path[1:]
    for found in re.findall(r"\$\{?(\w+)\}?", path):
        value = host.env.get(found)
        if not value:
            return None
        path = path.replace(f"${{{found}}}", value).replace(f"${found}", value)
    return posixpath.normpath(posixpath.join(_folder(host, cwd), path))


def _home(host: Host) -> str:
    try:
        return home_folder(host)
    except HostError:
        return ""


def _text(host: Host, path: str) -> str:
    try:
        return read_text(host, path)
    except (HostError, UnicodeDecodeError):
        return ""
