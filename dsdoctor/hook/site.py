"""Tests for `hook install` whether its scripts will work on this machine. It changes nothing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.probes.storage import mount_of, parse_mounts
from dsdoctor.safe_path import is_root

#: An account that owns nothing, in place of a job's user, as whom the task prolog runs.
NOBODY = 65534
#: File systems that several nodes share.
SHARED = frozenset(
    (
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3"),
        *("wekafs", "9p", "panfs", "orangefs", "pvfs2", "fuse.sshfs"),
    )
)
#: Importing dsdoctor from a cold network disk is slow.
IMPORT_SECONDS = 30.0
SCONTROL_SECONDS = 5.0
#: The releases of Slurm that tests/slurm was run with.
TESTED = "22.05 and 26.05"
SHELL_SECONDS = 5.0
#: PATH of the scripts.
SCRIPT_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SHELL = "/bin/sh"
#: Whether a shell creates process groups without a terminal: bash does, dash and busybox do not.
_JOB_CONTROL = "set -m 2>/dev/null; case $- in *m*) exit 0 ;; esac; exit 1"


def require_process_groups() -> None:
    """Makes sure that a script can start an interpreter in its own process group, to end it.

    Raises:
        UsageError: no tool here can do that; the script would start nothing and pass each job.
    """
    if any(shutil.which(tool, path=SCRIPT_PATH) for tool in ("setsid", "perl")):
        return
    try:
        if process.run([SHELL, "-c", _JOB_CONTROL], timeout=SHELL_SECONDS, cwd="/").ok:
            return
    except OSError:
        pass
    raise UsageError(
        f"`setsid` is not in {SCRIPT_PATH}, so a hook could not end an interpreter that hangs; "
        "install util-linux"
    )


def usable_by_users(python: str) -> str:
    """Why an account other than root cannot start dsdoctor; empty if it can.

    Raises:
        UsageError: no account can start it.
    """
    probe = [python, "-I", "-c", "import dsdoctor.hook.entry"]
    if not _starts(probe, None):
        raise UsageError(
            f"`{python}` cannot import dsdoctor; pass `--python` the interpreter of the "
            "environment in which dsdoctor is installed"
        )
    if not is_root():
        return ""
    nobody = process.Account(NOBODY, NOBODY, (), "/", "nobody")
    if _starts(probe, nobody):
        return ""
    closed = next((p for p in [*reversed(Path(python).parents)] if not _others_enter(p)), None)
    why = f"`{closed}` is closed to others" if closed else "it cannot import dsdoctor as `nobody`"
    return (
        f"only root can run `{python}` ({why}); the task prolog runs as the job's user and will "
        "report nothing. Install dsdoctor where every user can read it, for example in /opt"
    )


def _starts(argv: list[str], account: process.Account | None) -> bool:
    try:
        return process.run(argv, timeout=IMPORT_SECONDS, cwd="/", account=account).ok
    except OSError:
        return False


def _others_enter(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o001)
    except OSError:
        return False


def shared(path: str | Path) -> str:
    """Type of the network file system that a path is on; empty for a local one."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = mount_of(os.path.realpath(path), parse_mounts(text))
    return found.kind if found is not None and found.kind in SHARED else ""


def places(into: Path, python: str, run_folder: str) -> list[str]:
    """Notes about the file systems of scripts, interpreter and run folder.

    Raises:
        UsageError: the run folder is on a shared file system, so that nodes would share verdicts.
    """
    kind = shared(run_folder)
    if kind:
        raise UsageError(
            f"`--run-folder {run_folder}` is on a shared file system ({kind}), but each node needs "
            "one of its own; expected a local one such as /run/dsdoctor"
        )
    notes = []
    for what, path in (("the scripts", str(into)), ("the interpreter", python)):
        kind = shared(path)
        if kind:
            notes.append(
                f"{what} are on a shared file system ({path}, {kind}): while it hangs, each prolog "
                "waits until Slurm's PrologEpilogTimeout ends it, and the node drains"
                if what == "the scripts"
                else f"{what} is on a shared file system ({path}, {kind}): while it hangs, jobs "
                "pass without a verdict after the script's own limit"
            )
    return notes


def slurm_config(scontrol: str) -> dict[str, str]:
    """`scontrol show config` as names and values; empty if Slurm does not answer.

    A value that is set several times, as `Prolog` may be, is a list separated by commas.
    """
    path = os.environ.get("PATH") or SCRIPT_PATH
    try:
        done = process.run(
            [scontrol, "show", "config"],
            timeout=SCONTROL_SECONDS,
            env={**os.environ, "PATH": path},
        )
    except OSError:
        return {}
    return parse_config(done.text) if done.ok else {}


def parse_config(text: str) -> dict[str, str]:
    r"""Names and values of `scontrol show config`.

    >>> parse_config("Configuration data as of x\nSLURM_VERSION           = 22.05.8\n")
    {'SLURM_VERSION': '22.05.8'}
    >>> parse_config("Prolog[0]               = /a.sh\nProlog[1]               = /b.sh\n")
    {'Prolog': '/a.sh,/b.sh'}
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition(" = ")
        if equals:
            plain = re.sub(r"\[\d+\]$", "", name.strip())
            found[plain] = ",".join(filter(None, (found.get(plain), value.strip())))
    return found


def slurm_notes(config: Mapping[str, str], budget: float, into: Path) -> list[str]:
    """How Slurm's parameters differ from what the gate needs (slurm.conf(5), 22.05 and 26.05).

    Args:
        config: what `slurm_config` returned.
        budget: seconds of the prolog.
        into: folder of the scripts.
    """
    if not config:
        return ["Slurm did not answer `scontrol show config`; its parameters were not tested"]
    notes = [f"Slurm {config.get('SLURM_VERSION', 'of unknown version')}; tested with {TESTED}"]
    flags = config.get("PrologFlags", "").lower().split(",")
    if not {"alloc", "contain"} & {flag.strip() for flag in flags}:
        notes.append("PrologFlags has no Alloc: nothing is judged before a job's first step")
    notes += _limits(
        config,
        budget,
        (
            ("PrologEpilogTimeout", "Slurm ends the prolog and drains the node"),
            ("BatchStartTimeout", "Slurm considers a batch job lost"),
            ("SlurmdTimeout", "Slurm sets the node down"),
        ),
        "prolog",
    )
    states = config.get("HealthCheckNodeState", "").upper()
    if config.get("HealthCheckProgram", "(null)") != "(null)" and "ANY" not in states:
        notes.append(f"HealthCheckNodeState is {states}: drained nodes are not resumed; set ANY")
    if config.get("RebootProgram", "(null)") in ("(null)", ""):
        notes.append("RebootProgram is not set: `scontrol reboot` cannot restart a faulty node")
    words = config.get("SchedulerParameters", "")
    if "nohold_on_prolog_fail" not in words:
        yours = f"{words}," if words not in ("", "(null)") else ""
        notes.append(
            "SchedulerParameters has no nohold_on_prolog_fail: requeued jobs are held; write "
            f"`SchedulerParameters={yours}nohold_on_prolog_fail`"
        )
    return notes + _programs_in_the_way(
        config, into, ("Prolog", "HealthCheckProgram", "TaskProlog")
    )


#: Parameter of Slurm to the script of `hook install` that it must refer to.
_SCRIPTS = {
    "Prolog": "prolog.sh",
    "HealthCheckProgram": "health.sh",
    "TaskProlog": "task-prolog.sh",
    "Epilog": "epilog.sh",
}


#: Slurm drains the node if one of these fails.
_DECIDING = ("Prolog", "Epilog")


def _programs_in_the_way(
    config: Mapping[str, str], into: Path, names: tuple[str, ...]
) -> list[str]:
    """Programs of the site that the lines for slurm.conf would replace."""
    ours = named_by_slurm(config, into)
    notes = []
    for name in names:
        value = config.get(name, "(null)")
        script = into.absolute() / _SCRIPTS[name]
        if value in ("(null)", "") or name in ours:
            continue
        what = (
            f"run `ln -s {script} {value.removesuffix('*')}`"  # each script there decides
            if value.endswith("/*")
            else f"call `{script}{' || exit 1' * (name in _DECIDING)}` in it"
        )
        notes.append(f"{name} is already `{value}`: keep it, and {what}")
    return notes


def epilog_notes(config: Mapping[str, str], budget: float, into: Path) -> list[str]:
    """The same for an epilog."""
    if not config:
        return ["Slurm did not answer `scontrol show config`; its parameters were not tested"]
    limit = (("PrologEpilogTimeout", "Slurm ends the epilog and drains the node"),)
    notes = _limits(config, budget, limit, "epilog")
    if config.get("Prolog", "(null)") in ("(null)", ""):
        notes.append(
            "Prolog is not set: without the counts that the prolog records, new "
            "errors are not known"
        )
    return notes + _programs_in_the_way(config, into, ("Epilog",))


def _limits(
    config: Mapping[str, str], budget: float, names: tuple[tuple[str, str], ...], script: str
) -> list[str]:
    """Notes on timeouts of Slurm that are too short for a script, or not set."""
    notes = []
    for name, what in names:
        seconds = _seconds(config.get(name, ""))
        if seconds is not None and 0 < seconds <= budget:
            notes.append(
                f"{name} is {seconds:g} s, but the script may take {budget:g} s: {what} first"
            )
    if _seconds(config.get("PrologEpilogTimeout", "")) in (None, 65534):
        notes.append(f"PrologEpilogTimeout is not set: no limit ends the {script}")
    return notes


def _seconds(text: str) -> float | None:
    found = re.match(r"(\d+)(?: sec)?$", text.strip())
    return float(found[1]) if found else None


def named_by_slurm(config: Mapping[str, str], into: Path) -> list[str]:
    """Parameters of Slurm that refer to a file in a folder, by themselves or by a link.

    >>> named_by_slurm({"Prolog": "/etc/slurm/dsdoctor/prolog.sh"}, Path("/etc/slurm/dsdoctor"))
    ['Prolog']
    """
    folder = str(into.absolute()).rstrip("/") + "/"
    return sorted(
        name
        for name, value in config.items()
        if folder in f"{value}/"
        or (name in _SCRIPTS and value.endswith("/*") and _is_linked(value, into))
    )


def _is_linked(pattern: str, into: Path) -> bool:
    """Whether a folder of scripts, given as `/etc/slurm/prolog.d/*`, has a link to one of ours."""
    try:
        scripts = list(Path(pattern).parent.iterdir())
    except OSError:
        return False
    return any(path.is_symlink() and path.resolve().parent == into.resolve() for path in scripts)


def refuse_if_used(scontrol: str, into: Path) -> None:
    """Refuses to remove scripts that Slurm would still call: a missing Prolog drains nodes.

    Raises:
        UsageError: Slurm's configuration refers to a file in the folder.
    """
    config = slurm_config(scontrol)
    used = named_by_slurm(config, into)
    source = "`scontrol show config`"
    if not config:
        file = Path(os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf")
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        rows = (line.partition("#")[0].partition("=") for line in lines)
        used = named_by_slurm({name.strip(): value.strip() for name, _, value in rows}, into)
        source = f"`{file}`"
    if used:
        raise UsageError(
            f"{source} still refers to `{into}` ({', '.join(used)}), and nodes drain without their "
            "Prolog; remove these lines from slurm.conf, run `scontrol reconfigure`, then uninstall"
        )
