"""Messages of `gpu-hardware-fault`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

from ._xids import INFO, XIDS

#: For a GPU of which the driver only says that it cannot reach it.
_LOST = "look for `Xid` in `dmesg` and reboot the node; if it recurs, have the card and its power cables reseated. In a container, start a new one"
#: What ECC cannot correct.
_ECC = "A GPU has an error in its memory that ECC cannot correct"
_ECC_HINT = "`nvidia-smi -q -d ECC,ROW_REMAPPER` shows which; run without that GPU until it was reset (`nvidia-smi --gpu-reset -i N` as root) or the node rebooted, and have it replaced if it comes back"
#: What a program sees of it.
_VICTIMS = (
    "cuda-kernel-failed",
    "nccl-timeout-watchdog",
    "nccl-unhandled-cuda-error",
    "rendezvous-timeout",
)
_NOTED = "|".join(str(number) for number, xid in XIDS.items() if xid.level == INFO)

SIGNATURES = (
    Signature(
        # not those that a program causes, or that are harmless; the words of 79 have a message
        pattern=rf"NVRM: Xid(?! \([^)]{{1,40}}\): (?:79,.{{0,200}}fallen off|(?:{_NOTED})\b))",
        source="NVIDIA's Xid catalog of 2025-10-29 (`_xids.py`)",
        examples=(
            "NVRM: Xid (PCI:0000:b3:00): 48, pid=991, DBE (double bit error) ECC Error",
            "NVRM: Xid (PCI:0000:b3:00): 79, GPU 1, seen by NVML",
        ),
        not_examples=(
            "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.",
            "NVRM: Xid (PCI:0000:4b:00): 31, pid=991, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
            "NVRM: Xid (PCI:0000:4b:00): 43, pid=991, name=python, Ch 00000010",
        ),
        level=Level.CERTAIN,
        masks=_VICTIMS,
    ),
    Signature(
        pattern="fallen off the bus",
        source="NVIDIA driver 300-590 kernel module (NVRM), Xid 79; NVML nvmlErrorString",
        message="A GPU has fallen off the bus: the driver cannot reach it any more",
        hint="drain the node and reboot it, which alone brings the GPU back; if it happens again, check the GPU's power, cooling and seat, and have it replaced",
        examples=("NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.",),
        level=Level.CERTAIN,
        masks=_VICTIMS,
    ),
    Signature(
        pattern="(?i:uncorrectable ECC)",
        source="cuda runtime 12.9.79 libcudart.so.12",
        message=_ECC,
        hint=_ECC_HINT,
        examples=("RuntimeError: CUDA error: uncorrectable ECC error encountered",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="(?i:uncorrectable (?:NVLink|error))",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution",
            "uncorrectable error",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"[Uu]ncorrectable hardware error\(ERREVENT_ATHUB_INTERRUPT\) detected",
        source="Linux 5.3-6.12 drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, ras/ras_mgr/amdgpu_ras_mgr.c",
        message="An AMD GPU reports an uncorrectable hardware error",
        examples=(
            "amdgpu 0000:1c:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
            "amdgpu 0000:1c:00.0: {7} Uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        ),
        level=Level.CERTAIN,
        masks=(
            "hip-runtime-error",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern="ECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName; cuda.h, cuGetErrorName",
        message=_ECC,
        hint=_ECC_HINT,
        examples=("cudaErrorECCUncorrectable", "CUDA_ERROR_ECC_UNCORRECTABLE"),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="GPU is lost",
        source="NVIDIA driver 300-590 NVML nvmlErrorString, nvidia-smi",
        message="A GPU is lost: the driver cannot reach it",
        hint=_LOST,
        examples=(
            "Unable to determine the device handle for GPU0000:8A:00.0: GPU is lost.  Reboot the system to recover this GPU",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\[NV_ERR_GPU_IS_LOST\]",
        source="NVIDIA open-gpu-kernel-modules 515-590 sdk/nvidia/inc/nvstatuscodes.h, as its assertions print it",
        message="A GPU is lost: the driver cannot reach it",
        hint=_LOST,
        examples=(
            "NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from rmStatus @ kernel_ce_gv100.c:106",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"caused by previous Xid 1(?:4[4-9]|50)\b",
        source="NVIDIA driver 560-590, Xid 45; 144 to 150 are errors of NVLink 5 (Xid catalog)",
        message="an NVLink error ended the program",
        examples=(
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 1 caused by previous Xid 150",
        ),
        not_examples=(
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 1 caused by previous Xid 13",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(  # its configuration space reads as all ones; on laptops, also when it is powered off
        pattern=r"NVIDIA Corporation (?!\w+M\b)(?!.*(?:Mobile|Max-Q)).*\(rev ff\)",
        source="pciutils 3.5-3.13 lspci.c",
        message="the GPU does not answer on the PCI bus",
        examples=(
            "1c:00.0 VGA compatible controller: NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev ff)",
            "0b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff)",
        ),
        not_examples=(
            "01:00.0 3D controller: NVIDIA Corporation TU117M [GeForce GTX 1650 Mobile / Max-Q] (rev ff)",
            "01:00.0 3D controller: NVIDIA Corporation GF108M [GeForce GT 540M] (rev ff)",
            "1a:00.0 VGA compatible controller: NVIDIA Corporation TU102GL (rev a1)",
        ),
        level=Level.LIKELY,
    ),
    Signature(
        pattern="GPU requires reset",
        source="NVIDIA driver 450-590 nvidia-smi, NVML nvmlErrorString",
        examples=(
            "Unable to determine the device handle for GPU 0000:1B:00.0: GPU requires reset",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    # in people's words; what tools print of the GPU says more
    Signature(
        pattern=r"\bGPU\b.{0,40}\brequires? a reset\b",
        source="people's reports",
        examples=("this GPU requires a reset", "the GPU will require a reset"),
        not_examples=("the optimizer requires a reset",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Unable to determine the device handle",
        source="NVIDIA driver 390-590 nvidia-smi",
        message="A GPU is lost: the driver cannot reach it",
        hint=_LOST,
        examples=("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:CUDA error: |cuda runtime error \(\d{1,4}\) : |cudaErrorIllegalInstruction: )an illegal instruction was encountered|CUDA_ERROR_ILLEGAL_INSTRUCTION\b",
        source="CUDA 7.0-13.0 cudaGetErrorString, cudaGetErrorName, cuGetErrorName; torch 0.3-1.8 aten/src/THC/THCGeneral.cpp",
        examples=(
            "RuntimeError: CUDA error: an illegal instruction was encountered",
            "RuntimeError: cuda runtime error (73) : an illegal instruction was encountered at /x/THC.cu:9",
            "CUDARuntimeError: cudaErrorIllegalInstruction: an illegal instruction was encountered",
            "CudaAPIError: [715] Call to cuMemcpyDtoH results in CUDA_ERROR_ILLEGAL_INSTRUCTION",
        ),
        not_examples=("CUDA_ERROR_ILLEGAL_INSTRUCTION_SET",),
        level=Level.WEAK,
        message="A kernel used an instruction that the GPU does not support",
        hint="look for `Xid` in `dmesg`; without one, rebuild the extension whose "
        "kernel ran for this GPU",
    ),
    Signature(
        pattern=r"PCIe Bus Error: severity=Uncorrected|AER: (?:Multiple )?Uncorrected \(Fatal\)|has no AER-aware driver",
        source="linux 4.4-6.12 drivers/pci/pcie/aer.c",
        examples=(
            "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
            "pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010",
            "has no AER-aware driver",
        ),
        level=Level.CERTAIN,
        message="The PCIe link of a device has a fatal error",
        hint="reseat the card or its riser, and check the slot; `lspci -s ADDRESS` "
        "names the device",
    ),
    Signature(
        pattern="over nvlink or a hardware error",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern=r"CUDA_ERROR_(?:CONTAINED|NVLINK_UNCORRECTABLE)\b",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=(
            "CUDA_ERROR_CONTAINED",
            "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="because it is insufficiently powered",
        source="NVIDIA driver 390-590 NVML nvmlErrorString (NVML_ERROR_INSUFFICIENT_POWER)",
        examples=("Unable to communicate with GPU because it is insufficiently powered.",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
        message="A GPU does not get enough power",
        hint="connect all its power cables, and check the power supply",
    ),
    Signature(
        pattern="Insufficient External Power",
        source="nvidia-ml-py 13.615.71 pynvml.py",
        examples=("Insufficient External Power",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
        message="A GPU does not get enough power",
        hint="connect all its power cables, and check the power supply",
    ),
    Signature(
        pattern=r"SXid \(PCI:[\w:.]+\): \d+,.{0,20}\bFatal\b",
        source="NVIDIA driver 450-590 kernel module (nvidia-nvswitch)",
        examples=(
            "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 20009, Fatal, Link 12 RX Short Error Rate",
        ),
        not_examples=(
            "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 19084, Non-fatal, Link 31 AN1 Heartbeat Timeout Error",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
        message="An NVSwitch reports an error",
        hint="drain the node and read `dmesg | grep SXid`; after a fatal one, all GPUs"
        " and switches of the board have to be reset",
    ),
    Signature(
        pattern="infoROM is corrupted at",
        source="NVIDIA driver 390-580 nvidia-smi",
        examples=("infoROM is corrupted at",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern="GpuIsLost",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=("pynvml.NVMLError_GpuIsLost: GPU is lost",),
        level=Level.CERTAIN,
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "nccl-intra-node-transport-failed",
        ),
    ),
    Signature(
        pattern=r"\bHBM MULTI BIT ECC ERROR|NPU function error: (?:UCE ERROR|SUSPECT MEM ERROR)|reason=\[?(?:hbm Multi-bit ECC error|device mem error)",
        source="torch_npu 2.1-2.9 csrc/core/npu/NPUException.h, NPUException.cpp",
        message="An Ascend NPU found uncorrectable errors in its memory",
        hint="look at `npu-smi info -t ecc -i N`, run without that NPU or node, and have it replaced if it comes back",
        examples=(
            "RuntimeError: x.cpp:9 NPU function error: HBM MULTI BIT ECC ERROR. time is 7, error code is 507054",
            "NPU function error: UCE ERROR, error code is 507053",
            "NPU function error: SUSPECT MEM ERROR, error code is 507057",
            "rtStreamSynchronize execute failed, reason=[hbm Multi-bit ECC error][FUNC:FuncErrorReason]",
            "execute failed, reason=device mem error",
        ),
        not_examples=("MYHBM MULTI BIT ECC ERROR",),
        level=Level.STRONG,
        masks=("npu-kernel-failed", "hccl-error", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"(?:UR|ZE)_RESULT_ERROR_DEVICE_LOST",
        source="oneAPI Unified Runtime 0.7-0.12 ur_api.h; Level Zero 1.0-1.24 ze_api.h",
        message="The driver lost an Intel GPU: it was reset, or a kernel ran longer than the driver allows",
        hint="look in `dmesg` for a hang or reset of `i915` or `xe`; if the same kernel always ends this way, it runs too long: give it less work, or disable the hang check of the driver on a compute-only GPU",
        examples=(
            "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
            "ze error, code: ZE_RESULT_ERROR_DEVICE_LOST",
        ),
        masks=("nccl-timeout-watchdog", "rank-killed"),
    ),
)
