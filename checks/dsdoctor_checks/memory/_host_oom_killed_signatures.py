"""Messages of `host-oom-killed`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: Of a process that asked for memory and got none; the kernel killed nothing.
NOT_ALLOCATED = "Host memory ran out: an allocation failed"
#: Of a status that does not show who sent the signal.
KILLED = "A process was killed by SIGKILL, which the kernel sends when host memory runs out"
LOOK_FIRST = (
    "look for `Out of memory` in `dmesg`; if it is there, request more host memory for the job, "
    "offload less, or start fewer ranks and workers"
)

#: What ends the tasks of a Slurm step: their job's end, srun itself, or a task that aborts.
STEP_ENDED = (
    "DUE TO TIME LIMIT",
    "DUE TO PREEMPTION",
    "*** JOB ",
    "srun: forcing job termination",
    "MPI_ERRORS_ARE_FATAL",
    "MPI_ABORT was invoked",
)
#: Below these lines Slurm itself kills the tasks that are left.
STEP_ENDING = ("*** STEP ", "srun: Terminating ")

SIGNATURES = (
    Signature(
        pattern="[Oo]ut of memory: Kill",
        source="linux 3.10-6.12 mm/oom_kill.c",
        examples=("Memory cgroup out of memory: Killed process 25 (python) total-vm:1kB",),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"oom-kill(?:er)?\b",
        source="linux 3.10-6.12 mm/oom_kill.c; slurm 17.11-22.05 src/slurmd/slurmstepd",
        examples=("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.",),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="oom_kill event",
        source="slurm 21.08-25.05 src/slurmd/slurmstepd/mgr.c, src/plugins/task/cgroup",
        examples=(
            "slurmstepd: error: Detected 1 oom_kill event in StepId=88121.0. Some of the step tasks have been OOM Killed.",
        ),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="OOMKilled",
        source="kubernetes 1.2-1.34 pkg/kubelet/kuberuntime; docker 1.6-28 `State.OOMKilled`",
        examples=("Reason:       OOMKilled",),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?<![\w`])OUT_OF_ME(?:MORY\b|\+)",  # sacct cuts it to its column
        source="slurm 17.11-25.05 src/common/slurm_protocol_defs.c: state of a job",
        examples=(
            "88121.batch OUT_OF_MEMORY 0:125",
            "88121  train  gpu  lab  64 OUT_OF_ME+    0:125",
        ),
        not_examples=(
            "failed call to cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY",
            "never ask for less memory after an `OUT_OF_MEMORY`",
        ),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="OOM Killed",
        source="slurm 21.08-25.05 src/slurmd/slurmstepd/mgr.c",
        examples=(
            "slurmstepd: error: Detected 1 oom_kill event in StepId=88121.0. Some of the step tasks have been OOM Killed.",
        ),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Detected \d+ oom",
        source="slurm 17.11-25.05 src/slurmd/slurmstepd, src/plugins/task/cgroup",
        examples=("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.",),
        not_examples=("CUDA SETUP: Detected CUDA version 117",),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"^memory\.events: oom_kill \+[1-9]\d* in ",
        examples=("memory.events: oom_kill +1 in /sys/fs/cgroup/job",),
        not_examples=("memory.events: oom_kill +0 in /sys/fs/cgroup/job",),
        source="memory.events of Linux's control groups, as `dsdoctor run` writes it down",
        message="the kernel killed a process of the job: its control group ran out of memory",
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"return code = -9\b",
        source="deepspeed 0.3-0.19 launcher/launch.py",
        examples=("[ERROR] [launch.py:1:f] ['python'] exits with return code = -9",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"exitcode\s*: -9\b",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/errors/__init__.py",
        examples=("  exitcode  : -9 (pid: 22)",),
        not_examples=(
            "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 3 (pid: 311) of binary: /opt/env/bin/python",
        ),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"Signal 9 \(SIGKILL\)",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/errors/__init__.py",
        examples=("traceback : Signal 9 (SIGKILL) received by PID 22",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"exit(?:ed with)? (?:code|status) (?:137|-9)\b|\bExit code: -9\b",
        source=(
            "launchers that print a status: PyCharm, docker, kubernetes, accelerate 0.1-1.15 "
            "(subprocess), sglang 0.4-0.5 (entrypoints/engine.py)"
        ),
        examples=(
            "[12-16 14:27:10] Exit code: -9",
            "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
            "exit status 137",
            "exit code -9",
        ),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"signal 9\b",
        source="launchers that print a signal: PyCharm, slurm, Open MPI, Ray",
        examples=("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"Signals\.SIGKILL",
        source="python 3.5-3.14 Lib/subprocess.py CalledProcessError.__str__, Lib/signal.py",
        examples=("Signals.SIGKILL",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern="terminated with signal SIGKILL",
        source="torch 1.0-2.13 multiprocessing/spawn.py",
        examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL",
        ),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"exit(?:ed with exit)? code:? 137\b",
        source="slurm 17.11-25.05 srun (src/api/step_launch.c); kubernetes; docker",
        examples=("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
    ),
    Signature(
        # bash names the job: a tunnel or a monitor beside the run is none that trains
        pattern=r"(?:^\s{0,12}|: |\d ?)Killed(?:$|\s{2,}(?!\s|(?:\S{1,100}/)?(?:auto)?(?:ssh|tail|watch|sleep|tensorboard|nvidia-smi|nvtop|htop|deepspeed|torchrun|accelerate launch|mpirun|mpiexec|python[\d.]{0,5} -m (?:torch\.distributed|deepspeed\.launcher|accelerate\.commands\.launch))\b))",
        source="bash 3.2-5.3 jobs.c, slurm 17.11-25.05 srun, with glibc's strsignal",
        examples=(
            "Killed",
            "      Killed",
            "srun: error: n2: task 1: Killed",
            "/usr/bin/bash: line 1: 40811 Killed                  python -u train.py --config c.yaml",
            "  380/3000 [==>.......] - ETA: 1:45:03 - loss: 2.1312 - time (s): 2.2343Killed",
        ),
        not_examples=(
            "[1]+  Killed                  ssh -N -L 6006:localhost:6006 node3",
            "run.sh: line 131: 1948759 Killed                  deepspeed --hostfile h train.py",
        ),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=STEP_ENDED,
        not_after=STEP_ENDING,
        echo=True,
        message=KILLED,
    ),
    Signature(
        pattern=r"^zsh: killed +\S|\bterminated by signal SIGKILL\b",
        source="zsh 5.0-5.9 Src/jobs.c, signames2.awk; fish 2.0-3.1 src/proc.cpp, 3.2-4 share/functions/fish_job_summary.fish",
        examples=(
            "zsh: killed     python train.py",
            "fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)",
        ),
        not_examples=("zsh: killed ", "terminated by signal SIGKILLX"),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=STEP_ENDED,
        echo=True,
        message=KILLED,
    ),
    Signature(
        pattern=r"task \d+: Killed",
        source="slurm 17.11-25.05 srun (src/api/step_launch.c)",
        examples=("srun: error: n2: task 1: Killed",),
        not_examples=("RuntimeError: DataLoader worker (pid 40011) is killed by signal: Killed.",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=STEP_ENDED,
        not_after=STEP_ENDING,
        echo=True,
    ),
    Signature(
        pattern="DefaultCPUAllocator: (?:can't allocate|not enough) memory",
        source="torch 2.13.0 libc10.so",
        message=NOT_ALLOCATED,
        examples=(
            "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
            "DefaultCPUAllocator: not enough memory",
        ),
        not_near=("ibv_", "CUDA out of memory"),
    ),
    Signature(
        pattern=r"\[Errno 12\] Cannot allocate memory",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENOMEM",
        message=NOT_ALLOCATED,
        examples=("OSError: [Errno 12] Cannot allocate memory",),
        not_near=("ibv_", "CUDA out of memory"),
    ),
    Signature(
        # ERROR_COMMITMENT_LIMIT, whatever the language of its words
        pattern=r"\[WinError 1455\]|\(os error 1455\)",
        source="Windows winerror.h, as CPython 3.3-3.14 and rust std number it",
        message="Windows could not commit the memory: RAM and paging file are used up",
        hint="enlarge the paging file (System > Advanced > Performance > Virtual memory), or start fewer processes: each worker of a DataLoader imports torch again, which takes 2 to 5 GB with CUDA's libraries",
        examples=(
            "OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading C:\\x.dll",
            "OSError: [WinError 1455] 页面文件太小，无法完成操作。",
            "safetensors_rust.SafetensorError: 页面文件太小，无法完成操作。 (os error 1455)",
        ),
        not_examples=(),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Unable to allocate .{0,40}for an array",
        source="numpy 2.4.6 _core/_exceptions.py",
        message=NOT_ALLOCATED,
        examples=(
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 11.2 GiB for an array with shape (3000, 1000, 1000) and data type float32",
        ),
        not_examples=(
            "srun: error: Unable to allocate resources: Requested node configuration is not available",
        ),
        not_near=("ibv_", "CUDA out of memory"),
    ),
    Signature(
        pattern=r"^(?:\S+\.)?MemoryError\b(?!: std::bad_alloc)",
        source="python 3.3-3.14 Objects/obmalloc.c, Python/errors.c PyErr_NoMemory",
        message=NOT_ALLOCATED,
        examples=("MemoryError",),
        not_examples=("MemoryError: std::bad_alloc",),
        not_near=("ibv_", "CUDA out of memory"),
    ),
    Signature(
        # not a sentence that says what happens elsewhere
        pattern=r"(?<!\bcrashes with )std::bad_alloc",
        source="GCC 4.8-15 libstdc++-v3/libsupc++/bad_alloc.cc; pybind11 2.0-3.0 raises MemoryError",
        message=NOT_ALLOCATED,
        examples=("terminate called after throwing an instance of 'std::bad_alloc'",),
        not_examples=("the module crashes with std::bad_alloc on these GPUs",),
        # while a module is being imported, two builds of a C++ library are the usual reason
        not_near=(
            "ibv_",
            "CUDA out of memory",
            " in create_module",
            ">>> import ",
            "-c 'import ",
            '-c "import ',
            "std::bad_array_length",  # the symbols of a library
        ),
        importing=False,
    ),
    Signature(
        # several processes write their lines into each other
        pattern=r"^memory allocation of (?:\d{1,20} bytes failed|memory allocation of \d)",
        source="rust 1.31-1.90 library/alloc/src/alloc.rs: tokenizers, safetensors, polars",
        message=NOT_ALLOCATED,
        examples=(
            "memory allocation of 2097152 bytes failed",
            "memory allocation of memory allocation of 20971522097152 bytes failed",
        ),
        not_examples=("memory allocation of 12 buffers failed",),
    ),
    Signature(
        pattern=r"\bError tokenizing data\. C error: out of memory\b",
        source="pandas 0.14-3.0 _libs/src/parser/tokenizer.c, _libs/parsers.pyx",
        message="Host memory ran out: pandas could not hold the table that it reads",
        hint="read the table in parts (`chunksize=`, `usecols=`, `dtype=`), start fewer processes that read it, or request more host memory",
        examples=("pandas.errors.ParserError: Error tokenizing data. C error: out of memory",),
        not_examples=("Error tokenizing data. C error: out of memorys",),
    ),
    Signature(
        pattern=r"killed due to the node running low on memory|^\S*ray\.exceptions\.OutOfMemoryError",
        source="ray 2.35.0 raylet",
        examples=(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
            "A worker was killed due to the node running low on memory.",
        ),
        message="Ray killed a worker because the memory of its node was nearly used up",
        hint="request more host memory, or start fewer or smaller workers; Ray acts before the kernel does, at `RAY_memory_usage_threshold` (0.95) of the node's memory, which other programs also use",
        level=Level.CERTAIN,
        masks=("gpu-oom", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="low on resource: memory",
        source="kubernetes 1.20-1.34 pkg/kubelet/eviction/helpers.go",
        message="The kubelet evicted the pod because the node ran out of memory",
        examples=("The node was low on resource: memory. Threshold quantity: 100Mi",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "pod-evicted", "rank-killed"),
    ),
    Signature(
        pattern="oom_reaper: reaped process|systemd-oomd.{0,80}[Kk]illed",
        source="linux 4.6-6.12 mm/oom_kill.c; systemd 247-257 src/oom/oomd-manager.c",
        examples=(
            "oom_reaper: reaped process 22 (python), now anon-rss:0kB",
            "systemd-oomd ... Killed",
        ),
        not_examples=("systemd-oomd ...",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern="One of the subprocesses has abruptly died during|in the process pool was terminated abruptly|causing the Operating System to kill the worker|is killed by SIGKILL by OOM killer due to high memory usage",
        source="datasets 3.6.0 utils/py_utils.py; CPython 3.11.7 concurrent/futures/process.py",
        examples=(
            "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.",
            "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
            "causing the Operating System to kill the worker",
            "is killed by SIGKILL by OOM killer due to high memory usage",
        ),
        level=Level.WEAK,
        echo=True,
        message="A worker process died, usually because host memory ran out",
        hint="use fewer workers (`num_proc`, `num_workers`) or smaller batches, or "
        "request more host memory",
    ),
    Signature(
        pattern=r"[1-9]\d* Workers? .{0,24}killed due to memory pressure",
        source="ray 2.35.0 raylet",
        examples=(
            "(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons",
        ),
        not_examples=("(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM)",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"KILLED BY SIGNAL: 9\b",
        source="mpich 3.0-4.2 and Intel MPI src/pm/hydra/ui/mpich",
        examples=("KILLED BY SIGNAL: 9",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
        echo=True,
    ),
    Signature(
        pattern=r"EXIT STRING: Killed \(signal 9\)",
        source="mpich 3.0-4.2 and Intel MPI src/pm/hydra/ui/mpich",
        examples=("EXIT STRING: Killed (signal 9)",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
        echo=True,
    ),
    Signature(
        pattern=r"TERM_(?:MEMLIMIT|SWAP): [Jj]ob (?:was )?killed after ",
        source="LSF 9-10.1 mail and output of a job, bjobs, bhist: termination reasons",
        examples=(
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
            "TERM_SWAP: job killed after reaching LSF swap usage limit.",
        ),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="[Ee]xceeded (?:job|step) memory limit",
        source="slurm 22.05.8 slurmd-wlm, libslurmfull.so",
        examples=(
            "slurmstepd: error: Exceeded job memory limit at some point.",
            "slurmstepd: error: Exceeded step memory limit at some point.",
        ),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?:(?:Job|Step) \S+|StepId=\S+) exceeded memory limit",
        source="slurm 22.05.8 slurmd-wlm",
        examples=(
            "slurmstepd: error: StepId=811.batch exceeded memory limit (210 > 200), being killed",
            "slurmstepd: error: Job 5512 exceeded memory limit (66060288 > 62914560), being killed",
            "Step x1 exceeded memory limit",
        ),
        not_examples=("no step exceeded memory limit",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"PBS: job killed: (?:p?v?mem\b|swap )",
        source="PBS Professional, OpenPBS 13-23, Torque 4-6 src/resmom",
        examples=(
            "=>> PBS: job killed: mem 2097152kb exceeded limit 1048576kb",
            "=>> PBS: job killed: mem job total 2097152 kb exceeded limit 1048576 kb",
            "=>> PBS: job killed: vmem 4296912896 exceeded limit 4294967296",
            "=>> PBS: job killed: swap rate due to memory oversubscription is too high",
        ),
        not_examples=("=>> PBS: job killed: mem_use 5 exceeded limit 4",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="crashed after using all available RAM",
        source="Google Colab, notice of the notebook",
        examples=("crashed after using all available RAM",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"\d Killed: 9(?:\s|$)",
        source="bash 3.2-5.2 jobs.c on macOS",
        examples=(
            "7 Killed: 9 ",
            "7 Killed: 9",
        ),
        not_examples=(" Killed: 9 ",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?:non-zero (?:exit )?status|[Ee]xit code is) 137\b",
        source="GNU time 1.7-1.9; CPython 3.5-3.14 subprocess; YARN's and Spark's word of a container",
        examples=(
            "Command exited with non-zero status 137",
            "returned non-zero exit status 137.",
            "Container killed on request. Exit code is 137",
            "exit code is 137",
        ),
        not_examples=("non-zero status 1370",),
        masks=("nccl-timeout-watchdog", "rendezvous-timeout"),
        unless=("DUE TO TIME LIMIT", "DUE TO PREEMPTION", "*** JOB "),
        echo=True,
        message=KILLED,
        hint=LOOK_FIRST,
    ),
    Signature(
        pattern=r"fatal error: Killed signal terminated program \w+",
        source="gcc 9-15 gcc/gcc.cc",
        message="The kernel killed the compiler, usually because host memory ran out",
        hint="build with fewer compilers at once (`MAX_JOBS=2`), or on a machine with more memory",
        examples=("c++: fatal error: Killed signal terminated program cc1plus",),
        not_examples=("fatal error: Killed signal terminated program ",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-fails", "build-dependency-missing"),
    ),
    Signature(
        pattern=r"srun: error: \S{1,253}: tasks? [\d,-]+: Out Of Memory",
        source="slurm 20.11-25.11 src/srun/launch.c, plugins/launch/slurm/task_state.c",
        message="The kernel killed a task of the job: its control group ran out of memory",
        examples=(
            "srun: error: n1: task 0: Out Of Memory",
            "srun: error: n1: tasks 0-3: Out Of Memory",
        ),
        not_examples=("srun: error: n1: Out Of Memory",),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"\bCannot allocate memory \(os error 12\)",
        source="Rust 1.0-1.90 std/src/io/error.rs, of safetensors, tokenizers, hf-xet and uv",
        message="Host memory could not be allocated or mapped",
        examples=(
            "SafetensorError: Error while deserializing: Cannot allocate memory (os error 12)",
        ),
        not_examples=("xCannot allocate memory (os error 12)",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"\bearlyoom(?:\[\d+\])?: sending SIG(?:TERM|KILL) to process \d+ ",
        source="earlyoom 1.3-1.8 kill.c",
        message="earlyoom ended a process, because host memory was nearly used up",
        examples=(
            'earlyoom[711]: sending SIGTERM to process 8111 uid 1000 "python": badness 912',
            'earlyoom: sending SIGKILL to process 8111 uid 1000 "python": badness 912',
        ),
        not_examples=("earlyoom[711]: sending SIGTERM to process groups is off",),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"^Your notebook tried to allocate more memory than is available",
        source="Kaggle, notice of the notebook",
        examples=(
            "Your notebook tried to allocate more memory than is available. It has restarted.",
        ),
        not_examples=("see why Your notebook tried to allocate more memory than is available",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"internal compiler error: Killed \(program \w+\)|^virtual memory exhausted: Cannot allocate memory|^(?:cc1plus|cc1|cudafe\+\+|as|lto1|cc1obj): out of memory allocating \d+ bytes",
        source="gcc 4-15 gcc.c, libiberty/xmalloc.c",
        message="The compiler ran out of host memory",
        hint="build with fewer jobs (`MAX_JOBS=2`), or give the build more memory",
        examples=(
            "g++: internal compiler error: Killed (program cc1plus)",
            "virtual memory exhausted: Cannot allocate memory",
            "cc1plus: out of memory allocating 65536 bytes after a total of 8110080 bytes",
            "cc1: out of memory allocating 65536 bytes after a total of 8110080 bytes",
            "cudafe++: out of memory allocating 65536 bytes after a total of 8110080 bytes",
            "as: out of memory allocating 4064 bytes after a total of 8110080 bytes",
            "lto1: out of memory allocating 65536 bytes after a total of 8110080 bytes",
            "cc1obj: out of memory allocating 65536 bytes after a total of 8110080 bytes",
        ),
        not_examples=(
            "internal compiler error: Killed (program )",
            "when virtual memory exhausted: Cannot allocate memory",
            "cc1plus: out of memory allocating room",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bunable to mmap (?!.{0,60}</torch_).{1,400}: Cannot allocate memory \(12\)|\bArrowMemoryError: (?:malloc|realloc) of size \d+ failed|\bfork: Cannot allocate memory$",
        source="torch 1.0-2.15 aten/src/ATen/MapAllocator.cpp; pyarrow 0.15-22 memory_pool.cc; bash 3.2-5.2 jobs.c",
        message="Host memory could not be allocated or mapped",
        examples=(
            "RuntimeError: unable to mmap 6738415616 bytes from file <model.safetensors>: Cannot allocate memory (12)",
            "pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed",
            "ArrowMemoryError: realloc of size 4294967296 failed",
            "bash: fork: Cannot allocate memory",
        ),
        not_examples=(
            "RuntimeError: unable to mmap 811 bytes from file </torch_91_22>: Cannot allocate memory (12)",
            "ArrowMemoryError: malloc of size is checked",
            "see why fork: Cannot allocate memory is printed",
        ),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"\bJob has gone over (?:cgroup )?memory limit of \d+ megabytes|\bmemory usage exceeded request_memory\b",
        source="HTCondor 8.4-24 src/condor_starter.V6.1/vanilla_proc.cpp; policies of the pool",
        message="HTCondor ended the job: it used more memory than it had requested",
        hint="raise `request_memory` in the submit file to what the job uses",
        examples=(
            "Error from slot1_4@gpu3: Job has gone over cgroup memory limit of 4096 megabytes. Last measured usage: 4000 megabytes.",
            "Error from slot1_4@gpu3: Job has gone over memory limit of 4096 megabytes. Peak usage: 4000 megabytes.",
            'HoldReason = "Error from slot1_4@gpu3: memory usage exceeded request_memory"',
        ),
        not_examples=(
            "Job has gone over memory limit of the pool",
            "memory usage exceeded request_memory_limit",
        ),
        level=Level.CERTAIN,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog", "rank-killed"),
    ),
    Signature(
        pattern=r"^\s{0,12}Killed$",
        source="bash 3.2-5.3 jobs.c, below ninja 1.5-1.13 and pip",
        message="A compiler was killed, usually because host memory ran out",
        hint="build with fewer jobs (`MAX_JOBS=2`), or give the build more memory",
        examples=("Killed", "      Killed"),
        not_examples=("Killed twice",),
        near=("ninja: build stopped", "Error compiling objects", "Error building extension"),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
)
