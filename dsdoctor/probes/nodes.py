"""Tries the other nodes of the hostfile: name, passwordless login, clock."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import shlex
import time

from dsdoctor.api import Hostfile, LaunchCommand, Missing, OsInfo, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.network import NodeReach, NodesReach
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.redact import mask

#: Time limit of one login, and how many run in parallel.
SECONDS = 15.0
AT_ONCE = 16
#: More nodes than this are left to `fleet`.
MOST = 64
LOCAL = ("localhost", "127.0.0.1", "::1")
#: What the deepspeed launcher may need to start other nodes (0.19.8 launcher/multinode_runner.py).
TOOLS = ("ssh", "pdsh", "ompi_info", "mpirun", "mpiname", "sinfo")
#: Printed by the other node, so that a greeting of its shell is not mistaken for the answer.
MARK = "dsdoctor-node"
_ANSWER = re.compile(rf"{MARK} (\d+(?:\.\d+)?)\S* (yes|no)")


def command(python: str) -> str:
    """The command for the other node: prints its time and whether an interpreter exists.

    >>> command("/env/bin/python").startswith("echo dsdoctor-node $(date +%s.%N) ")
    True
    """
    there = f"$(test -x {shlex.quote(python)} && echo yes || echo no)"
    return f"echo {MARK} $(date +%s.%N) {there}"


def ssh_argv(ssh: str, host: str, python: str, port: str | None = None) -> list[str]:
    """The login, as the deepspeed launcher tries it, with its own time limit.

    >>> ssh_argv("ssh", "n1", "/p", "2222")[:3]
    ['ssh', '-o', 'PasswordAuthentication=no']
    """
    options = ["PasswordAuthentication=no", "BatchMode=yes", f"ConnectTimeout={SECONDS:.0f}"]
    argv = [ssh]
    for option in options:
        argv += ["-o", option]
    if port:
        argv += ["-p", port]
    # after `--` no host name can be mistaken for an option
    return [*argv, "--", host, command(python)]


def parse_answer(text: str) -> tuple[float, bool] | None:
    r"""Time of the other node, and whether the interpreter exists.

    >>> parse_answer("Welcome to n1\ndsdoctor-node 1760000000.5 yes\n")
    (1760000000.5, True)
    >>> parse_answer("Welcome to n1")
    """
    found = _ANSWER.search(text)
    return (float(found[1]), found[2] == "yes") if found else None


def resolve(host: Host, name: str) -> tuple[str, ...]:
    """Addresses of a name from the system's resolver; empty if it has none, itself if it is one."""
    with contextlib.suppress(ValueError):
        return (str(ipaddress.ip_address(name)),)
    getent = host.which("getent")
    if getent is None:
        raise HostError(Why.UNSUPPORTED, "`getent` is missing, so names cannot be resolved")
    result = host.run([getent, "ahosts", name], timeout=SECONDS)
    if result.timed_out:
        return ()
    return tuple(dict.fromkeys(line.split()[0] for line in result.text.splitlines() if line))


def _reach(
    host: Host,
    name: str,
    python: str,
    ssh: str | None,
    port: str | None,
    *,
    local: bool,
    tried: bool,
) -> NodeReach:
    if name.startswith("-"):
        return NodeReach(host=name, ssh=False, error="a host name does not begin with `-`")
    try:
        addresses = resolve(host, name.rpartition("@")[2])
    except HostError:
        addresses = ()
        known = False
    else:
        known = True
    if ssh is None or (local and not tried):
        return NodeReach(host=name, addresses=addresses, local=local)
    before = time.time()
    result = host.run(ssh_argv(ssh, name, python, port), timeout=SECONDS + 5.0)
    after = time.time()
    answer = parse_answer(result.text)
    if answer is None:
        words = mask(result.error_text) or f"exit status {result.returncode}"
        return NodeReach(
            host=name,
            addresses=addresses if known else ("?",),
            local=local,
            ssh=False,
            error=words,
            timed_out=result.timed_out,
        )
    theirs, python_there = answer
    return NodeReach(
        host=name,
        addresses=addresses,
        local=local,
        ssh=True,
        skew_s=round(theirs - min(max(theirs, before), after), 1),
        python=python_there,
    )


def _tries_first(command: LaunchCommand | Missing) -> bool:
    """Whether the launcher logs in to the first host, even to this one.

    deepspeed 0.8.3 to 0.19.8 launcher/runner.py, read 2026-11-30; a filter may make another host
    the first.
    """
    if not isinstance(command, LaunchCommand) or command.launcher != "deepspeed":
        return False
    return not command.options.keys() & {"no_ssh", "no_ssh_check", "include", "exclude"}


def _port(command: LaunchCommand | Missing) -> str | None:
    return command.options.get("ssh_port") if isinstance(command, LaunchCommand) else None


@probe
def nodes_reach(
    host: Host,
    hostfile: Hostfile,
    run: RunNeeds,
    os: OsInfo | Missing,
    launch: LaunchCommand | Missing,
    choice: PatientChoice | Missing,
) -> NodesReach:
    """All nodes in parallel, each with a time limit; only if a hostfile was given."""
    if run.quick:
        raise HostError(Why.NOT_ASKED, "the other nodes were not checked (`--quick`)")
    if not hostfile.asked or not hostfile.entries:
        raise HostError(Why.NOT_ASKED, "no hostfile was passed (`--hostfile FILE`)")
    own = {*LOCAL}
    if isinstance(os, OsInfo):
        own |= {os.hostname, os.hostname.partition(".")[0]}
    python = "/usr/bin/python3" if isinstance(choice, Missing) else str(choice.executable)
    names = [entry.host for entry in hostfile.entries][:MOST]
    ssh, port = host.which("ssh"), _port(launch)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only with a hostfile

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(
            lambda name: _reach(
                host,
                name,
                python,
                ssh,
                port,
                local=bool({name, name.partition(".")[0]} & own),
                tried=name == names[0] and _tries_first(launch),
            ),
            names,
        )
        nodes = tuple(found)
    return NodesReach(
        nodes=nodes,
        untried=len(hostfile.entries) - len(names),
        lacking=tuple(tool for tool in TOOLS if host.which(tool) is None),
    )
