"""The container sees different GPUs than it was assigned.

## Why it matters
NVIDIA's runtime and the Kubernetes device plugin list the assigned GPUs in `NVIDIA_VISIBLE_DEVICES`.
If the container sees fewer GPUs, one is lost or the runtime did not pass it through. If it sees more,
it is privileged and can use GPUs that belong to other pods.

## What to do
If GPUs are missing, delete the pod so that it is scheduled again, and check the node (`dmesg`, device
plugin). If there are too many, remove `privileged: true` and host mounts of `/dev`, or set
`CUDA_VISIBLE_DEVICES` to the assigned UUIDs.

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
from dsdoctor_checks._util import amount
from dsdoctor_checks._where import this_container

CONDITION = Condition("container-gpu-mismatch", id="DSD1101", scope=Scope.NODE, since="0.1")


def allotted(value: str | None) -> tuple[str, ...] | None:
    """UUIDs in `NVIDIA_VISIBLE_DEVICES`; None if it does not list any (`all`, `0,1`, a volume).

    >>> allotted("GPU-1a,GPU-2b"), allotted("all"), allotted(None)
    (('GPU-1a', 'GPU-2b'), None, None)
    """
    items = [item.strip() for item in (value or "").split(",") if item.strip()]
    if not items or not all(item.startswith(("GPU-", "MIG-")) for item in items):
        return None
    return tuple(items)


@check(CONDITION)
def container_sees_what_it_was_given(os: OsInfo, env: Environment, gpus: Gpus) -> Iterator[Finding]:
    """Compares the list of the runtime with the GPUs that NVML reports."""
    given = allotted(env.get("NVIDIA_VISIBLE_DEVICES"))
    if os.container is None or given is None:
        yield skip("`NVIDIA_VISIBLE_DEVICES` does not list the UUIDs of assigned GPUs")
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
    if lacking and os.container != "kubernetes":  # `kubernetes-gpus-not-visible` reports pods
        yield fail(
            f"{this_container(os.container)} has {amount(len(given), 'assigned GPU')}, but does not see "
            f"{', '.join(lacking)}",
            effect="the launcher starts more ranks than there are GPUs",
            hint="restart the container or pod, on another node if it happens again",
            **evidence,
        )
    elif extra:
        yield warn(
            f"{this_container(os.container)} has {amount(len(given), 'assigned GPU')}, but sees "
            f"{len(extra)} more ({', '.join(f'GPU {index}' for index in extra)})",
            effect="a job that uses all visible GPUs interferes with other jobs",
            hint=f"set `CUDA_VISIBLE_DEVICES={','.join(given)}`, and run without `privileged`",
            **evidence,
        )
    else:
        yield ok(**evidence)
