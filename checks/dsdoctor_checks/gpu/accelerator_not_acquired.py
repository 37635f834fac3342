"""An accelerator other than a GPU could not be opened, or another process holds it.

## Why it matters
A process takes a Gaudi (HPU), an Ascend NPU, a TPU or the cores of an AWS Neuron device for itself. If an earlier
process still holds it, if more ranks ask than there are devices, or if its driver does not work, the program ends
before its first step.

## What to do
List the devices and their processes with the tool of the vendor (`hl-smi`, `npu-smi info`,
`neuron-ls`; for a TPU `fuser -v /dev/accel* /dev/vfio/*`), and end processes of earlier runs. Start
no more ranks than there are devices, and give each its own (`HABANA_VISIBLE_MODULES`,
`ASCEND_RT_VISIBLE_DEVICES`, `NEURON_RT_VISIBLE_CORES`). If nobody holds it, check its driver and
firmware: then the tool fails as well.

## References
- Gaudi pytorch-integration: synapse_helpers device.cpp
- torch_npu torch_npu/csrc/core/npu/NPUErrorCodes.h
- https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html
- https://docs.cloud.google.com/tpu/docs/troubleshooting/troubleshooting
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("accelerator-not-acquired", id="DSD662", scope=Scope.NODE, since="0.1")

HINT = "list the processes on the device with the vendor's tool (`hl-smi`, `npu-smi info`, `neuron-ls`), end those of earlier runs, and start no more ranks than there are devices"

#: What the other ranks report of it.
_VICTIMS = ("hccl-error", "nccl-timeout-watchdog", "rank-killed", "rendezvous-timeout")

SIGNATURES = (
    Signature(
        pattern=r"synStatus=?\s?\S{0,20} ?\[[^\]]{1,60}\]\.? Device acquire failed",
        source="Gaudi PyTorch bridge 1.5-1.23 synapse_helpers/device.cpp",
        message="No Gaudi HPU could be opened",
        hint="run `hl-smi` to see which processes hold the modules, end processes of earlier runs, and start no more ranks than there are free modules",
        examples=(
            "RuntimeError: synStatus=26 [Generic failure] Device acquire failed.",
            "RuntimeError: synStatus=8 [Device not found] Device acquire failed.",
        ),
        not_examples=("DirectInput [x] Device acquire failed",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:Logical )?Neuron ?Core\(s\) not available - Requested:(?P<want>\S{1,40}) Available:(?P<have>\S{1,40})",
        source="AWS Neuron runtime 2.0-2.29 libnrt",
        message="Neuron cores {want} were requested, but {have} are free",
        hint="run `neuron-ls` to see which processes hold the cores, end processes of earlier runs, and give each process its own with `NEURON_RT_VISIBLE_CORES`",
        examples=(
            "NRT:nrt_allocate_neuron_cores Logical Neuron Core(s) not available - Requested:lnc0-lnc31 Available:0 Logical Core size:2",
            "ERROR NRT:nrt_allocate_neuron_cores NeuronCore(s) not available - Requested:nc1-nc1 Available:0",
        ),
        not_examples=("Neuron Core(s) not available - Requested:2",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"The TPU is already in use by process with pid (?P<pid>\d+)",
        source="libtpu and OpenXLA xla/pjrt/plugin/xla_tpu, xla/stream_executor/tpu/tpu_initializer_helper.cc 2022-2026",
        message="Process {pid} holds the TPU",
        hint="end that process (`ps -fp {pid}`), or the notebook that imported torch_xla or JAX in it: one process can use a TPU at a time",
        examples=(
            "ABORTED: The TPU is already in use by process with pid 1234. Not attempting to load libtpu.so in this process.",
        ),
        not_examples=("The TPU is already in use by process with pid <PID>",),
        level=Level.CERTAIN,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"No neuron device available|ERROR +TDRV:tdrv_get_dev_info",
        source="AWS Neuron runtime 2.0-2.29 libnrt",
        message="There is no AWS Neuron device",
        hint="run it on an Inferentia or Trainium instance whose driver is loaded (`neuron-ls`); a container needs `--device /dev/neuron0`",
        examples=(
            "ERROR TDRV:tdrv_get_dev_info No neuron device available",
            "ERROR  TDRV:tdrv_get_dev_info",
        ),
        not_examples=("ERROR in TDRV:tdrv_get_dev_info",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"NPU (?:function )?error: .{0,160}(?:aclrtSetDevice|SetDevice|aclInit)\b.{0,80}, error code is (?P<code>507033|507008|207004|507899|107001)\b",
        source="torch_npu 1.11-2.9 csrc/core/npu/NPUErrorCodes.h, sys_ctrl/npu_sys_ctrl.cpp, NPUFunctions.cpp",
        message="The Ascend NPU could not be opened (CANN's error {code})",
        hint="run `npu-smi info` to see whether the device is healthy and which process holds it; in a container, check that `/dev/davinci*` and the driver's folder are mounted and that driver and CANN are compatible",
        examples=(
            "RuntimeError: Initialize:npu_sys_ctrl.cpp:217 NPU function error: aclrtSetDevice(device_id_), error code is 507033",
            "RuntimeError: x.cpp:9 NPU function error: SetDevice(0), error code is 107001",
            "RuntimeError: x.cpp:9 NPU error: aclInit(nullptr), error code is 507008",
            "RuntimeError: x.cpp:9 NPU function error: c10_npu::SetDevice(device), error code is 507899",
            "RuntimeError: x.cpp:9 NPU function error: c10_npu::SetDevice(device), error code is 207004",
        ),
        not_examples=(
            "NPU function error: aclrtSetDevice(device_id_), error code is 5070330",
            "NPU function error: aclrtSynchronizeDevice(), error code is 507033",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bEL0005\)?: (?:\[PID: \d{1,9}\] )?(?:\d{4}-\d\d-\d\d\S{0,20} )?The resources are busy\.",
        source="CANN 6-8 conf/error_manager/error_code.json: EL0005",
        message="The Ascend NPU is held by another process, or is being reset",
        hint="run `npu-smi info` to see which process holds it, and end what an earlier job has left; if it is being reset, wait and start again",
        examples=(
            "EL0005: [PID: 7] 2024-05-21-10:00:00.123.456 The resources are busy.",
            "Resource_Busy(EL0005): The resources are busy.",
        ),
        not_examples=("EL0004: The resources are busy.",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern="dcmi model initiali(?:zed|zation) failed, because the device is used",
        source="Ascend driver 23-25 npu-smi",
        message="Another container or process holds the Ascend NPU",
        hint="an NPU serves one container at a time: end the others that mount it (`docker ps`), or give this one another card",
        examples=(
            "dcmi model initialized failed, because the device is used. ret is -8020",
            "dcmi model initialization failed, because the device is used. ret is -8020",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"dcmi module initialize failed\. ret is -?\d+",
        source="Ascend driver 20-25 npu-smi",
        message="The tool of the Ascend driver cannot reach the driver",
        hint="check with `lsmod` that the Ascend driver is loaded and matches the firmware (reboot after an update); a container or user without access to `/dev/davinci_manager` gets the same message",
        examples=("dcmi module initialize failed. ret is -8005",),
        not_examples=("dcmi module initialize failed. ret is unknown",),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
)
