"""Facts about the host: operating system, limits, environment, PCI devices, accounts."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class OsInfo(Fact, frozen=True, kw_only=True):
    """Operating system of this machine.

    Attributes:
        system: `Linux`, `Darwin` or `Windows`.
        release: kernel release.
        machine: `x86_64`, `aarch64`, …
        hostname: short name of the node.
        distribution: `ID VERSION_ID` of /etc/os-release.
        libc: name and version (`glibc 2.36`).
        wsl: inside the Windows Subsystem for Linux.
        container: `docker`, `podman`, `kubernetes`, `apptainer`, `enroot`, `container` or None.
        is_root: effective user is root.
        amd_gpus: AMD GPUs that the kernel offers to ROCm.
        kfd_writable: whether this account may open `/dev/kfd`, through which ROCm reaches the GPUs;
            None if there is none.
        clock: the date that the clock shows, if it is before this dsdoctor was made, so certainly
            wrong; None otherwise.
    """

    system: str
    release: str
    machine: str
    hostname: str
    distribution: str | None = None
    libc: str | None = None
    wsl: bool = False
    container: str | None = None
    is_root: bool = False
    amd_gpus: int = 0
    kfd_writable: bool | None = None
    clock: str | None = None


class Resources(Fact, frozen=True, kw_only=True):
    """CPUs, memory and limits that a job on this host would get.

    Attributes:
        cpus_logical: CPUs of the machine.
        cpus_usable: CPUs allowed by affinity and cgroup quota (rounded down, at least 1).
        memory_total_bytes: RAM of the machine.
        memory_limit_bytes: smallest memory limit of the cgroup and its parents; None = no limit.
        memory_available_bytes: memory that a new process could allocate now, within the cgroup.
        swap_total_bytes: swap space.
        shm_total_bytes: size of /dev/shm; None if there is none.
        shm_free_bytes: free space in /dev/shm.
        limit_memlock: RLIMIT_MEMLOCK in bytes; None = unlimited.
        limit_nofile: RLIMIT_NOFILE (soft); None = unlimited.
        limit_stack: RLIMIT_STACK in bytes; None = unlimited.
        limit_address_space: RLIMIT_AS in bytes; None = unlimited.
        limit_nproc: RLIMIT_NPROC (soft), processes and threads of the user; None = unlimited.
        tasks_limit: `pids.max` of the cgroup that leaves the least room; None = no limit.
        tasks_left: processes and threads that still fit below it; None = no limit.
    """

    cpus_logical: int
    cpus_usable: int
    memory_total_bytes: int
    memory_available_bytes: int
    memory_limit_bytes: int | None = None
    swap_total_bytes: int = 0
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    limit_memlock: int | None = None
    limit_nofile: int | None = None
    limit_stack: int | None = None
    limit_address_space: int | None = None
    limit_nproc: int | None = None
    tasks_limit: int | None = None
    tasks_left: int | None = None

    @property
    def memory_usable_bytes(self) -> int:
        """RAM that a job can use at most: the machine's, or the cgroup limit if lower."""
        limit = self.memory_limit_bytes
        return self.memory_total_bytes if limit is None else min(limit, self.memory_total_bytes)


class Environment(Fact, frozen=True, kw_only=True):
    """Environment variables on the allow-list, secrets masked.

    Attributes:
        variables: name to value.
    """

    variables: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """The value, or None if the variable is not set."""
        return self.variables.get(name)


class PciGpu(msgspec.Struct, frozen=True, kw_only=True):
    """An NVIDIA display or 3D controller on the PCI bus, with or without a driver.

    Attributes:
        bdf: `0000:1b:00.0`.
        device_id: `0x2330`.
        driver: kernel driver bound to it (`nvidia`, `nouveau`, `vfio-pci`); None = none.
    """

    bdf: str
    device_id: str
    driver: str | None = None


class NvidiaKernel(Fact, frozen=True, kw_only=True):
    """The kernel side of the NVIDIA driver, read from /proc and /sys, which cannot hang.

    Attributes:
        module_version: version of the loaded kernel module (/proc/driver/nvidia/version); None =
            not loaded.
        module_open: it is the open kernel module.
        modules: loaded modules whose names begin with nvidia, plus nouveau.
        pci: NVIDIA GPUs on the PCI bus.
        device_nodes: existing /dev/nvidia* nodes (`nvidia0`, `nvidiactl`, `nvidia-uvm`).
        imex_channels: names in /dev/nvidia-caps-imex-channels (`channel0`), through which jobs
            share GPU memory with other nodes of their NVLink domain; None = not read.
        dxg: /dev/dxg exists (the GPU interface of WSL).
        secure_boot: UEFI Secure Boot is on, with which most kernels load signed modules only; None:
            not read, as where the module is loaded.
        uvm_hmm: the loaded module nvidia_uvm may manage the host's memory for the GPUs (HMM: its
            parameter `uvm_disable_hmm` is off); None = not read.
    """

    module_version: str | None = None
    module_open: bool | None = None
    modules: tuple[str, ...] = ()
    pci: tuple[PciGpu, ...] = ()
    device_nodes: tuple[str, ...] = ()
    imex_channels: tuple[str, ...] | None = None
    dxg: bool = False
    secure_boot: bool | None = None
    uvm_hmm: bool | None = None


class NvidiaSmi(Fact, frozen=True, kw_only=True):
    """The output of `nvidia-smi`, if it is installed: a second source next to NVML.

    Attributes:
        path: the program; None if it is not on PATH.
        returncode: its exit status; None if it did not finish.
        driver_version: driver version that it prints.
        cuda_version: the `CUDA Version` of its header.
        cuda_missing: what the header prints in its place: `N/A` and `Not Found` where it finds no
            libcuda, `ERR!` where libcuda does not answer.
        gpus: the `index, uuid, name` lines that it printed.
        error: its own message, or how it failed (`timed out after 10 s`, `not text`).
        timed_out: it hung.
    """

    path: str | None = None
    returncode: int | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    cuda_missing: str | None = None
    gpus: tuple[str, ...] = ()
    error: str | None = None
    timed_out: bool = False


class ContainerRuntimes(Fact, frozen=True, kw_only=True):
    """What decides about GPUs and shared memory of a container beside the command that starts it.

    Attributes:
        names: runtimes of Docker, as `docker info` lists them (`runc`, `nvidia`); empty = unknown.
        default: the runtime that Docker uses without `--runtime`; "" = unknown.
        gpus_by: a setting that gives every container GPUs (`always use nv = yes`); "" = none.
        shm_by: a setting of another default size of /dev/shm (`default-shm-size`); "" = none.
        enroot_hook: enroot's hook for NVIDIA GPUs is installed.
        container_cli: `nvidia-container-cli`, which that hook runs, is on PATH.
    """

    names: tuple[str, ...] = ()
    default: str = ""
    gpus_by: str = ""
    shm_by: str = ""
    enroot_hook: bool = False
    container_cli: bool = False


class LibCuda(Fact, frozen=True, kw_only=True):
    """The user-space driver (libcuda.so.1) that a job would load, found without loading it.

    Attributes:
        path: file that the loader would load; None if there is none.
        via: `LD_LIBRARY_PATH`, `ld.so.cache`, `default` or `wsl`.
        version: driver version in the file name it resolves to (`535.104.05`).
        compat: it is the forward-compatibility library (cuda-compat).
        stub: it is a toolkit's stub, which cannot work.
        others: further copies on the search path.
    """

    path: str | None = None
    via: str | None = None
    version: str | None = None
    compat: bool = False
    stub: bool = False
    others: tuple[str, ...] = ()
