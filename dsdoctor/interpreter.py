"""Which interpreter is examined, and how a child runs in it (docs/architecture.md).

Nothing is started to choose one: an environment contains torch or deepspeed if its site-packages
folder does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsdoctor.errors import UsageError
from dsdoctor.host import Host, HostError, exists, home_folder, read_text
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.report import BY_COMMAND, NEARBY
from dsdoctor.process import Result
from dsdoctor.records import decode

#: What `choose` returns.
Choice = PatientChoice

CHILDREN = Path(__file__).parent / "probes" / "children"

_KEY_MODULES = ("torch", "deepspeed")
_EXPECTED = "expected an interpreter or the directory of an environment"


def read_records(output: bytes) -> list[dict[str, Any]]:
    r"""The records in the output of a child; other output and a truncated record are skipped.

    >>> read_records(b'hello\n\x1edsdoctor:{"step": "x"}\nnoise\x1edsdoctor:{"st')
    [{'step': 'x'}]
    """
    return [_clean(record) for record in decode(output)]


def _clean(value: Any) -> Any:
    """Replaces lone surrogates (file names that are not UTF-8), which JSON cannot represent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(entry) for entry in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(entry) for key, entry in value.items()}
    return value


def run_child(
    host: Host,
    executable: str,
    script: str,
    args: Sequence[str] = (),
    *,
    timeout: float,
    idle_timeout: float | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[list[dict[str, Any]], Result]:
    """Runs a script of `probes/children` in the examined environment, as a job would run.

    PYTHONPATH, the user site and the working folder are not changed; no bytecode is written.

    Args:
        host: the machine.
        executable: the environment's interpreter.
        script: `static`, `torch_live` or another.
        args: arguments of the script.
        timeout: seconds for the whole child.
        idle_timeout: seconds without output after which it is ended.
        cwd: the folder the job starts in; None or "." = the current one.
        env: additional variables.

    Returns:
        The records that it wrote, even if it died, and how it ended.

    Raises:
        HostError: the interpreter does not exist or may not be run.
    """
    variables = {**(env or {}), "PYTHONDONTWRITEBYTECODE": "1"}
    if script == "torch_live":
        # with 1 (DeepSpeed sets it) `is_available()` queries NVML, which proves nothing about CUDA
        variables["PYTORCH_NVML_BASED_CUDA_CHECK"] = "0"
    result = host.run(
        [executable, str(CHILDREN / f"{script}.py"), *args],
        timeout=timeout,
        idle_timeout=idle_timeout,
        env=variables,
        cwd=None if cwd in (None, "", ".") else cwd,
    )
    return read_records(result.stdout), result


def choose(host: Host, explicit: str | None = None, run: RunNeeds | None = None) -> PatientChoice:
    """The interpreter to examine, and why.

    Args:
        host: the machine.
        explicit: the value of `--python`: an interpreter, a command or an environment's folder.
        run: the job, whose command may select an environment itself.

    Raises:
        UsageError: what the user passed is not an interpreter, or none was found.
    """
    if explicit:
        return _explicit(host, explicit, "--python")
    from_env = host.env.get("DSDOCTOR_PYTHON", "")
    if from_env:
        return _explicit(host, from_env, "DSDOCTOR_PYTHON")
    if run is not None and run.environment:
        return _of_command(host, run.environment, run.environment_by)

    active = list(_active(host))
    candidates = [
        (variable, python, holding(host, prefix), f"`{variable}` is `{prefix}`")
        for variable, prefix, python in active
    ]
    running, prefix = _query(host, "executable"), _query(host, "prefix")
    if running:
        held = holding(host, prefix, running) if prefix else ()
        what = f"dsdoctor itself runs in `{running}`"
        candidates.append(("running interpreter", running, held, what))
    on_path, outside = _on_path(host, prefix)
    if on_path:
        held = holding(host, prefix_of(host, on_path), on_path)
        what = f"`{on_path}` is the first `{os.path.basename(on_path)}` on PATH{outside}"  # noqa: PTH119
        candidates.append(("python3 on PATH", on_path, held, what))

    nearby = _join(_query(host, "cwd"), ".venv")
    starts_a_job = run is not None and run.command  # with what the shell finds
    if not starts_a_job and (python_nearby := _python_in(host, nearby)):
        held = holding(host, nearby, python_nearby)
        candidates.append((NEARBY, python_nearby, held, f"`{nearby}` is in this folder"))

    for chosen_by, python, held, what in candidates:
        if held:
            why = f"{what}, and it contains {' and '.join(held)}"
            return PatientChoice(executable=python, chosen_by=chosen_by, why=why)
    # none contains what a job needs: judge the one that would start the job
    last = ("running interpreter", NEARBY)
    for chosen_by, python, _, what in sorted(candidates, key=lambda row: row[0] in last):
        why = f"{what}; no environment here has torch or deepspeed"
        return PatientChoice(executable=python, chosen_by=chosen_by, why=why)
    raise UsageError(
        "no Python interpreter found: no environment is active and `python3` is not on PATH; "
        "activate an environment, or pass `--python PATH`",
    )


def named(host: Host, explicit: str | None = None) -> PatientChoice | None:
    """The interpreter that an option, a variable or an active environment sets; None = none does.

    An active environment counts only if torch or deepspeed is installed in it: others are left
    over from the shell that submitted the job.

    Raises:
        UsageError: what was set is not an interpreter.
    """
    if explicit:
        return _explicit(host, explicit, "--python")
    if host.env.get("DSDOCTOR_PYTHON"):
        return _explicit(host, host.env["DSDOCTOR_PYTHON"], "DSDOCTOR_PYTHON")
    for variable, prefix, python in _active(host):
        if holding(host, prefix):
            why = f"`{variable}` points to `{prefix}`"
            return PatientChoice(executable=python, chosen_by=variable, why=why)
    return None


def _query(host: Host, name: str) -> str:
    try:
        return str(host.query(name) or "")
    except HostError:
        return ""


def _join(*parts: str) -> str:
    return os.path.join(*parts)  # noqa: PTH118  # str paths: a replayed host may be of another OS


def _parent(path: str) -> str:
    return os.path.dirname(path)  # noqa: PTH120


def _explicit(host: Host, given: str, source: str) -> PatientChoice:
    """The interpreter that an option or a variable sets."""
    setting = f"{source} {given}" if source.startswith("-") else f"{source}={given}"
    if not re.search(r"[/\\]", given) and given not in (".", "..", "~"):
        path = host.which(given)
        if path is None and not exists(host, given):
            raise UsageError(f"`{setting}`: no such command on PATH, {_EXPECTED}")
    else:
        path = None
    if path is None:
        path = given
        if path == "~" or path.startswith("~/"):
            path = _query(host, "home") + path[1:]
        if not os.path.isabs(path):  # noqa: PTH117
            # no realpath: the link in a venv's bin is what makes it a venv
            path = os.path.normpath(_join(_query(host, "cwd"), path))
    try:
        found = host.stat(path)
    except HostError as error:
        raise UsageError(f"`{setting}`: {error.missing.detail}, {_EXPECTED}") from None
    if found.kind == "dir":
        python = _python_in(host, path)
        if python is None:
            raise UsageError(
                f"`{setting}`: the directory contains no interpreter, expected `bin/python` in it",
            )
        path = python
    elif found.kind != "file" or (host.system != "Windows" and not found.mode & 0o111):
        raise UsageError(f"`{setting}`: `{path}` is not an executable file, {_EXPECTED}")
    why = f"`{source}` names it" if source.startswith("-") else f"the variable `{source}` names it"
    return PatientChoice(executable=path, chosen_by=source, why=why)


def _of_command(host: Host, path: str, why: str) -> PatientChoice:
    """The interpreter of an environment that the job's command selects."""
    try:
        is_folder = host.stat(path).kind == "dir"
    except HostError:
        is_folder = True
    python = _python_in(host, path) if is_folder else path
    if python is None:
        raise UsageError(
            f"the job's environment `{path}` does not exist yet ({why}); create it first "
            "(`uv sync`, `pixi install`), or pass another with `--python`"
        )
    return PatientChoice(executable=python, chosen_by=BY_COMMAND, why=f"{why}: `{path}`")


def _python_in(host: Host, prefix: str) -> str | None:
    """The interpreter of an environment's folder."""
    names = ("bin/python", "bin/python3")
    if host.system == "Windows":
        names = ("Scripts/python.exe", "python.exe")
    for name in names:
        candidate = _join(prefix, name)
        if exists(host, candidate):
            return candidate
    return None


def _active(host: Host) -> Iterator[tuple[str, str, str]]:
    """Environments that are active and still exist: variable, folder, interpreter."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = host.env.get(variable, "").rstrip("/")
        python = _python_in(host, prefix) if prefix else None
        if python is not None:
            yield variable, prefix, python


def _on_path(host: Host, own: str) -> tuple[str | None, str]:
    """The first Python on PATH outside dsdoctor's own environment, which `uvx` puts in front."""

    def first(path: str | None = None) -> str | None:
        return host.which("python3", path) or host.which("python", path)

    found = first()
    if not found or not own or prefix_of(host, found) != own or _venv_config(host, own) is None:
        return found, ""
    separator = ";" if host.system == "Windows" else ":"
    folder = _parent(found)
    others = [one for one in host.env.get("PATH", "").split(separator) if one.rstrip("/") != folder]
    return first(separator.join(others)), " outside dsdoctor's own environment"


def prefix_of(host: Host, python: str) -> str:
    """The folder of the environment that an interpreter belongs to."""
    prefix = _parent(_parent(python))
    if exists(host, _join(prefix, "pyvenv.cfg")):
        return prefix
    try:
        return _parent(_parent(host.readlink(python)))
    except HostError:
        return prefix


def conda_environments(host: Host) -> list[str]:
    """Folders of the environments that conda has created for this account, by its own list."""
    try:
        text = read_text(host, _join(home_folder(host), ".conda", "environments.txt"))
    except HostError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]


def _venv_config(host: Host, prefix: str) -> dict[str, str] | None:
    """The keys of an environment's pyvenv.cfg; None if it has none."""
    try:
        text = read_text(host, _join(prefix, "pyvenv.cfg"))
    except HostError:
        return None
    rows = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in rows}


def site_folders(host: Host, prefix: str, python: str | None = None) -> list[str]:
    """Folders from which an environment imports packages, found without running it.

    Args:
        host: the machine.
        prefix: the environment's folder.
        python: its interpreter, whose name may contain the version.
    """
    config = _venv_config(host, prefix)
    version = _version(host, python or _python_in(host, prefix))
    bases, isolated = [prefix], config is not None
    # the interpreter's default is true
    if config is not None and config.get("include-system-site-packages", "true").lower() == "true":
        isolated = False
        if config.get("home"):
            bases.append(_parent(config["home"]))
    patterns = []
    for base in bases:
        patterns += [
            _join(base, "lib", version, "site-packages"),
            _join(base, "lib64", version, "site-packages"),
            _join(base, "Lib", "site-packages"),
        ]
        if not isolated and base in ("/usr", "/"):  # Debian's own folders
            patterns += [
                "/usr/lib/python3/dist-packages",
                f"/usr/local/lib/{version}/dist-packages",
                f"/usr/local/lib/{version}/site-packages",
            ]
    if not isolated and not host.env.get("PYTHONNOUSERSITE"):
        user_base = host.env.get("PYTHONUSERBASE") or _join(_query(host, "home"), ".local")
        patterns.append(_join(user_base, "lib", version, "site-packages"))
    folders = []
    for pattern in patterns:
        try:
            folders += host.glob(pattern)
        except HostError:
            continue
    return list(dict.fromkeys(folders))


def _version(host: Host, python: str | None) -> str:
    """`python3.11` if the interpreter's name contains it, else a pattern."""
    if python is not None:
        try:
            real = host.readlink(python)
        except HostError:
            real = python
        for path in (real, python):
            found = re.search(r"python(3\.\d+)(?:\.exe)?$", path)
            if found:
                return f"python{found[1]}"
    return "python3*"


def holding(host: Host, prefix: str, python: str | None = None) -> tuple[str, ...]:
    """Which of torch and deepspeed an environment contains."""
    folders = site_folders(host, prefix, python)
    return tuple(
        module for module in _KEY_MODULES if any(_holds(host, folder, module) for folder in folders)
    )


def release_of(host: Host, python: str, package: str) -> str | None:
    """The release of a package in an interpreter's environment, from its `.dist-info` folder."""
    for folder in site_folders(host, _parent(_parent(python)), python):
        try:
            found = host.glob(_join(folder, f"{package}-*.dist-info"))
        except HostError:
            continue
        if found:
            name = found[0].replace("\\", "/").rpartition("/")[2]
            return name[len(package) + 1 : -len(".dist-info")]
    return None


def _holds(host: Host, folder: str, module: str) -> bool:
    if exists(host, _join(folder, module, "__init__.py")):
        return True
    for name in (f"{module}-*.dist-info", f"{module}*.egg-link", f"__editable__.{module}-*"):
        try:
            if host.glob(_join(folder, name)):
                return True
        except HostError:
            continue
    return False
