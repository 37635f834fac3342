"""Shared memory of a container that the command starts."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    ContainerRuntimes,
    ContainerStart,
    Environment,
    Finding,
    Gpus,
    ManifestContainer,
    Missing,
    NotStated,
    Resources,
    RunNeeds,
    fail,
    skip,
    warn,
    without_fix,
)

from ._util import ranks

#: Programs that give each container a /dev/shm of its own, of 64 MiB (docker 1.10 to 28 daemon/config,
#: podman 1.0 to 5.6 shm_size of containers.conf(5), containerd 1.2 to 2.1 pkg/oci/mounts.go).
OWN_SHM = frozenset({"docker", "podman", "nerdctl"})
_DEFAULT_MIB = 64
_LAUNCHERS = frozenset({"deepspeed", "torchrun", "accelerate"})


def in_container(
    start: ContainerStart,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    runtimes: ContainerRuntimes | Missing,
) -> Iterator[Finding]:
    """Judges the command that starts the container: without an option, its /dev/shm is small."""
    setting = runtimes.shm_by if isinstance(runtimes, ContainerRuntimes) else ""
    if start.unknown or start.shm or setting or start.on_cpu:
        yield skip(f"the container's /dev/shm is set by {start.shm or setting or 'the command'}")
        return
    many = start.launcher in _LAUNCHERS
    count = (run.container_ranks or ranks(run, gpus, env)) if many else 1
    if count == 1 and not start.workers:
        yield skip("one rank without DataLoader workers needs little shared memory")
        return
    wanted = "1 rank with DataLoader workers" if count == 1 else f"{count} ranks"
    known = isinstance(runtimes, ContainerRuntimes)
    finding = (fail if count > 1 and known else warn)(
        f"`{start.program}` sets neither `--shm-size` nor `--ipc`, so /dev/shm of the container has"
        f" {_DEFAULT_MIB} MiB, but it starts {wanted}",
        effect="DataLoader workers stop with a bus error, or NCCL cannot extend its segment",
        hint="add `--ipc=host` or `--shm-size=16g` before the image",
        shm_mib=_DEFAULT_MIB,
        ranks=count,
        program=start.program,
    )
    yield without_fix(finding)  # that of the host is another one


def in_manifest(container: ManifestContainer, count: int) -> Iterator[Finding]:
    """Judges the container of a manifest or Compose file that starts so many ranks.

    A cluster may set another size for all its pods (`shm_size` of CRI-O), so this is no failure.
    """
    if container.shm:
        yield skip(f"the container's /dev/shm is set by {container.shm}")
        return
    if count < 2:  # noqa: PLR2004
        yield skip("one rank needs little shared memory")
        return
    compose = container.kind.startswith("Compose")
    yield without_fix(
        warn(
            f"the {'service sets neither `shm_size` nor `ipc: host`' if compose else 'pod mounts no volume at /dev/shm'},"
            f" so it has {_DEFAULT_MIB} MiB there, but starts {count} ranks",
            effect="DataLoader workers stop with a bus error, or NCCL cannot extend its segment",
            hint="set `shm_size: 16gb`, or `ipc: host`"
            if compose
            else "mount an `emptyDir` with `medium: Memory` at /dev/shm",
            shm_mib=_DEFAULT_MIB,
            ranks=count,
            container=container.name,
        )
    )


def is_stated(resources: Resources | Missing) -> bool:
    """Whether a text states the size of the container's own /dev/shm."""
    try:
        return isinstance(resources, Resources) and resources.shm_total_bytes is not None
    except NotStated:
        return False
