"""What the machine was like when a job last worked here, and what has changed since.

`run` and `smoke` record it; `run` and a failing `check` report what has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import platformdirs

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Nvml
from dsdoctor.model.facts.machine import Environment, OsInfo
from dsdoctor.model.facts.python import DeepSpeedInstall, Packages, PatientChoice, TorchBuild
from dsdoctor.model.facts.toolchain import CudaToolkits
from dsdoctor.model.plain import shortened
from dsdoctor.model.snapshot import Snapshot, from_json

#: Variables that differ from one log-in, job or run to the next.
PASSING = re.compile(
    r"^(?:SLURM_|SSH_|DBUS_|XDG_|TERM|SHLVL|OLDPWD|PWD|_$|DSDOCTOR_|LINES|COLUMNS|MASTER_|RANK$"
    r"|LOCAL_RANK$|WORLD_SIZE$|TMPDIR$)"
)
LONGEST = 60


def _place(snapshot: Snapshot) -> Path:
    choice, system = snapshot.get(PatientChoice), snapshot.get(OsInfo)
    python = "" if isinstance(choice, Missing) else choice.executable
    host = "" if isinstance(system, Missing) else system.hostname
    key = hashlib.sha256(f"{host}\0{python}".encode()).hexdigest()[:16]
    return Path(platformdirs.user_state_dir("dsdoctor"), "known-good", f"{key}.json")


def remember(snapshot: Snapshot) -> None:
    """Saves a snapshot of a machine on which a job has just worked."""
    path = _place(snapshot)
    with contextlib.suppress(OSError):
        files.write(path, snapshot.to_json(), mode=0o600, make=0o700, strict=True)


def last(snapshot: Snapshot) -> Snapshot | None:
    """The machine as it was when a job last worked in this environment; None = not recorded."""
    path = _place(snapshot)
    try:
        return from_json(files.read(path, strict=True), str(path))
    except (OSError, UsageError):
        return None


#: Properties from one kind of fact that can break a job: name in messages to value.
Group = dict[str, Any]


def _traits(snapshot: Snapshot) -> dict[str, Group]:
    """Properties that can break a job when they change, by the kind of fact, if it was read."""
    found: dict[str, Group] = {}
    nvml, system = snapshot.get(Nvml), snapshot.get(OsInfo)
    if not isinstance(nvml, Missing):
        found["driver"] = {"driver": nvml.driver_version}
    if not isinstance(system, Missing):
        found["kernel"] = {"kernel": system.release}
    torch, deepspeed = snapshot.get(TorchBuild), snapshot.get(DeepSpeedInstall)
    if not isinstance(torch, Missing):
        found["torch"] = {"torch": torch.version, "CUDA version of torch": torch.cuda}
    if not isinstance(deepspeed, Missing):
        found["deepspeed"] = {"deepspeed": deepspeed.version}
    packages, toolkits = snapshot.get(Packages), snapshot.get(CudaToolkits)
    if not isinstance(packages, Missing):
        found["packages"] = {
            f"`{name}`": package.version
            for name, package in packages.packages.items()
            if name not in ("torch", "deepspeed")
        }
    if not isinstance(toolkits, Missing):
        toolkit = toolkits.toolkit
        found["toolkit"] = {"CUDA toolkit": toolkit.version if toolkit is not None else None}
    variables = snapshot.get(Environment)
    if not isinstance(variables, Missing):
        found["variables"] = {
            f"variable `{name}`": value
            for name, value in variables.variables.items()
            if not PASSING.match(name)
        }
    if snapshot.run.config is not None:
        found["config"] = {
            f"config `{name}`": value for name, value in _flattened(snapshot.run.config, "")
        }
    return found


def _flattened(tree: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            rows += _flattened(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", value))
    return rows


def changes(before: Snapshot, now: Snapshot) -> list[str]:
    """What has changed that can break a job, one phrase each.

    Facts that one of the two does not have are left out: a driver that could not be read has not
    changed, and a check without a config does not miss one.
    """
    old, new = _traits(before), _traits(now)
    rows = [
        (name, old[group].get(name), new[group].get(name))
        for group in old.keys() & new.keys()
        for name in old[group].keys() | new[group].keys()
    ]
    return [
        f"{name}: {_difference(name, value, fresh)}"
        for name, value, fresh in sorted(rows, key=lambda row: row[0])
        if value != fresh
    ]


def _difference(name: str, value: Any, fresh: Any) -> str:
    """How a value has changed; of a search path, the folders that came and went.

    >>> _difference("variable `PATH`", "/bin:/opt/a", "/opt/b:/bin")
    'added `/opt/b`, removed `/opt/a`'
    >>> _difference("variable `PATH`", "/bin:/opt/a", "/opt/a:/bin")
    'the order of its folders changed'
    """
    if not (name.endswith("PATH`") and value and fresh and ":" in f"{value}{fresh}"):
        return f"{_shortened(value)} → {_shortened(fresh)}"
    before, now = str(value).split(":"), str(fresh).split(":")
    rows = [
        _folders("added", [one for one in dict.fromkeys(now) if one not in before]),
        _folders("removed", [one for one in dict.fromkeys(before) if one not in now]),
    ]
    return ", ".join(filter(None, rows)) or "the order of its folders changed"


def _folders(word: str, found: Sequence[str]) -> str:
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{word} `{shortened(found[0], LONGEST)}`{more}"


def since_last(snapshot: Snapshot, most: int = 3) -> str:
    """What has changed since a job last worked here, in one sentence; "" = nothing known."""
    before = last(snapshot)
    found = changes(before, snapshot) if before is not None else []
    return sentence(found, most)


def sentence(found: Sequence[str], most: int = 3) -> str:
    """Changes in one sentence; "" = none."""
    if not found:
        return ""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"changed since a job last worked here: {'; '.join(found[:most])}{more}"


def _shortened(value: Any) -> str:
    return shortened("absent" if value is None else str(value), LONGEST)
