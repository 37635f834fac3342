"""An operator failed while it ran on an Ascend NPU.

## Why it matters
A kernel on the NPU read or wrote outside its memory, met a value or shape that it does not support, or ran
longer than the watchdog allows. Operators are called asynchronously: the stack in the log shows where
the failure was noticed, and every later call on this NPU fails as well. HCCL's watchdog on the
other ranks reports the same code, or that this rank did not answer.

## What to do
Run once with `ASCEND_LAUNCH_BLOCKING=1`: the stack then shows the operator that failed. Read the
lines below it, or the plog under `~/ascend/log`, for the reason: an index out of range or a wrong
shape is an error of the script, and an operator that the installed CANN does not support on this
NPU needs matching releases of torch_npu and CANN that support it. If the same operator fails on one
NPU only, test that NPU with `ascend-dmi`.

## References
- torch_npu torch_npu/csrc/core/npu/NPUErrorCodes.h: what the error codes mean
- https://www.hiascend.com/document (CANN, troubleshooting: aicore errors)
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("npu-kernel-failed", id="DSD661", scope=Scope.USER_ENV, since="0.1")

HINT = "run once with `ASCEND_LAUNCH_BLOCKING=1`, so that the stack shows the operator, and look below it or in the plog for the reason"

#: What the other ranks, and the watchdog of this one, report of it.
_VICTIMS = (
    "hccl-error",
    "nccl-timeout-watchdog",
    "peer-connection-lost",
    "rank-killed",
    "rendezvous-timeout",
)

SIGNATURES = (
    Signature(
        pattern=r"\b(?:aicore|[Vv]ector core) execution (?:is abnormal|times out|timed out)|core trap (?:read|write) out-of-bounds exception",
        source="torch_npu 2.0-2.7 csrc/core/npu/NPUErrorCodes.h, of CANN's codes 507014, 507015, 507034, 507035 and 507042 to 507045",
        examples=(
            "[Error]: The aicore execution times out. ",
            "[Error]: The aicore execution is abnormal. ",
            "[Error]: Vector core execution timed out. ",
            "[Error]: The vector core execution is abnormal. ",
            "[Error]: The aicore trap read out-of-bounds exception. ",
            "[Error]: Vector core trap write out-of-bounds exception. ",
        ),
        not_examples=(
            "myaicore execution times out",
            "a multivector core execution is abnormal",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\baicpu execution (?:is abnormal|times out)\.",
        source="torch_npu 2.0-2.7 csrc/core/npu/NPUErrorCodes.h, of CANN's codes 507017 and 507018",
        message="An operator failed on the CPUs of an Ascend NPU",
        examples=(
            "[Error]: The aicpu execution times out. ",
            "[Error]: The aicpu execution is abnormal. ",
        ),
        not_examples=("myaicpu execution is abnormal.",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:reason=|\[|RTS_HWTS: )(?:ai|vector )core (?:exception|timeout)\b|there is an exception of (?:fftsplus )?ai(?:core|v\w{0,5}) error",
        source="CANN 6-8 runtime: error_message_manage.cc, device_error_core_proc.cc, davinci_kernel_task.cc",
        examples=(
            "        rtDeviceSynchronizeWithTimeout execute failed, reason=[vector core exception][FUNC:FuncErrorReason]",
            "EE9999[PID: 7] (EE9999):  rtEventQueryStatus execution failed, reason=aicore timeout[FUNC:FuncErrorReason]",
            "  Message info[0]:RTS_HWTS: aicore exception, slot_id=31, stream_id=3",
            "The error from device(chipId:2, dieId:0), serial number is 445, there is an exception of aicore error, core id is 3",
            "there is an exception of fftsplus aivector error, core id is 12",
            "there is an exception of aivec error, core id is 1",
        ),
        not_examples=("reason=aicore exceptions", "there is an exception of ai"),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bA(?:icore|icpu|ivector|I CPU) kernel execut(?:e|ion) failed, device_id=\d",
        source="CANN 5-8 runtime: task.cc, task_info.cc, davinci_kernel_task.cc",
        examples=(
            "[ERROR] RUNTIME(8,python):2024-04-19-18:13:17.186.318 [task_info.cc:1678]8 PrintErrorInfoForDavinciTask:Aicore kernel execute failed, device_id=0, stream_id=2, report_stream_id=2",
            "       Aicpu kernel execute failed, device_id=1, stream_id=7, task_id=2.",
            "Aivector kernel execute failed, device_id=0",
            "AI CPU kernel execution failed, device_id=0, stream_id=44",
        ),
        not_examples=(
            "Aicore kernel execute failed, device_id=",
            "AI CPU kernel execution failed, device_id=x",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bcall aclnn(?P<operator>\w{2,80}) failed\b",
        source="op-plugin 2.1-2.7 op_plugin/utils/OpApiCommon.h, for torch_npu",
        message="The operator `aclnn{operator}` failed on an Ascend NPU",
        examples=(
            "RuntimeError: call aclnnCast failed, detail:EZ9999: Inner Error!",
            "NPU function error: call aclnnRmsNorm failed, error code is 507014",
        ),
        not_examples=("the call aclnn failed twice", "call aclnnCast fails"),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:NPU (?:function )?error(?:: .{1,120})?|NPU warning), error code is 5070(?:1[4-8]|3[4-6]|4[2-5])\b|synchronize failed, error code:5070(?:1[4-8]|3[4-6]|4[2-5])\b",
        source="torch_npu 1.8-2.7 csrc/core/npu/NPUException.h, NPUStream.cpp: the same codes without their words",
        examples=(
            "RuntimeError: Sync:torch_npu/csrc/framework/OpCommand.cpp:190 NPU error, error code is 507015",
            "compiler_depend.ts:34 NPU function error: aclrtSynchronizeStream(copy_stream), error code is 507035",
            "Warning: NPU warning, error code is 507042[Error]: ",
            "RuntimeError: ACL stream synchronize failed, error code:507014",
        ),
        not_examples=(
            "NPU error, error code is 5070999",
            "RuntimeError: ACL stream synchronize failed, error code:507048",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"NPU (?:function )?error(?:: .{1,200}?)?, error code is (?P<code>5070(?:01|1[13]|4[689]|50))\b|(?:synchronize stream|task) failed, runtime result = (?P<result>5070(?:01|1[13]))\b",
        source="torch_npu 1.8-2.9 csrc/core/npu/NPUErrorCodes.h (task scheduler, model, SDMA, internal tasks), NPUException.h; CANN 6-8 log_inner.cpp",
        message="A task failed on an Ascend NPU; CANN's code gives no further detail (507001 and neighboring codes)",
        hint="read the lines below it and the plog (`~/ascend/log`) for the first code that gives more detail: an operator, memory (EL0004), HCCL (EI, EJ) or a device; `ASCEND_LAUNCH_BLOCKING=1` shows the operator",
        examples=(
            "RuntimeError: copy_d2d:torch_npu/csrc/aten/common/CopyKernel.cpp:274 NPU function error: c10_npu::acl::AclrtSynchronizeStreamWithTimeout(copy_stream), error code is 507001",
            "RuntimeError: x.cpp:94 NPU function error: acl::AclmdlRIExecuteAsync, error code is 507011",
            "RuntimeError: x.ts:508 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507013",
            "RuntimeError: x.cpp:9 NPU error, error code is 507048",
            "RuntimeError: x.cpp:9 NPU error, error code is 507050",
            "       synchronize stream failed, runtime result = 507001[FUNC:ReportCallError]",
            "       task failed, runtime result = 507013[FUNC:x]",
        ),
        not_examples=(
            "NPU function error: aclrtSynchronizeStream, error code is 5070010",
            "Warning: NPU warning, error code is 507001[Error]: ",
            "task failed, runtime result = 5070019",
        ),
        level=Level.WEAK,
        masks=("rank-killed", "rendezvous-timeout"),
    ),
    Signature(
        # mostly a wait for another rank: of events, of HCCL's tasks
        pattern=r"\brt\w{4,40} execute failed, reason=\[(?:task|stream sync) timeout\]|, runtime result = (?:107020|507046)\b",
        source="CANN 6-8 runtime error_message_manage.cc, log_inner.cpp: ACL_ERROR_RT_TASK_TIMEOUT, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT",
        message="The tasks of an Ascend NPU did not end in time, most often because it waited for another rank",
        hint="look in the plogs (`~/ascend/log`) of all ranks for the one that failed or stopped first; if every rank was still working, raise `HCCL_EXEC_TIMEOUT`",
        examples=(
            "        rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]",
            "EE1002: 2024-09-03-16:50:00.041.231 Stream synchronize timeout. rtDeviceSynchronize execute failed, reason=[stream sync timeout]",
            "        wait for compute device to finish failed, runtime result = 507046.[FUNC:ReportCallError][FILE:log_inner.cpp][LINE:161]",
            "        synchronize stream failed, runtime result = 107020[FUNC:ReportCallError][FILE:log_inner.cpp][LINE:161]",
        ),
        not_examples=(
            "rtx execute failed, reason=[task timeout]",
            "runtime result of the job: x, runtime result = 5070461",
        ),
        level=Level.WEAK,
        masks=("rank-killed", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bOptype \[(?P<operator>[^\]]{1,80})\] of Ops kernel \[[^\]]{1,60}\] is unsupported|No supported Ops kernel and engine are found for \[[^\]]{0,100}\], optype \[(?P<kind>[^\]]{1,80})\]",
        source="CANN 5-8 conf/error_manager/error_code.json: EZ3002, EZ3003",
        message="The installed CANN does not support an operator, or its data type or shape, on this NPU",
        hint="read the reason after `Reason:`; use a data type or shape that the operator supports there, or the release of CANN that torch_npu was built for",
        examples=(
            "EZ3002: [PID: 603] 2025-06-23-10:51:59.636.525 Optype [TransData] of Ops kernel [AIcoreEngine] is unsupported. Reason: x.",
            "EZ3003: [PID: 603] No supported Ops kernel and engine are found for [x], optype [Foo].",
        ),
        not_examples=(
            "Optype [TransData] of Ops kernel [AIcoreEngine] is slow",
            "No supported Ops kernel and engine are found for [x], optype []",
        ),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bE(?:C0010|40020): .{0,60}Failed to import Python module \[(?P<reason>[^\]]{1,200})\]",
        source="CANN 5-8 te_fusion te_fusion_error_code.h, conf/error_manager/error_code.json: E40020, EC0010",
        message="CANN's compiler of operators cannot import a Python module: {reason}",
        hint="install what it names for the `python3` that runs the job (CANN needs `attrs`, `cloudpickle`, `decorator`, `psutil`, `scipy`, `sympy` and `tornado`), keep `numpy` below 2 for CANN before 9, and source CANN's `set_env.sh` (`PYTHONPATH`)",
        examples=(
            "EC0010: [PID: 129520] 2025-07-08-10:25:28.680.962 Failed to import Python module [ModuleNotFoundError: No module named 'decorator'.].",
            "E40020: Failed to import Python module [No module named 'scipy'].",
        ),
        not_examples=("EC0010: Failed to import Python module []",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"NPU (?:function )?error: at_npu::native::AclSetCompileopt\(aclCompileOpt::ACL_PRECISION_MODE, precision_mode\), error code is 500001\b",
        source="torch_npu 2.1-2.8 csrc/framework/LazyInitAclops.cpp SetPrecisionMode; CANN 8 acl_base.h ACL_ERROR_GE_FAILURE",
        message="CANN's compiler of operators did not start on the NPU (500001)",
        hint="read the lines below it: `EC0010` names a Python package that CANN needs and does not find, `init runtime platform info failed` means that CANN does not match the driver, or that its `set_env.sh` was not sourced",
        examples=(
            "RuntimeError: SetPrecisionMode:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:175 NPU function error: at_npu::native::AclSetCompileopt(aclCompileOpt::ACL_PRECISION_MODE, precision_mode), error code is 500001",
        ),
        not_examples=(
            "NPU function error: at_npu::native::AclSetCompileopt(aclCompileOpt::ACL_PRECISION_MODE, precision_mode), error code is 5000011",
        ),
        level=Level.WEAK,
        masks=("rank-killed", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"The Inner error is reported as above\.",
        source="torch_npu 1.11-2.7 csrc/core/npu/NPUException.h",
        message="An operator failed on an Ascend NPU; the lines above say why",
        examples=("RuntimeError: The Inner error is reported as above.",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"\bE\d{4}\d?: .{0,60}Failed to compile [Oo]p \[(?P<operator>\w{1,80})|\bFailed to compile Op \[(?P<op>\w{1,80})\]",
        source="CANN 5-8 te_fusion and opcompiler: error codes E40021, E90003",
        message="CANN could not compile an operator for the NPU",
        hint="read the reason below it; usual ones are a data type or shape that the operator does not support on this NPU, a missing Python package of CANN (`decorator`, `sympy`, `attrs`, `psutil`), and `numpy` 2",
        examples=(
            "E40021: [PID: 7] Failed to compile Op [Mul12]. (oppath: [Compile /usr/local/Ascend/mul.py failed with errormsg/stack: x])",
            "Failed to compile Op [Mul12].",
        ),
        not_examples=("Failed to compile Op []",),
        masks=_VICTIMS,
    ),
)
