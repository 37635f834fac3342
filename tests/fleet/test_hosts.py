"""`fleet check` over real ssh: eight hosts, one unreachable, one slow, one drifting."""

from __future__ import annotations

import copy
import json
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import MARKS, Hosts, with_gpus
from tests.nvml import scenarios

pytestmark = MARKS
#: Seconds for hosts that all answer: nothing waits for it.
PLENTY = "300"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    made = with_gpus(tmp_path_factory.mktemp("hosts"), 8, 77)
    drifting = copy.deepcopy(scenarios.rtx_3090_x2_nvlink())
    drifting["driver"] = "535.104.05"
    made.machine("h6", drifting)
    made.variables["h6"]["OMP_NUM_THREADS"] = "3"
    made.force["h7"] = "sleep 1000"
    try:
        made.up()
        made.cut("h8")
        # hosts that do not answer are waited for, so their tests have a limit after this machine
        begun = time.monotonic()
        check(made, "--nodes", "h[1-6]")
        made.limit = str(max(8, round(4 * (time.monotonic() - begun))))
        yield made
    finally:
        made.down()


def fleet(hosts: Hosts, *argv: str, **env: str) -> Any:
    done = hosts.run(
        sys.executable,
        "-m",
        "dsdoctor",
        "fleet",
        *argv,
        env={"DSDOCTOR_PYTHON": sys.executable, **env},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def check(hosts: Hosts, *argv: str, limit: str = PLENTY, **env: str) -> Any:
    done = fleet(
        hosts,
        "check",
        "--ssh-options",
        f"-F {hosts.folder}/ssh_config",
        "--timeout",
        limit,
        "--format",
        "json",
        *argv,
        **env,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.returncode


def found(report: Any, condition: str) -> dict[str, str]:
    """Folded nodes to message."""
    return {f["nodes"]: f["message"] for f in report["findings"] if f["condition"] == condition}


@pytest.mark.parametrize("engine", ["clustershell", "pdsh"])
def test_eight_hosts_with_one_of_each_trouble(hosts: Hosts, engine: str) -> None:
    if engine == "pdsh":
        assert shutil.which("pdsh"), "tests/system-deps.sh installs it"
    asked = ("--nodes", "h[1-8]", "--engine", engine)
    report, status = check(hosts, *asked, limit=hosts.limit)  # h7 would sleep for longer
    assert status == 1
    assert report["counts"]["silent"] == 2
    silent = found(report, "fleet-node-silent")
    assert {n for nodes in silent for n in nodes.replace("h[7-8]", "h7,h8").split(",")} == {
        "h7",
        "h8",
    }
    drift = [f for f in report["findings"] if f["condition"] == "fleet-drift"]
    assert {f["nodes"] for f in drift} == {"h6"}, drift
    assert {f["evidence"]["trait"] for f in drift} >= {"driver", "variable OMP_NUM_THREADS"}
    same = [group for group in report["groups"] if group["nodes"] == "h[1-5]"]
    assert same, report["groups"]
    assert same[0]["count"] == 5
    assert "2 × " in same[0]["traits"]["GPUs"]


def test_tree_mode_reaches_nodes_through_a_gateway(hosts: Hosts, tmp_path: Path) -> None:
    """h3 and h4 by way of h1, which has ClusterShell; it alone may be asked for them."""
    topology = tmp_path / "topology.conf"
    here = socket.gethostname().split(".")[0]
    topology.write_text(f"[routes]\n{here}: h1\nh1: h[3-4]\n")
    log = hosts.folder / "h1.log"
    before = log.read_text().count("Accepted publickey")
    report, _ = check(
        hosts,
        "--nodes",
        "h[3-4]",
        "--topology",
        str(topology),
        CLUSTERSHELL_GW_PYTHON_EXECUTABLE=sys.executable,
    )
    assert found(report, "fleet-node-silent") == {}
    assert [group["nodes"] for group in report["groups"]] == ["h[3-4]"]
    assert log.read_text().count("Accepted publickey") > before, "h1 was not asked"


def test_guide_e3_two_nodes_names_ports_and_clocks(hosts: Hosts) -> None:
    """Two nodes of `torchrun --nnodes=2 --master_addr h1 --master_port 29500`."""
    report, status = check(hosts, "--nodes", "h[1-2]", "--master-port", "29500")
    between = [f for f in report["findings"] if f["condition"].startswith("fleet-")]
    assert between == []
    assert report["counts"]["silent"] == 0
    assert status in (0, 1)  # the hosts' own findings: they share one machine

    # h2 takes h1 for itself, as an image with a copied /etc/hosts does
    place = Path("/etc/netns") / hosts.space("h2") / "hosts"
    text = place.read_text()
    place.write_text(text.replace(f"{hosts.address('h1')} h1", "127.0.1.1 h1"))
    try:
        report, status = check(hosts, "--nodes", "h[1-2]")
        names = found(report, "fleet-name-resolution")
        assert "127.0.1.1" in names["h2"]
        assert status == 1
    finally:
        place.write_text(text)


def test_a_port_that_is_taken_and_an_interface_that_is_not_there(hosts: Hosts) -> None:
    report, _ = check(hosts, "--nodes", "h[1-2]", "--master-port", "22", NCCL_SOCKET_IFNAME="ib0")
    assert found(report, "fleet-port-taken")
    assert "ib0" in found(report, "fleet-interface-missing")["h[1-2]"]


def test_a_hostfile_with_too_many_slots(hosts: Hosts, tmp_path: Path) -> None:
    hostfile = tmp_path / "hostfile"
    hostfile.write_text("h1 slots=2\nh2 slots=8\n")
    report, status = check(hosts, "--hostfile", str(hostfile))
    assert "slots=8" in found(report, "fleet-hostfile-slots")["h2"]
    assert status == 1


def test_a_node_without_python(hosts: Hosts) -> None:
    report, status = check(hosts, "--nodes", "h1", "--remote-python", "/nowhere/python3")
    assert "3.8 or newer" in found(report, "fleet-node-silent")["h1"]
    assert status == 1


def test_saved_reports_are_judged_again_and_compared(hosts: Hosts, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    live, _ = check(hosts, "--nodes", "h[1,6]", "--save", str(folder))
    again, _ = check(hosts, "--from", str(folder))
    keep = ("fleet-drift",)
    assert [f for f in again["findings"] if f["condition"] in keep] == [
        f for f in live["findings"] if f["condition"] in keep
    ]
    done = fleet(hosts, "diff", str(folder / "h1.json"), str(folder / "h6.json"))
    assert done.returncode == 1
    assert "driver: 580.95.05 -> 535.104.05" in done.stdout
    same = fleet(hosts, "diff", str(folder / "h1.json"), str(folder / "h1.json"))
    assert (same.returncode, same.stdout) == (0, "no difference\n")
    golden, status = check(hosts, "--from", str(folder), "--golden", str(folder / "h6.json"))
    assert found(golden, "fleet-drift").keys() == {"h1"}
    assert status in (0, 1)


def test_the_readers_report_fits_a_screen(hosts: Hosts) -> None:
    done = fleet(
        hosts,
        "check",
        "--nodes",
        "h[1-8]",
        "--ssh-options",
        f"-F {hosts.folder}/ssh_config",
        "--timeout",
        hosts.limit,
    )
    assert len(done.stdout.splitlines()) <= 45
    assert "h[1-5] identical" in done.stdout
    assert done.stdout.index("FAIL") < done.stdout.index("WARN")
