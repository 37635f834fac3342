"""The request to a hook: its kind, its options, and the GPUs that the scheduler assigned."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

#: Kind to its purpose and the scopes that it judges.
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "slurm-prolog": ("Slurm's Prolog: may this job start on this node?", ("node",)),
    "slurm-task-prolog": (
        "Slurm's TaskProlog: tell the user what is wrong",
        ("user-env", "job"),
    ),
    "slurm-epilog": ("Slurm's Epilog: may the node take its next job?", ("node",)),
    "slurm-health": (
        "Slurm's HealthCheckProgram: drain nodes, and resume those that it drained",
        ("node",),
    ),
    "pbs-prologue": ("PBS's prologue: may this job start on this node?", ("node",)),
    "pbs-health": (
        "PBS's periodic check: set nodes offline, and back online if it set them offline",
        ("node",),
    ),
    "lsf-pre-exec": ("LSF's pre-execution command: may this job start here?", ("node",)),
    "sge-prolog": ("Grid Engine's prolog: may this job start on this node?", ("node",)),
    "k8s": ("an init container for Kubernetes", ("node", "user-env", "job")),
    "npd": ("a plugin for node-problem-detector", ("node",)),
    "nagios": ("a plugin for Nagios and compatible monitors", ("node",)),
}
#: Scheduler, as in the names of kinds, to the variables with a job's id.
JOB_VARIABLES = {
    "slurm": ("SLURM_JOB_ID", "SLURM_JOBID"),
    "pbs": ("PBS_JOBID",),
    "lsf": ("LSB_JOBID",),
    "sge": ("JOB_ID",),
}
#: Seconds for everything; Slurm logs a warning about a prolog after 8 (MessageTimeout - 2).
BUDGET = 5.0
#: Seconds for which the next hooks reuse a verdict on the node.
MAX_AGE = 60.0

#: More GPUs, with MIG devices, than any node has; and the longest list of them, in characters.
MOST_GPUS, _LONGEST_LIST = 1024, 1 << 16
#: No secret token is as short as this.
_SHORT_NAME = 16
_SWITCHES = ("fail-closed", "dry-run", "enforce", "live", "reason-from-prolog", "job-comment")
_VALUES = (
    "budget",
    "gpus",
    "json",
    "run-folder",
    "max-age",
    "token",
    "textfile",
    "python",
    "config",
    "termination-log",
    "ignore",
    "trust-owner",
)


@dataclasses.dataclass(frozen=True)
class Request:
    """One call of a hook.

    Attributes:
        kind: a key of KINDS.
        budget: seconds for the script around it in total; without a script, for this process.
        gpus: value of `--gpus`: indices or UUIDs, `all`, `none`; None = as the scheduler assigned.
        json: file for the verdict.
        fail_closed: an inconclusive check blocks too.
        dry_run: report only; nothing is blocked.
        enforce: the task prolog ends the task on a confirmed failure.
        live: torch may be started (Kubernetes).
        reason_from_prolog: the prolog drains the node itself, with the reason.
        job_comment: the prolog writes into a blocked job's AdminComment why it was blocked.
        run_folder: where verdicts and counters are stored; None = the usual folder.
        max_age: seconds for which a verdict is reused.
        token: of the script; repeated in the verdict file, it proves that the file is of this run.
        textfile: file for Prometheus' textfile collector.
        python: the job's interpreter (kinds that judge the environment).
        config: DeepSpeed config of the job.
        termination_log: where Kubernetes reads why a container ended.
        ignore: conditions to leave out.
        limits: condition to thresholds, from the configuration.
        problems: mistakes in the configuration, each in one line.
        trust_owner: accounts that may own the interpreter besides root, by uid.
    """

    kind: str
    budget: float = BUDGET
    gpus: str | None = None
    json: str | None = None
    fail_closed: bool = False
    dry_run: bool = False
    enforce: bool = False
    live: bool = False
    reason_from_prolog: bool = False
    job_comment: bool = False
    run_folder: str | None = None
    max_age: float = MAX_AGE
    token: str = ""
    textfile: str | None = None
    python: str | None = None
    config: str | None = None
    termination_log: str | None = None
    ignore: tuple[str, ...] = ()
    trust_owner: tuple[int, ...] = ()
    limits: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def scopes(self) -> tuple[str, ...]:
        """Scopes that it judges."""
        return KINDS[self.kind][1]

    @property
    def shared(self) -> bool:
        """Whether its verdict is only about the node, so that other hooks can reuse it."""
        return self.scopes == ("node",) and self.kind != "slurm-epilog"


def parse(argv: Sequence[str]) -> Request | None:
    """Parses `KIND --option value …` without importing a parser; None = leave it to click.

    Only arguments that are certainly valid are accepted, so that all error messages are click's.

    >>> parse(["slurm-prolog", "--budget", "4", "--fail-closed"]).budget
    4.0
    >>> parse(["slurm-prolog", "--budget", "soon"]), parse(["slurm-prolog", "--help"])
    (None, None)
    """
    if not argv or argv[0] not in KINDS:
        return None
    given: dict[str, object] = {}
    words = iter(argv[1:])
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            return None
        field = name.replace("-", "_")
        if name in _SWITCHES and not equals:
            given[field] = True
        elif name in _VALUES:
            text = value if equals else next(words, None)
            if text is None or (not equals and text.startswith("--")):
                return None
            if name in ("budget", "max-age"):
                number = _number(text)
                if number is None or (name == "budget" and number < 1):
                    return None
                given[field] = number
            elif name == "trust-owner":
                if not text.isdecimal():
                    return None
                given[field] = (*tuple(given.get(field, ())), int(text))  # type: ignore[arg-type]  # by name
            elif name == "ignore":
                given[field] = (*tuple(given.get(field, ())), *_items(text))  # type: ignore[arg-type]  # by name
            else:
                given[field] = text
        else:
            return None
    return Request(kind=argv[0], **given)  # type: ignore[arg-type]  # by name


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None  # noqa: PLR2004  # neither nan nor inf


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def gpu_selectors(request: Request, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The GPUs to judge; None = all of the node, () = the job requests none.

    SLURM_JOB_GPUS has the host's indices. The Prolog runs outside the job's cgroup, unless
    PrologFlags has RunInJob (in 26.05); inside the job NVML is renumbered, and so is
    CUDA_VISIBLE_DEVICES, unless it contains UUIDs (gres.conf: Flags=env_uuid, in 26.05).

    >>> gpu_selectors(Request("slurm-prolog"), {"SLURM_JOB_GPUS": "2,3"})
    ('2', '3')
    >>> gpu_selectors(Request("slurm-prolog"), {"SLURM_JOB_ID": "1"})
    ()
    >>> both = {"SLURM_JOB_GPUS": "2", "CUDA_VISIBLE_DEVICES": "GPU-7"}
    >>> gpu_selectors(Request("slurm-prolog"), both)
    ('GPU-7',)
    >>> gpu_selectors(Request("slurm-prolog", gpus="all"), {"SLURM_JOB_GPUS": "2,3"})
    >>> gpu_selectors(Request("k8s"), {"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"})
    """
    if request.gpus is not None:
        word = request.gpus.strip().lower()
        return None if word == "all" else () if word in ("none", "") else _items(request.gpus)
    if request.kind in ("slurm-prolog", "slurm-epilog"):
        visible = env.get("CUDA_VISIBLE_DEVICES", "")
        names_devices = visible.startswith(("GPU-", "MIG-"))
        for value in (visible if names_devices else "", env.get("SLURM_JOB_GPUS"), visible):
            if value:
                return expanded(value)
        return () if env.get("SLURM_JOB_ID") else None
    if request.kind == "sge-prolog" and env.get("SGE_HGR_gpu"):
        return expanded(env["SGE_HGR_gpu"].replace(" ", ","))
    if request.kind in ("lsf-pre-exec", "sge-prolog"):
        devices = env.get("CUDA_VISIBLE_DEVICES")
        return expanded(devices) if devices else () if job_id(env, request.kind) else None
    if request.kind == "pbs-prologue":
        # dsdoctor's PBS hook sets it, to "" if the job requests no GPU; a prologue does not have it
        devices = env.get("CUDA_VISIBLE_DEVICES")
        return None if devices is None else expanded(devices)
    if request.kind == "slurm-task-prolog":
        if env.get("CUDA_VISIBLE_DEVICES"):
            return expanded(env["CUDA_VISIBLE_DEVICES"])
        return ()
    return None


def has_job_environment(request: Request) -> bool:
    """Whether the hook's environment is that of the job, in which its owner can set anything.

    LSF and Grid Engine pass it to the script. An index of a GPU that the node does not have is
    then a mistake of that job, and must not take the node out of service.
    """
    return request.kind in ("lsf-pre-exec", "sge-prolog")


def expanded(text: str) -> tuple[str, ...]:
    """Items of a list of GPUs; Slurm may write ranges.

    Under some schedulers the user of the job sets the variable: indices that no node has are left
    out, so that a range cannot use up the memory.

    >>> expanded("0-2,5"), expanded("GPU-ab-1,MIG-GPU-x/1/0"), expanded("NoDevFiles")
    (('0', '1', '2', '5'), ('GPU-ab-1', 'MIG-GPU-x/1/0'), ())
    >>> len(expanded("0-99999999999")), expanded("7,9" + "9" * 5000)
    (1024, ('7',))
    """
    found: list[str] = []
    for item in _items(text[:_LONGEST_LIST]):
        first, dash, last = item.partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            if _is_index(first):
                end = int(last) + 1 if _is_index(last) else MOST_GPUS
                found += [str(number) for number in range(int(first), end)]
        elif _is_index(item) or item.startswith(("GPU-", "MIG-")):
            found.append(item)
        if len(found) >= MOST_GPUS:
            break
    return tuple(found[:MOST_GPUS])


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) < len(str(MOST_GPUS)) + 1 and int(text) < MOST_GPUS


def job_id(env: Mapping[str, str], kind: str = "slurm") -> str:
    """The job that a hook runs for; empty outside a job.

    >>> job_id({"SLURM_JOB_ID": "7"}), job_id({"PBS_JOBID": "8[2].pbs"}, "pbs-prologue")
    ('7', '8[2].pbs')
    """
    names = JOB_VARIABLES.get(kind.partition("-")[0], JOB_VARIABLES["slurm"])
    return masked_name(next((env[name] for name in names if env.get(name)), ""))


def node_name(env: Mapping[str, str]) -> str:
    """What the scheduler calls this node.

    >>> node_name({"SLURMD_NODENAME": "gpu-1"})
    'gpu-1'
    """
    return masked_name(env.get("SLURMD_NODENAME") or env.get("NODE_NAME") or os.uname().nodename)


def masked_name(name: str) -> str:
    """A name from the environment, with secrets masked.

    >>> masked_name("gpu-1"), masked_name("redis://:secret@cache:6379/0")
    ('gpu-1', 'redis://[masked]@cache:6379/0')
    """
    if len(name) <= _SHORT_NAME and all(c.isalnum() or c in "._-[]+" for c in name):
        return name
    from dsdoctor.model.masking import mask  # noqa: PLC0415  # a reused verdict takes 50 ms in all

    return mask(name)


def configured(request: Request, table: Mapping[str, object]) -> Request:
    """The request, with values of the `[hook]` table for options that were not passed.

    >>> configured(Request("npd"), {"budget": 3.0, "ignore": ["memlock-low"]}).budget
    3.0
    """
    default = Request(kind=request.kind)
    changes: dict[str, object] = {}
    for name in ("budget", "max_age", "fail_closed", "dry_run", "textfile", "gpus"):
        if name in table and getattr(request, name) == getattr(default, name):
            changes[name] = table[name]
    if request.kind == "slurm-task-prolog":
        changes.pop("textfile", None)  # the hook runs as the job's user, and the file is root's
    budget = changes.get("budget")
    if request.token and isinstance(budget, float) and budget > request.budget:
        del changes["budget"]
        again = f"run `dsdoctor hook install` again with `--budget {budget:g}`"
        problem = (
            f"`budget = {budget:g}` in `[hook]` is ignored: the script ends within "
            f"{request.budget:g} s; {again}"
        )
        changes["problems"] = (*request.problems, problem)
    ignore = table.get("ignore", ())
    if isinstance(ignore, list | tuple):
        changes["ignore"] = (*request.ignore, *ignore)
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]  # by name
