"""Whether the configuration of PBS, LSF or Grid Engine still refers to a script of the gate.

The scheduler's own commands are tried first; if they do not answer, its files are read. If neither
exists on this machine, nothing is known, and nothing is refused. For Slurm, see `site`.

Commands and files: OpenPBS 23.06 (qmgr(8B), pbs.conf(8)), IBM Spectrum LSF 10.1 command and
configuration references, Grid Engine's qconf(1) and sge_conf(5); read 2026-11.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.hook.wrapper import MARK
from dsdoctor.host.account import own_tool

SECONDS = 5.0
#: How many queues or hooks are examined, each with a command of its own.
_MANY = 200
#: What happens without the script, and what the administrator must do first.
_FIRST = {
    "pbs": (
        "each job then passes without a check",
        'delete the hook (`qmgr -c "delete hook NAME"`) or remove the prologue',
    ),
    "lsf": (
        "no job starts without it",
        "remove these lines and run `badmin reconfig`",
    ),
    "sge": (
        "every queue instance enters the error state without it",
        "set the parameter to NONE (`qconf -mattr queue prolog NONE QUEUE`)",
    ),
}


def refuse_if_used(target: str, folder: Path) -> None:
    """Refuses to remove scripts that a scheduler would still call.

    Args:
        target: `pbs`, `lsf` or `sge`.
        folder: of the scripts.

    Raises:
        UsageError: its configuration refers to a file in the folder.
    """
    asked = {"pbs": _ask_pbs, "lsf": _ask_lsf, "sge": _ask_sge}[target](folder)
    used = asked
    if used is None:
        used = sorted({"pbs": _pbs_files, "lsf": _lsf_files, "sge": _sge_files}[target](folder))
    if used:
        effect, action = _FIRST[target]
        raise UsageError(
            f"{', '.join(used)} still {'refers' if len(used) == 1 else 'refer'} to `{folder}`, and "
            f"{effect}; {action}, then uninstall"
        )


def parameters_with(text: str, folder: Path) -> list[str]:
    """First words of the lines that refer to a file in a folder; comments do not count.

    >>> parameters_with("prolog  root@/etc/sge/prolog.sh", Path("/etc/sge"))
    ['prolog']
    >>> parameters_with("# prolog root@/etc/sge/prolog.sh", Path("/etc/sge"))
    []
    """
    place = str(folder.absolute()).rstrip("/") + "/"
    found = []
    for line in text.splitlines():
        if place in line.partition("#")[0]:
            word = re.match(r"\s*([A-Za-z_]+)", line)
            found.append(word[1] if word else place)
    return found


def _run(program: str, *words: str) -> str | None:
    """The output of a command; None if it does not exist or failed."""
    path = os.environ.get("PATH") or "/usr/sbin:/usr/bin:/sbin:/bin"
    found = own_tool(program, path=path)
    if found is None:
        return None
    try:
        done = process.run([found, *words], timeout=SECONDS, env={**os.environ, "PATH": path})
    except OSError:
        return None
    return done.text if done.ok else None


# ---- PBS


def _ask_pbs(folder: Path) -> list[str] | None:
    """Hooks whose script calls the gate's, and prologues, which `qmgr` does not list."""
    listed = _run("qmgr", "-c", "list hook")
    if listed is None:
        return None
    used = sorted(_prologues())
    for name in re.findall(r"(?m)^Hook (\S+)", listed)[:_MANY]:
        script = _run("qmgr", "-c", f"export hook {name} application/x-python default")
        if script is not None and _calls(script, folder):
            used.append(f"hook {name}")
    return used


def _calls(script: str, folder: Path) -> bool:
    return f"{str(folder.absolute()).rstrip('/')}/" in script


def _homes() -> Iterator[Path]:
    """PBS_HOME from OpenPBS' pbs.conf, and the default folders of PBS and TORQUE."""
    conf = Path(os.environ.get("PBS_CONF_FILE") or "/etc/pbs.conf")
    for line in _lines(conf):
        name, _, value = line.partition("=")
        if name.strip() == "PBS_HOME":
            yield Path(value.strip())
    yield Path("/var/spool/pbs")
    yield Path("/var/spool/torque")


def _prologues() -> set[str]:
    """Prologues that are a link to the gate's script, or a copy of it."""
    found = set()
    for home in _homes():
        path = home / "mom_priv" / "prologue"
        if any(MARK in line for line in _lines(path)[:5]):
            found.add(f"`{path}`")
    return found


def _pbs_files(folder: Path) -> Iterator[str]:
    yield from _prologues()
    for home in _homes():
        for place in ("server_priv", "mom_priv"):
            for path in sorted((home / place / "hooks").glob("*.PY")):
                if _calls("\n".join(_lines(path)), folder):
                    yield f"`{path}`"


# ---- LSF


def _ask_lsf(folder: Path) -> list[str] | None:
    answers = [(name, _run(name, "-l")) for name in ("bqueues", "bapp")]
    if all(text is None for _, text in answers):
        return None
    return [
        f"{word} (`{name} -l`)"
        for name, text in answers
        for word in sorted(set(parameters_with(text or "", folder)))
    ]


def _lsf_files(folder: Path) -> Iterator[str]:
    conf = Path(os.environ.get("LSF_ENVDIR") or "/etc") / "lsf.conf"
    for line in _lines(conf):
        name, _, value = line.partition("=")
        if name.strip() != "LSB_CONFDIR":
            continue
        place = Path(value.strip().strip('"'))
        for kind in ("lsb.queues", "lsb.applications"):
            for path in sorted(place.glob(f"*/configdir/{kind}")):
                for word in parameters_with("\n".join(_lines(path)), folder):
                    yield f"{word} (`{path}`)"


# ---- Grid Engine


def _ask_sge(folder: Path) -> list[str] | None:
    listed = _run("qconf", "-sql")
    if listed is None:
        return None
    text = _run("qconf", "-sconf") or ""
    used = [f"{word} (`qconf -sconf`)" for word in parameters_with(text, folder)]
    for queue in listed.split()[:_MANY]:
        text = _run("qconf", "-sq", queue) or ""
        used += [f"{word} of queue {queue}" for word in parameters_with(text, folder)]
    return used


def _sge_files(folder: Path) -> Iterator[str]:
    root = os.environ.get("SGE_ROOT")
    if not root:
        return
    cell = Path(root) / (os.environ.get("SGE_CELL") or "default")
    files = [cell / "common" / "configuration"]
    files += sorted((cell / "spool" / "qmaster" / "cqueues").glob("*"))
    for path in files:
        for word in parameters_with("\n".join(_lines(path)), folder):
            yield f"{word} (`{path}`)"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
