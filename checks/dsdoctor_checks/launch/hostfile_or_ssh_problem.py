"""The hostfile is invalid or missing, or a host cannot be reached.

## Why it matters
The deepspeed launcher stops at a line that is not `HOST slots=N`, at a host that is listed twice and
at a file without hosts. If the hostfile does not exist, for example because of a typo, the launcher
only warns and runs the job on this node. It tests ssh only to the first host. If another host cannot
be reached, the ranks wait until they time out.

## What to do
Write one line for each host: `HOST slots=N`, where N is its number of GPUs. Comments begin with `#`.
Make `ssh -o PasswordAuthentication=no HOST hostname` succeed for every host.

## References
deepspeed/launcher/runner.py (`fetch_hostfile`, `_parse_hostfile`, `parse_resource_filter`)
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    Network,
    NodeReach,
    NodesReach,
    Observation,
    OsInfo,
    RunNeeds,
    Scope,
    Status,
    TracebackRule,
    Why,
    check,
    fail,
    ok,
    skip,
    warn,
    without_fix,
)

from . import _hostfile_or_ssh_problem_signatures

CONDITION = Condition(
    "hostfile-or-ssh-problem",
    id="DSD1201",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-hostfile",),
    names=(Observation.WRONG_RANKS,),
)


@check(CONDITION)
def hostfile_is_sound(
    hostfile: Hostfile | Missing,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
    nodes: NodesReach | Missing,
    run: RunNeeds,
    network: Network | Missing,
) -> Iterator[Finding]:
    """Fails on lines that the launcher rejects or ignores, and on unreachable hosts."""
    own = _own_names(os, network)
    if isinstance(hostfile, Missing):
        nodes_asked = command.num_nodes or 0 if isinstance(command, LaunchCommand) else 0
        if hostfile.why is Why.ABSENT and nodes_asked > 1 and _starts_deepspeed(command):
            yield without_fix(_no_hostfile(nodes_asked))
        else:
            unread = skip(hostfile.detail, fact=Hostfile.key(), why=hostfile.why.value)
            status = Status.UNKNOWN if hostfile.is_unknown else Status.SKIP
            yield msgspec.structs.replace(unread, status=status)
        return
    # the fix corrects lines; hosts, programs and numbers of slots are the reader's to change
    correctable = bool(hostfile.problems) and all(problem.line for problem in hostfile.problems)
    for finding in _troubles(hostfile, command, gpus, own, nodes, run):
        bad = finding.status in (Status.WARN, Status.FAIL)
        yield without_fix(finding) if bad and not correctable else finding


def _starts_deepspeed(command: LaunchCommand | Missing) -> bool:
    """On this host: under srun, its options count nodes for another launcher."""
    return isinstance(command, LaunchCommand) and command.launcher == "deepspeed"


def _no_hostfile(nodes: int) -> Finding:
    return fail(
        f"`--num_nodes {nodes}` is passed without a hostfile, from which deepspeed takes the nodes",
        effect="the launcher stops with `Num nodes is >1 but no extra nodes available via hostfile`",
        hint="pass `--hostfile FILE`, with one line `HOST slots=N` for each node",
        nodes=nodes,
    )


def _troubles(
    hostfile: Hostfile,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    own: set[str],
    nodes: NodesReach | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    if (
        not hostfile.asked
        and isinstance(command, LaunchCommand)
        and "deepspeed" not in {command.launcher, command.inner}
    ):
        return  # only deepspeed reads the default hostfile
    if not hostfile.exists:
        yield fail(
            f"the hostfile `{hostfile.path}` does not exist",
            effect="the launcher only warns, and the job runs on this node only",
            hint="correct the path; it is relative to the directory where the job starts",
            path=hostfile.path,
        )
        return
    for problem in hostfile.problems:
        yield fail(
            f"line {problem.line} of `{hostfile.path}`, `{problem.text}`, is rejected: {problem.reason}"
            if problem.line
            else f"`{hostfile.path}` is rejected: {problem.reason}",
            effect="the launcher stops with `ValueError` before anything starts",
            hint=_line_hint(problem.line, problem.reason),
            path=hostfile.path,
            line=problem.line,
            text=problem.text,
        )
    if hostfile.problems:
        return
    yield from _slots(hostfile, gpus, own)
    others = [entry.host for entry in hostfile.entries if entry.host not in own]
    if isinstance(nodes, Missing) and run.quick and hostfile.asked and others:
        yield skip(
            f"the lines of `{hostfile.path}` are valid, but the names and SSH logins of its"
            f" other hosts ({len(others)}) were not checked (`--quick`)",
            hosts=len(others),
        )
    if isinstance(nodes, NodesReach):
        yield from _tools(nodes, hostfile, command)
        for node in nodes.nodes:
            yield from _reach(node, hostfile)
        if nodes.untried:
            yield skip(
                f"the names and SSH logins of {nodes.untried} of the {len(hostfile.entries)} hosts of"
                f" `{hostfile.path}` were not checked, because it lists more than"
                f" {len(hostfile.entries) - nodes.untried}",
                hosts=nodes.untried,
                listed=len(hostfile.entries),
                checked=len(hostfile.entries) - nodes.untried,
            )
    # of the lines: a fix that corrects them is proven, though the hosts were not tried
    yield ok(hosts=len(hostfile.entries), slots=hostfile.slots)


def _line_hint(line: int, reason: str) -> str:
    """What to write instead of a line that is rejected; 0 is the whole file."""
    if not line:
        return "write one line `HOST slots=N` for each host"
    if "is already on line" in reason:
        return f"delete line {line}, or write another host there"
    return f"write `HOST slots=N` on line {line}"


def _slots(hostfile: Hostfile, gpus: Gpus | Missing, own: set[str]) -> Iterator[Finding]:
    """Compares this node's slots with its GPUs, except with MIG, where each slice is a device."""
    if not isinstance(gpus, Gpus) or not gpus.gpus or any(gpu.mig_devices for gpu in gpus.gpus):
        return
    have = gpus.count or len(gpus.gpus)
    for entry in hostfile.entries:
        if entry.host in own and entry.slots > have:
            yield fail(
                f"line {entry.line} of `{hostfile.path}` sets {entry.slots} slots for"
                f" `{entry.host}`, but this node has {have} GPUs",
                effect=f"ranks from {have} on stop with `invalid device ordinal`",
                hint=f"change the line to `{entry.host} slots={have}`",
                line=entry.line,
                slots=entry.slots,
                gpus=have,
            )


def _own_names(os: OsInfo | Missing, network: Network | Missing) -> set[str]:
    """What this node may be called in its hostfile: its names and addresses."""
    names = {"localhost", "127.0.0.1", "::1"}
    if isinstance(os, OsInfo):
        names |= {os.hostname, os.hostname.split(".")[0]}
    if isinstance(network, Network):
        names.update(*(interface.addresses or () for interface in network.interfaces))
    return names


#: What the launcher looks for on PATH before it starts other nodes (deepspeed 0.19.8
#: launcher/multinode_runner.py, `backend_exists`), by `--launcher`.
_BACKENDS = {
    "openmpi": "ompi_info",
    "mpich": "mpirun",
    "impi": "mpirun",
    "mvapich": "mpiname",
    "slurm": "sinfo",
}


def _tools(
    nodes: NodesReach, hostfile: Hostfile, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """`pdsh`, which the launcher uses by default to start the other nodes."""
    others = [node for node in nodes.nodes if not node.local]
    by = "deepspeed"
    kind = "pdsh"
    if isinstance(command, LaunchCommand):
        by = command.inner or command.launcher
        kind = command.options.get("launcher", "pdsh").lower()
    if by != "deepspeed" or not others or "no_ssh" in _options(command):
        return
    needed = ("ssh", "pdsh") if kind == "pdsh" else (_BACKENDS.get(kind),)
    for tool in nodes.lacking:
        if tool not in needed:
            continue
        yield fail(
            f"`{tool}` is not on PATH, but the deepspeed launcher needs it to start the"
            f" {len(hostfile.entries)} hosts of `{hostfile.path}`",
            effect="the launcher stops before anything starts",
            hint=_install(tool, kind),
            tool=tool,
            hosts=len(hostfile.entries),
        )


def _install(tool: str, kind: str) -> str:
    """How to get a program that the launcher needs."""
    if tool == "pdsh":
        return "install `pdsh`, or use `--launcher openmpi` or `--launcher slurm`"
    if tool == "ssh":
        return "install `ssh`"
    if kind == "slurm":
        return f"put Slurm's `{tool}` on PATH, or start with `--launcher pdsh`"
    return f"install {kind} and put its `mpirun` and `{tool}` on PATH, or use `--launcher pdsh`"


def _options(command: LaunchCommand | Missing) -> dict[str, str]:
    return command.options if isinstance(command, LaunchCommand) else {}


def _reach(node: NodeReach, hostfile: Hostfile) -> Iterator[Finding]:
    """Why the launcher cannot start ranks on a host."""
    line = next((entry.line for entry in hostfile.entries if entry.host == node.host), None)
    if node.ssh is False and node.local:
        why = "ssh timed out" if node.timed_out else node.error
        yield fail(
            f"`{node.host}`, line {line} of `{hostfile.path}`, is this node and rejects passwordless SSH,"
            f" which the deepspeed launcher tries with a hostfile: {why}",
            effect=f"the launcher stops with `host={node.host} was not reachable via ssh`",
            hint="leave out the hostfile on a single node; for several nodes, make"
            f" `ssh -o PasswordAuthentication=no {node.host} hostname` succeed",
            host=node.host,
            line=line,
            error=node.error,
            timed_out=node.timed_out,
        )
    elif node.ssh is False and not node.addresses:
        yield fail(
            f"`{node.host}`, line {line} of `{hostfile.path}`, does not resolve to an address",
            effect="the launcher cannot start its ranks, and the other ranks wait for them",
            hint=f"correct the name, or add it to DNS or /etc/hosts, until `getent hosts {node.host}`"
            " prints an address",
            host=node.host,
            line=line,
            error=node.error,
        )
    elif node.ssh is False:
        why = "ssh timed out" if node.timed_out else node.error
        yield fail(
            f"`{node.host}`, line {line} of `{hostfile.path}`, rejects passwordless SSH: {why}",
            effect="the launcher cannot start its ranks, and the other ranks wait for them",
            hint=f"make `ssh -o PasswordAuthentication=no {node.host} hostname` succeed",
            host=node.host,
            line=line,
            error=node.error,
            timed_out=node.timed_out,
            addresses=list(node.addresses),
        )
    elif node.python is False:
        yield warn(
            f"`{node.host}` has no Python interpreter at the path used on this node, but the deepspeed"
            " launcher uses the same path on every node",
            effect="ranks on that node fail with `No such file or directory`",
            hint="install the environment at the same path on every node, or on a shared file system",
            host=node.host,
            line=line,
        )


HINT = (
    "make `ssh -o PasswordAuthentication=no HOST hostname` succeed for every host of the hostfile"
)


TRACEBACK_RULES = (
    TracebackRule(
        file="deepspeed/launcher/runner.py",
        function="_parse_hostfile",
        kinds=("ValueError",),
        source="deepspeed 0.9-0.19 launcher/runner.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/launcher/runner.py", line 7, in _parse_hostfile\nValueError: x',
    ),
    TracebackRule(
        file="deepspeed/launcher/runner.py",
        function="parse_resource_filter",
        kinds=("ValueError",),
        source="deepspeed 0.9-0.19 launcher/runner.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/launcher/runner.py", line 7, in parse_resource_filter\nValueError: x',
    ),
)

SIGNATURES = _hostfile_or_ssh_problem_signatures.SIGNATURES
