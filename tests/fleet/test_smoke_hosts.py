"""`fleet smoke` with the real launcher over two hosts of their own."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.hosts import Hosts, lacking

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="network namespaces"),
    pytest.mark.skipif(
        os.name != "posix" or os.geteuid() != 0 or bool(lacking()) or not shutil.which("pdsh"),
        reason="needs root, sshd and pdsh (tests/system-deps.sh)",
    ),
    pytest.mark.system,
    pytest.mark.train,
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("smoke")
    for parent in folder.parents[:3]:
        if parent != Path("/tmp"):
            parent.chmod(0o755)
    made = Hosts(folder, 2, 79)
    for name in made.names:
        # a log-in without a shell's start files: ninja and the compiler must be on sshd's own PATH
        made.variables[name]["PATH"] = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        made.variables[name]["TORCH_EXTENSIONS_DIR"] = os.environ.get(
            "TORCH_EXTENSIONS_DIR", str(folder / "extensions")
        )
    try:
        made.up()
        yield made
    finally:
        made.down()


def test_deepspeed_trains_on_two_hosts_through_a_hostfile(hosts: Hosts) -> None:
    hostfile = hosts.folder / "hostfile"
    hostfile.write_text("h1 slots=1\nh2 slots=1\n")
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DSDOCTOR_PYTHON": sys.executable,
        "OMP_NUM_THREADS": "1",
    }
    done = hosts.launch(
        sys.executable,
        "-m",
        "dsdoctor",
        "fleet",
        "smoke",
        "--hostfile",
        str(hostfile),
        "--cpu",
        "1",
        "--format",
        "json",
        env=env,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["good"] == ["h1", "h2"]
    assert found["rounds"] == [{"h1+h2": True}]


def test_a_single_host_without_dsdoctor_is_not_called_bad(hosts: Hosts) -> None:
    """A run on a host alone goes there over ssh; without a report there is no verdict."""
    code = (
        "from dsdoctor.fleet.smoke import Runs; "
        "lost = Runs(slots={}, command=['/nowhere/python', 'smoke'], "
        "told=lambda *ended: print(ended)); print(lost.run([('h2',)]))"
    )
    done = hosts.launch(sys.executable, "-c", code)
    assert "{('h2',): None}" in done.stdout, done.stdout + done.stderr
    assert "/nowhere/python" in done.stdout
