"""The limit on open files is very low.

## Why it matters
DataLoader workers, tensors passed between processes, NCCL connections and checkpoint shards use file
descriptors. With a low limit a job stops with `Too many open files`, often hours after its start.

## What to do
Run `ulimit -n $(ulimit -Hn)` in the shell or job script that starts the job: it raises the limit as far as
this user may. If that is still too low, raise the hard limit: `--ulimit nofile=65536` for a container,
`LimitNOFILE=65536` for slurmd, `/etc/security/limits.conf` for logins.

## References
- NCCL docs: troubleshooting.rst
- https://pytorch.org/docs/stable/multiprocessing.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Limits,
    Missing,
    OsInfo,
    Resources,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._where import on_host

CONDITION = Condition(
    "open-files-limit", id="DSD1003", scope=Scope.JOB, since="0.1", fixes=("raise-limits",)
)


class FileLimits(Limits, frozen=True, kw_only=True):
    """Open files for one process.

    Attributes:
        min_files: the default of Linux; a lower limit was set on purpose.
        fatal_files: below this the imports and a few workers already fail.
    """

    min_files: float = 1024
    fatal_files: float = 128


@check(CONDITION)
def files_can_be_opened(
    resources: Resources, os: OsInfo | Missing, limits: FileLimits
) -> Iterator[Finding]:
    """Judges the soft limit, which applies to a job."""
    limit = resources.limit_nofile
    if limit is None or limit >= limits.min_files:
        yield ok(nofile=limit)
        return
    yield (fail if limit < limits.fatal_files else warn)(
        f"a process may open {limit} files, but jobs need {limits.min_files:g} or more",
        effect="the job stops with `OSError: [Errno 24] Too many open files`",
        hint="run `ulimit -n $(ulimit -Hn)` before the job starts"
        + (", or start the container with `--ulimit nofile=65536`" if on_host(os) else ""),
        nofile=limit,
        min_files=limits.min_files,
    )


HINT = (
    "run `ulimit -n $(ulimit -Hn)` before the job starts, or use the `file_system` sharing strategy"
)

SIGNATURES = (
    Signature(
        pattern="Too many open files|received 0 items of ancdata",
        source="torch 2.13.0 utils/data/dataloader.py",
        examples=(
            "OSError: [Errno 24] Too many open files",
            "RuntimeError: received 0 items of ancdata",
        ),
        level=Level.STRONG,
        masks=("shm-too-small", "dataloader-worker-killed", "weights-file-corrupt"),
    ),
    Signature(
        pattern=r"\bEMFILE\b: too many|errno = 24\b|open files limit \d{1,9} (?:exceeded|reached)",
        source=(
            "node.js 8-24 (libuv), as npm and wandb-core print it; HDF5 1.8-1.14 src/H5FDsec2.c, "
            "as h5py prints it"
        ),
        examples=(
            "Error: EMFILE: too many open files, open 'x'",
            "OSError: unable to open file (errno = 24, error message = 'x')",
            "open files limit 7 exceeded",
        ),
        not_examples=("open files limit 65536",),
        level=Level.STRONG,
        masks=("shm-too-small",),
    ),
)
