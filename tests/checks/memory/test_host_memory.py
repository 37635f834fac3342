"""hugepages_reserved, swap_thrashing, shm_nearly_full, and the probe below them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.api import MemoryDetail, Resources, RunNeeds, Status
from dsdoctor.host import DiskUsage, HostError
from dsdoctor.judge import judge as whole
from dsdoctor.model.facts.base import Why
from dsdoctor.paste.environment import environment_of
from dsdoctor.probes.machine import resources
from dsdoctor.probes.memory import memory_detail
from dsdoctor.testing import FakeHost, assert_ok, assert_warn, judge
from dsdoctor_checks.memory import (
    commit_limit_low,
    hugepages_reserved,
    shm_nearly_full,
    stale_shm_segments,
    swap_thrashing,
)
from tests.checks.machines import ABSENT, LINUX, NO_ENV, words

REGISTRY = packs.load(builtin_only=True)
GIB = 1 << 30
MIB = 1 << 20


def machine(**more: Any) -> Resources:
    fields: dict[str, Any] = {
        "cpus_logical": 32,
        "cpus_usable": 32,
        "memory_total_bytes": 256 * GIB,
        "memory_available_bytes": 200 * GIB,
        "shm_total_bytes": 128 * GIB,
        "shm_free_bytes": 128 * GIB,
    }
    return Resources(**(fields | more))


@pytest.mark.parametrize(
    ("held", "free", "status"),
    [
        pytest.param(0, 200, "ok", id="no huge pages and plenty of memory"),
        pytest.param(100, 150, "ok", id="100 GiB of huge pages, but 150 GiB are left"),
        pytest.param(0, 1, "ok", id="no huge pages, but memory is short all the same"),
        pytest.param(0.5, 1, "ok", id="half a GiB of huge pages is too little to matter"),
        pytest.param(250, 1, "warn", id="huge pages take almost all memory"),
    ],
)
def test_huge_pages_matter_only_where_memory_lacks(held: float, free: float, status: str) -> None:
    detail = MemoryDetail(hugepages_bytes=int(held * GIB), hugepages_free_bytes=int(held * GIB))
    found = judge(
        hugepages_reserved.no_memory_is_held,
        memory_detail=detail,
        resources=machine(memory_available_bytes=int(free * GIB)),
        environment=NO_ENV,
    ).findings
    assert words(found) == [status]


@pytest.mark.parametrize(
    ("total", "used", "free", "status"),
    [
        pytest.param(0, 0, 200, "ok", id="no swap"),
        pytest.param(8, 7.9, 200, "ok", id="swap is full of old pages, but memory is plentiful"),
        pytest.param(64, 2, 5, "ok", id="memory is short, but swap is hardly used"),
        pytest.param(64, 60, 5, "warn", id="memory is short and swap is almost full"),
        pytest.param(0.5, 0.5, 5, "ok", id="memory is short, but swap is too small to matter"),
    ],
)
def test_swap(total: float, used: float, free: float, status: str) -> None:
    detail = MemoryDetail(
        swap_total_bytes=int(total * GIB), swap_free_bytes=int((total - used) * GIB)
    )
    found = judge(
        swap_thrashing.machine_does_not_swap,
        memory_detail=detail,
        resources=machine(memory_available_bytes=int(free * GIB)),
    ).findings
    assert words(found) == [status]


@pytest.mark.parametrize(
    ("total", "free", "gpus", "status"),
    [
        pytest.param(None, None, 1, "skip", id="a system without /dev/shm"),
        pytest.param(
            64, 1, 8, "ok", id="64 MiB in all, which another check reports"
        ),  # `shm-too-small` speaks
        pytest.param(16384, 16000, 8, "ok", id="/dev/shm is almost empty"),
        pytest.param(16384, 600, 8, "ok", id="600 MiB are left for eight GPUs"),
        pytest.param(16384, 100, 8, "warn", id="100 MiB are left for eight GPUs"),
        pytest.param(16384, 100, 1, "ok", id="100 MiB are left, but one GPU does not need them"),
    ],
)
def test_shm(total: int | None, free: int | None, gpus: int, status: str) -> None:
    sizes: dict[str, Any] = {
        "shm_total_bytes": None if total is None else total * MIB,
        "shm_free_bytes": None if free is None else free * MIB,
    }
    left = "/dev/shm/nccl-a"
    detail = MemoryDetail(shm_left={left: 9 * MIB}, shm_mine=(left,))
    found = judge(
        shm_nearly_full.shm_has_room,
        resources=machine(**sizes),
        memory_detail=detail,
        run_needs=RunNeeds(expect_gpus=gpus),
        environment=NO_ENV,
    ).findings
    assert words(found) == [status]
    if status == "warn":
        assert "1 stale segment holds 9 MiB" in found[0].message
        assert "remove-stale-shm" in found[0].hint


MEMINFO = (
    "MemTotal: 263856000 kB\nMemAvailable: 100000000 kB\nSwapTotal: 8388604 kB\n"
    "SwapFree: 1048576 kB\nHugePages_Total: 1024\nHugePages_Free: 1000\n"
    "Hugepagesize: 2048 kB\nHugetlb: 4194304 kB\n"
)


def test_left_overs_in_dev_shm() -> None:
    host = FakeHost(
        files={
            "/proc/meminfo": MEMINFO,
            "/dev/shm/nccl-used": "x" * 10,
            "/dev/shm/nccl-left": "x" * 20,
            "/dev/shm/other": "x",
            "/proc/12/maps": "7f00-7f01 rw-s 0 00:1 5 /dev/shm/nccl-used\n",
            "/proc/self/maps": "",
        }
    )
    fact = memory_detail.function(host, ABSENT)
    assert fact.shm_left == {"/dev/shm/nccl-left": 20}
    assert fact.shm_mine == ("/dev/shm/nccl-left",)
    assert fact.shm_owners == {"0": 20}
    assert fact.shm_files == 3
    assert fact.hugepages_bytes == 4 * GIB
    assert fact.hugepages_free_bytes == 1000 * 2 * MIB
    assert fact.swap_free_bytes == GIB


def test_processes_of_others_hide_what_is_left() -> None:
    denied = HostError(Why.DENIED, "may not be read")
    host = FakeHost(
        files={"/proc/meminfo": MEMINFO, "/dev/shm/nccl-a": "x", "/proc/12/maps": denied}
    )
    assert memory_detail.function(host, ABSENT).shm_left == {}


BUFFER = "/dev/shm/deepspeed_allreduce_buffer_0_127.0.0.1_29500_0"
SHARED = "9 8 0:9 / /dev/shm rw - tmpfs tmpfs rw\n"
OWN = "9 8 0:9 / /dev/shm rw - tmpfs shm rw\n"


@pytest.mark.parametrize(
    ("shmem", "container", "mounts", "left"),  # how much shared memory the process has
    [
        pytest.param("0 kB", None, SHARED, {BUFFER: 5}, id="it uses no shared memory"),
        pytest.param("4 kB\nVmSize:\t1048576 kB", None, SHARED, {}, id="it may map the segment"),
        pytest.param("4 kB\nVmSize:\t 10240 kB", None, SHARED, {BUFFER: 5}, id="it has no torch"),
        pytest.param("0 kB", "docker", OWN, {BUFFER: 5}, id="a /dev/shm of the container"),
        pytest.param("0 kB", "docker", SHARED, {}, id="the host's /dev/shm in a container"),
    ],
)
def test_a_process_whose_maps_are_denied(
    shmem: str, container: str | None, mounts: str, left: dict[str, int]
) -> None:
    host = FakeHost(
        files={
            "/proc/meminfo": MEMINFO,
            "/proc/self/mountinfo": mounts,
            "/proc/self/maps": "",
            BUFFER: "x" * 5,
            "/proc/1/maps": HostError(Why.DENIED, "may not be read"),
            "/proc/1/status": f"Name:\tinit\nRssShmem:\t       {shmem}\n",
        }
    )
    system = msgspec.structs.replace(LINUX, container=container)
    assert memory_detail.function(host, system).shm_left == left


@pytest.mark.parametrize(
    ("left", "mine", "expected", "hint"),
    [
        pytest.param({}, (), assert_ok, "", id="none"),
        pytest.param({BUFFER: MIB}, (BUFFER,), assert_ok, "", id="too small to matter"),
        pytest.param({BUFFER: 66 * MIB}, (BUFFER,), assert_warn, "remove-stale-shm", id="own"),
        pytest.param({BUFFER: 66 * MIB}, (), assert_warn, "owners", id="of another user"),
    ],
)
def test_stale_segments(
    left: dict[str, int], mine: tuple[str, ...], expected: Any, hint: str
) -> None:
    detail = MemoryDetail(shm_left=left, shm_mine=mine)
    judged = judge(stale_shm_segments.no_segment_is_stale, memory_detail=detail)
    expected(judged)
    assert hint in judged.findings[0].hint


def test_stale_segments_are_attributed_to_their_owners() -> None:
    detail = MemoryDetail(
        shm_left={BUFFER: 66 * MIB, f"{BUFFER}1": 9 * MIB},
        shm_mine=(f"{BUFFER}1",),
        shm_owners={"0": 9 * MIB, "1007": 66 * MIB},
    )
    (found,) = judge(stale_shm_segments.no_segment_is_stale, memory_detail=detail).findings
    assert found.message.endswith(
        "1 of them belongs to other users (by owner: uid 1007 66 MiB, uid 0 9 MiB)"
    )
    assert found.evidence["mib_by_uid"] == {"0": 9, "1007": 66}


V1 = (
    "35 24 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 24 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
)
V2 = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("mounts", "cgroup", "files", "version"),
    [
        (
            V1,
            "7:memory:/job\n",
            {
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(32 * GIB),
                "/sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(8 * GIB),
            },
            "v1",
        ),
        (
            V2,
            "0::/job\n",
            {
                "/sys/fs/cgroup/job/memory.max": str(32 * GIB),
                "/sys/fs/cgroup/job/memory.current": str(8 * GIB),
            },
            "v2",
        ),
        (V2, "0::/job\n", {"/sys/fs/cgroup/job/memory.max": "max"}, "v2"),
    ],
    ids=["v1", "v2", "v2-without-limit"],
)
def test_cgroups_of_both_versions(
    mounts: str, cgroup: str, files: dict[str, str], version: str
) -> None:
    host = FakeHost(
        files={
            "/proc/meminfo": MEMINFO,
            "/proc/self/mountinfo": mounts,
            "/proc/self/cgroup": cgroup,
            **files,
        },
        queries={"cpu_count": 8, "affinity": 8, "limits": {}},
        disks={"/dev/shm": DiskUsage(total=1, free=1)},
    )
    found = resources.function(host)
    limited = len(files) > 1
    assert found.memory_limit_bytes == (32 * GIB if limited else None)
    assert (found.memory_available_bytes == 24 * GIB) == limited
    assert memory_detail.function(host, ABSENT).cgroup == version


def test_all_processes_are_seen_from_the_namespace_of_the_machine() -> None:
    host = FakeHost(
        files={
            "/proc/meminfo": MEMINFO,
            "/proc/self/mountinfo": SHARED,
            "/proc/self/maps": "",
            "/proc/2/comm": "kthreadd\n",
            "/proc/2/maps": "",
            BUFFER: "x" * 5,
        }
    )
    system = msgspec.structs.replace(LINUX, container="docker")
    assert memory_detail.function(host, system).shm_left == {BUFFER: 5}


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        pytest.param(None, "ok", id="the kernel does not count"),
        pytest.param(190 * GIB, "ok", id="nearly all that is free"),
        pytest.param(40 * GIB, "warn", id="a fifth of what is free"),
        pytest.param(-1, "warn", id="nothing more"),
    ],
)
def test_what_may_still_be_reserved(left: int | None, expected: str) -> None:
    detail = MemoryDetail(commit_left_bytes=left)
    judged = judge(
        commit_limit_low.memory_can_be_reserved, memory_detail=detail, resources=machine()
    )
    assert judged.status == expected


@pytest.mark.parametrize(
    ("mode", "left"),
    [pytest.param("2", 60 << 10, id="strict"), pytest.param("0", None, id="by guess")],
)
def test_the_commit_limit_is_read_where_it_counts(mode: str, left: int | None) -> None:
    meminfo = "MemTotal: 100 kB\nCommitLimit: 70 kB\nCommitted_AS: 10 kB\n"
    files = {"/proc/meminfo": meminfo, "/proc/sys/vm/overcommit_memory": f"{mode}\n"}
    assert memory_detail.function(FakeHost(files=files), LINUX).commit_left_bytes == left


@pytest.mark.parametrize(
    ("mode", "expected"),
    [pytest.param(2, {"commit-limit-low"}, id="strict"), pytest.param(0, set(), id="by guess")],
)
def test_the_commit_limit_of_a_paste(mode: int, expected: set[str]) -> None:
    text = (
        f"vm.overcommit_memory = {mode}\nvm.overcommit_ratio = 50\nMemTotal: 65806308 kB\n"
        "SwapTotal: 0 kB\n"
    )
    snapshot = environment_of(text)
    assert snapshot is not None
    found = whole(snapshot, list(REGISTRY), REGISTRY).findings
    assert {one.condition for one in found if one.status is Status.WARN} == expected
