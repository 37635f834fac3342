"""The machine's memory has uncorrectable errors.

## Why it matters
The kernel removes the page that failed. It kills the program that used the page with SIGBUS, or
reboots the machine if the page was its own. On a job, one rank ends and the others wait.

## What to do
Look up the DIMM in the line (channel, slot) and in `ipmitool sel list`, drain the node, and have the
memory replaced. The run can resume on another node.

## References
- Linux drivers/edac/edac_mc.c, mm/memory-failure.c, arch/x86/kernel/cpu/mce/core.c
- https://docs.kernel.org/admin-guide/RAS/main.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "host-memory-errors",
    id="DSD1062",
    scope=Scope.NODE,
    since="0.1",
    transient="another node can replace it",
)

HINT = "drain the node, have the DIMM in the line replaced, and resume on another node"

SIGNATURES = (
    Signature(
        pattern=r"\bEDAC \S+: \d+ UE ",
        source="Linux 3.6-6.12 drivers/edac/edac_mc.c",
        examples=("EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2",),
        not_examples=("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 UE ",),
        level=Level.STRONG,
        masks=("native-crash", "rank-killed"),
    ),
    Signature(
        pattern=r"(?:Killing|Sending SIGBUS to) \S+ due to hardware memory corruption"
        r"|mce: Uncorrected hardware memory error in user-access",
        source="Linux 2.6-6.12 mm/memory-failure.c, arch/x86/kernel/cpu/mce/core.c",
        examples=(
            "Memory failure: 0x17c64: Killing python:4711 due to hardware memory corruption",
            "Memory failure: 0x17c64: Sending SIGBUS to pt_main_thread:4711 due to hardware memory corruption",
            "mce: Uncorrected hardware memory error in user-access at 17c64000",
        ),
        not_examples=("Memory failure: due to hardware memory corruption, see the manual",),
        level=Level.CERTAIN,
        masks=("native-crash", "rank-killed"),
    ),
)
