"""What a worker loads and reads before it judges: as little as possible, and nothing too little."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs, probes
from dsdoctor.hook import judging, node_reading
from dsdoctor.hook.rundir import NODE_FILE, SNAPSHOT_FILE
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.gpu import Gpu, Gpus, NvmlError
from dsdoctor.model.facts.job_end import JobEnd
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs import places
from dsdoctor.packs.registry import Problem, Registry, gives, needs

LOST = NvmlError(call="nvmlDeviceGetUUID", code=15, name="GPU_IS_LOST", message="GPU is lost")


class Read(node_reading.NodeReading):
    """The reading of a node with these GPUs, which does not look at this machine."""

    def __init__(self, *errors: NvmlError | None, gpus: tuple[Gpu, ...] = ()) -> None:
        self.gpus = gpus or tuple(
            Gpu(index=number, uuid=f"GPU-{number}", error=error)
            for number, error in enumerate(errors)
        )
        super().__init__()

    def _read(self) -> Snapshot:
        snapshot = Snapshot(dsdoctor="0")
        snapshot.put(RunNeeds(quick=True))
        snapshot.put(Gpus(gpus=self.gpus))
        return snapshot


def listed(*minors: int) -> Read:
    """GPUs as NVML lists them, by the numbers of their device files."""
    return Read(
        gpus=tuple(
            Gpu(index=index, minor_number=minor, uuid=f"GPU-{minor}")
            for index, minor in enumerate(minors)
        )
    )


@pytest.fixture(autouse=True)
def _no_other_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "only_builtin", lambda: True)


def task(folder: Path, mode: str = "node", **more: Any) -> dict[str, Any]:
    named = {"ignore": [], "limits": {}, "gpus": [], "result": "own.json", "until": 0.0}
    return {"mode": mode, "folder": str(folder), "key": "k", **named, **more}


def found(folder: Path, name: str = NODE_FILE) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / name).read_text())
    return value


@pytest.mark.parametrize("units", [judging.node_units, judging.ended_units])
def test_a_gate_judges_the_same_conditions_whether_it_loads_few_or_all(units: Any) -> None:
    everything = packs.load(builtin_only=True)
    few = packs.load_scope(Scope.NODE)
    assert [unit.condition for unit in units(few, ())] == [
        unit.condition for unit in units(everything, ())
    ]
    assert not few.problems
    assert len(few) < len(everything) / 2


@pytest.mark.parametrize(
    ("facts", "modules", "given"),
    [
        pytest.param(node_reading.NODE_FACTS, node_reading.NODE_PROBES, set(), id="gate of a node"),
        pytest.param(
            node_reading.ENDED_FACTS, node_reading.ENDED_PROBES, {JobEnd}, id="gate after a job"
        ),
    ],
)
def test_the_probes_read_what_a_gate_needs(facts: Any, modules: Any, given: set[type]) -> None:
    makers = {kind: one for one in probes.builtin(modules) for kind in gives(one.function)}
    pending: list[type] = list(facts)
    while pending:
        kind = pending.pop()
        assert kind in makers, kind
        wanted = [need.kind for need in needs(makers[kind].function)]
        pending += [one for one in wanted if issubclass(one, Fact) and one not in given]


def test_a_sound_node_needs_few_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "load", None)
    assert judging.perform(task(tmp_path), Read(None, None)) == 0
    assert found(tmp_path)["counts"]["fail"] == 0
    assert found(tmp_path)["uuids"] == {"0": "GPU-0", "1": "GPU-1"}


@pytest.mark.parametrize(
    ("container", "limit", "blamed"),
    [
        pytest.param(None, None, {"host-memory-low", "shm-too-small"}, id="the-node's-own"),
        pytest.param("kubernetes", 1 << 29, set(), id="the-monitor-runs-in-a-pod"),
        pytest.param(None, 1 << 29, {"shm-too-small"}, id="a-job-asked-for-little-memory"),
    ],
)
def test_what_a_job_or_a_monitors_pod_asked_for_is_no_fault_of_the_node(
    container: str | None, limit: int | None, blamed: set[str], tmp_path: Path
) -> None:
    class Small(Read):
        def _read(self) -> Snapshot:
            snapshot = super()._read()
            snapshot.put(
                Resources(
                    cpus_logical=8,
                    cpus_usable=8,
                    memory_total_bytes=64 << 30,
                    memory_available_bytes=1 << 29,
                    memory_limit_bytes=limit,
                    shm_total_bytes=64 << 20,
                )
            )
            snapshot.put(
                OsInfo(
                    system="Linux", release="6", machine="x86_64", hostname="n", container=container
                )
            )
            return snapshot

    assert judging.perform(task(tmp_path), Small(None, None)) == 0
    failed = {row["condition"] for row in found(tmp_path)["findings"] if row["status"] == "fail"}
    assert failed == blamed


def test_a_verdict_is_as_old_as_its_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver hung in the middle: a hook that began meanwhile must not take it for a new one."""
    stamps = iter([100.0, *range(200, 300)])
    monkeypatch.setattr(judging, "time", types.SimpleNamespace(time=lambda: next(stamps)))
    assert judging.perform(task(tmp_path), Read(None, None)) == 0
    assert found(tmp_path)["time"] == 100.0


def test_a_failure_is_named_with_all_conditions_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, loaded = packs.load, []

    def everything(*args: Any, **more: Any) -> Registry:
        loaded.append(more)
        return load(*args, **more)

    monkeypatch.setattr(packs, "load", everything)
    assert judging.perform(task(tmp_path), Read(None, LOST)) == 0
    assert loaded == [{"only_root_owned": True}]
    assert [row["condition"] for row in found(tmp_path)["findings"]] == ["gpu-lost"]
    # the same snapshot for the GPU that is sound
    assert (tmp_path / SNAPSHOT_FILE).exists()
    assert judging.perform(task(tmp_path, "judge", gpus=["0"]), None) == 0
    assert found(tmp_path, "own.json")["findings"] == []


def test_settings_may_name_conditions_of_every_scope(tmp_path: Path) -> None:
    ignored = task(tmp_path, ignore=["gpu-lost", "torch-missing", "no-such-check"])
    assert judging.perform(ignored, Read(LOST)) == 0
    assert found(tmp_path)["findings"] == []
    (problem,) = found(tmp_path)["problems"]
    assert problem.startswith("`no-such-check` (`--ignore`, or `ignore` of the configuration)")


def test_without_a_condition_no_node_is_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Registry(problems=[Problem("builtin", "SyntaxError: in gpu_lost.py")])
    monkeypatch.setattr(packs, "load_scope", lambda _scope: broken)
    with pytest.raises(RuntimeError, match=r"SyntaxError: in gpu_lost\.py"):
        judging.perform(task(tmp_path), Read())
    assert not (tmp_path / NODE_FILE).exists()


def test_what_reading_raises_is_raised_where_it_is_asked_for() -> None:
    class Broken(node_reading.NodeReading):
        def _read(self) -> Snapshot:
            raise OSError("no more threads")

    with pytest.raises(OSError, match="no more threads"):
        Broken().snapshot()


def test_a_module_without_a_readable_source_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pack_for_gate"
    (package / "gpu").mkdir(parents=True)
    for name in ("__init__.py", "gpu/__init__.py", "gpu/other.py"):
        (package / name).write_text('"""Words."""\n')
    (package / "gpu" / "node.py").write_text('"""Scope.NODE"""\n')
    (package / "gpu" / "unread.py").symlink_to(tmp_path / "nowhere.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="unread"):
        packs.load_package("few", "pack_for_gate", "here", b"Scope.NODE")
    (package / "gpu" / "unread.py").unlink()
    packs.load_package("few", "pack_for_gate", "here", b"Scope.NODE")
    assert "pack_for_gate.gpu.node" in sys.modules
    assert "pack_for_gate.gpu.other" not in sys.modules


def test_a_hook_starts_its_worker_without_what_the_worker_needs() -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            "import sys, dsdoctor.hook.entry, dsdoctor.process; print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"msgspec", "dsdoctor.api"} & set(told.stdout.split())


@pytest.mark.parametrize(
    ("numbers", "minors", "conditions"),
    [
        pytest.param(("2", "3"), (2, 3), [], id="each GPU of the job"),
        pytest.param(("2", "3"), (3,), ["gpu-count-unexpected"], id="one of them is gone"),
        pytest.param(("0",), (0,), [], id="the first GPU of the node"),
        pytest.param(("0", "3"), (3,), ["gpu-count-unexpected"], id="the first one is gone"),
    ],
)
def test_in_the_cgroup_of_a_job_gpus_are_known_by_their_device_files(
    tmp_path: Path, numbers: tuple[str, ...], minors: tuple[int, ...], conditions: list[str]
) -> None:
    """NVML lists the job's GPUs alone there, from 0 (PrologFlags=RunInJob, ConstrainDevices)."""
    given = task(tmp_path, "ended", gpus=list(numbers), in_job=True, ended={})
    assert judging.perform(given, listed(*minors)) == 0
    judged = found(tmp_path, "own.json")
    assert [row["condition"] for row in judged["findings"]] == conditions
    assert judged["uuids"] == {str(minor): f"GPU-{minor}" for minor in minors}


def test_outside_a_job_gpus_are_known_by_nvmls_order(tmp_path: Path) -> None:
    assert judging.perform(task(tmp_path), listed(1, 0)) == 0
    assert found(tmp_path)["uuids"] == {"0": "GPU-1", "1": "GPU-0"}
