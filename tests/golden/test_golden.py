"""Whole reports of whole machines, word by word. `UPDATE_GOLDEN=1 pytest tests/golden` rewrites."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import (
    Compiler,
    Compilers,
    DeepTrial,
    ExtensionTrial,
    Fact,
    MemoryDetail,
    OsInfo,
    Package,
    Packages,
    Patient,
    Place,
    Quota,
    Resources,
    Status,
    Storage,
    TriedCollective,
    TriedGpu,
    TriedPair,
)
from dsdoctor.judge import judge
from dsdoctor.model.facts.python import DeepSpeedLive, ImportOutcome, PatientChoice
from dsdoctor.model.report import Report, Verdict, exit_code
from dsdoctor.model.snapshot import Snapshot, differences, from_json, of, redacted
from dsdoctor.report import machine_readable, text
from tests.checks import machines

FOLDER = Path(__file__).parent
REGISTRY = packs.load(builtin_only=True)
GIB = 2**30
PYTHON = "/opt/train/bin/python"
GOOD_IMPORT = ImportOutcome(ok=True, seconds=2.0)


def workstation(
    card: str = "4090", *, driver: str = "580.95.05", code: int | None = None, **torch: Any
) -> list[Fact]:
    """A machine with two GPUs of a kind, as every vital probe would read it.

    `code` is the CUDA error that torch meets at start, None for a machine that works.
    """
    build = machines.torch(**torch)
    return [
        machines.LINUX,
        machines.kernel(driver),
        machines.nvml(driver),
        machines.smi(),
        machines.libcuda(driver),
        machines.gpus(card, card),
        machines.env(PATH="/opt/train/bin:/usr/bin"),
        machines.toolkits(machines.toolkit(build.cuda)),
        machines.DEEPSPEED,
        build,
        machines.live(
            code,
            works=code is None,
            devices=(machines.device(card), machines.device(card, 1)) if code is None else (),
            arch_list=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
        ),
        DeepSpeedLive(imported=GOOD_IMPORT, accelerator="cuda"),
        PatientChoice(executable=PYTHON, chosen_by="VIRTUAL_ENV", why="it holds torch"),
        Patient(executable=PYTHON, chosen_by="VIRTUAL_ENV", version="3.11.7", kind="venv"),
        Packages(packages={"numpy": Package(name="numpy", version="2.3.0")}),
        Compilers(
            cxx=Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="12.2.0"),
            cc=Compiler(command="cc", path="/usr/bin/cc", kind="gcc", version="12.2.0"),
            ninja="/opt/train/bin/ninja",
        ),
        Resources(
            cpus_logical=32,
            cpus_usable=32,
            memory_total_bytes=256 * GIB,
            memory_available_bytes=240 * GIB,
            shm_total_bytes=128 * GIB,
            shm_free_bytes=128 * GIB,
            limit_nofile=1048576,
        ),
        *usual_places_and_trials(),
    ]


def usual_places_and_trials() -> list[Fact]:
    """What storage, memory and `--deep` find on a machine with nothing wrong.

    The home is on NFS, models are on a mount that nobody may write, some swap and huge pages are in
    use, and /dev/shm holds segments of running jobs: all of it healthy.
    """
    home: dict[str, Any] = {"file_system": "nfs4", "network": True, "mount": "/home", "kind": "dir"}
    room: dict[str, Any] = {"total_bytes": 4096 * GIB, "free_bytes": 900 * GIB}
    models: dict[str, Any] = {
        "file_system": "squashfs",
        "mount": "/models",
        "read_only": True,
        "writable": False,
    }
    return [
        Storage(
            places=(
                Place(purpose="temporary files", path="/tmp", kind="dir", **room),
                Place(purpose="built extensions", path="/home/me/.cache", **home, **room),
                Place(purpose="Triton cache", path="/home/me/.triton", **home, **room),
                Place(purpose="Hugging Face cache", path="/models", total_bytes=9, **models),
            ),
            quotas=(
                Quota(device="nas:/home", used_bytes=20 * GIB, soft_bytes=90 * GIB, used_files=9),
            ),
        ),
        MemoryDetail(
            hugepages_bytes=2 * GIB,
            hugepages_free_bytes=2 * GIB,
            swap_total_bytes=8 * GIB,
            swap_free_bytes=GIB,
            shm_files=40,
        ),
        DeepTrial(
            gpus=tuple(TriedGpu(name=name, kernel_ok=True, alloc_ok=True) for name in "01"),
            pairs=(TriedPair(a="0", b="1", peer=False), TriedPair(a="1", b="0", peer=False)),
            collective=TriedCollective(backend="nccl", ranks=2, ok=True),
        ),
        ExtensionTrial(ok=True, seconds=20),
    ]


def report_on(snapshot: Snapshot) -> Report:
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    report.seconds = 1.9
    report.facts_as_of = "2026-11-21"
    return report


MACHINES = {
    "healthy": workstation(),
    "driver-too-old": workstation(
        "H100", driver="535.104.05", code=35, version="2.11.0", cuda="13.0"
    ),
    "no-gpu": [machines.LINUX, machines.NO_GPU, machines.torch("2.13.0+cpu", None)],
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("form", ["txt", "json", "xml", "github"])
def test_report(name: str, form: str) -> None:
    report = report_on(of(MACHINES[name]))
    made = {
        "txt": lambda: text.render(report, width=100),
        "json": lambda: machine_readable.json(report),
        "xml": lambda: machine_readable.junit(report),
        "github": lambda: machine_readable.github(report),
    }[form]()
    file = FOLDER / f"{name}.{form}"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(made, encoding="utf-8")
    assert made == file.read_text(encoding="utf-8")


def test_a_healthy_machine_is_silent() -> None:
    report = report_on(of(MACHINES["healthy"]))
    loud = [f for f in report.findings if f.status not in (Status.OK, Status.SKIP)]
    assert loud == []
    assert report.verdict is Verdict.HEALTHY
    assert exit_code(report) == 0


def test_a_machine_without_gpus_whose_torch_is_built_for_the_cpu_gets_no_finding() -> None:
    report = report_on(of(MACHINES["no-gpu"]))
    quiet = (Status.SKIP, Status.OK)
    assert [one.condition for one in report.findings if one.status not in quiet] == []
    (said,) = [one.message for one in report.findings if one.condition == "no-gpu-visible"]
    assert said == "torch is built for the CPU, and nothing asks for a GPU"


@pytest.mark.parametrize("name", MACHINES)
def test_a_snapshot_survives_its_file(name: str) -> None:
    before = of(MACHINES[name])
    after = from_json(before.to_json(), "file")
    assert after == before
    assert differences(before, after) == []
    assert machine_readable.json(report_on(after)) == machine_readable.json(report_on(before))


def test_every_old_version_can_be_read() -> None:
    for file in sorted(FOLDER.glob("snapshot-v*.json")):
        assert from_json(file.read_bytes(), file.name).facts
    assert (FOLDER / "snapshot-v1.json").exists()


def test_redaction_changes_no_verdict() -> None:
    snapshot = of(MACHINES["driver-too-old"])
    plain, hidden = report_on(snapshot), report_on(redacted(snapshot))
    assert plain.verdict is hidden.verdict
    assert "node" not in redacted(snapshot).to_json().decode().split('"hostname":')[1][:20]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    report = report_on(of(MACHINES["driver-too-old"]))
    for line in text.lines(report, width=width):
        words = re.sub(r"`[^`]*`", lambda command: command[0].replace(" ", "_"), line.text).split()
        longest = max(map(len, words), default=0)  # words and commands stay whole
        assert len(line.text) <= max(width, longest + 12)


def test_control_characters_never_reach_the_terminal() -> None:
    facts = [fact for fact in MACHINES["no-gpu"] if fact is not machines.LINUX]
    evil = OsInfo(system="Linux", release="6", machine="x86_64", hostname="\x1b[31mred\x07")
    assert "\x1b" not in text.render(report_on(of([*facts, evil])))
