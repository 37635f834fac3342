"""The pod does not see the GPUs that it was assigned.

## Why it matters
The Kubernetes device plugin lists the GPUs of a container in `NVIDIA_VISIBLE_DEVICES`. `void` or
`none` means that the container requested no GPU, so torch finds none. If the image or the manifest
sets the variable to `all`, the pod sees and uses the GPUs of other pods.

## What to do
Request GPUs in `resources.limits` of the container (`nvidia.com/gpu: 8`), and remove
`NVIDIA_VISIBLE_DEVICES` from the manifest.

## References
- https://github.com/NVIDIA/k8s-device-plugin (device list strategy)
- https://docs.nvidia.com/datacenter/cloud-native/container-toolkit (environment variables)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import amount

CONDITION = Condition("kubernetes-gpus-not-visible", id="DSD1605", scope=Scope.JOB, since="0.1")

_NONE = ("void", "none")


@check(CONDITION)
def pod_sees_its_gpus(
    os: OsInfo, env: Environment, gpus: Gpus | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Compares the list of the device plugin with the GPUs that NVML reports."""
    if os.container != "kubernetes":
        yield skip("not in a Kubernetes pod")
        return
    value = env.get("NVIDIA_VISIBLE_DEVICES")
    found = () if isinstance(gpus, Missing) else gpus.gpus
    if value is None:
        yield skip("the device plugin did not set `NVIDIA_VISIBLE_DEVICES`")
        return
    if value in _NONE and not found:
        if run.wants_gpu:
            yield fail(
                f"`NVIDIA_VISIBLE_DEVICES` is `{value}`, so this container has no GPU, but the run"
                " needs one",
                effect="CUDA finds no device",
                hint="set `nvidia.com/gpu: N` in `resources.limits` of the container",
                value=value,
            )
        else:
            yield ok(value=value)
        return
    names = {gpu.uuid for gpu in found} | {
        device.uuid for gpu in found for device in gpu.mig_devices or ()
    }
    given = [name for name in value.split(",") if name.startswith(("GPU-", "MIG-"))]
    lacking = [name for name in given if name not in names]
    if lacking:
        yield fail(
            f"the pod has {amount(len(given), 'assigned GPU')}, but does not see {', '.join(lacking)}",
            effect="the ranks of those GPUs fail with `invalid device ordinal`",
            hint="delete the pod so that it is created again, and look for lost GPUs with"
            " `kubectl describe node`",
            given=given,
            lacking=lacking,
        )
    elif value == "all" and run.expect_gpus is not None and len(found) > run.expect_gpus:
        yield warn(
            f"`NVIDIA_VISIBLE_DEVICES` is `all` and {len(found)} GPUs are visible, but the run "
            f"needs {run.expect_gpus}",
            effect="the pod uses GPUs that are assigned to other pods",
            hint="remove `NVIDIA_VISIBLE_DEVICES` from the image and the manifest, and set"
            " `nvidia.com/gpu`",
            visible=len(found),
            expected=run.expect_gpus,
        )
    else:
        yield ok(given=len(given), visible=len(found))
