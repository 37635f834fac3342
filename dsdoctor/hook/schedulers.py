"""Scripts of the gate for PBS, LSF and Grid Engine, and what to put into their configuration.

Each is a `Wrapper` as for Slurm; PBS, whose prologue runs only on the first host, gets a hook too.

Exit statuses: TORQUE 4.1 administrator's guide, appendix G (the table that PBS has in common with
it); IBM Spectrum LSF 10.1, "Pre- and post-execution processing"; Grid Engine 6.1 user's guide,
"Consequences of Different Error or Exit Codes"; all read 2026-11.
"""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from dsdoctor.hook.wrapper import MARK, PATIENCE_SECONDS, Wrapper
from dsdoctor.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from dsdoctor.hook.install import InstallOptions

#: Target of `hook install` to its files, in the order in which they are written.
FILES = {
    "pbs": ("prologue.sh", "pbs_hook.py", "health.sh"),
    "lsf": ("pre-exec.sh",),
    "sge": ("prolog.sh",),
}

# PBS runs it in its own interpreter, which may be older than dsdoctor's.
_PBS_HOOK = """\
# @MARK@ (dsdoctor @VERSION@); `dsdoctor hook uninstall` removes it
# execjob_begin: rejects a job on a node with a confirmed fault, so that PBS requeues it. Whatever
# goes wrong in here lets the job pass.
import os
import subprocess

import pbs

BLOCKED = 2
#: Sets the node offline and online; empty = the administrator does that.
HEALTH = @HEALTH@


def judge_node():
    env = dict(os.environ, NODE_NAME=str(pbs.get_local_nodename()))
    with open(os.devnull, "r+") as null:
        subprocess.call([HEALTH], env=env, stdin=null, stdout=null, stderr=null, close_fds=True)


def decide(event):
    job = event.job
    env = dict(os.environ, PBS_JOBID=str(job.id))
    env.pop("CUDA_VISIBLE_DEVICES", None)
    # exec_vnode has the GPUs only where the scheduler's `resources:` names ngpus
    asked = "%s %s" % (job.exec_vnode, getattr(job, "schedselect", ""))
    if "ngpus=" not in asked:
        env["CUDA_VISIBLE_DEVICES"] = ""  # the job asks for no GPU, and none blocks it
    child = subprocess.Popen(
        [@SCRIPT@],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        close_fds=True,
    )
    said = child.communicate()[0].decode("utf-8", "replace").strip()
    return child.returncode, said.partition("\\n")[0]


found = pbs.event()
status, line = 0, ""
try:
    if HEALTH and found.type == pbs.EXECHOST_PERIODIC:
        judge_node()
    else:
        status, line = decide(found)
        if HEALTH and status == BLOCKED:
            judge_node()
except Exception as error:  # a bug here must not keep jobs from running
    pbs.logmsg(pbs.LOG_WARNING, "dsdoctor: hook passed the job: %s" % error)
if status == BLOCKED:
    pbs.logmsg(pbs.LOG_WARNING, line)
    found.reject(line)
found.accept()
"""


def script(kind: str, options: InstallOptions) -> str:
    """The shell script of one of these schedulers."""
    return Wrapper(
        kind,
        options.python,
        options=("--gpus", options.gpus) if options.gpus else (),
        budget=options.budget,
        run_folder=options.run_folder,
        fail_closed=options.fail_closed,
        first=_first(kind, fail_closed=options.fail_closed),
        trust=options.trust,
    ).render()


def _pbs_health(options: InstallOptions) -> str:
    """The script that sets a node offline and online, with twice the budget of a job's script."""
    return Wrapper(
        "pbs-health",
        options.python,
        budget=options.budget * 2,
        run_folder=options.run_folder,
        first=f"export DSDOCTOR_PBSNODES={shlex.quote(options.pbsnodes)}",
        trust=options.trust,
    ).render()


#: PBS passes the id of the job as the first argument.
_PBS_FIRST = '[ -n "${PBS_JOBID-}" ] || PBS_JOBID=${1-}\nexport PBS_JOBID'
#: Variables that root's script keeps, for schedulers that pass the environment of the job to it.
_KEPT = {
    "lsf-pre-exec": ("LSB_JOBID", "CUDA_VISIBLE_DEVICES"),
    "sge-prolog": ("JOB_ID", "SGE_HGR_gpu", "CUDA_VISIBLE_DEVICES"),
}
# `exec`, `exit` and `shift` are special built-ins, which no function of the job replaces
_OWN_ENVIRONMENT = """\
# the environment is that of the job: its libraries, settings and (bash) functions are not for root
case ${1-} in
  -) shift ;;
  *)
    { :; } </usr/bin/env || exit @ELSE@ # nothing that failed to start may answer with 127
    exec /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin @KEPT@ /bin/sh "$0" - "$@"
    ;;
esac"""


def _first(kind: str, *, fail_closed: bool) -> str:
    """The first lines of the script."""
    if kind not in _KEPT:
        return _PBS_FIRST if kind == "pbs-prologue" else ""
    kept = " ".join(f'"{name}=${{{name}-}}"' for name in _KEPT[kind])
    return _OWN_ENVIRONMENT.replace("@ELSE@", str(int(fail_closed))).replace("@KEPT@", kept)


def pbs(options: InstallOptions) -> tuple[dict[Path, tuple[str, int]], str]:
    """Files and advice for PBS Professional, OpenPBS and TORQUE."""
    into = options.into
    prologue, hook, health = (into / name for name in FILES["pbs"])
    text = _PBS_HOOK.replace("@MARK@", MARK).replace("@VERSION@", __version__)
    files = {
        prologue: (script("pbs-prologue", options), 0o755),
        hook: (
            text.replace("@SCRIPT@", repr(str(prologue))).replace(
                "@HEALTH@", repr(str(health)) if options.offline else '""'
            ),
            0o644,
        ),
    }
    if options.offline:
        files[health] = (_pbs_health(options), 0o755)
    # PBS's alarm rejects the job, so it must come later than the scripts' own limits
    limits = options.budget * (3 if options.offline else 1)
    alarm = max(30, int(limits + 4 * PATIENCE_SECONDS))
    events = "execjob_begin"
    node = """\
    a confirmed fault rejects the job, and PBS requeues it; the node stays in service, so set it
    offline: pbsnodes -o NODE -C "dsdoctor", or install with --offline"""
    if options.offline:
        # PBS requires quotes around a list of events
        events = "'execjob_begin,exechost_periodic'"
        node = f"""\
qmgr -c "set hook dsdoctor freq=300"
    a confirmed fault rejects the job, and PBS requeues it; every 5 minutes, and after a rejection,
    {health}
    sets the node offline with a comment that begins with "dsdoctor:", or online again if such a
    node is healthy; root of the nodes must be a PBS manager or operator:
    qmgr -c "set server operators += root@NODE"\
"""
    advice = f"""\
PBS Professional, OpenPBS: a hook checks each node of a job before it begins

qmgr -c "create hook dsdoctor event={events},alarm={alarm}"
qmgr -c "import hook dsdoctor application/x-python default {hook}"
{node}

TORQUE, or PBS without hooks: the first node of a job only

cp {prologue} PBS_HOME/mom_priv/prologue
    status 0 the job runs, 2 it is requeued; never 1, for which PBS deletes the job

Every job passes while /etc/dsdoctor/disabled exists.
"""
    return files, advice


def lsf(options: InstallOptions) -> tuple[dict[Path, tuple[str, int]], str]:
    """Files and advice for LSF."""
    (path,) = (options.into / name for name in FILES["lsf"])
    advice = f"""\
HOST_PRE_EXEC={path}
    in lsb.queues, or in lsb.applications: checks each host of a job before it starts, within
    {options.budget:g} s; PRE_EXEC checks the first host only
PREEXEC_EXCLUDE_HOST_EXIT_VALUES=1
    in lsb.params: a job that was refused by a host does not return to it
LSB_PRE_POST_EXEC_USER=root
    in lsf.sudoers: the verdict is kept in {options.run_folder}, which only root may write;
    otherwise every job passes without a verdict

status 0: the job starts; 1: it waits, and LSF retries it; never 99, which ends the job.
A host that refuses jobs stays open: close it with `badmin hclose -C dsdoctor HOST`.
Every job passes while /etc/dsdoctor/disabled exists.
"""
    return {path: (script("lsf-pre-exec", options), 0o755)}, advice + _no_gpus(options)


def sge(options: InstallOptions) -> tuple[dict[Path, tuple[str, int]], str]:
    """Files and advice for Grid Engine."""
    (path,) = (options.into / name for name in FILES["sge"])
    advice = f"""\
qconf -mattr queue prolog root@{path} QUEUE
    checks the first host of a job before it starts; as root, because the verdict is kept in
    {options.run_folder}

status 0: the job starts; 1: the queue instance of this host is set to the error state, and the job
runs elsewhere; never 99, which requeues the job and leaves the host in service.
When the fault is gone: qmod -cq QUEUE@HOST
Every job passes while /etc/dsdoctor/disabled exists.
"""
    return {path: (script("sge-prolog", options), 0o755)}, advice + _no_gpus(options)


def _no_gpus(options: InstallOptions) -> str:
    if options.gpus is not None:
        return ""
    return textwrap.dedent("""\
        Jobs to which the scheduler assigns no GPU are checked without GPUs. If it does not manage
        GPUs, install with `--gpus all`.
        """)
