"""Whether root's hooks may use the interpreter and the run folder that their scripts name."""

from __future__ import annotations

import os
from pathlib import Path

from dsdoctor.errors import UsageError
from dsdoctor.hook import trust
from dsdoctor.safe_path import is_root, trusted_accounts, why_untrusted


def account_number(name: str) -> int:
    """The uid of an account, by name or by number.

    Raises:
        UsageError: there is no such account.
    """
    if name.isdecimal():
        return int(name)
    try:
        import pwd  # noqa: PLC0415  # not on Windows

        return pwd.getpwnam(name).pw_uid
    except (ImportError, KeyError):
        raise UsageError(
            f"`--trust-owner {name}` is not an account of this machine; `getent passwd` lists them"
        ) from None


def judge(python: str, owners: tuple[int, ...]) -> str:
    """Makes sure that root may run an interpreter; returns a warning if that is not an error.

    Raises:
        UsageError: this is root, and another account could change what root would run.
    """
    if not os.path.lexists(python):
        return f"warning: `{python}` is not on this machine; it is judged where the hook runs"
    distrust = trust.why_not(python, owners, as_root=True)
    if not distrust:
        return ""
    if not is_root():
        return f"warning: a hook that root runs will refuse `{python}`: {distrust}"
    raise UsageError(
        f"root must not run `{python}`: {distrust}; install dsdoctor as root (for example "
        "`python3 -m venv /opt/dsdoctor`), or name the account that owns it with `--trust-owner`"
    )


def judge_run_folder(folder: str, owners: tuple[int, ...]) -> str:
    """Makes sure that root's hooks will use a run folder; returns a warning if they may not.

    Of a folder that does not exist yet, those above it are judged: the first hook creates it.

    Raises:
        UsageError: it cannot be a folder, or this is root and another account controls it.
    """
    path = Path(folder)
    present = next(place for place in (path, *path.parents) if os.path.lexists(place))
    if not present.is_dir():
        raise UsageError(
            f"`--run-folder {folder}` cannot be used, because `{present}` is not a folder; "
            "expected a local folder of root such as /run/dsdoctor"
        )
    distrust = why_untrusted(present, trusted_accounts(owners), entries=present == path)
    if not distrust:
        return ""
    if not is_root():
        return f"warning: a hook that root runs will refuse `--run-folder {folder}`: {distrust}"
    raise UsageError(
        f"root's hooks would refuse `--run-folder {folder}`: {distrust}; expected a folder that "
        "only root may write to, such as /run/dsdoctor"
    )
