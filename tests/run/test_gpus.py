"""Jobs on simulated GPUs whose state changes while they run: NVML is the fake one, all else is real.

Each test waits for what dsdoctor says, then lets the job end.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.probes import children
from dsdoctor.run import gpus
from tests.nvml import fakenvml, scenarios
from tests.run.support import folder_of, python, record, run, running, wait_for

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.skipif(fakenvml.find_compiler() is None, reason="needs a C compiler"),
]

#: Ends when a file is written, with the status that it holds.
JOB = """
import os, sys, time
print("steps: 1 loss: 2.0", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
sys.exit(int(open(sys.argv[1]).read()))
"""
SAMPLER = Path(children.__path__[0]) / "watch_gpus.py"
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
        _, rest = child.communicate(timeout=200)
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


def _trouble_on_gpu_0(scenario: Any) -> None:
    """What another job does to its GPU: full, hot, and then an Xid."""
    card = scenario["gpus"][0]
    card.update(event_reasons=0x40, memory_used=card["memory_total"])
    scenario["xid_events"] = [{"gpu": 0, "code": 79}, {"gpu": 1, "code": 31}]


def test_the_gpu_of_another_job_is_neither_sampled_nor_commented_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    said = watched(machine, _trouble_on_gpu_0, "GPU 1 at PCI", 0)
    assert not any("GPU 0" in line or "Xid 79" in line for line in said)
    found = record(machine.folder)
    assert (found["gpus"], found["gpus_chosen_by"]) == ([1], "`CUDA_VISIBLE_DEVICES=1`")
    assert set(found["figures"]["peak_gpu_bytes"]) == {"1"}
    shown = run(machine.folder, "show", "last").stdout
    assert "GPUs      1 (`CUDA_VISIBLE_DEVICES=1`)" in shown


def _first_sample(scenario: Any, folder: Path, *words: str) -> dict[str, Any]:
    """The first line of the sampling child."""
    with subprocess.Popen(
        [sys.executable, str(SAMPLER), "30", *words],
        env={**os.environ, **fakenvml.environment(scenario, folder)},
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        child.kill()
    found: dict[str, Any] = json.loads(line)
    return found


def _uuid(index: int) -> str:
    found: str = scenarios.rtx_3090_x2_nvlink()["gpus"][index]["uuid"]
    return found


@pytest.mark.parametrize(
    ("words", "indices"),
    [
        ((), [0, 1]),
        (("all",), [0, 1]),
        (("only:1,0",), [1, 0]),
        (("only:1,7,0",), [1]),
        (("only:-1",), []),
        (("only:",), []),
        (("only:NoDevFiles",), []),
        (("only:{uuid}",), [1]),
        (("only:{start}",), [1]),
        (("not:0",), [1]),
        (("job:1",), [1]),
        (("job:6,7",), [0, 1]),
    ],
)
def test_a_selector_chooses_as_cuda_does(
    words: tuple[str, ...], indices: list[int], tmp_path: Path
) -> None:
    uuid = _uuid(1)
    short = next(uuid[:n] for n in range(8, len(uuid)) if not _uuid(0).startswith(uuid[:n]))
    given = [word.format(uuid=uuid, start=short) for word in words]
    found = _first_sample(scenarios.rtx_3090_x2_nvlink(), tmp_path, *given)
    assert sorted(row["index"] for row in found["gpus"]) == sorted(indices)
    assert len(found["others"]) == 2 - len(indices)
    assert found["unsure"] is False


def test_memory_of_a_mig_device_is_its_own(tmp_path: Path) -> None:
    scenario = scenarios.a100_mig()
    slices = [one for one in scenario["gpus"][0]["mig_devices"] if one]
    whole = _first_sample(scenario, tmp_path)["gpus"][0]["total"]
    (row,) = _first_sample(scenario, tmp_path, f"only:{slices[1]['uuid']}")["gpus"]
    assert (row["index"], row["uuid"]) == (0, slices[1]["uuid"])
    assert row["total"] == slices[1]["memory_total"] < whole
    both = f"only:{slices[0]['uuid']},{slices[1]['uuid']}"
    (row,) = _first_sample(scenario, tmp_path, both)["gpus"]
    assert row["total"] == slices[0]["memory_total"] + slices[1]["memory_total"]


@pytest.mark.parametrize(("order", "count"), [((), 2), (("pci",), 1)])
def test_numbers_of_unlike_gpus_are_certain_in_pci_order_only(
    order: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    found = _first_sample(scenarios.mixed_a100_3090(), tmp_path, "only:1", *order)
    assert len(found["gpus"]) == count
    assert found["unsure"] is (count == 2)


DEEPSPEED = ["deepspeed"]


@pytest.mark.parametrize(
    ("command", "env", "selector"),
    [
        (["python", "t.py"], {}, "all"),
        (["env", "CUDA_VISIBLE_DEVICES=3", "python", "t.py"], {"CUDA_VISIBLE_DEVICES": "1"}, "only:3"),
        (["python", "t.py"], {"CUDA_VISIBLE_DEVICES": ""}, "only:"),
        (["python", "t.py"], {"CUDA_VISIBLE_DEVICES": "MIG-1/2"}, "only:MIG-1/2"),
        (["python", "t.py"], {"SLURM_JOB_GPUS": "1"}, "all"),
        (["python", "t.py"], {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0-1,3"}, "job:0,1,3"),
        (["python", "t.py"],
         {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0-3", "SLURM_STEP_GPUS": "2"}, "job:2"),
        (["python", "t.py"],
         {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2", "CUDA_VISIBLE_DEVICES": "0"}, "only:0"),
        ([*DEEPSPEED, "t.py"], {"CUDA_VISIBLE_DEVICES": "2"}, "only:2"),
        ([*DEEPSPEED, "--include", "localhost:4,5", "t.py"], {"CUDA_VISIBLE_DEVICES": "2"}, "only:4,5"),
        ([*DEEPSPEED, "--include=far:0@{here}:6", "t.py"], {}, "only:6"),
        ([*DEEPSPEED, "--include", "far:4,5", "t.py"], {}, "all"),
        ([*DEEPSPEED, "--exclude", "localhost:0", "t.py"], {}, "not:0"),
        ([*DEEPSPEED, "--exclude", "localhost", "t.py"], {}, "only:"),
        ([*DEEPSPEED, "--num_gpus", "2", "t.py"], {"CUDA_VISIBLE_DEVICES": "6,7"}, "only:0,1"),
        ([*DEEPSPEED, "--hostfile", "{hosts}", "t.py"], {}, "only:0,1,2"),
        ([*DEEPSPEED, "--hostfile", "{hosts}", "--include", "localhost", "t.py"], {}, "only:0,1,2"),
        (["srun", "-n", "1", *DEEPSPEED, "--include", "localhost:1", "t.py"], {}, "only:1"),
        (["accelerate", "launch", "--gpu_ids", "1,2", "t.py"], {}, "only:1,2"),
        (["accelerate", "launch", "--gpu-ids", "all", "t.py"], {"CUDA_VISIBLE_DEVICES": "1"}, "only:1"),
        (["torchrun", "--nproc-per-node", "2", "t.py"], {}, "all"),
    ],
)  # fmt: skip
def test_what_a_command_can_see(
    command: list[str], env: dict[str, str], selector: str, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("far slots=8\nlocalhost slots=3\n")
    words = [word.format(here=socket.gethostname(), hosts=hosts) for word in command]
    found = gpus.choose(words, env)
    assert found.selector == selector
    assert found.by_pci is False
    assert gpus.choose(words, {**env, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).by_pci is True


def _watch_host() -> Any:
    spec = importlib.util.spec_from_file_location("watch_host", SAMPLER.with_name("watch_host.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_xid_in_the_kernel_log_of_another_gpu_is_left_out() -> None:
    module = _watch_host()
    watcher = module.Gpus.__new__(module.Gpus)
    watcher.latest = {"others": ["0000:3b:00"]}
    xid = "[1.0] NVRM: Xid (PCI:0000:{}:00): 79, pid=1, GPU has fallen off the bus."
    assert watcher.is_other(xid.format("3b"))
    assert not watcher.is_other(xid.format("af"))
    assert not watcher.is_other("[1.0] nvidia-nvswitch0: SXid (PCI:0000:3b:00.0): 20034, Fatal")


def test_processes_that_the_kernel_names_are_the_jobs_or_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = _watch_host()
    monkeypatch.setattr(module, "FIRST_NAMESPACE", str(Path("/proc/self/ns/pid").readlink()))
    ranks = module.Ranks(os.getpid())
    ranks.look()
    killed = "[1.0] Memory cgroup out of memory: Killed process {} (python) total-vm:2610288kB"
    fault = "[1.0] python[{}]: segfault at 0 ip 00007f error 4 in libc.so.6[7f+1000]"
    trap = "[1.0] traps: python[{}] general protection fault ip:7f sp:7f error:0 in x.so[7f+1000]"
    for pattern, line in ((module.KILLED, killed), (module.CRASHED, fault), (module.CRASHED, trap)):
        lines = [line.format(os.getpid()), line.format(1), "[1.0] I/O error, dev sda, sector 8"]
        assert ranks.named(pattern, lines) == [os.getpid()]
    monkeypatch.setattr(module, "FIRST_NAMESPACE", "pid:[1]")  # numbers of another namespace
    ranks = module.Ranks(os.getpid())
    ranks.look()
    assert ranks.named(module.KILLED, [killed.format(os.getpid())]) is None
