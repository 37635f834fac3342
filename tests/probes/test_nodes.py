"""Other nodes: a real sshd on an address of its own, and hosts that do not answer."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import Missing, NodesReach, Why
from dsdoctor.host import HostError, LocalHost, free_port
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.nodes import nodes_reach, resolve
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost
from tests.checks import machines

NOTHING = Missing(why=Why.NOT_ASKED, detail="not asked")
CHOICE = PatientChoice(executable=sys.executable, chosen_by="test", why="it runs the tests")
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


def reach(host: Any, hosts: str, **needs: Any) -> NodesReach:
    fact = nodes_reach.function(
        host,
        parse_hostfile(hosts, "hosts"),
        RunNeeds(**needs),
        machines.LINUX,
        parse_command(["deepspeed", "t.py"]),
        CHOICE,
    )
    assert isinstance(fact, NodesReach)
    return fact


@pytest.fixture
def node(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An sshd on 127.0.0.2, and an `ssh` on PATH that knows its port and key."""
    assert SSHD is not None
    address, port = "127.0.0.2", free_port("127.0.0.2")
    for name in ("host_key", "user_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True
        )
    shutil.copy(tmp_path / "user_key.pub", tmp_path / "authorized")
    (tmp_path / "sshd.conf").write_text(
        f"ListenAddress {address}\nPort {port}\nHostKey {tmp_path}/host_key\n"
        f"AuthorizedKeysFile {tmp_path}/authorized\nStrictModes no\nUsePAM no\n"
        f"PermitRootLogin yes\nPidFile none\nPasswordAuthentication no\n"
    )
    (tmp_path / "ssh.conf").write_text(
        f"Host *\n  Port {port}\n  IdentityFile {tmp_path}/user_key\n  IdentitiesOnly yes\n"
        f"  StrictHostKeyChecking no\n  UserKnownHostsFile {tmp_path}/known\n  LogLevel ERROR\n"
    )
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    shim = bin_folder / "ssh"
    shim.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/ssh.conf "$@"\n')
    shim.chmod(0o755)
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(tmp_path / "sshd.conf")], stderr=subprocess.DEVNULL
    )
    for _ in range(1000):
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            break
        time.sleep(0.05)
    yield {**os.environ, "PATH": f"{bin_folder}:/usr/bin:/bin"}
    server.terminate()
    server.wait(200)


needs_sshd = pytest.mark.skipif(
    SSHD is None or not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="needs root and openssh-server",
)


@needs_sshd
@pytest.mark.system
def test_three_hosts_at_once(node: dict[str, str]) -> None:
    hosts = "127.0.0.2 slots=1\n127.0.0.3 slots=1\nno-such-host.invalid slots=1\n"
    good, silent, nameless = reach(LocalHost(node), hosts).nodes
    assert (good.ssh, good.python, good.addresses) == (True, True, ("127.0.0.2",))
    assert good.skew_s == 0
    assert (silent.ssh, silent.addresses) == (False, ("127.0.0.3",))
    assert "refused" in (silent.error or "")
    assert (nameless.ssh, nameless.addresses) == (False, ())


@needs_sshd
@pytest.mark.system
def test_a_key_that_is_not_known_there(node: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "authorized").write_text("")
    (other,) = reach(LocalHost(node), "127.0.0.2 slots=1\n").nodes
    assert other.ssh is False
    assert "Permission denied" in (other.error or "")


def fake(answer: Result | str) -> FakeHost:
    return FakeHost(
        env={"PATH": "/bin"},
        files={"/bin/ssh": "", "/bin/getent": ""},
        commands={"/bin/getent ahosts": "10.0.0.2 STREAM n1\n10.0.0.2 DGRAM\n", "/bin/ssh": answer},
    )


def test_a_clock_that_is_wrong_and_a_talkative_shell() -> None:
    answer = f"Welcome!\ndsdoctor-node {time.time() + 3600:.3f} no\n"
    (node,) = reach(fake(answer), "n1 slots=8\n").nodes
    assert (node.ssh, node.python, node.addresses) == (True, False, ("10.0.0.2",))
    assert node.skew_s == pytest.approx(3600, abs=5)


def test_a_log_in_that_hangs() -> None:
    (node,) = reach(
        fake(Result(argv=("ssh",), returncode=None, timed_out=True)), "n1 slots=8\n"
    ).nodes
    assert (node.ssh, node.timed_out) == (False, True)


def test_this_node_is_tried_once() -> None:
    host = fake("")
    fact = reach(host, "node slots=8\nlocalhost slots=8\n")
    assert [node.local for node in fact.nodes] == [True, True]
    assert [argv[-2] for argv in host.ran if argv[0] == "/bin/ssh"] == ["node"]
    assert fact.lacking[0] == "pdsh"
    assert "ssh" not in fact.lacking
    assert "ompi_info" in fact.lacking


def test_a_cluster_is_tried_in_part() -> None:
    hosts = "".join(f"n{i} slots=8\n" for i in range(100))
    fact = reach(fake("dsdoctor-node 1.0 yes"), hosts)
    assert (len(fact.nodes), fact.untried) == (64, 36)


@pytest.mark.parametrize("needs", [{"quick": True}, {}])
def test_when_nothing_is_tried(needs: dict[str, Any]) -> None:
    hostfile = parse_hostfile("n1 slots=8\n", "/job/hostfile", asked="quick" in needs)
    with pytest.raises(HostError) as caught:
        nodes_reach.function(fake(""), hostfile, RunNeeds(**needs), NOTHING, NOTHING, CHOICE)
    assert caught.value.missing.why is Why.NOT_ASKED


def test_a_name_is_never_an_option() -> None:
    host = fake("dsdoctor-node 1.0 yes")
    refused = parse_hostfile("-oProxyCommand=touch slots=8\nn2 slots=8\n", "hosts")
    assert [entry.host for entry in refused.entries] == ["n2"]
    assert "is not a host name" in refused.problems[0].reason
    reach(host, "me@n1 slots=8\n")
    (ssh,) = [argv for argv in host.ran if argv[0] == "/bin/ssh"]
    assert ssh[-3:-1] == ("--", "me@n1")
    assert ("/bin/getent", "ahosts", "n1") in host.ran


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.17"])
def test_an_address_needs_no_resolver(address: str) -> None:
    assert resolve(FakeHost(), address) == (address,)


@pytest.mark.parametrize(
    ("line", "hosts", "tried"),
    [
        pytest.param("deepspeed t.py", "localhost slots=1\n", [False], id="the first host"),
        pytest.param(
            "deepspeed --no_ssh_check t.py", "localhost slots=1\n", [None], id="told not to"
        ),
        pytest.param(
            "deepspeed --include localhost:0 t.py", "localhost slots=1\n", [None], id="a filter"
        ),
        pytest.param("torchrun t.py", "localhost slots=1\n", [None], id="another launcher"),
        pytest.param(
            "deepspeed t.py", "n1 slots=1\nlocalhost slots=1\n", [False, None], id="not the first"
        ),
    ],
)
def test_this_node_is_tried_where_the_launcher_does(
    line: str, hosts: str, tried: list[bool | None]
) -> None:
    class Refusing(FakeHost):
        def run(self, argv: Any, **options: Any) -> Result:
            return Result(argv=tuple(argv), returncode=255, stderr=b"Connection refused")

    fact = nodes_reach.function(
        Refusing(env={"PATH": "/usr/bin"}, files={"/usr/bin/ssh": ""}),
        parse_hostfile(hosts, "hosts"),
        RunNeeds(),
        machines.LINUX,
        parse_command(line.split()),
        CHOICE,
    )
    assert isinstance(fact, NodesReach)
    assert [one.ssh for one in fact.nodes] == tried
