"""The files that `hook install` writes for each scheduler, and what to configure there."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path

from dsdoctor.hook import gatelog, limits, schedulers
from dsdoctor.hook.wrapper import PATIENCE_SECONDS, Wrapper

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

#: Image in the example for Kubernetes, if none is passed.
IMAGE = "registry.example/train:1"


@dataclasses.dataclass(frozen=True)
class InstallOptions:
    """The options of `hook install`.

    Attributes:
        into: folder for the files.
        python: interpreter of the environment in which dsdoctor is installed.
        budget: seconds for a script in total.
        fail_closed: an inconclusive check blocks.
        run_folder: where root's hooks store verdicts.
        gpus: `all` if Slurm does not manage GPUs, so that jobs do not request them.
        enforce: the task prolog ends tasks.
        reason_from_prolog: the prolog itself drains the node, with the reason.
        job_comment: the prolog writes why it blocked a job into the job's AdminComment.
        scontrol: path of the program, for the scripts.
        slurm_conf: SLURM_CONF for the scripts, whose environment may not contain it.
        offline: PBS's hook sets a faulty node offline, and online again.
        pbsnodes: path of the program that does so.
        image: training image, which contains dsdoctor (Kubernetes).
        trust: accounts that may own the interpreter besides root, by uid.
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
    offline: bool = False
    pbsnodes: str = "/opt/pbs/bin/pbsnodes"
    image: str = IMAGE
    trust: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to install.

    Attributes:
        files: path to content and permission bits.
        advice: what the administrator must do next.
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
    exports = _exports(options)
    prolog_options = ["--gpus", options.gpus] if options.gpus else []
    first = list(exports) if options.reason_from_prolog or options.job_comment else []
    if options.job_comment:
        prolog_options.append("--job-comment")
        first.insert(0, "# scontrol is called only where a job is blocked, to inform its user")
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
            second=_AFTER_THE_PROLOG.replace(
                "@LOG@", shlex.quote(f"{options.run_folder}/{gatelog.NAME}")
            ).replace("@FREE@", str(round(100 * limits.free_seconds(options.budget)))),
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
    advice = f"""\
Write these lines into slurm.conf, then `scontrol reconfigure`:

Prolog={into}/prolog.sh
    checks the node before every job; status 1 drains it and requeues the job
PrologFlags=Alloc
    runs the Prolog when the job is allocated, not at its first step on the node
PrologEpilogTimeout=60
    the default is no limit; the script itself ends within {options.budget:g} s
SchedulerParameters=nohold_on_prolog_fail
    add it to yours: without it, a requeued job is held until someone releases it;
    with it the job runs on another node after about two minutes
HealthCheckProgram={into}/health.sh
HealthCheckInterval=300
HealthCheckNodeState=ANY
    drains faulty nodes, writes `dsdoctor: …` in place of `Prolog error`, and resumes a node that
    is healthy again if it drained it
TaskProlog={into}/task-prolog.sh
    optional: reports what is wrong with the allocation, and with the environment that the job
    selects (`DSDOCTOR_PYTHON`, `VIRTUAL_ENV`, `CONDA_PREFIX`), in the job's output

Every job passes while /etc/dsdoctor/disabled exists. Defaults of the hooks are in the table
[hook] of /etc/dsdoctor/config.toml: budget, max_age, dry_run, fail_closed, textfile, ignore.
"""
    if options.gpus is None:
        advice += (
            "Jobs that request no GPU from Slurm are checked without GPUs. If Slurm "
            "does not manage\n"
            "GPUs, install with `--gpus all`.\n"
        )
    return Plan({into / name: (w.render(), 0o755) for name, w in files.items()}, advice)


def _exports(options: InstallOptions) -> list[str]:
    """Lines that set the environment of scontrol."""
    lines = [f"export DSDOCTOR_SCONTROL={shlex.quote(options.scontrol)}"]
    if options.slurm_conf:
        usual = f"SLURM_CONF={shlex.quote(options.slurm_conf)}"
        lines.append(f'[ -n "${{SLURM_CONF-}}" ] || {usual}\nexport SLURM_CONF')
    return lines


#: Limits the time of a job's prolog and task prolog together (`limits.free_seconds`). It applies
#: within 60 s after the prolog, at the start of the job; later steps have the whole budget.
_AFTER_THE_PROLOG = r"""# If the prolog of this job has just given up on a driver or a disk that
# hangs, do not wait again; if it took long, this script is shorter: two scripts, one wait.
last=$(
  grep -F " event=end hook=slurm-prolog node=${SLURMD_NODENAME-} job=${SLURM_JOB_ID-} " \
    @LOG@ 2>/dev/null | tail -n 1
)
when=${last#time=}
when=${when%% *}
took=${last##* seconds=}
took=${took%% *}
case $when:$took in
  :* | *[!0-9:.]* | *.*.*) ;;
  *:[0-9]*.[0-9][0-9])
    now=$(date +%s)
    if [ $((now - when)) -le 60 ]; then
      case $last in
        *" cause=timeout "* | *" cause=nvml-slow "* | *" cause=hung "* | \
          *" cause=wrapper-timeout "*)
          echo "export DSDOCTOR_VERDICT=unknown"
          exit 0
          ;;
      esac
      took=${took%.*}${took#*.}
      took=${took#0} # or it would be octal
      spent=$((${took#0} - @FREE@))
      [ "$spent" -gt 0 ] || spent=0
    fi
    ;;
esac"""
#: Comment in a script that drains the node itself.
_CALLS_SCONTROL = "# --reason-from-prolog calls scontrol here, which Slurm's manual advises against"


def _epilog(options: InstallOptions) -> Plan:
    first = [_CALLS_SCONTROL, *_exports(options)] if options.reason_from_prolog else []
    chosen = ["--gpus", options.gpus] if options.gpus else []
    script = Wrapper(
        "slurm-epilog",
        options.python,
        options=(*chosen, *(["--reason-from-prolog"] if first else [])),
        budget=options.budget,
        run_folder=options.run_folder,
        fail_closed=options.fail_closed,
        first="\n".join(first),
        trust=options.trust,
    )
    path = options.into / "epilog.sh"
    advice = f"""\
Write these lines into slurm.conf, then `scontrol reconfigure`:

Epilog={path}
    checks the node after every job: processes that the job left on a GPU, memory errors and Xids
    while it ran, its files in /dev/shm; status 1 drains the node, the rest is only logged
PrologEpilogTimeout=60
    the default is no limit; the script itself ends within {options.budget:g} s

New errors are known only if the Prolog of `hook install slurm` runs as well. Its health program
writes `dsdoctor: …` in place of `Epilog error`.
Every job passes while /etc/dsdoctor/disabled exists.
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
    container uses the training image, which must contain dsdoctor, requests the same GPUs, and
    mounts the same /dev/shm

status 1 of the init container (the node is at fault): `Ignore`, the pod is retried, not counted
status 4 (the environment or the job is at fault): `FailJob`, another node would not help
an inconclusive check: status 0, the job starts
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
    dsdoctor that is missing or broken); allow it {options.budget + PATIENCE_SECONDS:g} s
"""
    return Plan({path: (_monitor("nagios", options), 0o755)}, advice)


def _npd(options: InstallOptions) -> Plan:
    script = options.into / "npd.sh"
    # longer than the script's own limit, so that the script can report its verdict
    timeout = f"{options.budget + PATIENCE_SECONDS:g}s"
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
