"""`free`, `lscpu`, `numactl`, `docker`, `scontrol show job`, limits and ports in a paste."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.words import may_state
from tests.paste import texts
from tests.paste.reading import flat, stated, value

REGISTRY = packs.load()
GIB = 1 << 30

FREE = """\
              total        used        free      shared  buff/cache   available
Mem:       65806308     9876543    12345678      123456    43584087    55001234
Swap:       2097148           0     2097148
"""
FREE_OLD = """\
$ free -m
             total       used       free     shared    buffers     cached
Mem:         64264      60123       4141          2        512      40000
-/+ buffers/cache:      19611      44653
Swap:         8191          0       8191
"""
FREE_HUMAN = """\
               total        used        free      shared  buff/cache   available
Mem:           503Gi        40Gi       300Gi       1.0Gi       163Gi       459Gi
Swap:             0B          0B          0B
"""
LSCPU = """\
Architecture:        x86_64
CPU op-mode(s):      32-bit, 64-bit
CPU(s):              96
On-line CPU(s) list: 0-95
Hypervisor vendor:   KVM
Virtualization type: full
"""
LSCPU_GROUPS = """\
Architecture:             aarch64
  CPU op-mode(s):         64-bit
CPU(s):                   72
  On-line CPU(s) list:    0-71
Virtualization features:
  Hypervisor vendor:      Microsoft
"""
LSCPU_CHINESE = "架构：                   x86_64\nCPU 运行模式：           32-bit\nCPU:                     64\n"
NUMACTL = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 128000 MB
node 0 free: 100 MB
node 1 cpus: 4 5 6 7
node 1 size: 129000 MB
node 1 free: 3000 MB
node distances:
node   0   1
  0:  10  21
"""
DOCKER_RUN = """\
$ sudo docker run --gpus all -it --rm --shm-size=64m \\
    --ulimit memlock=-1 --ulimit nofile=512:1024 \\
    -e NCCL_IB_HCA=mlx5_0 --env "CUDA_VISIBLE_DEVICES=0,1" -m 16g \\
    nvcr.io/nvidia/pytorch:24.01-py3 python -m torch.distributed.run
"""
INSPECT = """\
$ docker inspect trainer
        "HostConfig": {
            "Memory": 17179869184,
            "IpcMode": "private",
            "ShmSize": 67108864,
            "Runtime": "runc"
        },
"""
COMPOSE = "services:\n  train:\n    shm_size: '2gb'\n"
JOB = """\
$ scontrol show job 4711
JobId=4711 JobName=train
   UserId=me(1000) GroupId=me(1000) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   NumNodes=2 NumCPUs=4 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=4,mem=64G,node=2,billing=4,gres/gpu=16
   MinCPUsNode=1 MinMemoryNode=32G MinTmpDiskNode=0
   TresPerNode=gres/gpu:h100:8
"""
JOB_OLD = """\
JobId=12 JobName=bert
   JobState=RUNNING Reason=None Dependency=(null)
   NumNodes=1-1 NumCPUs=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=1,mem=4G,node=1
   Features=(null) Gres=gpu:4 Reservation=(null)
"""
ZSH = """\
-t: cpu time (seconds)              unlimited
-s: stack size (kbytes)             8192
-l: locked-in-memory size (kbytes)  64
-n: file descriptors                1024
"""
DASH = "time(seconds)        unlimited\nstack(kbytes)        8192\nlocked memory(kbytes) 64\nnofiles              512\n"
PROC = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max open files            1024                 524288               files
Max locked memory         65536                65536                bytes
"""
PRLIMIT = """\
RESOURCE   DESCRIPTION                             SOFT      HARD UNITS
MEMLOCK    max locked-in-memory address space     65536     65536 bytes
NOFILE     max number of open files                1024   1048576 files
STACK      max stack size                       8388608 unlimited bytes
"""
IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
	default gid:	 fe80:0000:0000:0000:0c42:a103:0001:0002
	base lid:	 0x1
	state:		 4: ACTIVE
	phys state:	 5: LinkUp
	rate:		 200 Gb/sec (4X HDR)
	link_layer:	 InfiniBand

Infiniband device 'mlx5_1' port 1 status:
	state:		 1: DOWN
	phys state:	 2: Polling
	rate:		 10 Gb/sec (4X SDR)
	link_layer:	 InfiniBand
"""
RDMA = """\
link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
link mlx5_1/1 subnet_prefix fe80:0000:0000:0000 lid 1 sm_lid 1 lmc 0 state DOWN physical_state POLLING
"""
FREE_CHINESE = """\
$ free -m
               总计         已用        空闲      共享    缓冲/缓存    可用
内存：        64264        5100        20000        1000        39164       55000
交换：         8191           0        8191
"""
MEMINFO = """\
MemTotal:       65806308 kB
MemFree:         1036288 kB
SwapTotal:       2097148 kB
HugePages_Total:    1000
HugePages_Free:      900
Hugepagesize:       2048 kB
"""
NODES = """\
$ ls -l /dev/nvidia*
crw-rw-rw- 1 root root 195,   0 Nov 28 10:00 /dev/nvidia0
crw-rw-rw- 1 root root 195, 255 Nov 28 10:00 /dev/nvidiactl

/dev/nvidia-caps:
total 0
cr-------- 1 root root 237, 1 Nov 28 10:00 nvidia-cap1
$ free
"""
NODES_SHORT = (
    "[root@n1 ~]# ls /dev/nvidia*\n/dev/nvidia0  /dev/nvidia1  /dev/nvidiactl\n[root@n1 ~]#\n"
)
NO_NODES = "ls: cannot access '/dev/nvidia*': No such file or directory\n"
DOCKER_INFO = """\
 Server Version: 24.0.7
 Cgroup Driver: systemd
 Kernel Version: 5.15.0-91-generic
 OSType: linux
 Architecture: x86_64
 CPUs: 64
 Total Memory: 503.5GiB
"""
WORKERS = (
    "UserWarning: This DataLoader will create 10 worker processes in total. Our suggested max number of"
    " worker in current system is {}, which is smaller than what this DataLoader is going to create.\n"
)
TWO_GPUS = (
    texts.SMI.replace("  7 |", "  0 |")
    .replace("E. Process", "   Default")
    .replace("              Enabled", "             Disabled")
)
ALL = {
    "free": FREE, "free -m": FREE_OLD, "free -h": FREE_HUMAN, "lscpu": LSCPU,
    "lscpu 2.37": LSCPU_GROUPS, "lscpu in Chinese": LSCPU_CHINESE, "numactl": NUMACTL,
    "docker run": DOCKER_RUN, "docker inspect": INSPECT, "compose": COMPOSE, "scontrol": JOB,
    "scontrol 17": JOB_OLD, "zsh": ZSH, "dash": DASH, "proc": PROC, "prlimit": PRLIMIT,
    "ibstatus": IBSTATUS, "rdma link": RDMA, "free in Chinese": FREE_CHINESE, "meminfo": MEMINFO,
    "device files": NODES, "device files in a row": NODES_SHORT, "no device files": NO_NODES,
    "docker info": DOCKER_INFO,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("free", "resources/memory_total_bytes", 65806308 << 10),
        ("free", "resources/swap_total_bytes", 2097148 << 10),
        ("free -m", "resources/memory_total_bytes", 64264 << 20),
        ("free -m", "resources/swap_total_bytes", 8191 << 20),
        ("free -h", "resources/memory_total_bytes", 503 * GIB),
        ("free -h", "resources/swap_total_bytes", 0),
        ("lscpu", "os_info/machine", "x86_64"),
        ("lscpu", "resources/cpus_logical", 96),
        ("lscpu", "pci_tree/virtual", True),
        ("lscpu 2.37", "resources/cpus_logical", 72),
        ("lscpu 2.37", "pci_tree/virtual", True),
        ("lscpu in Chinese", "resources/cpus_logical", 64),
        ("numactl", "resources/memory_total_bytes", 257000 << 20),
        ("numactl", "resources/cpus_logical", 8),
        ("docker run", "resources/shm_total_bytes", 64 << 20),
        ("docker run", "resources/limit_memlock", None),
        ("docker run", "resources/limit_nofile", 512),
        ("docker run", "resources/memory_limit_bytes", 16 * GIB),
        ("docker run", "environment/variables/NCCL_IB_HCA", "mlx5_0"),
        ("docker run", "environment/variables/CUDA_VISIBLE_DEVICES", "0,1"),
        ("docker inspect", "resources/shm_total_bytes", 64 << 20),
        ("docker inspect", "resources/memory_limit_bytes", 16 * GIB),
        ("compose", "resources/shm_total_bytes", 2 * GIB),
        ("scontrol", "resources/cpus_usable", 2),
        ("scontrol", "environment/variables/SLURM_GPUS_ON_NODE", "8"),
        ("scontrol 17", "resources/cpus_usable", 1),
        ("scontrol 17", "environment/variables/SLURM_GPUS_ON_NODE", "4"),
        ("zsh", "resources/limit_memlock", 64 << 10),
        ("zsh", "resources/limit_nofile", 1024),
        ("dash", "resources/limit_memlock", 64 << 10),
        ("dash", "resources/limit_nofile", 512),
        ("proc", "resources/limit_memlock", 64 << 10),
        ("proc", "resources/limit_stack", 8 << 20),
        ("prlimit", "resources/limit_memlock", 64 << 10),
        ("prlimit", "resources/limit_nofile", 1024),
        ("ibstatus", "network/rdma/0/state", "ACTIVE"),
        ("ibstatus", "network/rdma/0/rate_gbps", 200.0),
        ("ibstatus", "network/rdma/1/phys_state", "Polling"),
        ("rdma link", "network/rdma/0/phys_state", "LinkUp"),
        ("rdma link", "network/rdma/1/state", "DOWN"),
        ("free in Chinese", "resources/memory_total_bytes", 64264 << 20),
        ("free in Chinese", "resources/swap_total_bytes", 8191 << 20),
        ("meminfo", "resources/memory_total_bytes", 65806308 << 10),
        ("meminfo", "resources/swap_total_bytes", 2097148 << 10),
        ("meminfo", "memory_detail/hugepages_bytes", 1000 << 21),
        ("meminfo", "memory_detail/hugepages_free_bytes", 900 << 21),
        ("device files", "nvidia_kernel/device_nodes", ["nvidia-caps", "nvidia0", "nvidiactl"]),
        (
            "device files in a row",
            "nvidia_kernel/device_nodes",
            ["nvidia0", "nvidia1", "nvidiactl"],
        ),
        ("no device files", "nvidia_kernel/device_nodes", []),
        ("docker info", "resources/memory_total_bytes", int(503.5 * GIB)),
        ("docker info", "resources/cpus_logical", 64),
        ("docker info", "os_info/release", "5.15.0-91-generic"),
    ],
)
def test_what_is_stated(name: str, path: str, expected: Any) -> None:
    assert value(stated(ALL[name]), path) == expected


@pytest.mark.parametrize("name", ALL)
def test_a_log_with_it_is_read_line_by_line(name: str) -> None:
    assert may_state(ALL[name]) or name in ("lscpu 2.37", "lscpu in Chinese", "dash", "prlimit")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FREE.replace("65806308", "65806"), id="free without a unit"),  # in which unit?
        pytest.param(
            LSCPU.replace("CPU(s):  ", "Sockets: "), id="lscpu without its number of CPUs"
        ),  # another tool prints an architecture too
        pytest.param(NUMACTL.replace("node 1 size: 129000 MB\n", ""), id="numactl without a node"),
        pytest.param(
            INSPECT.replace("private", "host").replace('"Memory": 17179869184,', ""),
            id="docker inspect without limits",
        ),
        pytest.param("use docker run with --shm-size=8g\n", id="advice"),
        pytest.param(
            "ls: cannot access '/dev/nvidia0': No such file or directory\n", id="one file"
        ),
        pytest.param("Total Memory: 503.5GiB\n", id="a size that any tool may print"),
        pytest.param(JOB + JOB_OLD, id="two jobs"),  # which of them?
        pytest.param("JobId=7 hangs, what is NumNodes=2?\n", id="a sentence about a job"),
        pytest.param(
            "$ docker run --rm image python -m torch.distributed.run\n",
            id="docker run without a limit",
        ),
    ],
)
def test_what_states_nothing(text: str) -> None:
    found = environment_of(text)
    assert found is None or not set(found.facts) & {"resources", "pci_tree", "environment"}


def test_two_containers_that_differ_are_a_contradiction() -> None:
    snapshot = stated(DOCKER_RUN + INSPECT.replace("67108864", "8589934592"))
    assert "shm_total_bytes" not in snapshot.facts["resources"]
    assert snapshot.contradictions


@pytest.mark.parametrize("name", ALL)
def test_a_part_of_it_states_nothing_else(name: str) -> None:
    """Cut anywhere, from the front and from the end; inside a word, a number may be another one."""
    text = ALL[name]
    whole = flat(stated(text).facts)
    for place in range(len(text)):
        inside = re.fullmatch(r"\w\w", text[max(place - 1, 0) : place + 1])
        for part in (text[:place], text[place:]):
            found = environment_of(part)
            if found is None or inside:
                continue
            part_of = flat(found.facts)
            wrong = {k: v for k, v in part_of.items() if not any(v == w for w in whole.values())}
            assert wrong == {}, part
            same = {k for k in part_of if k in whole and not k.startswith("/network")}
            assert {k: part_of[k] for k in same} == {k: whole[k] for k in same}, part


def bad(text: str) -> set[str]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    return {f.condition for f in report.findings if f.status in (Status.WARN, Status.FAIL)}


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        pytest.param(
            FREE + LSCPU + NUMACTL.replace("available: 2", "available: 3"),
            set(),
            id="a sound machine",
        ),
        pytest.param(INSPECT, {"shm-too-small"}, id="little shared memory"),
        pytest.param(JOB, {"slurm-cpus-few"}, id="few CPUs"),
        pytest.param(JOB.replace("NumCPUs=4", "NumCPUs=128"), set(), id="CPUs enough"),
        pytest.param(COMPOSE.replace("2gb", "16gb"), set(), id="shared memory enough"),
        pytest.param(TWO_GPUS + WORKERS.format(1), {"cpus-fewer-than-ranks"}, id="one CPU"),
        pytest.param(TWO_GPUS + WORKERS.format(16), set(), id="a CPU for each of many workers"),
    ],
)
def test_what_is_wrong_is_named(text: str, conditions: set[str]) -> None:
    assert bad(text) == conditions


@pytest.mark.parametrize(
    ("change", "gpus"),
    [
        pytest.param({}, "0", id="neither asked for nor given"),
        pytest.param({"AllocTRES=": "OldTRES="}, None, id="an older Slurm"),
        pytest.param({"node=1": "node=1,gres/gpu=1"}, "1", id="one was given"),
        pytest.param({"CPUs/Task": "TresPerTask=gres/gpu:1 CPUs/Task"}, None, id="GPUs of a task"),
    ],
)
def test_a_job_of_slurm_without_gpus(change: dict[str, str], gpus: str | None) -> None:
    """Without GPUs among what the cluster counts, what was given says nothing of them."""
    text = """\
JobId=31 JobName=bash
   JobState=RUNNING Reason=None Dependency=(null)
   NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=8,mem=32G,node=1,billing=8
   AllocTRES=cpu=8,mem=32G,node=1,billing=8
"""
    for old, new in change.items():
        text = text.replace(old, new)
    variables = stated(text).facts["environment"]["variables"]
    assert variables.get("SLURM_GPUS_ON_NODE") == gpus


SYSCTL = """kernel.pid_max = 4194304
kernel.shmmax = 18446744073692774399
vm.overcommit_kbytes = 0
vm.overcommit_memory = {}
vm.overcommit_ratio = 50
"""
FREE_GIB = """               total        used        free      shared  buff/cache   available
Mem:           503Gi        12Gi       480Gi        32Mi        10Gi       488Gi
Swap:            0B          0B          0B
"""


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        pytest.param(SYSCTL.format(2) + FREE_GIB, 503 * (1 << 30) // 2, id="a share of the memory"),
        pytest.param(SYSCTL.format(2) + "CommitLimit: 1024 kB\n", 1 << 20, id="meminfo says it"),
        pytest.param(SYSCTL.format(0) + FREE_GIB, None, id="the kernel guesses"),
        pytest.param(SYSCTL.format(2), None, id="the memory is not known"),
        pytest.param(SYSCTL.format(2) + SYSCTL.format(0) + FREE_GIB, None, id="it was changed"),
        pytest.param("vm.overcommit_memory=2\n" + FREE_GIB, None, id="a file for sysctl"),
        pytest.param(
            "$ cat /proc/sys/vm/overcommit_memory\n2\nCommitLimit: 1024 kB\n", 1 << 20, id="/proc"
        ),
    ],
)
def test_what_programs_may_reserve(text: str, limit: int | None) -> None:
    snapshot = environment_of(text)
    facts = snapshot.facts if snapshot else {}
    found = facts.get("memory_detail", {})
    assert found.get("commit_limit_bytes") == limit
