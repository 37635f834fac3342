"""The terminal or SSH session of the run was closed.

## Why it matters
When a terminal closes, the kernel sends SIGHUP to its processes, and torchrun ends all ranks. It
looks like a crash without a reason, often hours later, when a laptop goes to sleep.

## What to do
Start long runs under `tmux`, `screen` or a scheduler, or with `nohup torchrun … &`, and resume
from the last checkpoint.

## References
- torch distributed/elastic/multiprocessing/api.py (SignalException)
- https://man7.org/linux/man-pages/man7/signal.7.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("terminal-closed", id="DSD1261", scope=Scope.JOB, since="0.1")

HINT = "start the run under `tmux`, a scheduler or `nohup`, and resume from the last checkpoint"

SIGNATURES = (
    Signature(
        pattern=r"(?:got|death) signal: (?:1\b|Signals\.SIGHUP)",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/api.py",
        examples=(
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 1",
            "Received death signal: Signals.SIGHUP",
        ),
        not_examples=("Process 4711 got signal: 15",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Received 1 death signal, shutting down workers|Received Signals\.SIGHUP death signal, shutting down workers|Sending process \d+ closing signal SIGHUP",
        source="torch 1.9-2.13 distributed/elastic/agent/server/api.py, multiprocessing/api.py",
        examples=(
            "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers",
            "Received Signals.SIGHUP death signal, shutting down workers",
            "Sending process 4711 closing signal SIGHUP",
        ),
        not_examples=("Sending process x closing signal SIGHUP",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        # not a tunnel or a monitor beside the run
        pattern=r"(?:^\S{1,300}: line \d{1,6}: {1,4}\d{1,9} |^\[\d{1,4}\] {0,4}[+-]? {1,4}(?:\d{1,9} )?|^zsh: )[Hh]angup(?=$| {2,40}(?! |(?:\S{1,100}/)?(?:(?:auto)?ssh|tail|watch|sleep|tensorboard|nvidia-smi|nvtop|htop)\b))",
        source="bash 3.2-5.3 jobs.c, zsh 5.0-5.9 Src/signals.c, with the words of glibc's strsignal",
        message="The shell reports that SIGHUP ended a command: its terminal or ssh session was closed",
        examples=(
            "run.sh: line 44: 367038 Hangup                  deepspeed --num_gpus 16 train.py",
            "[1]+  Hangup                  python train.py",
            "zsh: hangup     python train.py",
        ),
        not_examples=(
            "run.sh: line 44: 367038 Hangup                  ssh -N -L 6006:gpu1:6006 login",
            "run.sh: line 44: trap: Hangup: invalid signal specification",
            "zsh: hangups are ignored",
        ),
        level=Level.STRONG,
        masks=("rank-killed", "launcher-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"DataLoader worker \(pid[^)]{1,40}\) is killed by signal: Hangup",
        source="torch 1.0-2.13 torch/csrc/DataLoader.cpp, with the words of glibc's strsignal",
        examples=("RuntimeError: DataLoader worker (pid 254328) is killed by signal: Hangup. ",),
        not_examples=("DataLoader worker (pid) is killed by signal: Hangup",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "host-oom-killed", "rank-killed"),
    ),
    Signature(
        pattern=r"(?:exitcode\s*:|return code =|exited with code) -1\b.{0,40}$",
        source="torch 1.9-2.13 distributed/elastic; deepspeed 0.9-0.19 launcher/launch.py",
        near=("SIGHUP",),
        examples=(
            "  exitcode  : -1 (pid: 4711)",
            "exits with return code = -1",
            "worker exited with code -1",
        ),
        not_examples=(
            "exits with return code = -11",
            "exitcode : -15",
            "worker exited with code -15",
        ),
        level=Level.LIKELY,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^client_loop: send disconnect: |^Connection to \S{1,253} closed by remote host\.|^(?:Timeout, server \S{1,253} not responding|packet_write_wait: Connection to \S{1,253} port \d{1,5}: Broken pipe)|^Write failed: Broken pipe",
        source="openssh 5.0-9.9 clientloop.c, serverloop.c, packet.c",
        message="The ssh connection through which the run was started broke",
        examples=(
            "client_loop: send disconnect: Broken pipe",
            "Connection to gpu1.lab closed by remote host.",
            "Timeout, server gpu1.lab not responding.",
            "packet_write_wait: Connection to 10.0.0.4 port 22: Broken pipe",
            "Write failed: Broken pipe",
        ),
        not_examples=(
            "a client_loop: send disconnect: x",
            "Connection to gpu1 lab closed by remote host.",
            "Timeout, server gpu1.lab answers",
            "packet_write_wait: Connection to port 22: Broken pipe",
            "why Write failed: Broken pipe",
        ),
        masks=("rank-killed",),
    ),
)
