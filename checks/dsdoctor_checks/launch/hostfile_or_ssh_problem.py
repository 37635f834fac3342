"""The hostfile is wrong, or is not there.

## Why it matters
The deepspeed launcher stops at a line that is not `HOST slots=N`, at a host that stands twice and
at a file without hosts. A hostfile that does not exist, by a typing error for instance, is worth
only a warning to it: the job then runs on this node alone. It tries ssh to the first host alone;
when another one cannot be reached, the ranks wait until their time is up.

## What to do
Write one line for each host, `HOST slots=N` with N the number of its GPUs. Remarks begin with `#`.
For every host `ssh -o PasswordAuthentication=no HOST hostname` must work.

## References
deepspeed/launcher/runner.py (`fetch_hostfile`, `_parse_hostfile`, `parse_resource_filter`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Missing,
    NodeReach,
    NodesReach,
    OsInfo,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)

CONDITION = Condition(
    "hostfile-or-ssh-problem",
    id="DSD1201",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-hostfile",),
)


@check(CONDITION)
def hostfile_is_sound(
    hostfile: Hostfile,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
    nodes: NodesReach | Missing,
) -> Iterator[Finding]:
    """Speaks of what the launcher refuses, of what it lets pass, and of hosts out of reach."""
    if (
        not hostfile.asked
        and isinstance(command, LaunchCommand)
        and "deepspeed" not in {command.launcher, command.inner}
    ):
        return  # the default place is deepspeed's alone
    if not hostfile.exists:
        yield fail(
            f"the hostfile `{hostfile.path}` does not exist",
            effect="the launcher only warns, and the job runs on this node alone",
            hint="give the path of the hostfile from the folder that the job starts in",
            path=hostfile.path,
        )
        return
    for problem in hostfile.problems:
        spot = f"line {problem.line} of `{hostfile.path}`, `{problem.text}`, is refused"
        yield fail(
            f"{spot if problem.line else f'`{hostfile.path}` is refused'}: {problem.reason}",
            effect="the launcher stops with `ValueError` before anything starts",
            hint=f"write `HOST slots=N` on line {problem.line}, each host once"
            if problem.line
            else "write one line `HOST slots=N` for each host",
            path=hostfile.path,
            line=problem.line,
            text=problem.text,
        )
    if hostfile.problems:
        return
    yield from _slots(hostfile, gpus, os)
    if isinstance(nodes, NodesReach):
        yield from _tools(nodes, hostfile, command)
        for node in nodes.nodes:
            yield from _reach(node, hostfile)
    yield ok(hosts=len(hostfile.entries), slots=hostfile.slots)


def _slots(hostfile: Hostfile, gpus: Gpus | Missing, os: OsInfo | Missing) -> Iterator[Finding]:
    """This node's slots against its GPUs; MIG slices count as devices, so then it says nothing."""
    if not isinstance(gpus, Gpus) or not gpus.gpus or any(gpu.mig_devices for gpu in gpus.gpus):
        return
    names = {"localhost"}
    if isinstance(os, OsInfo):
        names |= {os.hostname, os.hostname.split(".")[0]}
    have = gpus.count or len(gpus.gpus)
    for entry in hostfile.entries:
        if entry.host in names and entry.slots > have:
            yield fail(
                f"line {entry.line} of `{hostfile.path}` gives {entry.slots} slots to"
                f" `{entry.host}`, but this node has {have} GPUs",
                effect="the ranks above stop with `invalid device ordinal`",
                hint=f"write `{entry.host} slots={have}`",
                line=entry.line,
                slots=entry.slots,
                gpus=have,
            )


def _tools(
    nodes: NodesReach, hostfile: Hostfile, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """`pdsh`, with which the launcher starts the other nodes unless it is told otherwise."""
    others = [node for node in nodes.nodes if not node.local]
    by = "deepspeed"
    kind = "pdsh"
    if isinstance(command, LaunchCommand):
        by = command.inner or command.launcher
        kind = command.options.get("launcher", "pdsh").lower()
    if by != "deepspeed" or kind != "pdsh" or not others or "no_ssh" in _options(command):
        return
    for tool in nodes.lacking:
        yield fail(
            f"`{tool}` is not on PATH, but the deepspeed launcher starts the "
            f"{len(hostfile.entries)} hosts of `{hostfile.path}` with it",
            effect="the launcher stops before anything starts",
            hint=f"install `{tool}`"
            + (", or choose `--launcher openmpi` or `slurm`" if tool == "pdsh" else ""),
            tool=tool,
            hosts=len(hostfile.entries),
        )


def _options(command: LaunchCommand | Missing) -> dict[str, str]:
    return command.options if isinstance(command, LaunchCommand) else {}


def _reach(node: NodeReach, hostfile: Hostfile) -> Iterator[Finding]:
    """What keeps the launcher from a host: its name, or the log-in."""
    line = next((entry.line for entry in hostfile.entries if entry.host == node.host), None)
    if node.ssh is False and not node.addresses:
        yield fail(
            f"`{node.host}`, line {line} of `{hostfile.path}`, has no address that this node knows",
            effect="the launcher does not reach it, and the other ranks wait for its own",
            hint=f"correct the name, or add it to DNS or /etc/hosts; try `getent hosts {node.host}`",
            host=node.host,
            line=line,
            error=node.error,
        )
    elif node.ssh is False:
        why = "ssh had not ended in time" if node.timed_out else node.error
        yield fail(
            f"`{node.host}`, line {line} of `{hostfile.path}`, lets nobody log in without a "
            f"password: {why}",
            effect="the launcher does not reach it, and the other ranks wait for its own",
            hint=f"mend `ssh -o PasswordAuthentication=no {node.host} hostname`",
            host=node.host,
            line=line,
            error=node.error,
            timed_out=node.timed_out,
            addresses=list(node.addresses),
        )
    elif node.python is False:
        yield warn(
            f"`{node.host}` has no interpreter where this node's is, but the deepspeed launcher "
            "starts the same path on every node",
            effect="the ranks of that node end in `No such file or directory`",
            hint="put the environment at the same path on every node, or on a shared file system",
            host=node.host,
            line=line,
        )


HINT = "run `ssh -o PasswordAuthentication=no HOST hostname` for every host of the hostfile and mend the one that fails"

SIGNATURES = (
    Signature(
        anchor=(
            "Hostfile contains",
            "Hostfile is empty",
            "not found in hostfile",
            "include_str and exclude_str",
            "was not reachable via ssh",
            "PasswordAuthentication=no",
            "PDSH_SSH_ARGS_APPEND",
            "launcher 'pdsh' not installed",
            "'hostname', '-I'",
            "hostname -I",
            "non-zero",
            "Hostfile is not",
        ),
        pattern=(
            r"Hostfile (?:contains|is empty|is not)|not found in hostfile"
            r"|include_str and exclude_str|was not reachable via ssh|PasswordAuthentication=no.{0,120}non-zero"
            r"|KeyError: 'PDSH_SSH_ARGS_APPEND'|launcher 'pdsh' not installed"
            r"|hostname'?,? '?-I.{0,40}non-zero"
        ),
        examples=(
            "ValueError: Hostfile contains a bad entry: x y",
            "RuntimeError: launcher 'pdsh' not installed.",
        ),
        not_examples=("hostname -I",),
        weight=66,
        masks=("permissions", "rendezvous-timeout"),
    ),
    Signature(
        anchor=(
            "Permission denied (",
            "Host key verification failed",
            "ssh: connect to host",
            "Could not resolve hostname",
            "REMOTE HOST IDENTIFICATION",
            "ssh exited with exit code",
            "ssh: command not found",
            "pdsh: command not found",
            "No such file or directory: 'pdsh'",
            "Connection closed by remote host",
        ),
        pattern=(
            r"Permission denied \((?:publickey|password|gssapi|keyboard)"
            r"|Host key verification failed|ssh: connect to host \S+ port"
            r"|ssh: Could not resolve hostname|REMOTE HOST IDENTIFICATION"
            r"|ssh exited with exit code (?:255|127)|(?:ssh|pdsh): command not found"
            r"|No such file or directory: 'pdsh'"
        ),
        examples=(
            "node-b: Permission denied (publickey).",
            "ssh: connect to host n2 port 22: Connection refused",
        ),
        not_examples=(
            "ssh: connected",
            "Permission denied (os error 13)",
        ),
        weight=64,
        masks=("permissions", "rendezvous-timeout"),
    ),
    Signature(
        anchor=("No slot '",),
        pattern=r"No slot '\d+' specified on host '(?!localhost)",
        examples=(
            "ValueError: No slot '5' specified on host 'node-a'",
            "ValueError: No slot '8' specified on host '10.0.0.7'",
        ),
        not_examples=("No slot '5' specified on host 'localhost'",),
        weight=60,
    ),
    Signature(
        anchor="IndexError: list index out of range",
        pattern=r"IndexError: list index out of range",
        examples=("IndexError: list index out of range", "    IndexError: list index out of range"),
        not_examples=("IndexError: tuple index out of range",),
        weight=50,
        near=("deepspeed/launcher/runner.py",),
    ),
    Signature(
        anchor="not enough values to unpack",
        pattern=r"not enough values to unpack",
        examples=(
            "ValueError: not enough values to unpack (expected 2, got 1)",
            "ValueError: not enough values to unpack (expected at least 2, got 1)",
        ),
        not_examples=("ValueError: too many values to unpack (expected 2)",),
        weight=50,
        near=("deepspeed/launcher/runner.py",),
    ),
    Signature(
        anchor=(
            "rcmd: socket",
            "no extra nodes available",
            "kex_exchange",
            "Bad owner or permissions",
            "mcmd:",
            "There are not enough slots",
            "ORTE was unable",
            "multiple entries for",
        ),
        pattern=(
            r"rcmd: socket: Permission denied|no extra nodes available via hostfile"
            r"|kex_exchange_identification: |Bad owner or permissions on \S*\.ssh"
            r"|mcmd: connect failed|There are not enough slots available"
            r"|ORTE was unable to reliably start|contains multiple entries for"
        ),
        examples=(
            "pdsh@head: n2: rcmd: socket: Permission denied",
            "ValueError: Num nodes is >1 but no extra nodes available via hostfile",
            "kex_exchange_identification: Connection closed by remote host",
        ),
        not_examples=("rcmd: socket opened",),
        weight=66,
        masks=("permissions", "rendezvous-timeout"),
    ),
    Signature(
        anchor=(
            "with include",
            "suitable master address",
            "worker include/exclusion",
            "limiting num nodes",
        ),
        pattern="Cannot specify num_nodes/gpus with include|Unable to detect suitable master address|does not support (?:worker include/exclusion|limiting num nodes)",
        examples=(
            "ValueError: Cannot specify num_nodes/gpus with include/exclude",
            "RuntimeError: Unable to detect suitable master address via `hostname -I`, please manually specify one via --master_addr",
        ),
        not_examples=("choose nodes with include/exclude",),
        weight=56,
    ),
    Signature(
        anchor=(
            "pdsh@",
            "UNPROTECTED PRIVATE KEY",
            "bad permissions",
            "Too many authentication failures",
            "ssh: not found",
            "No such file or directory: 'ssh'",
            "is already defined",
            "any pdsh modules",
        ),
        pattern=r"^pdsh@\S+ (?:\S+: )?(?:connect: |mcmd|module path .{0,120}insecure|Couldn't load any|gethostbyname|rcmd)|UNPROTECTED PRIVATE KEY FILE|Load key .{0,120}bad permissions|Too many authentication failures|\bssh: not found|No such file or directory: 'ssh'|Error: host \S+ is already defined",
        examples=(
            "pdsh@head: n1: connect: Connection refused",
            "@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @",
            "FileNotFoundError: [Errno 2] No such file or directory: 'ssh'",
        ),
        not_examples=("pdsh@head: n1: 8 ranks done", "the owner of n1 is already defined"),
        weight=62,
        masks=("permissions", "rendezvous-timeout"),
    ),
    Signature(
        anchor=("only able to place", "Only able to place"),
        pattern=r"Only able to place \d+ replicas?, but \d+",
        examples=(
            "ValueError: Only able to place 1 replicas, but 2 replicas were requested.",
            "ValueError: Only able to place 0 replicas, but 4 replicas were requested.",
        ),
        not_examples=("only able to place 3 windows",),
        weight=44,
    ),
)
