"""`fleet smoke` with the real launcher over hosts of their own, one of which is bad."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import MARKS, Hosts
from tests.support.folders import let_others_in

pytestmark = [
    *MARKS,
    pytest.mark.skipif(not shutil.which("pdsh"), reason="needs pdsh (tests/system-deps.sh)"),
    pytest.mark.train,
    pytest.mark.timeout(1800),
]


BAD = "h3"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("smoke")
    let_others_in(folder)
    made = Hosts(folder, 4, 79)
    for name in made.names:
        # a log-in without a shell's start files: ninja and the compiler must be on sshd's own PATH
        made.variables[name]["PATH"] = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        made.variables[name]["TORCH_EXTENSIONS_DIR"] = os.environ.get(
            "TORCH_EXTENSIONS_DIR", str(folder / "extensions")
        )
    # what a site sets for every node, and one node has no such interface: gloo ends its rank
    made.variables[BAD]["GLOO_SOCKET_IFNAME"] = "ib0"
    try:
        made.up()
        yield made
    finally:
        made.down()


def smoke(hosts: Hosts, *names: str) -> tuple[int, Any]:
    hostfile = hosts.folder / f"hostfile-{'-'.join(names)}"
    hostfile.write_text("".join(f"{name} slots=1\n" for name in names))
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
        timeout=1500,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_of_four_hosts_the_bad_one_is_named(hosts: Hosts) -> None:
    """DeepSpeed trains on pairs through a hostfile, then on both suspects with good partners."""
    status, found = smoke(hosts, "h1", "h2", "h3", "h4")
    assert (status, found["bad"]) == (1, [BAD]), found
    assert found["good"] == ["h1", "h2", "h4"]
    assert (found["links"], found["undecided"]) == ([], [])
    assert found["rounds"] == [
        {"h1+h2": True, "h3+h4": False},
        {"h3+h1": False, "h4+h2": True},
    ]


def test_where_no_pair_passes_each_host_is_tried_alone(hosts: Hosts) -> None:
    status, found = smoke(hosts, "h3", "h4")
    assert (status, found["bad"], found["good"]) == (1, [BAD], ["h4"]), found
    assert found["rounds"] == [{"h3+h4": False}, {"h3": False, "h4": True}]


def test_a_single_host_without_dsdoctor_is_not_called_bad(hosts: Hosts) -> None:
    """A run on a host alone goes there over ssh; without a report there is no verdict."""
    code = (
        "from dsdoctor.fleet.smoke import Runs; "
        "lost = Runs(slots={}, command=['/nowhere/python', 'smoke'], "
        "on_end=lambda *ended: print(ended)); print(lost.run([('h2',)]))"
    )
    done = hosts.launch(sys.executable, "-c", code)
    assert "{('h2',): None}" in done.stdout, done.stdout + done.stderr
    assert "/nowhere/python" in done.stdout
