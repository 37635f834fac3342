"""What the driver reports of a GPU while the ranks run: seen, sorted by whose GPU, named first."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.model.smoke import PHASES, Event, SmokeReport
from dsdoctor.smoke import request, verdict
from dsdoctor.smoke.attempt import Attempt, GpuError
from dsdoctor.smoke.gpus import GpuWatch, seen
from dsdoctor.smoke.track import Tracker
from tests.nvml import fakenvml, scenarios
from tests.run.support import wait_for
from tests.smoke import test_plan
from tests.smoke.test_reference import attempt

UUIDS = ("GPU-00000000-aaaa", "GPU-00000000-bbbb")


def sample(*xids: tuple[int, int], lost: int | None = None) -> dict[str, Any]:
    """Both GPUs, with Xids as (GPU, code)."""
    return {
        "gpus": [
            {"index": i, "uuid": uuid, "bdf": f"0000:0{i}:00", "lost": i == lost}
            for i, uuid in enumerate(UUIDS)
        ],
        "xids": [{"gpu": gpu, "bdf": f"0000:0{gpu}:00", "code": code} for gpu, code in xids],
    }


def test_an_xid_of_the_hardware_is_evidence_and_one_of_the_program_is_only_said() -> None:
    assert seen(iter([sample((1, 79)), sample((0, 31)), sample((1, 79))]), UUIDS) == (
        GpuError(
            words="GPU 1 at PCI 0000:01:00 reports Xid 79",
            line="NVRM: Xid (PCI:0000:01:00): 79, GPU 1, seen by NVML",
        ),
        GpuError(words="GPU 0 at PCI 0000:00:00 reports Xid 31"),
    )


def test_a_lost_gpu_is_evidence() -> None:
    assert seen(iter([sample(lost=1), sample(lost=1)]), UUIDS) == (
        GpuError(
            words="GPU 1 is lost: the driver no longer reaches it",
            line="NVML: GPU 1 (PCI:0000:01:00): GPU is lost",
        ),
    )


def test_a_gpu_that_others_use_says_nothing_about_this_run() -> None:
    rows = [sample((1, 79)), sample(lost=1)]
    assert seen(iter(rows), [UUIDS[0].upper()]) == ()
    assert len(seen(iter(rows), ())) == 2


def gone(folder: Path, reason: str, errors: tuple[GpuError, ...]) -> SmokeReport:
    """One rank that ended in its steps."""
    plan = request.plan(request.SmokeOptions(), test_plan.seen)
    began = time.time() - 30
    made = Attempt(
        plan=plan, argv=(), env={}, tracker=Tracker(folder, plan.world), folder=folder,
        reason=reason, returncode=1, seconds=30.0, started=began, gpu_errors=errors,
    )  # fmt: skip
    for progress in made.tracker.ranks:
        for name in PHASES[: PHASES.index("steps")]:
            progress.events.append(
                Event(rank=progress.rank, phase=name, state="ok", time=began, seconds=1.0)
            )
        progress.died = began + 20
    return verdict.report(made, packs.load(builtin_only=True))


def test_the_driver_s_word_comes_before_that_of_the_ranks(tmp_path: Path) -> None:
    errors = seen(iter([sample((1, 79))]), UUIDS)
    report = gone(tmp_path, "rank-died", errors)
    assert [cause.condition for cause in report.causes] == ["gpu-hardware-fault", "rank-killed"]
    assert errors[0].line in report.causes[0].evidence
    assert report.summary == errors[0].words


def test_without_a_word_of_the_driver_nothing_is_added(tmp_path: Path) -> None:
    report = gone(tmp_path, "rank-died", ())
    assert [cause.condition for cause in report.causes] == ["rank-killed"]


def test_a_cause_that_both_name_is_named_once_with_the_ranks_lines(tmp_path: Path) -> None:
    said = "CUDA error: uncorrectable ECC error encountered"
    (tmp_path / "rank-0.log").write_text(f"torch.AcceleratorError: {said}\n")
    errors = seen(iter([sample((0, 48))]), UUIDS)
    report = gone(tmp_path, "rank-failed", errors)
    conditions = [cause.condition for cause in report.causes]
    assert conditions[0] == "gpu-hardware-fault"
    assert conditions.count("gpu-hardware-fault") == 1
    assert any(said in line for line in report.causes[0].evidence)


def test_an_xid_during_a_run_that_passes_is_a_warning(tmp_path: Path) -> None:
    made = attempt(tmp_path, 431.0, count=2, device="NVIDIA H200", size=1 << 20)
    made.gpu_errors = seen(iter([sample((0, 94))]), UUIDS)
    report = verdict.report(made, packs.load(builtin_only=True))
    assert (report.verdict, report.causes) == ("pass", ())
    assert "GPU 0 at PCI 0000:00:00 reports Xid 94" in report.warnings


@pytest.mark.system
def test_events_of_the_driver_reach_the_run(tmp_path: Path) -> None:
    """NVML is the simulated one; the sampling child is real."""
    scenario = scenarios.rtx_3090_x2_nvlink()
    scenario["xid_events"] = [{"gpu": 1, "code": 79}]
    env = {**os.environ, **fakenvml.environment(scenario, tmp_path)}
    watch = GpuWatch(tmp_path, env)
    wait_for(lambda: '"code": 79' in (tmp_path / "gpus.jsonl").read_text())
    (error,) = watch.end([gpu["uuid"] for gpu in scenario["gpus"]])
    bdf = scenarios.bdf(1).rpartition(".")[0].lower()[-10:]
    assert error.line == f"NVRM: Xid (PCI:{bdf}): 79, GPU 1, seen by NVML"
    assert error.words == f"GPU 1 at PCI {bdf} reports Xid 79"


def test_a_machine_without_nvml_is_watched_in_vain(tmp_path: Path) -> None:
    watch = GpuWatch(tmp_path, {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(tmp_path)})
    assert watch.end(UUIDS) == ()
