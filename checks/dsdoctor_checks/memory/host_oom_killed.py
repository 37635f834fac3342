"""The system killed the process for lack of host memory.

## Why it matters
Offload and loader workers live in host memory. The kernel ends the largest process with SIGKILL,
which no traceback shows: only `return code = -9`.

## What to do
Give the job more host memory, or offload less and start fewer ranks and workers.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("host-oom-killed", id="DSD1452", scope=Scope.JOB, since="0.1")

HINT = "give the job more host memory, or offload less and start fewer ranks and workers"

SIGNATURES = (
    Signature(
        anchor=(
            "Out of memory: Kill",
            "oom-kill",
            "oom_kill",
            "Memory cgroup out of memory",
            "OOMKilled",
            "Out Of Memory",
            "out-of-memory",
            "OUT_OF_MEMORY",
            "OOM Killed",
            "Detected ",
        ),
        pattern=(
            r"[Oo]ut of memory: Kill|oom-kill(?:er)?\b|oom_kill event|OOMKilled"
            r"|OUT_OF_MEMORY|OOM Killed|Detected \d+ oom"
        ),
        examples=(
            "Memory cgroup out of memory: Killed process 25 (python) total-vm:1kB",
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.",
        ),
        not_examples=(
            "CUDA out of memory",
            "memory.events: oom_kill 0",
        ),
        weight=74,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=(
            "return code = -9",
            "SIGKILL",
            "Signal 9",
            "exit code 137",
            "exit code: 137",
            "exit code:  137",
            "exit code -9",
            "signal 9",
            "Killed",
            "exited with code 137",
            "exited with status 137",
            "exited with status -9",
            "exited with code -9",
            "exit status 137",
            "exit status -9",
            "exitcode",
        ),
        pattern=(
            r"return code = -9\b|exitcode\s*: -9\b|Signal 9 \(SIGKILL\)"
            r"|exit(?:ed with)? (?:code|status) (?:137|-9)\b"
            r"|signal 9\b|Signals\.SIGKILL|terminated with signal SIGKILL"
            r"|exit(?:ed with exit)? code:? 137\b|(?:^|: |\d )Killed(?:$"
            r"|\s{2,})|task \d+: Killed"
        ),
        examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL",
            "[ERROR] [launch.py:1:f] ['python'] exits with return code = -9",
            "  exitcode  : -9 (pid: 22)",
            "traceback : Signal 9 (SIGKILL) received by PID 22",
        ),
        not_examples=(
            "Killing subprocess 21",
            "the handler ignores SIGTERM; SIGKILL cannot be handled",
        ),
        weight=52,
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
    ),
    Signature(
        anchor=(
            "can't allocate memory",
            "Cannot allocate memory",
            "Unable to allocate",
            "MemoryError",
            "not enough memory",
            "bad_alloc",
        ),
        pattern=(
            r"DefaultCPUAllocator: (?:can't allocate|not enough) memory"
            r"|\[Errno 12\] Cannot allocate memory|Unable to allocate .{0,40}for an array"
            r"|^(?:\S+\.)?MemoryError\b|std::bad_alloc"
        ),
        examples=(
            "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
            "OSError: [Errno 12] Cannot allocate memory",
        ),
        not_examples=("ibv_reg_mr failed: Cannot allocate memory",),
        weight=55,
        not_near=("ibv_", "CUDA out of memory"),
    ),
    Signature(
        anchor=("node running low on memory", "ray.exceptions.OutOfMemoryError"),
        pattern=(
            r"killed due to the node running low on memory|^\S*ray\.exceptions\.OutOfMemoryError"
        ),
        examples=(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
            "A worker was killed due to the node running low on memory.",
        ),
        not_examples=(
            "the node is not running low on memory",
            "no node running low on memory was found",
        ),
        weight=72,
        masks=("gpu-oom", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("low on resource: memory", "memory pressure", "oom_reaper", "systemd-oomd"),
        pattern="low on resource: memory|oom_reaper: reaped process|systemd-oomd.{0,80}[Kk]illed",
        examples=(
            "The node was low on resource: memory. Threshold quantity: 100Mi",
            "oom_reaper: reaped process 22 (python), now anon-rss:0kB",
        ),
        not_examples=(
            "the node was low on resource: ephemeral-storage",
            "memory pressure: none",
        ),
        weight=70,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        anchor=(
            "abruptly died during",
            "process pool was terminated abruptly",
            "causing the Operating System to kill",
            "OOM killer due to high memory usage",
        ),
        pattern=r"One of the subprocesses has abruptly died during|in the process pool was terminated abruptly|causing the Operating System to kill the worker|is killed by SIGKILL by OOM killer due to high memory usage",
        examples=(
            "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.",
            "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
        ),
        not_examples=("the viewer has abruptly died during the demo",),
        weight=38,
    ),
    Signature(
        anchor=(
            "killed due to memory pressure",
            "KILLED BY SIGNAL: 9",
            "Killed (signal 9)",
            "TERM_MEMLIMIT",
            "xceeded job memory limit",
            "exceeded memory limit",
            "PBS: job killed: mem",
            "using all available RAM",
            "Killed: 9",
            "exceeded memory usage",
        ),
        pattern=r"[1-9]\d* Workers? .{0,24}killed due to memory pressure|KILLED BY SIGNAL: 9\b|EXIT STRING: Killed \(signal 9\)|TERM_MEMLIMIT: |[Ee]xceeded job memory limit|(?:Job|Step) \S+ exceeded memory limit|PBS: job killed: mem|crashed after using all available RAM|\d Killed: 9(?:\s|$)",
        examples=(
            "(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons",
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
            "slurmstepd: error: Exceeded job memory limit at some point.",
        ),
        not_examples=(
            "(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM)",
            "no step exceeded memory limit",
        ),
        weight=66,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
)
