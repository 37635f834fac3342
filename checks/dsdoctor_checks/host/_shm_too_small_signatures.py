"""Messages of `shm-too-small`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

from ._util import SHARED_MEMORY

SIGNATURES = (
    Signature(
        pattern="No space left on device(?!: '(?!/dev/shm)[/.~])",
        source="glibc 2.36 libc.so.6",
        examples=(
            "RuntimeError: unable to write to file </torch_1_2>: No space left on device",
            "OSError: [Errno 28] No space left on device",
            "OSError: [Errno 28] No space left on device: '/dev/shm/x'",
        ),
        not_examples=("OSError: [Errno 28] No space left on device: '/tmp/pymp-a'",),
        level=Level.STRONG,
        near=(
            # not a row of `df` that shows room there
            "/dev/shm/",
            "'/dev/shm'",
            "`/dev/shm`",
            "100% /dev/shm",
            "shm)",
            "multiprocessing/queues",
            "multiprocessing/synchronize",
            "multiprocessing/heap",
            "multiprocessing/context",
            "</torch_",
            "/torch_shm",
            "ctx.Lock",
            "_rlock",
            "SemLock",
            "shm_open",
            "joblib",
            "shared memory",
            "shm.h",
            "shmutils",
        ),
        masks=(
            "disk-full",
            "nccl-intra-node-transport-failed",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern="insufficient shared memory",
        source="torch 2.13.0 libtorch_python.so",
        examples=(
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        ),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="unable to (?:allocate|mmap|write to|open) (?:shared memory|file </torch)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_19_425195680_0>: No space left on device (28)",
            "unable to mmap shared memory",
            "RuntimeError: unable to write to file </torch_771_2210_1>: No space left on device (28)",
            "RuntimeError: unable to open shared memory object </torch_1_2> in read/write mode",
        ),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"unable to mmap \d{1,15} bytes from file <(?:filename not|/torch)",
        source="torch 1.0-2.13 aten/src/ATen/MapAllocator.cpp",
        examples=(
            "unable to mmap 7 bytes from file <filename not",
            "RuntimeError: unable to mmap 1048576 bytes from file </torch_91_22>: Cannot allocate memory (12)",
        ),
        not_examples=("to mmap 7 bytes from file <filename not",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="signal: Bus error",
        source="torch 1.0-2.13 csrc/DataLoader.cpp, with glibc's strsignal",
        examples=("RuntimeError: DataLoader worker (pid 8) is killed by signal: Bus error.",),
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"return code = -7\b",
        source="deepspeed 0.3-0.19 launcher/launch.py",
        examples=(
            "[ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = -7",
        ),
        not_examples=("return code = -79",),
        requires=SHARED_MEMORY,
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"exitcode\s*: -7\b",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/api.py, errors/__init__.py",
        examples=(
            "torch.distributed.elastic.multiprocessing.api: failed (exitcode: -7) local_rank: 0 (pid: 201) of binary: /usr/bin/python3",
        ),
        not_examples=(
            "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 3 (pid: 311) of binary: /opt/env/bin/python",
        ),
        requires=SHARED_MEMORY,
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"\(SIGBUS\)",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/errors/__init__.py",
        examples=("traceback : Signal 7 (SIGBUS) received by PID 201",),
        requires=SHARED_MEMORY,
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="signal SIGBUS",
        source="torch 1.0-2.13 multiprocessing/spawn.py",
        examples=("signal SIGBUS",),
        requires=SHARED_MEMORY,
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Signals\.SIGBUS",
        source="python 3.5-3.14 Lib/subprocess.py CalledProcessError.__str__, Lib/signal.py",
        examples=("Signals.SIGBUS",),
        requires=SHARED_MEMORY,
        level=Level.STRONG,
        masks=("dataloader-worker-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Error while creating shared memory segment (?:/dev/shm/)?nccl-",
        source="nccl 2.4-2.27 src/misc/shmutils.cc, src/include/shm.h",
        examples=(
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x (size 9)",
            "include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-a-1-1-0 (size 9)",
        ),
        level=Level.STRONG,
        masks=(
            "nccl-intra-node-transport-failed",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern=r"Caught signal 7 \(Bus error\b",
        source="UCX 1.6-1.18 src/ucs/debug/debug.c",
        examples=("[host:1:0:2] Caught signal 7 (Bus error: nonexistent physical address)",),
        not_examples=("Caught signal 7 (Bus errors are counted)",),
        level=Level.LIKELY,
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern="posix_fallocate failed|failed to extend /dev/shm",
        source="nccl 2.12-2.32 src/misc/shmutils.cc",
        examples=(
            "NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes",
            "NCCL WARN Call to posix_fallocate failed : No space left on device",
        ),
        level=Level.CERTAIN,
        masks=(
            "nccl-intra-node-transport-failed",
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern=r"ncclSystemError: System call \(socket, malloc, munmap",
        source="torch 1.8-2.13 csrc/distributed/c10d/NCCLUtils.hpp",
        examples=(
            "ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
            "    ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"^(?:.*\d+ |.*: )?Bus error(?: \(core dumped\)|\s{2,}|$)",
        source="bash 3.2-5.3 jobs.c, with glibc's strsignal",
        examples=(
            "Bus error (core dumped)",
            "run.sh: line 3: 4411 Bus error               (core dumped) python train.py",
            "srun: error: gpu07: task 3: Bus error",
        ),
        not_examples=("caught a Bus error handler installed",),
        masks=("nccl-timeout-watchdog",),
    ),
    Signature(
        pattern=r"(?:NCCL [Ee]rror(?: 2)?|NCCL failure \S+): '?unhandled system error|NCCL failure \S+ 'unhandled system error",
        source=(
            "nccl 2.2-2.32 ncclGetErrorString, as torch 0.4-1.7 THD, nccl-tests common.cu, cupy and "
            "vllm 0.4-0.15 pynccl_wrapper.py print it"
        ),
        examples=(
            "RuntimeError: NCCL Error 2: unhandled system error",
            "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "node: Test NCCL failure common.cu:777 'unhandled system error'",
        ),
        not_examples=("Error 2: unhandled system error",),
        not_near=("losed by remote peer",),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): (?!.{0,200}(?:out of resource|Required:|No such file|[Pp]inning)).{0,200}(?:[Ss]hared memory (?:segment|object|file|region|block)|/dev/shm\b)",
        source="any package that names the folder or its segments in the error",
        examples=(
            "RuntimeError: could not create a shared memory segment",
            "OSError: cannot allocate 2 GB in /dev/shm",
            "RuntimeException: Shared memory object",
            "RuntimeError: cannot map shared memory file",
            "OSError: shared memory region is too small",
            "RuntimeError: no more shared memory blocks",
        ),
        not_examples=(
            "RuntimeError: out of resource: 163840 bytes of a shared memory block",
            "INFO: a shared memory segment is used",
            "AssertionError: Unpinning shared memory region failed with error-code: 1",
            "FileNotFoundError: [Errno 2] No such file or directory: '/dev/shm/index-cache/x_doc_idx.npy'",
        ),
        level=Level.HINT,
        not_near=("A100", "head dim"),
    ),
    Signature(
        pattern=r"^(?:\[E\] |.{0,60}: )?Bus error\b",
        source="slurm 17.11-25.05 srun (src/api/step_launch.c), with glibc's strsignal",
        examples=(
            "srun: error: node1: task 0: Bus error",
            "Bus error",
        ),
        not_examples=("Bus errors: 0",),
        level=Level.WEAK,
        not_near=("Bus errors",),
    ),
    Signature(
        pattern=r"(?:exited|died) with signal 7\b",
        source="slurm 17.11-25.05, Open MPI 1.8-5.0, systemd: words of launchers for a task's end",
        examples=(
            "python exited with signal 7 (core dumped)",
            "died with signal 7",
        ),
        level=Level.WEAK,
        not_near=("Bus errors",),
    ),
    Signature(
        pattern=r"Signal 7 \(SIGBUS\)",
        source="torch 1.9-2.13 distributed/elastic/multiprocessing/errors/__init__.py",
        examples=("traceback : Signal 7 (SIGBUS) received by PID 201",),
        level=Level.WEAK,
        not_near=("Bus errors",),
    ),
    Signature(
        pattern=r"exit code 135\b",
        source="launchers that print a shell's status: 128 + signal (docker, kubernetes, srun)",
        examples=("exit code 135",),
        not_examples=("exit code 1350",),
        level=Level.WEAK,
        not_near=("Bus errors",),
    ),
    Signature(
        pattern="No such file or directory: '/psm_",
        source="python 3.8-3.14 Lib/multiprocessing/shared_memory.py, Modules/_posixshmem",
        examples=("FileNotFoundError: [Errno 2] No such file or directory: '/psm_1a2b'",),
        level=Level.WEAK,
        not_near=("Bus errors",),
    ),
    Signature(
        pattern=r"^(?:zsh: |\[\d{1,3}\][\s+-]{1,12}(?:\d{1,9} )?)bus error\b",
        source="zsh 5 Src/signals.c, bash 3.2-5.2 jobs.c",
        examples=(
            "zsh: bus error  python3 train.py",
            "[1]    4711 bus error  python train.py",
        ),
        not_examples=("a bus error was handled",),
        level=Level.HINT,
    ),
)
