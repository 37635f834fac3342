"""`scontrol show job`: what Slurm gave to a job on each of its nodes.

How it ended (`JobState=TIMEOUT`) is recognized as in a log. Source: Slurm 17.11 to 25.05,
src/api/job_info.c `slurm_sprint_job_info`: `NumCPUs`, `TRES=`, since 23.02 `ReqTRES=` and
`AllocTRES=`, `TresPerNode=gres:gpu:4` or `gres/gpu:a100:4`, before 18.08 `Gres=gpu:4`.
Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Environment, Resources
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_FIRST = re.compile(r"\s*JobId=(?P<job>\d{1,12})\b")
_FIELD = re.compile(r"(?:^|\s)(?P<key>[A-Za-z][\w/:]{1,30})=(?P<value>\S{1,400})")
_GPUS = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?:[:=][A-Za-z][\w.-]{0,40})?[:=](?P<count>\d{1,5})\b")
_LONGEST = 60
_MOST = 1 << 16


def _read(lines: Sequence[Line], into: Statements) -> None:
    jobs = [place for place, line in enumerate(lines) if _FIRST.match(line.text)]
    if len(jobs) == 1:  # of several, nobody says which is the one that the text is about
        _job(lines[jobs[0] : jobs[0] + _LONGEST], into)


def _job(lines: Sequence[Line], into: Statements) -> None:
    fields: dict[str, tuple[str, Line]] = {}
    for line in lines:
        found = list(_FIELD.finditer(line.text))
        if not found or line.fence:
            break
        for one in found:
            fields.setdefault(one["key"], (one["value"], line))
    nodes, cpus = _number(fields, "NumNodes"), _number(fields, "NumCPUs")
    if not nodes or not cpus or "JobState" not in fields:
        return  # cut off, or a sentence about a job
    job, at = fields["JobId"]
    into.state(Environment, "variables.SLURM_JOB_ID", job, at)
    into.state(Environment, "variables.SLURM_JOB_NUM_NODES", str(nodes), fields["NumNodes"][1])
    if cpus % nodes == 0:
        into.state(Resources, "cpus_usable", cpus // nodes, fields["NumCPUs"][1])
    gpus = _gpus_of_node(fields, nodes)
    none = _asks_for_none(fields)
    if gpus:
        into.state(Environment, "variables.SLURM_GPUS_ON_NODE", str(gpus[0]), gpus[1])
    elif none:
        into.state(Environment, "variables.SLURM_GPUS_ON_NODE", "0", none)


def _number(fields: dict[str, tuple[str, Line]], key: str) -> int | None:
    """A number of nodes or CPUs; before 17.02, a range (`2-2`)."""
    found = re.match(r"(\d{1,5})(?:-\1)?$", fields[key][0]) if key in fields else None
    return int(found[1]) if found and int(found[1]) < _MOST else None


def _gpus_of_node(fields: dict[str, tuple[str, Line]], nodes: int) -> tuple[int, Line] | None:
    for key in ("TresPerNode", "Gres"):
        if key in fields and (found := _GPUS.search(fields[key][0])):
            return int(found["count"]), fields[key][1]
    for key in ("AllocTRES", "ReqTRES", "TRES"):
        if key in fields and (found := _GPUS.search(fields[key][0])):
            count = int(found["count"])
            return (count // nodes, fields[key][1]) if count % nodes == 0 else None
    return None


def _asks_for_none(fields: dict[str, tuple[str, Line]]) -> Line | None:
    """The line that shows that the job has no GPU: no request names one, nor what it was given.

    A cluster may not account for GPUs (`AccountingStorageTRES`), so what was given is not enough.
    """
    if "AllocTRES" not in fields or any(
        "gpu" in value for key, (value, _) in fields.items() if re.match(r"Tres|Gres|\w*TRES", key)
    ):
        return None
    return fields["AllocTRES"][1]


READER = Reader("scontrol show job", _read)
