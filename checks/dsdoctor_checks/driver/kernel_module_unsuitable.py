"""The loaded NVIDIA kernel module, open or proprietary, does not support a GPU.

## Why it matters
NVIDIA ships two kinds of its kernel module. GPUs since Blackwell work only with the open one, GPUs
before Turing only with the proprietary one. With the wrong kind the driver loads, but leaves the GPU
out: `nvidia-smi` prints `No devices were found`.

## What to do
Install the other kind of the same driver and reboot: on Ubuntu `nvidia-driver-NNN-open`, on Arch
`nvidia-open-dkms`, from NVIDIA's repositories `nvidia-open` or `cuda-drivers`. The installer of the
`.run` file takes `-M open` and `-M proprietary`.

## References
- https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/ ("Kernel Modules")
- README.md of NVIDIA's open kernel modules 595.45.04: device ids of the GPUs that they support
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Level,
    Missing,
    NvidiaKernel,
    PciGpu,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least

CONDITION = Condition(
    "kernel-module-unsuitable",
    id="DSD115",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("no-gpu-visible", "gpu-lost", "gpu-count-unexpected"),
)
#: PCI device ids: Maxwell's begin with 13, Turing's with 1e, Blackwell's with 29 (README.md of the
#: open modules 595.45.04 and pci.ids 2023.04.11, read 2026-11-28). Families follow each other in age.
_MAXWELL, _TURING, _BLACKWELL = 0x1340, 0x1E00, 0x2900
#: First driver whose proprietary module knows no GPU before Turing either (NVIDIA's Unix graphics
#: feature deprecation schedule: 580 is the last, read 2026-11-28).
_TURING_ONLY = "590"


def _needs_open(gpu: PciGpu, version: str) -> bool | None:
    """Whether a GPU works only with the open module; None if with both kinds, neither, or unknown."""
    try:
        number = int(gpu.device_id, 16)
    except ValueError:
        return None
    if number >= _BLACKWELL:
        return True
    return False if _MAXWELL <= number < _TURING and not at_least(version, _TURING_ONLY) else None


@check(CONDITION)
def module_serves_each_gpu(kernel: NvidiaKernel, gpus: Gpus | Missing) -> Iterator[Finding]:
    """Compares the kind of the loaded module with those GPUs on the bus that NVML does not list."""
    if kernel.module_version is None or kernel.module_open is None:
        yield skip("the kind of the NVIDIA kernel module is not known")
        return
    have = kernel.module_open
    found = gpus.gpus if isinstance(gpus, Gpus) else ()
    listed = {gpu.pci_bdf for gpu in found if gpu.error is None}
    wrong = [
        gpu
        for gpu in kernel.pci
        if gpu.driver in {"nvidia", None}
        and gpu.bdf not in listed
        and _needs_open(gpu, kernel.module_version) is (not have)
    ]
    if not wrong:
        yield ok(module_open=have)
        return
    kinds = ("proprietary", "open")
    loaded, needed = kinds[have], kinds[not have]
    first = wrong[0]
    # an old card for the display does no harm beside the GPUs that the job uses
    beside = have and len(wrong) < len(kernel.pci)
    yield (warn if beside else fail)(
        f"the {loaded} kernel module {kernel.module_version} is loaded, but the GPU at {first.bdf}"
        f" ({first.device_id}) works only with the {needed} kernel module",
        effect="the driver leaves this GPU out, and `nvidia-smi` does not list it",
        hint=f"install the driver with the {needed} kernel modules and reboot (Ubuntu: `nvidia-driver-"
        f"{kernel.module_version.partition('.')[0]}{'-open' if not have else ''}`)",
        module_version=kernel.module_version,
        module_open=have,
        gpus=[gpu.bdf for gpu in wrong],
        device_id=first.device_id,
    )


HINT = "install the kernel modules (open or proprietary) that the GPU needs, and reboot"

SIGNATURES = (
    Signature(
        pattern="installed in this system requires use of the NVIDIA open kernel modules",
        source="NVIDIA driver 560-610 nvidia.ko (proprietary)",
        examples=(
            "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85) installed in this system requires use of the NVIDIA open kernel modules.",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
        message="NVIDIA's proprietary kernel module is loaded, but this GPU needs the open one",
        hint="install the driver with the open kernel modules (Ubuntu: `nvidia-driver-NNN-open`; the installer:"
        " `--kernel-module-type=open`) and reboot",
    ),
    Signature(
        pattern=r"installed in this system is not supported by open\b",
        source="NVIDIA open-gpu-kernel-modules 515-610 kernel-open/nvidia/nv-pci.c",
        examples=("NVRM: installed in this system is not supported by open",),
        not_examples=("NVRM: installed in this system is not supported by opengl",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
        message="NVIDIA's open kernel module is loaded, but this GPU is older than Turing and needs the"
        " proprietary one",
        hint="install the driver with the proprietary kernel modules and reboot",
    ),
    Signature(
        pattern="installed in this system is not supported by the",
        source="NVIDIA driver 390-610 nvidia.ko",
        examples=(
            "NVRM: installed in this system is not supported by the",
            "NVRM: The NVIDIA GPU 0000:17:00.0 (PCI ID: 10de:2684) installed in this system is not supported by the NVIDIA 470.256.02 driver release.",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
        message="The NVIDIA driver does not support this GPU: it is older than the GPU, or no longer supports it",
        hint="install a driver branch that lists the GPU (https://www.nvidia.com/drivers), and reboot",
    ),
)
