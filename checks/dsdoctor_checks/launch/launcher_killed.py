"""The launcher was killed while its ranks were still running.

## Why it matters
Ranks whose launcher has ended keep running. They keep their GPUs and the master port, so the next
job finds both in use. `deepspeed` even exits with status 0 when a signal kills its inner launcher,
so a script assumes that the job succeeded.

## What to do
Stop the remaining ranks (`nvidia-smi` and `ps -ef` list them). Start long jobs under a scheduler,
`tmux` or `nohup`, so that closing the terminal does not kill the launcher.

## References
deepspeed/launcher/runner.py (`if result.returncode > 0: sys.exit`): a negative return code, which
means a signal, is ignored
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Observation, Scope, Signature

CONDITION = Condition(
    "launcher-killed",
    id="DSD1260",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.LAUNCHER_GONE,),
)

HINT = "stop the remaining ranks, and start the job under a scheduler, `tmux` or `nohup`"

SIGNATURES = (
    Signature(
        pattern=r"Main process received SIGTERM, exiting",
        source="deepspeed 0.9-0.19 launcher/launch.py: while no rank has failed",
        message="the deepspeed launcher was terminated from outside (SIGTERM)",
        examples=(
            "[2025-01-02 03:04:05,678] [INFO] [launch.py:324:sigkill_handler] Main process received SIGTERM, exiting",
        ),
        level=Level.LIKELY,
        echo=True,
    ),
    Signature(
        # what ends the whole job has a line of its own: `*** JOB`, `srun: Force Terminated`
        pattern=r"srun: forcing job termination",
        source="slurm 2-25.05 src/srun: on SIGTERM and SIGHUP, and on Ctrl-C that is repeated",
        message="srun was told to end its tasks: by SIGTERM, by SIGHUP of a terminal that closed, or by Ctrl-C",
        hint="look for what ended srun: a `kill` in the script, a closed terminal or Ctrl-C; submit long jobs with `sbatch`",
        examples=("srun: forcing job termination",),
        unless=("*** JOB ", "DUE TO TIME LIMIT", "DUE TO PREEMPTION"),
        level=Level.WEAK,
        masks=("rank-killed",),
        echo=True,
    ),
    Signature(
        # memory that runs out kills the largest process: a rank, never the launcher above it
        pattern=r"\d Killed {2,40}(?:\S{1,200}/)?(?P<launcher>deepspeed|torchrun|accelerate launch|mpirun|mpiexec|python[\d.]{0,5} -m (?:torch\.distributed\.(?:run|launch)|deepspeed\.launcher\.\w{1,20}|accelerate\.commands\.launch))\b",
        source="bash 3.2-5.3 jobs.c, with glibc's strsignal; Linux 2.6-6.12 mm/oom_kill.c oom_badness",
        message="the shell reports that SIGKILL ended `{launcher}` itself, not one of its ranks",
        hint="look for a `kill -9` or `pkill` in scripts that watch the run; stop the ranks that are left",
        examples=(
            "run.sh: line 131: 1948759 Killed                  deepspeed --hostfile h train.py",
            "run.sh: line 9: 40811 Killed                  /opt/env/bin/torchrun --nproc_per_node 8 t.py",
            "run.sh: line 9: 40811 Killed                  accelerate launch t.py",
            "run.sh: line 9: 40811 Killed                  mpirun -np 8 python t.py",
            "run.sh: line 9: 40811 Killed                  mpiexec -np 8 python t.py",
            "run.sh: line 9: 40811 Killed                  python3.10 -m torch.distributed.run t.py",
            "run.sh: line 9: 40811 Killed                  python -m torch.distributed.launch t.py",
            "run.sh: line 9: 40811 Killed                  python -m deepspeed.launcher.runner t.py",
            "run.sh: line 9: 40811 Killed                  python -m accelerate.commands.launch t.py",
        ),
        not_examples=("run.sh: line 9: 40811 Killed                  python train.py",),
        level=Level.LIKELY,
        masks=("rank-killed",),
        echo=True,
    ),
    Signature(
        # what the server makes of SIGTERM until its engine runs
        pattern=r"^KeyboardInterrupt: terminated\s*$",
        source="vllm 0.6-0.23 entrypoints/openai/api_server.py",
        message="the server was terminated from outside (SIGTERM) while it started",
        examples=("KeyboardInterrupt: terminated",),
        not_examples=("KeyboardInterrupt: terminated by hand",),
        level=Level.WEAK,
        masks=("rank-killed",),
    ),
    Signature(
        pattern=r"\*\*\* SIGTERM received at time=\d+",
        source="abseil 2020-2025 debugging/failure_signal_handler.cc, which ray installs in the driver",
        message="the driver process was terminated from outside (SIGTERM)",
        examples=("*** SIGTERM received at time=1755448771 on cpu 72 ***",),
        not_examples=("*** SIGTERM received at time=noon",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        # spawn reports the first process that ended, before it terminates the others itself
        pattern=r"^\S*ProcessExitedException: process \d+ terminated with signal SIGTERM",
        source="torch 1.0-2.13 multiprocessing/spawn.py",
        message="a process of the script was terminated from outside (SIGTERM)",
        examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGTERM",
        ),
        not_examples=("ProcessExitedException: process terminated with signal SIGTERM",),
        level=Level.WEAK,
        echo=True,
    ),
)
