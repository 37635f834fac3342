"""Hosts of their own on one machine: a network namespace, a host name and an sshd for each.

They share the file system, as a cluster with NFS does. `Hosts.run` runs a command on the node from
which the fleet is examined.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.nvml import fakenvml, scenarios
from tests.support.folders import let_others_in
from tests.support.needs import PATH, linux_root_with

#: Of a module whose tests need such hosts.
MARKS = linux_root_with("sshd", ("ip", "sshd", "ssh", "ssh-keygen", "unshare"))


_SSHD = """\
Port 22
ListenAddress {address}
HostKey {d}/hostkey
AuthorizedKeysFile {d}/authorized_keys
PidFile {d}/{name}.pid
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
MaxStartups 100
{more}
"""
_SSH = """\
Host *
  User root
  IdentityFile {d}/id
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  ConnectTimeout 3
"""


class Hosts:
    """Hosts h1 … hN, and the one that they are examined from.

    Attributes:
        folder: of keys and configurations.
        names: of the hosts.
        limit: seconds for a command over hosts some of which do not answer.
    """

    def __init__(self, folder: Path, count: int, network: int) -> None:
        self.folder = folder
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self.network = f"10.{network}.0"
        self.tag = f"dsd{os.getpid() % 10000}"
        self.control = f"{self.tag}c"
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.variables: dict[str, dict[str, str]] = {name: {} for name in self.names}
        self.force: dict[str, str] = {}
        self.limit = "30"

    def address(self, name: str) -> str:
        return f"{self.network}.{self.names.index(name) + 1}"

    def space(self, name: str) -> str:
        return f"{self.tag}{name}"

    def machine(self, name: str, scenario: Any) -> None:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        self.variables[name] |= fakenvml.environment(scenario, place)

    def up(self) -> None:
        self.folder.chmod(0o755)
        for key in ("id", "hostkey"):
            _do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        shutil.copy(self.folder / "id.pub", self.folder / "authorized_keys")
        (self.folder / "ssh_config").write_text(_SSH.format(d=self.folder))
        self.keys = self.folder / "dotssh"
        self.keys.mkdir(mode=0o700)
        shutil.copy(self.folder / "ssh_config", self.keys / "config")
        self.home = Path("~root").expanduser() / ".ssh"
        self.home.mkdir(mode=0o700, exist_ok=True)
        Path("/run/sshd").mkdir(exist_ok=True)
        rows = ["127.0.0.1 localhost", f"{self.network}.254 control"]
        rows += [f"{self.address(name)} {name}" for name in self.names]
        self._namespace(self.control, rows)
        inside = ("ip", "-n", self.control)
        _do(*inside, "link", "add", "br0", "type", "bridge")
        _do(*inside, "addr", "add", f"{self.network}.254/24", "dev", "br0")
        _do(*inside, "link", "set", "br0", "up")
        for number, name in enumerate(self.names):
            self._host(name, number, rows)
        for name in self.names:
            if name not in self.force:
                self._await(name)

    def _namespace(self, space: str, rows: Sequence[str]) -> None:
        _do("ip", "netns", "add", space)
        _do("ip", "-n", space, "link", "set", "lo", "up")
        place = Path("/etc/netns") / space
        place.mkdir(parents=True)
        (place / "hosts").write_text("\n".join(rows) + "\n")
        (place / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        (place / "resolv.conf").write_text("\n")

    def _host(self, name: str, number: int, rows: Sequence[str]) -> None:
        space = self.space(name)
        self._namespace(space, rows)
        veth = f"{self.tag[3:]}v{number}"
        _do("ip", "link", "add", veth, "netns", self.control, "type", "veth",
            "peer", "name", "eth0", "netns", space)  # fmt: skip
        _do("ip", "-n", self.control, "link", "set", veth, "master", "br0", "up")
        _do("ip", "-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        _do("ip", "-n", space, "link", "set", "eth0", "up")
        more = ""
        if self.variables[name]:
            words = " ".join(f'{k}="{v}"' for k, v in self.variables[name].items())
            more += f"SetEnv {words}\n"
        if name in self.force:
            more += f"ForceCommand {self.force[name]}\n"
        config = self.folder / f"sshd_{name}.conf"
        config.write_text(
            _SSHD.format(d=self.folder, name=name, address=self.address(name), more=more)
        )
        script = (
            f"hostname {name}; mount -t tmpfs -o size=64m tmpfs /dev/shm; "
            f"mount --bind {self.keys} {self.home}; "
            f"exec $(command -v sshd || echo /usr/sbin/sshd) -D -e -f {config}"
        )
        with (self.folder / f"{name}.log").open("wb") as log:
            self.daemons.append(
                subprocess.Popen(
                    [
                        "ip",
                        "netns",
                        "exec",
                        space,
                        "unshare",
                        "--uts",
                        "--mount",
                        "--ipc",
                        "--pid",
                        "--fork",
                        "--kill-child",
                        "--mount-proc",
                        "bash",
                        "-c",
                        script,
                    ],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "PATH": PATH},
                    start_new_session=True,
                )
            )

    def _await(self, name: str) -> None:
        deadline = time.monotonic() + 300
        config = str(self.folder / "ssh_config")
        while time.monotonic() < deadline:
            if self.run("ssh", "-F", config, name, "true").returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def cut(self, name: str) -> None:
        """Takes the link of a host down: its address answers nothing."""
        _do("ip", "-n", self.space(name), "link", "set", "eth0", "down")

    def processes(self) -> list[str]:
        """Number and command line of all that runs on the hosts, zombies excepted."""
        spaces = set()
        for daemon in self.daemons:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text()
                spaces |= {Path(f"/proc/{pid}/ns/pid").readlink() for pid in children.split()}
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "ns" / "pid").readlink() in spaces:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append(f"{entry.name} {line}")
        return [line for line in found if line.partition(" ")[2]]

    def run(
        self, *argv: str, env: Mapping[str, str] | None = None, timeout: float = 550
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ip", "netns", "exec", self.control, *argv],
            env={**os.environ, "PATH": PATH, "HOME": str(self.folder), **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
        )

    def launch(
        self, *argv: str, env: Mapping[str, str] | None = None, timeout: float = 550
    ) -> subprocess.CompletedProcess[str]:
        """As `run`, with keys where plain `ssh` looks for them: DeepSpeed gives it no options."""
        script = f'mount --bind {self.keys} {self.home} && exec "$@"'
        return self.run("bash", "-c", script, "launch", *argv, env=env, timeout=timeout)

    def down(self) -> None:
        # `unshare --kill-child`: with it goes all that runs on its host
        for daemon in self.daemons:
            daemon.kill()
        for daemon in self.daemons:
            daemon.wait()
        for space in [self.control, *map(self.space, self.names)]:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
            shutil.rmtree(Path("/etc/netns") / space, ignore_errors=True)


def _do(*argv: str) -> None:
    done = subprocess.run(
        argv, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.stderr}"


def with_gpus(folder: Path, count: int, network: int) -> Hosts:
    """Hosts, not yet up, that have two GPUs each."""
    let_others_in(folder)
    made = Hosts(folder, count, network)
    for name in made.names:
        made.machine(name, scenarios.rtx_3090_x2_nvlink())
    return made
