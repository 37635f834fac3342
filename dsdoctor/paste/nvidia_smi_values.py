"""How `nvidia-smi` prints values, in its query (`-q`), as XML and as columns."""

from __future__ import annotations

import re

from dsdoctor.model.facts.gpu import ComputeMode, RecoveryAction

_MODES = {
    "Default": ComputeMode.DEFAULT,
    "Exclusive_Process": ComputeMode.EXCLUSIVE_PROCESS,
    "Exclusive_Thread": ComputeMode.EXCLUSIVE_THREAD,
    "Prohibited": ComputeMode.PROHIBITED,
}
#: `GPU Recovery Action` of `-q` (driver 565 and later) and `gpu_recovery_action` of columns.
_RECOVERY = {
    "None": RecoveryAction.NONE,
    "Reset": RecoveryAction.GPU_RESET,
    "Reboot": RecoveryAction.NODE_REBOOT,
    "Drain P2P": RecoveryAction.DRAIN_P2P,
    "Drain and Reset": RecoveryAction.DRAIN_AND_RESET,
}


def recovery(value: str) -> int | None:
    """NVML's code of the action that recovers a GPU."""
    return _RECOVERY.get(value.removeprefix("GPU ").removeprefix("Node "))


def mode(value: str) -> int | None:
    """A compute mode."""
    return _MODES.get(value)


def switch(value: str) -> bool | None:
    """Whether something is on; None if it is neither on nor off.

    >>> switch("Enabled"), switch("No"), switch("N/A")
    (True, False, None)
    """
    return {"Enabled": True, "Disabled": False, "Yes": True, "No": False}.get(value)


def number(value: str) -> int | None:
    """A count; None if it is not one."""
    return int(value) if value.isdecimal() and len(value) < 16 else None  # noqa: PLR2004


def mib(value: str) -> int | None:
    """A size, in bytes; columns may omit the unit.

    >>> mib("16 MiB"), mib("16"), mib("16 GiB")
    (16777216, 16777216, None)
    """
    found = re.fullmatch(r"(\d{1,7})(?: MiB)?", value)
    return int(found[1]) << 20 if found else None
