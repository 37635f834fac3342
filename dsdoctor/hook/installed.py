"""Writes and removes the files of `hook install`, and recognizes those that it has written."""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.hook import schedulers
from dsdoctor.hook.install import TARGETS, Plan
from dsdoctor.hook.wrapper import MARK

#: Names that hooks create in the run folder (dsdoctor/hook/rundir.py, gatelog.py, the scripts).
_LEFT = re.compile(
    r"(?:node|node-snapshot)\.json|lock|fail-open|epilogs|gate\.log(?:\.1)?"
    r"|(?:job|blocked|own|worker|run)\..*"
)
_CHECKSUM = "# sha256 of the other lines: "


def apply(wanted: Plan) -> list[str]:
    """Writes the files; returns what it did, in lines.

    Raises:
        UsageError: a file exists that dsdoctor did not write, or the folder cannot be written.
    """
    said = []
    for path, (text, mode) in wanted.files.items():
        if path.exists() and not _is_ours(path):
            raise UsageError(
                f"`{path}` exists and was not written by dsdoctor; move it away, or pass `--into`"
            )
        try:
            kept = _keep_edited(path, text)
            files.write(path, with_checksum(text), mode=mode, strict=True, make=0o755, durable=True)
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be written ({error.strerror}); pass `--into`, or run as root"
            ) from None
        said += [f"kept your edited {path.name} as {kept}"] if kept else []
        said.append(f"wrote {path}")
    return said


def with_checksum(text: str) -> str:
    """A script with the checksum of its other lines, which shows later whether it was edited.

    Files that are not scripts (JSON, YAML) are not changed.
    """
    lines = text.split("\n")
    if not text.startswith("#!") or _CHECKSUM in text:
        return text
    return "\n".join([lines[0], f"{_CHECKSUM}{_digest(text)}", *lines[1:]])


def _digest(text: str) -> str:
    whole = "\n".join(line for line in text.split("\n") if not line.startswith(_CHECKSUM))
    return hashlib.sha256(whole.encode()).hexdigest()


def is_edited(text: str) -> bool:
    r"""Whether a script was changed after it was written; without a checksum, it may have been.

    >>> is_edited(with_checksum("#!/bin/sh\n:\n")), is_edited(with_checksum("#!/bin/sh\n:\n") + "x")
    (False, True)
    """
    return f"{_CHECKSUM}{_digest(text)}\n" not in text


def _keep_edited(path: Path, new: str) -> Path | None:
    """Copies an edited script before it is replaced; returns the copy, None if it was not edited.

    Raises:
        OSError: it cannot be copied.
    """
    if not path.exists() or not new.startswith("#!"):
        return None
    if not is_edited(path.read_text(encoding="utf-8", errors="replace")):
        return None
    number = 1
    while (kept := path.with_name(f"{path.name}.edited-{number}")).exists():
        number += 1
    files.copy(path, kept, mode=0o644, strict=True)
    return kept


def remove(target: str, into: Path, *, dry: bool = False) -> list[str]:
    """Removes what `apply` wrote, and no other files; returns what it did, in lines.

    Args:
        target: what was installed.
        into: the folder of its files.
        dry: change nothing, and return what would be removed.

    Raises:
        UsageError: dsdoctor wrote no file there, or a file cannot be removed.
    """
    names = {
        "slurm": ("prolog.sh", "task-prolog.sh", "health.sh", "epilog.sh"),
        "epilog": ("epilog.sh",),
        "kubernetes": ("gate-configmap.yaml", "job.yaml"),
        "npd": ("dsdoctor.json", "npd.sh"),
        "nagios": ("check_dsdoctor",),
        **schedulers.FILES,
    }[target]
    said = []
    run_folders = set()
    for path in (into / name for name in names):
        if not path.exists():
            continue
        run_folders |= _run_folders(path)
        if not _is_ours(path):
            said.append(f"left {path}: it was not written by dsdoctor")
            continue
        if dry:
            said.append(f"would remove {path}")
            continue
        try:
            path.unlink()
        except OSError as error:
            raise UsageError(f"`{path}` cannot be removed ({error.strerror})") from None
        said.append(f"removed {path}")
    if not said:
        raise UsageError(
            f"`{into}` contains no file that dsdoctor wrote; expected {', '.join(names)}"
        )
    if dry:
        unless = "unless other scripts use it"
        folders = sorted(run_folders)
        return said + [f"would remove what hooks left in {folder}, {unless}" for folder in folders]
    used = _run_folders_in_use({into, *TARGETS.values()})
    said += [f"left {folder}: other scripts use it" for folder in sorted(run_folders & used)]
    said += [line for folder in sorted(run_folders - used) for line in _empty(folder)]
    try:
        into.rmdir()
    except OSError:
        return said  # others' files are in it
    return [*said, f"removed {into}"]


def _run_folders(script: Path) -> set[Path]:
    """The run folder that a script of `hook install` uses."""
    text = script.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"(?m)^\s*run=(/\S+|'/[^']+')$", text) if MARK in text else []
    return {Path(name.strip("'")) for name in found}


def _run_folders_in_use(folders: set[Path]) -> set[Path]:
    """Run folders of the scripts that remain, for the same scheduler or others on the node."""
    found: set[Path] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                found |= _run_folders(path) if path.is_file() else set()
    return found


def _empty(folder: Path) -> list[str]:
    """Removes what hooks created in a run folder, and the folder if nothing else is in it."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
    for name in names:
        if _LEFT.fullmatch(name):
            with contextlib.suppress(OSError):
                tree = name == "fail-open" or name.startswith("run.")
                files.remove(folder / name, strict=True, tree=tree)
    try:
        files.remove_folder(folder, strict=True)
    except OSError:
        return [f"left {folder}: it contains other files"]
    return [f"removed {folder}"]


def _is_ours(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return MARK in text or '"source": "dsdoctor-monitor"' in text
