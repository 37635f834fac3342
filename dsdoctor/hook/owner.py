"""Whether root's hooks may run the interpreter that `hook install` writes into its scripts."""

from __future__ import annotations

import os

from dsdoctor.errors import UsageError
from dsdoctor.hook import trust
from dsdoctor.safe_path import is_root


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
