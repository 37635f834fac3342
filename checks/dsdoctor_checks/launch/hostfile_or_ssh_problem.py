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

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    NodeReach,
    NodesReach,
    Observation,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    TracebackRule,
    check,
    fail,
    ok,
    skip,
    warn,
)

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
    hostfile: Hostfile,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
    nodes: NodesReach | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Fails on lines that the launcher rejects or ignores, and on unreachable hosts."""
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
        spot = f"line {problem.line} of `{hostfile.path}`, `{problem.text}`, is rejected"
        yield fail(
            f"{spot if problem.line else f'`{hostfile.path}` is rejected'}: {problem.reason}",
            effect="the launcher stops with `ValueError` before anything starts",
            hint=f"write `HOST slots=N` on line {problem.line}, and list each host once"
            if problem.line
            else "write one line `HOST slots=N` for each host",
            path=hostfile.path,
            line=problem.line,
            text=problem.text,
        )
    if hostfile.problems:
        return
    yield from _slots(hostfile, gpus, os)
    others = [entry.host for entry in hostfile.entries if entry.host not in _own_names(os)]
    if isinstance(nodes, Missing) and run.quick and hostfile.asked and others:
        yield skip(
            f"the lines of `{hostfile.path}` are valid, but whether its {len(others)} other hosts"
            " resolve and can be reached was not tried (`--quick`)",
            hosts=len(others),
        )
    if isinstance(nodes, NodesReach):
        yield from _tools(nodes, hostfile, command)
        for node in nodes.nodes:
            yield from _reach(node, hostfile)
    yield ok(hosts=len(hostfile.entries), slots=hostfile.slots)


def _slots(hostfile: Hostfile, gpus: Gpus | Missing, os: OsInfo | Missing) -> Iterator[Finding]:
    """Compares this node's slots with its GPUs, except with MIG, where each slice is a device."""
    if not isinstance(gpus, Gpus) or not gpus.gpus or any(gpu.mig_devices for gpu in gpus.gpus):
        return
    names = _own_names(os)
    have = gpus.count or len(gpus.gpus)
    for entry in hostfile.entries:
        if entry.host in names and entry.slots > have:
            yield fail(
                f"line {entry.line} of `{hostfile.path}` sets {entry.slots} slots for"
                f" `{entry.host}`, but this node has {have} GPUs",
                effect=f"ranks from {have} on stop with `invalid device ordinal`",
                hint=f"change the line to `{entry.host} slots={have}`",
                line=entry.line,
                slots=entry.slots,
                gpus=have,
            )


def _own_names(os: OsInfo | Missing) -> set[str]:
    """What this node may be called in its hostfile."""
    names = {"localhost", "127.0.0.1", "::1"}
    if isinstance(os, OsInfo):
        names |= {os.hostname, os.hostname.split(".")[0]}
    return names


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
    if by != "deepspeed" or kind != "pdsh" or not others or "no_ssh" in _options(command):
        return
    for tool in nodes.lacking:
        yield fail(
            f"`{tool}` is not on PATH, but the deepspeed launcher needs it to start the"
            f" {len(hostfile.entries)} hosts of `{hostfile.path}`",
            effect="the launcher stops before anything starts",
            hint=f"install `{tool}`"
            + (", or use `--launcher openmpi` or `--launcher slurm`" if tool == "pdsh" else ""),
            tool=tool,
            hosts=len(hostfile.entries),
        )


def _options(command: LaunchCommand | Missing) -> dict[str, str]:
    return command.options if isinstance(command, LaunchCommand) else {}


def _reach(node: NodeReach, hostfile: Hostfile) -> Iterator[Finding]:
    """Why the launcher cannot start ranks on a host."""
    line = next((entry.line for entry in hostfile.entries if entry.host == node.host), None)
    if node.ssh is False and not node.addresses:
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
            f"`{node.host}` has no Python interpreter at the path of this node's, but the deepspeed"
            " launcher uses the same path on every node",
            effect="ranks on that node fail with `No such file or directory`",
            hint="install the environment at the same path on every node, or on a shared file system",
            host=node.host,
            line=line,
        )


HINT = (
    "make `ssh -o PasswordAuthentication=no HOST hostname` succeed for every host of the hostfile"
)

SIGNATURES = (
    Signature(
        pattern="Hostfile (?:contains|is empty|is not)",
        examples=(
            "ValueError: Hostfile contains a bad entry: x y",
            'raise ValueError("Hostfile is empty or not formatted correctly, unable to proceed with launching.")',
            "Hostfile is not",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="not found in hostfile",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=("ValueError: Hostname 'worker-3' not found in hostfile",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="was not reachable via ssh",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=(
            "RuntimeError: Using hostfile at /job/hostfile but host=10.1.1.3 was not reachable via ssh. If you are running with a single node please remove /job/hostfile or setup passwordless ssh.",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="PasswordAuthentication=no.{0,120}non-zero",
        examples=(
            "subprocess.CalledProcessError: Command '['ssh', '-o', 'PasswordAuthentication=no', 'node-a:22', 'hostname']' returned non-zero exit status 255.",
        ),
        not_examples=(
            "subprocess.CalledProcessError: Command '['ssh', '-o', 'PasswordAuthentication=no', 'node-a:22', 'hostname']' returned",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="KeyError: 'PDSH_SSH_ARGS_APPEND'",
        examples=("KeyError: 'PDSH_SSH_ARGS_APPEND'",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="launcher 'pdsh' not installed",
        examples=("RuntimeError: launcher 'pdsh' not installed.",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="hostname'?,? '?-I.{0,40}non-zero",
        examples=(
            "subprocess.CalledProcessError: Command '['ssh', 'node-b', 'hostname', '-I']' returned non-zero exit status 255.",
        ),
        not_examples=("hostname -I",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Permission denied \((?:publickey|password|gssapi|keyboard)",
        examples=(
            "node-b: Permission denied (publickey).",
            "Permission denied (password",
            "Permission denied (gssapi",
            "Permission denied (keyboard",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Host key verification failed",
        examples=("node-b: Host key verification failed.",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"ssh: connect to host \S+ port",
        examples=("ssh: connect to host n2 port 22: Connection refused",),
        not_examples=("ssh: connect to host n2",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="ssh: Could not resolve hostname",
        examples=("10.0.0.3: ssh: Could not resolve hostname node-9: Name or service not known",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="REMOTE HOST IDENTIFICATION",
        examples=("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="ssh exited with exit code (?:255|127)",
        examples=(
            "pdsh@worker-0: worker-1: ssh exited with exit code 255",
            "ssh exited with exit code 127",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="(?:ssh|pdsh): command not found",
        examples=(
            "ssh: command not found",
            "pdsh: command not found",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="No such file or directory: 'pdsh'",
        examples=("No such file or directory: 'pdsh'",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"No slot '\d+' specified on host '(?!localhost)",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=(
            "ValueError: No slot '5' specified on host 'node-a'",
            "ValueError: No slot '8' specified on host '10.0.0.7'",
        ),
        not_examples=("No slot '5' specified on host 'localhost'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="IndexError: list index out of range",
        examples=(
            "IndexError: list index out of range",
            "    IndexError: list index out of range",
        ),
        near=("deepspeed/launcher/runner.py",),
    ),
    Signature(
        pattern="not enough values to unpack",
        source="torch 2.13.0 _dynamo/symbolic_convert.py",
        examples=(
            "ValueError: not enough values to unpack (expected 2, got 1)",
            "ValueError: not enough values to unpack (expected at least 2, got 1)",
        ),
        near=("deepspeed/launcher/runner.py",),
    ),
    Signature(
        pattern="rcmd: socket: Permission denied",
        examples=("pdsh@head: n2: rcmd: socket: Permission denied",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="no extra nodes available via hostfile",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=("ValueError: Num nodes is >1 but no extra nodes available via hostfile",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="kex_exchange_identification: ",
        examples=("kex_exchange_identification: Connection closed by remote host",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Bad owner or permissions on \S*\.ssh",
        examples=("Bad owner or permissions on x1.ssh",),
        not_examples=("Bad owner or permissions on is fine",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="mcmd: connect failed",
        examples=("mcmd: connect failed",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="There are not enough slots available",
        examples=("There are not enough slots available",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="ORTE was unable to reliably start",
        examples=("ORTE was unable to reliably start",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="contains multiple entries for",
        source="deepspeed 0.19.8 launcher/runner.py",
        examples=(
            'raise ValueError(f"Hostfile contains multiple entries for {host}, unable to proceed with launching")',
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Unable to detect suitable master address|does not support (?:worker include/exclusion|limiting num nodes)",
        source="deepspeed 0.19.8 launcher/multinode_runner.py, launcher/runner.py",
        examples=(
            "RuntimeError: Unable to detect suitable master address via `hostname -I`, please manually specify one via --master_addr",
            "does not support worker include/exclusion",
        ),
    ),
    Signature(
        pattern=r"^pdsh@\S+ (?:\S+: )?(?:connect: |mcmd|module path .{0,120}insecure|Couldn't load any|gethostbyname|rcmd)",
        examples=(
            "pdsh@head: n1: connect: Connection refused",
            "pdsh@x1 mcmd",
            "pdsh@x1 module path insecure",
            "pdsh@x1 Couldn't load any",
            "pdsh@x1 gethostbyname",
            "pdsh@x1 rcmd",
        ),
        not_examples=("pdsh@head: n1: 8 ranks done",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="UNPROTECTED PRIVATE KEY FILE",
        examples=("@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Load key .{0,120}bad permissions",
        examples=('Load key "/home/me/.ssh/id_ed25519": bad permissions',),
        not_examples=('key "/home/me/.ssh/id_ed25519": bad permissions',),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Too many authentication failures",
        examples=("Too many authentication failures",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bssh: not found",
        examples=("ssh: not found",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="No such file or directory: 'ssh'",
        examples=("FileNotFoundError: [Errno 2] No such file or directory: 'ssh'",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Error: host \S+ is already defined",
        examples=("RuntimeError: host x1 is already defined",),
        not_examples=("the owner of n1 is already defined",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Only able to place \d+ replicas?, but \d+",
        examples=(
            "ValueError: Only able to place 1 replicas, but 2 replicas were requested.",
            "ValueError: Only able to place 0 replicas, but 4 replicas were requested.",
        ),
        not_examples=("ValueError: Only able to place 1 replicas, but",),
        level=Level.WEAK,
    ),
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
