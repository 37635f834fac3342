"""Jobs on simulated GPUs whose state changes while they run: NVML is the fake one, all else is real.

Each test waits for what dsdoctor says, then lets the job end.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import fakenvml, scenarios
from tests.run.support import folder_of, python, record, running, wait_for

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.skipif(fakenvml.find_compiler() is None, reason="needs a C compiler"),
    pytest.mark.timeout(90),
]

#: Ends when a file is written, with the status that it holds.
JOB = """
import os, sys, time
print("steps: 1 loss: 2.0", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
sys.exit(int(open(sys.argv[1]).read()))
"""
LOST = 15  # NVML_ERROR_GPU_IS_LOST
Change = Callable[[Any], Any]


class Machine:
    """Two GPUs, and a job on them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.scenario: Any = copy.deepcopy(scenarios.rtx_3090_x2_nvlink())
        for name, value in fakenvml.environment(self.scenario, folder).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("FAKE_NVML_LIVE", "1")

    def become(self, change: Change) -> None:
        """Changes the machine under the job."""
        change(self.scenario)
        fresh = self.folder / "fresh.conf"
        fakenvml.write_scenario(fresh, self.scenario)
        fresh.replace(os.environ["FAKE_NVML"])

    def sampled(self) -> bool:
        """Whether the GPUs were seen."""
        paths = list((self.folder / "runs").glob("*/samples.jsonl"))
        rows = paths[0].read_text().splitlines() if paths else []
        return any(json.loads(row)["gpus"] for row in rows[:-1])

    def end(self, status: int) -> None:
        """Lets the job end."""
        fresh = self.folder / "status"
        fresh.write_text(str(status))
        fresh.rename(self.folder / "end")


@pytest.fixture(name="machine")
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def watched(machine: Machine, change: Change | None, notice: str, status: int) -> list[str]:
    """Runs the job, changes the machine once it is seen; what dsdoctor said until the end."""
    command = [*python(JOB), str(machine.folder / "end")]
    with running(machine.folder, "--", *command) as child:
        wait_for(machine.sampled)
        if change is not None:
            machine.become(change)
        lines: list[str] = []
        assert child.stderr is not None
        while notice and not any(notice in line for line in lines):
            lines.append(child.stderr.readline())
            assert lines[-1], "dsdoctor ended without it"
        machine.end(status)
        _, rest = child.communicate(timeout=60)
        assert child.returncode == status
    return [*lines, *rest.splitlines()]


def test_sound_gpus_are_sampled_and_not_commented_on(machine: Machine) -> None:
    (line,) = watched(machine, None, "", 0)
    assert "peak GPU memory" in line
    assert "notice" not in line
    assert set(record(machine.folder)["figures"]["peak_gpu_bytes"]) == {"0", "1"}


def _lose(scenario: Any) -> None:
    scenario["fail"] = {"*@1": LOST}


def test_a_gpu_that_is_lost_is_said_at_once_and_is_the_cause(machine: Machine) -> None:
    said = watched(machine, _lose, "GPU 1 is lost", 1)
    assert any("cause: gpu-hardware-fault" in line for line in said)
    evidence = (folder_of(machine.folder) / "gpus.log").read_text()
    assert "GPU 1" in evidence
    assert "GPU 0" not in evidence


@pytest.mark.parametrize(("code", "caused"), [(79, True), (31, False)])
def test_an_xid_is_said_at_once(machine: Machine, code: int, *, caused: bool) -> None:
    """Xid 31 is a fault of the program: it is said, and the hardware is not blamed for it."""

    def change(scenario: Any) -> None:
        scenario["xid_events"] = [{"gpu": 1, "code": code}]

    said = watched(machine, change, f"reports Xid {code}", 1)
    (line,) = [line for line in said if "reports Xid" in line]
    bdf = scenarios.bdf(1).rpartition(".")[0].lower()[-10:]
    assert line.startswith(f"dsdoctor: GPU 1 at PCI {bdf} reports Xid {code}")
    assert any("cause: gpu-hardware-fault" in line for line in said) == caused


def test_heat_that_slows_a_gpu_is_said_and_counted(machine: Machine) -> None:
    def change(scenario: Any) -> None:
        scenario["gpus"][0]["event_reasons"] = 0x40 | 0x4

    said = watched(machine, change, "GPU 0 is throttled (hw-thermal)", 0)
    assert "throttled for" in said[-1]
    assert set(record(machine.folder)["figures"]["throttled_seconds"]) == {"0"}


def test_a_power_cap_alone_is_how_a_busy_gpu_runs(machine: Machine) -> None:
    machine.become(lambda scenario: scenario["gpus"][0].update(event_reasons=0x4))
    (line,) = watched(machine, None, "", 0)
    assert "notice" not in line


def test_new_ecc_errors_are_said(machine: Machine) -> None:
    for gpu in machine.scenario["gpus"]:
        gpu["ecc_errors"] = {"volatile": {"uncorrected": 2}, "aggregate": {"uncorrected": 2}}
    machine.become(lambda _: None)

    def change(scenario: Any) -> None:
        scenario["gpus"][1]["ecc_errors"] = {"volatile": {"uncorrected": 3}}

    said = watched(machine, change, "GPU 1 reports new uncorrectable ECC errors", 0)
    assert not any("GPU 0 reports" in line for line in said)


def test_the_watcher_of_gpus_leaves_nothing_behind(machine: Machine) -> None:
    watched(machine, None, "", 0)
    mark = f"FAKE_NVML={machine.folder}".encode()
    found = [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _read(path)]
    assert found == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended, or is another user's
        return b""
