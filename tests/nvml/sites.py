"""Sound surroundings of a GPU machine: how it is mounted, contained, scheduled and connected."""

from __future__ import annotations

import copy
from typing import Any

from dsdoctor.host import DiskUsage

TIB = 1 << 40
#: /proc/self/mountinfo of a machine: disks, shared memory, cgroups of version 2.
MOUNTS = """\
24 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
25 24 0:6 / /dev rw,nosuid - devtmpfs udev rw
26 25 0:25 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw
27 24 0:22 / /proc rw,nosuid,nodev,noexec - proc proc rw
28 24 0:23 / /sys rw,nosuid,nodev,noexec - sysfs sysfs rw
29 28 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec - cgroup2 cgroup2 rw
30 24 0:24 / /run rw,nosuid,nodev - tmpfs tmpfs rw
31 24 259:3 / /tmp rw,nosuid,nodev - xfs /dev/nvme1n1p1 rw
32 24 259:4 / /home rw,relatime - xfs /dev/nvme1n1p2 rw
"""
#: The same inside a container: an overlay, files of the driver mounted one by one.
OVERLAY = """\
800 700 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c
801 800 0:91 / /proc rw,nosuid,nodev,noexec - proc proc rw
802 800 0:92 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k
803 802 0:25 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw
804 800 0:93 / /sys ro,nosuid,nodev,noexec - sysfs sysfs ro
805 804 0:28 /docker/1f /sys/fs/cgroup ro,nosuid,nodev,noexec - cgroup2 cgroup rw
806 800 259:2 /usr/bin/nvidia-smi /usr/bin/nvidia-smi ro,nosuid,nodev - ext4 /dev/nvme0n1p2 rw
807 800 259:9 / /data ro,relatime - nfs4 filer:/data ro
"""
MEMINFO = """\
MemTotal:       536870912 kB
MemFree:        419430400 kB
MemAvailable:   503316480 kB
SwapTotal:       8388604 kB
SwapFree:        8388604 kB
HugePages_Total:       0
HugePages_Free:        0
Hugepagesize:       2048 kB
Hugetlb:               0 kB
"""
_CGROUP = "/sys/fs/cgroup"


def _limits(folder: str, memory: str, cpus: str) -> dict[str, str]:
    return {
        f"{folder}/memory.max": f"{memory}\n",
        f"{folder}/memory.current": "1073741824\n",
        f"{folder}/memory.stat": "inactive_file 0\n",
        f"{folder}/cpu.max": f"{cpus}\n",
    }


def _port(device: str) -> dict[str, str]:
    folder = f"/sys/class/infiniband/{device}"
    return {
        f"{folder}/hca_type": "MT4129\n",
        f"{folder}/ports/1/state": "4: ACTIVE\n",
        f"{folder}/ports/1/phys_state": "5: LinkUp\n",
        f"{folder}/ports/1/link_layer": "InfiniBand\n",
        f"{folder}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    }


MACHINE: dict[str, Any] = {
    "added": {
        "/proc/self/mountinfo": MOUNTS,
        "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
        "/proc/meminfo": MEMINFO,
        "/proc/1/cgroup": "0::/init.scope\n",
        "/home/user/train.py": "import deepspeed\n",
        "/home/user/.cache/huggingface/token": "",
        "/tmp/.X11-unix/X0": "",
        **_limits(f"{_CGROUP}/user.slice/user-1000.slice/session-3.scope", "max", "max 100000"),
    },
    "disks": {
        path: DiskUsage(total=4 * TIB, free=2 * TIB, inodes_total=10**8, inodes_free=9 * 10**7)
        for path in ("/", "/tmp", "/home", "/home/user", "/home/user/.cache")
    }
    | {"/dev/shm": DiskUsage(total=TIB // 4, free=TIB // 4, inodes_total=10**6, inodes_free=10**6)},
}


def _like(base: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A site with its parts added to those of another."""
    made = copy.deepcopy(base)
    for part, value in more.items():
        made[part] = {**made[part], **value} if isinstance(made.get(part), dict) else value
    return made


DOCKER = _like(
    MACHINE,
    added={
        "/.dockerenv": "",
        "/proc/self/mountinfo": OVERLAY,
        "/proc/self/cgroup": "0::/\n",
        "/proc/1/cgroup": "0::/\n",
        **_limits(_CGROUP, str(256 << 30), "6400000 100000"),
    },
    variables={"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
)
POD = _like(
    DOCKER,
    variables={"KUBERNETES_SERVICE_HOST": "10.96.0.1", "NVIDIA_VISIBLE_DEVICES": "void"},
    added={"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "train\n"},
)
FABRIC = _like(
    MACHINE,
    added={
        **{key: text for n in range(8) for key, text in _port(f"mlx5_{n}").items()},
        "/proc/modules": "nvidia_peermem 1 0 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\n"
        "nvidia 1 0 - Live 0x0\n",
        "/etc/nccl.conf": "# of this site\nNCCL_IB_HCA=mlx5\nNCCL_SOCKET_IFNAME=eth0\n",
    },
)


def slurm(gpus: int) -> dict[str, Any]:
    """A job that was given every GPU of two nodes with an RDMA fabric."""
    return _like(
        FABRIC,
        variables={
            "SLURM_JOB_ID": "77",
            "SLURM_NNODES": "2",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURM_NTASKS_PER_NODE": "1",
            "SLURM_CPUS_ON_NODE": "192",
            "SLURM_GPUS_ON_NODE": str(gpus),
            "SLURM_MEM_PER_NODE": str(480 << 10),
            "SLURM_NODELIST": "gpu-[17-18]",
            "CUDA_VISIBLE_DEVICES": ",".join(str(n) for n in range(gpus)),
            "MASTER_ADDR": "gpu-17",
            "NCCL_DEBUG": "WARN",
            "OMP_NUM_THREADS": "16",
        },
        added={
            "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_77/step_0\n",
            **_limits(
                f"{_CGROUP}/system.slice/slurmstepd.scope/job_77/step_0",
                str(480 << 30),
                "max 100000",
            ),
        },
    )
