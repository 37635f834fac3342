from __future__ import annotations

import pytest

from dsdoctor.host import DiskUsage, HostError, LocalHost
from dsdoctor.probes.environment import environment
from dsdoctor.probes.machine import os_info, read_cgroups, resources
from dsdoctor.testing import FakeHost

GIB = 1 << 30
QUERIES = {
    "release": "6.1.0",
    "machine": "x86_64",
    "hostname": "gpu-17",
    "libc": "glibc 2.36",
    "euid": 1000,
    "cpu_count": 64,
    "affinity": 32,
    "limits": {
        "memlock": 65536,
        "nofile": 1024,
        "stack": None,
        "address_space": None,
        "nproc": 4096,
    },
}
MEMINFO = f"MemTotal: {256 * GIB // 1024} kB\nMemAvailable: {200 * GIB // 1024} kB\n"


def test_cgroup_v2_takes_the_tightest_on_the_way_up() -> None:
    host = FakeHost(
        queries=QUERIES,
        files={
            "/proc/meminfo": MEMINFO,
            "/proc/self/cgroup": "0::/slurm/job_1/step_0\n",
            "/proc/self/mountinfo": "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "/sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
            "/sys/fs/cgroup/slurm/job_1/memory.max": f"{64 * GIB}\n",
            "/sys/fs/cgroup/slurm/job_1/memory.current": f"{20 * GIB}\n",
            "/sys/fs/cgroup/slurm/job_1/memory.stat": f"anon 1\ninactive_file {4 * GIB}\n",
            "/sys/fs/cgroup/slurm/memory.max": f"{128 * GIB}\n",
            "/sys/fs/cgroup/slurm/job_1/cpu.max": "850000 100000\n",
            "/sys/fs/cgroup/slurm/job_1/step_0/pids.max": "max\n",
            "/sys/fs/cgroup/slurm/job_1/step_0/pids.current": "7\n",
            "/sys/fs/cgroup/slurm/job_1/pids.max": "5000\n",
            "/sys/fs/cgroup/slurm/job_1/pids.current": "4100\n",
            "/sys/fs/cgroup/slurm/pids.max": "4500\n",
            "/sys/fs/cgroup/slurm/pids.current": "100\n",
            "/dev/shm/x": "",
        },
        disks={"/dev/shm": DiskUsage(total=64 << 20, free=60 << 20)},
    )
    fact = resources.function(host)
    assert fact.memory_limit_bytes == 64 * GIB
    assert fact.memory_available_bytes == 48 * GIB
    assert fact.memory_usable_bytes == 64 * GIB
    assert (fact.cpus_logical, fact.cpus_usable) == (64, 8)
    assert (fact.shm_total_bytes, fact.shm_free_bytes) == (64 << 20, 60 << 20)
    assert (fact.limit_nofile, fact.limit_stack) == (1024, None)
    assert (fact.limit_nproc, fact.tasks_limit, fact.tasks_left) == (4096, 5000, 900)


def test_cgroup_v1_in_a_container_without_a_name_space_of_its_own() -> None:
    host = FakeHost(
        files={
            "/proc/self/cgroup": (
                "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:pids:/docker/abc\n"
            ),
            "/proc/self/mountinfo": (
                "35 24 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                "36 24 0:31 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
                "37 24 0:32 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
            ),
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{2 * GIB}\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/pids/pids.max": "100\n",
            "/sys/fs/cgroup/pids/pids.current": "130\n",
        },
    )
    limits = read_cgroups(host)
    assert (limits.memory, limits.available, limits.cpus) == (8 * GIB, 6 * GIB, 0.5)
    assert limits.tasks == (100, 0)


def test_no_limits_no_cgroup_files() -> None:
    host = FakeHost(
        queries=QUERIES,
        files={
            "/proc/meminfo": MEMINFO,
            "/proc/self/cgroup": "4:memory:/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    fact = resources.function(host)
    assert fact.memory_limit_bytes is None
    assert fact.memory_available_bytes == 200 * GIB
    assert fact.cpus_usable == 32
    assert (fact.tasks_limit, fact.tasks_left) == (None, None)
    assert fact.shm_total_bytes is None


def test_other_systems_ask_psutil() -> None:
    memory = {"total": 16 * GIB, "available": 8 * GIB, "swap": 0}
    fact = resources.function(FakeHost(system="Darwin", queries={**QUERIES, "memory": memory}))
    assert fact.memory_total_bytes == 16 * GIB
    with pytest.raises(HostError):
        resources.function(FakeHost(system="Darwin", queries={"cpu_count": 1}))


@pytest.mark.parametrize(
    ("env", "files", "container"),
    [
        ({}, {}, None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"/.dockerenv": ""}, "kubernetes"),
        ({}, {"/.dockerenv": ""}, "docker"),
        ({}, {"/run/.containerenv": ""}, "podman"),
        ({"APPTAINER_CONTAINER": "/x.sif"}, {}, "apptainer"),
        ({}, {"/proc/1/cgroup": "0::/lxc/1\n"}, "container"),
        ({}, {"/proc/1/cgroup": "4:memory:/kubepods/x\n"}, "kubernetes"),
        pytest.param(
            {},
            {
                "/proc/self/mountinfo": "805 800 259:2 /c/.lock /.lock ro,nosuid,nodev - ext4 d rw\n",
                "/proc/1/cgroup": "0::/\n",
            },
            "enroot",
            id="the lock of enroot",
        ),
        pytest.param(
            {},
            {
                "/proc/self/mountinfo": "30 1 259:2 / /.lock rw - ext4 d rw\n",
                "/proc/1/cgroup": "0::/\n",
            },
            None,
            id="a folder of that name",
        ),
    ],
)
def test_containers(env: dict[str, str], files: dict[str, str], container: str | None) -> None:
    assert os_info.function(FakeHost(env=env, files=files, queries=QUERIES)).container == container


def test_wsl() -> None:
    queries = {**QUERIES, "release": "5.15.133.1-microsoft-standard-WSL2"}
    assert os_info.function(FakeHost(queries=queries)).wsl


def test_environment_keeps_the_allow_list() -> None:
    env = {
        "PATH": "/bin",
        "NCCL_DEBUG": "INFO",
        "DS_SKIP_CUDA_CHECK": "1",
        "HF_HOME": "/x",
        "HF_TOKEN": "hf_secret",
        "HF_HUB_TOKEN": "hf_secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "SLURM_JWT": "secret",
        "TORCH_URL": "https://u:secret@h",
    }
    fact = environment.function(FakeHost(env=env))
    assert set(fact.variables) == {
        "PATH", "NCCL_DEBUG", "DS_SKIP_CUDA_CHECK", "HF_HOME", "TORCH_URL",
    }  # fmt: skip
    assert "secret" not in str(fact)


def test_on_this_machine() -> None:
    host = LocalHost()
    fact = resources.function(host)
    assert 1 <= fact.cpus_usable <= fact.cpus_logical
    assert 64 << 20 < fact.memory_available_bytes <= fact.memory_total_bytes < 1 << 50
    assert os_info.function(host).system == host.system
    assert "PATH" in environment.function(host).variables


def test_amd_gpus_are_nodes_of_the_compute_topology() -> None:
    nodes = "/sys/class/kfd/kfd/topology/nodes"
    files = {f"{nodes}/0/gpu_id": "0\n", f"{nodes}/1/gpu_id": "51110\n", f"{nodes}/2/gpu_id": "7\n"}
    assert os_info.function(FakeHost(files=files, queries=QUERIES)).amd_gpus == 2
    assert os_info.function(FakeHost(queries=QUERIES)).amd_gpus == 0


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        pytest.param(761.0, "1970-01-01", id="a battery that is empty"),
        pytest.param(2e9, None, id="a later year"),
        pytest.param("noon", None, id="no number"),
    ],
)
def test_the_clock_is_that_of_the_host(clock: object, expected: str | None) -> None:
    """Not of the machine that judges what another one has sent."""
    host = FakeHost(queries={**QUERIES, "clock": clock})
    assert os_info.function(host).clock == expected
