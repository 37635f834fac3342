"""What a job left on its node, read from a machine made of dictionaries."""

from __future__ import annotations

import time

import pytest

from dsdoctor.api import Gpu, Gpus, KernelLog, Missing, Why, XidEvent
from dsdoctor.host import HostError
from dsdoctor.host.door import Stat
from dsdoctor.host.fake import FakeHost
from dsdoctor.model.facts.gpu import GpuProcess
from dsdoctor.model.facts.job_end import JobEnd, JobRemains
from dsdoctor.probes.job_end import job_remains

NO_LOG = Missing(why=Why.DENIED, detail="not this user's")
END = JobEnd(job="7", user="ann", uid=1001, begun=1000.0)


class Machine(FakeHost):
    """A node with processes and files in /dev/shm."""

    def __init__(self) -> None:
        super().__init__(files={"/dev/shm/.keep": "", "/proc/stat": ""})

    def process(
        self, pid: int, uid: int, *, cgroup: str = "0::/\n", env: str = "", state: str = "S"
    ) -> None:
        folder = f"/proc/{pid}"
        self.stats[folder] = Stat(kind="dir", uid=uid)
        self.files[f"{folder}/cgroup"] = cgroup
        self.files[f"{folder}/environ"] = env
        self.files[f"{folder}/stat"] = f"{pid} (python) {state} " + "0 " * 18 + "4711 0"

    def shm(self, name: str, size: int, uid: int, mtime: float = 2000.0) -> None:
        self.files[f"/dev/shm/{name}"] = ""
        self.stats[f"/dev/shm/{name}"] = Stat(kind="file", size=size, uid=uid, mtime=mtime)


def on_gpus(*pids: int) -> Gpus:
    processes = tuple(GpuProcess(pid=pid, kind="compute", used_bytes=5) for pid in pids)
    return Gpus(gpus=(Gpu(index=0, processes=processes), Gpu(index=1, processes=processes)))


def remains(host: Machine, end: JobEnd = END, *pids: int) -> JobRemains:
    found = job_remains.function(host, end, on_gpus(*pids), NO_LOG)
    assert isinstance(found, JobRemains)
    return found


def test_processes_belong_to_the_job_by_cgroup_environment_or_owner() -> None:
    host = Machine()
    host.process(10, 1001, cgroup="1:devices:/slurm/uid_1001/job_7/step_0\n", env="SLURM_JOB_ID=8")
    host.process(11, 1001, env="A=1\0SLURM_JOB_ID=7\0")
    host.process(12, 1001)
    host.process(13, 1002)
    host.process(14, 0)
    host.process(15, 1001, env="SLURM_JOB_ID=7", state="Z")
    host.process(17, 1002, env="SLURM_JOB_ID=7")  # another account's word
    found = remains(host, END, 10, 11, 12, 13, 14, 15, 16, 17).processes
    assert [(one.pid, one.certain) for one in found] == [(10, True), (11, True), (12, False)]
    assert (found[0].gpus, found[0].used_bytes, found[0].started) == ((0, 1), 10, 4711)


def test_another_job_of_the_owner_may_own_what_names_no_job() -> None:
    host = Machine()
    host.process(12, 1001)
    host.process(20, 1001, env="SLURM_JOB_ID=8")
    host.shm("psm_1", 5, 1001)
    found = remains(host, END, 12, 20)
    assert (found.processes, found.shm, found.others) == ((), {}, ("8",))


def test_a_job_that_only_its_prolog_knows_counts_as_well() -> None:
    host = Machine()
    host.shm("psm_1", 5, 1001)
    end = JobEnd(job="7", uid=1001, others=("9",))
    assert remains(host, end).others == ("9",)
    assert remains(host, end).shm == {}


def test_files_of_the_owner_that_changed_since_the_job_began() -> None:
    host = Machine()
    host.shm("psm_1", 5, 1001)
    host.shm("mine-of-yesterday", 5, 1001, mtime=999.0)
    host.shm("others", 5, 1002)
    assert remains(host).shm == {"/dev/shm/psm_1": 5}


def test_of_roots_files_only_those_of_training_jobs() -> None:
    host = Machine()
    host.shm("psm_1", 5, 0)
    host.shm("PostgreSQL.1", 5, 0)
    assert remains(host, JobEnd(job="7", uid=0)).shm == {"/dev/shm/psm_1": 5}


def test_xids_of_its_time() -> None:
    log = KernelLog(
        source="dmesg",
        xids=(XidEvent(code=13, bdf="x", age_s=500.0), XidEvent(code=79, bdf="x", age_s=5.0)),
    )
    end = JobEnd(job="7", begun=time.time() - 100)
    found = job_remains.function(Machine(), end, on_gpus(), log)
    assert [event.code for event in found.xids or ()] == [79]
    unknown = job_remains.function(Machine(), JobEnd(job="7"), on_gpus(), log)
    assert unknown.xids is None


def test_nothing_is_read_where_no_job_has_ended() -> None:
    host = Machine()
    with pytest.raises(HostError, match="no job has just ended"):
        job_remains.function(host, Missing(why=Why.NOT_ASKED, detail=""), on_gpus(), NO_LOG)
