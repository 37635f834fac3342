"""Xids: what they mean, how bad they are, what NVIDIA advises.

Source: NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, copy
of 2025-10-29, Ampere and later), read 2026-11-21; which of them stop a node was weighed against the
lists of Azure's and Meta's node health checks. Numbers that are not here are noted only.
"""

from __future__ import annotations

import dataclasses
import re

#: Levels: the GPU is not fit for a run; something to look into; the doing of a program, or harmless.
FATAL, WARN, INFO = "fatal", "warn", "info"

_RESET = "reset the GPU (`nvidia-smi --gpu-reset` as root, with no program on it) or reboot"
_REBOOT = "power-cycle the node; when it comes back, have the card replaced"
_RESTART = "start the job again; when it comes back on the same GPU, run `dcgmi diag -r 3`"
_CARD = "reset the GPU, and have the card replaced when it comes back"
_CABLES = "check the auxiliary power cables of the card"
_SOFTWARE = "reset the GPU; when it comes back, update the driver"
_LINK = "look at `nvidia-smi nvlink -s` and `-e`, reset the GPUs of the board together, or reboot"


@dataclasses.dataclass(frozen=True)
class Xid:
    """A number of the catalogue.

    Attributes:
        meaning: in a few words.
        level: FATAL, WARN or INFO.
        action: what to do, an imperative.
        nvlink: it is about NVLinks, and fatal only where some are in use.
        settles: it stands for a repair that is over once no row waits to be remapped.
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
    63: Xid("a memory row or page is to be replaced", WARN, _RESET, settles=True),
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
    143: Xid("GPU initialisation failed", FATAL, _RESET),
    151: Xid("key rotation failed", FATAL, "restart the virtual machine"),
    155: Xid("NVLink error that software defines", FATAL, _RESET),
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
UNKNOWN = Xid("a number that NVIDIA's catalogue of 2025 explains, or a newer one", INFO)
#: Errors of NVLink 5, each with its severity in its text.
NVLINK5 = range(144, 151)
#: Xid 154 carries what the GPU needs in its text.
RECOVERY = 154
SWITCH_FATAL = Xid("fatal error of an NVSwitch", FATAL, _LINK)
SWITCH_OTHER = Xid("error of an NVSwitch that is not fatal", INFO)


def lookup(code: int, text: str, *, switch: bool = False) -> Xid:
    """The rule for an Xid, or for an SXid of an NVSwitch.

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
    meaning = f"the driver asks for `{asked[1]}`"
    return Xid(meaning, FATAL, f"do what the driver asks for: {asked[1].lower()}")
