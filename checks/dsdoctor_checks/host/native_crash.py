"""A process crashed in native code (segmentation fault, abort or illegal instruction).

## Why it matters
A signal ended the process inside a library: Python prints no exception, and the other ranks
report a lost peer minutes later. The usual reasons are libraries of different builds in one
process, a corrupt installation, and an instruction that the processor does not support.

## What to do
Find the library in the top frame of the stack: run with `PYTHONFAULTHANDLER=1`, or open the core dump
with `coredumpctl gdb`. Reinstall its package for this torch, CUDA and processor. To confirm the cause,
run once without that package.

## References
- https://docs.python.org/3/library/faulthandler.html
- https://man7.org/linux/man-pages/man7/signal.7.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

from . import _illegal_instruction_signatures, _worker_crash_signatures
from ._util import SHARED_MEMORY

CONDITION = Condition("native-crash", id="DSD1060", scope=Scope.USER_ENV, since="0.1")

HINT = "find the library in the top frame of the stack (`PYTHONFAULTHANDLER=1` makes Python print it), and reinstall its package for this torch and processor"

SIGNATURES = (
    *_illegal_instruction_signatures.SIGNATURES,
    *_worker_crash_signatures.SIGNATURES,
    Signature(
        pattern=r"\*\*\* SIG(?:SEGV|ILL|FPE|BUS) received at time=\d+",
        source="abseil 2020-2025 debugging/failure_signal_handler.cc",
        examples=(
            "*** SIGSEGV received at time=1755448771 on cpu 7 ***",
            "*** SIGILL received at time=1755448771 on cpu 7 ***",
            "*** SIGFPE received at time=1755448771 on cpu 7 ***",
            "*** SIGBUS received at time=1755448771 on cpu 7 ***",
        ),
        not_examples=("*** SIGSEGV received at time=noon",),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\*\*\* SIGABRT (?:received at time=\d+|\(@0x[0-9a-f]+\) received by PID \d+)",
        source="abseil 2020-2025 debugging/failure_signal_handler.cc; glog 0.3-0.7 src/signalhandler.cc",
        examples=(
            "*** SIGABRT received at time=1734086759 on cpu 3 ***",
            "*** SIGABRT (@0x3e8) received by PID 4711 (TID 0x7f28d7e0b740) from PID 4711; stack trace: ***",
        ),
        not_examples=(
            "*** SIGABRT received at time=noon",
            "*** SIGABRT (@here) received by PID 4711",
        ),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"\*\*\* SIG(?:SEGV|ILL|FPE|BUS) \(@0x[0-9a-f]+\) received by PID \d+",
        source="glog 0.3-0.7 src/signalhandler.cc; paddle 2.0-3.0 paddle/fluid/platform/init.cc",
        examples=(
            "*** SIGSEGV (@0x0) received by PID 26955 (TID 0x7f28d7e0b740) from PID 0; stack trace: ***",
            "*** SIGILL (@0x7f1a) received by PID 7 (TID 0x7f28) from PID 4; stack trace: ***",
            "*** SIGFPE (@0x7f1a) received by PID 7 (TID 0x7f28) from PID 4; stack trace: ***",
            "  [SignalInfo: *** SIGBUS (@0x7f1a) received by PID 7 (TID 0x7f28) from PID 0 ***]",
        ),
        not_examples=(
            "*** SIGTERM (@0x7f1a) received by PID 7",
            "*** SIGSEGV (@here) received by PID 7",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"7 \(SIGBUS\)|Signals\.SIGBUS|signal SIGBUS|(?:exitcode\s*:|return code =) -7\b",
        source="torch 1.9-2.13 distributed/elastic; deepspeed 0.9-0.19 launcher/launch.py; CPython subprocess",
        message="A process accessed mapped memory that was no longer there (SIGBUS)",
        hint="check the free space of `/dev/shm`, and whether a data file was truncated, or its disk failed, while it was mapped",
        examples=(
            "traceback : Signal 7 (SIGBUS) received by PID 201",
            "died with <Signals.SIGBUS: 7>.",
            "killed by signal SIGBUS",
            "  exitcode  : -7 (pid: 201)",
            "exits with return code = -7",
        ),
        not_examples=("exitcode  : -79", "exits with return code = -71"),
        unless=SHARED_MEMORY,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Fatal Python error: (?:Segmentation fault|Illegal instruction|Floating-point exception)",
        source="CPython 3.8-3.14 Modules/faulthandler.c",
        examples=(
            "Fatal Python error: Segmentation fault",
            "Fatal Python error: Illegal instruction",
            "Fatal Python error: Floating-point exception",
        ),
        not_examples=(),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:^|: )[^\s:]+:\d+: .{1,1000}: Assertion `.{1,600}' failed\.$|^Assertion failed: .{1,600}, file .{1,400}, line \d{1,7}\.?$",
        source="glibc 2.0-2.41 assert/assert.c; macOS 10-15 libc assert.c; the UCRT of Windows 10-11",
        message="A check in native code failed, and aborted the process",
        hint="search the issues of the library that the source file belongs to for the text of the assertion; lines above it may say what was wrong",
        examples=(
            "python3: /opt/env/lib/python3.11/site-packages/foo/csrc/io.cpp:288: int foo::read(const char*): Assertion `fd != -1' failed.",
            "python: ../nptl/pthread_mutex_lock.c:117: __pthread_mutex_lock: Assertion `mutex->__data.__owner == 0' failed.",
            "io.cpp:288: int read(int): Assertion `n > 0' failed.",
            "Assertion failed: (n > 0), function read, file io.cpp, line 288.",
            "Assertion failed: n > 0, file io.cpp, line 288",
        ),
        not_examples=(
            "io.cpp: Assertion `n > 0' failed.",
            "Assertion failed: the loss in line 288",
        ),
        level=Level.LIKELY,
        masks=("rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern="terminate called without an active exception",
        source="GCC 4.8-15 libstdc++-v3/libsupc++/vterminate.cc",
        message="A process ended while a thread of a native library was still running in it",
        hint="find out why this rank exited first: read its last lines; call `torch.distributed.destroy_process_group()` before the script ends",
        examples=("terminate called without an active exception",),
        unless=("std::bad_array_length",),  # the strings of libstdc++
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"\bsegfault at [0-9a-f]+ ip [0-9a-f]+ sp [0-9a-f]+ error \w+ in (?P<library>[^\s\[]+)\[",
        source="Linux 4-6 arch/x86/mm/fault.c",
        message="A process crashed in native code, in `{library}`",
        examples=(
            "python[4711]: segfault at 10 ip 00007f12 sp 00007ffd error 4 in libfoo.so.1[7f1200000000+1000]",
        ),
        not_examples=("a segfault at 10 o'clock",),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\btrap invalid opcode ip:[0-9a-f]+ sp:[0-9a-f]+ error:\w+ in (?P<library>[^\s\[]+)\[",
        source="Linux 4-6 arch/x86/kernel/traps.c",
        message="A process executed an instruction that this processor does not support, in `{library}`",
        examples=(
            "traps: python[4711] trap invalid opcode ip:7f12 sp:7ffd error:0 in libfoo.so[7f1200000000+1000]",
        ),
        not_examples=("a trap invalid opcode ip:7f12",),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?<!compiler error: )\b[Ss]egmentation fault(?: +\(core dumped\)|\s*\(11\)|: (?:address not mapped|invalid permissions)|$)|: line \d+: +\d+ Segmentation fault +\S",
        source="glibc 2.17-2.41 string/strsignal; bash; UCX, Open MPI signal handlers",
        examples=(
            "run.sh: line 3: 4711 Segmentation fault (core dumped) python train.py",
            "run.sh: line 3: 4711 Segmentation fault      (core dumped) python train.py",
            "run.sh: line 3: 4711 Segmentation fault      OMP_NUM_THREADS=1 python train.py",
            "*** Signal: Segmentation fault (11)",
            "Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)",
            "Caught signal 11 (Segmentation fault: invalid permissions for mapped object",
            "Segmentation fault",
        ),
        not_examples=(
            "internal compiler error: Segmentation fault",
            "Segmentation fault detection is on",
            "see line 3: Segmentation fault is explained there",
        ),
        not_near=("pyxis: printing enroot log file", "pyxis: printing contents of log file"),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:Signal|signal):? (?:11 \(SIGSEGV\)|4 \(SIGILL\)|8 \(SIGFPE\))|Signals\.SIG(?:SEGV|ILL|FPE)",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/errors; CPython subprocess",
        examples=(
            "traceback : Signal 11 (SIGSEGV) received by PID 4711",
            "Signal 4 (SIGILL) received by PID 7",
            "Signal 8 (SIGFPE) received by PID 7",
            "died with <Signals.SIGSEGV: 11>.",
            "died with <Signals.SIGILL: 4>.",
            "died with <Signals.SIGFPE: 8>.",
            "Caught signal 11 (SIGSEGV)",
        ),
        not_examples=(),
        level=Level.LIKELY,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:exitcode\s*:|return code =|exit(?:ed with)?(?: exit)? (?:code|status):?|\bExit Code: {1,8}|AlgorithmError: Exit Code:|\bexitCode\"?:) (?:-(?:11|4|8)|139|132|136)\b",
        source="torch 1.9-2.13 distributed/elastic; deepspeed 0.9-0.19 launcher/launch.py; slurm srun; kubectl 1.8-1.34 describe, get -o yaml; sagemaker 1.0-2.250 session.py, of a container",
        examples=(
            "  exitcode  : -11 (pid: 4711)",
            "exits with return code = -11",
            "exits with return code = -4",
            "return code = -8",
            "srun: error: n1: task 3: Exited with exit code 139",
            "exited with code 132",
            "exit status 136",
            "exit code: 139",
            "exited with status 139",
            "exited with exit code 136",
            "      Exit Code:    139",
            "        exitCode: 139",
            "Error for Training job sft-1: Failed. Reason: AlgorithmError: Exit Code: 139",
        ),
        not_examples=(
            "exits with return code = -15",
            "exitcode : 1",
            "exited with code 13",
            "exit status 1",
            "Exited with exit code 1",
            "exit code: 1",
            "exited with status 1",
            "Error for Training job sft-1: Failed. Reason: AlgorithmError: Exit Code: 137",
        ),
        level=Level.LIKELY,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"exited on signal (?:11|4|8) \(|EXIT STRING: (?:Segmentation fault|Illegal instruction|Floating point exception) \(signal \d+\)",
        source="openmpi 1.6-5.0 orte/tools/orterun/help-orterun.txt; mpich 3.0-4.2 and Intel MPI src/pm/hydra/ui/mpich",
        examples=(
            "mpirun noticed that process rank 1 with PID 22 on node n1 exited on signal 11 (Segmentation fault).",
            "mpirun noticed that process rank 1 with PID 0 on node mac exited on signal 4 (Illegal instruction: 4).",
            "mpirun noticed that process rank 0 with PID 7 on node n1 exited on signal 8 (Floating point exception).",
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Illegal instruction (signal 4)",
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Floating point exception (signal 8)",
        ),
        not_examples=(
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal x)",
        ),
        level=Level.LIKELY,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:^|\d )(?:Floating point exception|Trace/breakpoint trap)(?: *\(core dumped\)| {2}|$)",
        source="bash; glibc 2.17-2.41",
        examples=(
            "Floating point exception (core dumped)",
            "Floating point exception",
            "run.sh: line 3: 4711 Floating point exception(core dumped) python train.py",
            "run.sh: line 3: 4711 Trace/breakpoint trap   python train.py",
        ),
        not_examples=(
            "Floating point exceptions are enabled",
            "a Trace/breakpoint trap (core dumped)",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^(?:\S+: )?(?:free\(\): (?:invalid|double)|double free or corruption|munmap_chunk\(\): invalid|corrupted size vs\. prev_size|malloc\(\): |malloc_consolidate\(\): |\*\*\* stack smashing detected)",
        source="glibc 2.26-2.41 malloc/malloc.c",
        examples=(
            "free(): invalid pointer",
            "free(): double free detected in tcache 2",
            "double free or corruption (!prev)",
            "munmap_chunk(): invalid pointer",
            "corrupted size vs. prev_size",
            "malloc(): unaligned tcache chunk detected",
            "malloc_consolidate(): unaligned fastbin chunk detected",
            "*** stack smashing detected ***: terminated",
            "python: malloc(): corrupted top size",
        ),
        not_examples=(
            "see free(): invalid pointer",
            "a double free or corruption",
            "see munmap_chunk(): invalid",
            "see corrupted size vs. prev_size",
            "call malloc(): it",
            "call malloc_consolidate(): it",
            "no *** stack smashing detected",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Fatal Python error: Aborted|(?:exitcode\s*:|return code =|exited with code) -6\b|Signal 6 \(SIGABRT\)|Signal: Aborted \(6\)|srun: error: \S+: tasks? [\d,-]+: Aborted",
        source="CPython 3.8-3.14; torch 1.9-2.13 distributed/elastic; Open MPI 1.8-5.0 opal/util/stacktrace.c; slurm 20.02-25.05 src/srun",
        examples=(
            "Fatal Python error: Aborted",
            "  exitcode  : -6 (pid: 4711)",
            "exits with return code = -6",
            "worker exited with code -6",
            "Signal 6 (SIGABRT) received by PID 4711",
            "[n3:43722] Signal: Aborted (6)",
            "srun: error: n3: task 0: Aborted",
            "srun: error: n3: tasks 0,4-7: Aborted (core dumped)",
        ),
        not_examples=("exits with return code = -64", "exitcode : -61", "exited with code -60"),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"exited on signal 6 \(Abort",
        source="openmpi 1.6-5.0 orte/tools/orterun/help-orterun.txt, prrte 2-3",
        examples=(
            "mpirun noticed that process rank 1 with PID 22 on node n1 exited on signal 6 (Aborted).",
        ),
        not_examples=(),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r": line \d+: +\d+ Aborted +(?:\(core dumped\)|\S)|^Aborted +\(core dumped\)",
        source="bash 4.0-5.3 jobs.c; the words are glibc's strsignal",
        examples=(
            "run.sh: line 3: 4711 Aborted                 (core dumped) python train.py",
            "run.sh: line 3:  4711 Aborted                 python train.py",
            "Aborted (core dumped)",
        ),
        not_examples=("run.sh: line 3: the transaction 4711 Aborted twice",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"^Aborted \(core dumped\)",
        source="bash 3.2-5.3 jobs.c, of a command that was typed; the words are glibc's strsignal",
        examples=("Aborted (core dumped)",),
        not_examples=("it was Aborted (core dumped)",),
        level=Level.WEAK,
        echo=True,
        unless=("what(): ", "Check failed: "),  # which say what was wrong
    ),
    Signature(
        pattern=r"Windows fatal exception: (?:access violation|stack overflow|int divide by zero|code 0xc0000(?:005|01d|0fd|374|409))",
        source="CPython 3.6-3.14 Modules/faulthandler.c, on Windows",
        examples=(
            "Windows fatal exception: access violation",
            "Windows fatal exception: stack overflow",
            "Windows fatal exception: int divide by zero",
            "Windows fatal exception: code 0xc0000374",
            "Windows fatal exception: code 0xc0000005",
            "Windows fatal exception: code 0xc000001d",
            "Windows fatal exception: code 0xc00000fd",
            "Windows fatal exception: code 0xc0000409",
        ),
        level=Level.LIKELY,
        masks=("rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"(?:[Ee]xit ?code:?|exitcode *:|return code =|exit status) ?\(?(?:0xC0000(?:005|01D|094|0FD|374|409)|-1073741(?:819|795|676|571)|-107374(?:0791|0940)|322122(?:5477|6505|5501|5620|5725|6356))\b",
        source="Windows 10-11 NTSTATUS of a process that crashed: access violation (C0000005), illegal instruction (C000001D), integer division by zero (C0000094), stack overflow (C00000FD), corrupt heap (C0000374), fail fast (C0000409)",
        examples=(
            "Process finished with exit code -1073741819 (0xC0000005)",
            "torch.distributed.elastic: failed (exitcode: 3221225477) local_rank: 0",
            "  exitcode  : 3221226505 (pid: 9132)",
            "Process finished with exit code -1073740791",
            "exit code -1073741795",
            "exit code -1073741676",
            "exit code: 3221225620",
            "exit code -1073741571",
            "exit code -1073740940",
            "returned non-zero exit status 3221225501",
            "returned non-zero exit status 3221225725",
            "return code = 3221226356",
            "Exit code: 0xC0000409",
            "exit code 0xC000001D",
            "exit code 0xC0000094",
            "exit code 0xC00000FD",
            "exit code 0xC0000374",
            "exit code 0xC0000005",
        ),
        not_examples=("exit code -10737418190", "after 3221225477 steps"),
        level=Level.LIKELY,
        masks=("rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^zsh: (?:segmentation fault|illegal hardware instruction|bus error|floating point exception) +\S|\bterminated by signal SIG(?:SEGV|ILL)\b",
        source="zsh 5.0-5.9 Src/jobs.c, signames2.awk; fish 2.0-3.1 src/proc.cpp, 3.2-4 share/functions/fish_job_summary.fish",
        examples=(
            "zsh: segmentation fault  python train.py",
            "zsh: illegal hardware instruction  python train.py",
            "zsh: bus error  python train.py",
            "zsh: floating point exception  python train.py",
            "fish: Job 1, 'python train.py' terminated by signal SIGSEGV (Address boundary error)",
            "fish: Job 1, 'python train.py' terminated by signal SIGILL (Illegal instruction)",
        ),
        not_examples=("zsh: segmentation fault ", "terminated by signal SIGILLX"),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^libc\+\+abi(?:\.dylib)?: terminating (?:due to|with) uncaught exception of type \S",
        source="LLVM libc++abi 3-20 cxa_default_handlers.cpp, on macOS",
        examples=(
            "libc++abi: terminating due to uncaught exception of type std::runtime_error: bad",
            "libc++abi.dylib: terminating with uncaught exception of type c10::Error: x",
        ),
        not_examples=("a libc++abi: terminating due to uncaught exception of type x",),
        level=Level.WEAK,
        echo=True,
    ),
)
