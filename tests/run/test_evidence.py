"""What `dsdoctor run` notes of a death besides the output: wait status, kernel, signals."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.model.run_record import PassedSignal, RunRecord
from dsdoctor.run import ending
from dsdoctor.run.notices import Notices
from dsdoctor.run.progress import Progress


@pytest.mark.parametrize(
    ("name", "kills", "cause"),
    [
        ("SIGKILL", (), None),  # by the kernel or by anybody: who knows?
        ("SIGKILL", (3, 3), "rank-killed"),
        ("SIGKILL", (3, 4), "host-oom-killed"),
        ("SIGSEGV", (), "native-crash"),
        ("SIGABRT", (), None),  # the library that aborts says why
    ],
)
def test_the_wait_status_and_the_kernels_counter_are_evidence(
    tmp_path: Path, name: str, kills: tuple[int, ...], cause: str | None
) -> None:
    notices = Notices()
    for moment, count in enumerate(kills):
        group = {"folder": "/g", "oom_kills": count}
        notices.feed({"t": float(moment), "cgroup": group}, Progress())
    ending.note_evidence(tmp_path, notices, RunRecord(status=-getattr(signal, name)))
    found = ending.diagnose(tmp_path, packs.load())
    assert (found.causes[0].condition if found and found.causes else None) == cause


#: What the kernel says when it kills a process of another job.
ELSEWHERE = """\
[7.1] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[7.2] Memory cgroup stats for /slurm/job_5:
[7.3] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/slurm/job_5,task=python,pid=7184,uid=0
[7.4] Memory cgroup out of memory: Killed process 7184 (python) total-vm:2610288kB
[7.5] I/O error, dev nvme0n1, sector 8
"""


@pytest.mark.parametrize(
    ("kills", "killed", "named"),
    [
        ((3, 3), (), False),  # another job's
        ((3, 4), (), True),
        ((3, 3), (7184,), True),  # in a control group of its own
        ((), (), True),  # nothing counts here
    ],
)
def test_a_kill_in_another_job_is_no_evidence(
    tmp_path: Path, kills: tuple[int, ...], killed: tuple[int, ...], *, named: bool
) -> None:
    notices = Notices()
    for moment, count in enumerate(kills):
        group = {"folder": "/g", "oom_kills": count}
        notices.feed({"t": float(moment), "cgroup": group, "killed": killed}, Progress())
    (tmp_path / "kernel.log").write_text(ELSEWHERE)
    sent = [PassedSignal(name="SIGTERM", time=1.0)]
    ending.note_evidence(tmp_path, notices, RunRecord(status=-signal.SIGTERM, signals=sent))
    found = ending.diagnose(tmp_path, packs.load())
    assert found is not None
    assert ("host-oom-killed" in [cause.condition for cause in found.causes]) is named
    assert "I/O error" in (tmp_path / "kernel.log").read_text()


def test_a_signal_that_dsdoctor_passed_on_is_no_crash(tmp_path: Path) -> None:
    sent = [PassedSignal(name="SIGTERM", time=1.0)]
    ending.note_evidence(tmp_path, Notices(), RunRecord(status=-signal.SIGSEGV, signals=sent))
    assert list(tmp_path.iterdir()) == []


CRASH = "[7.6] python[7185]: segfault at 8 ip 7f12 sp 7ffd error 4 in libpython3.10.so[7f12+1000]\n"


@pytest.mark.parametrize(
    ("crashed", "status", "named"),
    [
        ([], 1, False),  # another job's
        ([7185], 1, True),
        (None, 1, True),  # the numbers say nothing
        ([], -signal.SIGSEGV, True),  # it crashed before it was seen
        ([], 139, True),
    ],
)
def test_a_crash_in_another_job_is_no_evidence(
    tmp_path: Path, crashed: list[int] | None, status: int, *, named: bool
) -> None:
    notices = Notices()
    notices.feed({"t": 1.0, "crashed": crashed}, Progress())
    (tmp_path / "kernel.log").write_text(CRASH + "[7.7] nvidia 0000:3b:00.0: enabling device\n")
    ending.note_evidence(tmp_path, notices, RunRecord(status=status))
    found = ending.diagnose(tmp_path, packs.load())
    assert found is not None
    assert ("native-crash" in [cause.condition for cause in found.causes]) is named
    assert "enabling" in (tmp_path / "kernel.log").read_text()
