"""Rows of `job-left-gpu-busy`, `job-left-shm-files` and `gpu-errors-in-job`."""

from __future__ import annotations

import pytest

from dsdoctor.api import EccCounts, Gpu, GpuHealth, Gpus, JobRemains, LeftProcess, XidEvent
from dsdoctor.testing import judge
from dsdoctor_checks.cluster import gpu_errors_in_job, job_left_gpu_busy, job_left_shm_files

MIB = 1 << 20


def left(used_mib: int | None, *, certain: bool = True) -> JobRemains:
    used = None if used_mib is None else used_mib * MIB
    process = LeftProcess(
        pid=70, started=1, name="python", gpus=(1, 2), used_bytes=used, certain=certain
    )
    return JobRemains(job="7", user="ann", processes=(process,))


@pytest.mark.parametrize(
    ("remains", "expected"),
    [
        pytest.param(JobRemains(job="7"), "ok", id="the job left no process"),
        pytest.param(left(9000), "fail", id="a process of the job holds 9 GB"),
        pytest.param(left(None), "fail", id="the driver does not report what the process holds"),
        pytest.param(left(100), "warn", id="a process of the job holds an empty context"),
        pytest.param(
            left(9000, certain=False), "warn", id="a process that may be the job's holds 9 GB"
        ),
    ],
)
def test_job_left_gpu_busy(remains: JobRemains, expected: str) -> None:
    judged = judge(job_left_gpu_busy.gpus_are_released, job_remains=remains)
    assert [f.status.value for f in judged.findings] == [expected]


def test_the_process_is_named_with_its_gpus() -> None:
    (found,) = judge(job_left_gpu_busy.gpus_are_released, job_remains=left(9000)).findings
    assert found.message == (
        "job 7 has ended, but its process 70 (`python`) still uses GPUs 1 and 2 (9000 MiB)"
    )
    assert found.evidence["used_mib"] == 9000


@pytest.mark.parametrize(
    ("remains", "expected"),
    [
        pytest.param(JobRemains(job="7"), "ok", id="no file is left"),
        pytest.param(
            JobRemains(job="7", shm={"/dev/shm/sem.mp-1": 32}), "ok", id="a semaphore is left"
        ),
        pytest.param(
            JobRemains(job="7", shm={"/dev/shm/psm_1": 66 * MIB}), "warn", id="66 MiB are left"
        ),
        pytest.param(
            JobRemains(job="7", others=("8",)), "skip", id="another job of the user runs here"
        ),
    ],
)
def test_job_left_shm_files(remains: JobRemains, expected: str) -> None:
    judged = judge(job_left_shm_files.shm_is_released, job_remains=remains)
    assert [f.status.value for f in judged.findings] == [expected]


def gpu(uncorrected: int, corrected: int = 0) -> Gpus:
    health = GpuHealth(ecc_volatile_uncorrected=uncorrected, ecc_volatile_corrected=corrected)
    return Gpus(gpus=(Gpu(index=0, uuid="GPU-1", pci_bdf="0000:1b:00.0", health=health),))


def ran(*xids: XidEvent, uncorrected: int = 2) -> JobRemains:
    before = {"GPU-1": EccCounts(corrected=5, uncorrected=uncorrected)}
    return JobRemains(job="7", begun=1.0, ecc=before, xids=xids)


def xid(code: int, bdf: str = "0000:1b:00") -> XidEvent:
    return XidEvent(code=code, bdf=bdf, age_s=5.0)


@pytest.mark.parametrize(
    ("remains", "gpus", "expected"),
    [
        pytest.param(ran(), gpu(2), ["ok"], id="errors of before the job only"),
        pytest.param(ran(), gpu(3), ["warn", "ok"], id="an uncorrected error while it ran"),
        pytest.param(ran(), gpu(0), ["ok"], id="the driver was loaded anew since the prolog"),
        pytest.param(ran(xid(31)), gpu(2), ["ok"], id="an Xid that a program causes"),
        pytest.param(ran(xid(94), xid(94)), gpu(2), ["warn", "ok"], id="a contained ECC error"),
        pytest.param(ran(xid(79)), gpu(2), ["warn", "ok"], id="the GPU was lost for a time"),
        pytest.param(ran(xid(79, "0000:2b:00")), gpu(2), ["ok"], id="an Xid of another GPU"),
        pytest.param(JobRemains(job="7"), gpu(3), ["skip"], id="the prolog left no note"),
    ],
)
def test_gpu_errors_in_job(remains: JobRemains, gpus: Gpus, expected: list[str]) -> None:
    judged = judge(gpu_errors_in_job.job_had_no_errors, job_remains=remains, gpus=gpus)
    assert [f.status.value for f in judged.findings] == expected


def test_corrected_errors_and_xids_of_programs_are_noted() -> None:
    judged = judge(
        gpu_errors_in_job.job_had_no_errors, job_remains=ran(xid(31)), gpus=gpu(2, corrected=9)
    )
    (found,) = judged.findings
    assert found.evidence["noted"] == {"GPU 0 corrected memory errors": 4, "GPU 0 Xid 31": 1}
