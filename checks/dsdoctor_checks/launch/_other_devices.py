"""Devices of accelerators other than NVIDIA's that the ranks of a command see.

The variables renumber what they list from 0. DeepSpeed's launcher sets the one of its accelerator itself
(0.19.8 accelerator/*.py, `visible_devices_envs`), so it counts only for launchers that pass it on.
"""

from __future__ import annotations

from dsdoctor.api import Environment, LaunchCommand, Missing, TorchLive
from dsdoctor_checks._util import cuda_works, variable

#: What selects GPUs for HIP, and below it for ROCR.
_OF_AMD = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
#: The variable of each other accelerator that is renumbered so.
_VARIABLES = {
    "Ascend NPU (`npu`)": "ASCEND_RT_VISIBLE_DEVICES",
    "Intel XPU (`xpu`)": "ZE_AFFINITY_MASK",
}


def devices_of(
    accelerator: str,
    command: LaunchCommand,
    env: Environment | Missing,
    live: TorchLive | Missing,
) -> tuple[int, str] | None:
    """How many devices the ranks of this host see, and the variable that says so; "" = torch does.

    None if that is not known.

    >>> from dsdoctor.api import ImportOutcome
    >>> here = Environment(variables={"ASCEND_RT_VISIBLE_DEVICES": "4,5"})
    >>> none = LaunchCommand(launcher="torchrun")
    >>> devices_of("Ascend NPU (`npu`)", none, here, TorchLive(imported=ImportOutcome(ok=True)))
    (2, 'ASCEND_RT_VISIBLE_DEVICES')
    """
    by_deepspeed = (command.inner or command.launcher) == "deepspeed"
    if accelerator == "AMD ROCm":
        names = _OF_AMD[:2] if by_deepspeed else ()
        chosen_later = any(variable(env, name) is not None for name in names)
        if chosen_later or not cuda_works(live) or not command.env.keys().isdisjoint(_OF_AMD):
            return None
        return (len(live.devices), "") if isinstance(live, TorchLive) else None
    name = _VARIABLES.get(accelerator)
    if name is None or by_deepspeed:
        return None
    if name == "ZE_AFFINITY_MASK" and variable(env, "ZE_FLAT_DEVICE_HIERARCHY") != "FLAT":
        return None  # then an entry may be a card with several devices
    value = command.env.get(name, variable(env, name))
    entries = [entry.strip() for entry in (value or "").split(",")]
    if not all(entry.isdecimal() for entry in entries):
        return None
    return len(set(entries)), name
