"""Messages of `hostfile-or-ssh-problem`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern="Hostfile (?:contains|is empty|is not)",
        source="deepspeed 0.14.5-0.19.8 launcher/runner.py, autotuning/utils.py",
        examples=(
            "ValueError: Hostfile contains a bad entry: x y",
            'raise ValueError("Hostfile is empty or not formatted correctly, unable to proceed with launching.")',
            "Hostfile is not",
        ),
        hint="write one line `HOST slots=N` for each host, and list each host once",
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
        source="python 3.3-3.14 Objects/dictobject.c",
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
        source="python 3.3-3.14 Lib/subprocess.py, for deepspeed 0.3-0.19 comm/comm.py",
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
        source="OpenSSH 9.2p1 ssh",
        examples=("node-b: Host key verification failed.",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"ssh: connect to host \S+ port",
        source="OpenSSH 9.2p1 ssh",
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
        source="OpenSSH 9.2p1 ssh",
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
        startup=True,  # below steps, a connection was lost that had been made
    ),
    Signature(
        pattern="(?:ssh|pdsh): command not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=(
            "ssh: command not found",
            "pdsh: command not found",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="No such file or directory: 'pdsh'",
        source="python 3.3-3.14 Lib/subprocess.py, Objects/exceptions.c",
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
        source="pdsh 2.18-2.35 src/modules/xrcmd.c",
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
        source="openssh 7.0-9.9 kex.c",
        examples=("kex_exchange_identification: Connection closed by remote host",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Bad owner or permissions on \S*\.ssh",
        source="OpenSSH 9.2p1 ssh",
        examples=("Bad owner or permissions on x1.ssh",),
        not_examples=("Bad owner or permissions on is fine",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="mcmd: connect failed",
        source="pdsh 2.18-2.35 src/modules/mcmd.c",
        examples=("mcmd: connect failed",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="There are not enough slots available",
        source="openmpi 1.8-4.1 orte/mca/rmaps/base/help-orte-rmaps-base.txt",
        examples=("There are not enough slots available",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="ORTE was unable to reliably start",
        source="openmpi 1.8-4.1 orte/tools/orterun/help-orterun.txt",
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
        source="OpenSSH 9.2p1 ssh",
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
        source="openssh 5.0-9.9 auth.c",
        examples=("Too many authentication failures",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bssh: not found",
        source="dash 0.5 src/exec.c, zsh 5 Src/exec.c",
        examples=("ssh: not found",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern="No such file or directory: 'ssh'",
        source="python 3.3-3.14 Lib/subprocess.py, Objects/exceptions.c",
        examples=("FileNotFoundError: [Errno 2] No such file or directory: 'ssh'",),
        level=Level.STRONG,
        masks=("path-not-writable", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Error: host \S+ is already defined",
        source="deepspeed 0.14.5-0.19.8 autotuning/utils.py",
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
