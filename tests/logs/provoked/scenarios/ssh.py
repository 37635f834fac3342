"""Several hosts: ssh, pdsh and what DeepSpeed says when they fail."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ._bench import HOME, RUN, Bench, scenario
from ._scripts import config, train

UNCHECKED = "--no_ssh_check"
HOSTS = "hostfile-or-ssh-problem"
ARGS = ("--deepspeed", "--deepspeed_config", "ds_config.json")


def _home() -> Path:
    """ssh takes root's home from /etc/passwd, whatever HOME says; make the two one."""
    folder = HOME / ".ssh"
    folder.mkdir(mode=0o700)
    passwd = "root:x:0:0:root:/home/user:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534:n:/:/bin/sh\n"
    (RUN / "passwd").write_text(passwd)
    subprocess.run(["mount", "--bind", str(RUN / "passwd"), "/etc/passwd"], check=True)
    return folder


def _sshd(bench: Bench, folder: Path, *, accept: bool = True, keys: bool = True) -> None:
    """A real sshd on every loopback address, port 22."""
    for name in ("host_key", "id_ed25519"):
        subprocess.run(
            [
                "ssh-keygen",
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-C",
                "user@node-a",
                "-f",
                str(folder / name),
            ],
            check=True,
        )
    if keys:
        (folder / "authorized_keys").write_text((folder / "id_ed25519.pub").read_text())
    if accept:
        (folder / "config").write_text("StrictHostKeyChecking accept-new\nLogLevel ERROR\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    options = [
        f"HostKey={folder}/host_key",
        "StrictModes=no",
        "UsePAM=no",
        "PidFile=none",
        "PermitRootLogin=prohibit-password",
    ]
    command = [
        "/usr/sbin/sshd",
        "-D",
        "-f",
        "/dev/null",
        *(word for option in options for word in ("-o", option)),
    ]
    bench.start(command, quiet=True)
    time.sleep(0.5)


def _launch(
    bench: Bench,
    hostfile: str,
    *launch: str,
    env: dict[str, str] | None = None,
    deadline: float = 60,
) -> int:
    bench.write("hostfile", hostfile)
    bench.write("ds_config.json", config())
    return bench.deepspeed(
        train(),
        *ARGS,
        ranks=0,
        launch=["--hostfile", "hostfile", *launch],
        env=env,
        deadline=deadline,
    )


@scenario(HOSTS, r"was not reachable via ssh", needs=("ssh",))
def ssh_first_host_unreachable(bench: Bench) -> int:
    """The first host of the hostfile has no address; DeepSpeed's own check hides what ssh says."""
    return _launch(bench, "node-x slots=1\nnode-y slots=1\n")


@scenario(HOSTS, r"(?i)Could not resolve hostname", needs=("ssh",))
def ssh_host_not_resolvable(bench: Bench) -> int:
    """The first host of the hostfile has no address, and DeepSpeed's check is off: ssh speaks itself."""
    return _launch(bench, "node-x slots=1\nnode-y slots=1\n", UNCHECKED)


@scenario(HOSTS, r"IndexError: list index out of range", needs=("ssh", "sshd", "root"))
def ssh_hostname_has_no_address(bench: Bench) -> int:
    """`hostname -I` on the first host prints nothing (it has only loopback): an IndexError in the launcher."""
    Path("/etc/hosts").write_text(
        "127.0.0.1 localhost node-a\n127.0.0.2 node-b\n127.0.0.3 node-c\n"
    )
    _sshd(bench, _home())
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n")


@scenario(HOSTS, r"Connection refused", needs=("ssh",))
def ssh_refused(bench: Bench) -> int:
    """No sshd on the first host."""
    bench.address("node-b", "node-c")
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n", UNCHECKED)


@scenario(HOSTS, r"Host key verification failed", needs=("ssh", "sshd", "root"))
def ssh_host_key_unknown(bench: Bench) -> int:
    """The host's key is not known and no one can be asked."""
    bench.address("node-b", "node-c")
    _sshd(bench, _home(), accept=False)
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n", UNCHECKED)


@scenario(HOSTS, r"REMOTE HOST IDENTIFICATION HAS CHANGED", needs=("ssh", "sshd", "root"))
def ssh_host_key_changed(bench: Bench) -> int:
    """The node was installed anew: its host key is not the one known."""
    bench.address("node-b", "node-c")
    folder = _home()
    _sshd(bench, folder, accept=False)
    other = (folder / "id_ed25519.pub").read_text()
    (folder / "known_hosts").write_text(f"node-b {other}node-c {other}")
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n", UNCHECKED)


@scenario(HOSTS, r"Permission denied \(publickey", needs=("ssh", "sshd", "root"))
def ssh_public_key_denied(bench: Bench) -> int:
    """The user's key is not in authorized_keys."""
    bench.address("node-b", "node-c")
    _sshd(bench, _home(), keys=False)
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n", UNCHECKED)


@scenario(HOSTS, r"(?i)pdsh", needs=("ssh", "sshd", "root"))
def ssh_pdsh_missing(bench: Bench) -> int:
    """ssh works, pdsh is not installed."""
    bench.address("node-b", "node-c")
    _sshd(bench, _home())
    return _launch(
        bench, "node-b slots=1\nnode-c slots=1\n", env={"PATH": bench.bin_without("pdsh")}
    )


@scenario(
    HOSTS,
    r"(?i)node-c: ssh exited|Could not resolve|refused|exited with exit code 255",
    needs=("ssh", "sshd", "pdsh", "root"),
)
def ssh_second_host_down(bench: Bench) -> int:
    """The first host answers, the second does not; rank 0 waits until the user's patience ends (25 s)."""
    bench.address("node-b")
    _sshd(bench, _home())
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n", deadline=25)


@scenario(
    HOSTS,
    r"(?i)ValueError|not enough values",
    needs=("ssh", "sshd", "pdsh", "root"),
    also_ok=("user-code",),
)
def ssh_deepspeed_env_blank_line(bench: Bench) -> int:
    """A blank line in .deepspeed_env."""
    bench.address("node-b", "node-c")
    _sshd(bench, _home())
    bench.write(".deepspeed_env", "NCCL_DEBUG=INFO\n\nTORCH_SHOW_CPP_STACKTRACES=1\n")
    return _launch(bench, "node-b slots=1\nnode-c slots=1\n", deadline=30)


@scenario("none", r"training done", needs=("ssh", "sshd", "pdsh", "root"))
def ok_pdsh(bench: Bench) -> int:
    """A clean two-rank run that DeepSpeed starts over pdsh and ssh."""
    bench.address("node-b")
    _sshd(bench, _home())
    bench.write(".deepspeed_env", f"PATH={bench.env['PATH']}\nHOME={HOME}\nOMP_NUM_THREADS=1\n")
    return _launch(bench, "node-b slots=2\n", "--force_multi", deadline=90)


@scenario("mpi-missing", r"(?i)mpi", also_ok=(HOSTS,), needs=("ssh", "sshd", "root"))
def ssh_openmpi_launcher_missing(bench: Bench) -> int:
    """--launcher openmpi where Open MPI is not installed."""
    bench.address("node-b", "node-c")
    _sshd(bench, _home())
    path = bench.bin_without("mpirun", "ompi_info", "mpiexec")
    return _launch(
        bench, "node-b slots=1\nnode-c slots=1\n", "--launcher", "openmpi", env={"PATH": path}
    )
