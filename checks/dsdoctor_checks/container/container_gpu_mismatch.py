"""The container sees other GPUs than it was allotted.

## Why it matters
NVIDIA's runtime and the device plug-in of Kubernetes write what they allot into
`NVIDIA_VISIBLE_DEVICES`. If the container sees fewer GPUs, one of them is lost or the runtime did
not hand it over; if it sees more, it is privileged and takes GPUs that belong to other pods.

## What to do
Fewer: delete the pod so that it is scheduled anew, and look at the node (`dmesg`, device plug-in).
More: take `privileged: true` and host mounts of `/dev` away, or set `CUDA_VISIBLE_DEVICES` to the
allotted UUIDs.

## References
- https://github.com/NVIDIA/k8s-device-plugin (device list strategies)
- https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    OsInfo,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)

CONDITION = Condition("container-gpu-mismatch", id="DSD1101", scope=Scope.NODE, since="0.1")


def allotted(value: str | None) -> tuple[str, ...] | None:
    """UUIDs in `NVIDIA_VISIBLE_DEVICES`; None where it does not list any (`all`, `0,1`, a volume).

    >>> allotted("GPU-1a,GPU-2b"), allotted("all"), allotted(None)
    (('GPU-1a', 'GPU-2b'), None, None)
    """
    items = [item.strip() for item in (value or "").split(",") if item.strip()]
    if not items or not all(item.startswith(("GPU-", "MIG-")) for item in items):
        return None
    return tuple(items)


@check(CONDITION)
def container_sees_what_it_was_given(os: OsInfo, env: Environment, gpus: Gpus) -> Iterator[Finding]:
    """The list that the runtime wrote against the GPUs that NVML shows."""
    given = allotted(env.get("NVIDIA_VISIBLE_DEVICES"))
    if os.container is None or given is None:
        yield skip("no list of allotted GPUs here (`NVIDIA_VISIBLE_DEVICES` with UUIDs)")
        return
    whole = {gpu.uuid: gpu.index for gpu in gpus.gpus if gpu.uuid}
    slices = {device.uuid for gpu in gpus.gpus for device in gpu.mig_devices or () if device.uuid}
    lacking = [uuid for uuid in given if uuid not in whole and uuid not in slices]
    extra = []
    if not slices:
        extra = [str(index) for uuid, index in whole.items() if uuid not in given]
    evidence: dict[str, Any] = {
        "allotted": list(given),
        "seen": list(whole),
        "container": os.container,
    }
    if lacking and os.container != "kubernetes":  # a pod's lack is `kubernetes-gpus-not-visible`
        yield fail(
            f"{len(given)} GPUs are allotted to this {os.container} container, but "
            f"{len(lacking)} of them cannot be seen ({', '.join(lacking)})",
            effect="the launcher starts more ranks than there are devices",
            hint="start the container or pod anew, on another node if it happens again",
            **evidence,
        )
    elif extra:
        yield warn(
            f"{len(given)} GPUs are allotted to this {os.container} container, but it sees "
            f"{len(extra)} more ({', '.join(f'GPU {index}' for index in extra)})",
            effect="a job that takes all GPUs that it sees disturbs those of others",
            hint=f"set `CUDA_VISIBLE_DEVICES={','.join(given)}`, and run without `privileged`",
            **evidence,
        )
    else:
        yield ok(**evidence)
