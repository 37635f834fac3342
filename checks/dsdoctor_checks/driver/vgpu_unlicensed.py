"""A virtual GPU holds no license.

## Why it matters
NVIDIA's driver slows down a virtual GPU that gets no license: it starts at full speed, and about
20 minutes after boot the driver restricts its performance and then disables CUDA. A training run takes
many times as long as planned or stops, and collectives with faster ranks time out.

## What to do
In the virtual machine, enter the license server and the feature type in `/etc/nvidia/gridd.conf`, put the
client token into `/etc/nvidia/ClientConfigToken/`, and run `systemctl restart nvidia-gridd`. The full speed
returns as soon as the license is there. A C-series type needs a license for compute (NVIDIA AI Enterprise,
formerly vCS), a Q-series type one for RTX vWS.

## References
- https://docs.nvidia.com/ai-enterprise/release-8/latest/infra-software/vgpu/licensing.html
- https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide/
- nvml.h, `nvmlGridLicensableFeatures_t`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen
from dsdoctor_checks.gpu._util import named

CONDITION = Condition("vgpu-unlicensed", id="DSD117", scope=Scope.NODE, since="0.1")


def refuses_cuda(live: TorchLive | Missing) -> bool:
    """Whether torch could not use the device, or CUDA at all."""
    if not isinstance(live, TorchLive):
        return False
    return live.cuda_ok is False or any(not device.ok for device in live.devices)


@check(CONDITION)
def vgpus_hold_licenses(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """Judges virtual GPUs; the driver asks for the license when the machine boots."""
    virtual = [gpu for gpu in chosen(gpus, run, env) if gpu.virtualization == "VGPU"]
    if not virtual:
        yield ok(virtual=0)
    for gpu in virtual:
        if gpu.licensed is None:
            yield skip(f"the driver does not say whether {named(gpu)} holds a license")
        elif gpu.licensed:
            yield ok(gpu=gpu.index, name=gpu.name)
        else:
            refused = refuses_cuda(live)
            yield (fail if refused else warn)(
                f"{named(gpu)} is a virtual GPU without a license"
                + (", and CUDA does not start on it" if refused else ""),
                effect="about 20 minutes after boot, the driver restricts its performance, and"
                " later disables CUDA",
                hint="enter the license server in `/etc/nvidia/gridd.conf` of this virtual machine"
                " and run `systemctl restart nvidia-gridd`; `nvidia-smi -q` shows the license status",
                gpu=gpu.index,
                name=gpu.name,
            )
