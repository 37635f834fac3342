"""Which account a program runs as: root does not run what another account could have changed.

When root examines an environment, its interpreter, the modules on `PYTHONPATH` and the user site
may belong to another account. Started as root, any of them is a way to become root. So the child
runs as the account that owns them, which is also what that account's job would see; `--as-user`
selects another. A working folder of another account is not entered as root: a child starts in `/`.
"""

from __future__ import annotations

import atexit
import os
import site
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.process import Account
from dsdoctor.safe_path import (
    UnsafePathError,
    foreign_owner,
    is_root,
    locate,
    rules_for,
    why_untrusted,
)
from dsdoctor.safe_path import account as words_for

#: dsdoctor's scripts for child processes, which the account must be able to read.
_SCRIPTS = Path(__file__).parent.parent / "probes" / "children"


#: Those of them that read the machine and nothing of the examined environment.
_OWN_SCRIPTS = ("checkpoint.py", "nvml.py", "trial_compile.py", "trial_write.py", "watch_gpus.py")


#: Most variables that a message lists.
_SHOWN = 4


class _Choice:
    """The account of `--as-user`, and what follows from it, for this process.

    Attributes:
        given: the account, None = the owner of what is run.
        reported: accounts that were already reported.
        copies: copy of dsdoctor's scripts that every account can read.
    """

    given: Account | None = None
    reported: set[int] = set()
    copies: Path | None = None


def set_account(name: str | None) -> None:
    """Runs the examined environment as an account, given by name or number.

    Raises:
        UsageError: there is no such account, or this is not root.
    """
    if name is None:
        return
    if not is_root():
        raise UsageError(f"`--as-user {name}` needs root; leave it out")
    import pwd  # noqa: PLC0415  # not on Windows

    try:
        number = int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid
    except KeyError:
        raise UsageError(
            f"`--as-user {name}` is not an account of this machine; `getent passwd` lists them"
        ) from None
    _Choice.given = account_of(number)


def account_of(uid: int) -> Account:
    """Groups and home of an account; one without an entry has its number as group, and no home."""
    import pwd  # noqa: PLC0415  # not on Windows

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(uid, uid, (), "/", str(uid), _is_secret)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Account(uid, entry.pw_gid, groups, entry.pw_dir, entry.pw_name, _is_secret)


def _is_secret(name: str, value: str) -> bool:
    """Whether to withhold a variable of root from another account's programs."""
    from dsdoctor.model.masking import mask_value  # noqa: PLC0415  # for other accounts only

    return mask_value(name, value) != value


def _without(env: Mapping[str, str]) -> str:
    """The part of a message that lists the variables withheld from another account's programs."""
    names = sorted(name for name, value in env.items() if _is_secret(name, value))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    listed = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return f", without {listed}{more}, which may be secret" if names else ""


def own_tool(name: str, path: str | None = None) -> str | None:
    """A program on PATH; for root, one that no other account could have put there.

    Args:
        name: name of the program.
        path: folders to look in; None = those of `PATH`.
    """
    import shutil  # noqa: PLC0415  # a diagnosis that root makes needs none

    found = shutil.which(name, path=path)
    if found is None or not is_root():
        return found
    folders = (path or os.environ.get("PATH") or os.defpath).split(os.pathsep)
    for folder in folders:
        found = shutil.which(name, path=folder) if folder else None
        if found is not None and not why_untrusted(os.path.abspath(found)):  # noqa: PTH100
            return found
    return None


def is_cautious() -> bool:
    """Whether this is root, without `--as-user root`, which runs others' programs as root."""
    return is_root() and not (_Choice.given is not None and _Choice.given.uid == 0)


def may_quote(path: str, info: os.stat_result) -> None:
    """As root, rejects a private file that another account's link leads to: it would be quoted.

    Args:
        path: the path that was opened.
        info: the file that was opened.

    Raises:
        UnsafePathError: on the path, an account's link leads to a file that it may not read.
    """
    if not is_root() or info.st_mode & 0o004:
        return
    try:
        with locate(path, rules_for(strict=False)):
            pass
    except UnsafePathError:
        if foreign_owner(path) != info.st_uid:
            raise


def isolated(argv: Sequence[str]) -> list[str]:
    """The command; as root, a dsdoctor script that needs no Python environment gets none."""
    words = list(argv)
    if is_root() and words[0] == sys.executable and len(words) > 1:
        script = Path(words[1])
        if script.parent == _SCRIPTS and script.name in _OWN_SCRIPTS:
            own_site = site.getusersitepackages()
            keeps = own_site in sys.path and not why_untrusted(own_site, entries=True)
            words.insert(1, "-E" if keeps else "-I")  # dsdoctor itself may be installed there
    return words


def _is_python(program: str) -> bool:
    return Path(os.path.realpath(program)).name.startswith(("python", "pypy"))


def _code_paths(program: str, argv: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """The paths that a program loads code from, as far as its environment sets them."""
    yield program
    if argv[1:2] in (["-I"], ["-E"]) or not _is_python(program):
        return
    yield from (entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry)
    home = env.get("HOME", "")
    user_site = Path(env.get("PYTHONUSERBASE") or Path(home, ".local"), "lib")
    if home and any(user_site.glob("python3*/site-packages")):
        yield str(user_site)


def choose(argv: Sequence[str], env: Mapping[str, str]) -> Account | None:
    """The account to run a command as; None = that of this process."""
    if not is_root():
        return None
    import shutil  # noqa: PLC0415  # a diagnosis that root makes needs none

    program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        return None
    for place in _code_paths(os.path.abspath(program), argv, env):  # noqa: PTH100  # links stay
        owner = foreign_owner(place)
        if owner is None:
            continue
        if _Choice.given is not None:
            return None if _Choice.given.uid == 0 else _Choice.given
        if owner not in _Choice.reported:
            _Choice.reported.add(owner)
            who = words_for(owner)
            sys.stderr.write(
                f"dsdoctor: `{place}` belongs to {who}, so it runs as that account"
                f"{_without(env)}; to use another, pass `--as-user`\n"
            )
        return account_of(owner)
    return None


def choose_for_paths(argv: Sequence[str], env: Mapping[str, str]) -> Account | None:
    """The account to run a step of a fix as; None = that of this process.

    A package manager runs what is in the environment that it changes (scripts of packages, `.pth`
    files), so a path of another account among its arguments counts as much as the program does.
    """
    account = choose(argv, env)
    if account is not None or not is_root():
        return account
    for word in argv[1:]:
        path = word.rpartition("=")[2] if word.startswith("-") else word
        owner = foreign_owner(path) if path.startswith("/") else None
        if owner is not None:
            given = _Choice.given
            if given is not None:
                return None if given.uid == 0 else given
            return account_of(owner)
    return None


def become_owner(interpreter: str) -> None:
    """Gives up root permanently if another account could change the interpreter.

    The ranks of `smoke` share a folder with dsdoctor, so all of it runs as one account.

    Raises:
        UsageError: that account cannot read dsdoctor.
    """
    if not is_root():
        return
    account = _Choice.given
    if account is None:
        owner = foreign_owner(os.path.abspath(interpreter))  # noqa: PTH100  # links stay
        if owner is None:
            return
        account = account_of(owner)
        sys.stderr.write(
            f"dsdoctor: `{interpreter}` belongs to {words_for(owner)}, so everything runs as that "
            f"account{_without(os.environ)}; to use another, pass `--as-user`\n"
        )
    become(account)


def refuse_foreign(interpreter: str) -> None:
    """Refuses to run another account's interpreter as root, for callers that cannot give up root.

    Raises:
        UsageError: this is root, and another account could change the interpreter.
    """
    owner = foreign_owner(os.path.abspath(interpreter)) if is_root() else None  # noqa: PTH100
    if owner is not None:
        raise UsageError(
            f"`{interpreter}` belongs to {words_for(owner)}, and root does not run it; call this "
            "as that account, or use the command, which gives up root"
        )


def refuse_foreign_folder() -> None:
    """Refuses to run ranks as root on several nodes in a working folder that others can change.

    A launcher enters that folder on every node, and Python searches it for modules first.

    Raises:
        UsageError: this is root, another account could change the working folder, and
            `--as-user root` was not passed.
    """
    reason = _why_not_here(None) if is_cautious() else ""
    if reason:
        raise UsageError(
            "the ranks of several nodes run in the working folder, where another account may "
            f"put modules ({reason}), and root does not run them there: go to another folder, or "
            "pass `--as-user NAME` (`root` to run them all the same)"
        )


def become_given() -> None:
    """Gives up root permanently if `--as-user` selects an account.

    Raises:
        UsageError: that account cannot read dsdoctor.
    """
    if _Choice.given is not None and is_root():
        become(_Choice.given._replace(withholds=None))  # passing variables on may be intended


def become(account: Account) -> None:
    """Runs the rest of this process as an account, with its home and without root's folders.

    Raises:
        UsageError: that account cannot read dsdoctor or its interpreter.
    """
    if account.uid == 0:
        return
    needed = (Path(os.__file__), Path(__file__), *(Path(place) for place in sys.path[-1:]))
    for place in needed:
        if not _open_to_all(place):
            raise UsageError(
                f"`{place}` cannot be read by {words_for(account.uid)}; install dsdoctor where "
                "every account can read it, or pass `--as-user root`"
            )
    os.setgroups(account.groups)
    os.setgid(account.gid)
    os.setuid(account.uid)
    changed = account.environment(os.environ)
    for name in set(os.environ) - set(changed):
        del os.environ[name]
    os.environ.update(changed)
    import tempfile  # noqa: PLC0415  # a diagnosis that root makes needs none

    tempfile.tempdir = None  # chosen again: the account may not be able to use root's


def working_folder(cwd: str | None, account: Account | None) -> str | None:
    """The folder that a child starts in: `/` for root if others can put modules into this one."""
    if not is_root() or account is not None:
        return cwd
    return "/" if _why_not_here(cwd) else cwd


def _why_not_here(cwd: str | None) -> str:
    """Why root does not start children in a folder: others could make files in it."""
    try:
        here = os.path.abspath(cwd or os.getcwd())  # noqa: PTH100, PTH109
    except OSError as error:
        return f"the working folder cannot be used ({error.strerror})"
    return why_untrusted(here, entries=True)


def readable(argv: Sequence[str]) -> list[str]:
    """The command with dsdoctor's own scripts in a place where every account can read them."""
    words = list(argv)
    for number, word in enumerate(words[1:3], 1):
        if Path(word).parent == _SCRIPTS and not _open_to_all(Path(word)):
            words[number] = str(_copied() / Path(word).name)
    return words


def _open_to_all(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o004) and all(
            parent.stat().st_mode & 0o001 for parent in path.parents
        )
    except OSError:
        return False


def _copied() -> Path:
    if _Choice.copies is None:
        folder = files.scratch_folder("dsdoctor-scripts-")
        atexit.register(files.remove, folder, tree=True)
        for script in _SCRIPTS.glob("*.py"):
            files.copy(script, folder / script.name, mode=0o644)
        files.open_to_all(folder)
        _Choice.copies = folder
    return _Choice.copies
