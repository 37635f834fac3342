"""Messages of `native-crash` on the workers that read data, spawned processes, and failed checks."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern=r"\bProcessExitedException: process \d{1,6} terminated with (?:signal SIG(?:SEGV|BUS|ILL|FPE)|exit code 322122(?:5477|6505|5501|5620|5725|6356))\b",
        source="torch 1.3-2.13 multiprocessing/spawn.py",
        message="A process that the script spawned crashed in native code",
        examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV",
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 3221225620",
        ),
        not_examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 1",
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGTERM",
        ),
        level=Level.STRONG,
        masks=("rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bProcessExitedException: process \d{1,6} terminated with signal SIGABRT",
        source="torch 1.3-2.13 multiprocessing/spawn.py",
        examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGABRT",
        ),
        not_examples=("ProcessExitedException: process terminated with signal SIGABRT",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        # below the check that failed; the process aborts after the stack
        pattern=r"^\*\*\* Check failure stack trace: \*\*\*",
        source="glog 0.3-0.7 src/logging.cc; abseil 2022-2025 log/internal/log_message.cc",
        examples=("*** Check failure stack trace: ***",),
        not_examples=("it prints *** Check failure stack trace: ***",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"DataLoader worker \(pid \d+\) is killed by signal: (?P<signal>Segmentation fault|Illegal instruction|Floating point exception)",
        source="torch 0.4-2.13 csrc/DataLoader.cpp; glibc 2.0-2.41 string/strsignal.c",
        examples=(
            "RuntimeError: DataLoader worker (pid 4211) is killed by signal: Segmentation fault. ",
            "RuntimeError: DataLoader worker (pid 11) is killed by signal: Illegal instruction. ",
            "RuntimeError: DataLoader worker (pid 11) is killed by signal: Floating point exception. ",
        ),
        not_examples=("Reader worker (pid 11) is killed by signal: Illegal instruction. ",),
        level=Level.CERTAIN,
        message="A DataLoader worker crashed in native code: {signal}",
        hint="run once with `num_workers=0` and `PYTHONFAULTHANDLER=1`: the stack shows which library reads the data (an image or audio decoder, a tokenizer), and with which sample",
        masks=("dataloader-worker-killed", "host-oom-killed", "rank-killed"),
    ),
    Signature(
        pattern=r"ERROR: Unexpected (?:segmentation fault|floating-point exception) encountered in (?:DataLoader )?worker",
        source="torch 1.0-2.13 torch/csrc/DataLoader.cpp; paddle 1.7-3.0 paddle/fluid/imperative/data_loader.cc",
        message="A DataLoader worker crashed in native code",
        hint="run once with `num_workers=0` and `PYTHONFAULTHANDLER=1`: the stack shows which library of the dataset crashes",
        examples=(
            "ERROR: Unexpected segmentation fault encountered in worker.",
            "ERROR: Unexpected floating-point exception encountered in worker.",
            "ERROR: Unexpected segmentation fault encountered in DataLoader workers.",
        ),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "host-oom-killed", "rank-killed"),
    ),
)
