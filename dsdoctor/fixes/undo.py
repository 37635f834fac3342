"""Carries out a journal from its end to its beginning."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsdoctor import files, process
from dsdoctor.fixes import inventory
from dsdoctor.fixes.journal import Journal, JournalError
from dsdoctor.host.own_environment import start_of

#: How long a package manager may take to restore its packages, in seconds.
RESTORE_SECONDS = 3600.0

Say = Callable[[str], None]


class UndoError(Exception):
    """Something could not be restored; the journal stays, so that undo can be run again."""


def undo(journal: Journal, env: Mapping[str, str], say: Say) -> None:
    """Restores everything that a journal records, then archives it.

    Raises:
        UndoError: the journal cannot be trusted, or something could not be restored, and
            why.
    """
    try:
        journal.verify()
    except JournalError as error:
        raise UndoError(f"nothing was undone: {error}") from None
    problems: list[str] = []
    records = journal.records()
    whole = [Path(record["path"]) for record in records if record.get("op") == "tree"]
    done = {record["undone"] for record in records if "undone" in record}
    after = _lists_after(records)
    for number, record in reversed(list(enumerate(records))):
        if "op" not in record or number in done:
            continue  # an interrupted undo got this far
        path = Path(record.get("path", "/"))
        if record.get("op") == "restore" and any(tree in path.parents for tree in whole):
            continue  # it is removed with its folder
        try:
            if record["op"] == "inventory":
                _packages(record, after.get(number), env, say)
            else:
                _one(journal, record, say)
        except (OSError, UndoError) as error:
            problems.append(str(error))
        else:
            journal.undone(number)
    if problems:
        raise UndoError("; ".join(problems))
    journal.retire()


def _lists_after(records: Sequence[dict[str, Any]]) -> dict[int, inventory.Inventory]:
    """The list of packages after each step that changed it, by the number of the step's record."""
    found: dict[int, inventory.Inventory] = {}
    step = 0
    for number, record in enumerate(records):
        if record.get("op") == "inventory":
            step = number
        elif record.get("op") == "inventory-after":
            found[step] = record["after"]
    return found


def _one(journal: Journal, record: dict[str, Any], say: Say) -> None:
    op = record.get("op")
    if op == "restore":
        _restore(journal, record, say)
    elif op == "folder":
        # a folder that something else has moved into stays
        with contextlib.suppress(OSError):
            files.remove_folder(record["path"], strict=True)
    elif op == "tree":
        path = Path(record["path"])
        if path.exists():
            say(f"removing {path}")
            files.remove(path, tree=True, strict=True)
    elif op == "moved":
        aside, path = Path(record["aside"]), Path(record["path"])
        if os.path.lexists(aside):
            say(f"restoring {path}")
            if os.path.lexists(path):  # created again since: a cache that was rebuilt
                files.remove(path, tree=True, strict=True)
            files.rename(aside, path.name, strict=True)


def _restore(journal: Journal, record: dict[str, Any], say: Say) -> None:
    path = Path(record["path"])
    if record.get("absent"):
        if os.path.lexists(path):
            say(f"removing {path}")
            files.remove(path, strict=True)
        return
    if "link" in record:
        if path.is_symlink() and os.readlink(path) == record["link"]:  # noqa: PTH115
            return
        say(f"restoring {path}")
        files.symlink(record["link"], path, strict=True)
        return
    content = files.read(journal.backup(record), strict=True, limit=1 << 32)
    if path.is_file() and not path.is_symlink():
        now = path.read_bytes()
        wrote = record.get("after")
        if now != content and wrote and hashlib.sha256(now).hexdigest() != wrote:
            kept = path.with_name(path.name + ".before-undo")
            files.write(kept, now, strict=True, follow=False)
            say(f"{path} was changed since; that version is saved as {kept}")
    say(f"restoring {path}")
    files.write(
        path,
        content,
        mode=record["mode"],
        mtime_ns=record["mtime_ns"],
        strict=True,
        follow=False,
        make=0o777,
        durable=True,
    )


def _packages(
    record: dict[str, Any],
    after: inventory.Inventory | None,
    env: Mapping[str, str],
    say: Say,
) -> None:
    """Takes back what a step changed; a step that was interrupted has no list after it."""
    manager, argv, before = record["manager"], record["argv"], record["before"]
    try:
        now = inventory.take(manager, argv, env)
    except inventory.InventoryError as error:
        raise UndoError(str(error)) from None
    after = now if after is None else after
    for name in inventory.changed_since(before, after, now):
        say(f"`{name}` was changed since, and stays as it is")
    for command in inventory.restore(manager, argv, before, after, now):
        say(f"running {' '.join(command)}")
        try:
            account, own, cwd = start_of(command, env)
            result = process.run(
                command, timeout=RESTORE_SECONDS, env=own, cwd=cwd, account=account
            )
        except OSError as error:
            raise UndoError(f"`{command[0]}` cannot be started: {error.strerror}") from None
        if not result.ok:
            raise UndoError(f"`{' '.join(command)}` says: {result.error_text}")
