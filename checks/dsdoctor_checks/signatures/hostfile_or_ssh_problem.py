"""How `hostfile-or-ssh-problem` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "hostfile-or-ssh-problem"
TITLE = "a hostfile entry is wrong, or ssh or pdsh to a node does not work"
HINT = "run `ssh -o PasswordAuthentication=no HOST hostname` for every host of the hostfile and mend the one that fails"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "Hostfile contains",
            "Hostfile is empty",
            "Hostfile is not formatted",
            "not found in hostfile",
            "include_str and exclude_str",
            "was not reachable via ssh",
            "PasswordAuthentication=no",
            "PDSH_SSH_ARGS_APPEND",
            "launcher 'pdsh' not installed",
            "'hostname', '-I'",
            "hostname -I",
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
        not_examples=("ssh: connected",),
        weight=64,
        masks=("permissions", "rendezvous-timeout"),
    ),
    Signature(
        anchor=("No slot '",),
        pattern=r"No slot '\d+' specified on host '(?!localhost)",
        examples=("ValueError: No slot '5' specified on host 'node-a'",),
        not_examples=("No slot '5' specified on host 'localhost'",),
        weight=60,
    ),
    Signature(
        anchor="IndexError: list index out of range",
        pattern=r"IndexError: list index out of range",
        examples=("IndexError: list index out of range",),
        not_examples=("IndexError: tuple index",),
        weight=50,
        near=("deepspeed/launcher/runner.py",),
    ),
    Signature(
        anchor="not enough values to unpack",
        pattern=r"not enough values to unpack",
        examples=("ValueError: not enough values to unpack (expected 2, got 1)",),
        not_examples=("unpack",),
        weight=50,
        near=("deepspeed/launcher/runner.py",),
    ),
)
