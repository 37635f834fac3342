"""Ascend's collective library (HCCL) reports an error.

## Why it matters
HCCL ends a collective when a link between NPUs cannot be set up, when a rank does not join in time, or
when an earlier process still holds a device. The code in its message (EI0006, EJ0001, ...) says which.

## What to do
Look for the code and the first rank that printed it: EI0006 (a rank did not answer within
`HCCL_CONNECT_TIMEOUT`), EJ0001 (an earlier process still holds the device: wait, or end it),
EI0004 (rank table). Check links with `hccn_tool`.

## References
- https://www.hiascend.com/document (HCCL error codes)
- torch_npu csrc/distributed/ProcessGroupHCCL.cpp
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("hccl-error", id="DSD856", scope=Scope.NODE, since="0.1")

HINT = "look for the first rank with a code such as EI0006 or EJ0001, end processes that still use the NPUs, and check links with `hccn_tool`"

SIGNATURES = (
    Signature(
        pattern=r"(?:OPS function error: Hccl[A-Z]\w{1,40}, error code is \d+|HCCL function error: [Hh]ccl[A-Z]\w{1,40})",
        source="torch_npu 2.0-2.7 csrc/framework/OpParamMaker.cpp, core/npu/NPUException.h",
        examples=(
            "RuntimeError: x.cpp:281 OPS function error: HcclAllreduce, error code is 6",
            "RuntimeError: create:x.cpp:89 HCCL function error: HcclGetRootInfo(&id), error code is 7",
            "RuntimeError: create_config:x.ts:148 HCCL function error: hcclCommInitRootInfoConfig(n, &id, rank, config, &comm), error code is 5",
        ),
        not_examples=(
            "x.cpp:281 OPS function error: Hccl, error code is 6",
            "x.cpp:89 HCCL function error: Hccl",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bHCCL error in: |call hccl api failed|\bERR02\d{3} DIST\b(?! internal error)",
        source="torch_npu 2.0-2.7 csrc/distributed/ProcessGroupHCCL.cpp, core/npu/NPUErrorCodes.h",
        examples=(
            "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64",
            "ERR02200 DIST call hccl api failed.",
        ),
        not_examples=("ERR02x DIST", "ERR02005 DIST internal error"),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        # the watchdog prints it for whatever it finds, such as a kernel that failed
        pattern=r"\bERR02005 DIST internal error",
        source="torch_npu 2.1-2.7 csrc/distributed/ProcessGroupHCCL.cpp, core/npu/NPUErrorCodes.h",
        examples=(
            "[ERROR] 2025-12-12-12:10:10 (PID:3, Device:5, RankID:-1) ERR02005 DIST internal error",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"\bE[IJ]\d{4}\b.{0,120}(?:[Gg]etting socket times out|socket timeout|HCCP process|[Rr]ank ?[Tt]able|remote rank|Notify register times out)",
        source="CANN 6-8 hccl: error codes",
        examples=(
            "EI0006: 2024-05-21 Getting socket times out.",
            "EI0015: 2026-04-04 10:00:00 Some NPUs get socket timeout, the details are as follows",
            "EJ0001: Failed to initialize the HCCP process.",
            "EI0004: the ranktable is invalid",
            "EI0002: Wait for remote rank 3 timed out",
            "EI0006: rank table is invalid",
            "EI0002: [PID: 7] 2024-11-28-11:59:30 The wait execution of the Notify register times out.",
        ),
        not_examples=(
            "see HCCP process and remote rank of a Rank Table, rankTable",
            "Getting socket times out",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^\[ERROR\] HCCL\(\d{1,9},[^)]{1,80}\):\d{4}-\d\d-\d\d",
        source="CANN 5-8 slog: level, module(process, name), time, [file:line]",
        examples=(
            "[ERROR] HCCL(36035,python3):2025-05-13-02:25:58.068.817 [op_base.cc:974][36818]errNo[0x0000000005000002]HcclCommInitRootInfo failed.",
        ),
        not_examples=("[ERROR] HCCL(36035,python3): see the plog",),
        level=Level.LIKELY,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\b(?P<code>E[IJ]00(?!05\b|07\b|11\b)\d\d): (?:\[PID: \d{1,9}\] )?(?:\d{4}-\d\d-\d\d\S{0,20} )?[A-Z](?P<said>.{1,200})",
        source="CANN 6-8 hccl: error codes",
        message="HCCL reports {code}",
        examples=(
            "EI0001: Environment variable [HCCL_CONNECT_TIMEOUT] is invalid. Reason: it should be a number.",
            "EI0008: [PID: 7] 2024-05-21-10:00:00.123.456 The HCCL versions are inconsistent: tag[x]",
            "EJ0003: [PID: 7] 2024-05-21-10:00:00.123.456 Failed to bind the IP port.",
        ),
        not_examples=("EI0001: see the manual", "EI0005: The arguments are inconsistent"),
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"NPU function error: (?:HCCS|UB) LINK ERROR|reason=\[?(?:device network )?link error",
        source="torch_npu 2.4-2.9 csrc/core/npu/NPUException.cpp: handleLinkError",
        message="A link between Ascend NPUs failed",
        hint="check the links with `hccn_tool -i N -link -g` and `npu-smi info -t health`, and run without that node",
        examples=(
            "NPU function error: HCCS LINK ERROR, error code is 507056",
            "NPU function error: UB LINK ERROR, error code is 507056",
            "rtStreamSynchronize execute failed, reason=[link error][FUNC:FuncErrorReason]",
            "reason=device network link error",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"NPU function error: (?:HCCL OP RETRY FAILED|SUSPECT REMOTE ERROR|FORCE STOP)",
        source="torch_npu 2.1-2.9 csrc/core/npu/NPUException.cpp, csrc/framework/OpCommand.cpp",
        message="HCCL gave up because another rank failed",
        examples=(
            "NPU function error: HCCL OP RETRY FAILED, error code is 507055",
            "NPU function error: SUSPECT REMOTE ERROR, error code is 507057",
            "NPU function error: FORCE STOP, error code is 107022",
        ),
        level=Level.WEAK,
        echo=True,
    ),
)
