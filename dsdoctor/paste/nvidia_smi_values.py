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


def milliwatts(value: str) -> int | None:
    """A power limit, whose unit a heading may have.

    >>> milliwatts("300.00 W"), milliwatts("150.00"), milliwatts("[N/A]")
    (300000, 150000, None)
    """
    found = re.fullmatch(r"(\d{1,5}\.\d{1,3})(?: W)?", value)
    return int(float(found[1]) * 1000) if found else None


def reasons(value: str) -> int | None:
    """The mask of what limits the clocks, as columns print it.

    >>> reasons("0x0000000000000004"), reasons("Active")
    (4, None)
    """
    return int(value, 16) if re.fullmatch(r"0x[0-9a-fA-F]{16}", value) else None


def mib(value: str) -> int | None:
    """A size, in bytes; columns may omit the unit.

    >>> mib("16 MiB"), mib("16"), mib("16 GiB")
    (16777216, 16777216, None)
    """
    found = re.fullmatch(r"(\d{1,7})(?: MiB)?", value)
    return int(found[1]) << 20 if found else None
