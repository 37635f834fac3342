"""Checks the node at the start of a training script, before the GPUs are in use.

In the script, before torch is imported::

    import dsdoctor
    dsdoctor.preflight(config="ds_config.json")

or in front of a command, which then runs only if nothing failed::

    python -m dsdoctor.preflight -- torchrun --nproc_per_node 2 train.py

Only one process of each node checks (LOCAL_RANK is 0 or not set); the others continue at once.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dsdoctor import settings
from dsdoctor.callable_module import make_callable
from dsdoctor.errors import UsageError
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.finding import Status
from dsdoctor.model.report import Report, Verdict

#: Seconds for the whole check, which imports torch in a child.
SECONDS = 120.0
_USAGE = (
    "usage: python -m dsdoctor.preflight [--config FILE] [--gpus 0,1] [--quick] [--warn-only] "
    "[--timeout SECONDS] [--needs PATH]… -- CMD ARGS…"
)


class PreflightError(RuntimeError):
    """A failure was confirmed that would end the run.

    Attributes:
        report: all findings.
    """

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def is_local_leader(env: Mapping[str, str]) -> bool:
    """Whether this process is the one that checks its node.

    >>> is_local_leader({}), is_local_leader({"LOCAL_RANK": "3"})
    (True, False)
    >>> is_local_leader({"SLURM_LOCALID": "0"}), is_local_leader({"SLURM_LOCALID": "1"})
    (True, False)
    """
    names = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    for name in names:
        if env.get(name):
            return env[name] == "0"
    return True


def preflight(
    config: str | Mapping[str, Any] | None = None,
    *,
    gpus: Sequence[str | int] = (),
    quick: bool = False,
    timeout: float = SECONDS,
    warn_only: bool = False,
    command: Sequence[str] = (),
) -> Report | None:
    """Examines this machine, this interpreter and the DeepSpeed config before a run.

    torch and DeepSpeed are not imported into this process but into a child.

    Args:
        config: DeepSpeed config of the run: a file, or a dictionary.
        gpus: indices or UUIDs of the GPUs of the run; empty = those that are visible.
        quick: do not start torch.
        timeout: seconds for everything.
        warn_only: print failures and continue.
        command: a command line to judge as well.

    Returns:
        The report; None on ranks that do not check.

    Raises:
        PreflightError: a failure is confirmed (an inconclusive check stops nothing).
        UsageError: the config does not exist, or the configuration of dsdoctor is not valid.
    """
    if not is_local_leader(os.environ):
        return None
    from dsdoctor.job import config_file  # noqa: PLC0415  # ranks that do not look import nothing

    with config_file.of(config) as path:
        report = _examine(path, tuple(str(gpu) for gpu in gpus), quick, timeout, tuple(command))
    bad = [f for f in report.findings if f.status in (Status.FAIL, Status.WARN)]
    from dsdoctor.report import text  # noqa: PLC0415  # ranks that do not check import nothing

    if bad or report.verdict is not Verdict.HEALTHY:
        sys.stderr.write(text.render(report))
        sys.stderr.flush()
    failed = [finding for finding in report.findings if finding.status is Status.FAIL]
    if failed and not warn_only:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        first = failed[0]
        raise PreflightError(f"{first.id} {first.condition}: {first.message}{more}", report)
    return report


def _examine(
    config: str | None, gpus: tuple[str, ...], quick: bool, timeout: float, command: tuple[str, ...]
) -> Report:
    from dsdoctor import packs  # noqa: PLC0415  # ranks that do not check import nothing
    from dsdoctor.examine import Request, examine, read_config  # noqa: PLC0415
    from dsdoctor.judge import Policy  # noqa: PLC0415

    parsed = read_config(config)
    registry = packs.load()
    found, warnings = settings.without_leftovers(settings.load(), registry)
    for warning in warnings:
        sys.stderr.write(f"dsdoctor: {warning}\n")
    run = RunNeeds(
        gpus=gpus,
        config_path=config,
        config=parsed,
        quick=quick,
        cwd=str(Path.cwd()),
        command=command,
    )
    # the script's own interpreter is examined, unless the variable sets another
    python = os.environ.get("DSDOCTOR_PYTHON") or sys.executable
    units = registry.select((), found.ignore)
    request = Request(run=run, python=python, timeout=timeout)
    _, report = examine(request, registry, units, Policy(limits=found.limits))
    return report


def main(argv: Sequence[str]) -> int:
    """Checks, then becomes the command; on a confirmed failure returns 1 and starts nothing."""
    options: dict[str, str] = {}
    needed: list[str] = []
    switches: set[str] = set()
    words = list(argv)
    while words and words[0] != "--":
        word = words.pop(0)
        if word in ("-h", "--help"):
            sys.stdout.write(f"{_USAGE}\n")
            return 0
        if word in ("--quick", "--warn-only"):
            switches.add(word)
        elif word == "--needs" and words and words[0] != "--":
            needed.append(words.pop(0))
        elif word in ("--config", "--gpus", "--timeout") and words and words[0] != "--":
            options[word] = words.pop(0)
        else:
            return _misuse(f"`{word}` is not understood; {_USAGE}")
    command = words[1:]
    if not command or shutil.which(command[0]) is None:
        what = f"`{command[0]}` cannot be run" if command else "no command is passed"
        return _misuse(f"{what}; {_USAGE}")
    try:
        timeout = float(options.get("--timeout", SECONDS))
    except ValueError:
        timeout = 0.0
    if not 1 <= timeout < 1e6:  # noqa: PLR2004
        return _misuse(
            f"`--timeout {options['--timeout']}` is not a number of seconds; expected 1 or more"
        )
    lacking = [path for path in needed if not os.access(path, os.R_OK)]
    if lacking:
        return _misuse(
            f"`{lacking[0]}` cannot be read, but the run needs it (`--needs`); "
            f"`{command[0]}` is not started"
        )
    try:
        preflight(
            options.get("--config"),
            gpus=[item for item in options.get("--gpus", "").split(",") if item],
            quick="--quick" in switches,
            timeout=timeout,
            warn_only="--warn-only" in switches,
            command=command,
        )
    except PreflightError as error:
        sys.stderr.write(f"dsdoctor: `{command[0]}` is not started: {error}\n")
        return 1
    except UsageError as error:
        return _misuse(str(error))
    except KeyboardInterrupt:
        return 130
    try:
        os.execvp(command[0], command)  # noqa: S606  # replaces this process: its status is ours
    except OSError as error:
        return _misuse(f"`{command[0]}` cannot be run: {error.strerror}")


def _misuse(message: str) -> int:
    sys.stderr.write(f"dsdoctor: {message}\n")
    return 2


make_callable(__name__, "dsdoctor.preflight.preflight")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
