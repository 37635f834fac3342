"""Files of `hook install`, and what to write into a scheduler's configuration."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.hook import schedulers, trust
from dsdoctor.hook.wrapper import GRACE_SECONDS, MARK, Wrapper
from dsdoctor.safe_path import is_root

#: What hooks leave in the run folder (dsdoctor/hook/rundir.py, gatelog.py and the scripts).
_LEFT = re.compile(
    r"(?:node|node-snapshot)\.json|lock|fail-open|epilogs|gate\.log(?:\.1)?"
    r"|(?:job|blocked|own|worker|run)\..*"
)
_SEAL = "# sha256 of the other lines: "

TARGETS = {
    "slurm": Path("/etc/slurm/dsdoctor"),
    "epilog": Path("/etc/slurm/dsdoctor"),
    "kubernetes": Path("dsdoctor-kubernetes"),
    "npd": Path("/etc/node-problem-detector/dsdoctor"),
    "nagios": Path("/usr/local/lib/dsdoctor"),
    "pbs": Path("/etc/dsdoctor/pbs"),
    "lsf": Path("/etc/dsdoctor/lsf"),
    "sge": Path("/etc/dsdoctor/sge"),
}


@dataclasses.dataclass(frozen=True)
class InstallOptions:
    """What `hook install` was told.

    Attributes:
        into: folder for the files.
        python: interpreter that dsdoctor is installed in.
        budget: seconds to a decision.
        fail_closed: what cannot be told blocks.
        run_folder: where root's hooks keep verdicts.
        gpus: `all` where Slurm does not manage GPUs, so that a job never names them.
        enforce: the task prolog ends tasks.
        reason_from_prolog: the prolog itself drains with our reason.
        job_comment: the prolog writes why it blocked a job into the job's AdminComment.
        scontrol: for the health program.
        slurm_conf: SLURM_CONF for the health program, whose environment lacks it.
        image: training image, which holds dsdoctor (Kubernetes).
        trust: accounts that may own the interpreter besides root, by number.
    """

    into: Path
    python: str
    budget: float = 5.0
    fail_closed: bool = False
    run_folder: str = "/run/dsdoctor"
    gpus: str | None = None
    enforce: bool = False
    reason_from_prolog: bool = False
    job_comment: bool = True
    scontrol: str = "/usr/bin/scontrol"
    slurm_conf: str | None = None
    image: str = "registry.example/train:1"
    trust: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an installation consists of.

    Attributes:
        files: path to content and permission bits.
        advice: what the administrator does next.
    """

    files: dict[Path, tuple[str, int]]
    advice: str


def plan(target: str, options: InstallOptions) -> Plan:
    """The files and the advice for a scheduler."""
    others = {"pbs": schedulers.pbs, "lsf": schedulers.lsf, "sge": schedulers.sge}
    if target in others:
        return Plan(*others[target](options))
    if target == "epilog":
        return _epilog(options)
    return {"slurm": _slurm, "kubernetes": _kubernetes, "npd": _npd, "nagios": _nagios}[target](
        options
    )


def _slurm(options: InstallOptions) -> Plan:
    exports = [f"export DSDOCTOR_SCONTROL={options.scontrol}"]
    if options.slurm_conf:
        exports.append(f"export SLURM_CONF=${{SLURM_CONF:-{options.slurm_conf}}}")
    prolog_options = ["--gpus", options.gpus] if options.gpus else []
    first = list(exports) if options.reason_from_prolog or options.job_comment else []
    if options.job_comment:
        prolog_options.append("--job-comment")
        first.insert(0, "# scontrol is called only where a job is blocked, to tell its user why")
    if options.reason_from_prolog:
        prolog_options.append("--reason-from-prolog")
        first.insert(0, _CALLS_SCONTROL)
    files = {
        "prolog.sh": Wrapper(
            "slurm-prolog",
            options.python,
            options=tuple(prolog_options),
            budget=options.budget,
            run_folder=options.run_folder,
            fail_closed=options.fail_closed,
            first="\n".join(first),
            trust=options.trust,
        ),
        "task-prolog.sh": Wrapper(
            "slurm-task-prolog",
            options.python,
            options=("--enforce",) if options.enforce else (),
            budget=options.budget,
            run_folder=None,
            fail_closed=options.fail_closed,
            first="\n".join(
                [
                    "# one task of each node speaks",
                    '[ "${SLURM_LOCALID:-0}" = 0 ] || exit 0',
                    *exports,
                ]
            ),
        ),
        "health.sh": Wrapper(
            "slurm-health",
            options.python,
            budget=options.budget * 2,
            run_folder=options.run_folder,
            first="\n".join(exports),
            trust=options.trust,
        ),
    }
    into = options.into
    limit = int(options.budget + GRACE_SECONDS)
    advice = f"""\
Write these lines into slurm.conf, then `scontrol reconfigure`:

Prolog={into}/prolog.sh
    judges the node before every job; status 1 drains it and requeues the job
PrologFlags=Alloc
    runs the Prolog when the job is allocated, not at its first step on the node
PrologEpilogTimeout=60
    the default is to wait for ever; the script itself gives up after {limit} s
SchedulerParameters=nohold_on_prolog_fail
    add it to those you have: without it a requeued job is held until somebody releases it;
    with it the job runs on another node after about two minutes
HealthCheckProgram={into}/health.sh
HealthCheckInterval=300
HealthCheckNodeState=ANY
    drains sick nodes, writes `dsdoctor: …` in place of `Prolog error`, and resumes a node that is
    well again if the drain was ours
TaskProlog={into}/task-prolog.sh
    optional: reports what is wrong with the allocation, and with the environment that the job
    names (`DSDOCTOR_PYTHON`, `VIRTUAL_ENV`, `CONDA_PREFIX`), in the job's output

Everything passes while /etc/dsdoctor/disabled exists. Defaults of the hooks stand in the table
[hook] of /etc/dsdoctor/config.toml: budget, max_age, dry_run, fail_closed, textfile, ignore.
"""
    if options.gpus is None:
        advice += (
            "Jobs that ask Slurm for no GPU are judged without them; where Slurm does not manage\n"
            "GPUs, install with `--gpus all`.\n"
        )
    return Plan({into / name: (w.render(), 0o755) for name, w in files.items()}, advice)


#: Stands in an epilog that drains with our reason itself.
_CALLS_SCONTROL = "# --reason-from-prolog calls scontrol here, which Slurm's manual advises against"


def _epilog(options: InstallOptions) -> Plan:
    first = [f"export DSDOCTOR_SCONTROL={options.scontrol}"] if options.reason_from_prolog else []
    if options.slurm_conf and first:
        first.append(f"export SLURM_CONF=${{SLURM_CONF:-{options.slurm_conf}}}")
    chosen = ["--gpus", options.gpus] if options.gpus else []
    script = Wrapper(
        "slurm-epilog",
        options.python,
        options=(*chosen, *(["--reason-from-prolog"] if first else [])),
        budget=options.budget,
        run_folder=options.run_folder,
        fail_closed=options.fail_closed,
        first="\n".join([_CALLS_SCONTROL, *first] if first else first),
        trust=options.trust,
    )
    path = options.into / "epilog.sh"
    advice = f"""\
Write these lines into slurm.conf, then `scontrol reconfigure`:

Epilog={path}
    judges the node after every job: processes that the job left on a GPU, memory errors and Xids
    of its time, its files in /dev/shm; status 1 drains the node, the rest is only logged
PrologEpilogTimeout=60
    the default is to wait for ever; the script itself gives up after \
{int(options.budget + GRACE_SECONDS)} s

The errors of a job's time are known only where the Prolog of `hook install slurm` runs as well, and
its health program writes `dsdoctor: …` in place of `Epilog error`.
Everything passes while /etc/dsdoctor/disabled exists.
"""
    return Plan({path: (script.render(), 0o755)}, advice)


def gate(options: InstallOptions) -> Wrapper:
    """The script of the init container, which uses the image's own interpreter."""
    return Wrapper(
        "k8s",
        options.python,
        budget=options.budget,
        run_folder=None,
        fail_closed=options.fail_closed,
        first="# the image's own PATH finds its interpreter",
    )


def _kubernetes(options: InstallOptions) -> Plan:
    from dsdoctor.hook import manifests  # noqa: PLC0415  # text only

    script = gate(options).render()
    files = {
        "gate-configmap.yaml": manifests.config_map(script),
        "job.yaml": manifests.job(options.image),
    }
    advice = f"""\
kubectl apply -f {options.into}/gate-configmap.yaml
    the script of the init container
{options.into}/job.yaml
    an example: copy `initContainers`, `volumes` and `podFailurePolicy` into your own Job; the init
    container uses the training image, which must hold dsdoctor, and asks for the same GPUs

status 1 of the init container (the node is at fault): `Ignore`, the pod is tried anew, not counted
status 4 (the environment or the job is at fault): `FailJob`, another node would not help
anything that could not be told: status 0, the job starts
"""
    return Plan({options.into / name: (text, 0o644) for name, text in files.items()}, advice)


def _monitor(kind: str, options: InstallOptions) -> str:
    return Wrapper(
        kind,
        options.python,
        budget=options.budget,
        run_folder=options.run_folder,
        trust=options.trust,
    ).render()


def _nagios(options: InstallOptions) -> Plan:
    path = options.into / "check_dsdoctor"
    advice = f"""\
Let the agent of your monitor (NRPE, Icinga, Checkmk) run, as root,

{path}
    0 OK, 1 WARNING, 2 CRITICAL (a confirmed fault), 3 UNKNOWN (everything else, including a
    dsdoctor that is missing or broken); allow it {options.budget + 2 * GRACE_SECONDS:g} s
"""
    return Plan({path: (_monitor("nagios", options), 0o755)}, advice)


def _npd(options: InstallOptions) -> Plan:
    script = options.into / "npd.sh"
    # longer than the script's own limit, so that its answer is the one that is heard
    timeout = f"{options.budget + 2 * GRACE_SECONDS:g}s"
    config = {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": "5m",
            "timeout": timeout,
            "max_output_length": 80,
            "concurrency": 1,
            "enable_message_change_based_condition_update": True,
        },
        "source": "dsdoctor-monitor",
        "metricsReporting": True,
        "conditions": [{"type": "GPUProblem", "reason": "GPUIsHealthy", "message": "dsdoctor: ok"}],
        "rules": [
            {
                "type": "permanent",
                "condition": "GPUProblem",
                "reason": "GPUIsFaulty",
                "path": str(script),
                "args": [],
                "timeout": timeout,
            }
        ],
    }
    path = options.into / "dsdoctor.json"
    advice = f"""\
Start node-problem-detector with

--config.custom-plugin-monitor={path}
    it runs {script} every 5 minutes; the node gets the condition GPUProblem
    (0 healthy, 1 faulty, anything else: not known)
"""
    written = {
        path: (json.dumps(config, indent=2) + "\n", 0o644),
        script: (_monitor("npd", options), 0o755),
    }
    return Plan(written, advice)


def account_number(name: str) -> int:
    """The number of an account that is given by name or number.

    Raises:
        UsageError: there is no such account.
    """
    if name.isdecimal():
        return int(name)
    try:
        import pwd  # noqa: PLC0415  # not on Windows

        return pwd.getpwnam(name).pw_uid
    except (ImportError, KeyError):
        raise UsageError(f"`--trust-owner {name}` is not an account of this machine") from None


def judge(python: str, owners: tuple[int, ...]) -> str:
    """Makes sure that root may run an interpreter; a line of warning for who is not root.

    Raises:
        UsageError: this is root, and somebody else could change what it would run.
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


def apply(wanted: Plan) -> list[str]:
    """Writes the files; says what it did.

    Raises:
        UsageError: a file of somebody else stands there, or the folder cannot be written.
    """
    said = []
    for path, (text, mode) in wanted.files.items():
        if path.exists() and not _ours(path):
            raise UsageError(
                f"`{path}` exists and was not written by dsdoctor; move it away, or give `--into`"
            )
        try:
            kept = _keep_edited(path, text)
            files.write(path, sealed(text), mode=mode, strict=True, make=0o755, durable=True)
        except OSError as error:
            raise UsageError(
                f"`{path}` cannot be written ({error.strerror}); give `--into`, or run as root"
            ) from None
        said += [f"kept your edited {path.name} as {kept}"] if kept else []
        said.append(f"wrote {path}")
    return said


def sealed(text: str) -> str:
    """A script with the checksum of its other lines, by which a later one knows it was not edited.

    Files without a comment line of ours (JSON, YAML) stay as they are.
    """
    lines = text.split("\n")
    if not text.startswith("#!") or _SEAL in text:
        return text
    return "\n".join([lines[0], f"{_SEAL}{_digest(text)}", *lines[1:]])


def _digest(text: str) -> str:
    whole = "\n".join(line for line in text.split("\n") if not line.startswith(_SEAL))
    return hashlib.sha256(whole.encode()).hexdigest()


def is_edited(text: str) -> bool:
    r"""Whether somebody changed a script after it was written; one without a checksum may be.

    >>> is_edited(sealed("#!/bin/sh\n:\n")), is_edited(sealed("#!/bin/sh\n:\n") + "x")
    (False, True)
    """
    return f"{_SEAL}{_digest(text)}\n" not in text


def _keep_edited(path: Path, new: str) -> Path | None:
    """Moves an edited script aside before it is written anew; where to, None if it was not edited.

    Raises:
        OSError: it cannot be moved.
    """
    if not path.exists() or not new.startswith("#!"):
        return None
    if not is_edited(path.read_text(encoding="utf-8", errors="replace")):
        return None
    number = 1
    while (kept := path.with_name(f"{path.name}.edited-{number}")).exists():
        number += 1
    files.copy(path, kept, mode=0o644, strict=True)
    return kept


def remove(target: str, into: Path) -> list[str]:
    """Removes what `apply` wrote; files that are not ours stay.

    Raises:
        UsageError: there is nothing of ours, or a file cannot be removed.
    """
    names = {
        "slurm": ("prolog.sh", "task-prolog.sh", "health.sh", "epilog.sh"),
        "epilog": ("epilog.sh",),
        "kubernetes": ("gate-configmap.yaml", "job.yaml"),
        "npd": ("dsdoctor.json", "npd.sh"),
        "nagios": ("check_dsdoctor",),
        **schedulers.FILES,
    }[target]
    said = []
    run_folders = set()
    for path in (into / name for name in names):
        if not path.exists():
            continue
        run_folders |= _run_folders(path)
        if not _ours(path):
            said.append(f"left {path}: it was not written by dsdoctor")
            continue
        try:
            path.unlink()
        except OSError as error:
            raise UsageError(f"`{path}` cannot be removed ({error.strerror})") from None
        said.append(f"removed {path}")
    if not said:
        raise UsageError(f"`{into}` holds no file of dsdoctor; expected {', '.join(names)}")
    # the epilog shares its folders with the other scripts for Slurm
    shared = {folder for path in into.glob("*.sh") for folder in _run_folders(path)}
    said += [line for folder in sorted(run_folders - shared) for line in _empty(folder)]
    try:
        into.rmdir()
    except OSError:
        return said  # others' files are in it
    return [*said, f"removed {into}"]


def _run_folders(script: Path) -> set[Path]:
    """The run folder that a script of ours uses."""
    text = script.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"(?m)^\s*run=(/\S+|'/[^']+')$", text) if MARK in text else []
    return {Path(name.strip("'")) for name in found}


def _empty(folder: Path) -> list[str]:
    """Removes what hooks left in a run folder, and the folder if nothing else is in it."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
    for name in names:
        if _LEFT.fullmatch(name):
            with contextlib.suppress(OSError):
                tree = name == "fail-open" or name.startswith("run.")
                files.remove(folder / name, strict=True, tree=tree)
    try:
        files.remove_folder(folder, strict=True)
    except OSError:
        return [f"left {folder}: it contains files of others"]
    return [f"removed {folder}"]


def _ours(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return MARK in text or '"source": "dsdoctor-monitor"' in text
