"""`fleet check` over real ssh to hosts that print too much, never end, or send the wrong report."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dsdoctor.fleet.bundle import collector
from tests.fleet.hosts import MARKS, Hosts, with_gpus
from tests.nvml import scenarios

pytestmark = MARKS
#: What ssh runs in place of the command, which it passes in a variable.
COMMAND = 'bash -c "$SSH_ORIGINAL_COMMAND"'


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("hosts")
    made = with_gpus(folder, 6, 76)
    hanging: Any = scenarios.rtx_3090_x2_nvlink()
    hanging["hang"], hanging["hang_deaf"] = {"nvmlInit": 1000}, 1
    made.machine("h2", hanging)
    for name, script in {
        "h3": f"cat {folder}/h1.txt",
        "h4": f"{COMMAND}; sleep 1000",
        "h5": "yes 'no report' | tr -d '\\n'",  # no line ever ends
        "h6": "yes 'no report'",
    }.items():
        path = folder / f"{name}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
        made.force[name] = str(path)
    try:
        made.up()
        (folder / "collector.py").write_text(collector())
        words = [sys.executable, "-", "--python", sys.executable]
        begun = time.monotonic()
        own = made.run(
            "bash",
            "-c",
            f"ssh -F {folder}/ssh_config h1 {shlex.join(words)} <collector.py >h1.txt",
        )
        assert own.returncode == 0, own.stderr
        # hosts that never end are waited for; the others must have answered by then
        made.limit = str(max(25, round(8 * (time.monotonic() - begun))))
        yield made
    finally:
        made.down()


@pytest.mark.parametrize("engine", ["clustershell", "pdsh"])
def test_each_is_accounted_for_in_time_and_nothing_runs_on(hosts: Hosts, engine: str) -> None:
    if engine == "pdsh":
        assert shutil.which("pdsh"), "tests/system-deps.sh installs it"
    words = ["fleet", "check", "--nodes", "h[1-6]", "--engine", engine, "--format", "json"]
    words += ["--ssh-options", f"-F {hosts.folder}/ssh_config", "--timeout", hosts.limit]
    env = {"DSDOCTOR_PYTHON": sys.executable}
    done = hosts.run(sys.executable, "-m", "dsdoctor", *words, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == 1
    findings = report["findings"]
    silent = {f["nodes"]: f["message"] for f in findings if f["condition"] == "fleet-node-silent"}
    assert silent.keys() == {"h[5-6]"}, silent
    assert f"no answer within {hosts.limit} s" in silent["h[5-6]"]
    assert report["counts"]["silent"] == 2
    # h4 never ended, but its report is whole; what h3 sent counts as the report of h3
    whole = [g for g in report["groups"] if "2 × " in g["traits"].get("GPUs", "")]
    assert sum(group["count"] for group in whole) == 3, report["groups"]
    wrong = [f["message"] for f in findings if f["condition"] == "fleet-name-resolution"]
    assert any("`h3` resolves" in message for message in wrong), wrong
    assert {f["nodes"] for f in findings if f["condition"] == "nvml-unusable"} == {"h2"}
    deadline = time.monotonic() + 100
    while (left := ours(hosts)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []


def ours(hosts: Hosts) -> list[str]:
    """What of the collector, its children and its output still runs on the hosts."""
    return [line for line in hosts.processes() if "python" in line or " yes " in line]
