"""A GPU reported errors while a job ran on it.

## Why it matters
The errors may be the reason why the job failed. A GPU that keeps reporting errors should be replaced.
Other conditions decide whether the GPU stays in service: a lost GPU, a required reset, an
uncorrectable memory error or a failed row remap takes the node out of service.

## What to do
Run `dcgmi diag -r 3` on the node, and look for the same errors in earlier jobs.

## References
- https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (version of 2025-10-29)
- Checked only by `dsdoctor hook slurm-epilog`, against the counts that the job's prolog recorded
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    JobRemains,
    Missing,
    RunNeeds,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks.gpu._util import judged, named
from dsdoctor_checks.gpu._xids import INFO, lookup

CONDITION = Condition("gpu-errors-in-job", id="DSD1608", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def job_had_no_errors(
    remains: JobRemains, gpus: Gpus, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Warns about new uncorrected memory errors and Xids of the job's GPUs; notes the others.

    It never fails. An Xid stays in the log after the reset that fixed it, and the health program,
    which does not read the log, would resume the node at once.
    """
    if remains.begun is None:
        yield skip(
            "the job's prolog recorded no counts, so new errors cannot be told from old ones"
        )
        return
    noted: dict[str, int] = {}
    for gpu in judged(gpus, run, env):
        before = remains.ecc.get(gpu.uuid or "")
        if before is not None:
            more = (gpu.health.ecc_volatile_uncorrected or 0) - (before.uncorrected or 0)
            corrected = (gpu.health.ecc_volatile_corrected or 0) - (before.corrected or 0)
            if corrected > 0:
                noted[f"GPU {gpu.index} corrected memory errors"] = corrected
            if more > 0:
                yield warn(
                    f"{named(gpu)} had {more} uncorrected memory error{'s' if more > 1 else ''} while job {remains.job} "
                    "ran, but 0 are expected",
                    effect="a program that touched the bad memory failed with a CUDA error",
                    hint="run `dcgmi diag -r 3`",
                    gpu=gpu.index,
                    uncorrected=more,
                    corrected=corrected,
                )
        address = (gpu.pci_bdf or "").rpartition(".")[0]
        seen: dict[int, list[str]] = {}
        for event in remains.xids or ():
            if event.bdf == address and not event.switch:
                seen.setdefault(event.code, []).append(event.text)
        for code, texts in sorted(seen.items()):
            rule = lookup(code, texts[-1])
            if rule.level == INFO:
                noted[f"GPU {gpu.index} Xid {code}"] = len(texts)
                continue
            yield warn(
                f"{named(gpu)} reported Xid {code} ({rule.meaning}) while job {remains.job} ran, "
                "but a healthy GPU reports none",
                effect="the job failed or ran slower",
                hint=rule.action,
                gpu=gpu.index,
                code=code,
                count=len(texts),
                text=texts[-1],
            )
    yield ok(noted=noted, job=remains.job, log_read=remains.xids is not None)
