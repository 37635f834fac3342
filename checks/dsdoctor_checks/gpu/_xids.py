"""What each Xid means, how severe it is, and what NVIDIA advises.

Source: NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, version of
2025-10-29, Ampere and later), read 2026-11-21. Which of them take a node out of service was compared
with the node health checks of Azure and Meta. Any other number is only noted.
"""

from __future__ import annotations

import re

import msgspec

#: Levels: the GPU is unfit for a run; worth a look; caused by a program, or harmless.
FATAL, WARN, INFO = "fatal", "warn", "info"

_RESET = "reset the GPU (`nvidia-smi --gpu-reset` as root, with no program on it) or reboot"
_REBOOT = "power-cycle the node; if the error recurs, replace the card"
_RESTART = "restart the job; if the error recurs on the same GPU, run `dcgmi diag -r 3`"
_CARD = "reset the GPU; if the error recurs, replace the card"
_CABLES = "check the auxiliary power cables of the card"
_SOFTWARE = "reset the GPU; if the error recurs, update the driver"
_RESET = "stop all work on it and run `nvidia-smi --gpu-reset` as root, or reboot"
_LINK = "check `nvidia-smi nvlink -s` and `-e`, then reset all GPUs of the board, or reboot"


class Xid(msgspec.Struct, frozen=True):
    """An entry of the catalog.

    Attributes:
        meaning: in a few words.
        level: FATAL, WARN or INFO.
        action: what to do, as an imperative.
        nvlink: concerns NVLinks; fatal only if the GPU uses some.
        settles: announces a repair that is complete once no row is pending.
    """

    meaning: str
    level: str
    action: str = _RESTART
    nvlink: bool = False
    settles: bool = False


XIDS = {
    13: Xid("graphics engine exception", INFO),
    31: Xid("GPU memory page fault", INFO),
    32: Xid("invalid or corrupted push buffer", WARN),
    43: Xid("GPU stopped processing", INFO),
    44: Xid("graphics engine fault", INFO),
    45: Xid("preemptive clean-up of channels", INFO),
    46: Xid("GPU stopped processing", FATAL, _RESET),
    48: Xid("uncorrectable double-bit ECC error", FATAL, _RESET),
    54: Xid("auxiliary power is not connected", FATAL, _CABLES),
    62: Xid("internal micro-controller halted", FATAL, _RESET),
    63: Xid("a memory row or page is marked for replacement", WARN, _RESET, settles=True),
    64: Xid("a memory row or page could not be replaced", FATAL, _CARD),
    74: Xid("NVLink error", FATAL, _LINK, nvlink=True),
    79: Xid("GPU has fallen off the bus", FATAL, _REBOOT),
    80: Xid("corrupted data was sent to the GPU", WARN),
    92: Xid("high rate of single-bit ECC errors", WARN, _CARD),
    94: Xid("contained ECC error", WARN, _RESTART),
    95: Xid("uncontained ECC error", FATAL, _RESET),
    109: Xid("context switch timed out", FATAL, _RESET),
    110: Xid("security fault", FATAL, _RESET),
    119: Xid("the GPU's firmware (GSP) did not answer", FATAL, _SOFTWARE),
    120: Xid("error in the GPU's firmware (GSP)", FATAL, _SOFTWARE),
    121: Xid("chip-to-chip link error", INFO),
    136: Xid("link training failed", FATAL, _RESET),
    137: Xid("NVLink privilege error", INFO),
    140: Xid("unrecovered ECC error", FATAL, _RESET),
    143: Xid("GPU initialization failed", FATAL, _RESET),
    151: Xid("key rotation failed", FATAL, "restart the virtual machine"),
    155: Xid("software-defined NVLink error", FATAL, _RESET),
    156: Xid("resource retirement event", FATAL, _RESET),
    157: Xid("resource retirement failure", WARN, _CARD),
    158: Xid("GPU fatal timeout", FATAL, _RESET),
    159: Xid("error on the chip's interconnect (CHI)", WARN),
    160: Xid("channel retirement event", INFO),
    161: Xid("channel retirement failure", INFO),
    167: Xid("fatal timeout on PCIe", FATAL, _REBOOT),
    171: Xid("uncorrectable DRAM error", FATAL, _CARD),
    172: Xid("uncorrectable SRAM error", FATAL, _CARD),
}
UNKNOWN = Xid("not in the table of dsdoctor", INFO)
#: NVLink 5 errors, whose text includes the severity.
NVLINK5 = range(144, 151)
#: Xid 154, whose text names the recovery action that the GPU needs.
RECOVERY = 154
SWITCH_FATAL = Xid("fatal NVSwitch error", FATAL, _LINK)
SWITCH_OTHER = Xid("non-fatal NVSwitch error", INFO)


def lookup(code: int, text: str, *, switch: bool = False) -> Xid:
    """The entry for an Xid, or for an NVSwitch SXid.

    >>> lookup(79, "").level, lookup(13, "").level, lookup(9999, "").level
    ('fatal', 'info', 'info')
    >>> lookup(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)").level
    'fatal'
    >>> lookup(149, "NETIR_LINK_EVT Fatal XC1 i0 Link 08").level, lookup(145, "Nonfatal").level
    ('fatal', 'info')
    """
    if switch:
        fatal = re.match(r"\s*fatal\b", text, re.IGNORECASE)
        return SWITCH_FATAL if fatal else SWITCH_OTHER
    if code in NVLINK5:
        harmless = re.search(r"non-?fatal", text, re.IGNORECASE)
        level = INFO if harmless else FATAL if re.search(r"\bfatal", text, re.IGNORECASE) else WARN
        return Xid("NVLink 5 error", level, _LINK, nvlink=True)
    if code != RECOVERY:
        return XIDS.get(code, UNKNOWN)
    asked = re.search(r"\bto 0x\w+ \(([^)]*)\)", text)
    if asked is None or asked[1].strip().lower() == "none":
        return Xid("the recovery action has changed", INFO)
    meaning = f"the driver requests `{asked[1]}`"
    boot = "reboot" in asked[1].lower()
    return Xid(meaning, FATAL, "reboot the node" if boot else _RESET)
