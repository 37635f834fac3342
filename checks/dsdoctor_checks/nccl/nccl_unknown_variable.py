"""An NCCL variable is set that NCCL does not read.

## Why it matters
NCCL does not report unknown names, neither in the environment nor in its configuration files. A
misspelled or invented variable looks like a setting and has no effect. `NCCL_TIMEOUT`, for example, was
never read by any release.

## What to do
Use the intended name, or remove the variable.

## References
- NCCL 2.18.1 to 2.30.7, src: every `NCCL_PARAM` and `ncclGetEnv`
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    LaunchCommand,
    Missing,
    NcclFiles,
    Scope,
    check,
    skip,
    warn,
    without_fix,
)

from ._names import FOREIGN, FOREIGN_PREFIXES, GONE, NAMES, OF_TORCH
from ._settings import settings

CONDITION = Condition(
    "nccl-unknown-variable",
    id="DSD802",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)

#: Unknown variables whose spelling is compared with all that are known, which takes 1 ms each.
MOST = 200


def nearest(name: str) -> str | None:
    """The variable that is likely meant: from the table of known mistakes, else by spelling.

    >>> nearest("NCCL_IB_QPS"), nearest("NCCL_DEBUGG")
    ('NCCL_IB_QPS_PER_CONNECTION', 'NCCL_DEBUG')
    """
    if name in GONE:
        return GONE[name]
    import difflib  # noqa: PLC0415  # only for an unknown variable

    close = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.8)
    return close[0] if close else None


@check(CONDITION)
def variables_are_read(
    env: Environment, files: NcclFiles | Missing, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """Judges each variable that begins with NCCL_, wherever it is set."""
    unknown = [
        (name, setting)
        for name, setting in settings(env, files, command).items()
        if name not in NAMES
        and name not in OF_TORCH
        and name not in FOREIGN
        and not name.startswith(FOREIGN_PREFIXES)
    ]
    if len(unknown) > MOST:
        yield skip(f"{len(unknown) - MOST} unknown variables were not compared (limit: {MOST})")
    for name, setting in unknown[:MOST]:
        meant = nearest(name)
        if meant is None and name not in GONE:
            # Vendors' plugins read names of their own: a name that resembles none may be theirs.
            continue
        hint = setting.remedy
        if meant is not None:
            hint += f", and set `{meant}` if you meant that"
        finding = warn(
            f"`{name}` is set{setting.where}, but no NCCL from 2.18 to 2.30 reads it",
            effect="the setting has no effect",
            hint=hint,
            variable=name,
            value=setting.value,
            meant=meant,
            path=setting.path or None,
            line=setting.line or None,
        )
        # a file and a command are the reader's to change
        yield finding if setting.of_environment else without_fix(finding)
