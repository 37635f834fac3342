"""The environment of programs that root starts, without variables that lead to others' files.

`sudo -E`, or an older sudo, keeps the variables of the account that called it: `CXX`, a cache of
compiled ops in `TORCH_EXTENSIONS_DIR` or below `HOME`. Root's ranks would run what is in them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dsdoctor.host.account import (
    account_of,
    choose_for_paths,
    is_cautious,
    working_folder,
)
from dsdoctor.model.plain import printable
from dsdoctor.process import Account
from dsdoctor.safe_path import why_untrusted

_WORDS = re.compile(r"[\s:,;=]+")
#: Variables whose removal is not reported: they lead to the working folder, which root does not
#: enter either, or to nothing that is run.
_NOT_REPORTED = frozenset({"HOME", "PWD", "OLDPWD", "MAIL", "XDG_DATA_DIRS"})
#: Variables that were already reported.
_reported: set[str] = set()


def own_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment; for root, without those that lead to others' paths.

    `PATH` keeps the folders that only root can change, and `HOME` becomes root's own.
    """
    if not is_cautious():
        return dict(env)
    kept, left = {}, set()
    for name, value in env.items():
        if name == "PATH":
            kept[name] = _own_folders(value)
        elif any(map(_is_foreign, _WORDS.split(value))):
            left.add(name)
        else:
            kept[name] = value
    if "HOME" in left:
        kept["HOME"] = account_of(0).home
    if fresh := sorted(left - _NOT_REPORTED - _reported):
        _reported.update(fresh)
        names = ", ".join(f"`{name}`" for name in fresh)
        sys.stderr.write(
            f"dsdoctor: root's programs start without {names}, which leads to what another "
            "account could change; to keep it, pass `--as-user root`\n"
        )
    return kept


def use_own_path() -> None:
    """As root, removes folders from `PATH` in which others could put an `ssh` or a `kubectl`."""
    path = os.environ.get("PATH")
    if path is None or not is_cautious():
        return
    kept = _own_folders(path)
    if kept != path:
        os.environ["PATH"] = kept
        own = kept.split(os.pathsep)
        left = ", ".join(f"`{one}`" for one in path.split(os.pathsep) if one not in own)
        sys.stderr.write(
            f"dsdoctor: root's programs are not looked for in {printable(left)}, where another "
            "account could put one\n"
        )


class Start(NamedTuple):
    """How a program that changes an environment is started.

    Attributes:
        account: the account to run it as, None = that of this process.
        env: its variables.
        cwd: the folder that it starts in, None = that of this process. `python -m pip` imports
            modules from it.
    """

    account: Account | None
    env: dict[str, str]
    cwd: str | None


def start_of(argv: Sequence[str], env: Mapping[str, str]) -> Start:
    """How to start a package manager: as which account, and for root with nothing of others."""
    account = choose_for_paths(argv, env)
    own = dict(env) if account is not None else own_environment(env)
    return Start(account, own, working_folder(None, account))


def _is_foreign(word: str) -> bool:
    return word.startswith("/") and why_untrusted(word, absent=True) != ""


def _own_folders(path: str) -> str:
    """The folders of `PATH` in which only root can put a program; /tmp is not one."""
    return os.pathsep.join(
        folder
        for folder in path.split(os.pathsep)
        if folder.startswith("/") and not why_untrusted(folder, entries=True, absent=True)
    )
