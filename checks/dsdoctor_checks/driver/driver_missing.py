"""An NVIDIA GPU is on the PCI bus, but the NVIDIA kernel driver is not loaded.

## Why it matters
Without the kernel module there is no `/dev/nvidia*`, NVML does not start, and torch sees no GPU.
DeepSpeed then falls back to the CPU with one warning line.

## What to do
Install the NVIDIA driver, from the distribution or from NVIDIA, and reboot. If it is installed,
check `dmesg` and `dkms status`: a kernel update may have left the module unbuilt, and Secure Boot
rejects an unsigned module. If `nouveau` is loaded, blacklist it first.

`mokutil --sb-state` shows whether Secure Boot is on. Distribution packages sign the module, or ask
to enroll a key at the next boot.

## References
- https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    GpuTopology,
    Level,
    Missing,
    NvidiaKernel,
    Nvml,
    Scope,
    Signature,
    check,
    fail,
    skip,
)
from dsdoctor_checks._util import driver_loaded

CONDITION = Condition(
    "driver-missing",
    id="DSD101",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("no-gpu-visible", "cuda-init-driver-state"),
    blinds=(Gpus, GpuTopology),
)


@check(CONDITION)
def gpu_has_driver(kernel: NvidiaKernel, nvml: Nvml | Missing) -> Iterator[Finding]:
    """A GPU on the bus needs the kernel module, unless it is assigned to a virtual machine."""
    ours = [gpu for gpu in kernel.pci if not (gpu.driver or "").startswith("vfio")]
    answers = isinstance(nvml, Nvml) and nvml.error is None
    if driver_loaded(kernel) or answers:
        return
    if not ours:
        yield skip("no NVIDIA GPU on the PCI bus of this machine")
        return
    if any(gpu.driver == "nvidia" for gpu in ours):
        return
    bound = "nouveau" if any(gpu.driver == "nouveau" for gpu in ours) else None
    named = f" ({ours[0].device_id})" if ours[0].device_id else ""
    served = "uses the `nouveau` driver" if bound else "has no driver"
    yield fail(
        f"the NVIDIA GPU at {ours[0].bdf}{named} {served},"
        " but CUDA needs the `nvidia` kernel module",
        effect="torch sees no GPU: the job exits at its first use of one, or runs on the CPU",
        hint=(
            "blacklist `nouveau`, install the NVIDIA driver and reboot"
            if bound
            else "install the NVIDIA driver; if it is installed, find out why it is not loaded with"
            " `dmesg | grep -i nvidia` and `dkms status`"
        )
        + (_SIGNED if kernel.secure_boot else ""),
        bdf=ours[0].bdf,
        device_id=ours[0].device_id,
        driver=bound,
        gpus_on_bus=len(ours),
        modules=list(kernel.modules),
        secure_boot=kernel.secure_boot,
    )


_SIGNED = (
    "; Secure Boot is on, so the kernel loads the module only if it is signed with a key that is enrolled"
    " (`mokutil --import KEY.der`, then reboot)"
)


HINT = (
    "find out why the NVIDIA kernel module is not loaded: `dkms status`, `dmesg | grep -i nvidia`; after"
    " a new kernel it may not be built for it. If there is none, install the driver"
)

SIGNATURES = (
    Signature(
        pattern="(?i)NVIDIA-SMI has failed because it couldn't communicate|Failed to initialize NVML: Driver Not Loaded",
        source="NVIDIA driver 300-590 nvidia-smi, for NVML's error 9: the driver is not loaded",
        message="nvidia-smi finds no NVIDIA kernel module that is loaded",
        examples=(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "nvidia-smi: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
            "Failed to initialize NVML: Driver Not Loaded",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern=r"modprobe: (?:FATAL|ERROR): Module nvidia\S* not found",
        source="kmod 20-33 tools/modprobe.c: the module is not built for the running kernel",
        message="the NVIDIA kernel module is not built for the running kernel",
        examples=(
            "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-45-generic",
            "modprobe: ERROR: Module nvidia-uvm not found in directory /lib/modules/5.15.0",
        ),
        not_examples=("modprobe: FATAL: Module nvidia is in use.",),
        level=Level.STRONG,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern=r"NVRM: No NVIDIA (?:graphics adapter probed!|devices probed\.)",
        source="NVIDIA driver 177-610 kernel module: nv.c",
        message="The NVIDIA driver could take no GPU: another driver holds them, or it failed on each",
        hint="run `lspci -nnk -d 10de:` to see which driver uses the GPU: blacklist `nouveau`, or take the GPU from `vfio-pci`, and reboot; otherwise read the `NVRM` lines before this one in `dmesg`",
        examples=(
            "NVRM: No NVIDIA graphics adapter probed!",
            "[   12.345678] NVRM: No NVIDIA devices probed.",
        ),
        level=Level.STRONG,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
)
