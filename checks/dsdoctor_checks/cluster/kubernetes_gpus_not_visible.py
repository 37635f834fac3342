"""The pod was given other GPUs than it can see.

## Why it matters
Kubernetes hands GPUs to a container through the device plug-in, which names them in
`NVIDIA_VISIBLE_DEVICES`. `void` or `none` there means that the container asked for none: torch finds
no device. When the image or the manifest sets the variable to `all`, the pod sees the GPUs of other
pods and takes them from under their feet.

## What to do
Ask for them in the container's `resources.limits` (`nvidia.com/gpu: 8`), and take
`NVIDIA_VISIBLE_DEVICES` out of the manifest.

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

CONDITION = Condition("kubernetes-gpus-not-visible", id="DSD1605", scope=Scope.JOB, since="0.1")

_NONE = ("void", "none")


@check(CONDITION)
def pod_sees_its_gpus(
    os: OsInfo, env: Environment, gpus: Gpus | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Compares the names that the device plug-in gave with the GPUs that NVML shows."""
    if os.container != "kubernetes":
        yield skip("this is no pod of Kubernetes")
        return
    value = env.get("NVIDIA_VISIBLE_DEVICES")
    found = () if isinstance(gpus, Missing) else gpus.gpus
    if value is None:
        yield skip("the device plug-in set no `NVIDIA_VISIBLE_DEVICES`")
        return
    if value in _NONE and not found:
        if run.wants_gpu:
            yield fail(
                f"`NVIDIA_VISIBLE_DEVICES` is `{value}`, so this container was given no GPU, but "
                "the run asks for some",
                effect="CUDA finds no device",
                hint="set `resources.limits` of the container to `nvidia.com/gpu: N`",
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
            f"the pod was given {len(given)} devices, but {len(lacking)} of them cannot be seen",
            effect="the ranks of those devices end in `invalid device ordinal`",
            hint="delete the pod so that it is made anew; see `kubectl describe node` for lost GPUs",
            given=given,
            lacking=lacking,
        )
    elif value == "all" and run.expect_gpus is not None and len(found) > run.expect_gpus:
        yield warn(
            f"`NVIDIA_VISIBLE_DEVICES` is `all` and {len(found)} GPUs are visible, but the run "
            f"asks for {run.expect_gpus}",
            effect="the pod takes GPUs that Kubernetes gave to others",
            hint="take `NVIDIA_VISIBLE_DEVICES` out of image and manifest, and set `nvidia.com/gpu`",
            visible=len(found),
            expected=run.expect_gpus,
        )
    else:
        yield ok(given=len(given), visible=len(found))
