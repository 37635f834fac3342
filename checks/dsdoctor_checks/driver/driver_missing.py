"""An NVIDIA GPU is on the PCI bus, but no NVIDIA kernel driver serves it.

## Why it matters
Without the kernel module there is no `/dev/nvidia*`, NVML does not start, and torch sees no GPU:
DeepSpeed falls back to the CPU with a single warning line.

## What to do
Install the NVIDIA driver of the distribution or of NVIDIA, and restart the machine. If it is
installed, see `dmesg` and `dkms status`: after a kernel update the module may not have been
rebuilt, and Secure Boot refuses a module without a signature. With `nouveau` loaded, blacklist
it first.

## References
- https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Missing, NvidiaKernel, Nvml, Scope, check, fail, skip
from dsdoctor_checks._util import served_by_nvidia

CONDITION = Condition(
    "driver-missing",
    id="DSD101",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("no-gpu-visible", "cuda-init-driver-state"),
)


@check(CONDITION)
def gpu_has_driver(kernel: NvidiaKernel, nvml: Nvml | Missing) -> Iterator[Finding]:
    """A GPU on the bus needs the kernel module; one given to a virtual machine does not."""
    ours = [gpu for gpu in kernel.pci if not (gpu.driver or "").startswith("vfio")]
    answers = isinstance(nvml, Nvml) and nvml.error is None
    if served_by_nvidia(kernel) or answers:
        return
    if not ours:
        yield skip("no NVIDIA GPU on the PCI bus of this machine")
        return
    if any(gpu.driver == "nvidia" for gpu in ours):
        return
    bound = "nouveau" if any(gpu.driver == "nouveau" for gpu in ours) else None
    served = "is served by `nouveau`" if bound else "has no driver"
    yield fail(
        f"the NVIDIA GPU at {ours[0].bdf} ({ours[0].device_id}) {served},"
        " but CUDA needs the `nvidia` kernel module",
        effect="torch sees no GPU, and DeepSpeed falls back to the CPU",
        hint=(
            "blacklist `nouveau`, install the NVIDIA driver and restart the machine"
            if bound
            else "install the NVIDIA driver, or see why it is not loaded with"
            " `dmesg | grep -i nvidia` and `dkms status`"
        ),
        bdf=ours[0].bdf,
        device_id=ours[0].device_id,
        driver=bound,
        gpus_on_bus=len(ours),
        modules=list(kernel.modules),
    )
